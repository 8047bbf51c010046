//! Values kept in TOAST tables, put together from their chunks.
//!
//! A value is found through the TOAST table's B-tree over (`chunk_id`, `chunk_seq`): down to the
//! leaf with the value's first chunk, then right along the leaves. Pages of the index and of the
//! table go through one small cache per thread, because neighbouring rows have neighbouring
//! chunks. Every chunk must be there, in order, and of the size that its place demands.
//!
//! Source: `toast_fetch_datum` in `src/backend/access/common/detoast.c`, `heap_fetch_toast_slice`
//! in `src/backend/access/heap/heaptoast.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use pagemill_format::btree::{BtreeMeta, BtreePage, IndexTuple, META_BLOCK};
use pagemill_format::page::{LinePointerState, Page};
use pagemill_format::tuple::{AttributeLayout, HeapTuple, Span, TupleLayout};
use pagemill_format::varlena::{TOAST_CHUNK_BYTES, ToastPointer, Varlena};
use pagemill_format::{BlockBytes, BlockNumber, Error as FormatError, Fork, Oid, Tid};
use pagemill_io::ForkFiles;
use pagemill_stream::PageCache;

use crate::data_directory::Cluster;
use crate::database::Database;
use crate::error::{Damage, Error, Result};
use crate::page_check::{check_page, read_again};
use crate::visibility::is_visible_chunk;

/// Pages of indexes and TOAST tables kept per thread (1 MiB).
const CACHED_PAGES: NonZeroUsize = NonZeroUsize::new(128).unwrap(); // infallible: 128 is not 0
/// Levels a B-tree of 32-bit block numbers cannot exceed.
const MAX_LEVELS: usize = 32;

/// Reads TOAST values of one database, for one thread.
pub struct ToastReader {
    database: Database,
    pages: PageCache,
    tables: HashMap<Oid, ToastTable>,
    layout: TupleLayout,
    spans: Vec<Span>,
    /// The leaf where the last value's chunks ended: the next value's often begin there.
    last_leaf: Option<(Oid, BlockNumber)>,
}

struct ToastTable {
    heap: ForkFiles,
    heap_key: u64,
    index: ForkFiles,
    index_key: u64,
    root: Option<BlockNumber>,
}

impl ToastReader {
    /// A reader that has opened nothing yet.
    pub fn new(database: Database) -> Self {
        let word = AttributeLayout { len: 4, align: 4 };
        let data = AttributeLayout { len: -1, align: 4 };
        Self {
            database,
            pages: PageCache::new(CACHED_PAGES),
            tables: HashMap::new(),
            layout: TupleLayout::new(vec![word, word, data]),
            spans: Vec::new(),
            last_leaf: None,
        }
    }

    /// Pages found in the cache, and pages read.
    pub fn cache_counts(&self) -> (u64, u64) {
        (self.pages.hits(), self.pages.misses())
    }

    /// Appends the stored bytes of a value.
    ///
    /// # Errors
    /// When the table, its index or a chunk is missing or damaged.
    pub fn fetch(&mut self, pointer: &ToastPointer, out: &mut Vec<u8>) -> Result<()> {
        let oid = pointer.toast_relation;
        if !self.tables.contains_key(&oid) {
            let table = self.open(oid)?;
            self.tables.insert(oid, table);
        }
        let Self { pages, tables, layout, spans, database, last_leaf } = self;
        let Some(table) = tables.get(&oid) else { return Ok(()) };
        let cluster = database.cluster();
        let mut walk = Walk { cluster, table, pages };
        let hint = last_leaf.filter(|(of, _)| *of == oid).map(|(_, leaf)| leaf);
        let mut chunks = Chunks { pointer, layout, spans, next: 0, out };
        let leaf = walk.chunks_of(pointer.value_id, hint, &mut chunks)?;
        *last_leaf = leaf.map(|leaf| (oid, leaf));
        chunks.check_complete(table)
    }

