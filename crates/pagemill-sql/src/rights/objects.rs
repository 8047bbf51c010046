//! Who owns what, and to whom it is granted, as the catalogs have it.
//!
//! Source: `struct AclItem` in `src/include/utils/acl.h`, whose rights are a word of 32 bits up to 15 and of 64 from 16 on, those to grant
//! on in its upper half; `StdRdOptions` and `ViewOptions` in `src/include/utils/rel.h`, PostgreSQL 14 to 18.

use std::collections::HashMap;

use pagemill_format::Oid;

use crate::catalog::Catalog;
use crate::error::{Result, SqlState, fail};
use crate::system_rows::{SystemRow, for_each_row};

/// Bytes of an array's header in front of its elements: three words, and two for its one dimension.
const HEADER: usize = 20;

/// A grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AclItem {
    /// To whom; 0 for everybody.
    pub(super) grantee: Oid,
    /// What.
    pub(super) rights: u32,
}

/// An object's owner and its grants; `None` where nothing was ever granted.
#[derive(Debug, Clone)]
pub(super) struct Owned {
    pub(super) owner: Oid,
    pub(super) acl: Option<Vec<AclItem>>,
}

/// What rights on a relation depend on.
pub(super) struct RelationRights {
    pub(super) name: String,
    pub(super) owned: Owned,
    /// Grants on single columns, each with the column's name.
    pub(super) columns: Vec<(String, Vec<AclItem>)>,
    pub(super) has_row_security: bool,
    /// Of its owner, too.
    pub(super) forces_row_security: bool,
    /// Of a view: it runs as who asks, not as its owner.
    pub(super) is_invoker: bool,
    /// Of a view: no condition from outside may see rows that it leaves out.
    pub(super) is_barrier: bool,
}

pub(super) fn relations(catalog: &Catalog) -> Result<HashMap<Oid, RelationRights>> {
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
    ];
    for_each_row(catalog.values(), "pg_class", &columns, |row| {
        let options = row.texts(6)?;
        let rights = RelationRights {
            name: row.name(1),
            owned: Owned { owner: row.oid(2), acl: acl(row, 3, size)? },
            columns: Vec::new(),
            has_row_security: row.bool(4),
            forces_row_security: row.bool(5),
            is_invoker: is_set(&options, "security_invoker"),
            is_barrier: is_set(&options, "security_barrier"),
        };
        found.insert(row.oid(0), rights);
        Ok(())
    })?;
    for_each_row(catalog.values(), "pg_attribute", &["attrelid", "attacl", "attname"], |row| {
        if let Some(items) = acl(row, 1, size)?
            && let Some(rights) = found.get_mut(&row.oid(0))
        {
            rights.columns.push((row.name(2), items));
        }
        Ok(())
    })?;
    Ok(found)
}

pub(super) fn schemas(catalog: &Catalog) -> Result<HashMap<Oid, Owned>> {
    let (size, mut found) = (item_bytes(catalog), HashMap::new());
    for_each_row(catalog.values(), "pg_namespace", &["oid", "nspowner", "nspacl"], |row| {
        found.insert(row.oid(0), Owned { owner: row.oid(1), acl: acl(row, 2, size)? });
        Ok(())
    })?;
    Ok(found)
}

/// The catalog's own database.
pub(super) fn database(catalog: &Catalog) -> Result<Owned> {
    let (size, mut found) = (item_bytes(catalog), None);
    let wanted = catalog.database().row().oid;
    for_each_row(catalog.values(), "pg_database", &["oid", "datdba", "datacl"], |row| {
        if row.oid(0) == wanted {
            found = Some(Owned { owner: row.oid(1), acl: acl(row, 2, size)? });
        }
        Ok(())
    })?;
    match found {
        Some(found) => Ok(found),
        None => fail(SqlState::DATA_CORRUPTED, format!("database {} is missing", wanted.0)),
    }
}

fn item_bytes(catalog: &Catalog) -> usize {
    if catalog.database().cluster().version().major() >= 16 { 16 } else { 12 }
}

fn acl(row: &mut SystemRow<'_>, column: usize, item_bytes: usize) -> Result<Option<Vec<AclItem>>> {
    Ok(row.payload(column)?.map(|payload| items(payload, item_bytes)))
}

/// The items of an array. What is cut off grants nothing.
fn items(payload: &[u8], item_bytes: usize) -> Vec<AclItem> {
    let items = payload.get(HEADER..).unwrap_or_default().chunks_exact(item_bytes);
    let word = |item: &[u8], at: usize| {
        let bytes = item.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_le_bytes)
    };
    // Behind the grantee is who granted it.
    items.map(|item| AclItem { grantee: Oid(word(item, 0)), rights: word(item, 8) }).collect()
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

    fn array(items: &[&[u32]]) -> Vec<u8> {
        let header = [1, 0, 1033, items.len() as u32, 1];
        header
            .iter()
            .chain(items.iter().copied().flatten())
            .flat_map(|word| word.to_le_bytes())
            .collect()
    }

    #[test]
    fn items_of_both_widths_are_read() {
        let wanted =
            [AclItem { grantee: Oid(0), rights: 2 }, AclItem { grantee: Oid(9), rights: 0x102 }];
        assert_eq!(items(&array(&[&[0, 10, 2], &[9, 10, 0x102]]), 12), wanted);
        assert_eq!(items(&array(&[&[0, 10, 2, 0], &[9, 10, 0x102, 2]]), 16), wanted);
        // Nothing is granted: an array without dimensions. One that is cut grants no more than what is there.
        assert_eq!(items(&[0; 12], 12), []);
        assert_eq!(items(&array(&[&[0, 10, 2], &[9, 10]]), 12), wanted[..1]);
    }

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
