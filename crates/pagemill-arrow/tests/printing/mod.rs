//! Values of Arrow arrays as PostgreSQL prints them, to be compared with what a server printed.
//! What is printed depends on the array and its field alone.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Fields};
use pagemill_format::Oid;
use pagemill_types::builtin::{BuiltinType, oid};

/// A value's text; `None` for NULL.
pub(crate) type Printed = Option<String>;

/// The rows of a batch.
pub(crate) fn printed_rows(batch: &RecordBatch) -> Vec<Vec<Printed>> {
    let schema = batch.schema();
    let row = |at| {
        let pairs = schema.fields().iter().zip(batch.columns());
        pairs.map(|(field, column)| printed(field, column, at)).collect()
    };
    (0..batch.num_rows()).map(row).collect()
}

/// True for texts of the same value: zeros behind the point of a decimal are not told apart.
pub(crate) fn same(of: &DataType, actual: &Printed, expected: &Printed) -> bool {
    match (actual, expected) {
        (Some(actual), Some(expected)) => match of {
            DataType::Decimal128(..) => {
                actual == expected
                    || (number(actual).is_some() && number(actual) == number(expected))
            }
            // Well-known binary prints as bytea does, PostGIS prints it in capitals.
            DataType::Binary => {
                let hex = actual.strip_prefix("\\x").map(str::to_uppercase);
                actual == expected || hex.as_ref() == Some(expected)
            }
            _ => actual == expected,
        },
        (actual, expected) => actual == expected,
    }
}

/// A decimal number without zeros that say nothing.
fn number(text: &str) -> Option<String> {
    let (whole, places) = text.split_once('.').unwrap_or((text, ""));
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = !digits.is_empty() && are_digits(digits) && are_digits(places);
    is_number.then(|| format!("{whole}.{}", places.trim_end_matches('0')))
}

fn by_type(of: Oid, payload: &[u8]) -> String {
    let write = BuiltinType::by_oid(of)
        .and_then(|found| found.print_in(pagemill_format::PgVersion::V18).writer());
    let mut text = Vec::new();
    write.expect("a built-in type")(payload, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn printed(field: &Field, array: &dyn Array, at: usize) -> Printed {
    if array.is_null(at) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Boolean => if array.as_boolean().value(at) { "t" } else { "f" }.to_owned(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(at).to_string(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(at).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(at).to_string(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(at).to_string(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(at).to_string(),
        DataType::Float32 => {
            by_type(oid::FLOAT4, &array.as_primitive::<Float32Type>().value(at).to_le_bytes())
        }
        DataType::Float64 => {
            by_type(oid::FLOAT8, &array.as_primitive::<Float64Type>().value(at).to_le_bytes())
        }
        DataType::Decimal128(_, scale) => {
            let value = array.as_primitive::<Decimal128Type>().value(at);
            let text = decimal(value, *scale as usize);
            if is_of(field, "money") { money(&text) } else { text }
        }
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>().value(at) - 10_957;
            by_type(oid::DATE, &days.to_le_bytes())
        }
        DataType::Time64(_) => {
            let micros = array.as_primitive::<Time64MicrosecondType>().value(at);
            by_type(oid::TIME, &micros.to_le_bytes())
        }
        DataType::Timestamp(_, zone) => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().value(at);
            let of = if zone.is_some() { oid::TIMESTAMPTZ } else { oid::TIMESTAMP };
            by_type(of, &(micros - 946_684_800_000_000).to_le_bytes())
        }
        DataType::FixedSizeBinary(16) => by_type(oid::UUID, array.as_fixed_size_binary().value(at)),
        DataType::Binary => by_type(oid::BYTEA, array.as_binary::<i32>().value(at)),
        DataType::Utf8 => array.as_string::<i32>().value(at).to_owned(),
        DataType::List(of) if *of.data_type() == DataType::Float32 && !of.is_nullable() => {
            numbers(of, &array.as_list::<i32>().value(at))
        }
        DataType::List(of) => list(of, &array.as_list::<i32>().value(at)),
        DataType::Struct(of) => row(of, array, at),
        DataType::Map(..) => pairs(&array.as_map().value(at)),
        DataType::FixedSizeList(of, _) => numbers(of, &array.as_fixed_size_list().value(at)),
        other => panic!("{other} is not written"),
    })
}

fn decimal(value: i128, scale: usize) -> String {
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, places) = digits.split_at(digits.len() - scale);
    let sign = if value < 0 { "-" } else { "" };
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{places}") }
}

fn is_of(field: &Field, name: &str) -> bool {
    Field::metadata(field).get("pg.type").is_some_and(|found| found == name)
}

/// `cash_out` in the C locale.
fn money(text: &str) -> String {
    let (sign, amount) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, places) = amount.split_once('.').unwrap_or((amount, ""));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}${grouped}.{places}")
}

/// `array_out`.
fn list(of: &Field, elements: &dyn Array) -> String {
    let delimiter = if is_of(of, "box") { ";" } else { "," };
    let element = |at| match printed(of, elements, at) {
        None => "NULL".to_owned(),
        Some(text) => {
            let is_odd = |c: char| "{}\"\\ \t\n\r\u{b}\u{c}".contains(c);
            let needs = text.is_empty()
                || text.eq_ignore_ascii_case("null")
                || text.contains(is_odd)
                || text.contains(delimiter);
            match needs {
                true => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
                false => text,
            }
        }
    };
    let elements: Vec<String> = (0..elements.len()).map(element).collect();
    format!("{{{}}}", elements.join(delimiter))
}

/// `record_out`.
fn row(of: &Fields, array: &dyn Array, at: usize) -> String {
    let field = |(of, column): (&FieldRef, &ArrayRef)| match printed(of, column, at) {
        None => String::new(),
        Some(text) => {
            let is_odd = |c: char| "()\",\\ \t\n\r\u{b}\u{c}".contains(c);
            if text.is_empty() || text.contains(is_odd) {
                format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\"\""))
            } else {
                text
            }
        }
    };
    let pairs = of.iter().zip(array.as_struct().columns());
    format!("({})", pairs.map(field).collect::<Vec<_>>().join(","))
}

/// `hstore_out`.
fn pairs(entries: &arrow_array::StructArray) -> String {
    let quoted = |text: String| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let pair = |at| {
        let fields = entries.fields();
        let key = printed(&fields[0], entries.column(0), at).expect("keys are never NULL");
        let value = printed(&fields[1], entries.column(1), at);
        format!("{}=>{}", quoted(key), value.map_or("NULL".to_owned(), quoted))
    };
    (0..entries.len()).map(pair).collect::<Vec<_>>().join(", ")
}

/// `vector_out`.
fn numbers(of: &Field, elements: &dyn Array) -> String {
    let number = |at| printed(of, elements, at).expect("vectors have no NULLs");
    format!("[{}]", (0..elements.len()).map(number).collect::<Vec<_>>().join(","))
}
