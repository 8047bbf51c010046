//! The texts of options, taken apart: characters that may be escaped, lists of columns, sizes.
//!
//! Whatever is typed is a value or an error that shows it; names are spelled as in SQL.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::Result;
use clap::builder::{OsStringValueParser, TypedValueParser};
use pagemill_cli::sizes::blocks;
use pagemill_engine::copy::single_byte;
use pagemill_stream::buffer_pool::MIN_SHARED_BUFFERS;
use pagemill_types::money::MoneyFormat;

use crate::failure::UsageError;

/// What the server takes for `shared_buffers` at most: `INT_MAX / 2` blocks.
const MAX_SHARED_BUFFERS: NonZeroUsize = NonZeroUsize::new(i32::MAX as usize / 2).unwrap(); // infallible: it is not 0

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

/// The pages of a size as the server's `shared_buffers` is spelled: a number of blocks, or of B, kB,
/// MB, GB or TB, fractions and blanks allowed; rounded to the nearest block, as the server does.
pub(crate) fn shared_buffers(text: &str) -> Result<NonZeroUsize, String> {
    let pages = blocks(text).ok_or(
        "a size is a number of 8 kB blocks, or a number and a unit: B, kB, MB, GB, TB, as in 128MB",
    )?;
    match NonZeroUsize::new(pages).filter(|pages| *pages >= MIN_SHARED_BUFFERS) {
        Some(pages) if pages <= MAX_SHARED_BUFFERS => Ok(pages),
        Some(_) => Err(format!("{MAX_SHARED_BUFFERS} blocks of 8 kB (8 TB) are the most")),
        None => Err(format!("{MIN_SHARED_BUFFERS} blocks (128kB) are the least")),
    }
}

/// The bytes of an amount of memory: a number and a unit, spelled as for `shared_buffers` or as MiB.
pub(crate) fn memory_size(text: &str) -> Result<usize, String> {
    const LEAST: usize = 1 << 20;
    let spelled = text.strip_suffix("iB").map(|number| format!("{number}B"));
    let has_unit = text.ends_with('B');
    let pages = blocks(spelled.as_deref().unwrap_or(text)).filter(|_| has_unit);
    let pages = pages.ok_or("a size is a number and a unit: kB, MB, GB, TB, as in 256MB")?;
    let bytes = pages.saturating_mul(pagemill_format::BLOCK_SIZE);
    if bytes < LEAST { Err("1MB is the least".into()) } else { Ok(bytes) }
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

/// A path that may be empty, as one out of the environment is that stands for none.
pub(crate) fn maybe_empty() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// A database; an empty name, as out of the environment, is the usual one.
pub(crate) fn database_name(name: &str) -> Result<String, Infallible> {
    Ok(if name.is_empty() { "postgres" } else { name }.to_owned())
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
    fn an_amount_of_memory_has_a_unit() {
        assert_eq!(memory_size("1MB"), Ok(1 << 20));
        assert_eq!(memory_size("256MiB"), Ok(256 << 20));
        assert_eq!(memory_size("2GB"), Ok(2 << 30));
        for wrong in ["", "B", "iB", "100", "1000kB", "-1GB", "1XB"] {
            assert!(memory_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shared_buffers_are_blocks_or_have_a_unit_as_the_server_has_them() {
        let known = [
            ("16", 16),
            ("128kB", 16),
            ("132kB", 16),
            ("148kB", 18),
            ("128MB", 16_384),
            (" 1.5 GB ", 196_608),
            ("1TB", 1 << 27),
            ("1048576B", 128),
            ("1073741823", 1_073_741_823),
        ];
        for (text, blocks) in known {
            assert_eq!(shared_buffers(text).map(NonZeroUsize::get), Ok(blocks), "{text}");
        }
        let refused = [
            "",
            "15",
            "0",
            "120kB",
            "-16",
            "+16",
            "1e9",
            "128mb",
            "128 M",
            "MB",
            "1.2.3MB",
            "16x",
            "9TB",
            "1073741824",
            "99999999999999999999999999TB",
            "inf",
            "NaN",
        ];
        for text in refused {
            assert!(shared_buffers(text).is_err(), "{text}");
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
            let _ = shared_buffers(&text);
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
