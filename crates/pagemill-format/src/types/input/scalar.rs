//! The readers of scalars (a stand-in until the table of all of them is merged).

use super::{InputError, ScalarReader};
use crate::ids::{Oid, PgVersion};

/// The input function of a scalar.
pub fn scalar_reader(oid: Oid, _: PgVersion) -> Option<ScalarReader> {
    Some(match oid.0 {
        23 => int4,
        20 => int8,
        25 | 1043 => text,
        1700 => numeric,
        _ => return None,
    })
}

fn int4(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let parsed = std::str::from_utf8(text).ok().and_then(|t| t.trim().parse::<i32>().ok());
    out.extend_from_slice(&parsed.ok_or_else(|| InputError::syntax("integer", text))?.to_le_bytes());
    Ok(())
}

fn int8(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let parsed = std::str::from_utf8(text).ok().and_then(|t| t.trim().parse::<i64>().ok());
    out.extend_from_slice(&parsed.ok_or_else(|| InputError::syntax("bigint", text))?.to_le_bytes());
    Ok(())
}

fn text(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    out.extend_from_slice(text);
    Ok(())
}

fn numeric(text: &[u8], _: i32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let parsed = std::str::from_utf8(text).ok().and_then(|t| t.trim().parse::<i16>().ok());
    let parsed = parsed.ok_or_else(|| InputError::syntax("numeric", text))?;
    out.extend_from_slice(&(if parsed < 0 { 0xA000u16 } else { 0x8000 }).to_le_bytes());
    if parsed != 0 {
        out.extend_from_slice(&parsed.unsigned_abs().to_le_bytes());
    }
    Ok(())
}
