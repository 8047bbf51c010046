//! Changed rows of `pg_class`: new sizes written over old ones, and new versions for relations that get other files.
//!
//! Sizes are estimates, and a server overwrites them where they lie, in no transaction (`heap_inplace_update`). So it is
//! done here. A row that gets other files gets a new version instead, so that whoever replays the WAL and stops before
//! the commit finds the old one and the old files: a standby that is promoted, a recovery to a point in time.
//!
//! Invariant: what is overwritten is of fixed length and comes before the first attribute that may be null.
//!
//! Source: `heap_inplace_update` and `heap_update` in `src/backend/access/heap/heapam.c`, `src/include/catalog/pg_class.h`,
//! PostgreSQL 14 to 18.

use std::collections::{BTreeMap, HashMap, HashSet};

use pagemill_format::page::Page;
use pagemill_format::tuple::HeapTuple;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Fork, Oid, Tid, TransactionId};

use super::catalog_indexes::OF_CLASS;
use super::catalog_pages::CatalogPages;
use super::catalog_table::{CatalogEntry, CatalogTable, ChangedPage};
use crate::error::{Damage, Error, Result};
use crate::heap::visit_tuples;
use crate::refusal::CatalogRowCause;
use crate::transaction_log::ClusterLog;

/// What becomes of a relation's row; what is `None` stays.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClassChange {
    /// `relfilenode`.
    pub filenode: Option<u32>,
    /// `relpages`, blocks.
    pub pages: Option<u32>,
    /// `reltuples`.
    pub tuples: Option<f32>,
    /// `relallvisible`, blocks.
    pub all_visible: Option<u32>,
    /// `relallfrozen`, blocks; passed over before 18, which brought it.
    pub all_frozen: Option<u32>,
}

impl ClassChange {
    /// The columns that are overwritten, and with what.
    fn fields(&self) -> impl Iterator<Item = (&'static str, [u8; 4])> {
        let number = |name, value: Option<u32>| value.map(|value| (name, value.to_le_bytes()));
        [
            number("relfilenode", self.filenode),
            number("relpages", self.pages),
            self.tuples.map(|tuples| ("reltuples", tuples.to_le_bytes())),
            number("relallvisible", self.all_visible),
            number("relallfrozen", self.all_frozen),
        ]
        .into_iter()
        .flatten()
    }
}

/// Overwrites the rows of these relations, and returns the pages they are on.
///
/// # Errors
/// When `pg_class` cannot be read, or has no row for one of them.
pub(super) fn change_rows(
    classes: &CatalogTable,
    changes: &HashMap<Oid, ClassChange>,
) -> Result<Vec<ChangedPage>> {
    let mut log = ClusterLog::new(classes.database.cluster().clone());
    let overwriting = Overwriting { classes, changes };
    let (mut pages, mut found) = (Vec::new(), 0);
    classes.for_each_page(|block, bytes| {
        let places = overwriting.places_on(block, bytes, &mut log)?;
        if places.is_empty() {
            return Ok(());
        }
        found += places.iter().map(|(oid, ..)| oid).collect::<HashSet<_>>().len();
        let mut changed = Box::new(*bytes);
        for (_, at, value) in places {
            // Infallible: the place was found on a page of this size.
            changed[at..at + value.len()].copy_from_slice(&value);
        }
        pages.push((block, changed));
        Ok(())
    })?;
    if found != changes.len() {
        return Err(classes.damage(MISSING_ROW));
    }
    Ok(pages)
}

const MISSING_ROW: &str = "pg_class has no row for a relation that was read from it before";

/// Rows that are overwritten where they lie, and with what.
struct Overwriting<'a> {
    classes: &'a CatalogTable,
    changes: &'a HashMap<Oid, ClassChange>,
}

