//! Tests of the extension as a whole: texts, payloads and functions, with values taken from servers of versions 15 and 18.
//!
//! Invariant: nothing here reads a file or asks a server; what a server said is written down.

use proptest::prelude::*;

use super::labels::UnicodeLetters;
use super::*;
use crate::ScalarWriter;
use crate::extension::call::{Argument, CallError, Value};
use crate::extension::function;
use crate::input::ScalarReader;
use crate::printed;

fn read(reader: ScalarReader, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    reader(text.as_bytes(), -1, &mut out).unwrap();
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn call(symbol: &str, arguments: &[Argument<'_>]) -> Result<Value, CallError> {
    let found = function(b"$libdir/ltree", symbol.as_bytes()).unwrap();
    assert!(found.is_strict);
    (found.call)(&UnicodeLetters, arguments)
}

/// An array of the extension's values.
fn array(elements: &[Option<&[u8]>]) -> Vec<u8> {
    let count = elements.len() as u32;
    let mut out = [1u32, 0, 16_999, count, 1].map(u32::to_le_bytes).concat();
    if elements.contains(&None) {
        let bits = elements.iter().rev().fold(0u8, |bits, one| bits << 1 | u8::from(one.is_some()));
        out[4..8].copy_from_slice(&32u32.to_le_bytes());
        out.push(bits);
    }
    out.resize((out.len() + 4).next_multiple_of(8) - 4, 0);
    for one in elements.iter().flatten() {
        out.extend_from_slice(&((one.len() as u32 + 4) << 2).to_le_bytes());
        out.extend_from_slice(one);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out
}

/// What a function makes of a path and another value, as a text.
fn of_two(symbol: &str, first: &[u8], second: &[u8]) -> String {
    match call(symbol, &[Argument::Payload(first), Argument::Payload(second)]) {
        Ok(Value::Bool(truth)) => truth.to_string(),
        Ok(Value::Int4(number)) => number.to_string(),
        Ok(Value::Payload(payload)) => printed(write_ltree, &payload),
        Ok(other) => format!("{other:?}"),
        Err(error) => error.message,
    }
}

#[test]
fn payloads_are_the_servers() {
    let ltree = "020000000300546f700000000700536369656e636500000000000000";
    assert_eq!(hex(&read(read_ltree::<17>, "Top.Science")), ltree);
    assert_eq!(hex(&read(read_ltree::<17>, "")), "00000000");
    let lquery = "0200000000000000000000002000010001000000000000000000000043beb7e8010001610000000000000000\
                  20000000010000000000000000000000f9efbe71010000620000000000000000";
    assert_eq!(hex(&read(read_lquery::<17>, "a*.b")), lquery);
    let ltxtquery = "0300000003000200260000000000000002000000f9efbe7100010200020000\
                     0043beb7e80001000061006200";
    assert_eq!(hex(&read(read_ltxtquery::<17>, "a&b")), ltxtquery);
}

#[test]
fn checksums_fold_letters_since_version_18() {
    let sum = |rules| {
        let labels = Labels { letters: &UnicodeLetters, rules };
        hex(&ltxtquery_input("É".as_bytes(), labels).unwrap()[8..12])
    };
    assert_eq!(sum(LabelRules::BEFORE_18), "f6ad6a35");
    assert_eq!(sum(LabelRules::SINCE_18), "3e8d040e");
}

#[test]
fn texts_come_back_as_the_server_prints_them() {
    let again = |reader, writer: ScalarWriter, text| printed(writer, &read(reader, text));
    for text in ["", "a", "Top.Science", "é.中_"] {
        assert_eq!(again(read_ltree::<17>, write_ltree, text), text);
    }
    let query = |text| again(read_lquery::<17>, write_lquery, text);
    for (text, wanted) in [
        ("*{,}.a{,}.*{0,}", "*.a{,}.*"),
        ("!a|b@*%{2,2}", "!a|b%@*{2}"),
        ("*{007,0010}.*{3,}.a{,4}", "*{7,10}.*{3,}.a{,4}"),
    ] {
        assert_eq!(query(text), wanted);
    }
    let words = |text| again(read_ltxtquery::<17>, write_ltxtquery, text);
    for (text, wanted) in [
        ("a|b|c&d|!e", "( ( a | b ) | c & d ) | !e"),
        ("!(a&b)|c@*%", "!( a & b ) | c%@*"),
        ("!!a", "!( !a )"),
        (" ( a ) ", "a"),
    ] {
        assert_eq!(words(text), wanted);
    }
}

#[test]
fn what_is_wrong_is_told_in_the_servers_words() {
    let labels = Labels { letters: &UnicodeLetters, rules: LabelRules::BEFORE_16 };
    let told = |result: Result<Vec<u8>, CallError>| {
        let error = result.unwrap_err();
        format!("{} {} {}", error.state, error.message, error.detail.unwrap_or_default())
    };
    let path = |text: &str| told(ltree_input(text.as_bytes(), labels));
    assert_eq!(path("é..b"), "42601 ltree syntax error at character 3 ");
    assert_eq!(path("a."), "42601 ltree syntax error Unexpected end of input.");
    assert_eq!(path("a-b"), "42601 ltree syntax error at character 2 ");
    let query = |text: &str| told(lquery_input(text.as_bytes(), labels));
    let syntax = "42601 lquery syntax error";
    assert_eq!(query("!@*"), format!("{syntax} at character 2 Empty labels are not allowed."));
    assert_eq!(query("a@b"), format!("{syntax} at character 3 "));
    assert_eq!(query("a{1,"), format!("{syntax} Unexpected end of input."));
    let low = "Low limit (3) is greater than high limit (2), at character 5.";
    assert_eq!(query("a{3,2}"), format!("{syntax} {low}"));
    let high = "High limit (65536) exceeds the maximum allowed (65535), at character 5.";
    assert_eq!(query("*{1,65536}"), format!("54000 lquery syntax error {high}"));
    let words = |text: &str| told(ltxtquery_input(text.as_bytes(), labels));
    assert_eq!(words(""), "42601 operand syntax error ");
    assert_eq!(words("a)"), "42601 syntax error ");
    assert_eq!(words("a@b"), "42601 modifiers syntax error ");
    assert_eq!(words(&"a".repeat(256)), "22023 operand is too long ");
    assert_eq!(words(&format!("{}a", "!".repeat(33))), "XX000 stack too short ");
}

#[test]
fn paths_and_queries_match_as_the_server_says() {
    for (path, query, wanted) in [
        ("a.b.c.d", "a.*{2}.d", true),
        ("a.b.c.d", "a.*{,1}.d", false),
        ("a.b.c", "*.!b.*", true),
        ("a.x.c", "!x{3}", false),
        ("a.a.b", "a{1,2}.b", true),
        ("", "a{,}", true),
        ("QWER_GY", "q_t%@*", false),
        ("QWER_TY", "q_t%@*", true),
        ("anything", "_%", true),
        ("É.b", "é@.B@", true),
    ] {
        let (path, query) = (read(read_ltree::<17>, path), read(read_lquery::<17>, query));
        assert_eq!(of_two("ltq_regex", &path, &query), wanted.to_string());
        assert_eq!(of_two("ltq_rregex", &query, &path), wanted.to_string());
        let queries = array(&[Some(&query)]);
        assert_eq!(of_two("lt_q_regex", &path, &queries), wanted.to_string());
        assert_eq!(of_two("_lt_q_rregex", &queries, &array(&[Some(&path)])), wanted.to_string());
    }
    for (path, words, wanted) in
        [("a.b", "a & !c", true), ("a.b", "c | !a", false), ("Ab_c", "ab%@ & C%@", true)]
    {
        let (path, words) = (read(read_ltree::<17>, path), read(read_ltxtquery::<17>, words));
        assert_eq!(of_two("ltxtq_exec", &path, &words), wanted.to_string());
        assert_eq!(of_two("_ltxtq_rexec", &words, &array(&[Some(&path)])), wanted.to_string());
    }
}

#[test]
fn parts_of_paths_are_the_servers() {
    let path = |text| read(read_ltree::<17>, text);
    let sub = |text, start, length| {
        let payload = path(text);
        let mut arguments = vec![Argument::Payload(&payload), Argument::Int4(start)];
        arguments.extend(Option::<i32>::map(length, Argument::Int4));
        call("subpath", &arguments)
    };
    let text = |value: Result<Value, CallError>| match value {
        Ok(Value::Payload(payload)) => printed(write_ltree, &payload),
        other => format!("{other:?}"),
    };
    assert_eq!(text(sub("a.b.c.d", -5, None)), "d");
    assert_eq!(text(sub("a.b.c.d", 0, Some(-1))), "a.b.c");
    assert_eq!(sub("a", 1, None).unwrap_err().message, "invalid positions");
    let Ok(Value::Payload(none)) = sub("a.b.c", 1, Some(0)) else { panic!("no path") };
    assert_eq!(of_two("ltree_eq", &none, &path("")), "true");
    assert_eq!(of_two("ltree_addltree", &none, &path("x")), "a");
    assert_eq!(order_key(&none).unwrap(), order_key(&path("")).unwrap());
    assert_eq!(of_two("ltree_index", &path("a.b.c.a.b"), &path("a.b")), "0");
    assert_eq!(of_two("lca", &path("a.b.c"), &path("a.b")), "a");
    assert_eq!(of_two("lca", &path("a"), &path("")), "Null");
}

#[test]
fn hashes_are_those_of_version_18() {
    let hash = |text| call("hash_ltree", &[Argument::Payload(&read(read_ltree::<17>, text))]);
    let wide = |text, seed| {
        let path = read(read_ltree::<17>, text);
        call("hash_ltree_extended", &[Argument::Payload(&path), Argument::Int8(seed)])
    };
    assert_eq!(hash(""), Ok(Value::Int4(1)));
    assert_eq!(hash("Top.Science"), Ok(Value::Int4(1_200_957_294)));
    assert_eq!(wide("", -3), Ok(Value::Int8(-2)));
    assert_eq!(wide("Top.Science", 0), Ok(Value::Int8(-5_428_344_108_343_810_194)));
    assert_eq!(wide("Top.Science", 42), Ok(Value::Int8(2_817_858_311_615_969_321)));
}

#[test]
fn arrays_have_one_dimension_and_no_nulls() {
    let (a, ab) = (read(read_ltree::<17>, "a"), read(read_ltree::<17>, "a.b"));
    let both = array(&[Some(&ab), Some(&a)]);
    assert_eq!(of_two("_ltree_extract_isparent", &both, &ab), "a.b");
    assert_eq!(of_two("_ltree_extract_risparent", &both, &a), "a.b");
    assert_eq!(of_two("_ltree_r_isparent", &a, &both), "true");
    let holed = array(&[Some(&a), None]);
    assert_eq!(of_two("_ltree_isparent", &holed, &a), "array must not contain nulls");
    let Ok(Value::Payload(top)) = call("_lca", &[Argument::Payload(&both)]) else {
        panic!("no path")
    };
    assert_eq!(printed(write_ltree, &top), "");
    let mut square = [2u32, 0, 16_999, 1, 1, 1, 1, 0].map(u32::to_le_bytes).concat();
    square.truncate(28);
    square.extend_from_slice(&array(&[Some(&a)])[20..]);
    assert_eq!(of_two("_ltree_isparent", &square, &a), "array must be one-dimensional");
}

/// Reads, prints, reads again: the payload is to stay.
fn is_stable(reader: ScalarReader, writer: ScalarWriter, text: &str) -> bool {
    let mut first = Vec::new();
    if reader(text.as_bytes(), -1, &mut first).is_err() {
        return true;
    }
    let printed = printed(writer, &first);
    // A second reading may drop parentheses' traces, so texts are compared.
    let mut second = Vec::new();
    reader(printed.as_bytes(), -1, &mut second).is_ok() && self::printed(writer, &second) == printed
}

proptest! {
    #[test]
    fn texts_are_stable(
        path in "[ab_é.]{0,12}", query in "[abé.|!{},*@%12_]{0,14}", words in "[abé &|!()*@%_]{0,16}",
    ) {
        prop_assert!(is_stable(read_ltree::<17>, write_ltree, &path));
        prop_assert!(is_stable(read_lquery::<17>, write_lquery, &query));
        prop_assert!(is_stable(read_ltxtquery::<17>, write_ltxtquery, &words));
    }

    #[test]
    fn keys_order_as_the_comparison_does(one in "(a|b|ab|_){0,1}(\\.(a|b|ab)){0,4}", other in "(a|b|ab){0,1}(\\.(a|b|ab)){0,4}") {
        let path = |text: &str| read(read_ltree::<17>, text.trim_start_matches('.'));
        let (one, other) = (path(&one), path(&other));
        let compared = path::Path::parse(&one).unwrap().compare(&path::Path::parse(&other).unwrap());
        prop_assert_eq!(order_key(&one).unwrap().cmp(&order_key(&other).unwrap()), compared.cmp(&0));
        prop_assert_eq!(compared == 0, one == other);
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        text in prop::collection::vec(any::<u8>(), 0..60),
        one in prop::collection::vec(any::<u8>(), 0..80),
        other in prop::collection::vec(0u8..4, 0..90),
        number: i32,
    ) {
        for reader in [read_ltree::<17>, read_lquery::<17>, read_ltxtquery::<17>] {
            let _ = reader(&text, -1, &mut Vec::new());
        }
        let _ = order_key(&one);
        let (one, other) = (Argument::Payload(&one), Argument::Payload(&other));
        let number = Argument::Int4(number);
        for function in FUNCTIONS {
            for arguments in [&[one, other][..], &[other, one], &[other, other], &[other, number],
                &[other, number, number], &[one], &[], &[other, Argument::Text("a.b")], &[other, other, number]] {
                let _ = (function.call)(&UnicodeLetters, arguments);
            }
        }
    }

    #[test]
    fn damaged_values_never_panic(
        path in "(a|bc){1}(\\.(a|bc)){0,3}", query in "(a|b@)(\\.(\\*|a\\{1,2\\})){0,3}", at: prop::sample::Index, byte: u8,
    ) {
        let words = query.replace('.', "&!").replace(['{', '}', ',', '1', '2'], "").replace("!*", "c");
        for (reader, writer, text) in [
            (read_ltree::<17> as ScalarReader, write_ltree as ScalarWriter, &path),
            (read_lquery::<17>, write_lquery, &query),
            (read_ltxtquery::<17>, write_ltxtquery, &words),
        ] {
            let mut payload = read(reader, text);
            let place = at.index(payload.len());
            payload[place] = byte;
            let _ = writer(&payload, &mut Vec::new());
            let whole = read(read_ltree::<17>, &path);
            for symbol in ["ltq_regex", "ltxtq_exec", "ltree_cmp", "ltree_index"] {
                let _ = call(symbol, &[Argument::Payload(&whole), Argument::Payload(&payload)]);
            }
            let _ = call("ltree_addltree", &[Argument::Payload(&payload), Argument::Payload(&whole)]);
            let _ = call("subpath", &[Argument::Payload(&payload), Argument::Int4(1)]);
        }
    }
}
