//! Numbers of settings with their units, read and shown.
//!
//! Invariant: a number that is shown with a unit is read as what it was.
//!
//! Source: `parse_int`, `parse_real`, `convert_to_base_unit`, `convert_int_from_base_unit` and `convert_real_from_base_unit` in
//! `src/backend/utils/misc/guc.c`, PostgreSQL 14 to 18.

use crate::functions::aggregates::short_float;

/// Units of a kind, the largest first, by how many of the smallest they are.
type Units = [(&'static str, f64)];

const MEMORY: [(&str, f64); 5] = [
    ("TB", 1_099_511_627_776.0),
    ("GB", 1_073_741_824.0),
    ("MB", 1_048_576.0),
    ("kB", 1024.0),
    ("B", 1.0),
];

const TIME: [(&str, f64); 6] = [
    ("d", 86_400_000_000.0),
    ("h", 3_600_000_000.0),
    ("min", 60_000_000.0),
    ("s", 1_000_000.0),
    ("ms", 1000.0),
    ("us", 1.0),
];

/// How near to a whole number a real one is shown by it.
const NEAR: f64 = 1e-8;

/// The units beside that of a setting, and how many of their smallest that is.
fn units_of(unit: &str) -> Option<(&'static Units, f64)> {
    let digits = unit.find(|c: char| !c.is_ascii_digit())?;
    let (count, name) = unit.split_at(digits);
    let count = if count.is_empty() { 1.0 } else { count.parse().ok()? };
    let kinds: [&'static Units; 2] = [&MEMORY, &TIME];
    kinds.into_iter().find_map(|units| {
        let (_, size) = units.iter().find(|(known, _)| *known == name)?;
        Some((units, size * count))
    })
}

/// An integer in the setting's own unit.
pub(super) fn integer(text: &str, unit: Option<&str>) -> Option<i32> {
    let number = real(text, unit)?.round_ties_even();
    let fits = (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number);
    fits.then_some(number as i32)
}

/// A number in the setting's own unit.
pub(super) fn real(text: &str, unit: Option<&str>) -> Option<f64> {
    let (number, named) = number(text.trim())?;
    match (named.trim(), unit) {
        ("", _) => Some(number),
        (named, Some(unit)) => in_unit(number, named, unit),
        _ => None,
    }
}

/// A fraction of a unit is rounded to whole ones of the next smaller.
fn in_unit(number: f64, named: &str, unit: &str) -> Option<f64> {
    let (units, own) = units_of(unit)?;
    let place = units.iter().position(|(known, _)| *known == named)?;
    let number = number * (units[place].1 / own);
    Some(match units.get(place + 1) {
        Some((_, smaller)) => (number / (smaller / own)).round_ties_even() * (smaller / own),
        None => number,
    })
}

/// The number that a text begins with, and what follows it.
fn number(text: &str) -> Option<(f64, &str)> {
    let unsigned = text.trim_start_matches(['+', '-']);
    let sign = match &text[..text.len() - unsigned.len()] {
        "" | "+" => 1.0,
        "-" => -1.0,
        _ => return None,
    };
    let (number, rest) = with_base(unsigned).or_else(|| decimal(unsigned))?;
    Some((sign * number, rest))
}

/// Hexadecimal and octal numbers.
fn with_base(text: &str) -> Option<(f64, &str)> {
    let (digits, base) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text.strip_prefix('0')?, 8),
    };
    let (digits, rest) = digits.split_at(end_of(digits, |c| c.is_digit(base)));
    // A fraction is a decimal one.
    if digits.is_empty() || base == 8 && rest.starts_with(['.', 'e', 'E', '8', '9']) {
        return None;
    }
    Some((i64::from_str_radix(digits, base).ok()? as f64, rest))
}

fn decimal(text: &str) -> Option<(f64, &str)> {
    let mut end = end_of(text, |c| c.is_ascii_digit() || c == '.');
    if let Some(power) = text[end..].strip_prefix(['e', 'E']) {
        let digits = power.trim_start_matches(['+', '-']);
        let length = end_of(digits, |c| c.is_ascii_digit());
        if length > 0 {
            end = text.len() - digits.len() + length;
        }
    }
    let (number, rest) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    number.is_finite().then_some((number, rest))
}

fn end_of(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|c: char| !is_part(c)).unwrap_or(text.len()) // default: all of it
}

/// An integer in the largest unit that it is a whole number of.
pub(super) fn shown_integer(number: i32, unit: Option<&str>) -> String {
    let Some((units, own)) = unit.and_then(units_of).filter(|_| number > 0) else {
        return number.to_string();
    };
    let total = f64::from(number) * own;
    let whole = units.iter().find(|(_, size)| *size <= own || total % size == 0.0);
    match whole {
        Some((name, size)) => format!("{}{name}", (total / size).round_ties_even()),
        None => number.to_string(),
    }
}

/// A number in the largest unit that it is a whole number of, and in the smallest where it is of none.
pub(super) fn shown_real(number: f64, unit: Option<&str>) -> String {
    let Some((units, own)) = unit.and_then(units_of).filter(|_| number > 0.0) else {
        return short_float(number);
    };
    let total = number * own;
    let is_whole = |size: f64| ((total / size).round() / (total / size) - 1.0).abs() <= NEAR;
    let whole = units.iter().find(|(_, size)| is_whole(*size)).or(units.last());
    whole.map_or_else(|| short_float(number), |(name, size)| short_float(total / size) + name)
}
