//! What to print for each OID of one catalog, made ready once and copied ever after: the printing
//! of a value costs one probe of a hash table and one copy.
//!
//! Invariant: every span lies within `bytes`.

use pagemill_format::Oid;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

/// A map keyed by OIDs.
pub(super) type OidMap<V> = HashMap<Oid, V, BuildHasherDefault<OidHasher>>;

/// Texts by OID, one after another in one allocation.
#[derive(Debug, Default)]
pub(super) struct Texts {
    bytes: Vec<u8>,
    spans: OidMap<Range<usize>>,
}

impl Texts {
    /// Makes room for `rows` texts.
    pub(super) fn with_capacity(rows: usize) -> Self {
        let spans = OidMap::with_capacity_and_hasher(rows, BuildHasherDefault::default());
        Self { bytes: Vec::with_capacity(rows.saturating_mul(16)), spans }
    }

    /// Makes what `write` appends the text of `oid`.
    pub(super) fn insert(&mut self, oid: Oid, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.spans.insert(oid, start..self.bytes.len());
    }

    /// The text of `oid`.
    pub(super) fn get(&self, oid: Oid) -> Option<&[u8]> {
        self.bytes.get(self.spans.get(&oid)?.clone())
    }

    /// Appends the text of `oid`: `zero` for no object, the bare number for one that is missing.
    pub(super) fn write(&self, oid: Oid, zero: &[u8], out: &mut Vec<u8>) {
        match self.get(oid) {
            _ if !oid.is_valid() => out.extend_from_slice(zero),
            Some(text) => out.extend_from_slice(text),
            None => out.extend_from_slice(oid.to_string().as_bytes()),
        }
    }
}

/// Spreads OIDs over a hash table: they come from one counter, so a multiplication is enough.
#[derive(Debug, Default)]
pub(super) struct OidHasher(u64);

impl Hasher for OidHasher {
    fn finish(&self) -> u64 {
        // The table takes its bucket from the low bits and its tag from the high ones.
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(byte.into());
        }
    }

    fn write_u32(&mut self, number: u32) {
        // 2^64 divided by the golden ratio (Knuth, volume 3, section 6.4).
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_object_a_known_one_and_a_missing_one_print_apart() {
        let mut texts = Texts::with_capacity(2);
        texts.insert(Oid(7), |out| out.extend_from_slice(b"seven"));
        texts.insert(Oid(8), |_| ());
        let print = |oid| {
            let mut out = Vec::new();
            texts.write(Oid(oid), b"-", &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!([print(0), print(7), print(8), print(9)], ["-", "seven", "", "9"]);
    }
}
