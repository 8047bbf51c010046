//! Functions that are written in SQL: their one query, what it calls its arguments, and what its columns are called.
//!
//! A body is a text, which is parsed as the server parses it when it is called, or a tree, which was parsed when the function
//! was made and is written out as SQL again, with its arguments by their numbers.
//!
//! Invariant: what has no single query, or runs under settings or rights of its own, is refused by name.
//!
//! Source: `src/include/catalog/pg_proc.h`, `init_sql_fcache` in `src/backend/executor/functions.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use pagemill_format::Oid;
use sqlparser::ast::{Query, Statement};

use crate::catalog::{Catalog, SQL_LANGUAGE};
use crate::definitions::numbered_body;
use crate::error::{Result, StatementError, unsupported};
use crate::session::Session;
use crate::system_rows::for_each_row;

/// All of a database, by OID.
pub(crate) type SqlFunctions = HashMap<Oid, Arc<SqlFunction>>;

/// A function in SQL.
#[derive(Debug)]
pub(crate) struct SqlFunction {
    pub(crate) name: String,
    /// The names of its arguments, empty ones for those without; nothing where none has one.
    pub(crate) arguments: Vec<String>,
    /// What it gives where that is not one value: names, and types as declared.
    pub(crate) columns: Vec<(String, Oid)>,
    text: String,
    tree: Option<String>,
    settings: Vec<String>,
    is_security_definer: bool,
    query: OnceLock<Arc<Query>>,
}

impl SqlFunction {
    /// Its query.
    ///
    /// # Errors
    /// When it has none, has several statements, or runs otherwise than the statement that calls it.
    pub(crate) fn query(&self, catalog: &Arc<Catalog>) -> Result<Arc<Query>> {
        if let Some(query) = self.query.get() {
            return Ok(query.clone());
        }
        if let Some(setting) = self.settings.first() {
            let name = setting.split('=').next().unwrap_or_default();
            return unsupported(format!("its own setting of {name}"));
        }
        if self.is_security_definer {
            return unsupported("the rights of its owner");
        }
        let text = match &self.tree {
            Some(tree) => {
                as_statement(&numbered_body(catalog, tree).map_err(StatementError::from)?)
            }
            None => self.text.clone(),
        };
        let query = match <[Statement; 1]>::try_from(Session::parse(&text)?) {
            Ok([Statement::Query(query)]) => Arc::from(query),
            Ok(_) => return unsupported("a body that is no query"),
            Err(_) => return unsupported("a body of several statements, or of none"),
        };
        Ok(self.query.get_or_init(|| query).clone())
    }
}

/// `RETURN x` and `BEGIN ATOMIC … END` as the statements that they stand for.
fn as_statement(body: &str) -> String {
    let body = body.trim();
    if let Some(value) = body.strip_prefix("RETURN ") {
        return format!("SELECT {value}");
    }
    let inside = body.strip_prefix("BEGIN ATOMIC").and_then(|rest| rest.strip_suffix("END"));
    inside.unwrap_or(body).to_owned()
}

/// Reads all functions in SQL.
///
/// # Errors
/// When the catalog cannot be read.
pub(crate) fn sql_functions(catalog: &Catalog) -> Result<SqlFunctions> {
    let columns = [
        "oid",
        "prolang",
        "proname",
        "proargnames",
        "proargmodes",
        "proallargtypes",
        "prosrc",
        "prosqlbody",
        "proconfig",
        "prosecdef",
    ];
    let mut found = SqlFunctions::new();
    for_each_row(catalog.values(), "pg_proc", &columns, |row| {
        if row.oid(1) != SQL_LANGUAGE {
            return Ok(());
        }
        let names = row.texts(3)?;
        let modes = row.payload(4)?.and_then(|bytes| bytes.get(20..)).map(<[u8]>::to_vec);
        let types = row.oids(5)?;
        let (arguments, columns) = parts(&names, modes.as_deref(), &types);
        let function = SqlFunction {
            name: row.name(2),
            arguments,
            columns,
            text: row.text(6)?.unwrap_or_default(),
            tree: row.text(7)?,
            settings: row.texts(8)?,
            is_security_definer: row.bool(9),
            query: OnceLock::new(),
        };
        found.insert(row.oid(0), Arc::new(function));
        Ok(())
    })?;
    Ok(found)
}

/// The names of what goes in, and what comes out: OUT, INOUT and the columns of TABLE.
fn parts(
    names: &[String],
    modes: Option<&[u8]>,
    types: &[Oid],
) -> (Vec<String>, Vec<(String, Oid)>) {
    let Some(modes) = modes else { return (names.to_vec(), Vec::new()) };
    let name = |place: usize| names.get(place).cloned().unwrap_or_default();
    let places = || modes.iter().enumerate();
    let inputs = places().filter(|(_, mode)| matches!(mode, b'i' | b'b' | b'v'));
    let outputs = places().filter(|(_, mode)| matches!(mode, b'o' | b'b' | b't'));
    let inputs = inputs.map(|(place, _)| name(place)).collect();
    let output = |(place, _)| (name(place), types.get(place).copied().unwrap_or(Oid(0)));
    (inputs, outputs.map(output).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_of_the_standard_become_statements() {
        assert_eq!(as_statement("RETURN ($1 + 1)"), "SELECT ($1 + 1)");
        let body = "BEGIN ATOMIC\n SELECT 1\n;\nEND";
        assert_eq!(as_statement(body).trim(), "SELECT 1\n;");
    }

    #[test]
    fn what_goes_in_and_what_comes_out_are_told_by_their_modes() {
        let names = ["a", "x", "n"].map(str::to_owned);
        let types = [Oid(2277), Oid(2283), Oid(23)];
        let (inputs, outputs) = parts(&names, Some(b"ioo"), &types);
        assert_eq!(inputs, ["a"]);
        assert_eq!(outputs, [("x".to_owned(), Oid(2283)), ("n".to_owned(), Oid(23))]);
        assert_eq!(parts(&names, None, &[]).0.len(), 3);
    }
}
