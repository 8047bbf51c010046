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

#[cfg(test)]
mod tests {
    use pagemill_format::BLOCK_SIZE;
    use proptest::prelude::*;

    use super::*;

    const VALUE: u32 = 16_400;

    macro_rules! fixture {
        ($name:literal) => {{
            const START: &[u8] = include_bytes!(concat!(
                "../../pagemill-format/fixtures/btree/",
                $name,
                "-start.bin"
            ));
            const END: &[u8] =
                include_bytes!(concat!("../../pagemill-format/fixtures/btree/", $name, "-end.bin"));
            let mut page = [0; BLOCK_SIZE];
            page[..START.len()].copy_from_slice(START);
            page[BLOCK_SIZE - END.len()..].copy_from_slice(END);
            page
        }};
    }

    fn pointer(stored_size: u32) -> ToastPointer {
        ToastPointer {
            raw_size: stored_size + 4,
            stored_size,
            compression: None,
            value_id: Oid(VALUE),
            toast_relation: Oid(2),
        }
    }

    fn layout() -> TupleLayout {
        let word = AttributeLayout { len: 4, align: 4 };
        TupleLayout::new(vec![word, word, AttributeLayout { len: -1, align: 4 }])
    }

    /// A heap tuple of a chunk whose data are these, length word and all.
    fn chunk(value: u32, sequence: u32, data: &[u8]) -> Vec<u8> {
        let mut tuple = vec![0; 24];
        tuple[18] = 3;
        tuple[22] = 24;
        tuple.extend(value.to_le_bytes());
        tuple.extend(sequence.to_le_bytes());
        tuple.extend(data);
        tuple
    }

    fn plain(bytes: usize) -> Vec<u8> {
        let word = (bytes as u32 + 4) << 2;
        [&word.to_le_bytes()[..], &vec![b'x'; bytes]].concat()
    }

    /// Puts a value together from chunks: its bytes and the number of chunks, or the first fault.
    fn taken(pointer: &ToastPointer, tuples: &[Vec<u8>]) -> Result<(usize, u32), String> {
        let (layout, mut spans, mut out) = (layout(), Vec::new(), Vec::new());
        let (spans, out) = (&mut spans, &mut out);
        let mut chunks = Chunks { pointer, layout: &layout, spans, next: 0, out };
        for tuple in tuples {
            HeapTuple::parse(tuple)
                .and_then(|tuple| chunks.take(tuple))
                .map_err(|error| error.to_string())?;
        }
        let next = chunks.next;
        Ok((out.len(), next))
    }

    #[test]
    fn chunks_in_order_make_the_value() {
        let tuples = [chunk(VALUE, 0, &plain(1996)), chunk(VALUE, 1, &plain(4))];
        assert_eq!(taken(&pointer(2000), &tuples), Ok((2000, 2)));
    }

    #[test]
    fn the_chunk_of_another_value_is_passed_over() {
        let tuples = [chunk(VALUE + 1, 0, &plain(7)), chunk(VALUE, 0, &plain(4))];
        assert_eq!(taken(&pointer(4), &tuples), Ok((4, 1)));
    }

    #[test]
    fn chunks_out_of_order_twice_or_too_many_are_damage() {
        let full = |sequence| chunk(VALUE, sequence, &plain(1996));
        for tuples in [vec![full(1)], vec![full(0), full(0)], vec![full(0), full(1), full(2)]] {
            let error = taken(&pointer(2 * 1996), &tuples).unwrap_err();
            assert!(error.contains("value 16400: chunk") && error.contains("expected"), "{error}");
        }
        assert!(taken(&pointer(4), &[chunk(VALUE, u32::MAX, &plain(4))]).is_err());
        assert!(taken(&pointer(0), &[chunk(VALUE, 0, &plain(0))]).is_err());
    }

    #[test]
    fn a_chunk_of_another_size_than_its_place_demands_is_damage() {
        for bytes in [0, 3, 5, 1996] {
            let error = taken(&pointer(4), &[chunk(VALUE, 0, &plain(bytes))]).unwrap_err();
            assert!(error.contains(&format!("0 has {bytes} bytes, expected 4")), "{error}");
        }
    }

    #[test]
    fn a_chunk_that_is_null_or_itself_compressed_is_damage() {
        let compressed = [0x26, 0, 0, 0, 5, 0, 0, 0, b'x'];
        let error = taken(&pointer(4), &[chunk(VALUE, 0, &compressed)]).unwrap_err();
        assert!(error.contains("compressed or toasted"), "{error}");
        let mut null = chunk(VALUE, 0, &plain(4));
        (null[20], null[23]) = (1, 0b011);
        assert!(taken(&pointer(4), &[null]).unwrap_err().contains("a null column"));
    }

    #[test]
    fn the_entries_of_a_real_index_are_in_the_order_of_their_keys() {
        let bytes = fixture!("toast-leaf-18");
        let page = BtreePage::parse(&bytes).unwrap();
        let keys: Vec<_> = page.items().map(|entry| key_of(&entry.unwrap())).collect();
        assert!(keys.len() > 1 && keys.is_sorted_by(|one, next| one < next), "{keys:?}");
        assert!(keys.iter().all(|(value, sequence)| value.0 > 0 && *sequence >= 0), "{keys:?}");
    }

    proptest! {
        #[test]
        fn chunks_of_any_bytes_never_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..60), stored_size in 0_u32..5000,
            sequence in 0_u32..4, keyed: bool,
        ) {
            let tuple = if keyed { chunk(VALUE, sequence, &bytes) } else { bytes };
            if let Ok((len, _)) = taken(&pointer(stored_size), &[tuple]) {
                prop_assert!(len <= stored_size as usize);
            }
        }

        #[test]
        fn keys_of_any_entries_never_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        ) {
            let mut bytes = fixture!("toast-leaf-18");
            for (at, byte) in changes {
                bytes[at.index(BLOCK_SIZE)] = byte;
            }
            let Ok(page) = BtreePage::parse(&bytes) else { return Ok(()) };
            for entry in page.items().flatten() {
                let _ = key_of(&entry);
            }
        }
    }
}
