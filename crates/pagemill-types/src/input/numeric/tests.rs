//! Tests of the input of `numeric`: what is stored of which text, and what is said to the rest.
//!
//! The quick way and the slow one must agree, and what is printed must read back.

use proptest::prelude::*;

use super::super::tests::refused;
use super::*;
use crate::numeric::write_numeric;

fn stored(text: &str, typmod: i32) -> Result<Vec<u8>, InputError> {
    let mut out = b"before".to_vec();
    read_numeric(text.as_bytes(), typmod, &mut out)?;
    assert!(out.starts_with(b"before"));
    Ok(out.split_off(6))
}

fn words(text: &str) -> Vec<u16> {
    stored(text, -1).unwrap().as_chunks().0.iter().map(|w| u16::from_le_bytes(*w)).collect()
}

fn printed(text: &str, typmod: i32) -> String {
    let mut out = Vec::new();
    match stored(text, typmod) {
        Ok(value) => write_numeric(&value, &mut out).unwrap(),
        Err(error) => return error.message,
    }
    String::from_utf8(out).unwrap()
}

fn typmod(precision: i32, scale: i32) -> i32 {
    (precision << 16 | scale & 0x7FF) + 4
}

#[test]
fn digits_are_packed_without_zeros_at_either_end() {
    assert_eq!(words("0"), [0x8000]);
    assert_eq!(words("-0.00"), [0x8100]);
    assert_eq!(words("42"), [0x8000, 42]);
    assert_eq!(words("-12345.67"), [0xA101, 1, 2345, 6700]);
    assert_eq!(words("100000000"), [0x8002, 1]);
    assert_eq!(words("1e8"), [0x8002, 1]);
    assert_eq!(words("0000000000000000000000042"), [0x8000, 42]);
    assert_eq!(words("0.00123"), [0x8000 | 5 << 7 | 0x7F, 12, 3000]);
    assert_eq!(words("1e-8"), [0x8000 | 8 << 7 | 0x7E, 1]);
}

#[test]
fn the_long_header_comes_with_large_scales_and_weights() {
    assert_eq!(words("1e256"), [0, 64, 1]);
    assert_eq!(words("-1e-64"), [0x4040, -16i16 as u16, 1]);
    assert_eq!(words("1e255")[0], 0x803F);
    assert_eq!(printed("7.5", typmod(100, 70)), format!("7.5{}", "0".repeat(69)));
}

#[test]
fn special_values_have_two_bytes() {
    assert_eq!(words(" nAn "), [0xC000]);
    assert_eq!(words("+inf"), [0xD000]);
    assert_eq!(words("-Infinity"), [0xF000]);
    assert_eq!(printed("NaN", typmod(3, 0)), "NaN");
    assert_eq!(printed("inf", typmod(3, 0)), "numeric field overflow");
}

#[test]
fn a_type_modifier_rounds_half_away_from_zero() {
    assert_eq!(printed("1.005", typmod(5, 2)), "1.01");
    assert_eq!(printed("-1.0049", typmod(5, 2)), "-1.00");
    assert_eq!(printed("999.995", typmod(5, 2)), "numeric field overflow");
    assert_eq!(printed("999.994999999999999999999", typmod(5, 2)), "999.99");
    assert_eq!(printed("99995", typmod(2, -3)), "numeric field overflow");
    assert_eq!(printed("98765", typmod(2, -3)), "99000");
    assert_eq!(printed("499", typmod(2, -3)), "0");
    assert_eq!(printed("0.00499", typmod(2, 4)), "0.0050");
    assert_eq!(printed("0.0099499999999999999999999", typmod(2, 4)), "0.0099");
    assert_eq!(printed("0.01", typmod(2, 4)), "numeric field overflow");
    assert_eq!(printed("99999999999999999999.5", typmod(21, 0)), "100000000000000000000");
}

#[test]
fn what_no_numeric_can_hold_overflows_the_format() {
    assert_eq!(printed("1e131071", -1).len(), 131_072);
    for text in ["1e131072", "1e-16384", "0e-16384", "1e2147483647"] {
        assert_eq!(printed(text, -1), "value overflows numeric format", "{text}");
    }
    assert_eq!(printed("0e131072", -1), "0");
    let long = format!("0x{}", "f".repeat(110_000));
    assert_eq!(printed(&long, -1), "value overflows numeric format");
}

#[test]
fn other_bases_and_underscores_came_with_16() {
    assert_eq!(printed("0xffffffffffffffffffffffff", -1), "79228162514264337593543950335");
    assert_eq!(printed(" -0b1_01", -1), "-5");
    assert_eq!(printed("0o_17", typmod(4, 1)), "15.0");
    assert_eq!(printed("1_000.000_5e1_0", -1), "10000005000000");
    for text in ["_1", "1_", "1_.5", "1._5", "1.5_", "1e_5", "1e5_", "0x", "0x1_", "1e 5"] {
        let message = format!("invalid input syntax for type numeric: \"{text}\"");
        assert_eq!(refused(read_numeric, text), message);
    }
    assert!(refused(read_numeric_before_16, "1_0").starts_with("invalid"));
    assert!(refused(read_numeric_before_16, "0x1").starts_with("invalid"));
    let mut out = Vec::new();
    read_numeric_before_16(b"1e +5", -1, &mut out).unwrap();
    assert_eq!(out, stored("1e5", -1).unwrap());
}

#[test]
fn other_texts_are_no_numbers() {
    for text in ["", " ", ".", "-", "+-1", "1..2", "1e", "1e+", "1 2", "+NaN", "infin", "1x"] {
        let message = format!("invalid input syntax for type numeric: \"{text}\"");
        assert_eq!(refused(read_numeric, text), message);
        assert_eq!(refused(read_numeric_before_16, text), message);
    }
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(text in "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,70})?") {
        let value = printed(&text, -1);
        if text.bytes().any(|b| matches!(b, b'1'..=b'9')) {
            prop_assert_eq!(value, text);
        } else {
            prop_assert_eq!(value, text.trim_start_matches('-'));
        }
    }

    /// The quick way never says anything else than the slow one.
    #[test]
    fn both_ways_agree(
        text in "-?[0-9]{0,10}\\.?[0-9]{0,10}",
        precision in 1i32..20,
        scale in -5i32..25,
        modified: bool,
    ) {
        let typmod = Typmod::parse(if modified { typmod(precision, scale) } else { -1 });
        let (mut quick, mut slow) = (Vec::new(), Vec::new());
        if plain(text.as_bytes(), typmod, &mut quick).is_some() {
            let done = slowly(text.as_bytes(), typmod, Syntax::Extended, &mut slow);
            prop_assert!(done.is_ok());
            prop_assert_eq!(&quick, &slow);
        } else {
            prop_assert!(quick.is_empty());
        }
    }
}
