//! `to_char` of numbers, and `to_number`: digits in a picture, as `FM999G990D00`.
//!
//! Points and groups of a locale are written where the database's `lc_numeric` is one that has them as English has; the sign of a currency
//! where `lc_monetary` is English, or has none. Others are refused.
//!
//! Source: `numeric_to_char`, `int4_to_char`, `int8_to_char`, `float4_to_char`, `float8_to_char`, `int_to_roman`, `NUM_prepare_locale` in
//! `src/backend/utils/adt/formatting.c`, PostgreSQL 14 to 18.

mod input;
mod picture;
mod reading;
mod writing;

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::{Float32Type, Float64Type, Int32Type, Int64Type};
use pagemill_types::numeric::write_numeric;

use super::keys::strings;
use super::numeric::arithmetic::{multiply, round};
use super::numeric::column::Numbers;
use super::numeric::value::{Integer, Number, Value};
use super::rows::{Made, Outcome};
use super::{Implementation, KernelCall};
use crate::error::{SqlState, StatementError};
use picture::{Element, Item, Layout, Picture};
use writing::{Digits, written};

pub(crate) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        "numeric_to_char" => numerics,
        "numeric_to_number" => input::numbers,
        "int4_to_char" => |call, arguments| {
            let column = arguments[0].as_primitive::<Int32Type>();
            texts(call, arguments, |row, layout| {
                integer(column.value(row).into(), layout, i64::from(i32::MAX))
            })
        },
        "int8_to_char" => |call, arguments| {
            let column = arguments[0].as_primitive::<Int64Type>();
            texts(call, arguments, |row, layout| integer(column.value(row), layout, i64::MAX))
        },
        "float4_to_char" => |call, arguments| {
            let column = arguments[0].as_primitive::<Float32Type>();
            texts(call, arguments, |row, layout| {
                let shift = 10f64.powi(layout.shift as i32) as f32;
                let value = column.value(row);
                let shifted = if layout.is_shifted { value * shift } else { value };
                float(value.into(), shifted.into(), layout, FLOAT4_DIGITS)
            })
        },
        "float8_to_char" => |call, arguments| {
            let column = arguments[0].as_primitive::<Float64Type>();
            texts(call, arguments, |row, layout| {
                let value = column.value(row);
                let shift = 10f64.powi(layout.shift as i32);
                let shifted = if layout.is_shifted { value * shift } else { value };
                float(value, shifted, layout, FLOAT8_DIGITS)
            })
        },
        _ => return None,
    }))
}

/// `FLT_DIG` and `DBL_DIG`: digits that survive being a float.
const FLOAT4_DIGITS: usize = 6;
const FLOAT8_DIGITS: usize = 15;

/// The texts of a column, each value of which is made digits for its picture's layout.
fn texts(
    call: &KernelCall,
    arguments: &[ArrayRef],
    digits: impl Fn(usize, &mut Layout) -> Outcome<Digits>,
) -> Outcome<ArrayRef> {
    let pictures = strings(&arguments[1]);
    let major = call.catalog.database().cluster().version().major();
    let mut last: Option<(String, Picture)> = None;
    let mut one = |row: usize| -> Outcome<Option<String>> {
        if arguments[0].is_null(row) || pictures.is_null(row) {
            return Ok(None);
        }
        let text = pictures.value(row);
        if last.as_ref().is_none_or(|(known, _)| known != text) {
            let mut picture = Picture::parse(text, major)?;
            refuse_locale(call, &picture.layout)?;
            if picture.layout.has_currency {
                picture.layout.currency = currency(call)?;
            }
            last = Some((text.to_owned(), picture));
        }
        let (_, picture) = last.as_ref().expect("just parsed"); // infallible: above
        if picture.elements.is_empty() {
            return Ok(Some(String::new()));
        }
        let mut layout = picture.layout;
        let number = digits(row, &mut layout)?;
        if layout.is_scientific {
            return Ok(Some(String::from_utf8_lossy(&number.text).into_owned()));
        }
        refuse_ordinal(picture, &number)?;
        Ok(Some(written(picture, layout, &number)))
    };
    Made::column((0..pictures.len()).map(&mut one).collect::<Outcome<Vec<Option<String>>>>()?)
}

/// Refuses what a locale would write in a way that is not known here.
fn refuse_locale(call: &KernelCall, layout: &Layout) -> Outcome<()> {
    if !layout.needs_locale && !layout.has_locale_point {
        return Ok(());
    }
    match is_english(call, "lc_numeric")? {
        true => Ok(()),
        false => {
            let what = "to_char with points and groups of its locale";
            Err(StatementError::unsupported(what))
        }
    }
}

