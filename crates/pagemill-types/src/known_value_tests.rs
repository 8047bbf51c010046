//! Known values and their texts, and damaged values made of them, for the tests of types.
//!
//! The texts are those of a PostgreSQL server for the same bytes.

use proptest::prelude::*;
use proptest::sample::Index;

use super::ScalarWriter;

/// The bytes written as `hex`.
pub(crate) fn payload(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// Checks pairs of a payload, in hexadecimal, and its text.
pub(crate) fn assert_known(writer: ScalarWriter, known: &[(&str, &str)]) {
    for (value, text) in known {
        let mut out = b"before ".to_vec();
        writer(&payload(value), &mut out).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(String::from_utf8_lossy(&out), format!("before {text}"));
    }
}

/// Which of the known values to damage, and how.
#[derive(Debug, Clone)]
pub(crate) struct Mutation {
    which: usize,
    bytes: Vec<(Index, u8)>,
    cut: Index,
}

pub(crate) fn mutation(count: usize) -> impl Strategy<Value = Mutation> {
    let bytes = prop::collection::vec(any::<(Index, u8)>(), 1..6);
    (0..count, bytes, any::<Index>()).prop_map(|(which, bytes, cut)| Mutation { which, bytes, cut })
}

/// The value with some bytes changed, and cut short.
pub(crate) fn mutations(
    known: &[(&str, &str)],
    change: &Mutation,
) -> impl Iterator<Item = Vec<u8>> + use<> {
    let sound = payload(known[change.which % known.len()].0);
    let mut changed = sound.clone();
    for (at, byte) in &change.bytes {
        if !changed.is_empty() {
            let at = at.index(changed.len());
            changed[at] = *byte;
        }
    }
    let cut = sound[..change.cut.index(sound.len() + 1)].to_vec();
    [changed, cut].into_iter()
}
