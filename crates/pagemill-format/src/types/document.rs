//! The output functions of the document, text-search and statistics types, by type OID.
//!
//! Only the types whose text needs nothing but the value: `aclitem` (role names) and
//! `pg_brin_minmax_multi_summary` (the bounds' type) are called by whoever has the catalogs.
//!
//! Source of the OIDs: `src/include/catalog/pg_type.dat`, PostgreSQL 14 to 18.

use super::{ScalarWriter, brin, jsonb, jsonpath, statistics, tsquery, tsvector};
use crate::error::Result;
use crate::ids::{Oid, PgVersion};

/// The output function of the built-in type `oid` in `version`, if it is one of these.
pub fn document_by_oid(oid: Oid, version: PgVersion) -> Option<ScalarWriter> {
    Some(match oid.0 {
        194 => write_pg_node_tree,
        3361 => statistics::write_pg_ndistinct,
        3402 => statistics::write_pg_dependencies,
        3614 => tsvector::write_tsvector,
        3615 => tsquery::write_tsquery,
        3642 if version < PgVersion::V17 => tsvector::write_gtsvector_before_17,
        3642 => tsvector::write_gtsvector,
        3802 => jsonb::write_jsonb,
        4072 if version < PgVersion::V15 => jsonpath::write_jsonpath_before_15,
        4072 => jsonpath::write_jsonpath,
        4600 => brin::write_pg_brin_bloom_summary,
        5017 => statistics::write_pg_mcv_list,
        _ => return None,
    })
}

/// Appends a `pg_node_tree`, which is stored as the text it prints as.
///
/// # Errors
/// Never.
pub fn write_pg_node_tree(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(value);
    Ok(())
}

/// Known values, and damaged ones made of them, for the tests of these types.
#[cfg(test)]
pub(super) mod known {
    use super::ScalarWriter;
    use proptest::prelude::*;
    use proptest::sample::Index;

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
        (0..count, bytes, any::<Index>()).prop_map(|(which, bytes, cut)| Mutation {
            which,
            bytes,
            cut,
        })
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_by_oid_and_version() {
        let gtsvector = |version| {
            let writer = document_by_oid(Oid(3642), version).unwrap();
            let mut out = Vec::new();
            writer(&known::payload("06000000"), &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(gtsvector(PgVersion::V16), "0 true bits, 0 false bits");
        assert_eq!(gtsvector(PgVersion::V17), "all true bits");
        assert!(document_by_oid(Oid(4601), PgVersion::V18).is_none());
    }

    #[test]
    fn a_node_tree_is_its_text() {
        let mut out = Vec::new();
        write_pg_node_tree(b"({CONST :constvalue 4 [ 1 0 0 0 ]})", &mut out).unwrap();
        assert_eq!(out, b"({CONST :constvalue 4 [ 1 0 0 0 ]})");
    }
}
