//! Tests of `hstore`: texts, payloads and results of a PostgreSQL 15 server, and properties.
//!
//! Invariant: every known value was printed by the server; payloads were seen through a cast to `bytea`.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;
use crate::extension::arrays::Array;
use crate::extension::call::Letters;
use crate::input::ScalarReader;
use crate::known_value_tests::payload;
use crate::printed;

struct NoLetters;

impl Letters for NoLetters {
    fn major(&self) -> u32 {
        17
    }

    fn lower(&self, text: &str) -> String {
        text.to_lowercase()
    }

    fn is_alphanumeric(&self, character: char) -> bool {
        character.is_alphanumeric()
    }
}

fn read_by(read: ScalarReader, text: &str) -> std::result::Result<Vec<u8>, String> {
    let mut out = Vec::new();
    read(text.as_bytes(), -1, &mut out).map(|()| out).map_err(|error| error.message)
}

fn of(text: &str) -> Vec<u8> {
    read_by(read_hstore, text).unwrap()
}

fn shown(text: &str) -> String {
    read_by(read_hstore, text).map_or_else(|message| message, |made| printed(write_hstore, &made))
}

fn call(symbol: &str, arguments: &[Argument<'_>]) -> Called {
    let function = FUNCTIONS.iter().find(|one| one.symbol == symbol).unwrap();
    (function.call)(&NoLetters, arguments)
}

#[test]
fn pairs_print_with_quotes() {
    let whole = payload("02000080030000800400000005000000050000406122623163");
    assert_eq!(printed(write_hstore, &whole), r#""a\"b"=>"1", "c"=>NULL"#);
    assert_eq!(printed(write_hstore, &payload("00000080")), "");
    assert!(write_hstore(&whole[..whole.len() - 2], &mut Vec::new()).is_err());
    assert!(write_hstore(&2u32.to_le_bytes(), &mut Vec::new()).is_err());
}

#[test]
fn texts_are_read_as_the_server_reads_them() {
    for (text, expected) in [
        ("", ""),
        (" ", ""),
        ("a=>1,", r#""a"=>"1""#),
        ("a=>1, a=>2", r#""a"=>"1""#),
        ("bb=>1,a=>NuLl,c=>\"NULL\"", r#""a"=>NULL, "c"=>"NULL", "bb"=>"1""#),
        (r"a=>\n\u\l\l", r#""a"=>NULL"#),
        (r#"a\=b=>c\"d"#, r#""a=b"=>"c\"d""#),
        ("a=>,b=>1", r#""a"=>",b=>1""#),
        ("a=>b=c", r#""a"=>"b=c""#),
        ("null=>\"\"", r#""null"=>"""#),
        (",=>1", r#"","=>"1""#),
        ("a\x0b=>1", r#""a\x0b"=>"1""#),
        ("a", "Unexpected end of string"),
        ("a=", "Unexpected end of string"),
        ("a=>", "Unexpected end of string"),
        (r"a=>\", "Unexpected end of string"),
        (r#""a"#, "Unexpected end of string"),
        ("=>1", "Syntax error near \"=\" at position 0"),
        ("a =1", "Syntax error near \"1\" at position 3"),
        ("a b", "Syntax error near \"b\" at position 2"),
        ("a=>1 é", "Syntax error near \"é\" at position 5"),
        ("a=>\"1\"2", "Syntax error near \"2\" at position 6"),
    ] {
        assert_eq!(shown(text), expected.replace("\\x0b", "\x0b"), "{text}");
    }
}

/// The words of PostgreSQL 16 to 18, from their source.
#[test]
fn newer_servers_have_other_words_and_one_space_more() {
    let refused = |text| read_by(read_hstore_16, text).unwrap_err();
    assert_eq!(refused("a"), "syntax error in hstore: unexpected end of string");
    assert_eq!(refused("a é"), "syntax error in hstore, near \"é\" at position 2");
    assert_eq!(read_by(read_hstore_16, "a\x0b=>1"), Ok(of("a=>1")));
}

/// Payloads of before PostgreSQL 9.0, as a PostgreSQL 15 server understands them.
#[test]
fn the_old_layout_is_brought_into_the_new_one() {
    let old = payload("0200000001000100000000000100040005000000613162");
    assert_eq!(printed(write_hstore, &old), r#""a"=>"1", "b"=>NULL"#);
    let today = of("a=>1,b=>NULL");
    assert_eq!(compare(&old, &today).unwrap(), Ordering::Equal);
    assert_eq!(order_key(&old).unwrap(), order_key(&today).unwrap());
    let hash = |payload: &[u8]| call("hstore_hash", &[Argument::Payload(payload)]);
    assert_eq!(hash(&old), hash(&today));
    let diag = |payload: &[u8]| call("hstore_version_diag", &[Argument::Payload(payload)]);
    assert_eq!(diag(&old), Ok(Value::Int4(20)));
    assert_eq!(diag(&today), Ok(Value::Int4(2)));
    assert_eq!(diag(&[0; 4]), Ok(Value::Int4(22)));
    // A prerelease of 9.0 wrote the new layout without its flag.
    let mut prerelease = today.clone();
    prerelease[3] = 0;
    assert_eq!(printed(write_hstore, &prerelease), r#""a"=>"1", "b"=>NULL"#);
    assert_eq!(diag(&prerelease), Ok(Value::Int4(2)));
}

#[test]
fn results_are_those_of_the_server() {
    let (value, other) = (of("a=>1,b=>NULL,cc=>t"), of("a=>1,b=>2"));
    let both = [Argument::Payload(&value), Argument::Payload(&other)];
    let text = |called: Called| match called {
        Ok(Value::Payload(payload)) => printed(write_hstore, &payload),
        other => format!("{other:?}"),
    };
    let joined = r#""a"=>"1", "b"=>"2", "cc"=>"t""#;
    assert_eq!(text(call("hstore_concat", &both)), joined);
    assert_eq!(text(call("hstore_delete_hstore", &both)), r#""b"=>NULL, "cc"=>"t""#);
    let key = |key| [Argument::Payload(&value), Argument::Text(key)];
    assert_eq!(text(call("delete", &key("a"))), r#""b"=>NULL, "cc"=>"t""#);
    assert_eq!(call("hstore_fetchval", &key("cc")), Ok(Value::Text("t".to_owned())));
    assert_eq!(call("hstore_fetchval", &key("b")), Ok(Value::Null));
    assert_eq!(call("hstore_exists", &key("b")), Ok(Value::Bool(true)));
    assert_eq!(call("hstore_defined", &key("b")), Ok(Value::Bool(false)));
    assert_eq!(call("hstore_contains", &both), Ok(Value::Bool(false)));
    assert_eq!(call("hstore_cmp", &both), Ok(Value::Int4(1)));
    let json = |symbol, text: &str| match call(symbol, &[Argument::Payload(&of(text))]) {
        Ok(Value::Payload(json)) => String::from_utf8(json).unwrap(),
        other => format!("{other:?}"),
    };
    let values = "a=>1.50,b=>NULL,c=>t,d=>01,e=>-0e+1,f=>\"x\\\"\"";
    let strings = r#"{"a": "1.50", "b": null, "c": "t", "d": "01", "e": "-0e+1", "f": "x\""}"#;
    assert_eq!(json("hstore_to_json", values), strings);
    let loose = r#"{"a": 1.50, "b": null, "c": true, "d": "01", "e": -0e+1, "f": "x\""}"#;
    assert_eq!(json("hstore_to_json_loose", values), loose);
}

#[test]
fn other_arguments_are_an_error() {
    for function in FUNCTIONS {
        let call = |arguments: &[Argument<'_>]| (function.call)(&NoLetters, arguments);
        assert!(call(&[Argument::Bool(true), Argument::Bool(true)]).is_err());
        assert!(call(&[]).is_err());
        let is_damaged = call(&[Argument::Payload(b"\x01"); 2]).is_err();
        assert!(is_damaged || function.symbol == "hstore_version_diag", "{}", function.symbol);
    }
}

fn word() -> impl Strategy<Value = String> {
    "[a-c0 \"\\\\,=>né\u{1}]{0,6}"
}

fn hstore_text() -> impl Strategy<Value = String> {
    prop::collection::vec((word(), prop::option::of(word())), 0..12).prop_map(|pairs| {
        let quoted = |text: &str| format!("{text:?}").replace("\\u{1}", "\u{1}");
        let value = |value: Option<String>| value.map_or("NULL".to_owned(), |text| quoted(&text));
        pairs.into_iter().map(|(key, text)| format!("{}=>{},", quoted(&key), value(text))).collect()
    })
}

proptest! {
    #[test]
    fn what_is_printed_is_read_again(text in hstore_text()) {
        let made = of(&text);
        prop_assert_eq!(&of(&printed(write_hstore, &made)), &made);
        prop_assert_eq!(&read_by(read_hstore_16, &text), &Ok(made.clone()));
        let pairs: Vec<Pair<'_>> = pairs(&made).unwrap().collect::<Result<_>>().unwrap();
        prop_assert_eq!(&payload_of(&pairs).unwrap(), &made);
        for (key, value) in pairs {
            prop_assert_eq!(fetch(&made, key).unwrap(), value);
        }
    }

    #[test]
    fn arrays_and_pairs_are_the_same(text in hstore_text()) {
        let made = of(&text);
        for symbol in ["hstore_to_array", "hstore_to_matrix"] {
            let Ok(Value::Payload(array)) = call(symbol, &[Argument::Payload(&made)]) else { panic!() };
            let back = call("hstore_from_array", &[Argument::Payload(&array)]);
            prop_assert_eq!(back, Ok(Value::Payload(made.clone())));
        }
    }

    #[test]
    fn keys_have_the_order_of_values(texts in [hstore_text(), hstore_text()]) {
        let [a, b] = texts.map(|text| of(&text));
        let keys = order_key(&a).unwrap().cmp(&order_key(&b).unwrap());
        prop_assert_eq!(keys, compare(&a, &b).unwrap());
        prop_assert_eq!(keys.is_eq(), a == b);
    }

    #[test]
    fn arbitrary_texts_and_bytes_do_not_panic(
        text in "[ab \"\\\\,=>né\u{1}]{0,20}", bytes in prop::collection::vec(any::<u8>(), 0..60),
        words in prop::collection::vec(0u32..6, 0..12), flags in any::<[bool; 2]>(),
    ) {
        let _ = shown(&text);
        let mut made: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        for (at, flag) in [3, 7].into_iter().zip(flags) {
            if let Some(byte) = made.get_mut(at).filter(|_| flag) {
                *byte = 0x80;
            }
        }
        for value in [&bytes, &made, &[&made[..], &bytes].concat()] {
            let _ = read_hstore(value, -1, &mut Vec::new());
            let _ = order_key(value);
            let array = Array::of_one_dimension(vec![Some(value)]).texts_payload();
            for function in FUNCTIONS {
                let first = Argument::Payload(value);
                for second in [first, Argument::Text("a"), Argument::Int8(1), Argument::Payload(&array)] {
                    let _ = (function.call)(&NoLetters, &[first, second]);
                }
            }
        }
    }
}
