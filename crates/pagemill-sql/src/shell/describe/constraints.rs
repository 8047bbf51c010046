//! Constraints as `pg_get_constraintdef` writes them.
//!
//! Source: `pg_get_constraintdef_worker` in `src/backend/utils/adt/ruleutils.c`, PostgreSQL 15.

use pagemill_format::Oid;

use super::expression::{UNWRITTEN, Writer};
use super::names::Names;
use crate::catalog::quote_identifier;
use crate::error::Result;
use crate::system_rows::for_each_row;

/// A row of `pg_constraint`.
#[derive(Debug, Clone)]
pub(super) struct Constraint {
    pub(super) name: String,
    pub(super) kind: u8,
    pub(super) table: Oid,
    pub(super) index: Oid,
    pub(super) parent: Oid,
    pub(super) referenced: Oid,
    pub(super) is_deferrable: bool,
    pub(super) is_deferred: bool,
    is_validated: bool,
    is_not_inherited: bool,
    on_update: u8,
    on_delete: u8,
    matches: u8,
    columns: Vec<i16>,
    referenced_columns: Vec<i16>,
    set_columns: Vec<i16>,
    expression: Option<String>,
    /// `conexclop`: the operators of an exclusion.
    pub(super) exclusion: Vec<Oid>,
}

/// All constraints of tables.
pub(super) fn read(names: &Names<'_>) -> Result<Vec<Constraint>> {
    let catalog = names.catalog;
    let mut columns = vec![
        "conname",
        "contype",
        "conrelid",
        "conindid",
        "conparentid",
        "confrelid",
        "condeferrable",
        "condeferred",
        "convalidated",
        "connoinherit",
        "confupdtype",
        "confdeltype",
        "confmatchtype",
        "conkey",
        "confkey",
        "conbin",
        "conexclop",
    ];
    if catalog.database().cluster().version().major() >= 15 {
        columns.push("confdelsetcols");
    }
    let mut found = Vec::new();
    for_each_row(catalog.values(), "pg_constraint", &columns, |row| {
        if row.oid(2) == Oid(0) {
            return Ok(());
        }
        found.push(Constraint {
            name: row.name(0),
            kind: row.byte(1),
            table: row.oid(2),
            index: row.oid(3),
            parent: row.oid(4),
            referenced: row.oid(5),
            is_deferrable: row.bool(6),
            is_deferred: row.bool(7),
            is_validated: row.bool(8),
            is_not_inherited: row.bool(9),
            on_update: row.byte(10),
            on_delete: row.byte(11),
            matches: row.byte(12),
            columns: row.int2s(13)?,
            referenced_columns: row.int2s(14)?,
            expression: row.text(15)?,
            exclusion: row.oids(16)?,
            set_columns: if columns.len() > 17 { row.int2s(17)? } else { Vec::new() },
        });
        Ok(())
    })?;
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

fn column_list(names: &Names<'_>, table: Oid, numbers: &[i16]) -> Result<String> {
    let columns = names.column_names(table)?;
    let name =
        |number: &i16| columns.get(number).map_or("?".to_owned(), |name| quote_identifier(name));
    Ok(numbers.iter().map(name).collect::<Vec<_>>().join(", "))
}

fn action(letter: u8) -> Option<&'static str> {
    match letter {
        b'r' => Some("RESTRICT"),
        b'c' => Some("CASCADE"),
        b'n' => Some("SET NULL"),
        b'd' => Some("SET DEFAULT"),
        _ => None,
    }
}

impl Constraint {
    /// A CHECK.
    pub(super) fn check(&self, writer: &Writer<'_, '_>) -> String {
        let written = self.expression.as_deref().and_then(|tree| writer.text(tree));
        let mut text = match written {
            Some(written) => format!("CHECK ({written})"),
            None => format!("CHECK {UNWRITTEN}"),
        };
        if self.is_not_inherited {
            text.push_str(" NO INHERIT");
        }
        if !self.is_validated {
            text.push_str(" NOT VALID");
        }
        text
    }

    /// A foreign key.
    pub(super) fn foreign_key(&self, names: &Names<'_>) -> Result<String> {
        let mut text = format!(
            "FOREIGN KEY ({}) REFERENCES {}({})",
            column_list(names, self.table, &self.columns)?,
            names.relation(self.referenced),
            column_list(names, self.referenced, &self.referenced_columns)?
        );
        match self.matches {
            b'f' => text.push_str(" MATCH FULL"),
            b'p' => text.push_str(" MATCH PARTIAL"),
            _ => {}
        }
        if let Some(action) = action(self.on_update) {
            text.push_str(&format!(" ON UPDATE {action}"));
        }
        if let Some(action) = action(self.on_delete) {
            text.push_str(&format!(" ON DELETE {action}"));
            if !self.set_columns.is_empty() {
                let columns = column_list(names, self.table, &self.set_columns)?;
                text.push_str(&format!(" ({columns})"));
            }
        }
        text.push_str(self.deferral());
        if !self.is_validated {
            text.push_str(" NOT VALID");
        }
        Ok(text)
    }

    pub(super) fn deferral(&self) -> &'static str {
        match (self.is_deferrable, self.is_deferred) {
            (_, true) => " DEFERRABLE INITIALLY DEFERRED",
            (true, false) => " DEFERRABLE",
            _ => "",
        }
    }
}
