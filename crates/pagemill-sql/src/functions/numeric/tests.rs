//! Operations whose results a server of PostgreSQL 15 gave: random numbers, those of few digits and of many, and the special
//! values.
//!
//! `tests/data/numeric_15.tsv` has operation, operands and result; an error as its SQLSTATE and words. Another file of the
//! same form, from a server of any version, is named by `PAGEMILL_NUMERIC_RESULTS`, with the version before a colon.

use pagemill_types::input::numeric::read_numeric;
use pagemill_types::numeric::write_numeric;

use super::arithmetic::{self, Modifier};
use super::value::{Integer, Number, Value};
use super::{decimal, decimal_of_payload, keys, powers, write_decimal};
use crate::error::StatementError;

fn payload(text: &str) -> Vec<u8> {
    let mut payload = Vec::new();
    read_numeric(text.as_bytes(), -1, &mut payload).expect(text);
    payload
}

fn value(text: &str) -> Value {
    Value::parse(&payload(text)).expect(text)
}

fn text(value: &Value) -> Result<String, StatementError> {
    let mut text = Vec::new();
    write_numeric(&value.payload()?, &mut text).expect("a payload of ours is whole");
    Ok(String::from_utf8(text).expect("digits"))
}

fn places(value: &Value, of: impl Fn(&Number) -> u32) -> String {
    match value {
        Value::Finite(number) => of(number).to_string(),
        _ => "NULL".to_owned(),
    }
}

fn key(text: &str) -> Vec<u8> {
    let mut key = Vec::new();
    keys::put_key(&payload(text), &mut key).expect("a payload is whole");
    key
}

fn compute(operation: &str, a: &str, b: &str, major: u32) -> Result<String, StatementError> {
    let two = |of: fn(&Value, &Value) -> Result<Value, StatementError>| {
        of(&value(a), &value(b)).and_then(|found| text(&found))
    };
    let one = |of: fn(&Value) -> Value| text(&of(&value(a)));
    let to = || b.parse::<i32>().expect("a number of places");
    match operation {
        "+" => two(arithmetic::add),
        "-" => two(arithmetic::subtract),
        "*" => two(arithmetic::multiply),
        "/" => two(arithmetic::divide),
        "%" => two(arithmetic::modulo),
        "div" => two(arithmetic::divide_whole),
        "gcd" => two(arithmetic::greatest_divisor),
        "lcm" => two(arithmetic::least_multiple),
        "cmp" => Ok((key(a).cmp(&key(b)) as i8).to_string()),
        "round" => text(&arithmetic::round(&value(a), to())),
        "trunc" => text(&arithmetic::truncate(&value(a), to())),
        "power" => text(&powers::power(&value(a), &value(b), major)?),
        "exp" => text(&powers::exponential_of(&value(a))?),
        "ln" => text(&powers::natural_logarithm(&value(a))?),
        "log" => two(powers::logarithm_of_base),
        "sqrt" => text(&arithmetic::square_root(&value(a), major)?),
        "ceil" => one(arithmetic::ceiling),
        "floor" => one(arithmetic::floor),
        "sign" => one(arithmetic::signum),
        "abs" => one(arithmetic::absolute),
        "neg" => one(arithmetic::negate),
        "trim_scale" => one(arithmetic::trim_scale),
        "scale" => Ok(places(&value(a), |number| number.dscale)),
        "min_scale" => Ok(places(&value(a), arithmetic::min_scale)),
        "factorial" => text(&arithmetic::factorial(a.parse().expect("an integer"))?),
        "typmod" => {
            let (precision, scale) = b.split_once(',').expect("precision and scale");
            let modifier = Modifier {
                precision: precision.parse().expect("a precision"),
                scale: scale.parse().expect("a scale"),
            };
            text(&modifier.apply(&value(a))?)
        }
        other => crate::functions::numbers::tests::compute(other, a),
    }
}

fn check(lines: &str, major: u32) -> usize {
    let (mut count, mut wrong) = (0, Vec::new());
    for line in lines.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let &[operation, a, b, expected] = &fields[..] else { panic!("{line} has four fields") };
        // A type that 14 does not have is refused before there is a value.
        if expected.starts_with("E 22023 NUMERIC scale") {
            continue;
        }
        let found = compute(operation, a, b, major)
            .unwrap_or_else(|error| format!("E {} {}", error.state.0, error.message));
        if found != expected {
            wrong.push(format!("{operation} {a} {b}: {found}, not {expected}"));
        }
        count += 1;
    }
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
    count
}

#[test]
fn operations_give_what_the_server_gives() {
    assert_eq!(check(include_str!("../../../tests/data/numeric_15.tsv"), 15), 1_700);
}

#[test]
#[ignore = "needs results of a server"]
fn operations_give_what_another_server_gives() {
    let named = std::env::var("PAGEMILL_NUMERIC_RESULTS")
        .expect("PAGEMILL_NUMERIC_RESULTS is VERSION:FILE");
    let (major, file) = named.split_once(':').expect("VERSION:FILE");
    let lines = std::fs::read_to_string(file).expect("the file can be read");
    assert!(check(&lines, major.parse().expect("a version")) > 0);
}

#[test]
fn decimals_are_printed_with_all_their_places() {
    let print = |value, scale| {
        let mut out = Vec::new();
        write_decimal(value, scale, &mut out);
        String::from_utf8(out).expect("digits")
    };
    assert_eq!(print(0, 0), "0");
    assert_eq!(print(0, 2), "0.00");
    assert_eq!(print(-5, 2), "-0.05");
    assert_eq!(print(12_345, 2), "123.45");
    assert_eq!(print(-12_345, 5), "-0.12345");
    assert_eq!(print(i128::MIN, 0), i128::MIN.to_string());
}

#[test]
fn a_payload_is_a_decimal_only_if_it_has_no_more_places() {
    assert_eq!(decimal_of_payload(&payload("12.5"), 2), Ok(1250));
    assert_eq!(decimal_of_payload(&payload("-0.01"), 2), Ok(-1));
    assert!(decimal_of_payload(&payload("12.345"), 2).is_err());
    assert!(decimal_of_payload(&payload("NaN"), 2).is_err());
}

#[test]
fn halves_are_rounded_away_from_zero() {
    let rounded: Vec<i128> =
        [149, 150, 151, -149, -150, 0].map(|x| decimal::half_away(x, 100)).into();
    assert_eq!(rounded, [1, 2, 2, -1, -2, 0]);
    assert_eq!(decimal::half_away(i128::MAX, 1), i128::MAX);
}

#[test]
fn numbers_next_to_128_bits_are_whole() {
    for number in
        ["170141183460469231731687303715884105727", "170141183460469231731687303715884105728"]
    {
        for sign in ["", "-"] {
            let text_of = format!("{sign}{number}");
            assert_eq!(text(&value(&text_of)), Ok(text_of.clone()));
            let (digits, _, _) = match value(&text_of) {
                Value::Finite(number) => number.integer.digits(),
                other => panic!("{other:?}"),
            };
            assert_eq!(digits, 39);
        }
    }
    let largest = Integer::Small(i128::MAX);
    assert_eq!(largest.plus(&Integer::Small(1)).minus(&Integer::Small(1)), largest);
}
