//! Foreign tables whose rows can be changed: what the two wrappers of PostgreSQL's own say of themselves.
//!
//! Invariant: nothing is told of a table of another wrapper: what it can do only its library knows.
//!
//! Source: `postgresIsForeignRelUpdatable` in `contrib/postgres_fdw/postgres_fdw.c`, `file_fdw_handler` in `contrib/file_fdw/file_fdw.c`,
//! `GetFdwRoutineByServerId` in `src/backend/foreign/foreign.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;

use pagemill_format::Oid;

use crate::catalog::Catalog;
use crate::error::Result;
use crate::system_rows::for_each_row;

/// What is known of the wrapper of a foreign table.
#[derive(Debug, Clone)]
pub(super) enum Wrapper {
    /// Rows can be changed, or not.
    Known(bool),
    /// One without functions, by its name: nothing can be asked of it.
    WithoutHandler(String),
}

/// The foreign tables of known wrappers.
pub(super) fn foreign_tables(catalog: &Catalog) -> Result<HashMap<Oid, Wrapper>> {
    let mut handlers = HashMap::new();
    for_each_row(catalog.values(), "pg_proc", &["oid", "prosrc"], |row| {
        let source = row.text(1)?.filter(|source| source.ends_with("_fdw_handler"));
        handlers.extend(source.map(|source| (row.oid(0), source)));
        Ok(())
    })?;
    let mut wrappers = HashMap::new();
    for_each_row(
        catalog.values(),
        "pg_foreign_data_wrapper",
        &["oid", "fdwname", "fdwhandler"],
        |row| {
            let wrapper = match handlers.get(&row.oid(2)).map(String::as_str) {
                _ if row.oid(2) == Oid(0) => Wrapper::WithoutHandler(row.name(1)),
                Some("postgres_fdw_handler") => Wrapper::Known(true),
                Some("file_fdw_handler") => Wrapper::Known(false),
                _ => return Ok(()),
            };
            wrappers.insert(row.oid(0), wrapper);
            Ok(())
        },
    )?;
    let mut servers = HashMap::new();
    let of_server = ["oid", "srvfdw", "srvoptions"];
    for_each_row(catalog.values(), "pg_foreign_server", &of_server, |row| {
        if let Some(wrapper) = wrappers.get(&row.oid(1)).cloned() {
            let options = if row.is_null(2) { Vec::new() } else { row.texts(2)? };
            servers.insert(row.oid(0), with_options(wrapper, &options));
        }
        Ok(())
    })?;
    let mut tables = HashMap::new();
    let of_table = ["ftrelid", "ftserver", "ftoptions"];
    for_each_row(catalog.values(), "pg_foreign_table", &of_table, |row| {
        if let Some(wrapper) = servers.get(&row.oid(1)).cloned() {
            let options = if row.is_null(2) { Vec::new() } else { row.texts(2)? };
            tables.insert(row.oid(0), with_options(wrapper, &options));
        }
        Ok(())
    })?;
    Ok(tables)
}

/// `updatable` is an option of a wrapper whose rows can be changed.
fn with_options(wrapper: Wrapper, options: &[String]) -> Wrapper {
    let given = options.iter().find_map(|option| option.strip_prefix("updatable="));
    match (wrapper, given) {
        (Wrapper::Known(_), Some(value)) => Wrapper::Known(is_true(value)),
        (wrapper, _) => wrapper,
    }
}

/// The wrapper lets in nothing but truth values.
fn is_true(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    value == "1"
        || value == "on"
        || !value.is_empty() && ["true", "yes"].iter().any(|word| word.starts_with(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_says_whether_rows_can_be_changed() {
        let with = |options: &[&str]| {
            let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
            match with_options(Wrapper::Known(true), &options) {
                Wrapper::Known(can_change) => can_change,
                Wrapper::WithoutHandler(name) => panic!("{name}"),
            }
        };
        assert!(with(&[]) && with(&["host=x"]) && with(&["host=x", "updatable=t"]));
        assert!(
            !with(&["updatable=false"]) && !with(&["updatable=off"]) && !with(&["updatable=0"])
        );
        let bare =
            with_options(Wrapper::WithoutHandler("w".to_owned()), &["updatable=1".to_owned()]);
        assert!(matches!(bare, Wrapper::WithoutHandler(_)));
    }
}
