//! What an UUID tells: its version, and when it was made.
//!
//! Source: `uuid_extract_timestamp`, `uuid_extract_version` in `src/backend/utils/adt/uuid.c`, PostgreSQL 17 and 18; RFC 9562.

use arrow::array::ArrayRef;

use super::rows::{Outcome, one};
use super::{Implementation, KernelCall};
use crate::error::{SqlState, StatementError};

pub(crate) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        "uuid_extract_version" => |_, a| one(a, |x: &[u8]| Ok(version(&bytes(x)?))),
        "uuid_extract_timestamp" => moments,
        _ => return None,
    }))
}

/// From 18 on of version 7, too.
fn moments(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let knows_seven = call.catalog.database().cluster().version().major() >= 18;
    one(arguments, |x: &[u8]| Ok(moment(&bytes(x)?, knows_seven)))
}

fn bytes(payload: &[u8]) -> Outcome<[u8; 16]> {
    payload.try_into().map_err(|_| {
        let message = format!("an uuid of {} bytes is damaged", payload.len());
        StatementError::new(SqlState::DATA_CORRUPTED, message)
    })
}

/// None where it is of another variant.
fn version(uuid: &[u8; 16]) -> Option<i16> {
    (uuid[8] & 0xC0 == 0x80).then_some(i16::from(uuid[6] >> 4))
}

/// Days from 1582-10-15, and from 1970-01-01, to 2000-01-01.
const DAYS: (i64, i64) = (2_451_545 - 2_299_161, 10_957);
const MICROSECONDS_A_DAY: i64 = 86_400_000_000;

/// In microseconds from 2000-01-01.
fn moment(uuid: &[u8; 16], knows_seven: bool) -> Option<i64> {
    let [a, b, c, d, e, f, g, h, ..] = *uuid;
    match version(uuid)? {
        1 => {
            let ticks = i64::from_be_bytes([g & 0xF, h, e, f, a, b, c, d]);
            Some(ticks / 10 - DAYS.0 * MICROSECONDS_A_DAY)
        }
        7 if knows_seven => {
            let milliseconds = i64::from_be_bytes([0, 0, a, b, c, d, e, f]);
            Some(milliseconds * 1000 - DAYS.1 * MICROSECONDS_A_DAY)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uuid(text: &str) -> [u8; 16] {
        u128::from_str_radix(&text.replace('-', ""), 16).unwrap().to_be_bytes()
    }

    #[test]
    fn versions_one_and_seven_tell_when_they_were_made() {
        // Both of 2022-02-22 19:22:22 UTC, as in RFC 9562.
        let one = uuid("C232AB00-9414-11EC-B3C8-9F6BDECED846");
        let seven = uuid("017F22E2-79B0-7CC3-98C4-DC0C0C07398F");
        assert_eq!(moment(&one, false), Some(698_872_942_000_000));
        assert_eq!(moment(&seven, true), Some(698_872_942_000_000));
        assert_eq!(moment(&seven, false), None);
        assert_eq!((version(&one), version(&seven)), (Some(1), Some(7)));
        assert_eq!(version(&uuid("11111111-1111-1111-1111-111111111111")), None);
    }
}
