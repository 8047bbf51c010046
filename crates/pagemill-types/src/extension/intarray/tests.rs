//! Tests of intarray's functions, against values of a PostgreSQL 15 server.
//!
//! Invariant: what a text is read into prints as a text that is read into the same.

use proptest::prelude::*;

use super::query::{holds, read_query_int, write_query_int};
use super::*;
use crate::extension::extension_tests::called_in as called;
use crate::known_value_tests::payload as hex;
use crate::printed;

fn array(numbers: &[i32]) -> Vec<u8> {
    match list(numbers.to_vec()) {
        Value::Payload(payload) => payload,
        other => panic!("{other:?}"),
    }
}

fn query(text: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    read_query_int(text.as_bytes(), -1, &mut out).map(|()| out).map_err(|error| error.message)
}

fn call(symbol: &str, left: &[i32], right: &[i32]) -> Result<Value, CallError> {
    let (left, right) = (array(left), array(right));
    called("$libdir/_int", symbol, &[Argument::Payload(&left), Argument::Payload(&right)])
}

fn call_with(symbol: &str, left: &[i32], numbers: &[i32]) -> Result<Value, CallError> {
    let left = array(left);
    let numbers = numbers.iter().map(|number| Argument::Int4(*number));
    let arguments: Vec<_> = std::iter::once(Argument::Payload(&left)).chain(numbers).collect();
    called("$libdir/_int", symbol, &arguments)
}

#[test]
fn sets_are_compared_and_joined() {
    let truth = |symbol, left: &[i32], right: &[i32]| {
        call(symbol, left, right).unwrap() == Value::Bool(true)
    };
    assert!(truth("_int_contains", &[3, 1, 2, 2], &[2, 1, 1]));
    assert!(!truth("_int_contains", &[1], &[1, 2]) && truth("_int_contains", &[], &[]));
    assert!(truth("_int_contained", &[2, 2], &[1, 2]));
    assert!(truth("_int_overlap", &[1, 5], &[5, 6]) && !truth("_int_overlap", &[], &[]));
    assert!(truth("_int_same", &[1, 2, 1], &[2, 1, 1]) && truth("_int_different", &[1, 1], &[1]));
    assert_eq!(call("_int_union", &[3, 1, 3], &[2, 1]), Ok(list(vec![1, 2, 3])));
    assert_eq!(call("_int_inter", &[3, 1, 3], &[3, 3, 4]), Ok(list(vec![3])));
    assert_eq!(call("intset_subtract", &[3, 1, 3], &[1]), Ok(list(vec![3])));
    assert_eq!(call("intarray_push_array", &[3, 1], &[1]), Ok(list(vec![3, 1, 1])));
}

#[test]
fn lists_are_cut_and_changed() {
    let sub = |numbers: &[i32]| call_with("subarray", &[1, 2, 3, 2, 1], numbers).unwrap();
    assert_eq!(sub(&[2]), list(vec![2, 3, 2, 1]));
    assert_eq!(sub(&[-1, 1]), list(vec![1]));
    assert_eq!(sub(&[0, -1]), list(vec![1, 2, 3, 2]));
    assert_eq!(sub(&[2, i32::MAX]), list(vec![]));
    assert_eq!(sub(&[i32::MIN]), list(vec![1, 2, 3, 2, 1]));
    assert_eq!(call_with("idx", &[5, 6, 6], &[6]), Ok(Value::Int4(2)));
    assert_eq!(call_with("intarray_push_elem", &[], &[6]), Ok(list(vec![6])));
    assert_eq!(call_with("intarray_del_elem", &[6, 1, 6], &[6]), Ok(list(vec![1])));
    assert_eq!(call_with("intset_union_elem", &[6, 1, 6], &[2]), Ok(list(vec![1, 2, 6])));
    assert_eq!(call_with("sort_desc", &[1, 3, 2], &[]), Ok(list(vec![3, 2, 1])));
    assert_eq!(call_with("uniq", &[1, 1, 2, 1], &[]), Ok(list(vec![1, 2, 1])));
    assert_eq!(call_with("icount", &[1, 1, 2, 1], &[]), Ok(Value::Int4(4)));
}

