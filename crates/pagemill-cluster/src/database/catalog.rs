//! The catalogs that are read, by the OIDs that initdb gives them.
//!
//! Source: `CATALOG(…)` in the headers below `src/include/catalog/`, PostgreSQL 14 to 18.

use pagemill_format::Oid;

pub(crate) const PG_TYPE: Oid = Oid(1247);
pub(crate) const PG_ATTRIBUTE: Oid = Oid(1249);
pub(crate) const PG_PROC: Oid = Oid(1255);
pub(crate) const PG_CLASS: Oid = Oid(1259);
pub(crate) const PG_AUTHID: Oid = Oid(1260);
pub(crate) const PG_DATABASE: Oid = Oid(1262);
pub(crate) const PG_TABLESPACE: Oid = Oid(1213);
pub(crate) const PG_NAMESPACE: Oid = Oid(2615);
pub(crate) const PG_OPERATOR: Oid = Oid(2617);
pub(crate) const PG_COLLATION: Oid = Oid(3456);
pub(crate) const PG_TS_CONFIG: Oid = Oid(3602);
pub(crate) const PG_TS_DICT: Oid = Oid(3600);
pub(crate) const PG_ENUM: Oid = Oid(3501);
pub(crate) const PG_RANGE: Oid = Oid(3541);
pub(crate) const PG_CONSTRAINT: Oid = Oid(2606);
pub(crate) const PG_INDEX: Oid = Oid(2610);
pub(crate) const PG_AM: Oid = Oid(2601);
pub(crate) const PG_INHERITS: Oid = Oid(2611);
pub(crate) const PG_DB_ROLE_SETTING: Oid = Oid(2964);

// Read when rows are to be loaded, and not kept.
pub(crate) const PG_OPCLASS: Oid = Oid(2616);
pub(crate) const PG_TRIGGER: Oid = Oid(2620);
pub(crate) const PG_PARTITIONED_TABLE: Oid = Oid(3350);
pub(crate) const PG_ATTRDEF: Oid = Oid(2604);
pub(crate) const PG_DEPEND: Oid = Oid(2608);
pub(crate) const PG_SEQUENCE: Oid = Oid(2224);

// Changed when databases are made and dropped.
pub(crate) const PG_SHDEPEND: Oid = Oid(1214);
pub(crate) const PG_SHDESCRIPTION: Oid = Oid(2396);
pub(crate) const PG_SHSECLABEL: Oid = Oid(3592);
pub(crate) const PG_SUBSCRIPTION: Oid = Oid(6100);

/// Those read through a database; the others are shared by all.
pub(crate) const ALL: [Oid; 18] = [
    PG_TYPE,
    PG_ATTRIBUTE,
    PG_PROC,
    PG_CLASS,
    PG_AUTHID,
    PG_NAMESPACE,
    PG_OPERATOR,
    PG_COLLATION,
    PG_TS_CONFIG,
    PG_TS_DICT,
    PG_ENUM,
    PG_RANGE,
    PG_CONSTRAINT,
    PG_INDEX,
    PG_AM,
    PG_INHERITS,
    PG_DB_ROLE_SETTING,
    PG_TABLESPACE,
];
