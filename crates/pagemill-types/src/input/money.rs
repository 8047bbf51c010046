//! The input of `money`: an amount as the locale `lc_monetary` writes it, or a plain number.
//!
//! Symbol, sign and separators may stand nearly anywhere; digits beyond the locale's last place are
//! rounded by the first of them.
//! Source: `cash_in` in `src/backend/utils/adt/cash.c`, PostgreSQL 14 to 18.

use super::InputError;
use super::digits::skip_blanks;
use crate::money::MoneyFormat;

/// `money`, in a locale's format, whose texts must be in the encoding of this text.
///
/// # Errors
/// When the text is no amount, or one out of range.
pub fn read_money(text: &[u8], format: &MoneyFormat, out: &mut Vec<u8>) -> Result<(), InputError> {
    let signs = Signs::of(format);
    let (mut negative, rest) = signs.leading(text);
    let (amount, rest) =
        amount(rest, format).ok_or_else(|| InputError::out_of_range("money", text))?;
    negative |= signs.trailing(rest).ok_or_else(|| InputError::syntax("money", text))?;
    let value = if negative { Some(amount) } else { amount.checked_neg() };
    let value = value.ok_or_else(|| InputError::out_of_range("money", text))?;
    out.extend_from_slice(&value.to_le_bytes());
    Ok(())
}

/// What may stand around the digits.
struct Signs<'a> {
    symbol: &'a [u8],
    positive: &'a [u8],
    negative: &'a [u8],
}

impl<'a> Signs<'a> {
    fn of(format: &'a MoneyFormat) -> Self {
        let or = |sign: &'static str, default: &'static str| {
            if sign.is_empty() { default.as_bytes() } else { sign.as_bytes() }
        };
        Self {
            symbol: &format.currency_symbol,
            positive: or(format.positive.sign, "+"),
            negative: or(format.negative.sign, "-"),
        }
    }

    /// Whether the sign in front says that the amount is negative, and what is behind it.
    fn leading<'t>(&self, text: &'t [u8]) -> (bool, &'t [u8]) {
        let text = self.skip_symbol(text);
        let (negative, text) = if let Some(rest) = strip(text, self.negative) {
            (true, rest)
        } else if let Some(rest) = text.strip_prefix(b"(") {
            (true, rest)
        } else {
            (false, strip(text, self.positive).unwrap_or(text))
        };
        (negative, self.skip_symbol(text))
    }

    fn skip_symbol<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        let text = skip_blanks(text);
        skip_blanks(strip(text, self.symbol).unwrap_or(text))
    }

    /// Whether what is behind the digits says that the amount is negative; `None` when there is
    /// anything else.
    fn trailing(&self, mut text: &[u8]) -> Option<bool> {
        let mut negative = false;
        loop {
            text = skip_blanks(text);
            text = if text.is_empty() {
                return Some(negative);
            } else if let Some(rest) = text.strip_prefix(b")") {
                rest
            } else if let Some(rest) = strip(text, self.negative) {
                negative = true;
                rest
            } else if let Some(rest) = strip(text, self.positive) {
                rest
            } else {
                strip(text, self.symbol)?
            };
        }
    }
}

/// What is behind a symbol or sign, which is never empty.
fn strip<'t>(text: &'t [u8], start: &[u8]) -> Option<&'t [u8]> {
    text.strip_prefix(start).filter(|_| !start.is_empty())
}

/// The negative of the amount in the smallest unit, as there is one more of them, and what is behind
/// the digits; `None` when it is out of range.
fn amount<'t>(mut text: &'t [u8], format: &MoneyFormat) -> Option<(i64, &'t [u8])> {
    let mut value = 0i64;
    let mut places = None;
    while let Some((&byte, rest)) = text.split_first() {
        if byte.is_ascii_digit() && places < Some(format.fraction_digits) {
            value = value.checked_mul(10)?.checked_sub(i64::from(byte - b'0'))?;
            places = places.map(|count| count + 1);
            text = rest;
        } else if byte == format.decimal_point && places.is_none() {
            places = Some(0);
            text = rest;
        } else if let Some(rest) = strip(text, &format.thousands_separator) {
            text = rest;
        } else {
            break;
        }
    }
    if matches!(text.first(), Some(b'5'..=b'9')) {
        value = value.checked_sub(1)?;
    }
    for _ in places.unwrap_or(0)..format.fraction_digits {
        value = value.checked_mul(10)?;
    }
    let surplus = text.iter().take_while(|b| b.is_ascii_digit()).count();
    Some((value, text.get(surplus..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::write_money;
    use proptest::prelude::*;

    fn read(text: &str, locale: &str) -> Result<i64, String> {
        let format = MoneyFormat::for_locale(locale).unwrap();
        let mut out = Vec::new();
        read_money(text.as_bytes(), &format, &mut out).map_err(|error| error.message)?;
        Ok(i64::from_le_bytes(out.try_into().unwrap()))
    }

    #[test]
    fn symbol_sign_and_separators_may_stand_nearly_anywhere() {
        for (text, amount) in [
            ("1234.56", 123_456),
            (" $ 1,234.56 ", 123_456),
            ("-$1,234.56", -123_456),
            ("$-1234.56", -123_456),
            ("(1234.56)", -123_456),
            ("1234.56-", -123_456),
            ("1234.56 $ +", 123_456),
            ("12,34", 123_400),
            ("1.005", 101),
            ("1.0049", 100),
            ("", 0),
            ("-", 0),
        ] {
            assert_eq!(read(text, "C"), Ok(amount), "{text}");
        }
        assert!(read("1.2.3", "C").is_err());
        assert_eq!(read("1.234,56 €", "de_DE.UTF-8"), Ok(123_456));
        assert_eq!(read("￥1,234", "ja_JP.UTF-8"), Ok(1234));
    }

    #[test]
    fn amounts_have_64_bits() {
        assert_eq!(read("-92233720368547758.08", "C"), Ok(i64::MIN));
        for text in ["92233720368547758.08", "-92233720368547758.085", "99999999999999999999"] {
            let message = format!("value \"{text}\" is out of range for type money");
            assert_eq!(read(text, "C"), Err(message));
        }
        let message = "invalid input syntax for type money: \"1x\"";
        assert_eq!(read("1x", "C"), Err(message.into()));
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(amount: i64) {
            for locale in ["C", "de_DE.UTF-8", "en_US", "ja_JP.UTF-8", "ar_BH", "de_CH.UTF-8"] {
                let format = MoneyFormat::for_locale(locale).unwrap();
                let mut text = Vec::new();
                write_money(&amount.to_le_bytes(), &format, &mut text).unwrap();
                let mut out = Vec::new();
                prop_assert_eq!(read_money(&text, &format, &mut out), Ok(()));
                prop_assert_eq!(out, amount.to_le_bytes());
            }
        }

        #[test]
        fn no_bytes_panic(text in prop::collection::vec(any::<u8>(), 0..30)) {
            let format = MoneyFormat::for_locale("de_DE.UTF-8").unwrap();
            let _ = read_money(&text, &format, &mut Vec::new());
        }
    }
}