/// The sign of a currency in the locale of amounts, where that is known.
fn currency(call: &KernelCall) -> Outcome<Option<char>> {
    let name = locale_of(call, "lc_monetary")?;
    match &*name {
        "" | "C" | "POSIX" => Ok(None),
        name if name.starts_with("C.") => Ok(None),
        name if name.starts_with("en_US") => Ok(Some('$')),
        "en_GB.UTF-8" | "en_GB.utf8" => Ok(Some('£')),
        name => {
            let what = format!("to_char with the sign of a currency in locale \"{name}\"");
            Err(StatementError::unsupported(what))
        }
    }
}

fn locale_of(call: &KernelCall, setting: &str) -> Outcome<String> {
    let settings = call.catalog.database().session_settings();
    let settings = settings.map_err(|error| StatementError::unsupported(error.to_string()))?;
    let name = settings.get(setting).map(String::from_utf8_lossy);
    Ok(name.unwrap_or_default().into_owned()) // default: the files say none, which is C
}

/// Whether a setting is a locale that has numbers and names as English has them.
pub(super) fn is_english(call: &KernelCall, setting: &str) -> Outcome<bool> {
    let name = locale_of(call, setting)?;
    Ok(matches!(&*name, "" | "C" | "POSIX")
        || name.starts_with("C.")
        || name.starts_with("en_US")
        || name.starts_with("en_GB"))
}

fn refuse_ordinal(picture: &Picture, number: &Digits) -> Outcome<()> {
    let is_ordinal =
        |item: &Element| matches!(item, Element::Item(Item::OrdinalCapitals | Item::OrdinalSmall));
    let layout = picture.layout;
    let is_asked = !layout.is_roman && !layout.has_point && !number.is_negative;
    let is_number =
        number.text.first() == Some(&b'#') || number.text.last().is_some_and(u8::is_ascii_digit);
    if is_number || !is_asked || !picture.elements.iter().any(is_ordinal) {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&number.text);
    Err(StatementError::new(SqlState("22P02"), format!("\"{text}\" is not a number")))
}

fn numerics(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let values = Numbers::of(&arguments[0]);
    texts(call, arguments, |row, layout| {
        let value = values.get(row)?.expect("a row that is not NULL"); // infallible: looked at before
        numeric(value, layout)
    })
}

fn numeric(value: Value, layout: &mut Layout) -> Outcome<Digits> {
    if layout.is_scientific {
        let text = text_of(&value)?;
        return Ok(match text.ends_with(|last: char| last.is_ascii_digit()) {
            true => scientific_of_decimal(&text, layout.behind),
            false => no_scientific(layout),
        });
    }
    if layout.is_roman {
        let text = text_of(&round(&value, 0))?;
        return roman_of_integer(text.parse().ok());
    }
    let mut value = value;
    if layout.is_shifted {
        let power = Integer::power_of_ten(u32::try_from(layout.shift).unwrap_or(u32::MAX));
        value = multiply(&value, &Number { integer: power, dscale: 0 }.into())?;
        layout.before += layout.shift;
    }
    Ok(fitted(&text_of(&round(&value, layout.behind as i32))?, layout))
}

