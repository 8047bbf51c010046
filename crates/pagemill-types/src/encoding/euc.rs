//! The EUC encodings: which characters their byte sequences mean, and the other way round.
//!
//! Characters are those of planes of 94 rows and columns. A sequence is two bytes from 0xa1 on, row
//! and column. EUC_JP has more: 0x8e and a half-width katakana, 0x8f and a row and column of a
//! second plane. Source: `src/common/wchar.c`, PostgreSQL 14 to 18.

use super::tables::{
    EUC_BYTES, Plane, euc_cn_plane, euc_jp_plane, euc_jp_plane_3, euc_kr_plane, in_plane,
};

/// The characters of one EUC encoding.
#[derive(Clone, Debug)]
pub(crate) struct EucPlanes {
    two_bytes: Plane,
    /// What EUC_JP alone has: half-width katakana behind 0x8e, a second plane behind 0x8f.
    three_bytes: Option<Plane>,
}

impl EucPlanes {
    /// Those of the encoding with this name; none if it is no EUC encoding that is known here.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let (two_bytes, three_bytes) = match name {
            "EUC_JP" => (euc_jp_plane(), Some(euc_jp_plane_3())),
            "EUC_CN" => (euc_cn_plane(), None),
            "EUC_KR" => (euc_kr_plane(), None),
            _ => return None,
        };
        Some(Self { two_bytes, three_bytes })
    }

    /// How many bytes the first character takes, going by its first byte.
    pub(crate) fn length(&self, bytes: &[u8]) -> usize {
        match bytes.first() {
            Some(0x8f) if self.three_bytes.is_some() => 3,
            Some(0x80..) => 2,
            _ => 1,
        }
    }

    /// The character; 0 if the sequence is well-formed but unassigned, none if it is malformed.
    pub(crate) fn character(&self, sequence: &[u8]) -> Option<u16> {
        match (sequence, &self.three_bytes) {
            (&[0x8e, kana @ 0xa1..=0xdf], Some(_)) => Some(0xff61 + u16::from(kana - 0xa1)),
            (&[0x8f, row, column], Some(plane)) => well_formed(plane, row, column),
            (&[row, column], _) => well_formed(&self.two_bytes, row, column),
            _ => None,
        }
    }

    /// A short text in this encoding: every sequence is tried for every character.
    pub(crate) fn encoded(&self, text: &str) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        for unit in text.encode_utf16() {
            match u8::try_from(unit) {
                Ok(ascii @ 1..0x80) => out.push(ascii),
                _ => out.extend(self.sequence(unit)?),
            }
        }
        Some(out)
    }

    fn sequence(&self, unit: u16) -> Option<Vec<u8>> {
        sequences().find(|sequence| unit != 0 && self.character(sequence) == Some(unit))
    }

    /// All characters with their sequences; where one has several, the shorter ones come last.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u16, Vec<u8>)> {
        let all: Vec<_> = sequences().collect();
        all.into_iter().rev().filter_map(|sequence| match self.character(&sequence)? {
            0 => None,
            unit => Some((unit, sequence)),
        })
    }
}

/// All that may be sequences of one encoding or another, the shorter ones first.
fn sequences() -> impl Iterator<Item = Vec<u8>> {
    let pairs = || EUC_BYTES.flat_map(|row| EUC_BYTES.map(move |column| [row, column]));
    let katakana = EUC_BYTES.map(|byte| vec![0x8e, byte]);
    let long = pairs().map(|[row, column]| vec![0x8f, row, column]);
    pairs().map(Vec::from).chain(katakana).chain(long)
}

fn well_formed(plane: &Plane, row: u8, column: u8) -> Option<u16> {
    let valid = EUC_BYTES.contains(&row) && EUC_BYTES.contains(&column);
    valid.then(|| in_plane(plane, row, column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_of_two_bytes_is_found_again() {
        let planes = EucPlanes::of("EUC_KR").unwrap();
        for row in EUC_BYTES.step_by(7) {
            let Some(unit @ 1..) = planes.character(&[row, 0xa5]) else { continue };
            let found = planes.sequence(unit).unwrap();
            assert_eq!(planes.character(&found), Some(unit));
        }
    }

    #[test]
    fn a_character_of_no_sequence_is_not_found() {
        let planes = EucPlanes::of("EUC_JP").unwrap();
        for unit in [0, 0x20ac, 0xd83d] {
            assert_eq!(planes.sequence(unit), None);
        }
        assert!(EucPlanes::of("EUC_TW").is_none());
    }
}
