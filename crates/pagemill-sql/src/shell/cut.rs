//! Lines of a shell, cut into statements and backslash commands as psql cuts them.
//!
//! A statement ends at a semicolon outside of quotes, comments and parentheses, or at a backslash command that says so. What
//! stands in quotes may go on over any number of lines.
//!
//! Source: `src/fe_utils/psqlscan.l` and `src/bin/psql/psqlscanslash.l`, PostgreSQL 15.

use super::variables::{Substitute, Variables};

/// What a line completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// A statement, without its semicolon.
    Statement(String),
    /// A backslash command: its name, and all that follows on the line.
    Command {
        /// Without the backslash.
        name: String,
        /// What follows, not cut into arguments yet.
        rest: String,
    },
}

/// What the text so far is inside of.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Inside {
    Nothing,
    /// A string; true where a backslash escapes.
    String(bool),
    Name,
    Dollars(String),
    Comment(usize),
}

/// Cuts lines.
#[derive(Debug)]
pub(super) struct Cutter {
    statement: String,
    inside: Inside,
    parentheses: usize,
    line: Vec<char>,
    at: usize,
    /// Variables whose values are being read, each with how many characters of the line come behind.
    substituted: Vec<(String, usize)>,
}

/// A statement that is half typed.
#[derive(Debug)]
pub(super) struct Typed {
    statement: String,
    inside: Inside,
    parentheses: usize,
}

impl Default for Cutter {
    fn default() -> Self {
        let (statement, line) = (String::new(), Vec::new());
        let (inside, substituted) = (Inside::Nothing, Vec::new());
        Self { statement, inside, parentheses: 0, line, at: 0, substituted }
    }
}

impl Cutter {
    /// Another line, without its end.
    pub(super) fn push(&mut self, line: &str) {
        self.line = line.chars().collect();
        self.at = 0;
        self.substituted.clear();
    }

    /// The statement so far, to come back to.
    pub(super) fn typed(&self) -> Typed {
        let Self { statement, inside, parentheses, .. } = self;
        Typed { statement: statement.clone(), inside: inside.clone(), parentheses: *parentheses }
    }

    /// Forgets what was typed of the statement since.
    pub(super) fn go_back(&mut self, typed: Typed) {
        Typed { statement: self.statement, inside: self.inside, parentheses: self.parentheses } =
            typed;
    }

    /// What has been typed of the statement so far.
    pub(super) fn statement(&self) -> &str {
        &self.statement
    }

    /// Forgets the statement that is being typed, and the rest of the line.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// The statement so far, which is forgotten here.
    pub(super) fn take(&mut self) -> String {
        self.inside = Inside::Nothing;
        self.parentheses = 0;
        std::mem::take(&mut self.statement).trim().to_owned()
    }

    /// The character of a prompt that says what the text is inside of.
    pub(super) fn prompt(&self) -> char {
        match &self.inside {
            Inside::String(_) => '\'',
            Inside::Name => '"',
            Inside::Dollars(_) => '$',
            Inside::Comment(_) => '*',
            Inside::Nothing if self.parentheses > 0 => '(',
            Inside::Nothing if self.statement.is_empty() => '=',
            Inside::Nothing => '-',
        }
    }

    /// What comes next on the line; `None` at its end.
    pub(super) fn next(&mut self, variables: &Variables) -> Option<Piece> {
        while self.at < self.line.len() {
            let piece = match self.inside.clone() {
                Inside::Nothing => self.outside(variables),
                inside => {
                    self.within(&inside);
                    None
                }
            };
            if piece.is_some() {
                return piece;
            }
        }
        if !self.statement.is_empty() && !self.line.is_empty() {
            self.statement.push('\n');
        }
        self.line.clear();
        self.at = 0;
        None
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.line.get(self.at + ahead).copied()
    }

    fn keep(&mut self, count: usize) {
        let end = (self.at + count).min(self.line.len());
        let kept: String = self.line[self.at..end].iter().collect();
        self.at = end;
        // What stands before a statement is no part of it.
        if !self.statement.is_empty() || !kept.trim().is_empty() {
            self.statement.push_str(&kept);
        }
    }

