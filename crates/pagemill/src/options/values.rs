//! The texts of options, taken apart: characters that may be escaped, lists of columns, locales.
//!
//! Whatever is typed is a value or an error that shows it; names are spelled as in SQL.

use anyhow::Result;
use pagemill_engine::copy::single_byte;
use pagemill_types::money::MoneyFormat;

use crate::failure::UsageError;

/// A list of column names, as it was given: folded to lower case outside of double quotes.
pub(crate) type ColumnNames = Vec<Box<[u8]>>;

/// The byte that an option such as `--delimiter` means: one character, or an escape that stands
/// for one (`\t`, `\b`, `\f`, `\v`, `\xHH`).
pub(crate) fn character(option: &'static str, text: &str) -> Result<u8> {
    if let Some(byte) = escaped(text) {
        return Ok(byte);
    }
    Ok(single_byte(option, text.as_bytes()).map_err(pagemill_engine::Error::from)?)
}

fn escaped(text: &str) -> Option<u8> {
    let code = text.strip_prefix('\\')?;
    match code {
        "t" => Some(b'\t'),
        "b" => Some(0x08),
        "f" => Some(0x0C),
        "v" => Some(0x0B),
        "n" => Some(b'\n'),
        "r" => Some(b'\r'),
        "\\" => Some(b'\\'),
        _ => {
            let digits = code.strip_prefix('x')?;
            let fits = (1..=2).contains(&digits.len());
            u8::from_str_radix(digits, 16).ok().filter(|_| fits && !digits.starts_with('+'))
        }
    }
}

/// A locale whose way to print money is known.
pub(crate) fn money_locale(name: &str) -> Result<&str> {
    match MoneyFormat::for_locale(name) {
        Some(_) => Ok(name),
        None => {
            let reason = "is no locale whose way to print money is known; C and en_US are some";
            Err(UsageError(format!("--lc-monetary {name:?} {reason}")).into())
        }
    }
}

/// Column names separated by commas, spelled as in SQL. Blanks around names do not count.
pub(crate) fn column_list(option: &str, text: &str) -> Result<ColumnNames> {
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
    fn a_delimiter_can_be_escaped() {
        for (text, byte) in [("|", b'|'), ("\\t", b'\t'), ("\\x01", 1), ("\\xe", 14), ("\\", b'\\')]
        {
            assert_eq!(character("delimiter", text).unwrap(), byte, "{text}");
        }
        for text in ["", "ab", "\\q", "\\x", "\\x123", "\\x+1", "ü"] {
            assert!(character("delimiter", text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_locale_for_money_is_one_that_is_known() {
        assert_eq!(money_locale("de_DE.UTF-8").unwrap(), "de_DE.UTF-8");
        assert!(money_locale("xx_XX").unwrap_err().to_string().contains("xx_XX"));
    }

    #[test]
    fn column_names_fold_outside_quotes_and_keep_what_is_inside() {
        assert_eq!(list("Id, \"Id\" ,größe").unwrap(), ["id", "Id", "größe"]);
        assert_eq!(list("\"a,\"\"b\",c").unwrap(), ["a,\"b", "c"]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-z,\"\\\\ x0-9é]{0,12}") {
            let _ = column_list("columns", &text);
            let _ = character("delimiter", &text);
        }

        #[test]
        fn any_quoted_names_come_back(names in proptest::collection::hash_set("[^\"]{1,6}", 1..4)) {
            let quoted: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
            let names: Vec<String> = names.into_iter().collect();
            prop_assert_eq!(list(&quoted.join(",")), Some(names));
        }
    }

    #[test]
    fn a_malformed_list_is_refused() {
        for text in ["", "a,", ",a", "\"a", "\"a\"b", "a\"b\"", "\"\"", "a,A"] {
            assert_eq!(list(text), None, "{text}");
        }
    }
}
