//! A Rust file seen line by line as code, comment and string text, with its test parts marked.
//!
//! The rules look for words such as a call that may panic. They must find it in code only: not in a
//! comment that warns of it, nor in a message that names it, nor in a test. This is a lexer for
//! that question and no more: it knows line and nested block comments, plain, raw and byte
//! strings, and a character literal from a lifetime.
//!
//! Invariants: `lines` has one entry per line of the file; string contents never reach `code`
//! (their quotes do); `in_test` holds for everything under `#[cfg(test)]`, attribute included.

/// One line, taken apart.
#[derive(Debug, Default, Clone)]
pub(crate) struct Line {
    /// The line as it stands in the file.
    pub(crate) text: String,
    /// Its code; comments and the insides of strings are gone.
    pub(crate) code: String,
    /// Its comments, with their slashes.
    pub(crate) comment: String,
    /// Whether it belongs to a `#[cfg(test)]` item, or to a file of tests.
    pub(crate) in_test: bool,
}

/// A Rust file, taken apart.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// Path from the root of the workspace.
    pub(crate) path: String,
    pub(crate) lines: Vec<Line>,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let mut lines = Lexer::new(text).run();
        for (line, original) in lines.iter_mut().zip(text.lines()) {
            line.text = original.to_owned();
        }
        lines.truncate(text.lines().count());
        mark_tests(&mut lines, is_test_file(path));
        Self { path: path.to_owned(), lines }
    }

    /// Line numbers from 1, with the lines.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, &Line)> {
        (1..).zip(&self.lines)
    }
}

/// Files that never ship: a package's `tests/`, `benches/` and `examples/`, `tests.rs`
/// and `…_tests.rs`, and fuzz targets.
pub(crate) fn is_test_file(path: &str) -> bool {
    let never_ships = |part| matches!(part, "tests" | "benches" | "examples" | "tests.rs" | "fuzz");
    path.split('/').any(never_ships) || path.ends_with("_tests.rs")
}

enum State {
    Code,
    LineComment,
    BlockComment(usize),
    /// A string that ends at a quote with this many hashes; `None` for one with escapes.
    Text(Option<usize>),
}

struct Lexer {
    input: Vec<char>,
    at: usize,
    state: State,
    lines: Vec<Line>,
    line: Line,
}

impl Lexer {
    fn new(text: &str) -> Self {
        let input = text.chars().collect();
        Self { input, at: 0, state: State::Code, lines: Vec::new(), line: Line::default() }
    }

    fn run(mut self) -> Vec<Line> {
        while let Some(character) = self.peek(0) {
            if character == '\n' {
                self.end_line();
                continue;
            }
            match self.state {
                State::Code => self.code(character),
                State::LineComment => self.comment_characters(1),
                State::BlockComment(depth) => self.block_comment(depth),
                State::Text(hashes) => self.string(character, hashes),
            }
        }
        self.lines.push(self.line);
        self.lines
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.input.get(self.at + ahead).copied()
    }

    fn end_line(&mut self) {
        if matches!(self.state, State::LineComment) {
            self.state = State::Code;
        }
        self.at += 1;
        self.lines.push(std::mem::take(&mut self.line));
    }

    fn comment_characters(&mut self, count: usize) {
        let end = (self.at + count).min(self.input.len());
        self.line.comment.extend(self.input.get(self.at..end).unwrap_or_default());
        self.at = end;
    }

    fn code_characters(&mut self, count: usize) {
        let end = (self.at + count).min(self.input.len());
        self.line.code.extend(self.input.get(self.at..end).unwrap_or_default());
        self.at = end;
    }

    fn code(&mut self, character: char) {
        match (character, self.peek(1)) {
            ('/', Some('/')) => self.state = State::LineComment,
            ('/', Some('*')) => {
                self.state = State::BlockComment(1);
                self.comment_characters(2);
            }
            ('"', _) => {
                self.state = State::Text(None);
                self.code_characters(1);
            }
            ('r', Some('"' | '#')) => self.raw_string(),
            ('\'', _) => self.quote(),
            _ => self.code_characters(1),
        }
    }

    /// `r"`, `r#"` and so on open a string; `r#type` is a name.
    fn raw_string(&mut self) {
        let is_name = self.line.code.ends_with(|c: char| c.is_alphanumeric() && c != 'b');
        let hashes = (1..).take_while(|ahead| self.peek(*ahead) == Some('#')).count();
        if is_name || self.peek(1 + hashes) != Some('"') {
            self.code_characters(1);
        } else {
            self.code_characters(2 + hashes);
            self.state = State::Text(Some(hashes));
        }
    }

