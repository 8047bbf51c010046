//! `COPY … TO`: what it copies, where, and how.
//!
//! ```text
//! { TABLE [(COLUMN, …)] | (QUERY) } to { 'FILE' | stdout } [[with] (OPTION, …)]
//! ```
//!
//! Source: `parse_slash_copy` in `src/bin/psql/copy.c`, `ProcessCopyOptions` and `BeginCopyTo` in `src/backend/commands`,
//! PostgreSQL 15.

use pagemill_arrow::FileFormat;
use pagemill_cluster::{Generated, RelationKind};
use sqlparser::ast::Statement;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use crate::catalog::{Catalog, quote_identifier};
use crate::error::{Result, SqlState, fail, unsupported};
use crate::output::{AlwaysQuoted, CopyForm, CopyStyle};
use crate::session::Session;

/// What is to be copied where.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Copy {
    source: Source,
    /// `None` for where answers go.
    pub(crate) file: Option<String>,
    pub(crate) form: Form,
}

/// What is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    Rows(CopyForm),
    File(FileFormat),
}

#[derive(Debug, PartialEq, Eq)]
enum Source {
    Query(String),
    /// A name as it was written, and the columns in their parentheses.
    Table(String, Option<String>),
}

/// The words of a command: quoted ones as they are, parentheses with what is in them.
struct Words<'t> {
    rest: &'t str,
}

impl<'t> Words<'t> {
    fn next(&mut self) -> Result<Option<&'t str>> {
        self.rest = self.rest.trim_start();
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        let end = match first {
            '(' => closing(self.rest)?,
            '\'' => quote_end(self.rest, '\'')?,
            'e' | 'E' if self.rest[1..].starts_with('\'') => 1 + escaped_end(&self.rest[1..])?,
            ',' | ')' => 1,
            _ => {
                let mut end = 0;
                while let Some(c) = self.rest[end..].chars().next() {
                    match c {
                        '"' => end += quote_end(&self.rest[end..], '"')?,
                        c if c.is_whitespace() || "(),'".contains(c) => break,
                        c => end += c.len_utf8(),
                    }
                }
                end
            }
        };
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(Some(word))
    }

    /// Words with commas between them.
    fn list(&mut self) -> Result<String> {
        let mut list = String::new();
        while let Some(word) = self.next()? {
            list.push_str(word);
            if !self.next_is(",")? {
                break;
            }
            list.push(',');
        }
        Ok(list)
    }

    fn next_is(&mut self, wanted: &str) -> Result<bool> {
        let before = self.rest;
        let is_it = self.next()?.is_some_and(|word| word.eq_ignore_ascii_case(wanted));
        if !is_it {
            self.rest = before;
        }
        Ok(is_it)
    }
}

fn syntax<T>(what: &str) -> Result<T> {
    fail(SqlState::SYNTAX_ERROR, format!("COPY: parse error at {what}"))
}

/// Where a quote ends that begins here, behind its last character; a doubled one is none.
fn quote_end(text: &str, quote: char) -> Result<usize> {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return Ok(at + 1);
        }
    }
    syntax("the end: a quote is open")
}

/// The same for a quote that follows an E, within which a backslash takes the next character with it.
fn escaped_end(text: &str) -> Result<usize> {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => _ = chars.next(),
            '\'' if chars.next_if(|(_, next)| *next == '\'').is_none() => return Ok(at + 1),
            _ => {}
        }
    }
    syntax("the end: a quote is open")
}

/// Where parentheses that open here close.
fn closing(text: &str) -> Result<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(c) = text[at..].chars().next() {
        match c {
            '\'' if is_escaped(&text[..at]) => {
                at += escaped_end(&text[at..])?;
                continue;
            }
            '\'' | '"' => {
                at += quote_end(&text[at..], c)?;
                continue;
            }
            '(' => depth += 1,
            ')' if depth == 1 => return Ok(at + 1),
            ')' => depth -= 1,
            _ => {}
        }
        at += c.len_utf8();
    }
    syntax("the end: a parenthesis is open")
}

/// Whether a quote is one with escapes, by what stands before it: an E that ends no longer word.
fn is_escaped(before: &str) -> bool {
    let mut back = before.chars().rev();
    matches!(back.next(), Some('e' | 'E'))
        && !back.next().is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$')
}

