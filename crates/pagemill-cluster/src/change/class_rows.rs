//! The rows of `pg_class`: where they are, what its indexes say of them, and new sizes written over old ones.
//!
//! Sizes are estimates, and a server overwrites them where they lie, in no transaction (`heap_inplace_update`). So it is
//! done here. A row that gets other files gets a new version instead, by `class_versions.rs`.
//!
//! Invariant: what is overwritten is of fixed length and comes before the first attribute that may be null.
//!
//! Source: `heap_inplace_update` in `src/backend/access/heap/heapam.c`, `src/include/catalog/pg_class.h`,
//! PostgreSQL 14 to 18.

use std::collections::{BTreeMap, HashMap};

use pagemill_format::page::{LinePointerState, Page};
use pagemill_format::tuple::HeapTuple;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Fork, Oid, Tid};
use pagemill_io::ForkFiles;

use crate::data_directory::Cluster;
use crate::database::{Database, catalog};
use crate::error::{Damage, Error, Result};
use crate::heap::{TupleFault, visit_tuples};
use crate::hot_chain;
use crate::page_check::check_page;
use crate::transaction_log::ClusterLog;

/// `HEAP_ONLY_TUPLE` of `t_infomask2`: a later member of a HOT chain, which no index entry leads to.
const HEAP_ONLY: u16 = 0x8000;