    fn open(&self, oid: Oid) -> Result<ToastTable> {
        let missing = |what: String| Error::refused(what);
        let class = self.database.class(oid).ok_or_else(|| {
            missing(format!("a value points to TOAST table {oid}, which pg_class does not have"))
        })?;
        let index = self.database.toast_index(oid)?.and_then(|index| self.database.class(index));
        let index = index.ok_or_else(|| {
            missing(format!("TOAST table {oid} has no valid index: REINDEX it in PostgreSQL"))
        })?;
        let cluster = self.database.cluster();
        let heap = cluster.main_fork(&self.database.base_path(class)?)?;
        let index_files = cluster.main_fork(&self.database.base_path(index)?)?;
        let mut meta = [0; pagemill_format::BLOCK_SIZE];
        read_checked(cluster, &index_files, META_BLOCK, &mut meta)?;
        let root = BtreeMeta::parse(&meta)
            .map_err(|error| block_damage(&index_files, META_BLOCK, &error))?
            .root;
        let (heap_key, index_key) = (u64::from(oid.0), u64::from(index.oid.0));
        Ok(ToastTable { heap, heap_key, index: index_files, index_key, root })
    }
}

/// The way to a value's chunks.
struct Walk<'a> {
    cluster: &'a Cluster,
    table: &'a ToastTable,
    pages: &'a mut PageCache,
}

