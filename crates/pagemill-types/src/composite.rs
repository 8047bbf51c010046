//! Composite values: `(a,b,"c d")`, empty for null.
//!
//! A value older than its type's last attributes has NULL there (composite types have no
//! `attmissingval`); dropped attributes keep their bytes and are not printed.
//! Source: `record_out` in `src/backend/utils/adt/rowtypes.c`, PostgreSQL 14 to 18.

use pagemill_format::error::Result;
use pagemill_format::tuple::{Span, TupleData, TupleLayout};

use super::output::{CompositeAttribute, ValueWriter, is_space, quote_tail};

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
        quote(out, start);
    }
    out.push(b')');
    Ok(())
}

fn quote(out: &mut Vec<u8>, start: usize) {
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
    use super::super::output::samples::{NEST, PAIR, text};

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