/// A word without its quotes.
fn unquoted(word: &str) -> Result<String> {
    if let Some(inner) = word.strip_prefix('\'').and_then(|word| word.strip_suffix('\'')) {
        return Ok(inner.replace("''", "'"));
    }
    if let Some(name) = word.strip_prefix('"').and_then(|word| word.strip_suffix('"')) {
        return Ok(name.replace("\"\"", "\""));
    }
    if !word.starts_with(['e', 'E']) || !word[1..].starts_with('\'') {
        return Ok(word.to_owned());
    }
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, word).tokenize();
    match tokens.as_deref() {
        Ok([Token::EscapedStringLiteral(text)]) => Ok(text.clone()),
        _ => syntax(word),
    }
}

/// A command, by what follows its name.
///
/// # Errors
/// Where it is none, or asks for what is not known here.
pub(crate) fn parse(text: &str) -> Result<Copy> {
    let mut words = Words { rest: text.trim().trim_end_matches(';') };
    let Some(first) = words.next()? else { return syntax("the end: nothing to copy is named") };
    let source = match first.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(query) => Source::Query(query.to_owned()),
        None => {
            let columns = match words.rest.trim_start().starts_with('(') {
                true => words.next()?.map(|list| list[1..list.len() - 1].to_owned()),
                false => None,
            };
            Source::Table(first.to_owned(), columns)
        }
    };
    if words.next_is("from")? {
        return fail(SqlState::READ_ONLY, "cannot execute COPY FROM in a read-only transaction");
    }
    if !words.next_is("to")? {
        return syntax(&format!("\"{}\"", words.rest.trim_start()));
    }
    let file = match words.next()? {
        None => return syntax("the end: no file is named"),
        Some(word) if word.eq_ignore_ascii_case("program") => {
            return unsupported("COPY to a program");
        }
        Some(word) if word.eq_ignore_ascii_case("stdout") => None,
        Some(word) => Some(unquoted(word)?),
    };
    words.next_is("with")?;
    let mut options = Vec::new();
    if let Some(word) = words.next()? {
        match word.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
            Some(inner) => read_options(inner, &mut options)?,
            None => read_old_options(word, &mut words, &mut options)?,
        }
    }
    match words.next()? {
        None => Ok(Copy { source, file, form: form(&options)? }),
        Some(word) => syntax(&format!("\"{word}\"")),
    }
}

/// `format csv, header true, …`
fn read_options(list: &str, options: &mut Vec<(String, String)>) -> Result<()> {
    let mut words = Words { rest: list };
    while let Some(name) = words.next()? {
        let mut value = String::new();
        while let Some(word) = words.next()? {
            if word == "," {
                break;
            }
            value.push_str(&unquoted(word)?);
        }
        options.push((name.to_lowercase(), value));
    }
    Ok(())
}

/// `csv header delimiter as ';'`, as before options had parentheses.
fn read_old_options(
    first: &str,
    words: &mut Words<'_>,
    options: &mut Vec<(String, String)>,
) -> Result<()> {
    let mut next = Some(first);
    while let Some(word) = next {
        match word.to_lowercase().as_str() {
            "csv" => options.push(("format".to_owned(), "csv".to_owned())),
            "binary" => options.push(("format".to_owned(), "binary".to_owned())),
            "header" => options.push(("header".to_owned(), String::new())),
            "force" => {
                if !words.next_is("quote")? {
                    return syntax(&format!("\"{}\"", words.rest.trim_start()));
                }
                options.push((FORCE_QUOTE.to_owned(), format!("({})", words.list()?)));
            }
            name @ ("delimiter" | "null" | "quote" | "escape" | "encoding") => {
                words.next_is("as")?;
                let Some(value) = words.next()? else {
                    return syntax("the end: an option has no value");
                };
                options.push((name.to_owned(), unquoted(value)?));
            }
            other => return unsupported(format!("the option {other} of COPY")),
        }
        next = words.next()?;
    }
    Ok(())
}

fn form(options: &[(String, String)]) -> Result<Form> {
    let format = options.iter().find(|(name, _)| name == "format");
    let format = match format.map(|(_, value)| value.to_lowercase()).as_deref() {
        Some("parquet") => FileFormat::Parquet,
        Some("arrow") => FileFormat::Arrow,
        Some("arrow-stream") => FileFormat::ArrowStream,
        Some("binary") => return binary(options),
        _ => return Ok(Form::Rows(CopyForm::Lines(style(options)?))),
    };
    match options.iter().find(|(name, _)| name != "format") {
        Some((name, _)) => unsupported(format!("the option {name} of COPY to such a file")),
        None => Ok(Form::File(format)),
    }
}

