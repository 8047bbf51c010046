//! The values of `pg_statistic_ext_data`: `pg_ndistinct`, `pg_dependencies` and `pg_mcv_list`,
//! printed as their output functions do.
//!
//! The first two are packed without gaps, so nothing is aligned:
//!
//! ```text
//! both             magic | type | number of items | items
//! pg_ndistinct     item: distinct values (f64) | number of attributes (i32) | attributes (i16)
//! pg_dependencies  item: degree (f64) | number of attributes (i16) | attributes (i16)
//! ```
//!
//! Sources: `src/include/statistics/statistics.h`, `src/backend/statistics/mvdistinct.c`,
//! `dependencies.c`, `mcv.c` (`pg_mcv_list_out` is `byteaout`), PostgreSQL 14 to 18.

use std::io::Write;

use pagemill_format::error::Result;
use pagemill_format::reader::Reader;

const NDISTINCT_MAGIC: u32 = 0xA352_BFA4;
const DEPENDENCIES_MAGIC: u32 = 0xB454_9A2C;
const TYPE_BASIC: u32 = 1;

/// Appends a `pg_ndistinct` as `pg_ndistinct_out` prints it.
///
/// # Errors
/// When the value is damaged.
pub fn write_pg_ndistinct(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let mut reader = Reader::new("pg_ndistinct", value);
    let items = item_count(&mut reader, NDISTINCT_MAGIC)?;
    out.push(b'{');
    for i in 0..items {
        out.extend_from_slice(if i == 0 { b"\"" } else { b", \"" });
        let distinct = reader.f64()?;
        let attributes = reader.u32()?;
        for attribute in 0..attributes {
            out.extend_from_slice(if attribute == 0 { b"" } else { b", " });
            write_number(reader.i16()?.into(), out);
        }
        out.extend_from_slice(b"\": ");
        write_number(distinct as i32, out);
    }
    out.push(b'}');
    Ok(())
}

/// Appends a `pg_dependencies` as `pg_dependencies_out` prints it.
///
/// # Errors
/// When the value is damaged.
pub fn write_pg_dependencies(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let mut reader = Reader::new("pg_dependencies", value);
    let items = item_count(&mut reader, DEPENDENCIES_MAGIC)?;
    out.push(b'{');
    for i in 0..items {
        out.extend_from_slice(if i == 0 { b"\"" } else { b", \"" });
        let degree = reader.f64()?;
        let attributes = reader.u16()?;
        for attribute in 0..attributes {
            if attribute == attributes - 1 {
                out.extend_from_slice(b" => ");
            } else if attribute > 0 {
                out.extend_from_slice(b", ");
            }
            write_number(reader.i16()?.into(), out);
        }
        out.extend_from_slice(b"\": ");
        write_degree(degree, out);
    }
    out.push(b'}');
    Ok(())
}

/// Appends a `pg_mcv_list` as `pg_mcv_list_out` prints it: as hexadecimal `bytea`.
///
/// # Errors
/// Never.
pub fn write_pg_mcv_list(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.reserve(value.len() * 2 + 2);
    out.extend_from_slice(b"\\x");
    for byte in value {
        out.push(HEX[usize::from(byte >> 4)]);
        out.push(HEX[usize::from(byte & 15)]);
    }
    Ok(())
}

/// Reads the header both types share; returns the number of items.
fn item_count(reader: &mut Reader<'_>, magic: u32) -> Result<u32> {
    let found = reader.u32()?;
    if found != magic {
        return Err(reader.corrupt(format!("magic {found:08x}, not {magic:08x}")));
    }
    let kind = reader.u32()?;
    if kind != TYPE_BASIC {
        return Err(reader.corrupt(format!("type {kind}, not {TYPE_BASIC}")));
    }
    match reader.u32()? {
        0 => Err(reader.corrupt("no items")),
        items => Ok(items),
    }
}

fn write_number(number: i32, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// A degree as `%f` prints it, in PostgreSQL's spelling of what is no number.
fn write_degree(degree: f64, out: &mut Vec<u8>) {
    if degree.is_finite() {
        // Writing to a vector cannot fail.
        let _ = write!(out, "{degree:.6}");
    } else if degree.is_nan() {
        out.extend_from_slice(b"NaN");
    } else {
        out.extend_from_slice(if degree > 0.0 { b"Infinity" } else { b"-Infinity" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known_value_tests::{assert_known, mutation, mutations, payload};
    use proptest::prelude::*;

    /// Payloads and texts of a PostgreSQL 15 server; 18 writes the same.
    const NDISTINCT: &[(&str, &str)] = &[
        ("a4bf52a3010000000100000000000000000059400200000001000200", r#"{"1, 2": 100}"#),
        (
            "\
             a4bf52a3010000000400000000000000007c9a40020000000300ffff0000000000b2a64002000000\
             0300feff000000000084a64002000000fffffeff00000000001ca740030000000300fffffeff",
            r#"{"3, -1": 1695, "3, -2": 2905, "-1, -2": 2882, "3, -1, -2": 2958}"#,
        ),
    ];

    /// Payloads and texts of a PostgreSQL 15 server; 18 writes the same.
    const DEPENDENCIES: &[(&str, &str)] = &[
        ("2c9a54b40100000001000000000000000000f03f020002000100", r#"{"2 => 1": 1.000000}"#),
        (
            "\
             2c9a54b40100000007000000fca9f1d24d62a03f02000300feff7b14ae47e17a843f0200fffffeff\
             d4bf11cae86dc93f0200feff0300d4bf11cae86dc93f0200feffffffd34d62105839c43f03000300\
             fffffeff60e5d022dbf9ee3f03000300feffffff4728a3b765adee3f0300fffffeff0300",
            r#"{"3 => -2": 0.032000, "-1 => -2": 0.010000, "-2 => 3": 0.198667, "-2 => -1": 0.198667, "3, -1 => -2": 0.158000, "3, -2 => -1": 0.968000, "-1, -2 => 3": 0.958667}"#,
        ),
        (
            "\
             2c9a54b401000000020000009a9999999999b93f02000100060096438b6ce7fbe93f020006000100",
            r#"{"1 => 6": 0.100000, "6 => 1": 0.812000}"#,
        ),
    ];

    #[test]
    fn values_of_a_real_server_print_as_it_prints_them() {
        assert_known(write_pg_ndistinct, NDISTINCT);
        assert_known(write_pg_dependencies, DEPENDENCIES);
        assert_known(write_pg_mcv_list, &[("c251a6e101", r"\xc251a6e101"), ("", r"\x")]);
    }

    #[test]
    fn degrees_round_to_even_and_know_what_is_no_number() {
        let text = |degree| {
            let mut out = Vec::new();
            write_degree(degree, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(0.007_812_5), "0.007812");
        assert_eq!(text(0.023_437_5), "0.023438");
        assert_eq!(text(f64::NAN), "NaN");
        assert_eq!(text(f64::NEG_INFINITY), "-Infinity");
    }

    #[test]
    fn another_magic_number_is_damage() {
        let value = payload(NDISTINCT[0].0);
        let error = write_pg_dependencies(&value, &mut Vec::new()).unwrap_err().to_string();
        assert_eq!(error, "corrupt pg_dependencies: magic a352bfa4, not b4549a2c (byte 4)");
    }

    proptest! {
        #[test]
        fn damaged_values_never_panic(change in mutation(4)) {
            for value in mutations(NDISTINCT, &change).chain(mutations(DEPENDENCIES, &change)) {
                let _ = write_pg_ndistinct(&value, &mut Vec::new());
                let _ = write_pg_dependencies(&value, &mut Vec::new());
            }
        }
    }
}
