//! Properties of the inputs that are trees or documents: whatever is read prints as a text that reads
//! as the same bytes, and no text makes a reader panic.

use std::collections::HashMap;
use std::sync::Arc;

use pagemill_format::ids::{Oid, PgVersion};
use pagemill_format::tuple::AttributeLayout;
use proptest::prelude::*;

use super::datetime::{DateOrder, DateTimeContext, IntervalStyle, ZoneLookup};
use super::tree::*;
use super::{Characters, InputError};
use crate::ScalarWriter;
use crate::builtin::BuiltinType;
use crate::order::{TextCollation, ValueOrder};
use crate::output::{NameKind, samples};
use crate::time_zone::Zone;

struct NoZones;

impl ZoneLookup for NoZones {
    fn zone(&self, _: &str) -> Option<Arc<Zone>> {
        None
    }
}

/// One role, and nothing else.
struct OneRole;

impl InputLookups for OneRole {
    fn find_name(&mut self, _: NameKind, text: &[u8]) -> Result<Oid, InputError> {
        if text == b"known" { Ok(Oid(7)) } else { Err(InputError::new("not there")) }
    }

    fn find_role(&mut self, name: &[u8]) -> Result<Option<Oid>, InputError> {
        Ok((name == b"postgres").then_some(Oid(10)))
    }
}

pub(super) fn context(version: PgVersion) -> InputContext {
    InputContext {
        version,
        encoding: 6,
        unicode_spaces: true,
        date_time: DateTimeContext {
            version,
            date_order: DateOrder::Mdy,
            interval_style: IntervalStyle::Postgres,
            session_zone: Arc::new(Zone::gmt()),
            zones: Arc::new(NoZones),
            transaction_start: 0,
        },
    }
}

fn read(version: PgVersion, input: &TypeInput, text: &[u8]) -> Result<Vec<u8>, InputError> {
    let context = context(version);
    let mut lookups = OneRole;
    let mut out = b"kept".to_vec();
    let done = ValueReader::new(&mut lookups, &context).read(input, -1, text, &mut out);
    assert!(out.starts_with(b"kept"));
    done.map(|()| out.split_off(4))
}

fn scalar(oid: u32) -> TypeInput {
    let found = BuiltinType::by_oid(Oid(oid)).unwrap();
    found.input_in(PgVersion::V17, Characters::Utf8).unwrap()
}

/// A type of the catalog that the tests of output made up.
fn known(oid: u32, input: TypeInput) -> Arc<InputType> {
    let (len, align, packable) = match oid {
        20 => (8, 8, false),
        23 => (4, 4, false),
        1114 => (8, 8, false),
        _ => (-1, 4, true),
    };
    let layout = AttributeLayout { len, align };
    Arc::new(InputType { oid: Oid(oid), layout, delimiter: b',', packable, input })
}

fn range(oid: u32, subtype: u32, canonical: Canonical) -> Arc<RangeInput> {
    let order = ValueOrder::of_type(Oid(subtype), &TextCollation::C).unwrap();
    let subtype = known(subtype, scalar(subtype));
    Arc::new(RangeInput { oid: Oid(oid), subtype, order, canonical })
}

fn multirange(oid: u32, range: Arc<RangeInput>) -> TypeInput {
    TypeInput::Multirange(Arc::new(MultirangeInput { oid: Oid(oid), range }))
}

fn pair() -> TypeInput {
    let attribute = |oid: u32, packable, input: Option<TypeInput>| {
        let layout = known(oid, scalar(23)).layout;
        InputAttribute { layout, typmod: -1, packable, input }
    };
    let texts = TypeInput::Array(known(25, scalar(25)));
    let attributes = vec![
        attribute(23, false, Some(scalar(23))),
        attribute(20, false, None),
        attribute(25, true, Some(scalar(25))),
        attribute(1700, true, Some(scalar(1700))),
        attribute(1009, true, Some(texts)),
    ];
    TypeInput::Composite(Arc::new(CompositeInput {
        oid: Oid(samples::PAIR),
        version: None,
        attributes,
    }))
}

