//! The shape of `pg_attribute` itself, which describes every other table, per version.
//!
//! Source: the `create pg_attribute` command of each version's `postgres.bki`, which initdb runs.

use pagemill_format::PgVersion;
use pagemill_format::tuple::AttributeLayout;

/// A column of a catalog: its name and shape.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BootstrapColumn {
    pub(crate) name: &'static str,
    pub(crate) layout: AttributeLayout,
}

const OID: AttributeLayout = AttributeLayout { len: 4, align: 4 };
const INT2: AttributeLayout = AttributeLayout { len: 2, align: 2 };
const INT4: AttributeLayout = AttributeLayout { len: 4, align: 4 };
const NAME: AttributeLayout = AttributeLayout { len: 64, align: 1 };
const CHAR: AttributeLayout = AttributeLayout { len: 1, align: 1 };
const VARLENA: AttributeLayout = AttributeLayout { len: -1, align: 4 };
/// An array whose elements need it: `anyarray`, and `aclitem[]` from 16 on.
const WIDE_ARRAY: AttributeLayout = AttributeLayout { len: -1, align: 8 };

/// What all versions have between `attndims`'s neighbourhood and `attinhcount`.
const FLAGS: [(&str, AttributeLayout); 11] = [
    ("attbyval", CHAR),
    ("attalign", CHAR),
    ("attstorage", CHAR),
    ("attcompression", CHAR),
    ("attnotnull", CHAR),
    ("atthasdef", CHAR),
    ("atthasmissing", CHAR),
    ("attidentity", CHAR),
    ("attgenerated", CHAR),
    ("attisdropped", CHAR),
    ("attislocal", CHAR),
];

const TAIL: [(&str, AttributeLayout); 3] =
    [("attoptions", VARLENA), ("attfdwoptions", VARLENA), ("attmissingval", WIDE_ARRAY)];

/// The columns of `pg_attribute` in this version, in order.
pub(crate) fn pg_attribute_columns(version: PgVersion) -> Vec<BootstrapColumn> {
    let identity = [("attrelid", OID), ("attname", NAME), ("atttypid", OID)];
    let (shape, counts): (&[_], &[_]) = match version {
        PgVersion::V14 | PgVersion::V15 => (
            &[
                ("attstattarget", INT4),
                ("attlen", INT2),
                ("attnum", INT2),
                ("attndims", INT4),
                ("attcacheoff", INT4),
                ("atttypmod", INT4),
            ],
            &[("attinhcount", INT4), ("attcollation", OID)],
        ),
        PgVersion::V16 => (
            &[
                ("attlen", INT2),
                ("attnum", INT2),
                ("attcacheoff", INT4),
                ("atttypmod", INT4),
                ("attndims", INT2),
            ],
            &[("attinhcount", INT2), ("attstattarget", INT2), ("attcollation", OID)],
        ),
        PgVersion::V17 => (
            &[
                ("attlen", INT2),
                ("attnum", INT2),
                ("attcacheoff", INT4),
                ("atttypmod", INT4),
                ("attndims", INT2),
            ],
            &[("attinhcount", INT2), ("attcollation", OID), ("attstattarget", INT2)],
        ),
        PgVersion::V18 => (
            &[("attlen", INT2), ("attnum", INT2), ("atttypmod", INT4), ("attndims", INT2)],
            &[("attinhcount", INT2), ("attcollation", OID), ("attstattarget", INT2)],
        ),
    };
    let acl = [("attacl", if version >= PgVersion::V16 { WIDE_ARRAY } else { VARLENA })];
    let all = identity.iter().chain(shape).chain(&FLAGS).chain(counts).chain(&acl).chain(&TAIL);
    all.map(|&(name, layout)| BootstrapColumn { name, layout }).collect()
}
