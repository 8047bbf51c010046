//! Aggregates whose results a server of PostgreSQL 15 gave.
//!
//! `tests/data/aggregates_15.tsv` has aggregate and type, values with commas between them of which an empty one is NULL, and the
//! result. Another file of the same form is named by `PAGEMILL_AGGREGATE_RESULTS`.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Float32Array, Float64Array, Int16Array, Int32Array,
    Int64Array, StringArray,
};
use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use datafusion::scalar::ScalarValue;
use pagemill_types::input::numeric::read_numeric;
use pagemill_types::numeric::write_numeric;

use super::collected::{Collected, Collection, Concatenation};
use super::exact::{Exact, Many};
use super::extreme::Extreme;
use super::function::Kind;
use super::sums::Wanted;
use super::wanted;
use crate::functions::numeric::keys::put_key;
use crate::functions::numeric::write_decimal;

fn parsed<T: std::str::FromStr>(values: &[Option<&str>]) -> Vec<Option<T>> {
    values.iter().map(|value| value.map(|value| value.parse().ok().expect(value))).collect()
}

fn payload(text: &str) -> Vec<u8> {
    let mut payload = Vec::new();
    read_numeric(text.as_bytes(), -1, &mut payload).expect(text);
    payload
}

fn binary(values: impl Iterator<Item = Option<Vec<u8>>>) -> ArrayRef {
    Arc::new(values.collect::<BinaryArray>())
}

fn column(ty: &str, values: &[Option<&str>]) -> ArrayRef {
    match ty {
        "int2" => Arc::new(Int16Array::from(parsed(values))),
        "int4" => Arc::new(Int32Array::from(parsed(values))),
        "int8" => Arc::new(Int64Array::from(parsed(values))),
        "float4" => Arc::new(Float32Array::from(parsed(values))),
        "float8" => Arc::new(Float64Array::from(parsed(values))),
        _ => binary(values.iter().map(|value| value.map(payload))),
    }
}

/// The key of min and max.
fn key(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Float32 => {
            let floats = column.as_any().downcast_ref::<Float32Array>().expect("floats");
            Arc::new(
                floats
                    .iter()
                    .map(|x| x.map(|x| if x.is_nan() { f32::NAN } else { x + 0.0 }))
                    .collect::<Float32Array>(),
            )
        }
        DataType::Float64 => {
            let floats = column.as_any().downcast_ref::<Float64Array>().expect("floats");
            Arc::new(
                floats
                    .iter()
                    .map(|x| x.map(|x| if x.is_nan() { f64::NAN } else { x + 0.0 }))
                    .collect::<Float64Array>(),
            )
        }
        _ => binary(crate::functions::keys::payloads(column).iter().map(|payload| {
            let mut key = Vec::new();
            put_key(payload?, &mut key).expect("a whole payload");
            Some(key)
        })),
    }
}

fn text(value: ScalarValue) -> String {
    let mut text = Vec::new();
    match value {
        value if value.is_null() => return "NULL".to_owned(),
        ScalarValue::Binary(Some(payload)) => write_numeric(&payload, &mut text).expect("whole"),
        ScalarValue::Decimal128(Some(value), _, scale) => write_decimal(value, scale, &mut text),
        ScalarValue::Float64(Some(value)) => {
            pagemill_types::float::write_float8(&value.to_le_bytes(), &mut text).expect("whole");
        }
        ScalarValue::Float32(Some(value)) => {
            pagemill_types::float::write_float4(&value.to_le_bytes(), &mut text).expect("whole");
        }
        other => return other.to_string(),
    }
    String::from_utf8(text).expect("digits")
}

fn kind(name: &str, ty: &str) -> Kind {
    let extreme = |is_greatest| {
        let (keeps_first, collator) = (false, None);
        Kind::Extreme(Extreme { is_greatest, keeps_first, collator })
    };
    match (name, ty) {
        ("min", _) => extreme(false),
        ("max", _) => extreme(true),
        (name, "float4" | "float8") => Kind::Float(wanted(name).expect(name)),
        (name, _) => Kind::Exact(wanted(name).expect(name)),
    }
}

