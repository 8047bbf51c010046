//! Patterns of table and schema names, as pg_dump's `-t`, `-T` and `-n` take them.
//!
//! `*` stands for any characters, `?` for one, a dot separates schema and name. Letters outside
//! double quotes are folded to lower case; inside them nothing is special. Other characters of
//! PostgreSQL's regular expressions keep their meaning outside quotes (`[0-9]`, `|`, `+`, `()`),
//! except `$` and `[]`, which stand for themselves. A table pattern without a schema matches only
//! tables the search path finds. Rules from `patternToSQLRegex` in
//! `src/fe_utils/string_utils.c` and `expand_table_name_patterns` in `pg_dump.c` (PostgreSQL 15).
//!
//! Names are matched as text; a name that is not UTF-8 is to be passed with replacement
//! characters, which `?` and `*` match. `\d`, `\w`, `\s` and classes such as `[[:alpha:]]` know
//! ASCII only. Back references and the rarer escapes are refused.
//!
//! Invariant: a part that [`Pattern::is_literal`] gives back matches exactly that name.

use regex_lite::Regex;
use thiserror::Error;

use crate::pattern_regex::{self, UnsupportedRegex};

/// A pattern that cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatternError {
    /// More parts than a name can have.
    #[error("{pattern:?} has too many dots; put double quotes around a name that contains a dot")]
    TooManyDots {
        /// The pattern.
        pattern: String,
    },
    /// The pattern names a database that is not the one being read.
    #[error(
        "{pattern:?} names the database {database:?}, but {current:?} is being read; leave the \
         database out or choose it with -d"
    )]
    OtherDatabase {
        /// The pattern.
        pattern: String,
        /// The database it names.
        database: String,
        /// The database being read.
        current: String,
    },
    /// There is nothing in the pattern, or in the part for a name.
    #[error("{pattern:?} names nothing: name a table, or * for all")]
    Empty {
        /// The pattern.
        pattern: String,
    },
    /// A double quote is opened and not closed.
    #[error(
        "{pattern:?} opens a double quote and does not close it; put a shell's single quotes around the whole"
    )]
    UnclosedQuote {
        /// The pattern.
        pattern: String,
    },
    /// The pattern's regular expression is malformed.
    #[error("{pattern:?} is not a valid pattern: {reason}; put double quotes around plain names")]
    Malformed {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// A pattern of table names: `name`, `schema.name` or `database.schema.name`.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    database: Option<String>,
    schema: Option<Part>,
    name: Part,
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// When it has more than three parts or is not a valid regular expression.
    pub fn parse(text: &str) -> Result<Pattern, PatternError> {
        let mut parts = split(text, 3)?.into_iter().rev();
        let name = parts.next().map(|part| part.compile(text)).transpose()?;
        let schema = parts.next().map(|part| part.compile(text)).transpose()?;
        Ok(Pattern {
            text: text.to_owned(),
            database: parts.next().map(|part| part.spelling),
            schema,
            name: name.unwrap_or(Part::Literal(String::new())),
        })
    }

    /// Checks that a database named by the pattern is the one being read.
    ///
    /// # Errors
    /// When it is another one. Wildcards mean nothing here: the name must be the same.
    pub fn check_database(&self, current: &str) -> Result<(), PatternError> {
        check_database(&self.text, self.database.as_deref(), current)
    }

    /// Whether the table of this schema and name is meant; `visible` says whether the search path
    /// finds it by its name alone.
    #[must_use]
    pub fn matches(&self, schema: &str, name: &str, visible: bool) -> bool {
        let in_schema = match &self.schema {
            Some(part) => part.matches(schema),
            None => visible,
        };
        in_schema && self.name.matches(name)
    }

    /// Schema and name, if the pattern can mean only one table.
    #[must_use]
    pub fn is_literal(&self) -> Option<(Option<&str>, &str)> {
        match (&self.schema, &self.name) {
            (None, Part::Literal(name)) => Some((None, name)),
            (Some(Part::Literal(schema)), Part::Literal(name)) => Some((Some(schema), name)),
            _ => None,
        }
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// A pattern of schema names: `schema` or `database.schema`.
#[derive(Clone, Debug)]
pub struct SchemaPattern {
    text: String,
    database: Option<String>,
    schema: Part,
}

impl SchemaPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// When it has more than two parts or is not a valid regular expression.
    pub fn parse(text: &str) -> Result<SchemaPattern, PatternError> {
        let mut parts = split(text, 2)?.into_iter().rev();
        let schema = parts.next().map(|part| part.compile(text)).transpose()?;
        Ok(SchemaPattern {
            text: text.to_owned(),
            database: parts.next().map(|part| part.spelling),
            schema: schema.unwrap_or(Part::Literal(String::new())),
        })
    }

    /// Checks that a database named by the pattern is the one being read.
    ///
    /// # Errors
    /// When it is another one.
    pub fn check_database(&self, current: &str) -> Result<(), PatternError> {
        check_database(&self.text, self.database.as_deref(), current)
    }

    /// Whether the schema of this name is meant.
    #[must_use]
    pub fn matches(&self, schema: &str) -> bool {
        self.schema.matches(schema)
    }

    /// The name, if the pattern can mean only one schema.
    #[must_use]
    pub fn is_literal(&self) -> Option<&str> {
        match &self.schema {
            Part::Literal(name) => Some(name),
            Part::Any | Part::Regex(_) => None,
        }
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// What one part of a name has to look like.
#[derive(Clone, Debug)]
enum Part {
    Any,
    Literal(String),
    Regex(Regex),
}

impl Part {
    fn matches(&self, name: &str) -> bool {
        match self {
            Part::Any => true,
            Part::Literal(literal) => literal == name,
            Part::Regex(regex) => regex.is_match(name),
        }
    }
}

/// A part while it is read: PostgreSQL's regular expression for it, and its spelling with quotes
/// and case resolved, which is the name itself as long as nothing special turned up.
#[derive(Default)]
struct PartText {
    regex: String,
    spelling: String,
    has_special: bool,
}

impl PartText {
    fn push(&mut self, regex: &str, spelling: char) {
        self.regex.push_str(regex);
        self.spelling.push(spelling);
    }

    fn push_special(&mut self, regex: &str, spelling: char) {
        self.push(regex, spelling);
        self.has_special = true;
    }

    fn push_char(&mut self, ch: char, escaped: bool) {
        if escaped {
            self.regex.push('\\');
        }
        self.regex.push(ch);
        self.spelling.push(ch);
    }

    fn compile(self, pattern: &str) -> Result<Part, PatternError> {
        if !self.has_special {
            return Ok(Part::Literal(self.spelling));
        }
        if self.regex == ".*" {
            return Ok(Part::Any);
        }
        let malformed =
            |reason: String| PatternError::Malformed { pattern: pattern.to_owned(), reason };
        // The parentheses are PostgreSQL's: a pattern may close one and open another.
        let translated = pattern_regex::translate(&format!("^({})$", self.regex))
            .map_err(|UnsupportedRegex(reason)| malformed(reason))?;
        let regex = Regex::new(&translated).map_err(|error| malformed(error.to_string()))?;
        Ok(Part::Regex(regex))
    }
}

/// Takes a pattern apart at its dots.
fn split(text: &str, most_parts: usize) -> Result<Vec<PartText>, PatternError> {
    let mut done = Vec::new();
    let mut part = PartText::default();
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(ch) = chars.next() {
        match ch {
            '"' if quoted && chars.next_if_eq(&'"').is_some() => part.push("\"", '"'),
            '"' => quoted = !quoted,
            '$' => part.push("\\$", '$'),
            _ if quoted => part.push_char(ch, is_regex_special(ch)),
            '*' => part.push_special(".*", '*'),
            '?' => part.push_special(".", '?'),
            '.' => done.push(std::mem::take(&mut part)),
            // "[]" is far more likely the name of an array type than a bracket expression.
            '[' if chars.peek() == Some(&']') => part.push("\\[", '['),
            '|' | '+' | '(' | ')' | '[' | '{' | '^' | '\\' => {
                part.push_char(ch, false);
                part.has_special = true;
            }
            _ => part.push_char(ch.to_ascii_lowercase(), false),
        }
    }
    if quoted {
        return Err(PatternError::UnclosedQuote { pattern: text.to_owned() });
    }
    done.push(part);
    if done.iter().any(|part| part.spelling.is_empty()) {
        return Err(PatternError::Empty { pattern: text.to_owned() });
    }
    if done.len() > most_parts {
        return Err(PatternError::TooManyDots { pattern: text.to_owned() });
    }
    Ok(done)
}

fn is_regex_special(ch: char) -> bool {
    "|*+?()[]{}.^$\\".contains(ch)
}

fn check_database(
    pattern: &str,
    database: Option<&str>,
    current: &str,
) -> Result<(), PatternError> {
    match database {
        Some(database) if database != current => Err(PatternError::OtherDatabase {
            pattern: pattern.to_owned(),
            database: database.to_owned(),
            current: current.to_owned(),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Pattern::parse(pattern).expect("a valid pattern").matches("public", name, true)
    }

    #[test]
    fn letters_fold_outside_quotes_only() {
        assert!(matches("Orders", "orders"));
        assert!(!matches("\"Orders\"", "orders"));
        assert!(matches("\"Orders\"", "Orders"));
        assert!(matches("a\"B\"C", "aBc"));
        assert!(matches("\"say \"\"hi\"\"\"", "say \"hi\""));
    }

    #[test]
    fn stars_and_question_marks_are_wildcards_outside_quotes() {
        assert!(matches("ord*", "orders") && matches("*", "") && !matches("ord*", "border"));
        assert!(matches("order?", "orders") && !matches("order?", "order"));
        assert!(matches("\"a*\"", "a*") && !matches("\"a*\"", "ab"));
        assert!(matches("a?", "aé") && matches("a*b", "a\nb"));
    }

    #[test]
    fn regular_expression_characters_work_outside_quotes() {
        assert!(matches("t[0-9]+", "t12") && !matches("t[0-9]+", "t1a"));
        assert!(matches("a|b", "b") && !matches("a|b", "ab"));
        assert!(matches("(ab){2}", "abab") && matches("a)|(b", "ax"));
        assert!(matches("a$b", "a$b") && matches("int[]", "int[]"));
        assert!(matches("\"t[0-9]\"", "t[0-9]") && matches("\"a.b|c\"", "a.b|c"));
    }

    #[test]
    fn a_name_without_schema_means_visible_tables() {
        let name = Pattern::parse("orders").expect("valid");
        assert!(name.matches("public", "orders", true));
        assert!(!name.matches("other", "orders", false));
        let qualified = Pattern::parse("oth*.orders").expect("valid");
        assert!(qualified.matches("other", "orders", false));
        assert!(!qualified.matches("public", "orders", true));
        let anywhere = Pattern::parse("*.*").expect("valid");
        assert!(anywhere.matches("other", "x", false));
    }

    #[test]
    fn three_parts_name_the_database_being_read() {
        let pattern = Pattern::parse("Shop.public.orders").expect("valid");
        assert_eq!(pattern.check_database("shop"), Ok(()));
        assert!(pattern.matches("public", "orders", false));
        assert!(matches!(pattern.check_database("x"), Err(PatternError::OtherDatabase { .. })));
        let wild = Pattern::parse("sho*.public.orders").expect("valid");
        assert!(wild.check_database("shop").is_err());
        assert!(matches!(Pattern::parse("a.b.c.d"), Err(PatternError::TooManyDots { .. })));
        assert!(matches!(SchemaPattern::parse("a.b.c"), Err(PatternError::TooManyDots { .. })));
    }

    #[test]
    fn a_literal_pattern_gives_its_names_back() {
        let literal = |text: &str| {
            let pattern = Pattern::parse(text).expect("valid");
            pattern.is_literal().map(|(schema, name)| (schema.map(str::to_owned), name.to_owned()))
        };
        assert_eq!(
            literal("Public.\"My.Table\""),
            Some((Some("public".into()), "My.Table".into()))
        );
        assert_eq!(literal("a$[]"), Some((None, "a$[]".into())));
        assert_eq!(literal("a*"), None);
        assert_eq!(literal("*.a"), None);
        let schema = SchemaPattern::parse("\"S*\"").expect("valid");
        assert_eq!(schema.is_literal(), Some("S*"));
        assert!(schema.matches("S*") && !schema.matches("Sx"));
    }

    #[test]
    fn a_malformed_expression_is_an_error_that_shows_the_pattern() {
        for text in ["a(", "[a", "+a", "a{2", "a++", "\\1", "a\\"] {
            let error = Pattern::parse(text).expect_err(text);
            assert!(matches!(error, PatternError::Malformed { .. }), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_pattern_is_read_or_refused(text in "\\PC{0,20}", name in "\\PC{0,8}") {
            if let Ok(pattern) = Pattern::parse(&text) {
                let _ = pattern.matches("public", &name, true);
            }
        }

        #[test]
        fn any_mix_of_special_characters_is_read_or_refused(text in "[\\[\\]:^a-c\\\\(){}|+*?.$\"&~,0-9-]{0,12}") {
            let _ = Pattern::parse(&text);
            let _ = SchemaPattern::parse(&text);
        }

        #[test]
        fn a_quoted_name_matches_itself_alone(name in "\\PC{1,12}", other in "\\PC{0,12}") {
            let pattern = Pattern::parse(&format!("\"{}\"", name.replace('"', "\"\""))).expect("valid");
            prop_assert_eq!(pattern.is_literal(), Some((None, name.as_str())));
            prop_assert!(pattern.matches("public", &name, true));
            prop_assert_eq!(pattern.matches("public", &other, true), name == other);
            let escaped = Pattern::parse(&format!("\"{}\"*", name.replace('"', "\"\""))).expect("valid");
            let longer = name + &other;
            prop_assert!(escaped.matches("public", &longer, true));
        }
    }
}
