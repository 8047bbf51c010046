//! The hash by which rows are given to partitions: 64 bits, the same in every cluster.
//!
//! Values are hashed by the extended hash function of their type's hash operator class, with the seed of partitions. Those of types whose
//! function is not had here have no hash, and whoever needs it refuses the table.
//!
//! Source: `compute_partition_hash_value` and `HASH_PARTITION_SEED` in `src/backend/partitioning/partbounds.c`,
//! `src/include/common/hashfn.h`, PostgreSQL 14 to 18.

use pagemill_format::ids::Oid;

use crate::builtin::oid;
use crate::value_hash::ValueHash;

/// The seed of all partitions.
const PARTITION_SEED: u64 = 0x7A5B_2236_7996_DCFD;
/// Added to each hash that is combined with others.
const COMBINATION: u64 = 0x49a0_f4dd_15e5_a8e3;

/// How values of an operator class's input type are hashed, where rows are given to partitions by it here. Of the other types values are
/// carried in more than one form, or could be stored in one that older servers hashed otherwise, as NaN.
pub fn partition_hash_of(of: Oid) -> Option<ValueHash> {
    use ValueHash::{Bytes, Padded, Signed, Unsigned, Wide};
    let is_other =
        matches!(of, oid::TID | oid::INET | oid::CIDR | oid::MACADDR | oid::MACADDR8 | oid::PG_LSN);
    let hash = ValueHash::of_type(of).filter(|_| !is_other)?;
    matches!(hash, Signed | Unsigned | Wide | Bytes | Padded).then_some(hash)
}

/// The hash of a row's partition key; nulls count for nothing.
pub fn partition_hash<'a>(key: impl Iterator<Item = (ValueHash, Option<&'a [u8]>)>) -> u64 {
    key.filter_map(|(hash, payload)| Some(hash.hash(payload?, PARTITION_SEED))).fold(
        0,
        |all, hash| {
            all ^ hash.wrapping_add(COMBINATION).wrapping_add(all << 54).wrapping_add(all >> 7)
        },
    )
}