impl Walk<'_> {
    fn index_page(&mut self, block: BlockNumber) -> Result<&BlockBytes> {
        let (cluster, files) = (self.cluster, &self.table.index);
        self.pages
            .get(self.table.index_key, block, |page| read_checked(cluster, files, block, page))
    }

    fn heap_page(&mut self, block: BlockNumber) -> Result<&BlockBytes> {
        let (cluster, files) = (self.cluster, &self.table.heap);
        self.pages.get(self.table.heap_key, block, |page| read_checked(cluster, files, block, page))
    }

    /// Hands all chunks of a value to `chunks`, and returns the leaf where they end.
    fn chunks_of(
        &mut self,
        value: Oid,
        hint: Option<BlockNumber>,
        chunks: &mut Chunks<'_>,
    ) -> Result<Option<BlockNumber>> {
        let start = match hint {
            Some(leaf) if self.leaf_covers(leaf, value)? => Some(leaf),
            _ => self.descend(value)?,
        };
        let Some(mut leaf) = start else { return Ok(None) };
        for _ in 0..=self.table.index.blocks() {
            let bytes = *self.index_page(leaf)?;
            let page = self.parse(leaf, &bytes)?;
            let next = page.next();
            if !page.flags().is_ignored() && self.leaf_chunks(leaf, &page, value, chunks)? {
                return Ok(Some(leaf));
            }
            match next {
                Some(next) => leaf = next,
                None => return Ok(Some(leaf)),
            }
        }
        Err(self.index_damage(leaf, "the leaf pages run in a circle"))
    }

    /// Follows the entries of one leaf; true once an entry behind the value's was met.
    fn leaf_chunks(
        &mut self,
        leaf: BlockNumber,
        page: &BtreePage<'_>,
        value: Oid,
        chunks: &mut Chunks<'_>,
    ) -> Result<bool> {
        let damage = |error: FormatError| block_damage(&self.table.index, leaf, &error);
        let (mut low, mut high) = (page.first_data_item(), page.item_count() + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if key_of(&page.item(middle).map_err(damage)?) < (value, 0) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        for number in low..=page.item_count() {
            let damage = |error: FormatError| block_damage(&self.table.index, leaf, &error);
            let entry = page.item(number).map_err(damage)?;
            if key_of(&entry).0 != value {
                return Ok(true);
            }
            if !entry.is_dead() {
                for tid in entry.heap_tids() {
                    self.chunk_at(tid, chunks)?;
                }
            }
        }
        Ok(false)
    }

    fn chunk_at(&mut self, tid: Tid, chunks: &mut Chunks<'_>) -> Result<()> {
        let files = &self.table.heap;
        let page = Page::new(self.heap_page(tid.block)?);
        let damage = |error: FormatError| -> Error {
            let (path, _) = files.locate(tid.block);
            Damage::in_block(path, Fork::Main, tid.block, error.to_string())
                .at_line_pointer(tid.line_pointer)
                .into()
        };
        let lp = page.line_pointer(tid.line_pointer);
        let Some(lp) = lp.filter(|lp| lp.state() == LinePointerState::Normal) else {
            // The entry of a chunk that was vacuumed away, or of none at all: a chunk that is
            // really needed will be found missing.
            return Ok(());
        };
        let tuple = page.item(lp).and_then(HeapTuple::parse).map_err(damage)?;
        if is_visible_chunk(tuple) { chunks.take(tuple).map_err(damage) } else { Ok(()) }
    }

    /// True when the value's first chunk, if any, is on this leaf or right of it.
    fn leaf_covers(&mut self, leaf: BlockNumber, value: Oid) -> Result<bool> {
        let bytes = *self.index_page(leaf)?;
        let page = self.parse(leaf, &bytes)?;
        if page.flags().is_ignored() || !page.is_leaf() {
            return Ok(false);
        }
        let damage = |error: FormatError| block_damage(&self.table.index, leaf, &error);
        let below_high = match page.high_key().map_err(damage)? {
            Some(high) => (value, 0) < key_of(&high),
            None => true,
        };
        let first = page.items().next().transpose().map_err(damage)?;
        Ok(below_high && first.is_some_and(|first| key_of(&first) <= (value, 0)))
    }

    /// The leaf where the first chunk of a value would be.
    fn descend(&mut self, value: Oid) -> Result<Option<BlockNumber>> {
        let Some(mut block) = self.table.root else { return Ok(None) };
        let mut moves = 0;
        for _ in 0..MAX_LEVELS {
            block = self.move_right(block, value, &mut moves)?;
            let bytes = *self.index_page(block)?;
            let page = self.parse(block, &bytes)?;
            if page.is_leaf() {
                return Ok(Some(block));
            }
            block = self.child(block, &page, value)?;
        }
        Err(self.index_damage(block, "the tree is deeper than any can be"))
    }

    /// Passes pages that are no longer in use, and such as were split without their parent
    /// knowing.
    fn move_right(
        &mut self,
        from: BlockNumber,
        value: Oid,
        moves: &mut u32,
    ) -> Result<BlockNumber> {
        let mut block = from;
        loop {
            let bytes = *self.index_page(block)?;
            let page = self.parse(block, &bytes)?;
            let damage = |error: FormatError| block_damage(&self.table.index, block, &error);
            let beyond = match page.high_key().map_err(damage)? {
                _ if page.flags().is_ignored() => true,
                Some(high) => key_of(&high) < (value, 0),
                None => false,
            };
            let Some(next) = page.next().filter(|_| beyond) else { return Ok(block) };
            *moves += 1;
            if *moves > self.table.index.blocks() {
                return Err(self.index_damage(block, "the pages of a level run in a circle"));
            }
            block = next;
        }
    }

    /// The last downlink whose key is below the value's first chunk; the first downlink of a
    /// page counts as below everything.
    fn child(&self, block: BlockNumber, page: &BtreePage<'_>, value: Oid) -> Result<BlockNumber> {
        let damage = |error: FormatError| block_damage(&self.table.index, block, &error);
        let first = page.first_data_item();
        let (mut low, mut high) = (first + 1, page.item_count() + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if key_of(&page.item(middle).map_err(damage)?) < (value, 0) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(page.item(low - 1).map_err(damage)?.downlink())
    }

    fn parse<'p>(&self, block: BlockNumber, bytes: &'p BlockBytes) -> Result<BtreePage<'p>> {
        BtreePage::parse(bytes).map_err(|error| block_damage(&self.table.index, block, &error))
    }

    fn index_damage(&self, block: BlockNumber, what: &str) -> Error {
        let (path, _) = self.table.index.locate(block);
        Damage::in_block(path, Fork::Main, block, format!("corrupt TOAST index: {what}")).into()
    }
}