/// Types of the catalog that the tests of output made up, by their OIDs there.
fn trees() -> Vec<(u32, TypeInput)> {
    let (int4, numeric) = (range(3904, 23, Canonical::Int4), range(3906, 1700, Canonical::None));
    let moments = range(3908, 1114, Canonical::None);
    let ranges = known(3906, TypeInput::Range(numeric.clone()));
    vec![
        (1007, TypeInput::Array(known(23, scalar(23)))),
        (1009, TypeInput::Array(known(25, scalar(25)))),
        (1231, TypeInput::Array(known(1700, scalar(1700)))),
        (3904, TypeInput::Range(int4.clone())),
        (3906, TypeInput::Range(numeric.clone())),
        (3908, TypeInput::Range(moments.clone())),
        (3907, TypeInput::Array(ranges)),
        (4451, multirange(4451, int4)),
        (4532, multirange(4532, numeric)),
        (4533, multirange(4533, moments)),
        (samples::PAIR, pair()),
    ]
}

/// The documents, with what prints them.
fn documents() -> Vec<(TypeInput, ScalarWriter)> {
    let writer = |oid: u32| {
        BuiltinType::by_oid(Oid(oid)).and_then(|one| one.print_in(PgVersion::V17).writer()).unwrap()
    };
    let oids = [600, 601, 602, 603, 604, 628, 718, 3614, 3615, 3802, 4072];
    oids.iter().map(|oid| (scalar(*oid), writer(*oid))).collect()
}

fn all_inputs() -> Vec<TypeInput> {
    let labels = HashMap::from([(Box::from(b"sad".as_slice()), Oid(1))]);
    let mood = TypeInput::Enum(Arc::new(EnumInput { name: "mood".to_owned(), labels }));
    let domain = DomainInput {
        name: "filled".to_owned(),
        base: mood.clone(),
        typmod: -1,
        not_null: true,
        checks: Vec::new(),
    };
    let domain = TypeInput::Domain(Arc::new(domain));
    let others = [mood, domain, TypeInput::AclItem, TypeInput::Name(NameKind::Class)];
    let others = others.into_iter().chain([scalar(114), scalar(142)]);
    let trees = trees().into_iter().map(|(_, input)| input);
    trees.chain(documents().into_iter().map(|(input, _)| input)).chain(others).collect()
}

#[test]
fn a_domain_says_no_to_null_where_it_is_not_null() {
    let context = context(PgVersion::V15);
    let mut lookups = OneRole;
    let mut reader = ValueReader::new(&mut lookups, &context);
    let domain = |not_null| {
        let (name, base) = ("d".to_owned(), scalar(23));
        TypeInput::Domain(Arc::new(DomainInput {
            name,
            base,
            typmod: -1,
            not_null,
            checks: Vec::new(),
        }))
    };
    assert!(reader.read_null(&domain(false)).is_ok());
    let error = reader.read_null(&domain(true)).unwrap_err();
    assert_eq!(error.message, "domain d does not allow null values");
}

/// `0010` was 10 for every version.
#[test]
fn a_number_for_a_name_is_octal_with_a_zero_in_front_from_16_on() {
    let class = TypeInput::Name(NameKind::Class);
    let oid = |version, text: &str| read(version, &class, text.as_bytes());
    for version in [PgVersion::V14, PgVersion::V15] {
        assert_eq!(oid(version, "0010"), Ok(10u32.to_le_bytes().to_vec()));
        assert_eq!(oid(version, "099"), Ok(99u32.to_le_bytes().to_vec()));
    }
    for version in [PgVersion::V16, PgVersion::V18] {
        assert_eq!(oid(version, "0010"), Ok(8u32.to_le_bytes().to_vec()));
        let refused = oid(version, "099").unwrap_err().message;
        assert_eq!(refused, "invalid input syntax for type oid: \"099\"");
        let refused = oid(version, "99999999999").unwrap_err().message;
        assert_eq!(refused, "value \"99999999999\" is out of range for type oid");
    }
}

