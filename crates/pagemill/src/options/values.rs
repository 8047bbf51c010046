//! The texts of options, taken apart: characters that may be escaped, locales.
//!
//! Whatever is typed is a value or an error that shows it.

use anyhow::Result;
use pagemill_engine::copy::single_byte;
use pagemill_types::money::MoneyFormat;

use crate::failure::UsageError;

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-z,\"\\\\ x0-9é]{0,12}") {
            let _ = character("delimiter", &text);
        }
    }
}
