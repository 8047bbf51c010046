//! Lists of columns as options have them.
//!
//! Invariant: names are spelled as in SQL; whatever is typed is a list or an error that shows it.

use anyhow::Result;

use crate::failure::UsageError;

/// A list of column names, as it was given: folded to lower case outside of double quotes.
pub type ColumnNames = Vec<Box<[u8]>>;

/// Column names separated by commas, spelled as in SQL. Blanks around names do not count.
///
/// # Errors
/// Where the text is no such list, or has a name twice.
pub fn column_list(option: &str, text: &str) -> Result<ColumnNames> {
    let mut names: ColumnNames = Vec::new();
    let mut rest = text;
    loop {
        let (name, after) = column_name(rest)
            .ok_or_else(|| wrong(option, text, "names are separated by commas, quotes closed"))?;
        if names.iter().any(|earlier| **earlier == *name.as_bytes()) {
            return Err(wrong(option, text, &format!("{name:?} is in it twice")));
        }
        names.push(name.into_bytes().into());
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Ok(names),
        }
    }
}

fn wrong(option: &str, text: &str, reason: &str) -> anyhow::Error {
    UsageError(format!("--{option} {text:?} is no list of columns: {reason}")).into()
}

/// The name at the start of a text, and what follows it: a comma or nothing.
fn column_name(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start();
    if let Some(quoted) = text.strip_prefix('"') {
        let (name, after) = quoted_name(quoted)?;
        let after = after.trim_start();
        return (after.is_empty() || after.starts_with(',')).then_some((name, after));
    }
    let (name, after) = text.split_at(text.find(',').unwrap_or(text.len()));
    let name = name.trim_end();
    (!name.is_empty() && !name.contains('"')).then(|| (name.to_ascii_lowercase(), after))
}

/// A name whose opening quote was read; a quote within is doubled.
fn quoted_name(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut rest = text;
    loop {
        let (part, after) = rest.split_once('"')?;
        name.push_str(part);
        match after.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return (!name.is_empty()).then_some((name, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(text: &str) -> Option<Vec<String>> {
        let names = column_list("columns", text).ok()?;
        Some(names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    #[test]
    fn column_names_fold_outside_quotes_and_keep_what_is_inside() {
        assert_eq!(list("Id, \"Id\" ,größe").unwrap(), ["id", "Id", "größe"]);
        assert_eq!(list("\"a,\"\"b\",c").unwrap(), ["a,\"b", "c"]);
    }

    #[test]
    fn a_malformed_list_is_refused() {
        for text in ["", "a,", ",a", "\"a", "\"a\"b", "a\"b\"", "\"\"", "a,A"] {
            assert_eq!(list(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-z,\"\\\\ x0-9é]{0,12}") {
            let _ = column_list("columns", &text);
        }

        #[test]
        fn any_quoted_names_come_back(names in proptest::collection::hash_set("[^\"]{1,6}", 1..4)) {
            let quoted: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
            let names: Vec<String> = names.into_iter().collect();
            prop_assert_eq!(list(&quoted.join(",")), Some(names));
        }
    }
}
