//! The rows of JSON_TABLE: one for each item of a path, joined to those of the paths nested in it.
//!
//! ```text
//! '$[*]' COLUMNS (a, NESTED '$.b[*]' COLUMNS (b), NESTED '$.c[*]' COLUMNS (c))
//!
//!  a │ b │ c       the rows of one nested path stand after those of the other,
//!  1 │ 2 │         an item without any has one row
//!  1 │   │ 3
//! ```
//!
//! Invariant: of siblings all paths are followed before the first row of any; columns are computed row by row in their order.
//!
//! Source: `JsonTablePlanScanNextRow`, `JsonTablePlanJoinNextRow`, `JsonTableResetRowPattern`, `JsonTableGetValue` in
//! `src/backend/utils/adt/jsonpath_exec.c`, PostgreSQL 17 and 18.

use arrow::array::{Array as _, ArrayRef};

use super::super::super::keys::payloads;
use super::super::super::sets::{Series, SetCall, made_of_payloads};
use super::super::jsonpath::{Path, Query};
use super::super::path_searches::in_session;
use super::arguments::{passed, value};
use super::evaluate::{Place, Seen};
use super::{Outcome, Search, Value};
use crate::error::StatementError;
use crate::types::PgType;

/// What JSON_TABLE asks of a document.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TableRows {
    pub(crate) root: Scan,
    /// In the order of the result.
    pub(crate) columns: Vec<TableColumn>,
    /// The names that PASSING gives.
    pub(crate) names: Vec<String>,
    /// Whether errors of paths that make rows are not suppressed.
    pub(crate) throws: bool,
}

/// A path that makes rows, and those nested in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Scan {
    /// Its number among all.
    pub(crate) number: usize,
    /// The payload of the path.
    pub(crate) path: Vec<u8>,
    pub(crate) nested: Vec<Scan>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TableColumn {
    /// The number of the path whose items it is of.
    pub(crate) scan: usize,
    /// What it asks of them; nothing where it numbers them.
    pub(crate) search: Option<Search>,
}

/// The rows for one row of the arguments: the document, what PASSING gives, what DEFAULT says.
pub(crate) fn begin(
    call: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    let Some(table) = &call.table else {
        return Err(StatementError::unsupported("rows of a document without columns"));
    };
    let rows = match arguments[0].is_null(row) {
        true => Vec::new(),
        false => found(call, table, arguments, row)?,
    };
    made_of_payloads(call, rows)
}

fn found(
    call: &SetCall,
    table: &TableRows,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Vec<Vec<Value>>> {
    let catalog = &*call.catalog;
    let passed = passed(catalog, &table.names, (&arguments[1..], &call.arguments[1..]), row)?;
    let argument = |at: usize, ty: PgType| value(catalog, ty, &arguments[at], row);
    in_session(catalog, true, |settings| {
        // No column is searched for in NULL.
        let (passed, argument, seen) = (&passed, &argument, &Seen::default());
        let place = Place { catalog, settings, passed, argument, seen };
        let path_of = |column: &TableColumn| {
            let path = column.search.as_ref().and_then(|search| search.path.as_deref());
            path.map(Path::new).transpose()
        };
        let paths = table.columns.iter().map(path_of).collect::<Outcome<Vec<_>>>()?;
        let mut rows = Rows { table, place, paths, current: Vec::new(), out: Vec::new() };
        let items = rows.items(&table.root, payloads(&arguments[0]).value(row))?;
        rows.scan(&table.root, items)?;
        Ok(rows.out)
    })
}

struct Rows<'t, 'p> {
    table: &'t TableRows,
    place: Place<'p>,
    /// Of the columns.
    paths: Vec<Option<Path>>,
    /// The scans that have an item, with its number from 1, from the outermost on.
    current: Vec<(usize, Vec<u8>, i32)>,
    out: Vec<Vec<Value>>,
}

impl Rows<'_, '_> {
    fn items(&self, scan: &Scan, document: &[u8]) -> Outcome<Vec<Vec<u8>>> {
        let (passed, settings) = (Some(self.place.passed), self.place.settings);
        let (path, is_silent) = (&Path::new(&scan.path)?, !self.table.throws);
        Query { path, document, variables: None, passed, is_silent, settings }.row_items()
    }

    /// The depth of scans is that of the text that they are written in, which is bounded.
    fn scan(&mut self, scan: &Scan, items: Vec<Vec<u8>>) -> Outcome<()> {
        for (number, item) in (1..).zip(items) {
            let of_nested = scan.nested.iter().map(|nested| self.items(nested, &item));
            let of_nested = of_nested.collect::<Outcome<Vec<_>>>()?;
            let is_joined = of_nested.iter().any(|items| !items.is_empty());
            self.current.push((scan.number, item, number));
            for (nested, items) in scan.nested.iter().zip(of_nested) {
                self.scan(nested, items)?;
            }
            if !is_joined {
                self.put()?;
            }
            self.current.pop();
        }
        Ok(())
    }

    /// A row of what is current.
    fn put(&mut self) -> Outcome<()> {
        let mut values = Vec::with_capacity(self.table.columns.len());
        for (column, path) in self.table.columns.iter().zip(&self.paths) {
            let current = self.current.iter().find(|(scan, ..)| *scan == column.scan);
            values.push(match (current, &column.search) {
                (None, _) => None,
                (Some((_, _, number)), None) => Some(number.to_le_bytes().to_vec()),
                (Some((_, item, _)), Some(search)) => {
                    self.place.evaluate(search, Some(item), path.as_ref())?
                }
            });
        }
        self.out.push(values);
        Ok(())
    }
}
