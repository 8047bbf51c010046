//! What names of columns mean at a place: the tables of FROM, and those of the queries around it.
//!
//! Source: `colNameToVar` and `scanRTEForColumn` in `src/backend/parser/parse_relation.c`, PostgreSQL 18.

use std::sync::Arc;

use datafusion::arrow::datatypes::Field;
use datafusion::logical_expr::Expr;
use pagemill_format::Oid;
use sqlparser::ast::Ident;
use sqlparser::tokenizer::Span;

use super::ordered_sets::DirectArguments;
use super::row_order::{RowOrder, Sorting};
use super::set_calls::SelectSets;
use super::{Binder, BoundColumn};
use crate::catalog::Catalog;
use crate::error::{Error, Result, SqlState, StatementError, fail};
use crate::typed::Typed;
use crate::types::OF_ANOTHER_DATABASE;

/// A table of FROM.
#[derive(Debug, Clone)]
pub(super) struct ScopeTable {
    /// Its alias, or its name.
    pub(super) name: String,
    pub(super) columns: Vec<BoundColumn>,
    /// Those of the system, which `*` does not show.
    pub(super) system: Vec<BoundColumn>,
    /// True for a table of a join, whose columns of the system have no bare names.
    pub(super) in_join: bool,
    /// True for a table of which an outer join may give no row.
    pub(super) is_nullable: bool,
    /// What is NULL only where there is no row.
    pub(super) present: Option<Typed>,
    /// What stands before the name of a table without an alias: its schema last, then its database, then its cluster.
    pub(super) path: Option<Vec<String>>,
    /// True for a function whose row is its value.
    pub(super) is_value: bool,
    /// The relation that it is.
    pub(super) relation: Option<(Arc<Catalog>, Oid)>,
}

/// The columns that FROM gives.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    /// By qualified names.
    pub(super) tables: Vec<ScopeTable>,
    /// By bare names, in the order of `*`. Columns merged by USING are here once.
    pub(super) bare: Vec<BoundColumn>,
}

/// A query that is being bound.
#[derive(Debug, Clone, Default)]
pub(super) struct Level {
    pub(super) scope: Scope,
    /// True where FROM names the recursive query around it.
    pub(super) names_itself: bool,
    /// Aggregates found so far, each with the column that stands for it.
    pub(super) aggregates: Vec<(Expr, Typed)>,
    /// What some of them are told of a whole group.
    pub(super) direct_arguments: Vec<DirectArguments>,
    /// Calls of GROUPING, likewise.
    pub(super) groupings: Vec<(Vec<Expr>, Typed)>,
    /// Window functions, likewise.
    pub(super) windows: Vec<(Expr, Typed)>,
    /// Functions of the select list that give rows.
    pub(super) sets: SelectSets,
    /// True inside of a call with OVER.
    pub(super) in_window_call: bool,
    /// What may stand here.
    pub(super) allowed: Allowed,
    /// The order in which FROM gives its rows.
    pub(super) row_order: RowOrder,
    pub(super) sorting: Sorting,
    /// The windows by their names.
    pub(super) windows_of_query: Vec<(String, sqlparser::ast::WindowSpec)>,
}

/// Which calls may stand in a clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Allowed {
    /// Neither aggregates nor window functions; the clause's name for the message.
    #[default]
    Plain,
    /// Plain, in this clause.
    PlainIn(&'static str),
    /// Aggregates.
    Aggregates,
    /// Both.
    All,
}

impl Scope {
    pub(super) fn of_table(name: String, columns: Vec<BoundColumn>) -> Self {
        let bare = columns.clone();
        let table = ScopeTable {
            name,
            columns,
            system: Vec::new(),
            in_join: false,
            is_nullable: false,
            present: None,
            path: None,
            is_value: false,
            relation: None,
        };
        Self { bare, tables: vec![table] }
    }

    /// Both, beside each other.
    pub(super) fn beside(mut self, other: Self) -> Self {
        self.tables.extend(other.tables);
        self.bare.extend(other.bare);
        self
    }

    /// Refuses a name that two tables have.
    pub(super) fn check_names(&self) -> Result<()> {
        for (at, table) in self.tables.iter().enumerate() {
            if self.tables[..at].iter().any(|other| table.hides(other)) {
                let message = format!("table name \"{}\" specified more than once", table.name);
                return Err(StatementError::new(SqlState::DUPLICATE_ALIAS, message).into());
            }
        }
        Ok(())
    }

