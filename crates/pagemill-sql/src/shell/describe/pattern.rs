//! Patterns of names: `*` and `?`, a schema before a dot, quotes for what is meant as it is written.
//!
//! Source: `patternToSQLRegex` in `src/fe_utils/string_utils.c`, PostgreSQL 15.

/// One character of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Any,
    One,
    Is(char),
}

/// A pattern for names.
#[derive(Debug, Default)]
pub(super) struct Pattern {
    text: String,
    schema: Option<Vec<Token>>,
    name: Option<Vec<Token>>,
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// For what is not supported here: regular expressions, names of databases.
    pub(super) fn parse(text: Option<&str>) -> Result<Self, String> {
        let Some(text) = text else { return Ok(Self::default()) };
        let (mut parts, mut is_quoted) = (vec![Vec::new()], false);
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let part: &mut Vec<Token> = parts.last_mut().expect("one is there"); // infallible: starts with one
            match c {
                '"' if is_quoted && chars.peek() == Some(&'"') => {
                    chars.next();
                    part.push(Token::Is('"'));
                }
                '"' => is_quoted = !is_quoted,
                c if is_quoted => part.push(Token::Is(c)),
                '.' => parts.push(Vec::new()),
                '*' => part.push(Token::Any),
                '?' => part.push(Token::One),
                '|' | '+' | '(' | ')' | '[' | ']' | '{' | '}' | '^' | '\\' => {
                    return Err(format!("{text}: {c} in a pattern is not supported here"));
                }
                c => part.extend(c.to_lowercase().map(Token::Is)),
            }
        }
        let name = parts.pop();
        let schema = parts.pop();
        match parts.is_empty() {
            true => Ok(Self { text: text.to_owned(), schema, name }),
            false => {
                Err(format!("{text}: the name of a database in a pattern is not supported here"))
            }
        }
    }

    /// The pattern as it was typed.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// True where nothing was asked for by name.
    pub(super) fn is_empty(&self) -> bool {
        self.name.is_none()
    }

    /// True where a schema was named, so that what is hidden behind others is meant, too.
    pub(super) fn has_schema(&self) -> bool {
        self.schema.is_some()
    }

    pub(super) fn matches(&self, schema: &str, name: &str) -> bool {
        let fits = |tokens: &Option<Vec<Token>>, text: &str| {
            let chars: Vec<char> = text.chars().collect();
            tokens.as_ref().is_none_or(|tokens| tokens.is_empty() || is_like(tokens, &chars))
        };
        fits(&self.schema, schema) && fits(&self.name, name)
    }
}

fn is_like(tokens: &[Token], text: &[char]) -> bool {
    let (mut token, mut at, mut retry) = (0, 0, None);
    while at < text.len() {
        match tokens.get(token) {
            Some(Token::Any) => {
                retry = Some((token, at));
                token += 1;
            }
            Some(Token::One) => (token, at) = (token + 1, at + 1),
            Some(Token::Is(c)) if *c == text[at] => (token, at) = (token + 1, at + 1),
            _ => match retry {
                Some((any, from)) => {
                    retry = Some((any, from + 1));
                    (token, at) = (any + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    tokens[token.min(tokens.len())..].iter().all(|token| *token == Token::Any)
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn patterns_match_as_psql_has_them() {
        for (pattern, schema, name, is_match) in [
            ("ord*", "public", "orders", true),
            ("ORD*", "public", "orders", true),
            ("\"ORD\"*", "public", "orders", false),
            ("o?ders", "public", "orders", true),
            ("o?ders", "public", "ooders2", false),
            ("*s", "public", "orderss", true),
            ("other.*", "other", "x", true),
            ("other.*", "public", "x", false),
            ("pu*.o*r*", "public", "order", true),
            ("\"a*\"", "public", "ab", false),
            ("\"a\"\"b\"", "public", "a\"b", true),
        ] {
            let parsed = Pattern::parse(Some(pattern)).unwrap();
            assert_eq!(parsed.matches(schema, name), is_match, "{pattern} {schema}.{name}");
        }
        assert!(Pattern::parse(Some("a|b")).is_err() && Pattern::parse(Some("a.b.c")).is_err());
    }
}
