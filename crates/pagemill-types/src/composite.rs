//! Composite values: `(a,b,"c d")`, empty for null.
//!
//! A value older than its type's last attributes has NULL there (composite types have no
//! `attmissingval`); dropped attributes keep their bytes and are not printed.
//! Source: `record_out` in `src/backend/utils/adt/rowtypes.c`, PostgreSQL 14 to 18.

use pagemill_format::error::Result;
use pagemill_format::ids::Oid;
use pagemill_format::tuple::{Span, TUPLE_HEADER_BYTES, TupleData, TupleLayout};

use super::input::InputError;
use super::input::datum::push_datum;
use super::order::stored_payload;
use super::output::{CompositeAttribute, ValueWriter, is_space, quote_tail};

/// Flags of a tuple.
const HAS_NULL: u16 = 0x0001;
const HAS_VARIABLE_WIDTH: u16 = 0x0002;
/// The row pointer of a tuple that lies nowhere.
const NO_POINTER: [u8; 6] = [0xFF, 0xFF, 0xFF, 0xFF, 0, 0];

/// Appends a composite value.
pub(super) fn write_composite(
    writer: &mut ValueWriter<'_>,
    attributes: &[CompositeAttribute],
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let (_, _, tuple) = TupleData::parse_composite(payload)?;
    let layout = TupleLayout::new(attributes.iter().map(|a| a.layout).collect());
    let mut spans = Vec::new();
    layout.spans(&tuple, attributes.len(), &mut spans)?;
    out.push(b'(');
    let mut first = true;
    for (attribute, span) in attributes.iter().zip(&spans) {
        let Some(value_type) = &attribute.value_type else { continue };
        if !first {
            out.push(b',');
        }
        first = false;
        if *span == Span::NULL || *span == Span::MISSING {
            continue;
        }
        let Some(raw) = span.of(tuple.data) else { continue };
        let start = out.len();
        writer.write(&value_type.output, attribute.layout.len, raw, out)?;
        quote_field(out, start);
    }
    out.push(b')');
    Ok(())
}

/// The payload of a row of a type, of the payloads of its attributes, which are NULL where there is none; dropped ones have
/// none of their own among them. A name may be given without the zeros that fill it up.
///
/// # Errors
/// When a value is longer than any can be.
pub fn composite_payload(
    type_oid: Oid,
    attributes: &[CompositeAttribute],
    mut fields: impl Iterator<Item = Option<Vec<u8>>>,
) -> Result<Vec<u8>, InputError> {
    const LENGTH_WORD: usize = 4;
    let (mut nulls, mut data) = (vec![0_u8; attributes.len().div_ceil(8)], Vec::new());
    let mut flags = 0_u16;
    for (place, attribute) in attributes.iter().enumerate() {
        let field = if attribute.value_type.is_some() { fields.next().flatten() } else { None };
        match field {
            None => flags |= HAS_NULL,
            Some(mut payload) => {
                let fixed = usize::try_from(attribute.layout.len).unwrap_or(0); // default: of any length
                payload.resize(payload.len().max(fixed), 0);
                nulls[place / 8] |= 1 << (place % 8);
                push_datum(attribute.layout, false, &payload, &mut data)?;
                if attribute.layout.len < 0 {
                    flags |= HAS_VARIABLE_WIDTH;
                }
            }
        }
    }
    if flags & HAS_NULL == 0 {
        nulls.clear();
    }
    let header = (TUPLE_HEADER_BYTES + nulls.len()).next_multiple_of(8);
    let mut payload = vec![0xFF; 4];
    payload.extend_from_slice(&type_oid.0.to_le_bytes());
    payload.extend_from_slice(&NO_POINTER);
    payload.extend_from_slice(&(attributes.len() as u16).to_le_bytes());
    payload.extend_from_slice(&flags.to_le_bytes());
    payload.push(header as u8);
    payload.extend_from_slice(&nulls);
    payload.resize(header - LENGTH_WORD, 0);
    payload.extend_from_slice(&data);
    Ok(payload)
}

