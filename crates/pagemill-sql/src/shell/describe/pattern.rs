//! Patterns of names: `*` and `?`, regular expressions, a schema before a dot, quotes for what is meant as it is written.
//!
//! Invariant: what is in quotes matches itself.
//!
//! Source: `patternToSQLRegex` in `src/fe_utils/string_utils.c`, PostgreSQL 15.

/// What regular expressions give a meaning.
const SPECIAL: &str = "|*+?()[]{}.^$\\";

/// A pattern for names.
#[derive(Debug, Default)]
pub(super) struct Pattern {
    text: Option<String>,
    /// Regular expressions for whole names.
    schema: Option<String>,
    name: Option<String>,
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// For names of databases, which are not supported here.
    pub(super) fn parse(text: Option<&str>) -> Result<Self, String> {
        let Some(text) = text else { return Ok(Self::default()) };
        let mut parts = parts(text);
        let (name, schema) = (parts.pop(), parts.pop());
        let whole = |part: String| format!("^({part})$");
        match parts.is_empty() {
            true => Ok(Self {
                text: Some(text.to_owned()),
                schema: schema.map(whole),
                name: name.map(whole),
            }),
            false => {
                Err(format!("{text}: the name of a database in a pattern is not supported here"))
            }
        }
    }

    /// Reads a pattern of types, whose names in SQL stand for those of the catalogs.
    ///
    /// # Errors
    /// As [`Self::parse`].
    ///
    /// Source: `map_typename_pattern` in `src/bin/psql/describe.c`, PostgreSQL 15.
    pub(super) fn parse_type(text: Option<&str>) -> Result<Self, String> {
        const NAMES: [(&str, &str); 18] = [
            ("decimal", "numeric"),
            ("float", "double precision"),
            ("int", "integer"),
            ("bool[]", "boolean[]"),
            ("decimal[]", "numeric[]"),
            ("float[]", "double precision[]"),
            ("float4[]", "real[]"),
            ("float8[]", "double precision[]"),
            ("int[]", "integer[]"),
            ("int2[]", "smallint[]"),
            ("int4[]", "integer[]"),
            ("int8[]", "bigint[]"),
            ("time[]", "time without time zone[]"),
            ("timetz[]", "time with time zone[]"),
            ("timestamp[]", "timestamp without time zone[]"),
            ("timestamptz[]", "timestamp with time zone[]"),
            ("varbit[]", "bit varying[]"),
            ("varchar[]", "character varying[]"),
        ];
        let known = |text: &str| {
            let found = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
            found.map(|(_, name)| *name)
        };
        Self::parse(text.map(|text| known(text).unwrap_or(text)))
    }

    /// The pattern as it was typed; `None` where none was.
    pub(super) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The regular expression for the schema, where one was named: what is hidden behind others is meant then, too.
    pub(super) fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// The regular expression for the name.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

/// What stands between the dots, as regular expressions.
fn parts(text: &str) -> Vec<String> {
    let (mut done, mut part, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.next_if_eq(&'"').is_some() => part.push('"'),
            '"' => is_quoted = !is_quoted,
            c if is_quoted => push_plain(&mut part, c),
            '.' => done.push(std::mem::take(&mut part)),
            '*' => part.push_str(".*"),
            '?' => part.push('.'),
            '$' => push_plain(&mut part, c),
            // The name of a type of arrays.
            '[' if chars.next_if_eq(&']').is_some() => part.push_str("\\[\\]"),
            c => part.extend(c.to_lowercase()),
        }
    }
    done.push(part);
    done
}

fn push_plain(part: &mut String, c: char) {
    if SPECIAL.contains(c) {
        part.push('\\');
    }
    part.push(c);
}

#[cfg(test)]
mod tests {
    use super::{Pattern, parts};

    #[test]
    fn patterns_are_regular_expressions_as_psql_has_them() {
        for (pattern, expected) in [
            ("ord*", &["ord.*"][..]),
            ("ORD?", &["ord."]),
            ("\"ORD\"*", &["ORD.*"]),
            ("other.*", &["other", ".*"]),
            ("\"a*\".b", &["a\\*", "b"]),
            ("\"a\"\"b\"", &["a\"b"]),
            ("a|b+", &["a|b+"]),
            ("int4[]", &["int4\\[\\]"]),
            ("a$b", &["a\\$b"]),
        ] {
            assert_eq!(parts(pattern), expected, "{pattern}");
        }
        assert!(Pattern::parse(Some("a.b.c")).is_err());
    }
}
