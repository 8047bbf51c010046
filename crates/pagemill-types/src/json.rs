//! Values as JSON, as `row_to_json` and `to_json` write them.
//!
//! | type | JSON |
//! | --- | --- |
//! | boolean | `true`, `false` |
//! | smallint, integer, bigint, real, double precision, numeric | a number; NaN and the infinities are strings |
//! | date, timestamp, timestamptz | strings in the form of XML Schema: `T` before the time, `+00:00` behind it |
//! | json, jsonb | as they are |
//! | array | arrays, one inside of the other for each dimension |
//! | row | an object |
//! | hstore, which has a cast to json | an object of strings |
//! | all others | strings: what COPY prints |
//!
//! A domain is what it is over. Other types with a cast to json that somebody made (PostGIS's have one, to GeoJSON) are strings
//! here, as such a cast is code.
//!
//! Invariant: no line break is written. Between the tokens of a json value, where it may have some, there are blanks instead, so
//! that a row is a line.
//!
//! Source: `json_categorize_type` (`jsonfuncs.c` from 17 on), `datum_to_json`, `array_dim_to_json`, `composite_to_json`,
//! `JsonEncodeDateTime` and `escape_json` in `src/backend/utils/adt/json.c`, `hstore_to_json` in
//! `contrib/hstore/hstore_io.c`, PostgreSQL 14 to 18.

use pagemill_format::error::Result;
use pagemill_format::ids::Oid;
use pagemill_format::tuple::{AttributeLayout, Span, TupleData, TupleLayout};

use super::builtin::oid;
use super::decode::{Decode, scalar};
use super::extension::hstore;
use super::output::{CompositeAttribute, TypeOutput, ValueType, ValueWriter};
use super::time_zone::Zone;
use super::value::Value;
use super::{array, datetime, identifier, integer};

/// What values of a type are in JSON; found once per column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonForm {
    /// `true` or `false`.
    Bool,
    /// A number, or a string of what JSON has no number for.
    Number,
    /// A string: a date.
    Date,
    /// A string: a timestamp in the form of XML Schema.
    Timestamp,
    /// The same of a timestamptz, in UTC or the zone that it is printed in.
    TimestampTz,
    /// The value is JSON.
    Json,
    /// An array.
    Array,
    /// An array of numbers, or of the OIDs of an oidvector, which are strings.
    Vector,
    /// An object of attributes.
    Row,
    /// An object of the pairs of an hstore.
    Pairs,
    /// A string: the value as COPY prints it.
    Text,
}

impl JsonForm {
    /// What values of this type are.
    pub fn of(value_type: &ValueType) -> Self {
        match (&value_type.output, value_type.decode) {
            (TypeOutput::Array(_) | TypeOutput::AnyArray, _) => Self::Array,
            (_, Decode::Vector) => Self::Vector,
            (TypeOutput::Composite(_), _) => Self::Row,
            (TypeOutput::Scalar { .. }, Decode::Hstore) => Self::Pairs,
            _ => Self::of_base(value_type),
        }
    }

    fn of_base(value_type: &ValueType) -> Self {
        match value_type.base {
            oid::BOOL => Self::Bool,
            oid::INT2 | oid::INT4 | oid::INT8 | oid::FLOAT4 | oid::FLOAT8 | oid::NUMERIC => {
                Self::Number
            }
            oid::DATE => Self::Date,
            oid::TIMESTAMP => Self::Timestamp,
            oid::TIMESTAMPTZ => Self::TimestampTz,
            oid::JSON | oid::JSONB => Self::Json,
            _ => Self::Text,
        }
    }
}

