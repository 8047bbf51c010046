//! Constraints of tables and domains.
//!
//! Source: `pg_get_constraintdef_worker` in `src/backend/utils/adt/ruleutils.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::sync::Arc;

use pagemill_format::Oid;
use pagemill_format::node_tree::Node;

use super::Unwritten;
use super::dictionary::Dictionary;
use super::indexes::{IndexRow, IndexWriter, indexes};
use super::writer::{Style, Writer, Written};
use crate::catalog::Catalog;
use crate::error::Result;
use crate::system_rows::for_each_row;

/// A row of `pg_constraint`.
#[derive(Debug, Clone)]
struct Constraint {
    kind: u8,
    table: Oid,
    index: Oid,
    referenced: Oid,
    is_deferrable: bool,
    is_deferred: bool,
    is_validated: bool,
    is_not_inherited: bool,
    on_update: u8,
    on_delete: u8,
    matches: u8,
    columns: Vec<i16>,
    referenced_columns: Vec<i16>,
    set_columns: Vec<i16>,
    expression: Option<String>,
    exclusion: Vec<Oid>,
    is_over_time: bool,
    is_enforced: bool,
}

/// Writes definitions of constraints.
pub(crate) struct ConstraintWriter {
    catalog: Arc<Catalog>,
    dictionary: Arc<Dictionary>,
    style: Style,
    constraints: HashMap<Oid, Constraint>,
    indexes: HashMap<Oid, IndexRow>,
    index_writer: IndexWriter,
}

impl ConstraintWriter {
    /// Reads all constraints.
    ///
    /// # Errors
    /// When a catalog cannot be read.
    pub(crate) fn new(catalog: &Arc<Catalog>, style: Style) -> Result<Self> {
        Ok(Self {
            catalog: catalog.clone(),
            dictionary: catalog.dictionary()?,
            style,
            constraints: read(catalog)?,
            indexes: indexes(catalog)?,
            index_writer: IndexWriter::new(catalog, style)?,
        })
    }

    /// A constraint by its OID; `None` where there is none.
    pub(crate) fn definition(&self, oid: Oid) -> Written<Option<String>> {
        let Some(constraint) = self.constraints.get(&oid) else { return Ok(None) };
        let mut text = match constraint.kind {
            b'f' => self.foreign_key(constraint)?,
            b'p' | b'u' => self.key(constraint)?,
            b'c' => self.check(constraint)?,
            b'n' => self.not_null(constraint)?,
            b't' => "TRIGGER".to_owned(),
            b'x' => {
                let index = self.index(constraint)?;
                self.index_writer.exclusion(index, &constraint.exclusion)?
            }
            other => return Err(Unwritten::unknown(format!("a constraint of the kind {other}"))),
        };
        if constraint.is_deferrable {
            text += " DEFERRABLE";
        }
        if constraint.is_deferred {
            text += " INITIALLY DEFERRED";
        }
        if !constraint.is_enforced {
            text += " NOT ENFORCED";
        } else if !constraint.is_validated {
            text += " NOT VALID";
        }
        Ok(Some(text))
    }

    fn index(&self, constraint: &Constraint) -> Written<&IndexRow> {
        let missing = || Unwritten::missing("index", constraint.index);
        self.indexes.get(&constraint.index).ok_or_else(missing)
    }

    fn column_list(&self, table: Oid, numbers: &[i16]) -> Written<Vec<String>> {
        let name = |number: &i16| {
            Ok(self.dictionary.quoted(&self.dictionary.column(table, *number)?.name))
        };
        numbers.iter().map(name).collect()
    }

    fn foreign_key(&self, constraint: &Constraint) -> Written<String> {
        let list = |table: Oid, numbers: &[i16]| {
            let mut names = self.column_list(table, numbers)?;
            if let Some(last) = names.last_mut().filter(|_| constraint.is_over_time) {
                *last = format!("PERIOD {last}");
            }
            Written::Ok(names.join(", "))
        };
        let mut text = format!(
            "FOREIGN KEY ({}) REFERENCES {}({})",
            list(constraint.table, &constraint.columns)?,
            self.referenced(constraint)?,
            list(constraint.referenced, &constraint.referenced_columns)?
        );
        match constraint.matches {
            b'f' => text += " MATCH FULL",
            b'p' => text += " MATCH PARTIAL",
            _ => {}
        }
        if let Some(action) = action(constraint.on_update) {
            text += &format!(" ON UPDATE {action}");
        }
        if let Some(action) = action(constraint.on_delete) {
            text += &format!(" ON DELETE {action}");
        }
        if !constraint.set_columns.is_empty() {
            let columns = self.column_list(constraint.table, &constraint.set_columns)?;
            text += &format!(" ({})", columns.join(", "));
        }
        Ok(text)
    }