/// The binary form, which has no options that are of lines.
fn binary(options: &[(String, String)]) -> Result<Form> {
    match options.iter().find(|(name, _)| name != "format" && name != "encoding") {
        Some((name, _)) => {
            let name = name.to_uppercase();
            fail(SqlState::SYNTAX_ERROR, format!("cannot specify {name} in BINARY mode"))
        }
        None => Ok(Form::Rows(CopyForm::Binary)),
    }
}

/// The columns that `FORCE_QUOTE` names: `*`, or names in parentheses.
fn always_quoted(value: Option<&str>) -> Result<AlwaysQuoted> {
    let inside = |value: &'_ str| {
        let inside = value.strip_prefix('(').and_then(|value| value.strip_suffix(')'));
        inside.unwrap_or(value).trim().to_owned() // default: `*`, which has no parentheses
    };
    match value.map(inside).as_deref() {
        None => Ok(AlwaysQuoted::NONE),
        Some("*") => Ok(AlwaysQuoted::All),
        Some(list) => Ok(AlwaysQuoted::Named(names(list, ',')?)),
    }
}

/// Names as identifiers, which stand before and behind separators.
fn names(list: &str, separator: char) -> Result<Vec<String>> {
    let mut parts = vec![String::new()];
    let mut is_quoted = false;
    let mut chars = list.chars().peekable();
    while let Some(c) = chars.next() {
        let part = parts.last_mut().expect("one is there"); // infallible: starts with one
        match c {
            // A doubled one within quotes is one.
            '"' if is_quoted && chars.next_if_eq(&'"').is_some() => part.push('"'),
            '"' => is_quoted = !is_quoted,
            c if c == separator && !is_quoted => parts.push(String::new()),
            c if is_quoted => part.push(c),
            c if c.is_whitespace() => {}
            c => part.extend(c.to_lowercase()),
        }
    }
    match parts.iter().any(String::is_empty) {
        true => syntax(&format!("\"{list}\"")),
        false => Ok(parts),
    }
}

fn style(options: &[(String, String)]) -> Result<CopyStyle> {
    let of = |name: &str| options.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
    let is_csv = match of("format").unwrap_or("text").to_lowercase().as_str() {
        "csv" => true,
        "text" => false,
        other => return unsupported(format!("COPY with format {other}")),
    };
    let known =
        ["format", "header", "delimiter", "null", "quote", "escape", "encoding", FORCE_QUOTE];
    if let Some((name, _)) = options.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        return unsupported(format!("the option {name} of COPY"));
    }
    if of("encoding")
        .is_some_and(|e| !e.eq_ignore_ascii_case("utf8") && !e.eq_ignore_ascii_case("utf-8"))
    {
        return unsupported("COPY in another encoding than UTF8");
    }
    if !is_csv && (of("quote").is_some() || of("escape").is_some()) {
        return fail(SqlState::FEATURE_NOT_SUPPORTED, "COPY quote available only in CSV mode");
    }
    if !is_csv && of(FORCE_QUOTE).is_some() {
        let message = "COPY force quote available only in CSV mode";
        return fail(SqlState::FEATURE_NOT_SUPPORTED, message);
    }
    let character = |name: &str, default: u8| -> Result<u8> {
        let Some(text) = of(name) else { return Ok(default) };
        match text.as_bytes() {
            [byte] if *byte != b'\n' && *byte != b'\r' => Ok(*byte),
            _ => fail(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("COPY {name} must be a single one-byte character"),
            ),
        }
    };
    let header = match of("header").map(str::to_lowercase).as_deref() {
        None | Some("false" | "off" | "0") => false,
        Some("" | "true" | "on" | "1") => true,
        Some(other) => return unsupported(format!("COPY with header {other}")),
    };
    let delimiter = character("delimiter", if is_csv { b',' } else { b'\t' })?;
    if !is_csv && b"\\.abcdefghijklmnopqrstuvwxyz0123456789".contains(&delimiter) {
        return fail(
            SqlState::INVALID_PARAMETER,
            format!("COPY delimiter cannot be \"{}\"", char::from(delimiter)),
        );
    }
    let quote = character("quote", b'"')?;
    let null = of("null").unwrap_or(if is_csv { "" } else { "\\N" }).to_owned();
    let (escape, always_quoted) = (character("escape", quote)?, always_quoted(of(FORCE_QUOTE))?);
    Ok(CopyStyle { is_csv, header, delimiter, null, quote, escape, always_quoted })
}

