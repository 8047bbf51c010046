//! Plain functions against what a server of PostgreSQL 15 gave for thousands of arguments, 18 for what only that has.
//!
//! Each line is a call: the name of the C function, its arguments and its result, as their types and the bytes of their
//! send functions in hexadecimal (numerics: their text), `null`, or `E:` and the server's message.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Float64Array, Int16Array, Int32Array,
    Int64Array, StringArray, UInt32Array, UInt64Array,
};
use arrow::datatypes::{
    DataType, Float64Type, Int16Type, Int32Type, Int64Type, UInt32Type, UInt64Type,
};

use super::rows::Plain;
use super::server_results_payload_tests::{payload, plain_nan, sent};
use super::{addresses, bit_places, datetime, geometry, logic, money, object_numbers, text};

fn plain(key: &str) -> Plain {
    let found = text::plain(key)
        .or_else(|| datetime::plain(key))
        .or_else(|| logic::plain(key))
        .or_else(|| addresses::plain(key))
        .or_else(|| geometry::plain(key))
        .or_else(|| bit_places::plain(key))
        .or_else(|| money::plain(key))
        .or_else(|| object_numbers::plain(key));
    found.unwrap_or_else(|| panic!("{key} is no plain function"))
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits = hexadecimal.as_bytes().as_chunks::<2>().0;
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.iter().map(byte).collect()
}

fn number<const N: usize>(value: &Option<Vec<u8>>) -> Option<[u8; N]> {
    value.as_deref().map(|bytes| bytes.try_into().unwrap())
}

/// An interval as a tuple has it, from how it is sent.
fn interval(sent: &[u8]) -> Vec<u8> {
    let mut payload: Vec<u8> = sent[..8].iter().rev().copied().collect();
    payload.extend(sent[8..12].iter().rev());
    payload.extend(sent[12..].iter().rev());
    payload
}

fn array(type_name: &str, value: Option<Vec<u8>>) -> ArrayRef {
    match type_name {
        "text" | "bpchar" | "name" | "varchar" | "json" => {
            Arc::new(StringArray::from(vec![value.map(|bytes| String::from_utf8(bytes).unwrap())]))
        }
        "bool" => Arc::new(BooleanArray::from(vec![value.map(|bytes| bytes == [1])])),
        "int2" => Arc::new(Int16Array::from(vec![number(&value).map(i16::from_be_bytes)])),
        "int4" | "date" => Arc::new(Int32Array::from(vec![number(&value).map(i32::from_be_bytes)])),
        "int8" | "time" | "timestamp" | "timestamptz" | "money" => {
            Arc::new(Int64Array::from(vec![number(&value).map(i64::from_be_bytes)]))
        }
        "float8" => Arc::new(Float64Array::from(vec![number(&value).map(f64::from_be_bytes)])),
        "interval" => Arc::new(BinaryArray::from(vec![value.as_deref().map(interval).as_deref()])),
        "oid" | "xid" => Arc::new(UInt32Array::from(vec![number(&value).map(u32::from_be_bytes)])),
        "xid8" => Arc::new(UInt64Array::from(vec![number(&value).map(u64::from_be_bytes)])),
        other => {
            let value = value.map(|sent| payload(other, &sent));
            Arc::new(BinaryArray::from(vec![value.as_deref()]))
        }
    }
}

fn shown(type_name: &str, found: &ArrayRef) -> String {
    if found.is_null(0) {
        return "null".to_owned();
    }
    let bytes = match found.data_type() {
        DataType::Utf8 => found.as_string::<i32>().value(0).as_bytes().to_vec(),
        DataType::Boolean => vec![u8::from(found.as_boolean().value(0))],
        DataType::Int16 => found.as_primitive::<Int16Type>().value(0).to_be_bytes().to_vec(),
        DataType::Int32 => found.as_primitive::<Int32Type>().value(0).to_be_bytes().to_vec(),
        DataType::Int64 => found.as_primitive::<Int64Type>().value(0).to_be_bytes().to_vec(),
        DataType::UInt32 => found.as_primitive::<UInt32Type>().value(0).to_be_bytes().to_vec(),
        DataType::UInt64 => found.as_primitive::<UInt64Type>().value(0).to_be_bytes().to_vec(),
        DataType::Float64 => plain_nan(&found.as_primitive::<Float64Type>().value(0).to_be_bytes()),
        DataType::Binary => {
            let payload = found.as_binary::<i32>().value(0);
            match type_name {
                "interval" => interval(payload),
                "numeric" => {
                    let mut text = Vec::new();
                    pagemill_types::numeric::write_numeric(payload, &mut text).unwrap();
                    text
                }
                other => sent(other, payload),
            }
        }
        other => panic!("no results of {other}"),
    };
    text::hexadecimal(&bytes)
}

/// True where it is refused here on purpose, or the message has numbers that are not printed here.
fn is_known(expected: &str, found: &str) -> bool {
    let refused = found.ends_with("is not supported here");
    // Until 15 too long a time between was a wrong one.
    let is_overflow = !expected.starts_with("E:")
        && matches!(found, "E:interval out of range" | "E:timestamp out of range");
    let is_time = |text: &str| {
        text.starts_with("E:time field value") || text.starts_with("E:timestamp out of range")
    };
    refused || is_overflow || (is_time(expected) && is_time(found))
}

fn check(lines: &str, refusals: usize) {
    let (mut wrong, mut refused, mut calls) = (Vec::new(), 0, 0);
    for line in lines.lines() {
        let mut fields: Vec<&str> = line.split('\t').collect();
        let (result_type, expected) = fields.pop().unwrap().split_once(':').unwrap();
        let of = |field: &&str| {
            let (type_name, value) = field.split_once(':').unwrap();
            array(type_name, (value != "null").then(|| bytes(value)))
        };
        let arguments: Vec<ArrayRef> = fields[1..].iter().map(of).collect();
        let found = match plain(fields[0])(&arguments) {
            Ok(found) => shown(result_type, &found),
            Err(error) => format!("E:{}", error.message),
        };
        calls += 1;
        if found == expected {
            continue;
        }
        match is_known(expected, &found) {
            true => refused += 1,
            false => wrong.push(format!("{line}\n   found {found}")),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {calls} calls:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(40)].join("\n")
    );
    assert!(refused <= refusals, "{refused} of {calls} calls are refused");
}

#[test]
fn texts_are_what_a_server_makes_of_them() {
    check(include_str!("server_results/text.tsv"), 1);
}

#[test]
fn dates_and_times_are_what_a_server_makes_of_them() {
    check(include_str!("server_results/datetime.tsv"), 90);
}

#[test]
fn pictures_of_timestamps_and_intervals_are_what_a_server_draws() {
    check(include_str!("server_results/pictures.tsv"), 200);
}

#[test]
fn shapes_are_what_a_server_makes_of_them() {
    check(include_str!("server_results/geometry.tsv"), 0);
}

#[test]
fn addresses_bits_and_other_small_values_are_what_a_server_makes_of_them() {
    check(include_str!("server_results/addresses.tsv"), 0);
    check(include_str!("server_results/small_types.tsv"), 0);
}
