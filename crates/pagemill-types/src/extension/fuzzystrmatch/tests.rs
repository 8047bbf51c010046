//! Tests of fuzzystrmatch's functions, against values of a PostgreSQL 15 server.
//!
//! Invariant: no text and no number panics.

use proptest::prelude::*;

use super::super::call::Argument;
use super::super::extension_tests::called_in as called;
use super::*;

fn number(symbol: &str, texts: [&str; 2], numbers: &[i32]) -> Result<i32, CallError> {
    let texts = texts.map(Argument::Text).into_iter();
    let arguments: Vec<_> = texts.chain(numbers.iter().map(|one| Argument::Int4(*one))).collect();
    match called("$libdir/fuzzystrmatch", symbol, &arguments)? {
        Value::Int4(number) => Ok(number),
        other => panic!("{other:?}"),
    }
}

fn word(symbol: &str, text: &str) -> String {
    match called("fuzzystrmatch", symbol, &[Argument::Text(text)]) {
        Ok(Value::Text(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn distances_are_those_of_the_server() {
    assert_eq!(number("levenshtein", ["GUMBO", "GAMBOL"], &[]), Ok(2));
    assert_eq!(number("levenshtein", ["", "grün"], &[]), Ok(4));
    assert_eq!(number("levenshtein_with_costs", ["GUMBO", "GAMBOL"], &[2, 1, 1]), Ok(3));
    assert_eq!(number("levenshtein_with_costs", ["kitten", "sitting"], &[-1, 3, 2]), Ok(3));
    assert_eq!(number("levenshtein_less_equal", ["extensive", "exhaustive"], &[2]), Ok(3));
    assert_eq!(number("levenshtein_less_equal", ["extensive", "exhaustive"], &[4]), Ok(4));
    assert_eq!(number("levenshtein_less_equal", ["extensive", "exhaustive"], &[-1]), Ok(4));
    let error =
        number("levenshtein_with_costs", ["aa", "b"], &[1, i32::MAX, i32::MAX]).unwrap_err();
    assert_eq!((error.state, &error.message[..]), ("22003", "levenshtein distance out of range"));
    let costs = &[1, 1, 3, 4];
    assert_eq!(number("levenshtein_less_equal_with_costs", ["ab", "cd"], costs), Ok(4));
}

#[test]
fn long_texts_are_refused_unless_one_is_empty() {
    let long = "ä".repeat(256);
    let error = number("levenshtein", ["a", &long], &[]).unwrap_err();
    let message = "levenshtein argument exceeds maximum length of 255 characters";
    assert_eq!((error.state, &error.message[..]), ("22023", message));
    assert_eq!(number("levenshtein_less_equal", [&long, "a"], &[1]), Err(error));
    assert_eq!(number("levenshtein", ["", &long], &[]), Ok(256));
    assert_eq!(number("levenshtein", [&long[2..], "ä"], &[]), Ok(254));
}

#[test]
fn words_sound_as_the_server_says() {
    for (text, code) in
        [("Anne", "A500"), ("Tymczak", "T522"), ("1 ö", ""), ("a1b", "A000"), ("pf", "P000")]
    {
        assert_eq!(word("soundex", text), code, "{text}");
    }
    assert_eq!(number("difference", ["Anne", "Andrew"], &[]), Ok(2));
    assert_eq!(number("difference", ["", "-"], &[]), Ok(4));
    assert_eq!(number("difference", ["", "a"], &[]), Ok(0));
    for (text, first, second) in
        [("gumbo", "KMP", "KMP"), ("Schmidt", "XMT", "SMT"), ("Wicz", "ATS", "FFX"), ("", "", "")]
    {
        assert_eq!(
            (word("dmetaphone", text), word("dmetaphone_alt", text)),
            (first.into(), second.into())
        );
    }
}

/// Codes of a PostgreSQL 18 server.
#[test]
fn names_have_codes_for_all_ways_to_say_them() {
    let codes = |name| match called("fuzzystrmatch", "daitch_mokotoff", &[Argument::Text(name)]) {
        Ok(Value::Payload(payload)) => {
            let codes = super::super::arrays::texts(&payload).unwrap().present();
            String::from_utf8(codes.join(&b' ')).unwrap()
        }
        other => panic!("{other:?}"),
    };
    for (name, expected) in [
        ("GOLDEN", "583600"),
        ("AUERBACH", "097500 097400"),
        ("LIPSHITZ", "874400"),
        ("Przemyśl", "794680 746800"),
        ("Țąrgu", "369500 395000 469500 495000"),
        ("Jackson", "154600 145460 454600 445460"),
        ("CJC", "550000 540000 545000 450000 400000 440000"),
        ("S-Z-T", "200000"),
        ("Ęę", "600000 000000"),
        ("ROSOCHOWACKSZ", "945745 944745 945754 944754"),
    ] {
        assert_eq!(codes(name), expected, "{name}");
    }
    let nothing = called("fuzzystrmatch", "daitch_mokotoff", &[Argument::Text("1 [")]);
    assert_eq!(nothing, Ok(Value::Null));
}

#[test]
fn metaphones_have_limits() {
    let sounds = |text, most| {
        called("fuzzystrmatch", "metaphone", &[Argument::Text(text), Argument::Int4(most)])
    };
    let word = |text, most| sounds(text, most).unwrap();
    assert_eq!(word("GUMBO", 4), Value::Text("KM".into()));
    assert_eq!(word("fox", 2), Value::Text("FK".into()));
    assert_eq!(word("Schwartz", 9), Value::Text("XWRTS".into()));
    assert_eq!(word("", 0), Value::Text(String::new()));
    let error = |text, most| sounds(text, most).unwrap_err();
    assert_eq!(error("a", 0).state, "2200F");
    assert_eq!(error("a", 256).message, "output exceeds the maximum length of 255 bytes");
    assert_eq!(
        error(&"a".repeat(256), 0).message,
        "argument exceeds the maximum length of 255 bytes"
    );
}

proptest! {
    #[test]
    fn bounds_only_hide_what_is_beyond(left in "[abc]{0,9}", right in "[abc]{0,9}", costs in prop::array::uniform3(0i32..4), bound in 0i32..12) {
        let whole = number("levenshtein_with_costs", [&left, &right], &costs).unwrap();
        let with_bound = [&costs[..], &[bound]].concat();
        let found = number("levenshtein_less_equal_with_costs", [&left, &right], &with_bound).unwrap();
        if !left.is_empty() && !right.is_empty() {
            prop_assert_eq!(found, whole.min(bound + 1));
        }
    }

    #[test]
    fn no_text_and_no_number_panics(left in "[a-zA-Z ÇÑ]{0,12}", right: String, numbers in prop::array::uniform4(any::<i32>())) {
        for (left, right) in [(&left, &right), (&right, &left), (&left, &left)] {
            let arguments = [Argument::Text(left), Argument::Text(right)].into_iter();
            let arguments: Vec<_> = arguments.chain(numbers.map(Argument::Int4)).collect();
            for one in FUNCTIONS {
                let _ = called("fuzzystrmatch", one.symbol, &arguments);
            }
            let _ = called("fuzzystrmatch", "metaphone", &[Argument::Text(left), Argument::Int4(20)]);
        }
    }
}