/// The payloads of the fields of a row, NULL where there is none; dropped attributes have no field.
///
/// # Errors
/// When the row is damaged.
pub fn composite_fields(
    payload: &[u8],
    attributes: &[CompositeAttribute],
) -> Result<Vec<Option<Vec<u8>>>> {
    let (_, _, tuple) = TupleData::parse_composite(payload)?;
    let layout = TupleLayout::new(attributes.iter().map(|a| a.layout).collect());
    let mut spans = Vec::new();
    layout.spans(&tuple, attributes.len(), &mut spans)?;
    let field = |(attribute, span): (&CompositeAttribute, &Span)| {
        let is_there = *span != Span::NULL && *span != Span::MISSING;
        let raw = if is_there { span.of(tuple.data) } else { None };
        raw.map(|raw| stored_payload(attribute.layout.len, raw).into_owned())
    };
    let kept =
        attributes.iter().zip(&spans).filter(|(attribute, _)| attribute.value_type.is_some());
    Ok(kept.map(field).collect())
}

/// Puts quotes around what was appended from `start` on, where a field of a row needs them.
pub fn quote_field(out: &mut Vec<u8>, start: usize) {
    let text = &out[start..];
    let special = |b: &u8| matches!(b, b'"' | b'\\' | b'(' | b')' | b',') || is_space(*b);
    if text.is_empty() || text.iter().any(special) {
        quote_tail(out, start, |b| matches!(b, b'"' | b'\\').then_some(b));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::known_value_tests::{mutation, mutations, payload};
    use super::super::output::TypeOutput;
    use super::super::output::samples::{self, NEST, PAIR, text};
    use super::*;

    /// Payloads and texts of a PostgreSQL 15 server. The second attribute was dropped after the
    /// first two rows were written, the last one added before the fourth.
    const KNOWN: &[(&str, &str)] = &[
        (
            "\
             005557012d40000000000000fcff0400020c180007000000000000000800000000000000097820790f\
             008101008813",
            r#"(7,"x y",1.50,)"#,
        ),
        ("005557012d40000000000000fcff0400030c1806080000000000000003", r#"(,"",,)"#),
        ("005557012d40000000000000fcff0400030c1805ffffffff0f71225c282c29", r#"(-1,"q""\\(,)",,)"#),
        (
            "\
             e04758012d40000000000000fcff0500030c181d0100000005620b008002004b0100000020000000190\
             00000020000000100000001000000000000001c00000061206200",
            r#"(1,b,2,"{""a b"",NULL}")"#,
        ),
    ];

    #[test]
    fn rows_of_a_real_server_print_as_it_prints_them() {
        for (value, expected) in KNOWN {
            assert_eq!(text(PAIR, &payload(value)).unwrap(), *expected);
        }
    }

    #[test]
    fn a_row_that_is_made_reads_as_its_fields() {
        let pair = samples::find(PAIR).unwrap();
        let TypeOutput::Composite(attributes) = &pair.output else { panic!("a pair is a row") };
        let fields = [Some(7_i32.to_le_bytes().to_vec()), Some(b"x y".to_vec()), None, None];
        let made = composite_payload(Oid(PAIR), attributes, fields.into_iter()).unwrap();
        assert_eq!(text(PAIR, &made).unwrap(), r#"(7,"x y",,)"#);
        let fields = composite_fields(&made, attributes).unwrap();
        assert_eq!(fields[..2], [Some(7_i32.to_le_bytes().to_vec()), Some(b"x y".to_vec())]);
        assert!(fields[2..].iter().all(Option::is_none));
    }

    /// A name is carried without its zeros, and a row of a table with one was damaged.
    #[test]
    fn a_payload_that_is_too_short_is_filled_up_to_its_length() {
        let pair = samples::find(PAIR).unwrap();
        let TypeOutput::Composite(attributes) = &pair.output else { panic!("a pair is a row") };
        let fields = [Some(vec![7]), Some(b"x".to_vec()), None, None];
        let made = composite_payload(Oid(PAIR), attributes, fields.into_iter()).unwrap();
        assert_eq!(text(PAIR, &made).unwrap(), "(7,x,,)");
    }

    #[test]
    fn a_row_without_attributes_prints_as_nulls() {
        let empty = payload("ffffffff2d40000000000000ffff0000000018 00".replace(' ', "").as_str());
        assert_eq!(text(PAIR, &empty).unwrap(), "(,,,)");
    }

    #[test]
    fn a_header_that_ends_inside_of_itself_or_past_the_value_is_damage() {
        let sound = payload(KNOWN[0].0);
        for hoff in [0, 8, 16, 23, 25, 248] {
            let mut value = sound.clone();
            value[18] = hoff;
            assert!(text(PAIR, &value).is_err(), "{hoff}");
        }
    }

    proptest! {
        #[test]
        fn damaged_rows_never_panic(change in mutation(KNOWN.len())) {
            for value in mutations(KNOWN, &change) {
                let _ = (text(PAIR, &value), text(NEST, &value));
            }
        }
    }
}