    /// A character literal is skipped whole, for it may hold a quote; a lifetime is code.
    fn quote(&mut self) {
        if self.peek(1) == Some('\\') {
            let close = (3..).find(|ahead| matches!(self.peek(*ahead), Some('\'') | None));
            self.line.code.push_str("''");
            self.at += close.unwrap_or(3) + 1;
        } else if self.peek(2) == Some('\'') {
            self.line.code.push_str("''");
            self.at += 3;
        } else {
            self.code_characters(1);
        }
    }

    fn block_comment(&mut self, depth: usize) {
        match (self.peek(0), self.peek(1)) {
            (Some('/'), Some('*')) => {
                self.state = State::BlockComment(depth + 1);
                self.comment_characters(2);
            }
            (Some('*'), Some('/')) => {
                self.state = if depth > 1 { State::BlockComment(depth - 1) } else { State::Code };
                self.comment_characters(2);
            }
            _ => self.comment_characters(1),
        }
    }

    fn string(&mut self, character: char, hashes: Option<usize>) {
        match (character, hashes) {
            ('\\', None) if self.peek(1) == Some('\n') => self.at += 1,
            ('\\', None) => self.at += 2,
            ('"', None) => self.close_string(1),
            ('"', Some(count)) if (1..=count).all(|ahead| self.peek(ahead) == Some('#')) => {
                self.close_string(1 + count);
            }
            _ => self.at += 1,
        }
    }

    fn close_string(&mut self, length: usize) {
        self.state = State::Code;
        self.code_characters(length);
    }
}

/// Marks the item after each `#[cfg(test)]`: up to its closing brace, or to a `;` before any brace.
fn mark_tests(lines: &mut [Line], whole_file: bool) {
    let mut depth: Option<usize> = None;
    for line in lines.iter_mut() {
        let mut rest = line.code.as_str();
        if depth.is_none() {
            match line.code.find("#[cfg(test)]") {
                Some(start) => {
                    depth = Some(0);
                    rest = line.code.get(start..).unwrap_or_default();
                }
                None => {
                    line.in_test = whole_file;
                    continue;
                }
            }
        }
        line.in_test = true;
        depth = after_braces(rest, depth.unwrap_or(0));
    }
}

/// The brace depth after this code; `None` once the item is closed.
fn after_braces(code: &str, mut depth: usize) -> Option<usize> {
    for character in code.chars() {
        match character {
            '{' => depth += 1,
            '}' if depth <= 1 => return None,
            '}' => depth -= 1,
            ';' if depth == 0 => return None,
            _ => {}
        }
    }
    Some(depth)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of(text: &str) -> Vec<String> {
        Source::new("src/a.rs", text).lines.into_iter().map(|line| line.code).collect()
    }

    #[test]
    fn comments_and_strings_leave_the_code() {
        assert_eq!(code_of("a(\"x.unwrap()\"); // y"), ["a(\"\"); "]);
        assert_eq!(code_of("a /* b /* c */ d */ e"), ["a  e"]);
        assert_eq!(code_of("f(r#\"un\"safe\"#, b\"x\\\"y\") g"), ["f(r#\"\"#, b\"\") g"]);
    }

    #[test]
    fn a_character_literal_is_told_from_a_lifetime() {
        assert_eq!(code_of("'\"' x '\\'' y"), ["'' x '' y"]);
        assert_eq!(code_of("fn f<'a>(x: &'a str) {}"), ["fn f<'a>(x: &'a str) {}"]);
    }

    #[test]
    fn a_string_over_several_lines_keeps_the_line_count() {
        assert_eq!(code_of("let a = \"one \\\n two\n three\";\nb"), ["let a = \"", "", "\";", "b"]);
    }

    #[test]
    fn a_raw_name_is_no_string() {
        assert_eq!(code_of("r#type = 1; for\"\""), ["r#type = 1; for\"\""]);
    }

    #[test]
    fn the_test_module_is_marked_and_what_follows_it_is_not() {
        let text = "a\n#[cfg(test)]\nmod tests {\n fn f() {}\n}\nb\n#[cfg(test)]\nmod t;\nc\n";
        let marks: Vec<bool> =
            Source::new("src/a.rs", text).lines.iter().map(|line| line.in_test).collect();
        assert_eq!(marks, [false, true, true, true, true, false, true, true, false]);
    }

    #[test]
    fn a_file_under_tests_is_all_test() {
        assert!(Source::new("crates/x/tests/a.rs", "fn f() {}\n").lines[0].in_test);
        assert!(Source::new("crates/x/src/a/tests.rs", "fn f() {}\n").lines[0].in_test);
    }
}