/// The query that a table stands for: its columns but generated ones, and no rows of tables that inherit from it.
fn query_of(catalog: &Catalog, name: &str, columns: Option<&str>, form: &Form) -> Result<String> {
    let mut parts = names(name, '.')?;
    let database = catalog.database();
    let wanted = parts.pop().unwrap_or_default();
    let schemas: Vec<_> = match parts.pop() {
        Some(schema) => {
            let all = database.namespaces()?;
            all.iter().filter(|(_, n)| ***n == *schema.as_bytes()).map(|(oid, _)| *oid).collect()
        }
        None => catalog.search_path().to_vec(),
    };
    let find = |schema: &pagemill_format::Oid| {
        let is_it = |class: &&pagemill_cluster::ClassRow| {
            class.namespace == *schema && *class.name == *wanted.as_bytes()
        };
        database.classes().iter().find(is_it)
    };
    let Some(class) = schemas.iter().find_map(find) else {
        return fail(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"));
    };
    if class.kind != RelationKind::Table {
        let kind = class.kind.name();
        let error = crate::StatementError::new(
            SqlState("42809"),
            format!("cannot copy from {kind} \"{wanted}\""),
        );
        return Err(error.with_hint("Try the COPY (SELECT ...) TO variant.").into());
    }
    let relation = database.relation(class)?;
    if let Form::Rows(CopyForm::Lines(CopyStyle {
        always_quoted: AlwaysQuoted::Named(names),
        ..
    })) = form
    {
        let is_column = |wanted: &&String| {
            relation.columns.iter().any(|c| !c.dropped && *c.name == *wanted.as_bytes())
        };
        if let Some(missing) = names.iter().find(|name| !is_column(name)) {
            let message = format!("column \"{missing}\" of relation \"{wanted}\" does not exist");
            return fail(SqlState::UNDEFINED_COLUMN, message);
        }
    }
    if let Some(columns) = columns {
        return Ok(format!("select {columns} from only {name}"));
    }
    let is_copied = |c: &&pagemill_cluster::Column| !c.dropped && c.generated == Generated::No;
    let names = relation.columns.iter().filter(is_copied);
    let names: Vec<String> =
        names.map(|column| quote_identifier(&String::from_utf8_lossy(&column.name))).collect();
    let list = match (names.is_empty(), form) {
        (false, _) => names.join(", "),
        // It has no names of columns to begin with.
        (true, Form::Rows(CopyForm::Lines(style))) if style.header => {
            return unsupported("a table without columns with HEADER");
        }
        // It has no fields in this form.
        (true, Form::Rows(CopyForm::Binary)) => return Ok(format!("select from only {name}")),
        // A row without columns is an empty line: as a text is that is empty, and NULL in CSV.
        (true, Form::Rows(CopyForm::Lines(style))) if style.is_csv && style.null.is_empty() => {
            "null::text".to_owned()
        }
        (true, Form::Rows(CopyForm::Lines(style))) if !style.is_csv && !style.null.is_empty() => {
            "''::text".to_owned()
        }
        (true, _) => return unsupported("a table without columns in this form"),
    };
    Ok(format!("select {list} from only {name}"))
}

impl Copy {
    /// The statement whose rows are copied.
    ///
    /// # Errors
    /// When it is no query, or there is no such table.
    pub(crate) fn statement(&self, catalog: &Catalog) -> Result<Statement> {
        let query = match &self.source {
            Source::Query(query) => query.clone(),
            Source::Table(name, columns) => {
                query_of(catalog, name, columns.as_deref(), &self.form)?
            }
        };
        let statements = Session::parse(&query)?;
        let [statement] = <[_; 1]>::try_from(statements)
            .or_else(|_| syntax("the query: one statement is expected"))?;
        Ok(statement)
    }
}

/// What follows `COPY`, of a statement that begins with it.
pub(crate) fn after_copy(statement: &str) -> Option<&str> {
    let (word, rest) = behind_comments(statement).split_at_checked(COPY.len())?;
    let is_word = rest.starts_with(|next: char| next.is_whitespace() || next == '(' || next == '"');
    (is_word && word.eq_ignore_ascii_case(COPY)).then_some(rest)
}

/// A text from its first word on.
fn behind_comments(text: &str) -> &str {
    let mut text = text.trim_start();
    loop {
        let rest = match text.as_bytes() {
            [b'-', b'-', ..] => text.split_once('\n').map(|(_, rest)| rest),
            [b'/', b'*', ..] => comment_end(text).map(|end| &text[end..]),
            _ => return text,
        };
        let Some(rest) = rest else { return text };
        text = rest.trim_start();
    }
}

/// Where a comment ends that begins here; there may be others in it.
fn comment_end(text: &str) -> Option<usize> {
    let (mut depth, mut at) = (0, 0);
    loop {
        match text.as_bytes().get(at..at + 2)? {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The statement and the form of `COPY … TO STDOUT`.
///
/// # Errors
/// Where it is none, names a file, or asks for what is not known here.
pub fn copy_to_client(catalog: &Catalog, text: &str) -> Result<(Statement, CopyForm)> {
    let Some(rest) = after_copy(text) else { return syntax("the beginning") };
    let copy = parse(rest)?;
    match (&copy.file, &copy.form) {
        (None, Form::Rows(form)) => Ok((copy.statement(catalog)?, form.clone())),
        (Some(_), _) => unsupported("COPY to a file of the server"),
        (None, Form::File(_)) => unsupported("COPY in this format"),
    }
}

/// The option that names columns whose values are always quoted.
const FORCE_QUOTE: &str = "force_quote";
/// The command's name.
const COPY: &str = "COPY";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_may_stand_before_it() {
        for text in ["copy t", " /* a /* b */ c */ -- d\n--\n/**/COPY t", "Copy(t"] {
            assert!(after_copy(text).is_some(), "{text}");
        }
        for text in
            ["-- copy t", "/* copy t", "/* /* */ copy t", "copyt", "copy", "select 'copy t'", ""]
        {
            assert!(after_copy(text).is_none(), "{text}");
        }
        assert_eq!(after_copy("/*é*/copy\tt"), Some("\tt"));
    }

    #[test]
    fn the_forms_of_psql_are_read() {
        let copy = parse("(select ')', 'a''b' from t) to '/tmp/a b.csv' with (format csv, header, delimiter ';')").unwrap();
        assert_eq!(copy.source, Source::Query("select ')', 'a''b' from t".to_owned()));
        assert_eq!(copy.file.as_deref(), Some("/tmp/a b.csv"));
        let Form::Rows(CopyForm::Lines(style)) = &copy.form else { panic!("a text") };
        assert!(style.is_csv && style.header && style.delimiter == b';');
        let copy = parse("public.\"T t\" (a, b) TO stdout csv header null as 'x'").unwrap();
        assert_eq!(
            copy.source,
            Source::Table("public.\"T t\"".to_owned(), Some("a, b".to_owned()))
        );
        let Form::Rows(CopyForm::Lines(style)) = &copy.form else { panic!("a text") };
        assert!(copy.file.is_none() && style.null == "x");
        let copy = parse("t to f;").unwrap();
        let Form::Rows(CopyForm::Lines(style)) = &copy.form else { panic!("a text") };
        assert!(!style.is_csv && style.null == "\\N" && style.delimiter == b'\t');
        for text in [
            "t to f delimiter E'\\x1f' null e'it\\'s'",
            "t to f (null E'it''s', delimiter E'\\037')",
        ] {
            let Form::Rows(CopyForm::Lines(style)) = parse(text).unwrap().form else {
                panic!("{text}")
            };
            assert_eq!((style.delimiter, style.null.as_str()), (0x1f, "it's"), "{text}");
        }
        for (text, expected) in [
            ("t to f (format csv, force_quote *)", AlwaysQuoted::All),
            (
                "t to f (format csv, force_quote (A, \"B c\"))",
                AlwaysQuoted::Named(vec!["a".into(), "B c".into()]),
            ),
            ("t to f csv force quote *", AlwaysQuoted::All),
            (
                "t to f csv force quote a, b header",
                AlwaysQuoted::Named(vec!["a".into(), "b".into()]),
            ),
        ] {
            let Form::Rows(CopyForm::Lines(style)) = parse(text).unwrap().form else {
                panic!("{text}")
            };
            assert_eq!(style.always_quoted, expected, "{text}");
        }
        for text in ["t to f binary", "t to f with (format 'binary')"] {
            assert_eq!(parse(text).unwrap().form, Form::Rows(CopyForm::Binary), "{text}");
        }
        let copy = parse(r"(select E'\')', e')', mine')') to stdout").unwrap();
        assert_eq!(copy.source, Source::Query(r"select E'\')', e')', mine')'".to_owned()));
        let copy = parse("t to 'f' (format parquet)").unwrap();
        assert_eq!(copy.form, Form::File(FileFormat::Parquet));
    }

    #[test]
    fn what_is_no_copy_is_an_error() {
        for text in [
            "",
            "t",
            "t to",
            "t from 'x'",
            "(select 1 to x",
            "t to 'x",
            "t to x (format binary, header)",
            "t to x (force_quote (a))",
            "t to x (format csv, force_quote (a,))",
            "t to x (format parquet, header)",
            "t to program 'cat'",
            "t to x (delimiter 'ab')",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