fn carriers(arguments: &[ArrayRef]) -> Vec<DataType> {
    arguments.iter().map(|argument| argument.data_type().clone()).collect()
}

fn slices(arguments: &[ArrayRef], from: usize, length: usize) -> Vec<ArrayRef> {
    arguments.iter().map(|argument| argument.slice(from, length)).collect()
}

fn words(error: datafusion::error::DataFusionError) -> String {
    match crate::Error::from(error) {
        crate::Error::Statement(error) => format!("E {} {}", error.state.0, error.message),
        other => panic!("{other}"),
    }
}

/// All rows by one accumulator.
fn at_once(kind: &Kind, arguments: &[ArrayRef], result: &DataType) -> String {
    let mut whole = kind.accumulator(&carriers(arguments), result);
    let found = whole.update_batch(arguments).and_then(|()| whole.evaluate());
    found.map_or_else(words, text)
}

/// Each row by its own accumulator, whose states are brought together.
fn in_parts(kind: &Kind, arguments: &[ArrayRef], result: &DataType) -> String {
    let carriers = carriers(arguments);
    let mut whole = kind.accumulator(&carriers, result);
    for row in 0..arguments[0].len() {
        let mut part = kind.accumulator(&carriers, result);
        part.update_batch(&slices(arguments, row, 1)).expect("one row");
        let state = part.state().expect("a state");
        let state: Vec<ArrayRef> = state.iter().map(|one| one.to_array().expect("a row")).collect();
        whole.merge_batch(&state).expect("a state of the same");
    }
    text(whole.evaluate().expect("a result"))
}

/// In groups that each have all of the rows, but for those that a filter takes out.
fn in_groups(wanted: Wanted, arguments: &[ArrayRef], result: &DataType) -> Vec<String> {
    let exact = || Exact { wanted, carrier: result.clone() };
    let rows = arguments[0].len();
    let (mut first, mut second) = (Many::new(exact()), Many::new(exact()));
    first.update_batch(arguments, &vec![1; rows], None, 2).expect("rows");
    let none = BooleanArray::from(vec![Some(false); rows]);
    first.update_batch(arguments, &vec![0; rows], Some(&none), 3).expect("rows");
    let states = first.convert_to_state(arguments, None).expect("states");
    first.merge_batch(&states, &vec![2; rows], 3).expect("states");
    let state = first.state(EmitTo::All).expect("states");
    second.merge_batch(&state, &[0, 1, 2], 3).expect("states");
    let head = second.evaluate(EmitTo::First(1)).expect("one");
    let rest = second.evaluate(EmitTo::All).expect("the rest");
    let all = [(&head, 0), (&rest, 0), (&rest, 1)];
    all.map(|(array, row)| text(ScalarValue::try_from_array(array, row).expect("a row"))).into()
}

fn check(lines: &str) -> usize {
    let (mut count, mut wrong) = (0, Vec::new());
    for line in lines.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let &[aggregate, values, expected] = &fields[..] else { panic!("{line} has three fields") };
        let (name, ty) = aggregate.split_once(' ').expect("an aggregate and a type");
        let values: Vec<Option<&str>> = match values {
            "" => Vec::new(),
            all => {
                all.split(',').map(|value| Some(value).filter(|value| !value.is_empty())).collect()
            }
        };
        let column = column(ty, &values);
        let (kind, mut arguments) = (kind(name, ty), vec![column]);
        if let Kind::Extreme(_) = kind {
            arguments.push(key(&arguments[0]));
        }
        let result = match (name, &kind) {
            ("sum" | "min" | "max", Kind::Float(_) | Kind::Extreme(_)) => {
                arguments[0].data_type().clone()
            }
            (_, Kind::Float(_)) => DataType::Float64,
            ("sum", _) if ty == "int8" => DataType::Decimal128(29, 0),
            _ => DataType::Binary,
        };
        let mut found = vec![at_once(&kind, &arguments, &result)];
        if let Kind::Exact(_) | Kind::Extreme(_) = kind {
            found.push(in_parts(&kind, &arguments, &result));
        }
        if let Kind::Exact(wanted) = kind {
            let mut groups = in_groups(wanted, &arguments, &result);
            assert_eq!(groups.remove(0), "NULL");
            found.extend(groups);
        }
        if found.iter().any(|found| found != expected) {
            wrong.push(format!("{line}: {found:?}"));
        }
        count += 1;
    }
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(10)].join("\n")
    );
    count
}