    fn outside(&mut self, variables: &Variables) -> Option<Piece> {
        match (self.peek(0)?, self.peek(1)) {
            ('\'', _) => {
                self.inside = Inside::String(self.is_behind_e());
                self.keep(1);
            }
            ('"', _) => {
                self.inside = Inside::Name;
                self.keep(1);
            }
            ('$', _) if !self.is_behind_name() => self.dollar(),
            ('-', Some('-')) => self.line_comment(),
            ('/', Some('*')) => {
                self.inside = Inside::Comment(1);
                self.keep(2);
            }
            ('(', _) => {
                self.parentheses += 1;
                self.keep(1);
            }
            (')', _) => {
                self.parentheses = self.parentheses.saturating_sub(1);
                self.keep(1);
            }
            (';', _) if self.parentheses == 0 => {
                self.at += 1;
                return Some(Piece::Statement(self.take()));
            }
            ('\\', Some(';')) => {
                self.at += 1;
                self.keep(1);
            }
            (':', Some(':' | '=')) => self.keep(2),
            (':', _) => self.variable(variables),
            ('\\', _) => return Some(self.command()),
            _ => self.keep(1),
        }
        None
    }

    /// What a colon and a name stand for.
    fn variable(&mut self, variables: &Variables) {
        let left = self.line.len() - self.at;
        self.substituted.retain(|(_, behind)| left > *behind);
        match variables.substitute(&self.line[self.at..]) {
            None => self.keep(1),
            Some((Substitute::Whole(text), len)) => {
                self.at += len;
                self.statement.push_str(&text);
            }
            // Within its own value a variable stands for itself.
            Some((Substitute::Typed(name, _), _))
                if self.substituted.iter().any(|(of, _)| *of == name) =>
            {
                self.keep(1);
            }
            Some((Substitute::Typed(name, value), len)) => {
                self.line.splice(self.at..self.at + len, value.chars());
                self.substituted.push((name, left - len));
            }
        }
    }

    /// To the end of the line; before a statement begins it is no part of it.
    fn line_comment(&mut self) {
        match self.statement.is_empty() {
            true => self.at = self.line.len(),
            false => self.keep(self.line.len()),
        }
    }

    fn dollar(&mut self) {
        let rest = &self.line[self.at + 1..];
        let is_tag = |c: &char| c.is_alphanumeric() || *c == '_';
        let len = rest.iter().take_while(|c| is_tag(c)).count();
        let starts_well = rest.first().is_none_or(|c| !c.is_ascii_digit());
        if rest.get(len) == Some(&'$') && starts_well {
            self.inside = Inside::Dollars(self.line[self.at..=self.at + len + 1].iter().collect());
            self.keep(len + 2);
        } else {
            self.keep(1);
        }
    }

    fn within(&mut self, inside: &Inside) {
        let (here, next) = (self.peek(0), self.peek(1));
        match inside {
            Inside::String(true) if here == Some('\\') => self.keep(2),
            Inside::String(_) if here == Some('\'') => self.end_quote('\'', next),
            Inside::Name if here == Some('"') => self.end_quote('"', next),
            Inside::Dollars(tag) => {
                let tag_chars: Vec<char> = tag.chars().collect();
                match self.line[self.at..].starts_with(&tag_chars) {
                    true => {
                        self.inside = Inside::Nothing;
                        self.keep(tag_chars.len());
                    }
                    false => self.keep(1),
                }
            }
            Inside::Comment(depth) => match (here, next) {
                (Some('*'), Some('/')) => {
                    self.inside = match depth {
                        1 => Inside::Nothing,
                        _ => Inside::Comment(depth - 1),
                    };
                    self.keep(2);
                }
                (Some('/'), Some('*')) => {
                    self.inside = Inside::Comment(depth + 1);
                    self.keep(2);
                }
                _ => self.keep(1),
            },
            _ => self.keep(1),
        }
    }

    /// A quote ends, unless it is doubled.
    fn end_quote(&mut self, quote: char, next: Option<char>) {
        if next == Some(quote) {
            return self.keep(2);
        }
        self.inside = Inside::Nothing;
        self.keep(1);
    }