    fn referenced(&self, constraint: &Constraint) -> Written<String> {
        self.dictionary.relation_name(constraint.referenced)
    }

    fn key(&self, constraint: &Constraint) -> Written<String> {
        let index = self.index(constraint)?;
        let word = match (constraint.kind, index.nulls_are_equal) {
            (b'p', _) => "PRIMARY KEY ",
            (_, true) => "UNIQUE NULLS NOT DISTINCT ",
            (_, false) => "UNIQUE ",
        };
        let columns = self.column_list(constraint.table, &constraint.columns)?;
        let time = if constraint.is_over_time { " WITHOUT OVERLAPS" } else { "" };
        let included = self.column_list(constraint.table, index.included())?;
        let included = match included.is_empty() {
            true => String::new(),
            false => format!(" INCLUDE ({})", included.join(", ")),
        };
        Ok(format!("{word}({}{time}){included}", columns.join(", ")))
    }

    fn check(&self, constraint: &Constraint) -> Written<String> {
        let missing = || Unwritten::damaged("a CHECK without its condition");
        let tree = constraint.expression.as_deref().ok_or_else(missing)?;
        let parsed = Node::parse(tree.as_bytes())?;
        let node = parsed.structure().ok_or_else(missing)?;
        let mut writer = Writer::new(&self.catalog, &self.dictionary, self.style);
        let text = writer.expression(node, constraint.table)?;
        let inherited = if constraint.is_not_inherited { " NO INHERIT" } else { "" };
        Ok(format!("CHECK ({text}){inherited}"))
    }

    fn not_null(&self, constraint: &Constraint) -> Written<String> {
        if constraint.table == Oid(0) {
            return Ok("NOT NULL".to_owned());
        }
        let columns = self.column_list(constraint.table, &constraint.columns)?;
        let inherited = if constraint.is_not_inherited { " NO INHERIT" } else { "" };
        Ok(format!("NOT NULL {}{inherited}", columns.join(", ")))
    }
}

fn read(catalog: &Catalog) -> Result<HashMap<Oid, Constraint>> {
    let major = catalog.database().cluster().version().major();
    let mut columns = vec![
        "oid",
        "contype",
        "conrelid",
        "conindid",
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
    if major >= 15 {
        columns.push("confdelsetcols");
    }
    if major >= 18 {
        columns.extend(["conperiod", "conenforced"]);
    }
    let mut found = HashMap::new();
    for_each_row(catalog.values(), "pg_constraint", &columns, |row| {
        let constraint = Constraint {
            kind: row.byte(1),
            table: row.oid(2),
            index: row.oid(3),
            referenced: row.oid(4),
            is_deferrable: row.bool(5),
            is_deferred: row.bool(6),
            is_validated: row.bool(7),
            is_not_inherited: row.bool(8),
            on_update: row.byte(9),
            on_delete: row.byte(10),
            matches: row.byte(11),
            columns: row.int2s(12)?,
            referenced_columns: row.int2s(13)?,
            expression: row.text(14)?,
            exclusion: row.oids(15)?,
            set_columns: if major >= 15 { row.int2s(16)? } else { Vec::new() },
            is_over_time: major >= 18 && row.bool(17),
            is_enforced: major < 18 || row.bool(18),
        };
        found.insert(row.oid(0), constraint);
        Ok(())
    })?;
    Ok(found)
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

/// The name of one constraint.
pub(super) fn constraint_name(catalog: &Catalog, oid: Oid) -> Written<String> {
    let mut name = None;
    let read = for_each_row(catalog.values(), "pg_constraint", &["oid", "conname"], |row| {
        if row.oid(0) == oid {
            name = Some(row.name(1));
        }
        Ok(())
    });
    read.map_err(|error| Unwritten::damaged(error.to_string()))?;
    name.ok_or_else(|| Unwritten::missing("constraint", oid))
}
