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

/// Known wrappers, or what is of such.
type Known = HashMap<Oid, Wrapper>;

/// The foreign tables of known wrappers.
pub(super) fn foreign_tables(catalog: &Catalog) -> Result<Known> {
    let wrappers = wrappers(catalog)?;
    if wrappers.is_empty() {
        return Ok(wrappers);
    }
    let server = ["oid", "srvfdw", "srvoptions"];
    let servers = with_options_of(catalog, ("pg_foreign_server", server), &wrappers)?;
    let table = ["ftrelid", "ftserver", "ftoptions"];
    with_options_of(catalog, ("pg_foreign_table", table), &servers)
}

fn wrappers(catalog: &Catalog) -> Result<Known> {
    let mut all = Vec::new();
    let columns = ["oid", "fdwname", "fdwhandler"];
    for_each_row(catalog.values(), "pg_foreign_data_wrapper", &columns, |row| {
        all.push((row.oid(0), row.name(1), row.oid(2)));
        Ok(())
    })?;
    let mut updatable = HashMap::new();
    // Where there is a wrapper, which is seldom.
    if !all.is_empty() {
        for_each_row(catalog.values(), "pg_proc", &["oid", "prosrc"], |row| {
            let can_change = match row.text(1)?.as_deref() {
                Some("postgres_fdw_handler") => true,
                Some("file_fdw_handler") => false,
                _ => return Ok(()),
            };
            updatable.insert(row.oid(0), can_change);
            Ok(())
        })?;
    }
    let known = all.into_iter().filter_map(|(wrapper, name, handler)| match handler {
        Oid(0) => Some((wrapper, Wrapper::WithoutHandler(name))),
        handler => Some((wrapper, Wrapper::Known(*updatable.get(&handler)?))),
    });
    Ok(known.collect())
}

/// The rows of a catalog that are of what is known, each with its own options: its OID, that of what it is of, and the options.
fn with_options_of(
    catalog: &Catalog,
    (relation, columns): (&str, [&str; 3]),
    known: &Known,
) -> Result<Known> {
    let mut found = HashMap::new();
    for_each_row(catalog.values(), relation, &columns, |row| {
        if let Some(wrapper) = known.get(&row.oid(1)).cloned() {
            let options = if row.is_null(2) { Vec::new() } else { row.texts(2)? };
            found.insert(row.oid(0), with_options(wrapper, &options));
        }
        Ok(())
    })?;
    Ok(found)
}

/// `updatable` is an option of a wrapper whose rows can be changed, which lets in no other words.
///
/// Source: `defGetBoolean` in `src/backend/commands/define.c`, PostgreSQL 14 to 18.
fn with_options(wrapper: Wrapper, options: &[String]) -> Wrapper {
    let given = options.iter().find_map(|option| option.strip_prefix("updatable="));
    match (wrapper, given) {
        (Wrapper::Known(_), Some(value)) => {
            Wrapper::Known(["true", "on"].iter().any(|word| word.eq_ignore_ascii_case(value)))
        }
        (wrapper, _) => wrapper,
    }
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
        assert!(with(&[]) && with(&["host=x"]) && with(&["host=x", "updatable=ON"]));
        assert!(!with(&["updatable=false"]) && !with(&["updatable=off"]));
        let bare =
            with_options(Wrapper::WithoutHandler("w".to_owned()), &["updatable=true".to_owned()]);
        assert!(matches!(bare, Wrapper::WithoutHandler(_)));
    }
}
