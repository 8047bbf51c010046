//! `aclexplode`: the privileges of a list of grants, each as a row.
//!
//! Source: `aclexplode`, `convert_aclright_to_string` in `src/backend/utils/adt/acl.c`, `AclItem` in `src/include/utils/acl.h`,
//! `ACL_…` in `src/include/nodes/parsenodes.h`, PostgreSQL 14 to 18. The rights are 16 bits and as many that can be granted on until 15,
//! 32 of each from 16 on.

use arrow::array::ArrayRef;
use datafusion::scalar::ScalarValue;
use pagemill_types::array::element_payloads;
use pagemill_types::builtin::oid;

use super::super::keys::payloads;
use super::super::rows::Outcome;
use super::{Cells, Series, SetCall, made};
use crate::error::{SqlState, StatementError};

/// The place of each is its bit.
const PRIVILEGES: [&str; 15] = [
    "INSERT",
    "SELECT",
    "UPDATE",
    "DELETE",
    "TRUNCATE",
    "REFERENCES",
    "TRIGGER",
    "EXECUTE",
    "USAGE",
    "CREATE",
    "TEMPORARY",
    "CONNECT",
    "SET",
    "ALTER SYSTEM",
    "MAINTAIN",
];

/// One privilege that was granted.
#[derive(Debug, PartialEq, Eq)]
struct Grant {
    grantor: u32,
    grantee: u32,
    privilege: &'static str,
    can_grant: bool,
}

pub(super) fn begin(
    call: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    let damaged = |message: String| StatementError::new(SqlState::DATA_CORRUPTED, message);
    let layout = call.catalog.values().value_type(oid::ACLITEM);
    let layout = layout.map_err(|error| damaged(error.to_string()))?.layout;
    let items = element_payloads(payloads(&arguments[0]).value(row), layout);
    let items = items.map_err(|error| damaged(error.to_string()))?;
    let mut grants = Vec::new();
    for item in items {
        let null = || {
            let message = "ACL arrays must not contain null values";
            StatementError::new(SqlState("22004"), message)
        };
        let item = item.ok_or_else(null)?;
        grants.extend(of_item(&item).ok_or_else(|| damaged("a grant is cut off".to_owned()))?);
    }
    Ok(made(grants, |grant, out: &mut [Cells]| {
        out[0].scalar(ScalarValue::UInt32(Some(grant.grantor)))?;
        out[1].scalar(ScalarValue::UInt32(Some(grant.grantee)))?;
        out[2].text(grant.privilege)?;
        out[3].scalar(ScalarValue::Boolean(Some(grant.can_grant)))
    }))
}

/// The grantee, the grantor, and the bits: two words of two or four bytes.
fn of_item(item: &[u8]) -> Option<Vec<Grant>> {
    let word = |at: usize| Some(u32::from_le_bytes(*item.get(at..)?.first_chunk()?));
    let (grantee, grantor) = (word(0)?, word(4)?);
    let (rights, options) = match item.len() {
        16.. => (word(8)?, word(12)?),
        _ => {
            let bits = word(8)?;
            (bits & 0xFFFF, bits >> 16)
        }
    };
    let granted = PRIVILEGES.iter().enumerate().filter(|(bit, _)| rights & (1 << bit) != 0);
    let grant = |(bit, privilege): (usize, &&'static str)| {
        let can_grant = options & (1 << bit) != 0;
        Grant { grantor, grantee, privilege, can_grant }
    };
    Some(granted.map(grant).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_told_in_their_order_in_both_forms() {
        let words = |words: &[u32]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_le_bytes()).collect()
        };
        let old = of_item(&words(&[0, 10, 0b11 | 0b10 << 16])).unwrap();
        let new = of_item(&words(&[0, 10, 0b11, 0b10])).unwrap();
        assert_eq!(old, new);
        assert_eq!((old[0].privilege, old[0].can_grant), ("INSERT", false));
        assert_eq!((old[1].privilege, old[1].can_grant), ("SELECT", true));
        assert!(of_item(&[1, 2, 3]).is_none());
    }
}