#[test]
fn aggregates_give_what_the_server_gives() {
    assert_eq!(check(include_str!("../../../tests/data/aggregates_15.tsv")), 400);
}

#[test]
#[ignore = "needs results of a server"]
fn aggregates_give_what_another_server_gives() {
    let file =
        std::env::var("PAGEMILL_AGGREGATE_RESULTS").expect("PAGEMILL_AGGREGATE_RESULTS is a file");
    assert!(check(&std::fs::read_to_string(file).expect("the file can be read")) > 0);
}

fn texts(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

#[test]
fn texts_are_put_together_with_the_delimiters_between_them() {
    let rows = [
        texts(&[None, Some("a"), Some("b"), None, Some("c")]),
        texts(&[Some("!"), Some("!"), Some("-"), Some("!"), None]),
    ];
    let mut whole = Concatenation::new(&DataType::Utf8);
    assert_eq!(text(whole.evaluate().expect("nothing")), "NULL");
    whole.update_batch(&rows).expect("texts");
    assert_eq!(text(whole.evaluate().expect("texts")), "a-bc");
    let mut other = Concatenation::new(&DataType::Utf8);
    other.update_batch(&rows).expect("texts");
    let state = other.state().expect("a state");
    let state: Vec<ArrayRef> = state.iter().map(|one| one.to_array().expect("a row")).collect();
    whole.merge_batch(&state).expect("a state");
    assert_eq!(text(whole.evaluate().expect("texts")), "a-bc!a-bc");
}

#[test]
fn distinct_rows_are_taken_once_and_in_order() {
    let order = vec![SortOptions { descending: true, nulls_first: false }];
    let collection = Collection { values: 2, distinct: 1, order };
    let column = texts(&[Some("b"), Some("a"), Some("b"), Some("c")]);
    let comma = texts(&[Some(","); 4]);
    let rows = [column.clone(), comma, column.clone(), column];
    let new =
        || Collected::new(Kind::Concatenation, collection.clone(), carriers(&rows), DataType::Utf8);
    let mut whole = new();
    whole.update_batch(&rows).expect("texts");
    assert_eq!(text(whole.evaluate().expect("texts")), "c,b,a");
    let mut merged = new();
    for from in [0, 2] {
        let mut part = new();
        part.update_batch(&slices(&rows, from, 2)).expect("texts");
        let state = part.state().expect("a state");
        let state: Vec<ArrayRef> = state.iter().map(|one| one.to_array().expect("a row")).collect();
        merged.merge_batch(&state).expect("a state");
    }
    assert_eq!(text(merged.evaluate().expect("texts")), "c,b,a");
    merged.retract_batch(&slices(&rows, 0, 3)).expect("texts");
    assert_eq!(text(merged.evaluate().expect("texts")), "c");
}

#[test]
fn a_window_takes_back_what_leaves_it() {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![Some(i64::MAX), None, Some(3), Some(4)]));
    let result = DataType::Decimal128(29, 0);
    let mut sum = Kind::Exact(Wanted::Sum).accumulator(&[DataType::Int64], &result);
    assert!(sum.supports_retract_batch());
    sum.update_batch(std::slice::from_ref(&column)).expect("integers");
    sum.retract_batch(&[column.slice(0, 2)]).expect("integers");
    assert_eq!(text(sum.evaluate().expect("a sum")), "7");
    sum.retract_batch(&[column.slice(2, 2)]).expect("integers");
    assert_eq!(text(sum.evaluate().expect("no sum")), "NULL");
}
