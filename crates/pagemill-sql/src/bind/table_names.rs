//! Which relation a name in FROM means: of the search path, of a schema, of another database, of another cluster.
//!
//! ```text
//! table   schema.table   database.schema.table   cluster.database.schema.table
//! ```
//!
//! Source: `RangeVarGetRelidExtended` in `src/backend/catalog/namespace.c`, PostgreSQL 18, which refuses other databases.

use std::sync::Arc;

use pagemill_cluster::ClassRow;
use pagemill_format::Oid;
use sqlparser::ast::{Ident, TableAlias};

use super::scope::{Scope, at, folded};
use super::{Binder, TableRows};
use crate::catalog::Catalog;
use crate::error::{Result, SqlState, StatementError, fail};
use crate::rights::{ReadableColumns, denied};

/// A relation, and the database that it is in.
pub(super) struct FoundTable {
    pub(super) catalog: Arc<Catalog>,
    pub(super) class: ClassRow,
    /// The cluster as it was named, the database, the schema.
    path: Vec<String>,
}

impl FoundTable {
    /// Marks the columns that may not be read, which have their names of the catalog still.
    pub(super) fn mark(&self, readable: &ReadableColumns, rows: &mut TableRows) {
        let ReadableColumns::Named(readable) = readable else { return };
        let relation = String::from_utf8_lossy(&self.class.name);
        let message: Arc<str> = denied(self.class.kind, &relation).into();
        let columns = rows.bound.columns.iter_mut();
        let denied = columns.filter(|column| !readable.contains(&column.name));
        for column in denied.chain(&mut rows.system) {
            column.typed.denied = Some(message.clone());
        }
    }

    /// Without an alias, a table can be named with what it lies in; with one it is a relation as well.
    pub(super) fn put_path(&self, scope: &mut Scope, alias: Option<&TableAlias>) {
        if let (None, [table]) = (alias, &mut scope.tables[..]) {
            table.path = Some(self.path.clone());
        }
        if let [table] = &mut scope.tables[..] {
            table.relation = Some((self.catalog.clone(), self.class.oid));
        }
    }
}

impl Binder<'_> {
    /// The relation of a name.
    pub(super) fn find_table(&self, parts: &[&Ident]) -> Result<FoundTable> {
        let names: Vec<String> = parts.iter().map(|part| folded(part)).collect();
        let own = || self.catalog.clone();
        let (catalog, cluster, schema, table) = match &names[..] {
            [table] => (own(), None, None, table),
            [schema, table] => (own(), None, Some(schema), table),
            [database, schema, table] => {
                let found = self.tables.database(None, database);
                (found.map_err(|error| at(error, parts[0]))?, None, Some(schema), table)
            }
            [cluster, database, schema, table] => {
                let found = self.tables.database(Some(cluster), database);
                (found.map_err(|error| at(error, parts[0]))?, Some(cluster), Some(schema), table)
            }
            _ => {
                return fail(
                    SqlState::SYNTAX_ERROR,
                    "improper qualified name (too many dotted names)",
                );
            }
        };
        let found = match schema {
            None => catalog.search_path().iter().find_map(|schema| class(&catalog, *schema, table)),
            Some(schema) => {
                let schema = namespace(&catalog, schema, parts[parts.len() - 2])?;
                class(&catalog, schema, table)
            }
        };
        let Some(class) = found.cloned() else {
            let message = format!("relation \"{}\" does not exist", names.join("."));
            let error = StatementError::new(SqlState::UNDEFINED_TABLE, message);
            return Err(at(with_near_tables(&catalog, error, table), parts[0]));
        };
        let schemas = catalog.database().namespaces()?;
        let schema = schemas.get(&class.namespace).map(|name| String::from_utf8_lossy(name));
        let database = String::from_utf8_lossy(&catalog.database().row().name).into_owned();
        let path = cluster.cloned().into_iter().chain([database]);
        let path = path.chain(schema.map(|name| name.into_owned())).collect();
        Ok(FoundTable { catalog, class, path })
    }

    /// Refuses a schema that is not to be used, but in what was stored: names in it were found when it was made, in whatever schema.
    pub(super) fn check_schema(&self, schema: Oid) -> Result<()> {
        match self.is_stored {
            true => Ok(()),
            false => self.catalog.check_schema(schema),
        }
    }

    /// Refuses a relation of which nothing may be read here.
    pub(super) fn check_rights(&self, found: &FoundTable) -> Result<ReadableColumns> {
        let ClassRow { oid, namespace, kind, .. } = &found.class;
        self.check_schema(*namespace)?;
        let Some(role) = self.reader.or(self.catalog.role()) else {
            return Ok(ReadableColumns::All);
        };
        self.check_row_security(role, &found.class)?;
        self.catalog.check_readable(role, *oid, *kind)
    }
}

fn class<'c>(catalog: &'c Catalog, namespace: Oid, name: &str) -> Option<&'c ClassRow> {
    let is_it = |class: &&ClassRow| class.namespace == namespace && *class.name == *name.as_bytes();
    catalog.database().classes().iter().find(is_it)
}

fn namespace(catalog: &Catalog, wanted: &str, place: &Ident) -> Result<Oid> {
    let namespaces = catalog.database().namespaces()?;
    let found = namespaces.iter().find(|(_, name)| ***name == *wanted.as_bytes());
    found.map(|(oid, _)| *oid).ok_or_else(|| {
        let message = format!("schema \"{wanted}\" does not exist");
        at(StatementError::new(SqlState("3F000"), message), place)
    })
}

#[cold]
fn with_near_tables(catalog: &Catalog, error: StatementError, wanted: &str) -> StatementError {
    let classes = catalog.database().classes().iter();
    let names: Vec<String> = classes
        .filter(|class| {
            class.kind.has_rows() && class.namespace.0 >= 16384 || class.namespace.0 == 2200
        })
        .map(|class| String::from_utf8_lossy(&class.name).into_owned())
        .collect();
    let near = pagemill_cluster::names::nearest(wanted, names.iter().map(String::as_str), 3);
    match near[..] {
        [] => error,
        _ => {
            let near: Vec<String> = near.iter().map(|near| format!("\"{near}\"")).collect();
            error.with_hint(format!("Perhaps you meant {}.", near.join(", ")))
        }
    }
}
