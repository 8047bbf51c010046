//! Who owns what, and to whom it is granted, as the catalogs have it.
//!
//! A relation is a kind of its own, since its columns have grants, too; all other kinds are rows of one table here. What is asked for is
//! read when it first is.
//!
//! Source: `src/include/catalog/pg_….h`; `StdRdOptions` and `ViewOptions` in `src/include/utils/rel.h`, PostgreSQL 14 to 18.

use std::collections::HashMap;

use pagemill_format::Oid;

use super::acl::{AclItem, Owned, acl, item_bytes};
use crate::catalog::Catalog;
use crate::error::Result;
use crate::roles::BOOTSTRAP_ROLE;
use crate::system_rows::{SystemRow, for_each_row};

/// What rights on a relation depend on.
pub(crate) struct RelationRights {
    pub(crate) name: String,
    pub(super) owned: Owned,
    /// Grants on single columns.
    pub(super) columns: Vec<ColumnRights>,
    pub(super) has_row_security: bool,
    /// Of its owner, too.
    pub(super) forces_row_security: bool,
    /// Of a view: it runs as who asks, not as its owner.
    pub(super) is_invoker: bool,
    /// Of a view: no condition from outside may see rows that it leaves out.
    pub(super) is_barrier: bool,
    /// One of the system's own, which only superusers may change, whatever is granted.
    pub(super) is_system: bool,
}

/// Grants on a column.
pub(super) struct ColumnRights {
    pub(super) name: String,
    pub(super) number: i16,
    pub(super) items: Vec<AclItem>,
}

/// Relations by OID.
pub(super) type Relations = HashMap<Oid, RelationRights>;

pub(super) fn relations(catalog: &Catalog) -> Result<Relations> {
    let size = item_bytes(catalog);
    let mut found = HashMap::new();
    let columns = [
        "oid",
        "relname",
        "relowner",
        "relacl",
        "relrowsecurity",
        "relforcerowsecurity",
        "reloptions",
        "relkind",
        "relnamespace",
    ];
    for_each_row(catalog.values(), "pg_class", &columns, |row| {
        found.insert(row.oid(0), relation(row, size)?);
        Ok(())
    })?;
    let columns = ["attrelid", "attacl", "attname", "attnum", "attisdropped"];
    for_each_row(catalog.values(), "pg_attribute", &columns, |row| {
        if let Some(items) = acl(row, 1, size)?
            && let Some(rights) = found.get_mut(&row.oid(0))
            && !row.bool(4)
        {
            rights.columns.push(ColumnRights { name: row.name(2), number: row.int2(3), items });
        }
        Ok(())
    })?;
    Ok(found)
}

fn relation(row: &mut SystemRow<'_>, item_bytes: usize) -> Result<RelationRights> {
    /// `pg_toast`, and the first OID that initdb gives to what can be dropped.
    const TOAST: Oid = Oid(99);
    const FIRST_UNPINNED: u32 = 12000;
    let (options, kind) = (row.texts(6)?, row.byte(7));
    let is_system = row.oid(0).0 < FIRST_UNPINNED || row.oid(8) == TOAST;
    let letter = if kind == b'S' { b's' } else { b'r' };
    Ok(RelationRights {
        name: row.name(1),
        owned: Owned { owner: row.oid(2), acl: acl(row, 3, item_bytes)?, kind: letter },
        columns: Vec::new(),
        has_row_security: row.bool(4),
        forces_row_security: row.bool(5),
        is_invoker: is_set(&options, "security_invoker"),
        is_barrier: is_set(&options, "security_barrier"),
        is_system: is_system && kind != b'v',
    })
}

/// A catalog of objects that rights are granted on.
pub(crate) struct Kind {
    pub(crate) catalog: &'static str,
    name: &'static str,
    /// Empty where the first superuser owns all.
    owner: &'static str,
    acl: &'static str,
    /// The letter that `acldefault` knows it by.
    letter: u8,
}

const fn kind(catalog: &'static str, [name, owner, acl]: [&'static str; 3], letter: u8) -> Kind {
    Kind { catalog, name, owner, acl, letter }
}

pub(crate) const DATABASES: Kind = kind("pg_database", ["datname", "datdba", "datacl"], b'd');
pub(crate) const FUNCTIONS: Kind = kind("pg_proc", ["proname", "proowner", "proacl"], b'f');
pub(crate) const LANGUAGES: Kind = kind("pg_language", ["lanname", "lanowner", "lanacl"], b'l');
pub(crate) const LARGE_OBJECTS: Kind =
    kind("pg_largeobject_metadata", ["", "lomowner", "lomacl"], b'L');
pub(crate) const PARAMETERS: Kind = kind("pg_parameter_acl", ["parname", "", "paracl"], b'p');
pub(crate) const SCHEMAS: Kind = kind("pg_namespace", ["nspname", "nspowner", "nspacl"], b'n');
pub(crate) const SERVERS: Kind = kind("pg_foreign_server", ["srvname", "srvowner", "srvacl"], b'S');
pub(crate) const TABLESPACES: Kind = kind("pg_tablespace", ["spcname", "spcowner", "spcacl"], b't');
pub(crate) const TYPES: Kind = kind("pg_type", ["typname", "typowner", "typacl"], b'T');
pub(crate) const WRAPPERS: Kind =
    kind("pg_foreign_data_wrapper", ["fdwname", "fdwowner", "fdwacl"], b'F');

/// The objects of a kind.
#[derive(Default)]
pub(crate) struct Objects {
    pub(super) owned: HashMap<Oid, Owned>,
    /// Of kinds whose names are unique.
    names: HashMap<String, Oid>,
}

impl Objects {
    pub(super) fn read(catalog: &Catalog, kind: &Kind) -> Result<Self> {
        let (size, mut found) = (item_bytes(catalog), Self::default());
        // What a catalog does not have is read as its OID again.
        let or_oid = |name: &'static str| if name.is_empty() { "oid" } else { name };
        let columns = ["oid", kind.acl, or_oid(kind.owner), or_oid(kind.name)];
        for_each_row(catalog.values(), kind.catalog, &columns, |row| {
            let owner = if kind.owner.is_empty() { BOOTSTRAP_ROLE } else { row.oid(2) };
            let owned = Owned { owner, acl: acl(row, 1, size)?, kind: kind.letter };
            found.owned.insert(row.oid(0), owned);
            let name = match kind.letter {
                // Names of these are not unique, or they have none.
                b'f' | b'T' | b'L' => return Ok(()),
                b'p' => row.text(3)?.unwrap_or_default(),
                _ => row.name(3),
            };
            found.names.insert(name, row.oid(0));
            Ok(())
        })?;
        Ok(found)
    }

    pub(crate) fn named(&self, name: &str) -> Option<Oid> {
        self.names.get(name).copied()
    }

    pub(crate) fn has(&self, oid: Oid) -> bool {
        self.owned.contains_key(&oid)
    }
}

/// Whether an option is there and not off.
fn is_set(options: &[String], name: &str) -> bool {
    let of = |option: &String| option.strip_prefix(name)?.strip_prefix('=').map(str::to_lowercase);
    let value = options.iter().find_map(of);
    value.is_some_and(|value| !["false", "off", "no", "0", "f", "n"].contains(&value.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_on_or_off() {
        let options =
            |text: &str| vec!["fillfactor=70".to_owned(), format!("security_barrier={text}")];
        for on in ["true", "on", "1", "YES"] {
            assert!(is_set(&options(on), "security_barrier"), "{on}");
        }
        assert!(!is_set(&options("false"), "security_barrier"));
        assert!(!is_set(&options("true"), "security_invoker"));
    }
}
