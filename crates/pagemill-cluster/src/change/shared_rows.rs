//! Rows of shared catalogs that a transaction adds and deletes, with their indexes.
//!
//! Invariant: an added row has an entry in every index of its catalog; a deleted one keeps its entries, as after a
//! DELETE, for VACUUM to remove.

use pagemill_format::tuple::HeapTuple;
use pagemill_format::{BlockBytes, BlockNumber, Fork, Oid, Tid};

use super::catalog_indexes::{CatalogIndexes, needs_lock};
use super::catalog_pages::CatalogPages;
use super::catalog_table::{CatalogEntry, CatalogTable, Payloads};
use super::transaction::Transaction;
use crate::error::Result;

/// Adds rows to a catalog, whose indexes are these. Returns what standbys have to lock for it, each with its database.
///
/// # Errors
/// When the catalog or its indexes cannot be read.
pub(super) fn insert(
    transaction: &mut Transaction,
    catalog: &CatalogTable,
    rows: &[Payloads],
    indexes: &CatalogIndexes,
) -> Result<Vec<(Oid, Oid)>> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let xid = transaction.xid();
    let mut entries = catalog.entries(indexes.keys)?;
    let mut pages = CatalogPages::new(&catalog.files, xid, |block| {
        transaction.changed_page((catalog.file, Fork::Main, block))
    });
    for row in rows {
        let tuple = catalog.form(row, xid)?;
        let tid = pages.insert(&tuple)?;
        let values = catalog.values(HeapTuple::parse(&tuple)?, indexes.keys)?;
        entries.push(CatalogEntry { tid, values });
    }
    let pages = pages.pages;
    store(transaction, catalog, pages)?;
    let mut locked = Vec::new();
    for index in indexes.all {
        let file = super::catalog_table::files_of(&catalog.database, index.oid)?;
        let pages = index.rebuilt(&catalog.database, &entries)?;
        if needs_lock(&pages) {
            locked.push((file.database, index.oid));
        }
        for (block, page) in pages {
            transaction.set_page((file, Fork::Main, block), page);
        }
    }
    Ok(locked)
}

/// Deletes the rows that `is_wanted` takes. Bytes in `overwritten`, each at an offset in the tuple's data, are put over
/// what such a row says, for whoever sees it nevertheless.
///
/// # Errors
/// When the catalog cannot be read.
pub(super) fn delete(
    transaction: &mut Transaction,
    catalog: &CatalogTable,
    is_wanted: impl Fn(&Payloads) -> bool,
    overwritten: Option<(usize, &[u8])>,
) -> Result<()> {
    let mut found: Vec<(Tid, usize)> = Vec::new();
    catalog.for_each_row(|tid, tuple| {
        if is_wanted(&catalog.payloads(tuple, |column| column.layout.len > 0)?) {
            found.push((tid, tuple.hoff()));
        }
        Ok(())
    })?;
    let mut pages = CatalogPages::new(&catalog.files, transaction.xid(), |block| {
        transaction.changed_page((catalog.file, Fork::Main, block))
    });
    for &(tid, header) in &found {
        if let Some((at, bytes)) = overwritten {
            pages.overwrite(tid, header + at, bytes)?;
        }
        pages.delete(tid)?;
    }
    let pages = pages.pages;
    store(transaction, catalog, pages)
}

fn store(
    transaction: &mut Transaction,
    catalog: &CatalogTable,
    pages: std::collections::BTreeMap<BlockNumber, Box<BlockBytes>>,
) -> Result<()> {
    transaction.take_back_visibility(catalog.file, pages.keys().copied())?;
    for (block, page) in pages {
        transaction.set_page((catalog.file, Fork::Main, block), page);
    }
    Ok(())
}