    fn is_behind_name(&self) -> bool {
        self.before(1).is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$')
    }

    /// True behind `E` that is a word of its own.
    fn is_behind_e(&self) -> bool {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        matches!(self.before(1), Some('e' | 'E')) && !self.before(2).is_some_and(is_word)
    }

    fn before(&self, back: usize) -> Option<char> {
        self.at.checked_sub(back).and_then(|at| self.line.get(at)).copied()
    }

    fn command(&mut self) -> Piece {
        let text = &self.line[self.at + 1..];
        let is_end = |c: &char| c.is_whitespace() || *c == '\\';
        let len = match text.first() {
            // One sign is a whole name: `\?` and `\!`.
            Some(first) if !first.is_alphabetic() => 1,
            _ => text.iter().take_while(|c| !is_end(c)).count(),
        };
        let name: String = text[..len].iter().collect();
        let mut rest: String = text[len..].iter().collect();
        self.at = self.line.len();
        // Two backslashes end the command, and SQL goes on; but for commands that take the whole line.
        if !matches!(name.as_str(), "copy" | "h" | "help" | "!")
            && let Some((arguments, behind)) = cut_at_separator(&rest)
        {
            self.line = behind.chars().collect();
            self.at = 0;
            self.substituted.clear();
            rest = arguments;
        }
        Piece::Command { name, rest }
    }
}

/// The arguments before the first backslash that begins another command, or before two of them; and what follows.
fn cut_at_separator(rest: &str) -> Option<(String, String)> {
    let mut quote = None;
    let mut chars = rest.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some('\''), '\\') => {
                chars.next();
            }
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '\\') => {
                let behind = &rest[at..];
                let behind = behind.strip_prefix("\\\\").unwrap_or(behind);
                return Some((rest[..at].to_owned(), behind.to_owned()));
            }
            (None, _) => {}
        }
    }
    None
}

/// The arguments of a backslash command: single quotes hold words together, double ones stay for names, variables have their values.
///
/// # Errors
/// Where a quote is not closed, or something is asked for that is not there.
pub(super) fn arguments(rest: &str, variables: &Variables) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut chars = rest.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        let mut word = String::new();
        let mut is_word = false;
        while let Some(c) = chars.next_if(|c| !c.is_whitespace()) {
            is_word = true;
            match c {
                '\'' => quoted(&mut chars, &mut word)?,
                '"' => {
                    word.push('"');
                    loop {
                        match chars.next() {
                            Some('"') => break,
                            Some(c) => word.push(c),
                            None => return Err("unterminated quoted string".to_owned()),
                        }
                    }
                    word.push('"');
                }
                ':' => {
                    let text: Vec<char> = std::iter::once(':').chain(chars.clone()).collect();
                    let (value, len) = match variables.substitute(&text) {
                        None => (":".to_owned(), 1),
                        Some((Substitute::Typed(_, value) | Substitute::Whole(value), len)) => {
                            (value, len)
                        }
                    };
                    word.push_str(&value);
                    for _ in 1..len {
                        chars.next();
                    }
                }
                '`' => return Err("commands of a shell in backticks are not there".to_owned()),
                c => word.push(c),
            }
        }
        if !is_word {
            return Ok(found);
        }
        found.push(word);
    }
}

