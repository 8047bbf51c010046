//! Sets of ranges against what servers gave for thousands of pairs.
//!
//! Each line is a call: the name of the C function, the type of the bounds, both arguments and the result as their texts, or
//! `E:` and the server's message. The results of PostgreSQL 14 to 18 are the same.

use std::sync::Arc;

use pagemill_format::tuple::AttributeLayout;
use pagemill_format::varlena::ToastPointer;
use pagemill_format::{Oid, PgVersion};
use pagemill_types::builtin::BuiltinType;
use pagemill_types::decode::{Decode, decode, payload};
use pagemill_types::input::datetime::{DateOrder, DateTimeContext, IntervalStyle, ZoneLookup};
use pagemill_types::input::range::{Bound, Bounds};
use pagemill_types::input::tree::{
    Canonical, InputContext, InputLookups, InputType, MultirangeInput, RangeInput, TypeInput,
    ValueReader,
};
use pagemill_types::input::{Characters, InputError};
use pagemill_types::order::{TextCollation, ValueOrder};
use pagemill_types::output::{Lookups, NameKind, TypeOutput, ValueType, ValueWriter};
use pagemill_types::time_zone::Zone;
use pagemill_types::value::{Bound as Stored, RangeValue, Value};

use super::{algebra, relations};

const VERSION: PgVersion = PgVersion::V18;
const RANGE: Oid = Oid(90_001);
const MULTIRANGE: Oid = Oid(90_002);

struct Nothing;

impl ZoneLookup for Nothing {
    fn zone(&self, _: &str) -> Option<Arc<Zone>> {
        None
    }
}

impl InputLookups for Nothing {
    fn find_name(&mut self, _: NameKind, _: &[u8]) -> Result<Oid, InputError> {
        Err(InputError::new("no names"))
    }

    fn find_role(&mut self, _: &[u8]) -> Result<Option<Oid>, InputError> {
        Ok(None)
    }
}

fn nothing<T>() -> pagemill_format::error::Result<T> {
    Err(pagemill_format::Error::corrupt("test", 0, "there is nothing".to_owned()))
}

impl Lookups for Nothing {
    fn write_name(
        &mut self,
        _: NameKind,
        _: Oid,
        _: &mut Vec<u8>,
    ) -> pagemill_format::error::Result<()> {
        nothing()
    }

    fn write_role(&mut self, _: Oid, _: &mut Vec<u8>) -> pagemill_format::error::Result<bool> {
        nothing()
    }

    fn value_type(&mut self, _: Oid) -> pagemill_format::error::Result<Arc<ValueType>> {
        nothing()
    }

    fn fetch_toast(
        &mut self,
        _: &ToastPointer,
        _: &mut Vec<u8>,
    ) -> pagemill_format::error::Result<()> {
        nothing()
    }
}

/// A type of ranges, and that of multiranges.
struct Types {
    range: Arc<RangeInput>,
    multirange: Arc<MultirangeInput>,
    values: [ValueType; 2],
}

fn value_type(oid: Oid, layout: AttributeLayout, output: TypeOutput) -> ValueType {
    let (base_modifier, delimiter, decode) = (-1, b',', Decode::Other);
    ValueType { oid, base: oid, base_modifier, layout, delimiter, output, decode }
}

fn types(name: &str) -> Types {
    let (subtype, canonical) = match name {
        "int4" => (Oid(23), Canonical::Int4),
        "int8" => (Oid(20), Canonical::Int8),
        "date" => (Oid(1082), Canonical::Date),
        "numeric" => (Oid(1700), Canonical::None),
        "timestamp" => (Oid(1114), Canonical::None),
        "text" => (Oid(25), Canonical::None),
        other => panic!("no ranges over {other}"),
    };
    let known = BuiltinType::by_oid(subtype).unwrap();
    let layout = AttributeLayout::new(known.len, known.align).unwrap();
    let input = known.input_in(VERSION, Characters::Utf8).unwrap();
    let packable = known.len == -1;
    let order = ValueOrder::of_type(subtype, &TextCollation::C).unwrap();
    let inner = InputType { oid: subtype, layout, delimiter: b',', packable, input };
    let range = Arc::new(RangeInput { oid: RANGE, subtype: Arc::new(inner), order, canonical });
    let output = match known.print_in(VERSION).writer() {
        Some(write) => TypeOutput::Scalar { write, plain: false },
        None => TypeOutput::Verbatim,
    };
    let inner = Arc::new(value_type(subtype, layout, output));
    let outer = AttributeLayout { len: -1, align: layout.align.max(4) };
    let values = [
        value_type(RANGE, outer, TypeOutput::Range(inner.clone())),
        value_type(MULTIRANGE, outer, TypeOutput::Multirange(inner)),
    ];
    let multirange = Arc::new(MultirangeInput { oid: MULTIRANGE, range: range.clone() });
    Types { range, multirange, values }
}

fn context() -> InputContext {
    let date_time = DateTimeContext {
        version: VERSION,
        date_order: DateOrder::Mdy,
        interval_style: IntervalStyle::Postgres,
        session_zone: Arc::new(Zone::gmt()),
        zones: Arc::new(Nothing),
        transaction_start: 0,
    };
    InputContext { version: VERSION, encoding: 6, unicode_spaces: true, date_time }
}