#[test]
fn escapes_of_json_are_converted_to_the_encoding_of_the_database() {
    const SQL_ASCII: i32 = 0;
    const EUC_KR: i32 = 3;
    const EUC_TW: i32 = 4;
    const LATIN1: i32 = 8;
    let stored = |encoding, text: &str| {
        let context = InputContext { encoding, ..context(PgVersion::V18) };
        let mut out = Vec::new();
        let read = super::jsonb::read_jsonb(text.as_bytes(), &context, &mut out);
        read.map(|()| out.split_off(8)).map_err(|error| error.message)
    };
    assert_eq!(stored(LATIN1, r#""\u00e9""#), Ok(vec![0xE9]));
    assert_eq!(stored(EUC_KR, r#""\uAC00""#), Ok(vec![0xB0, 0xA1]));
    let refused = Err("unsupported Unicode escape sequence".to_owned());
    assert_eq!(stored(LATIN1, r#""\u6f22""#), refused);
    assert_eq!(stored(SQL_ASCII, r#""\u00e9""#), refused);
    assert_eq!(stored(SQL_ASCII, r#""\u0041""#), Ok(vec![b'A']));
    // What a string that has no end says before is told first.
    assert_eq!(stored(LATIN1, r#"["a\u0000"#), refused);
    assert!(stored(EUC_TW, r#""\u00e9""#).unwrap_err().contains("not converted to EUC_TW here"));
}

#[test]
fn types_in_types_have_an_end() {
    let mut input = scalar(23);
    for _ in 0..100 {
        input = TypeInput::Array(known(1007, input));
    }
    let mut text = String::from("1");
    for _ in 0..8 {
        text = format!("{{\"{}\"}}", text.replace('\\', "\\\\").replace('"', "\\\""));
    }
    assert!(read(PgVersion::V15, &input, text.as_bytes()).is_err());
    let deep = "{".repeat(5_000);
    assert!(read(PgVersion::V15, &input, deep.as_bytes()).is_err());
}

#[test]
fn deep_documents_are_refused_and_not_followed() {
    let deep = |open: &str, middle: &str, close: &str, levels: usize| {
        format!("{}{middle}{}", open.repeat(levels), close.repeat(levels))
    };
    for (oid, text) in [
        (114, deep("[", "", "]", 100_000)),
        (3802, deep("{\"a\":", "1", "}", 100_000)),
        (4072, deep("(", "$", ")", 100_000)),
        (4072, deep("$[", "1", "]", 100_000)),
        (4072, deep("-", "$", "", 100_000)),
        (3615, deep("(", "a", ")", 100_000)),
    ] {
        let error = read(PgVersion::V15, &scalar(oid), text.as_bytes()).unwrap_err();
        assert_eq!(error.message, "stack depth limit exceeded", "{oid}");
    }
    let fits = deep("[", "", "]", super::json::MAX_JSON_DEPTH);
    assert!(read(PgVersion::V15, &scalar(3802), fits.as_bytes()).is_ok());
    let fits = deep("(", "$", ")", super::jsonpath::MAX_NESTING - 1);
    assert!(read(PgVersion::V15, &scalar(4072), fits.as_bytes()).is_ok());
}

#[test]
fn operators_in_a_row_take_no_stack() {
    for (one, more) in [("1", "+1"), ("$.a == 1", " || $.a == 1"), ("2", "*2-1")] {
        let text = format!("{one}{}", more.repeat(100_000));
        assert!(read(PgVersion::V15, &scalar(4072), text.as_bytes()).is_ok());
        let error = read(PgVersion::V15, &scalar(4072), format!("{text} &").as_bytes());
        assert!(error.unwrap_err().message.contains("syntax error"));
    }
}

/// Some JSON.
fn json() -> impl Strategy<Value = String> {
    let string =
        "[a-c\\\\u00e9 ]{0,3}".prop_map(|text| format!("\"{}\"", text.replace('\\', "\\\\")));
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        "-?(0|[1-9][0-9]{0,9})(\\.[0-9]{1,5})?(e[0-9])?",
        string.clone(),
    ];
    leaf.prop_recursive(5, 200, 40, move |inner| {
        let pair =
            (string.clone(), inner.clone()).prop_map(|(key, value)| format!("{key}:{value}"));
        prop_oneof![
            prop::collection::vec(inner, 0..40).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec(pair, 0..40).prop_map(|pairs| format!("{{{}}}", pairs.join(","))),
        ]
    })
}

/// Texts that mean something to one or another of the parsers.
fn plausible() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        "[-+0-9a-d.,:;/_(){}<>\"'\\\\\\[\\]|&!?@$*= ]{1,3}",
        prop::sample::select(vec![
            "null",
            "NULL",
            "empty",
            "(1,2)",
            "[1,2)",
            "{[1,2)}",
            "1.5",
            "true",
            "\"a\"",
            "$.a",
            "@.b",
            "last",
            " to ",
            "**",
            "like_regex",
            "exists(",
            "?(",
            " starts with ",
            ".abs()",
            "<->",
            "<2>",
            "'a b'",
            "a:1A",
            "b:*",
            "[0:1]=",
            "2020-01-01",
            "\\u0041",
            "é",
            "<a>",
            "</a>",
            "<b/>",
            "&amp;",
            "postgres=r",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_makes_a_reader_panic(text in plausible(), bytes: Vec<u8>) {
        for input in all_inputs() {
            for version in PgVersion::ALL {
                let _ = read(version, &input, text.as_bytes());
                let _ = read(version, &input, &bytes);
            }
        }
    }

    #[test]
    fn what_was_read_prints_as_what_reads_the_same(text in plausible()) {
        for (input, write) in documents() {
            let Ok(payload) = read(PgVersion::V17, &input, text.as_bytes()) else { continue };
            let mut printed = Vec::new();
            write(&payload, &mut printed).unwrap();
            let again = read(PgVersion::V17, &input, &printed);
            prop_assert_eq!(again, Ok(payload), "{}", String::from_utf8_lossy(&printed));
        }
        for (oid, input) in trees() {
            let Ok(payload) = read(PgVersion::V17, &input, text.as_bytes()) else { continue };
            let printed = samples::text(oid, &payload).unwrap();
            let again = read(PgVersion::V17, &input, printed.as_bytes());
            prop_assert_eq!(again, Ok(payload), "{}", printed);
        }
    }

    #[test]
    fn json_is_kept_whatever_it_says(text in json()) {
        prop_assert_eq!(read(PgVersion::V17, &scalar(114), text.as_bytes()), Ok(text.clone().into_bytes()));
        let payload = read(PgVersion::V17, &scalar(3802), text.as_bytes()).unwrap();
        let mut printed = Vec::new();
        crate::jsonb::write_jsonb(&payload, &mut printed).unwrap();
        prop_assert_eq!(read(PgVersion::V17, &scalar(3802), &printed), Ok(payload));
    }

    #[test]
    fn arrays_read_as_they_print(
        items in prop::collection::vec(prop::option::of("[a-c\"\\\\ {},]{0,3}|null"), 1..20),
        lower in -3..3,
    ) {
        let quoted = |item: &Option<String>| match item {
            Some(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
            None => "NULL".to_owned(),
        };
        let list = items.iter().map(quoted).collect::<Vec<_>>().join(",");
        let text = format!("[{lower}:{}]={{{list}}}", lower + items.len() as i32 - 1);
        let input = TypeInput::Array(known(25, scalar(25)));
        let payload = read(PgVersion::V15, &input, text.as_bytes()).unwrap();
        let printed = samples::text(1009, &payload).unwrap();
        for version in PgVersion::ALL {
            prop_assert_eq!(read(version, &input, printed.as_bytes()), Ok(payload.clone()));
        }
    }

    #[test]
    fn a_multirange_holds_the_numbers_that_any_of_its_ranges_holds(
        ends in prop::collection::vec((-20..20, 0..9), 0..12),
    ) {
        let texts: Vec<String> =
            ends.iter().map(|(from, len)| format!("[{from},{})", from + len)).collect();
        let input = multirange(4451, range(3904, 23, Canonical::Int4));
        let text = format!("{{{}}}", texts.join(","));
        let payload = read(PgVersion::V15, &input, text.as_bytes()).unwrap();
        let printed = samples::text(4451, &payload).unwrap();
        let mut expected = Vec::new();
        let mut number = -30;
        while number < 40 {
            let holds = |n: i32| ends.iter().any(|(from, len)| (*from..from + len).contains(&n));
            if holds(number) {
                let from = number;
                while holds(number) {
                    number += 1;
                }
                expected.push(format!("[{from},{number})"));
            }
            number += 1;
        }
        prop_assert_eq!(printed, format!("{{{}}}", expected.join(",")));
    }
}