#[test]
fn a_direction_is_asked_for_by_name() {
    let (many, one) = (array(&[2, 3, 1]), array(&[2]));
    let sort = |array: &[u8], way| {
        called("_int", "sort", &[Argument::Payload(array), Argument::Text(way)])
    };
    assert_eq!(sort(&many, "aSc"), Ok(list(vec![1, 2, 3])));
    assert_eq!(sort(&many, "DESC"), Ok(list(vec![3, 2, 1])));
    assert_eq!(sort(&one, "up"), Ok(list(vec![2])));
    let error = sort(&many, "up").unwrap_err();
    assert_eq!(
        (error.state, &error.message[..]),
        ("22023", r#"second parameter must be "ASC" or "DESC""#)
    );
}

#[test]
fn nulls_are_refused_and_shapes_are_kept() {
    let nulls = hex("0100000020000000170000000300000001000000050000000000000001000000fdffffff");
    let error = called("_int", "uniq", &[Argument::Payload(&nulls)]).unwrap_err();
    assert_eq!((error.state, &error.message[..]), ("22004", "array must not contain nulls"));
    assert_eq!(called("_int", "icount", &[Argument::Payload(&nulls)]), Ok(Value::Int4(3)));
    let head =
        |first: u32, second: u32| [2, 0, 23, first, second, 5, 0].map(u32::to_le_bytes).concat();
    let square = [head(2, 2), [4, 4, 3, 3].map(u32::to_le_bytes).concat()].concat();
    let sorted = [head(2, 2), [3, 3, 4, 4].map(u32::to_le_bytes).concat()].concat();
    let unique = [head(2, 1), [4, 3].map(u32::to_le_bytes).concat()].concat();
    assert_eq!(
        called("_int", "sort_asc", &[Argument::Payload(&square)]),
        Ok(Value::Payload(sorted))
    );
    assert_eq!(called("_int", "uniq", &[Argument::Payload(&square)]), Ok(Value::Payload(unique)));
}

#[test]
fn queries_are_read_as_the_server_reads_them() {
    let known = [
        ("1", "1"),
        ("-", "0"),
        ("010&-08", "8 & 0"),
        ("!1|2&3|(4|5)", "( !1 | 2 & 3 ) | ( 4 | 5 )"),
        ("! ! (1&2)|!(3|4)", "!( !( 1 & 2 ) ) | !( 3 | 4 )"),
    ];
    for (text, expected) in known {
        assert_eq!(printed(write_query_int, &query(text).unwrap()), expected);
    }
    let stored = "06000000020000000100000002000000020000000300ffff210000000300fdff26000000\
                  02000000030000000300feff7c000000";
    assert_eq!(query("1&!2|3"), Ok(hex(stored)));
    for text in
        ["", " ", "1 2", "1&", "(1", "1)", "a", "2147483648", "1&()", "1\t", "0000000000000001"]
    {
        assert_eq!(query(text), Err("syntax error".into()), "{text}");
    }
    assert_eq!(query(&format!("{}1", "!".repeat(17))), Err("statement too complex".into()));
    assert!(query(&format!("{}1", "!".repeat(16))).is_ok());
    let long = format!("1&({}1)", "1|".repeat(16_400));
    assert_eq!(query(&long), Err("query_int expression is too complex".into()));
    let deep = "(".repeat(1_000_000);
    assert_eq!(query(&deep), Err("stack depth limit exceeded".into()));
}

#[test]
fn queries_hold_for_what_is_there() {
    let asked = |text: &str| holds(&query(text).unwrap(), |number| number < 3).unwrap();
    assert!(asked("1&2") && asked("1&(3|2)") && asked("!4") && asked("3|!4&1"));
    assert!(!asked("1&3") && !asked("!1|4&5"));
    let array = array(&[7, 2]);
    let asked = query("2&!3").unwrap();
    let (array, asked) = (Argument::Payload(&array), Argument::Payload(&asked));
    assert_eq!(called("_int", "boolop", &[array, asked]), Ok(Value::Bool(true)));
    assert_eq!(called("_int", "rboolop", &[asked, array]), Ok(Value::Bool(true)));
    assert_eq!(called("_int", "querytree", &[asked]).unwrap_err().state, "XX000");
}

proptest! {
    #[test]
    fn queries_come_back(text in "[-0-9!&|() ]{0,24}") {
        if let Ok(payload) = query(&text) {
            let again = printed(write_query_int, &payload);
            prop_assert_eq!(printed(write_query_int, &query(&again).unwrap()), again);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..80),
        items in prop::collection::vec((2i16..4, -9i16..1, prop::sample::select(vec![33, 38, 124, 1])), 0..9),
        number: i32,
    ) {
        let items: Vec<u8> = items.into_iter().flat_map(|(kind, left, value): (i16, i16, i32)| {
            [&kind.to_le_bytes()[..], &left.to_le_bytes(), &value.to_le_bytes()].concat()
        }).collect();
        let count = (items.len() as u32 / 8).to_le_bytes();
        let payload = [&count[..], &items].concat();
        let _ = write_query_int(&payload, &mut Vec::new());
        let _ = read_query_int(&bytes, -1, &mut Vec::new());
        for one in FUNCTIONS {
            for (left, right) in [(&bytes, &payload), (&payload, &bytes)] {
                let both = [Argument::Payload(left), Argument::Payload(right)];
                let _ = called("_int", one.symbol, &both);
                let _ = called("_int", one.symbol, &[both[0], Argument::Int4(number)]);
            }
        }
    }
}