/// NAMEDATALEN.
const NAME_BYTES: usize = 64;

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
    pub(super) fn fields(&self) -> impl Iterator<Item = (&'static str, [u8; 4])> {
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

/// A page of `pg_class` with its changes.
pub(super) type ChangedPage = (BlockNumber, Box<BlockBytes>);

/// Overwrites the rows of these relations, and returns the pages they are on.
///
/// # Errors
/// When `pg_class` cannot be read, or has no row for one of them.
pub(super) fn change_rows(
    database: &Database,
    changes: &HashMap<Oid, ClassChange>,
) -> Result<Vec<ChangedPage>> {
    let files = class_files(database)?;
    let mut log = ClusterLog::new(database.cluster().clone());
    let (mut pages, mut found) = (Vec::new(), 0);
    for_each_page(database.cluster(), &files, |block, bytes| {
        let places = places_on(database, &files, block, bytes, changes, &mut log)?;
        if places.is_empty() {
            return Ok(());
        }
        found += places.iter().map(|(oid, ..)| oid).collect::<std::collections::HashSet<_>>().len();
        let mut changed = Box::new(*bytes);
        for (_, at, value) in places {
            // Infallible: the place was found on a page of this size.
            changed[at..at + value.len()].copy_from_slice(&value);
        }
        pages.push((block, changed));
        Ok(())
    })?;
    if found != changes.len() {
        return Err(missing_row(&files));
    }
    Ok(pages)
}

/// Where on a page each change goes: the relation, the offset in the page, the bytes.
fn places_on(
    database: &Database,
    files: &ForkFiles,
    block: BlockNumber,
    bytes: &BlockBytes,
    changes: &HashMap<Oid, ClassChange>,
    log: &mut ClusterLog,
) -> Result<Vec<(Oid, usize, [u8; 4])>> {
    let mut places = Vec::new();
    visit_tuples(Page::new(bytes), log, |number, tuple| -> Result<()> {
        let tuple = tuple.map_err(|fault| damage_of(files, block, number, fault))?;
        let oid = tuple.data().data.first_chunk().map(|bytes| Oid(u32::from_le_bytes(*bytes)));
        let Some((oid, change)) = oid.and_then(|oid| changes.get_key_value(&oid)) else {
            return Ok(());
        };
        for (name, value) in change.fields() {
            let Some(at) = offset_of(database, name)? else { continue };
            places.push((*oid, place_in_page(bytes, tuple, at, files, block, number)?, value));
        }
        Ok(())
    })?;
    Ok(places)
}

/// Where a column of `pg_class` lies in a tuple's data; `None` for one that this version does not have.
pub(super) fn offset_of(database: &Database, name: &str) -> Result<Option<usize>> {
    let Some((columns, layout)) = database.catalog_shape(catalog::PG_CLASS) else {
        return Err(Error::refused("pg_class has no columns"));
    };
    let position = columns.iter().position(|column| *column.name == *name.as_bytes());
    Ok(position.and_then(|position| layout.fixed_span(position)).map(|span| span.start))
}

/// The offset in the page of byte `at` of a tuple's data.
fn place_in_page(
    page: &BlockBytes,
    tuple: HeapTuple<'_>,
    at: usize,
    files: &ForkFiles,
    block: BlockNumber,
    number: u16,
) -> Result<usize> {
    let lp = Page::new(page).line_pointer(number);
    let place =
        lp.map(|lp| lp.offset() + tuple.hoff() + at).filter(|_| at + 4 <= tuple.data().data.len());
    place.filter(|place| place + 4 <= BLOCK_SIZE).ok_or_else(|| {
        let what = "a row of pg_class that ends before its columns do";
        Damage::in_block(files.locate(block).0, Fork::Main, block, what)
            .at_line_pointer(number)
            .into()
    })
}

/// What the indexes of `pg_class` know of a row, and the root of its HOT chain.
#[derive(Debug, Clone)]
pub(super) struct ClassEntry {
    pub(super) oid: [u8; 4],
    /// Without its padding.
    pub(super) name: Vec<u8>,
    pub(super) namespace: [u8; 4],
    pub(super) tablespace: [u8; 4],
    pub(super) filenode: [u8; 4],
    pub(super) tid: Tid,
}

impl ClassEntry {
    /// What the data of a tuple say, whose chain begins at `tid`.
    pub(super) fn of(database: &Database, tuple: HeapTuple<'_>, tid: Tid) -> Result<Self> {
        let data = tuple.data().data;
        let bytes = |name| -> Result<&[u8]> {
            let start = offset_of(database, name)?;
            Ok(start.and_then(|start| data.get(start..)).unwrap_or_default())
        };
        let number = |name| -> Result<[u8; 4]> {
            Ok(bytes(name)?.first_chunk().copied().unwrap_or_default())
        };
        let name = bytes("relname")?;
        let len = name.iter().take(NAME_BYTES).position(|&byte| byte == 0).unwrap_or(NAME_BYTES);
        Ok(Self {
            oid: number("oid")?,
            name: name.get(..len).unwrap_or_default().to_vec(),
            namespace: number("relnamespace")?,
            tablespace: number("reltablespace")?,
            filenode: number("relfilenode")?,
            tid,
        })
    }
}

/// What the indexes of `pg_class` have to say of all rows that are visible now.
pub(super) fn class_entries(database: &Database) -> Result<Vec<ClassEntry>> {
    let files = class_files(database)?;
    let mut log = ClusterLog::new(database.cluster().clone());
    let mut entries = Vec::new();
    for_each_page(database.cluster(), &files, |block, bytes| {
        for root in (1..=Page::new(bytes).line_pointer_count()).filter(|&lp| is_root(bytes, lp)) {
            let member = hot_chain::visible_member(Page::new(bytes), block, root, &mut log);
            let member = member.map_err(|(lp, fault)| damage_of(&files, block, lp, fault))?;
            if let Some((_, tuple)) = member {
                entries.push(ClassEntry::of(database, tuple, Tid { block, line_pointer: root })?);
            }
        }
        Ok(())
    })?;
    Ok(entries)
}

/// Where the rows of these relations are.
pub(super) fn places_of(
    database: &Database,
    changes: &HashMap<Oid, ClassChange>,
) -> Result<BTreeMap<Oid, Tid>> {
    let files = class_files(database)?;
    let mut log = ClusterLog::new(database.cluster().clone());
    let mut places = BTreeMap::new();
    for_each_page(database.cluster(), &files, |block, bytes| {
        visit_tuples(Page::new(bytes), &mut log, |line_pointer, tuple| -> Result<()> {
            let tuple = tuple.map_err(|fault| damage_of(&files, block, line_pointer, fault))?;
            let oid = tuple.data().data.first_chunk().map(|oid| Oid(u32::from_le_bytes(*oid)));
            if let Some(oid) = oid.filter(|oid| changes.contains_key(oid)) {
                places.insert(oid, Tid { block, line_pointer });
            }
            Ok(())
        })
    })?;
    if places.len() != changes.len() {
        return Err(missing_row(&files));
    }
    Ok(places)
}

fn missing_row(files: &ForkFiles) -> Error {
    let what = "pg_class has no row for a relation that was read from it before";
    Damage::in_file(files.path(), what).into()
}

/// True for a line pointer that an index entry may lead to.
fn is_root(bytes: &BlockBytes, number: u16) -> bool {
    let page = Page::new(bytes);
    let Some(lp) = page.line_pointer(number) else { return false };
    match lp.state() {
        LinePointerState::Redirect => true,
        LinePointerState::Normal => {
            let tuple = page.item(lp).and_then(HeapTuple::parse);
            // A damaged one is reported when it is followed.
            tuple.map_or(true, |tuple| tuple.infomask2() & HEAP_ONLY == 0)
        }
        _ => false,
    }
}

pub(super) fn class_files(database: &Database) -> Result<ForkFiles> {
    let class = database.class(catalog::PG_CLASS);
    let class = class.ok_or_else(|| Error::refused("pg_class has no row for itself"))?;
    database.cluster().main_fork(&database.base_path(class)?)
}

/// Hands every page, checked, to `visit`.
fn for_each_page(
    cluster: &Cluster,
    files: &ForkFiles,
    mut visit: impl FnMut(BlockNumber, &BlockBytes) -> Result<()>,
) -> Result<()> {
    let mut page = Box::new([0; BLOCK_SIZE]);
    for block in (0..files.blocks()).map(BlockNumber) {
        files.read_block(block, &mut page)?;
        check_page(cluster, files, block, &page)?;
        visit(block, &page)?;
    }
    Ok(())
}

fn damage_of(files: &ForkFiles, block: BlockNumber, number: u16, fault: TupleFault) -> Error {
    match fault {
        TupleFault::Status(error) => error,
        TupleFault::Bytes(error) => {
            Damage::in_block(files.locate(block).0, Fork::Main, block, error.to_string())
                .at_line_pointer(number)
                .into()
        }
    }
}