impl Overwriting<'_> {
    /// Where on a page each change goes: the relation, the offset in the page, the bytes.
    fn places_on(
        &self,
        block: BlockNumber,
        bytes: &BlockBytes,
        log: &mut ClusterLog,
    ) -> Result<Vec<(Oid, usize, [u8; 4])>> {
        let Self { classes, changes } = *self;
        let mut places = Vec::new();
        visit_tuples(Page::new(bytes), log, |number, tuple| -> Result<()> {
            let tuple = tuple.map_err(|fault| classes.fault(block, number, fault))?;
            let changed = oid_of(tuple).and_then(|oid| changes.get_key_value(&oid));
            let Some((oid, change)) = changed else { return Ok(()) };
            for (name, value) in change.fields() {
                let Some(at) = offset_of(classes, name) else { continue };
                let place = place_in_page(bytes, number, tuple, at);
                let ends_early = || row_ends_early(classes, Tid { block, line_pointer: number });
                places.push((*oid, place.ok_or_else(ends_early)?, value));
            }
            Ok(())
        })?;
        Ok(places)
    }
}

/// The first column.
fn oid_of(tuple: HeapTuple<'_>) -> Option<Oid> {
    tuple.data().data.first_chunk().map(|bytes| Oid(u32::from_le_bytes(*bytes)))
}

/// Where a column of `pg_class` lies in a tuple's data; `None` for one that this version does not have.
fn offset_of(classes: &CatalogTable, name: &str) -> Option<usize> {
    let position = classes.position(name)?;
    classes.layout.fixed_span(position).map(|span| span.start)
}

/// The offset in the page of byte `at` of the data of the tuple at a line pointer, where four bytes have room.
fn place_in_page(
    page: &BlockBytes,
    line_pointer: u16,
    tuple: HeapTuple<'_>,
    at: usize,
) -> Option<usize> {
    let lp = Page::new(page).line_pointer(line_pointer);
    let place =
        lp.map(|lp| lp.offset() + tuple.hoff() + at).filter(|_| at + 4 <= tuple.data().data.len());
    place.filter(|place| place + 4 <= BLOCK_SIZE)
}

fn row_ends_early(classes: &CatalogTable, tid: Tid) -> Error {
    let what = "a row of pg_class that ends before its columns do";
    Damage::in_block(classes.files.locate(tid.block).0, Fork::Main, tid.block, what)
        .at_line_pointer(tid.line_pointer)
        .into()
}

/// The pages with old and new versions, and what the indexes have to say of the new ones.
#[derive(Debug, Default)]
pub(super) struct ClassVersions {
    pub(super) pages: BTreeMap<BlockNumber, Box<BlockBytes>>,
    pub(super) entries: Vec<CatalogEntry>,
}

/// Writes a new version of the row of each relation; `changed` are pages that were changed otherwise before.
///
/// # Errors
/// When `pg_class` cannot be read, or has no row for one of them.
pub(super) fn write_versions(
    classes: &CatalogTable,
    xid: TransactionId,
    changes: &HashMap<Oid, ClassChange>,
    changed: impl Fn(BlockNumber) -> Option<Box<BlockBytes>>,
) -> Result<ClassVersions> {
    let mut pages = CatalogPages::new(&classes.files, xid, changed);
    let mut entries = Vec::new();
    for (oid, old) in places_of(classes, changes)? {
        let Some(change) = changes.get(&oid) else { continue };
        let mut tuple = pages.tuple(old)?;
        let data = HeapTuple::parse(&tuple)?.hoff();
        for (name, value) in change.fields() {
            let Some(at) = offset_of(classes, name) else { continue };
            let field = tuple.get_mut(data + at..data + at + value.len());
            let field = field.ok_or_else(|| Error::refused(CatalogRowCause::EndsEarly))?;
            field.copy_from_slice(&value);
        }
        let tid = pages.update(old, &tuple)?;
        let values = classes.values(HeapTuple::parse(&tuple)?, OF_CLASS.keys)?;
        entries.push(CatalogEntry { tid, values });
    }
    Ok(ClassVersions { pages: pages.pages, entries })
}

/// Where the rows of these relations are.
fn places_of(
    classes: &CatalogTable,
    changes: &HashMap<Oid, ClassChange>,
) -> Result<BTreeMap<Oid, Tid>> {
    let mut places = BTreeMap::new();
    classes.for_each_row(|tid, tuple| {
        if let Some(oid) = oid_of(tuple).filter(|oid| changes.contains_key(oid)) {
            places.insert(oid, tid);
        }
        Ok(())
    })?;
    if places.len() != changes.len() {
        return Err(classes.damage(MISSING_ROW));
    }
    Ok(places)
}