fn quoted(
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    word: &mut String,
) -> Result<(), String> {
    loop {
        match chars.next() {
            Some('\'') if chars.peek() == Some(&'\'') => {
                chars.next();
                word.push('\'');
            }
            Some('\'') => return Ok(()),
            Some('\\') => word.push(match chars.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('b') => '\u{8}',
                Some('r') => '\r',
                Some('f') => '\u{c}',
                Some(c) => c,
                None => return Err("unterminated quoted string".to_owned()),
            }),
            Some(c) => word.push(c),
            None => return Err("unterminated quoted string".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(text: &str) -> Piece {
        Piece::Statement(text.to_owned())
    }

    fn command(name: &str, rest: &str) -> Piece {
        Piece::Command { name: name.to_owned(), rest: rest.to_owned() }
    }

    fn variables() -> Variables {
        let mut variables = Variables::default();
        for (name, value) in
            [("a", "1"), ("s", "it's"), ("two", "select 1; select 2"), ("own", ":own :a")]
        {
            variables.set(name, value.to_owned());
        }
        variables
    }

    #[test]
    fn variables_stand_for_what_is_typed() {
        for (line, statements) in [
            ("select :a + 1;", &["select 1 + 1"][..]),
            ("select :'s', ':a', 1::text, x:=:a;", &["select 'it''s', ':a', 1::text, x:=1"]),
            ("select a[:a:2], :nothing, :\"s\";", &["select a[1:2], :nothing, \"it's\""]),
            (":two;", &["select 1", "select 2"]),
            ("select :own, :a;", &["select :own 1, 1"]),
            ("-- :s", &[]),
        ] {
            let expected: Vec<Piece> = statements.iter().map(|text| statement(text)).collect();
            assert_eq!(cut(&[line]).0, expected, "{line}");
        }
    }

    fn cut(lines: &[&str]) -> (Vec<Piece>, char) {
        let (mut cutter, mut found) = (Cutter::default(), Vec::new());
        for line in lines {
            cutter.push(line);
            while let Some(piece) = cutter.next(&variables()) {
                found.push(piece);
            }
        }
        (found, cutter.prompt())
    }

    #[test]
    fn semicolons_end_statements_only_outside() {
        assert_eq!(cut(&["select 1; select 2;"]).0, [statement("select 1"), statement("select 2")]);
        for text in [
            "select ';'",
            "select e'\\';'",
            "select 'it''s;'",
            "select \"a;b\"",
            "select $$;$$",
            "select $x$ ; $$ ; $x$",
            "select 1 /* ; /* ; */ ; */",
            "select (1;2)",
            "select a$b$ ",
        ] {
            let line = format!("{text};");
            assert_eq!(cut(&[&line]).0, [statement(text.trim())], "{text}");
        }
        assert_eq!(cut(&["select 1 -- ; no", "+ 1;"]).0, [statement("select 1 -- ; no\n+ 1")]);
        assert_eq!(cut(&["-- nothing", "", "  select 1;"]).0, [statement("select 1")]);
    }

    #[test]
    fn the_prompt_says_what_is_open() {
        for (lines, prompt) in [
            (&[""][..], '='),
            (&["select 1"], '-'),
            (&["select 'a"], '\''),
            (&["select \"a", "b"], '"'),
            (&["select $q$", "'"], '$'),
            (&["select /*"], '*'),
            (&["select (1"], '('),
            (&["select ('a", "b'"], '('),
            (&["select 'a", "b';"], '='),
        ] {
            assert_eq!(cut(lines).1, prompt, "{lines:?}");
        }
    }

    #[test]
    fn commands_stand_anywhere_outside_of_quotes() {
        assert_eq!(cut(&["\\d t"]).0, [command("d", " t")]);
        assert_eq!(cut(&["select 1 \\g"]).0, [command("g", "")]);
        assert_eq!(cut(&["select '\\d'"]).0, []);
        assert_eq!(cut(&["\\x \\\\ select 1;"]).0, [command("x", " "), statement("select 1")]);
        assert_eq!(cut(&["\\a\\t"]).0, [command("a", ""), command("t", "")]);
        assert_eq!(
            cut(&["\\copy (select '\\\\') to x"]).0,
            [command("copy", " (select '\\\\') to x")]
        );
        assert_eq!(cut(&["\\?"]).0, [command("?", "")]);
    }

    #[test]
    fn arguments_are_words_with_quotes() {
        let found = |text: &str| arguments(text, &variables());
        assert_eq!(
            found("  a 'b c' \"D e\".f 'it''s' '\\n'").unwrap(),
            ["a", "b c", "\"D e\".f", "it's", "\n"]
        );
        assert!(found("'a").is_err() && found("`ls`").is_err());
        assert_eq!(found(" ''").unwrap(), [""]);
        assert_eq!(found("x:a :s ':a' :no :{?a}").unwrap(), ["x1", "it's", ":a", ":no", "TRUE"]);
    }
}