fn bounds(range: &RangeValue<'_>) -> Option<Bounds> {
    let bound = |stored: Option<Stored<'_>>, is_lower| {
        let mut buffer = Vec::new();
        let value = stored.map(|stored| {
            let len = range.subtype.layout.len;
            payload(&mut Nothing, len, stored.value, &mut buffer).unwrap().to_vec()
        });
        Bound { value, inclusive: stored.is_some_and(|stored| stored.inclusive), is_lower }
    };
    let (lower, upper) = (bound(range.lower, true), bound(range.upper, false));
    (!range.is_empty).then_some(Bounds { lower, upper })
}

impl Types {
    fn read(&self, text: &str) -> Vec<Bounds> {
        let (input, value_type) = match text.starts_with('{') {
            true => (TypeInput::Multirange(self.multirange.clone()), &self.values[1]),
            false => (TypeInput::Range(self.range.clone()), &self.values[0]),
        };
        let (context, mut payload) = (context(), Vec::new());
        let mut lookups = Nothing;
        let mut reader = ValueReader::new(&mut lookups, &context);
        reader.read(&input, -1, text.as_bytes(), &mut payload).unwrap();
        match decode(value_type, &payload).unwrap() {
            Value::Range(range) => bounds(&range).into_iter().collect(),
            Value::Multirange(all) => {
                all.ranges().filter_map(|range| bounds(&range.unwrap())).collect()
            }
            _ => panic!("{text} is no range"),
        }
    }

    fn write(&self, ranges: &[Bounds], is_multirange: bool) -> String {
        let (payload, value_type) = match is_multirange {
            true => (self.multirange.payload(ranges), &self.values[1]),
            false => (self.range.payload(ranges.first()), &self.values[0]),
        };
        let (mut lookups, mut out) = (Nothing, Vec::new());
        let mut writer = ValueWriter::new(&mut lookups);
        writer.write_payload(&value_type.output, &payload.unwrap(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn called(&self, key: &str, a: &str, b: &str) -> String {
        let (x, y) = (self.read(a), self.read(b));
        if let Some(relation) = relations::relation(key) {
            return relation(&self.range.order, &x, &y).to_string();
        }
        let one = |made: algebra::Made| made.map(|range| range.into_iter().collect());
        let (range, first, second) = (&self.range, x.first(), y.first());
        let made: algebra::ManyMade = match key {
            "range_union" => one(algebra::union(range, first, second)),
            "range_merge" => one(algebra::merge(range, first, second)),
            "range_intersect" => one(algebra::intersection(range, first, second)),
            "range_minus" => one(algebra::difference(range, first, second)),
            "range_merge_from_multirange" => one(algebra::hull(range, &x)),
            "multirange_union" => algebra::unions(range, &x, &y),
            "multirange_intersect" => algebra::intersections(range, &x, &y),
            "multirange_minus" => algebra::differences(range, &x, &y),
            "range_cmp" | "multirange_cmp" => {
                return (relations::compare(&range.order, &x, &y) as i32).to_string();
            }
            other => panic!("no function {other}"),
        };
        match made {
            Ok(ranges) => self.write(&ranges, key.starts_with("multirange")),
            Err(error) => format!("E:{}", error.message),
        }
    }
}

fn check(lines: &str) -> usize {
    let (mut wrong, mut calls) = (Vec::new(), 0);
    for line in lines.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let &[key, subtype, a, b, expected] = &fields[..] else { panic!("five fields: {line}") };
        let found = types(subtype).called(key, a, b);
        calls += 1;
        if found != expected {
            wrong.push(format!("{line}\n   found {found}"));
        }
    }
    let shown = wrong[..wrong.len().min(40)].join("\n");
    assert!(wrong.is_empty(), "{} of {calls} calls:\n{shown}", wrong.len());
    calls
}

#[test]
fn sets_of_ranges_are_what_a_server_makes_of_them() {
    assert!(check(include_str!("../server_results/ranges.tsv")) > 3000);
}

#[test]
#[ignore = "needs results of a server"]
fn sets_of_ranges_are_what_another_server_makes_of_them() {
    let file = std::env::var("PAGEMILL_RANGE_RESULTS").expect("PAGEMILL_RANGE_RESULTS is a file");
    assert!(check(&std::fs::read_to_string(file).expect("the file can be read")) > 0);
}

#[test]
fn equal_ranges_that_look_different_are_told() {
    let types = types("numeric");
    let order = &types.range.order;
    let read = |texts: &[&str]| texts.iter().flat_map(|text| types.read(text)).collect::<Vec<_>>();
    assert!(algebra::is_loose(order, &read(&["[1.0,2)", "[5,6)", "[1.00,2)"])));
    assert!(!algebra::is_loose(order, &read(&["[1.0,2)", "[1.0,2)", "[1.00,3)"])));
    assert!(algebra::is_loose_at_bounds(order, &read(&["[1.0,2)", "[1.00,3)"])));
    assert!(!algebra::is_loose_at_bounds(order, &read(&["[1.0,2)", "(1.00,3)", "(,3)"])));
}
