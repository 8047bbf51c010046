//! The hash by which rows are given to partitions: 64 bits, the same in every cluster.
//!
//! Values are hashed by the extended hash function of their type's hash operator class. Those of types whose function is
//! not written here have no hash, and whoever needs it refuses the table.
//!
//! Source: `src/common/hashfn.c`, `src/backend/access/hash/hashfunc.c`, `compute_partition_hash_value` and
//! `HASH_PARTITION_SEED` in `src/backend/partitioning/partbounds.c`, `src/include/common/hashfn.h`, PostgreSQL 14 to 18.

use pagemill_format::ids::Oid;

use crate::builtin::{BuiltinType, oid};

/// The seed of all partitions.
const PARTITION_SEED: u64 = 0x7A5B_2236_7996_DCFD;
/// Added to each hash that is combined with others.
const COMBINATION: u64 = 0x49a0_f4dd_15e5_a8e3;

/// How payloads of a type are hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueHash {
    /// Four bytes or fewer, taken as a signed number: int2, int4, date, bool, "char".
    Signed,
    /// Four bytes: oid, enums.
    Unsigned,
    /// Eight bytes, so that equal numbers of both widths agree: int8, timestamps, time.
    Wide,
    /// All bytes: text, bytea, uuid.
    Bytes,
    /// A text without the blanks at its end.
    Padded,
}

impl ValueHash {
    /// How values of an operator class's input type are hashed, where it is known here.
    pub fn of_type(of: Oid) -> Option<Self> {
        if of == oid::ANYENUM {
            return Some(Self::Unsigned);
        }
        BuiltinType::by_oid(of)?.hash
    }

    fn hash(self, payload: &[u8]) -> u64 {
        match self {
            Self::Signed => hash_bytes(&(signed(payload) as i32).to_le_bytes()),
            Self::Unsigned => hash_bytes(payload),
            Self::Wide => {
                let value = signed(payload);
                let high = (value >> 32) as u32;
                let folded = value as u32 ^ if value >= 0 { high } else { !high };
                hash_bytes(&folded.to_le_bytes())
            }
            Self::Bytes => hash_bytes(payload),
            Self::Padded => {
                let end = payload.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
                hash_bytes(payload.get(..end).unwrap_or_default())
            }
        }
    }
}

/// The hash of a row's partition key; nulls count for nothing.
pub fn partition_hash<'a>(key: impl Iterator<Item = (ValueHash, Option<&'a [u8]>)>) -> u64 {
    key.filter_map(|(hash, payload)| Some(hash.hash(payload?))).fold(0, |all, hash| {
        all ^ hash.wrapping_add(COMBINATION).wrapping_add(all << 54).wrapping_add(all >> 7)
    })
}

/// A number of up to eight bytes, with its sign.
fn signed(payload: &[u8]) -> i64 {
    let mut bytes = [0; 8];
    let fill = if payload.last().is_some_and(|last| last & 0x80 != 0) { 0xFF } else { 0 };
    bytes.fill(fill);
    for (to, from) in bytes.iter_mut().zip(payload) {
        *to = *from;
    }
    i64::from_le_bytes(bytes)
}

/// Jenkins' hash of any bytes, with the seed of partitions.
fn hash_bytes(bytes: &[u8]) -> u64 {
    let start = 0x9e37_79b9_u32.wrapping_add(bytes.len() as u32).wrapping_add(3_923_095);
    let mut state = [
        start.wrapping_add((PARTITION_SEED >> 32) as u32),
        start.wrapping_add(PARTITION_SEED as u32),
        start,
    ];
    mix(&mut state);
    let mut chunks = bytes.chunks_exact(12);
    for chunk in &mut chunks {
        add(&mut state, chunk, 0);
        mix(&mut state);
    }
    // The lowest byte of the last word was the length's, which went in at the start.
    add(&mut state, chunks.remainder(), 8);
    finish(&mut state);
    u64::from(state[1]) << 32 | u64::from(state[2])
}

/// Adds up to twelve bytes as three words, the last of them shifted.
fn add(state: &mut [u32; 3], bytes: &[u8], last_shift: u32) {
    for ((word, bytes), shift) in state.iter_mut().zip(bytes.chunks(4)).zip([0, 0, last_shift]) {
        let mut value = [0; 4];
        for (to, from) in value.iter_mut().zip(bytes) {
            *to = *from;
        }
        *word = word.wrapping_add(u32::from_le_bytes(value) << shift);
    }
}

fn mix([a, b, c]: &mut [u32; 3]) {
    let step = |x: &mut u32, y: &mut u32, z: &mut u32, by: u32| {
        *x = x.wrapping_sub(*z) ^ z.rotate_left(by);
        *z = z.wrapping_add(*y);
    };
    step(a, b, c, 4);
    step(b, c, a, 6);
    step(c, a, b, 8);
    step(a, b, c, 16);
    step(b, c, a, 19);
    step(c, a, b, 4);
}

fn finish([a, b, c]: &mut [u32; 3]) {
    let step = |x: &mut u32, y: &u32, by: u32| *x = (*x ^ *y).wrapping_sub(y.rotate_left(by));
    step(c, b, 14);
    step(a, c, 11);
    step(b, a, 25);
    step(c, b, 16);
    step(a, c, 4);
    step(b, a, 14);
    step(c, b, 24);
}