    fn bare_column(&self, name: &str) -> Result<Option<&Typed>> {
        let of_system = self.tables.iter().filter(|table| !table.in_join);
        let of_system = of_system.flat_map(|table| &table.system);
        let mut found = self.bare.iter().chain(of_system).filter(|column| column.name == name);
        let first = found.next();
        match found.next() {
            Some(_) => {
                let message = format!("column reference \"{name}\" is ambiguous");
                Err(StatementError::new(SqlState::AMBIGUOUS_COLUMN, message).into())
            }
            None => Ok(first.map(|column| &column.typed)),
        }
    }

    fn table(&self, name: &str) -> Option<&ScopeTable> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// The table of a name with what stands before it.
    pub(super) fn qualified_table(&self, parts: &[&Ident]) -> Result<Option<&ScopeTable>> {
        let names: Vec<String> = parts.iter().map(|part| folded(part)).collect();
        let (name, before) = names.split_last().expect("a name has a part"); // infallible: of the parser
        let mut found =
            self.tables.iter().filter(|table| table.name == *name && table.is_in(before));
        let first = found.next();
        match found.next() {
            Some(_) => {
                let message = format!("table reference \"{name}\" is ambiguous");
                Err(StatementError::new(SqlState("42P09"), message).into())
            }
            None => Ok(first),
        }
    }
}

impl ScopeTable {
    /// True where one name could mean both.
    fn hides(&self, other: &Self) -> bool {
        let both_have_paths = self.path.is_some() && other.path.is_some();
        self.name == other.name
            && !self.name.is_empty()
            && (!both_have_paths || self.path == other.path)
    }

    /// True for a table that these names lead to. A database without a cluster is one of the session's.
    fn is_in(&self, before: &[String]) -> bool {
        let leads_here = |path: &Vec<String>| {
            path.ends_with(before) && (before.len() != 2 || path.len() == before.len())
        };
        before.is_empty() || self.path.as_ref().is_some_and(leads_here)
    }

    /// Its columns, and those of the system behind them.
    pub(super) fn all_columns(&self) -> impl Iterator<Item = &BoundColumn> {
        self.columns.iter().chain(&self.system)
    }
}

/// The name that an identifier stands for: folded unless it was quoted.
pub(super) fn folded(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_ascii_lowercase(),
    }
}

/// An error at an identifier.
pub(super) fn at(error: impl Into<Error>, ident: &Ident) -> Error {
    at_start(error, ident.span)
}

/// An error at what begins here.
pub(super) fn at_start(error: impl Into<Error>, span: Span) -> Error {
    match error.into() {
        // The server looks at rights when it has forgotten where names stood.
        Error::Statement(error) if error.state == SqlState::DENIED => error.into(),
        Error::Statement(error) => error.at(span.start.line, span.start.column).into(),
        other => other,
    }
}