impl ValueWriter<'_> {
    /// Appends a value as JSON, given as it lies in a tuple: with its varlena header, or with its terminating zero. `len`
    /// is the length of its type, `form` that of [`JsonForm::of`] the type.
    ///
    /// # Errors
    /// When the value is damaged; `out` may then hold part of its text.
    pub fn write_json(
        &mut self,
        value_type: &ValueType,
        form: JsonForm,
        raw: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let mut detoasted = Vec::new();
        let payload = self.payload(value_type.layout.len, raw, &mut detoasted)?;
        let output = &value_type.output;
        let start = out.len();
        match form {
            JsonForm::Bool => {
                let is_true = matches!(scalar(Decode::Bool, payload)?, Value::Bool(true));
                out.extend_from_slice(if is_true { b"true" } else { b"false" });
            }
            JsonForm::Number => {
                self.write_payload(output, payload, out)?;
                if !is_number(&out[start..]) {
                    escape_tail(start, out);
                }
            }
            JsonForm::Date => quoted(datetime::write_date, payload, out)?,
            JsonForm::Timestamp => quoted(datetime::write_xsd_timestamp, payload, out)?,
            JsonForm::TimestampTz => match zone_of(output) {
                Some(zone) => {
                    let write = |payload: &[u8], out: &mut Vec<u8>| {
                        datetime::write_xsd_timestamptz_in(zone, payload, out)
                    };
                    quoted(write, payload, out)?;
                }
                None => quoted(datetime::write_xsd_timestamptz, payload, out)?,
            },
            JsonForm::Json => {
                self.write_payload(output, payload, out)?;
                blank_line_breaks(&mut out[start..]);
            }
            JsonForm::Vector => write_vector(value_type.base, payload, out)?,
            JsonForm::Array => {
                let element = match output {
                    TypeOutput::Array(element) => Some(&**element),
                    _ => None,
                };
                self.nested(out, |writer, out| {
                    array::write_json_array(writer, element, payload, out)
                })?;
            }
            JsonForm::Row => {
                let TypeOutput::Composite(attributes) = output else {
                    unreachable!("a row is a value of a composite type")
                };
                self.nested(out, |writer, out| write_row(writer, attributes, payload, out))?;
            }
            JsonForm::Pairs => hstore::write_json(payload, hstore::JsonValues::Strings, out)?,
            JsonForm::Text if matches!(output, TypeOutput::Verbatim) => {
                write_json_string(payload, out);
            }
            JsonForm::Text => {
                self.write_payload(output, payload, out)?;
                escape_tail(start, out);
            }
        }
        Ok(())
    }
}

/// The zone that a timestamptz is printed in, where it is not UTC.
fn zone_of(output: &TypeOutput) -> Option<&Zone> {
    match output {
        TypeOutput::TimestampTz(zone) => Some(zone),
        TypeOutput::Styled(styled) => styled.zone(),
        _ => None,
    }
}

/// A string with nothing to escape.
fn quoted(
    write: impl Fn(&[u8], &mut Vec<u8>) -> Result<()>,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    out.push(b'"');
    write(payload, out)?;
    out.push(b'"');
    Ok(())
}

/// int2vector and oidvector print without commas, and are arrays all the same.
fn write_vector(of: Oid, payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let Value::Array(array) = scalar(Decode::Vector, payload)? else {
        unreachable!("a vector decodes to an array")
    };
    let (len, align) = if of == oid::INT2VECTOR { (2, b's') } else { (4, b'i') };
    out.push(b'[');
    for (number, element) in array.elements(AttributeLayout::new(len, align)?).enumerate() {
        if number > 0 {
            out.push(b',');
        }
        match element? {
            None => out.extend_from_slice(b"null"),
            Some(raw) if len == 2 => integer::write_int2(raw, out)?,
            Some(raw) => quoted(identifier::write_oid, raw, out)?,
        }
    }
    out.push(b']');
    Ok(())
}

/// True for the text of a number that is one in JSON, too: not for NaN and the infinities.
fn is_number(text: &[u8]) -> bool {
    text.last().is_some_and(u8::is_ascii_digit)
}

fn blank_line_breaks(json: &mut [u8]) {
    if memchr::memchr2(b'\n', b'\r', json).is_some() {
        for byte in json.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
            *byte = b' ';
        }
    }
}

fn write_row(
    writer: &mut ValueWriter<'_>,
    attributes: &[CompositeAttribute],
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let (_, _, tuple) = TupleData::parse_composite(payload)?;
    let layout = TupleLayout::new(attributes.iter().map(|a| a.layout).collect());
    let mut spans = Vec::new();
    layout.spans(&tuple, attributes.len(), &mut spans)?;
    let mut separator = b'{';
    for (attribute, span) in attributes.iter().zip(&spans) {
        let Some(value_type) = &attribute.value_type else { continue };
        out.push(std::mem::replace(&mut separator, b','));
        write_json_string(&attribute.name, out);
        out.push(b':');
        match (*span != Span::MISSING).then(|| span.of(tuple.data)).flatten() {
            Some(raw) => writer.write_json(value_type, JsonForm::of(value_type), raw, out)?,
            None => out.extend_from_slice(b"null"),
        }
    }
    if separator == b'{' {
        out.push(b'{');
    }
    out.push(b'}');
    Ok(())
}

