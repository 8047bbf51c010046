//! The search path, resolved to schemas, and who comes first in it.
//!
//! An object is *visible* when its name alone finds it: when no schema earlier in the path has
//! another one of that name (and arguments, where these count). Visible objects print without
//! their schema.
//!
//! Invariants: `pg_catalog` is always in the path, first unless it is listed elsewhere; no schema
//! is in it twice. `pg_temp` is never in it, because no session owns temporary tables here.
//! The reader is taken for a superuser: schemas are not dropped for want of USAGE.
//!
//! Source: `recomputeNamespacePath` (15; `finalNamespacePath` in 17 and 18) and the
//! `…IsVisible` functions in `src/backend/catalog/namespace.c`, PostgreSQL 14 to 18.

use super::rows::GlobalRow;
use pagemill_format::Oid;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

/// The OID of `pg_catalog` (`PG_CATALOG_NAMESPACE`).
pub const PG_CATALOG: Oid = Oid(11);

/// The schemas that are searched, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPath(Vec<Oid>);

impl SearchPath {
    /// The path of these schemas, with `pg_catalog` in front unless it is among them.
    pub fn new(listed: impl IntoIterator<Item = Oid>) -> Self {
        let mut path = Vec::new();
        for oid in listed {
            if !path.contains(&oid) {
                path.push(oid);
            }
        }
        if !path.contains(&PG_CATALOG) {
            path.insert(0, PG_CATALOG);
        }
        Self(path)
    }

    /// The path that the entries of `search_path` stand for: `$user` is the schema named like
    /// `user`; an entry without a schema, and `pg_temp`, are passed over.
    pub fn resolve<N: AsRef<[u8]>>(names: &[N], user: &[u8], namespaces: &[GlobalRow]) -> Self {
        Self::new(names.iter().filter_map(|name| {
            let wanted = match name.as_ref() {
                b"$user" => user,
                b"pg_temp" => return None,
                other => other,
            };
            namespaces.iter().find(|row| *row.name == *wanted).map(|row| row.oid)
        }))
    }

    /// The schemas in search order.
    pub fn namespaces(&self) -> &[Oid] {
        &self.0
    }

    /// Where in the path `namespace` is, from 0.
    pub fn position(&self, namespace: Oid) -> Option<usize> {
        self.0.iter().position(|&oid| oid == namespace)
    }
}

/// For each key (a name, or a name with arguments) the lowest rank that any object has.
#[derive(Debug)]
pub(super) struct Foremost<K>(HashMap<K, usize>);

impl<K: Hash + Eq> Foremost<K> {
    /// Gathers keys with the rank of the object; one without a rank is never found by name.
    pub(super) fn of(objects: impl Iterator<Item = (K, Option<usize>)>) -> Self {
        let mut lowest = HashMap::new();
        for (key, rank) in objects {
            let Some(rank) = rank else { continue };
            match lowest.entry(key) {
                Entry::Vacant(entry) => {
                    entry.insert(rank);
                }
                Entry::Occupied(mut entry) => {
                    let known: &mut usize = entry.get_mut();
                    *known = rank.min(*known);
                }
            }
        }
        Self(lowest)
    }

    /// True when an object of this key and rank is what the key finds.
    pub(super) fn finds(&self, key: &K, rank: Option<usize>) -> bool {
        rank.is_some() && self.0.get(key).copied() == rank
    }

    /// Every key that finds something.
    pub(super) fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schemas() -> Vec<GlobalRow> {
        let row = |oid, name: &str| GlobalRow { oid: Oid(oid), name: name.as_bytes().into() };
        vec![
            row(11, "pg_catalog"),
            row(2200, "public"),
            row(20000, "postgres"),
            row(20001, "$user"),
            row(20002, "pg_temp"),
        ]
    }

    fn resolved(names: &[&str]) -> Vec<u32> {
        let path = SearchPath::resolve(names, b"postgres", &schemas());
        path.namespaces().iter().map(|oid| oid.0).collect()
    }

    #[test]
    fn pg_catalog_comes_first_unless_it_is_listed() {
        assert_eq!(resolved(&["$user", "public"]), [11, 20000, 2200]);
        assert_eq!(resolved(&["public", "pg_catalog"]), [2200, 11]);
        assert_eq!(resolved(&[]), [11]);
    }

    #[test]
    fn missing_repeated_and_temporary_schemas_are_passed_over() {
        assert_eq!(resolved(&["nowhere", "public", "public", "pg_temp", "Public"]), [11, 2200]);
    }
}
