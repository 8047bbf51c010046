//! Constraints as psql tells of them.
//!
//! Source: `src/include/catalog/pg_constraint.h`, PostgreSQL 15.

use pagemill_format::Oid;

use super::expression::UNWRITTEN;
use super::names::Names;
use crate::definitions::ConstraintWriter;
use crate::error::Result;
use crate::system_rows::for_each_row;

/// A row of `pg_constraint`.
#[derive(Debug, Clone)]
pub(super) struct Constraint {
    pub(super) oid: Oid,
    pub(super) name: String,
    pub(super) kind: u8,
    pub(super) table: Oid,
    pub(super) index: Oid,
    pub(super) parent: Oid,
    pub(super) referenced: Oid,
    pub(super) is_deferrable: bool,
    pub(super) is_deferred: bool,
    /// `conexclop`: the operators of an exclusion.
    pub(super) exclusion: Vec<Oid>,
}

/// All constraints of tables.
pub(super) fn read(names: &Names<'_>) -> Result<Vec<Constraint>> {
    let columns = [
        "conname",
        "contype",
        "conrelid",
        "conindid",
        "conparentid",
        "confrelid",
        "condeferrable",
        "condeferred",
        "conexclop",
        "oid",
    ];
    let mut found = Vec::new();
    for_each_row(names.catalog.values(), "pg_constraint", &columns, |row| {
        if row.oid(2) == Oid(0) {
            return Ok(());
        }
        found.push(Constraint {
            oid: row.oid(9),
            name: row.name(0),
            kind: row.byte(1),
            table: row.oid(2),
            index: row.oid(3),
            parent: row.oid(4),
            referenced: row.oid(5),
            is_deferrable: row.bool(6),
            is_deferred: row.bool(7),
            exclusion: row.oids(8)?,
        });
        Ok(())
    })?;
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

impl Constraint {
    /// As `pg_get_constraintdef` writes it.
    pub(super) fn definition(&self, writer: &ConstraintWriter) -> String {
        match (writer.definition(self.oid), self.kind) {
            (Ok(Some(text)), _) => text,
            (_, b'c') => format!("CHECK {UNWRITTEN}"),
            _ => UNWRITTEN.to_owned(),
        }
    }

    pub(super) fn deferral(&self) -> &'static str {
        match (self.is_deferrable, self.is_deferred) {
            (_, true) => " DEFERRABLE INITIALLY DEFERRED",
            (true, false) => " DEFERRABLE",
            _ => "",
        }
    }
}