fn text_of(value: &Value) -> Outcome<String> {
    let mut text = Vec::new();
    let damaged = |error: pagemill_format::Error| {
        StatementError::new(SqlState::DATA_CORRUPTED, error.to_string())
    };
    write_numeric(&value.payload()?, &mut text).map_err(damaged)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn integer(value: i64, layout: &mut Layout, most: i64) -> Outcome<Digits> {
    if layout.is_roman {
        return roman_of_integer(Some(value));
    }
    if layout.is_scientific {
        if most > i64::from(i32::MAX) {
            return Ok(scientific_of_decimal(&value.to_string(), layout.behind));
        }
        return Ok(scientific(value as f64, layout.behind));
    }
    let mut text = value.to_string();
    if layout.is_shifted {
        let power = u32::try_from(layout.shift).ok().and_then(|shift| 10i64.checked_pow(shift));
        let shifted = power.and_then(|power| value.checked_mul(power));
        let fits = |shifted: &i64| (-most - 1..=most).contains(shifted);
        let what = "to_char of an integer that V makes too large";
        text = shifted.filter(fits).ok_or_else(|| StatementError::unsupported(what))?.to_string();
        layout.before += layout.shift;
    }
    if layout.behind > 0 {
        text = format!("{text}.{}", "0".repeat(layout.behind));
    }
    Ok(fitted(&text, layout))
}

fn float(value: f64, shifted: f64, layout: &mut Layout, digits: usize) -> Outcome<Digits> {
    if layout.is_roman {
        return Ok(roman(value.round_ties_even() as i64));
    }
    if layout.is_scientific {
        return Ok(match value.is_finite() {
            true => scientific(value, layout.behind),
            false => no_scientific(layout),
        });
    }
    if layout.is_shifted {
        layout.before += layout.shift;
    }
    let before = plain(shifted.abs(), 0).len();
    if before >= digits {
        layout.behind = 0;
    } else if before + layout.behind > digits {
        layout.behind = digits - before;
    }
    Ok(fitted(&plain(shifted, layout.behind), layout))
}

/// A float with so many digits behind the point, as `printf` writes it.
fn plain(value: f64, digits: usize) -> String {
    match (value.is_nan(), value.is_infinite()) {
        (true, _) => "NaN".to_owned(),
        (_, true) => if value < 0.0 { "-Infinity" } else { "Infinity" }.to_owned(),
        _ => format!("{value:.digits$}"),
    }
}

/// `%+.*e`, with a space for the plus.
fn scientific(value: f64, digits: usize) -> Digits {
    let text = format!("{value:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    let before = if mantissa.starts_with('-') { "" } else { " " };
    let text = format!("{before}{mantissa}e{sign}{exponent:0>2}");
    Digits { is_negative: false, text: text.into_bytes(), spaces: 0 }
}

/// What stands for NaN and the infinities.
fn no_scientific(layout: &Layout) -> Digits {
    let mut text = vec![b'#'; layout.before + layout.behind + 6];
    text[0] = b' ';
    text[layout.before + 1] = b'.';
    Digits { is_negative: false, text, spaces: 0 }
}

/// The same of a decimal number, without loss. The exponent is that of the number before it is rounded: 9.9 is `10e+00`.
///
/// Source: `get_str_from_var_sci` in `src/backend/utils/adt/numeric.c`, PostgreSQL 14 to 18.
fn scientific_of_decimal(text: &str, places: usize) -> Digits {
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => ("-", text),
        None => (" ", text),
    };
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let all: Vec<u8> = whole.bytes().chain(part.bytes()).collect();
    let zeros = all.iter().take_while(|digit| **digit == b'0').count();
    let is_zero = zeros == all.len();
    let exponent = if is_zero { 0 } else { whole.len() as i64 - 1 - zeros as i64 };
    let mut digits = if is_zero { vec![b'0'] } else { all[zeros..].to_vec() };
    let is_up = digits.get(places + 1).is_some_and(|next| *next >= b'5');
    digits.resize(places + 1, b'0');
    let mut before = 1;
    if is_up {
        let nines = digits.iter().rev().take_while(|digit| **digit == b'9').count();
        let end = digits.len();
        digits[end - nines..].fill(b'0');
        match (end - nines).checked_sub(1) {
            Some(last) => digits[last] += 1,
            None => {
                digits.insert(0, b'1');
                before = 2;
            }
        }
    }
    let (first, behind) = digits.split_at(before);
    let (first, behind) = (String::from_utf8_lossy(first), String::from_utf8_lossy(behind));
    let point = if behind.is_empty() { "" } else { "." };
    let text = format!("{sign}{first}{point}{behind}e{exponent:+03}");
    Digits { is_negative: false, text: text.into_bytes(), spaces: 0 }
}

/// The digits of a number, and how many places before the point they leave free; `#` where there are too few.
fn fitted(text: &str, layout: &Layout) -> Digits {
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let before = text.find('.').unwrap_or(text.len());
    if before <= layout.before {
        let spaces = layout.before - before;
        return Digits { is_negative, text: text.as_bytes().to_vec(), spaces };
    }
    let mut text = vec![b'#'; layout.before + layout.behind + 1];
    text[layout.before] = b'.';
    Digits { is_negative, text, spaces: 0 }
}

/// Of what fits an integer.
fn roman_of_integer(number: Option<i64>) -> Outcome<Digits> {
    let number = number.filter(|number| i32::try_from(*number).is_ok());
    let out_of_range = || StatementError::new(SqlState("22003"), "integer out of range");
    number.map(roman).ok_or_else(out_of_range)
}

fn roman(number: i64) -> Digits {
    const NUMERALS: [(i64, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let mut text = String::new();
    let mut left = number;
    if (1..=3999).contains(&number) {
        for (value, numeral) in NUMERALS {
            while left >= value {
                text.push_str(numeral);
                left -= value;
            }
        }
    } else {
        text = "#".repeat(15);
    }
    Digits { is_negative: false, text: text.into_bytes(), spaces: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_keeps_all_its_digits_and_its_exponent() {
        let of =
            |text, places| String::from_utf8(scientific_of_decimal(text, places).text).unwrap();
        assert_eq!(of("9223372036854775807", 18), " 9.223372036854775807e+18");
        assert_eq!(of("-0.00123", 1), "-1.2e-03");
        assert_eq!(of("9.99", 1), " 10.0e+00");
        assert_eq!(of("0.00", 2), " 0.00e+00");
        assert_eq!(of("95", 0), " 10e+01");
    }
}
