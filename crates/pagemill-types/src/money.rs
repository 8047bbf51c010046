//! `money`: an i64 of the currency's smallest unit, dressed up by the locale `lc_monetary`.
//!
//! The number alone does not say where its decimal point is: that is the locale's as well. The
//! locale's conventions come from the C library, whose values stand in `money_locale.rs`;
//! this file knows what PostgreSQL makes of them.
//! Source: `cash_out` in `src/backend/utils/adt/cash.c`, PostgreSQL 14 to 18.

use std::borrow::Cow;

use pagemill_format::error::Result;

use super::payload::fixed;

/// A locale's conventions for money, as `cash_out` reads them from the C library's `lconv`.
///
/// The texts of a locale are in UTF-8. The server prints them in the database's encoding, so for
/// another one they have to be converted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoneyFormat {
    /// The symbol: `$`.
    pub currency_symbol: Cow<'static, [u8]>,
    /// The decimal point, a single byte.
    pub decimal_point: u8,
    /// What is between groups of digits.
    pub thousands_separator: Cow<'static, [u8]>,
    /// The digits in a group.
    pub group: u8,
    /// The digits after the decimal point.
    pub fraction_digits: u8,
    /// How a value of zero or more is put together.
    pub positive: SignLayout,
    /// How a negative value is put together.
    pub negative: SignLayout,
}

/// Where sign and symbol go (POSIX: `sign_posn`, `cs_precedes`, `sep_by_space`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignLayout {
    /// The sign, in ASCII.
    pub sign: &'static str,
    /// Where the sign goes.
    pub position: SignPosition,
    /// True when the symbol comes before the number.
    pub symbol_first: bool,
    /// Where a space goes.
    pub space: Space,
}

/// Where the sign goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignPosition {
    /// Brackets around number and symbol, instead of a sign.
    Brackets,
    /// Before number and symbol.
    First,
    /// After number and symbol.
    Last,
    /// Right before the symbol.
    BeforeSymbol,
    /// Right after the symbol.
    AfterSymbol,
}

/// Where a space goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// Nowhere.
    None,
    /// Between the number and what stands beside it.
    AtNumber,
    /// Between sign and symbol.
    AtSign,
}

/// `money`, in a locale's format.
///
/// # Errors
/// When the value is not 8 bytes.
pub fn write_money(value: &[u8], format: &MoneyFormat, out: &mut Vec<u8>) -> Result<()> {
    let amount = i64::from_le_bytes(fixed("money", value)?);
    let layout = if amount < 0 { &format.negative } else { &format.positive };
    let magnitude = amount.unsigned_abs();
    for part in layout.parts() {
        match part {
            Part::Sign => out.extend_from_slice(layout.sign.as_bytes()),
            Part::Symbol => out.extend_from_slice(&format.currency_symbol),
            Part::Number => format.push_number(magnitude, out),
            Part::Byte(byte) => out.push(byte),
            Part::Nothing => {}
        }
    }
    Ok(())
}

impl MoneyFormat {
    /// The format of the locale that `lc_monetary` names: `C`, `POSIX`, or a locale of the GNU C
    /// library such as `en_US.UTF-8` or `de_DE@euro`.
    ///
    /// The part after the dot, the locale's encoding, does not matter: PostgreSQL converts.
    pub fn for_locale(name: &str) -> Option<Self> {
        super::money_locale::format(name)
    }

    /// The format with its texts converted from UTF-8; `None` when one of them cannot be.
    pub fn converted(self, convert: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Option<Self> {
        Some(Self {
            currency_symbol: convert(&self.currency_symbol)?.into(),
            thousands_separator: convert(&self.thousands_separator)?.into(),
            ..self
        })
    }

    fn push_number(&self, magnitude: u64, out: &mut Vec<u8>) {
        let unit = 10u64.checked_pow(self.fraction_digits.into()).unwrap_or(u64::MAX);
        self.push_grouped(magnitude / unit, out);
        if self.fraction_digits > 0 {
            out.push(self.decimal_point);
            let mut buffer = itoa::Buffer::new();
            let fraction = buffer.format(magnitude % unit).as_bytes();
            let zeros = usize::from(self.fraction_digits).saturating_sub(fraction.len());
            out.resize(out.len() + zeros, b'0');
            out.extend_from_slice(fraction);
        }
    }

    fn push_grouped(&self, whole: u64, out: &mut Vec<u8>) {
        let group = usize::from(self.group.max(1));
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(whole).as_bytes();
        for (i, digit) in digits.iter().enumerate() {
            if i > 0 && (digits.len() - i).is_multiple_of(group) {
                out.extend_from_slice(&self.thousands_separator);
            }
            out.push(*digit);
        }
    }
}

#[derive(Clone, Copy)]
enum Part {
    Sign,
    Symbol,
    Number,
    Byte(u8),
    Nothing,
}

impl SignLayout {
    /// Sign, symbol, number and spaces, in the order of printing.
    fn parts(&self) -> [Part; 5] {
        use Part::{Byte, Nothing, Number, Sign, Symbol};
        let at_number = if self.space == Space::AtNumber { Byte(b' ') } else { Nothing };
        let at_sign = if self.space == Space::AtSign { Byte(b' ') } else { Nothing };
        match (self.position, self.symbol_first) {
            (SignPosition::Brackets, true) => [Byte(b'('), Symbol, at_number, Number, Byte(b')')],
            (SignPosition::Brackets, false) => [Byte(b'('), Number, at_number, Symbol, Byte(b')')],
            (SignPosition::First | SignPosition::BeforeSymbol, true) => {
                [Sign, at_sign, Symbol, at_number, Number]
            }
            (SignPosition::First, false) => [Sign, at_sign, Number, at_number, Symbol],
            (SignPosition::Last, true) => [Symbol, at_number, Number, at_sign, Sign],
            (SignPosition::Last | SignPosition::AfterSymbol, false) => {
                [Number, at_number, Symbol, at_sign, Sign]
            }
            (SignPosition::BeforeSymbol, false) => [Number, at_number, Sign, at_sign, Symbol],
            (SignPosition::AfterSymbol, true) => [Symbol, at_sign, Sign, at_number, Number],
        }
    }
}
