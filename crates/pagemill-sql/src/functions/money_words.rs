//! Amounts of money in English words, dollars and cents whatever the locale is.
//!
//! Invariant: every amount has its words; the least one is told by its magnitude.
//!
//! Source: `cash_words`, `append_num_word` in `src/backend/utils/adt/cash.c`, PostgreSQL 14 to 18.

const BELOW_TWENTY: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];

const TENS: [&str; 10] =
    ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

/// Thousands of thousands, the greatest first.
const THOUSANDS: [&str; 5] = ["quadrillion", "trillion", "billion", "million", "thousand"];

/// `Minus one dollar and five cents`.
pub(super) fn in_words(amount: i64) -> String {
    let magnitude = amount.unsigned_abs();
    let (dollars, cents) = (magnitude / 100, magnitude % 100);
    let mut words = String::new();
    if amount < 0 {
        words.push_str("minus ");
    }
    for (place, name) in THOUSANDS.iter().enumerate() {
        let part = dollars / 1000u64.pow(5 - place as u32) % 1000;
        if part > 0 {
            words.push_str(&format!("{} {name} ", below_thousand(part)));
        }
    }
    match dollars % 1000 {
        0 if dollars == 0 => words.push_str("zero"),
        0 => {}
        part => words.push_str(&below_thousand(part)),
    }
    words.push_str(if dollars == 1 { " dollar and " } else { " dollars and " });
    words.push_str(&below_thousand(cents));
    words.push_str(if cents == 1 { " cent" } else { " cents" });
    capitalized(&words)
}

fn capitalized(words: &str) -> String {
    let (first, rest) = words.split_at(1);
    first.to_ascii_uppercase() + rest
}

/// A number below 1000.
fn below_thousand(number: u64) -> String {
    // Each is below 1000.
    let (hundreds, rest) = ((number / 100) as usize, (number % 100) as usize);
    match (hundreds, rest) {
        (0, _) => below_hundred(rest),
        (_, 0) => format!("{} hundred", BELOW_TWENTY[hundreds]),
        // Ten is one of those with "and" that a multiple of ten would be without.
        (_, 1..20) => format!("{} hundred and {}", BELOW_TWENTY[hundreds], BELOW_TWENTY[rest]),
        _ => format!("{} hundred {}", BELOW_TWENTY[hundreds], below_hundred(rest)),
    }
}

fn below_hundred(number: usize) -> String {
    match (number / 10, number % 10) {
        (0 | 1, _) => BELOW_TWENTY[number].to_owned(),
        (tens, 0) => TENS[tens].to_owned(),
        (tens, ones) => format!("{} {}", TENS[tens], BELOW_TWENTY[ones]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_words() {
        assert_eq!(in_words(100), "One dollar and zero cents");
        assert_eq!(in_words(-201), "Minus two dollars and one cent");
        assert_eq!(in_words(0), "Zero dollars and zero cents");
        assert_eq!(
            in_words(123_456_789),
            "One million two hundred thirty four thousand five hundred sixty seven dollars and \
             eighty nine cents"
        );
        assert_eq!(in_words(11_000), "One hundred and ten dollars and zero cents");
        assert_eq!(in_words(100_000), "One thousand  dollars and zero cents");
        assert!(in_words(i64::MIN).starts_with("Minus ninety two quadrillion two hundred"));
    }
}
