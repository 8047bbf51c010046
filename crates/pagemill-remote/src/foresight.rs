//! What is asked for next in a data directory: [`expected`] tells what to fetch along with a listing, so that opening a cluster
//! takes few requests in a row.
//!
//! A guess costs a request that may be in vain, so only that is guessed which opening a cluster or a database always asks for; and, where
//! they are few, the names in the directories of databases, one of which is likely to be wanted, and the files of the commit log.
//!
//! Invariant: nothing here decides what is read: what was fetched along is only there sooner.
//!
//! Source: "Database File Layout" in the manual; `relmapper.c`, `pg_database.h` and `pg_attribute.h` for what is read first,
//! PostgreSQL 14 to 18.

use object_store::path::Path as Key;

use crate::directories::{Entry, Listing};

/// A file of more bytes is not fetched along. Catalogs of a database without tables have up to 600 kB.
pub(crate) const MOST_BYTES: u64 = 1 << 20;

/// What to ask for along with a listing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Another directory, with what follows from it.
    Listing(Key),
    /// Only what lies in another directory.
    Names(Key),
    /// The contents of a small file in the directory that was listed, by its name.
    File(String),
}

/// The directory of the database `template1`.
const TEMPLATE: &str = "base/1";
/// What says which cluster this is, and how it is set up.
const ROOT_FILES: [&str; 6] = [
    "PG_VERSION",
    "backup_label",
    "tablespace_map",
    "postmaster.opts",
    "postgresql.conf",
    "postgresql.auto.conf",
];
/// Of the catalogs that all databases share, under the names that they have until they are rewritten: databases, roles and
/// tablespaces.
const GLOBAL_FILES: [&str; 5] = ["pg_control", "pg_filenode.map", "1262", "1260", "1213"];
/// Of a database's, likewise: columns, relations, schemas, and access methods; then what a statement asks of besides: types,
/// casts, functions, operators, collations, indexes, statistics and operator classes.
const DATABASE_FILES: [&str; 13] = [
    "pg_filenode.map",
    "1249",
    "1259",
    "2615",
    "2601",
    "1247",
    "2605",
    "1255",
    "2617",
    "3456",
    "2610",
    "2619",
    "2616",
];
/// Of the template, only what tells the shape of shared catalogs.
const TEMPLATE_FILES: [&str; 2] = ["pg_filenode.map", "1249"];

/// Databases beside the templates whose names are asked for before anybody tells which one is wanted.
const MOST_DATABASES: usize = 4;
const TEMPLATES: [&str; 2] = ["1", "4"];
/// Files of the commit log that are fetched along. A new cluster has one.
const MOST_COMMIT_LOGS: usize = 2;

/// What is asked for next after a directory was listed.
pub(crate) fn expected(directory: &Key, listing: &Listing) -> Vec<Expected> {
    let is_directory = |name: &str| matches!(listing.get(name), Some(Entry::Directory));
    let is_file = |name: &str| matches!(listing.get(name), Some(Entry::Object(_)));
    let below = |path: &str| path.split('/').fold(directory.clone(), |key, name| key.join(name));
    let files = |names: &[&str]| -> Vec<Expected> {
        let there = names.iter().filter(|name| is_file(name));
        there.map(|name| Expected::File((*name).to_owned())).collect()
    };
    if is_file("PG_VERSION") && is_directory("global") {
        let listings = ["global", "base", TEMPLATE, "pg_xact"];
        let mut next: Vec<_> = listings.map(|path| Expected::Listing(below(path))).into();
        next.extend(files(&ROOT_FILES));
        return next;
    }
    if is_file("pg_control") {
        return files(&GLOBAL_FILES);
    }
    if is_file("pg_filenode.map") {
        let is_template = directory.as_ref().ends_with(TEMPLATE);
        return files(if is_template { &TEMPLATE_FILES } else { &DATABASE_FILES });
    }
    let names = listing.keys().map(String::as_str);
    match directory.filename() {
        Some("base") => {
            let databases: Vec<_> = names.filter(|name| !TEMPLATES.contains(name)).collect();
            let few = databases.len() <= MOST_DATABASES;
            let wanted = databases.into_iter().filter(|name| few && is_directory(name));
            wanted.map(|name| Expected::Names(below(name))).collect()
        }
        Some("pg_xact") if listing.len() <= MOST_COMMIT_LOGS => files(&names.collect::<Vec<_>>()),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directories(names: &[&str]) -> Listing {
        names.iter().map(|name| ((*name).to_owned(), Entry::Directory)).collect()
    }

    #[test]
    fn names_of_databases_are_asked_for_where_there_are_few() {
        let base = Key::from("prod/base");
        let found = expected(&base, &directories(&["1", "4", "5", "16384"]));
        assert_eq!(found.len(), 2);
        for database in ["5", "16384"] {
            let names = Expected::Names(base.clone().join(database));
            assert!(found.contains(&names), "{found:?}");
        }
        let many = expected(&base, &directories(&["1", "4", "5", "6", "7", "8", "9"]));
        assert_eq!(many, []);
        // A directory that is called so by chance, far from any cluster, costs no more.
        assert_eq!(expected(&Key::from("prod"), &directories(&["base"])), []);
    }
}