/// `chunk_id` and `chunk_seq` of an entry; what a pivot tuple leaves out sorts first.
fn key_of(entry: &IndexTuple<'_>) -> (Oid, i64) {
    let key = entry.key();
    let word = |at: usize| key.get(at..at + 4).and_then(|b| b.first_chunk::<4>());
    let columns = entry.key_columns().unwrap_or(2);
    let value = word(0).filter(|_| columns >= 1).map_or(0, |b| u32::from_le_bytes(*b));
    let sequence =
        word(4).filter(|_| columns >= 2).map_or(-1, |b| i64::from(i32::from_le_bytes(*b)));
    (Oid(value), sequence)
}

/// The chunks of one value as they come in.
struct Chunks<'a> {
    pointer: &'a ToastPointer,
    layout: &'a TupleLayout,
    spans: &'a mut Vec<Span>,
    next: u32,
    out: &'a mut Vec<u8>,
}

impl Chunks<'_> {
    fn take(&mut self, tuple: HeapTuple<'_>) -> Result<(), FormatError> {
        let data = tuple.data();
        self.layout.spans(&data, 3, self.spans)?;
        let part = |column: usize| self.spans[column].of(data.data);
        let (Some(value), Some(sequence), Some(raw)) = (part(0), part(1), part(2)) else {
            return Err(self.fault("has a null column".into()));
        };
        if *value != self.pointer.value_id.0.to_le_bytes() {
            // The entry of a chunk long gone, whose place was used again.
            return Ok(());
        }
        let sequence = u32::from_le_bytes(sequence.try_into().unwrap_or_default());
        let Varlena::Plain(bytes) = Varlena::parse(raw)? else {
            return Err(self.fault(format!("{sequence} is itself compressed or toasted")));
        };
        self.add(sequence, bytes)
    }

    fn add(&mut self, sequence: u32, bytes: &[u8]) -> Result<(), FormatError> {
        let (count, stored) = (self.pointer.chunk_count(), self.pointer.stored_size as usize);
        if sequence != self.next || sequence >= count {
            let what = format!("{sequence} follows, expected {} of {count}", self.next);
            return Err(self.fault(what));
        }
        let expected = match sequence + 1 == count {
            true => stored - sequence as usize * TOAST_CHUNK_BYTES,
            false => TOAST_CHUNK_BYTES,
        };
        if bytes.len() != expected {
            let what = format!("{sequence} has {} bytes, expected {expected}", bytes.len());
            return Err(self.fault(what));
        }
        self.out.extend_from_slice(bytes);
        self.next += 1;
        Ok(())
    }

    fn fault(&self, what: String) -> FormatError {
        FormatError::corrupt(
            "TOAST value",
            0,
            format!("value {}: chunk {what}", self.pointer.value_id),
        )
    }

    fn check_complete(&self, table: &ToastTable) -> Result<()> {
        let count = self.pointer.chunk_count();
        if self.next == count {
            return Ok(());
        }
        let what = format!(
            "TOAST value {} has {} of its {count} chunks: chunk {} is missing",
            self.pointer.value_id, self.next, self.next
        );
        Err(Damage::in_file(table.heap.path(), what).into())
    }
}

fn block_damage(files: &ForkFiles, block: BlockNumber, error: &FormatError) -> Error {
    Damage::in_block(files.locate(block).0, files.fork(), block, error.to_string()).into()
}

fn read_checked(
    cluster: &Cluster,
    files: &ForkFiles,
    block: BlockNumber,
    page: &mut BlockBytes,
) -> Result<()> {
    files.read_block(block, page)?;
    match check_page(cluster, files, block, page) {
        Err(_) if cluster.is_live() => read_again(cluster, files, block, page),
        done => done,
    }
}