/// Makes a string of `out[start..]`.
fn escape_tail(start: usize, out: &mut Vec<u8>) {
    if first_escaped(&out[start..]).is_none() {
        out.insert(start, b'"');
        out.push(b'"');
    } else {
        let text = out.split_off(start);
        write_json_string(&text, out);
    }
}

/// Appends a string as `escape_json` does: in double quotes, with the short escapes of JSON, and
/// `\u00xx` for the other control characters. Everything else passes as stored.
pub fn write_json_string(text: &[u8], out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text;
    while let Some(n) = first_escaped(rest) {
        let (plain, special) = rest.split_at(n);
        out.extend_from_slice(plain);
        if let Some((&byte, after)) = special.split_first() {
            write_escape(byte, out);
            rest = after;
        }
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Where the first byte lies that needs an escape. Looks at whole groups of bytes first, without
/// a branch per byte.
fn first_escaped(text: &[u8]) -> Option<usize> {
    const GROUP: usize = 16;
    let escaped = |byte: &u8| *byte < b' ' || *byte == b'"' || *byte == b'\\';
    let plain = |group: &&[u8]| !group.iter().fold(false, |any, byte| any | escaped(byte));
    let skipped = text.chunks_exact(GROUP).take_while(plain).count() * GROUP;
    Some(skipped + text.get(skipped..)?.iter().position(escaped)?)
}

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let letter = match byte {
        0x08 => b'b',
        0x0C => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        b'"' | b'\\' => byte,
        _ => {
            out.extend_from_slice(b"\\u00");
            out.push(HEX[usize::from(byte >> 4)]);
            out.push(HEX[usize::from(byte & 15)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', letter]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::known_value_tests::payload;
    use super::super::output::samples::{self, NEST, PAIR, Types};
    use super::*;

    fn json(oid: u32, payload: &[u8]) -> Result<String> {
        let value_type = samples::find(oid).unwrap();
        let (mut raw, mut out) = (Vec::new(), Vec::new());
        if value_type.layout.len == -1 {
            raw.extend_from_slice(&((payload.len() as u32 + 4) << 2).to_le_bytes());
        }
        raw.extend_from_slice(payload);
        let form = JsonForm::of(&value_type);
        ValueWriter::new(&mut Types).write_json(&value_type, form, &raw, &mut out)?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }

    fn escaped(text: &str) -> String {
        let mut out = Vec::new();
        write_json_string(text.as_bytes(), &mut out);
        let mut tail = b"x".to_vec();
        tail.extend_from_slice(text.as_bytes());
        escape_tail(1, &mut tail);
        assert_eq!(tail[1..], out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn strings_are_escaped_as_the_server_escapes_them() {
        assert_eq!(escaped(""), "\"\"");
        assert_eq!(escaped("a\"b\\c/\u{7f}é"), "\"a\\\"b\\\\c/\u{7f}é\"");
        assert_eq!(escaped("\u{8}\u{c}\n\r\t\u{1}\u{1f}"), r#""\b\f\n\r\t\u0001\u001f""#);
    }

    /// Payloads of a PostgreSQL 15 server, those of `composite.rs` and `array.rs`.
    #[test]
    fn rows_and_arrays_of_a_real_server_are_objects_and_arrays() {
        let row = "005557012d40000000000000fcff0400020c180007000000000000000800000000000000097820790f\
                   008101008813";
        let expected = r#"{"a":7,"a":"x y","a":1.50,"a":null}"#;
        assert_eq!(json(PAIR, &payload(row)).unwrap(), expected);
        let array = "0100000020000000170000000300000001000000050000000000000001000000fdffffff";
        assert_eq!(json(1007, &payload(array)).unwrap(), "[1,null,-3]");
        assert_eq!(json(1007, &payload("000000000000000017000000")).unwrap(), "[]");
    }

    #[test]
    fn numbers_that_json_has_not_are_strings() {
        assert!(is_number(b"-1.5e+300") && is_number(b"0"));
        assert!(!is_number(b"NaN") && !is_number(b"-Infinity") && !is_number(b""));
        assert_eq!(json(1700, &payload("00c0")).unwrap(), "\"NaN\"");
    }

    #[test]
    fn a_json_value_stays_on_its_line() {
        let mut value = b"{\n \"a\":\r\n\"\\n\"}".to_vec();
        blank_line_breaks(&mut value);
        assert_eq!(value, b"{  \"a\":  \"\\n\"}");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            for oid in samples::ALL {
                let _ = json(oid, &bytes);
            }
            let _ = (json(NEST, &bytes), hstore::write_json(&bytes, hstore::JsonValues::Strings, &mut Vec::new()));
        }
    }
}