impl Binder<'_> {
    pub(super) fn level(&mut self) -> &mut Level {
        self.levels.last_mut().expect("an expression stands in a query") // infallible: queries push theirs
    }

    /// The queries around a place whose columns it sees, innermost first.
    pub(super) fn in_sight(&self) -> impl Iterator<Item = &Level> {
        self.levels[self.hidden.min(self.levels.len())..].iter().rev()
    }

    /// The column of a bare name.
    pub(super) fn bare_column(&self, ident: &Ident) -> Result<Typed> {
        let name = folded(ident);
        for (depth, level) in self.in_sight().enumerate() {
            if let Some(typed) = level.scope.bare_column(&name).map_err(|e| at(e, ident))? {
                return seen_from(typed, depth, self.nests).map_err(|e| at(e, ident));
            }
        }
        // Not a column: a row of a table, which for a function may be its value.
        for (depth, level) in self.in_sight().enumerate() {
            let Some(table) = level.scope.table(&name) else { continue };
            return match &table.columns[..] {
                [column, ..] if table.is_value => seen_from(&column.typed, depth, self.nests),
                _ => self.row_of_table(table, depth),
            }
            .map_err(|error| at(error, ident));
        }
        if let Some(argument) = self.named_argument(&[&name]) {
            return argument.map_err(|error| at(error, ident));
        }
        Err(at(self.no_column(&name, None), ident))
    }

    /// The column of a table's name, with what may stand before that, and a column's.
    pub(super) fn qualified_column(&self, table: &[&Ident], ident: &Ident) -> Result<Typed> {
        let (first, name) = (table[0], folded(ident));
        for (depth, level) in self.in_sight().enumerate() {
            let found = level.scope.qualified_table(table).map_err(|e| at(e, first))?;
            let Some(found) = found else { continue };
            let mut columns = found.all_columns().filter(|column| column.name == name);
            let Some(column) = columns.next() else {
                return Err(at(self.no_column(&name, Some(found)), first));
            };
            if columns.next().is_some() {
                let message = format!("column reference \"{name}\" is ambiguous");
                return Err(at(StatementError::new(SqlState::AMBIGUOUS_COLUMN, message), first));
            }
            return seen_from(&column.typed, depth, self.nests).map_err(|e| at(e, first));
        }
        let names: Vec<String> = table.iter().map(|part| folded(part)).chain([name]).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        if let Some(argument) = self.named_argument(&names) {
            return argument.map_err(|error| at(error, first));
        }
        let shown = folded(table[table.len() - 1]);
        let message = format!("missing FROM-clause entry for table \"{shown}\"");
        Err(at(StatementError::new(SqlState::UNDEFINED_TABLE, message), first))
    }

    #[cold]
    fn no_column(&self, name: &str, table: Option<&ScopeTable>) -> StatementError {
        if table.is_none() && FORMS.contains(&name) {
            return StatementError::unsupported(name.to_uppercase());
        }
        let is_table = |level: &Level| level.scope.table(name).is_some();
        if table.is_none() && self.in_sight().any(is_table) {
            return StatementError::unsupported(format!("a row of \"{name}\" as a value"));
        }
        let shown = table.map_or_else(|| format!("\"{name}\""), |t| format!("{}.{name}", t.name));
        let error = StatementError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column {shown} does not exist"),
        );
        let levels = self.in_sight().flat_map(|level| &level.scope.tables);
        let tables: Vec<&ScopeTable> = match table {
            Some(table) => vec![table],
            None => levels.collect(),
        };
        let names = tables.iter().flat_map(|t| t.columns.iter().map(|c| c.name.as_str()));
        match pagemill_cluster::names::nearest(name, names, 3)[..] {
            [] => error,
            ref near => {
                let near: Vec<String> = near.iter().map(|near| format!("\"{near}\"")).collect();
                error.with_hint(format!("Perhaps you meant {}.", near.join(", ")))
            }
        }
    }
}

/// The words of `normalize`.
pub(super) const FORMS: [&str; 4] = ["nfc", "nfd", "nfkc", "nfkd"];

/// A column as a query inside of its own sees it.
pub(super) fn seen_from(typed: &Typed, depth: usize, nests: bool) -> Result<Typed> {
    refuse_unreadable(typed)?;
    match (&typed.expr, depth) {
        (_, 0) => Ok(typed.clone()),
        // A query that is run for each row gets the values of all rows around it.
        (Expr::Column(column), depth) if depth == 1 || nests => {
            let field = Field::new(column.name(), typed.carrier.clone(), true);
            Ok(typed.with_expr(Expr::OuterReferenceColumn(field.into(), column.clone())))
        }
        _ => {
            Err(StatementError::unsupported("a reference to a query two levels further out").into())
        }
    }
}

/// Refuses a column that the role may not read, and one of another database, or of a file, whose type is not here.
pub(super) fn refuse_unreadable(typed: &Typed) -> Result<()> {
    if let Some(message) = &typed.denied {
        return fail(SqlState::DENIED, message.to_string());
    }
    if typed.ty.oid != OF_ANOTHER_DATABASE {
        return Ok(());
    }
    let shown = match &typed.expr {
        Expr::Column(column) => column.name().split('#').next().unwrap_or_default().to_owned(),
        other => other.to_string(),
    };
    let what = format!("the column \"{shown}\", of a type that is not there in this database,");
    let error = StatementError::unsupported(what);
    Err(error
        .with_hint(
            "Enums, domains, rows, names of objects, types of extensions, and arrays of texts in another order stay in their \
             database; of files, lists and structs are not read.",
        )
        .into())
}
