//! The catalog rows that the inputs of types are built from, beside those of `pg_type`.
//!
//! Source: `src/include/catalog/pg_attribute.h`, `pg_range.h`, `pg_constraint.h`, `pg_proc.h`,
//! PostgreSQL 14 to 18.

use std::collections::HashMap;

use pagemill_format::tuple::AttributeLayout;
use pagemill_format::{Error as FormatError, Oid};

use crate::check_expressions::stored_tree;
use crate::database::{Database, catalog};
use crate::error::Result;
use crate::system_table::Row;
use crate::value_types::internal_functions;

/// A row of `pg_attribute`.
#[derive(Debug, Clone)]
pub(crate) struct AttributeRow {
    pub(crate) number: i16,
    pub(crate) name: Box<[u8]>,
    pub(crate) type_oid: Oid,
    pub(crate) typmod: i32,
    pub(crate) layout: AttributeLayout,
    pub(crate) storage: u8,
    pub(crate) not_null: bool,
    pub(crate) dropped: bool,
    /// Which version of the row type it came with, where the server's minor release counts them.
    pub(crate) version: Option<u64>,
}

impl AttributeRow {
    const SOURCE: [&'static str; 11] = [
        "attrelid",
        "attnum",
        "attname",
        "atttypid",
        "atttypmod",
        "attlen",
        "attalign",
        "attstorage",
        "attnotnull",
        "attisdropped",
        "attoptions",
    ];

    fn read(row: &Row<'_>) -> Result<Self, FormatError> {
        Ok(Self {
            number: row.i16(1)?,
            name: row.name(2)?,
            type_oid: row.oid(3)?,
            typmod: row.i32(4)?,
            layout: AttributeLayout::new(row.i16(5)?, row.byte(6)?)?,
            storage: row.byte(7)?,
            not_null: row.byte(8)? != 0,
            dropped: row.byte(9)? != 0,
            version: row.payload(10)?.map(|options| version_of(&options)).transpose()?.flatten(),
        })
    }
}

/// The attribute's version among its options, which are a `text[]`.
fn version_of(options: &[u8]) -> Result<Option<u64>, FormatError> {
    let options = pagemill_types::array::text_elements(options)?;
    let version = |option: &Vec<u8>| {
        std::str::from_utf8(option.strip_prefix(b"pg_attver=")?).ok()?.parse().ok()
    };
    Ok(options.iter().find_map(version))
}

/// A row of `pg_range`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RangeRow {
    pub(crate) range: Oid,
    pub(crate) multirange: Oid,
    pub(crate) subtype: Oid,
    pub(crate) collation: Oid,
    pub(crate) operators: Oid,
    pub(crate) canonical: Oid,
}

/// The attributes of the relations that are wanted, each one's in the order of their numbers.
pub(crate) fn read_attributes(
    database: &Database,
    wanted: impl Fn(Oid) -> bool,
) -> Result<HashMap<Oid, Vec<AttributeRow>>> {
    let mut found: HashMap<Oid, Vec<AttributeRow>> = HashMap::new();
    database.scan(catalog::PG_ATTRIBUTE, &AttributeRow::SOURCE, |row| {
        let of = row.oid(0)?;
        if row.i16(1)? > 0 && wanted(of) {
            found.entry(of).or_default().push(AttributeRow::read(row)?);
        }
        Ok(())
    })?;
    found.values_mut().for_each(|rows| rows.sort_by_key(|row| row.number));
    Ok(found)
}

/// The rows of `pg_range`.
pub(crate) fn read_ranges(database: &Database) -> Result<Vec<RangeRow>> {
    let wanted =
        ["rngtypid", "rngmultitypid", "rngsubtype", "rngcollation", "rngsubopc", "rngcanonical"];
    let mut found = Vec::new();
    database.scan(catalog::PG_RANGE, &wanted, |row| {
        found.push(RangeRow {
            range: row.oid(0)?,
            multirange: row.oid(1)?,
            subtype: row.oid(2)?,
            collation: row.oid(3)?,
            operators: row.oid(4)?,
            canonical: row.oid(5)?,
        });
        Ok(())
    })?;
    Ok(found)
}

/// A CHECK constraint of a domain.
#[derive(Debug, Clone)]
pub(crate) struct CheckRow {
    pub(crate) name: Box<[u8]>,
    /// Its expression, if it is kept in line.
    pub(crate) tree: Option<Vec<u8>>,
}

/// The CHECK constraints of domains, each one's in the order in which a server checks them: by their names.
pub(crate) fn read_domain_checks(database: &Database) -> Result<HashMap<Oid, Vec<CheckRow>>> {
    let mut found: HashMap<Oid, Vec<CheckRow>> = HashMap::new();
    let wanted = ["contypid", "contype", "conname", "conbin"];
    database.scan_any(catalog::PG_CONSTRAINT, &wanted, |row| {
        let domain = row.oid(0)?;
        if row.byte(1)? == b'c' && domain.is_valid() {
            let check = CheckRow { name: row.name(2)?, tree: stored_tree(row, 3)? };
            found.entry(domain).or_default().push(check);
        }
        Ok(())
    })?;
    found.values_mut().for_each(|checks| checks.sort_by(|a, b| a.name.cmp(&b.name)));
    Ok(found)
}

/// The built-in functions that input functions of language `internal` stand for.
pub(crate) fn read_internal_inputs(database: &Database) -> Result<HashMap<Oid, Oid>> {
    internal_functions(database, &database.types()?.rows().map(|row| row.input).collect())
}
