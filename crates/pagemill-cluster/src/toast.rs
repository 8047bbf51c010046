//! Values kept in TOAST tables, put together from their chunks.
//!
//! The TOAST table's index tells where a value's chunks are. Pages of the index and of the table
//! are shared by all threads; each thread keeps few of the table's, because neighbouring rows have
//! neighbouring chunks. Every chunk must be there, in order, and of the size that its place demands.
//!
//! Source: `toast_fetch_datum` in `src/backend/access/common/detoast.c`, `heap_fetch_toast_slice`
//! in `src/backend/access/heap/heaptoast.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::Path;

use pagemill_format::page::{LinePointerState, Page};
use pagemill_format::tuple::{AttributeLayout, HeapTuple, Span, TupleLayout};
use pagemill_format::varlena::{self, TOAST_CHUNK_BYTES, ToastPointer, Varlena};
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Error as FormatError, Fork, Oid, Tid};
use pagemill_io::ForkFiles;
use pagemill_stream::{PageKey, PageReader, Ring, Strategy};

use crate::data_directory::Cluster;
use crate::database::Database;
use crate::error::{Damage, Error, Result};
use crate::page_check::check_page;
use crate::refusal::Refusal;
use crate::relation::ClassRow;
use crate::toast_index::{Continuation, IndexWalk, ToastIndex, read_checked};
use crate::visibility::is_visible_chunk;

/// Pages of TOAST tables that one thread keeps (1 MiB), unless others use them too. Chunks are mostly
/// wanted once: memory that stays in the processor's cache is worth more than a large choice of pages.
const RING_PAGES: NonZeroUsize = NonZeroUsize::new(128).unwrap(); // infallible: 128 is not 0
/// Most neighbouring blocks of a TOAST table fetched by one call.
const RUN_BLOCKS: u32 = pagemill_stream::DEFAULT_IO_COMBINE_LIMIT;

/// Reads TOAST values of one database, for one thread.
pub struct ToastReader {
    database: Database,
    /// Pages of indexes.
    index_pages: PageReader,
    /// Pages of TOAST tables.
    pages: TablePages,
    tables: HashMap<Oid, ToastTable>,
    layout: TupleLayout,
    spans: Vec<Span>,
    /// Where the chunks of one leaf of the index are.
    places: Vec<Tid>,
    /// Blocks just read, on their way into the shared buffers.
    run: Vec<BlockBytes>,
    /// The block behind the last ones read, with the key of its table.
    after_run: Option<(u64, BlockNumber)>,
    /// The leaf where the last value's chunks ended: the next value's often begin there.
    last_leaf: Option<(Oid, BlockNumber)>,
    /// Values that were asked for.
    fetched: u64,
}

/// One thread's way to pages of TOAST tables.
struct TablePages {
    reader: PageReader,
    ring: Ring,
}

impl TablePages {
    /// True when the page is in the pool, and so at hand.
    fn pin(&mut self, key: PageKey) -> bool {
        self.reader.pin(key, Strategy::Ring(&mut self.ring))
    }

    fn get(
        &mut self,
        key: PageKey,
        load: impl FnOnce(&mut BlockBytes) -> Result<()>,
    ) -> Result<&BlockBytes> {
        self.reader.get(key, Strategy::Ring(&mut self.ring), load)
    }
}

struct ToastTable {
    heap: ForkFiles,
    /// What the buffer pool calls the table's files.
    key: u64,
    index: ToastIndex,
}

impl ToastReader {
    /// A reader that has opened nothing yet.
    pub fn new(database: Database) -> Self {
        let word = AttributeLayout { len: 4, align: 4 };
        let data = AttributeLayout { len: -1, align: 4 };
        let pool = database.cluster().buffer_pool().clone();
        let ring = pool.ring(RING_PAGES);
        let reader = PageReader::new(pool.clone());
        Self {
            database,
            index_pages: PageReader::new(pool),
            pages: TablePages { reader, ring },
            tables: HashMap::new(),
            layout: TupleLayout::new(vec![word, word, data]),
            spans: Vec::new(),
            places: Vec::new(),
            run: Vec::new(),
            after_run: None,
            last_leaf: None,
            fetched: 0,
        }
    }

    /// How many values were fetched.
    pub fn fetched(&self) -> u64 {
        self.fetched
    }

    /// Pages found in the shared buffers, and pages read.
    pub fn cache_counts(&self) -> (u64, u64) {
        let (index, table) = (&self.index_pages, &self.pages.reader);
        (index.hits() + table.hits(), index.misses() + table.misses())
    }

    /// Appends the stored bytes of a value.
    ///
    /// # Errors
    /// When the table, its index or a chunk is missing or damaged.
    pub fn fetch(&mut self, pointer: &ToastPointer, out: &mut Vec<u8>) -> Result<()> {
        self.fetched += 1;
        let oid = pointer.toast_relation;
        if !self.tables.contains_key(&oid) {
            let table = self.open(oid)?;
            self.tables.insert(oid, table);
        }
        let Self {
            index_pages,
            pages,
            tables,
            layout,
            spans,
            places,
            run,
            after_run,
            database,
            last_leaf,
            ..
        } = self;
        let Some(table) = tables.get(&oid) else { return Ok(()) };
        let mut walk =
            Walk { cluster: database.cluster(), table, index_pages, pages, places, run, after_run };
        let hint = last_leaf.filter(|(of, _)| *of == oid).map(|(_, leaf)| leaf);
        let mut chunks = Chunks { pointer, layout, spans, next: 0, out };
        let leaf = walk.chunks_of(pointer.value_id, hint, &mut chunks)?;
        *last_leaf = leaf.map(|leaf| (oid, leaf));
        chunks.check_complete(table)
    }

    /// The payload of a varlena out of this file, wherever it is kept and however compressed.
    ///
    /// # Errors
    /// As [`ToastReader::fetch`], or when the value itself is damaged.
    pub(crate) fn payload(&mut self, raw: &[u8], file: &Path) -> Result<Vec<u8>> {
        let mut payload = Vec::new();
        let damage = |error: FormatError| Error::file_damage(file, &error);
        match Varlena::parse(raw).map_err(damage)? {
            Varlena::Plain(bytes) => payload.extend_from_slice(bytes),
            Varlena::Compressed { raw_bytes, method, data } => {
                varlena::decompress(method, data, raw_bytes, &mut payload).map_err(damage)?;
            }
            Varlena::External(pointer) if pointer.compression.is_some() => {
                let mut stored = Vec::new();
                self.fetch(&pointer, &mut stored)?;
                varlena::decompress_stored(&pointer, &stored, &mut payload).map_err(damage)?;
            }
            Varlena::External(pointer) => self.fetch(&pointer, &mut payload)?,
        }
        Ok(payload)
    }

    fn shared_file(&self, class: &ClassRow) -> u64 {
        Cluster::shared_file(self.database.row().oid, class.oid)
    }

    fn open(&self, oid: Oid) -> Result<ToastTable> {
        let class = self.database.class(oid).ok_or_else(|| {
            let what = "the TOAST table that a value points to,";
            Error::refused(Refusal::missing_row("pg_class", what, oid))
        })?;
        let index = self.database.toast_index(oid)?.and_then(|index| self.database.class(index));
        let index = index.ok_or_else(|| Error::refused(Refusal::NoToastIndex(oid)))?;
        let cluster = self.database.cluster();
        let heap = cluster.main_fork(&self.database.base_path(class)?)?;
        let files = cluster.main_fork(&self.database.base_path(index)?)?;
        let index = ToastIndex::open(cluster, files, self.shared_file(index))?;
        Ok(ToastTable { heap, key: self.shared_file(class), index })
    }
}

impl ToastTable {
    fn page(&self, block: BlockNumber) -> PageKey {
        PageKey { file: self.key, block }
    }
}

/// The way to a value's chunks.
struct Walk<'a> {
    cluster: &'a Cluster,
    table: &'a ToastTable,
    index_pages: &'a mut PageReader,
    pages: &'a mut TablePages,
    places: &'a mut Vec<Tid>,
    run: &'a mut Vec<BlockBytes>,
    after_run: &'a mut Option<(u64, BlockNumber)>,
}

/// Over how many neighbouring blocks the first places go, one block after the other.
fn run_length(places: &[Tid]) -> u32 {
    let mut last = places[0].block.0;
    for place in places {
        match place.block.0.checked_sub(last) {
            Some(0) => {}
            Some(1) if place.block.0 - places[0].block.0 < RUN_BLOCKS => last += 1,
            _ => break,
        }
    }
    last - places[0].block.0 + 1
}

impl Walk<'_> {
    /// Hands all chunks of a value to `chunks`, and returns the leaf where they end.
    fn chunks_of(
        &mut self,
        value: Oid,
        hint: Option<BlockNumber>,
        chunks: &mut Chunks<'_>,
    ) -> Result<Option<BlockNumber>> {
        let Some(mut leaf) = self.index().first_leaf(value, hint)? else { return Ok(None) };
        for _ in 0..=self.index().most_leaves() {
            let mut places = std::mem::take(self.places);
            places.clear();
            let next = self.index().places_on(leaf, value, &mut places);
            let taken = self.take_all(&places, chunks);
            *self.places = places;
            taken?;
            match next? {
                Continuation::Leaf(next) => leaf = next,
                Continuation::End => return Ok(Some(leaf)),
            }
        }
        Err(self.index().circle(leaf))
    }

    fn take_all(&mut self, places: &[Tid], chunks: &mut Chunks<'_>) -> Result<()> {
        for (number, tid) in places.iter().enumerate() {
            if !self.pages.pin(self.table.page(tid.block)) {
                self.fetch_run(&places[number..]);
            }
            self.chunk_at(*tid, chunks)?;
        }
        Ok(())
    }

    /// Fetches the block of the first place into the shared buffers, and with the same call those behind it
    /// that will be wanted: those the next places lead to, and as many as go into one call once the
    /// values lie one behind the other. What cannot be read or is damaged is left for
    /// [`Walk::heap_page`] to meet, which says so.
    fn fetch_run(&mut self, places: &[Tid]) {
        let files = &self.table.heap;
        let first = places[0].block;
        let in_sequence = *self.after_run == Some((self.table.key, first));
        let wanted = if in_sequence { RUN_BLOCKS } else { run_length(places) };
        let count = files.contiguous(first, wanted);
        *self.after_run = Some((self.table.key, BlockNumber(first.0.saturating_add(count))));
        if count < 2 {
            return;
        }
        self.run.resize(RUN_BLOCKS as usize, [0; BLOCK_SIZE]);
        let pages = &mut self.run[..count as usize];
        if files.read_blocks(first, pages).is_err() {
            return;
        }
        for (block, page) in (first.0..).map(BlockNumber).zip(pages) {
            let copied = |cached: &mut BlockBytes| {
                check_page(self.cluster, files, block, page).map(|()| *cached = *page)
            };
            if self.pages.get(self.table.page(block), copied).is_err() {
                return;
            }
        }
    }

    fn index(&mut self) -> IndexWalk<'_> {
        IndexWalk { cluster: self.cluster, index: &self.table.index, pages: self.index_pages }
    }

    fn heap_page(&mut self, block: BlockNumber) -> Result<&BlockBytes> {
        let (cluster, files) = (self.cluster, &self.table.heap);
        let key = self.table.page(block);
        self.pages.get(key, |page| read_checked(cluster, files, block, page))
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VALUE: u32 = 16_400;

    fn pointer(stored_size: u32) -> ToastPointer {
        ToastPointer {
            raw_size: stored_size + 4,
            stored_size,
            compression: None,
            value_id: Oid(VALUE),
            toast_relation: Oid(2),
        }
    }

    #[test]
    fn a_run_goes_as_far_as_the_places_go_block_after_block() {
        let run = |blocks: &[u32]| {
            let place = |&block| Tid { block: BlockNumber(block), line_pointer: 1 };
            run_length(&blocks.iter().map(place).collect::<Vec<_>>())
        };
        assert_eq!(run(&[7]), 1);
        assert_eq!(run(&[7, 7, 7, 8, 8, 9]), 3);
        assert_eq!(run(&[7, 8, 10]), 2);
        assert_eq!(run(&[7, 6, 7, 8]), 1);
        assert_eq!(run(&(100..200).collect::<Vec<_>>()), RUN_BLOCKS);
        assert_eq!(run(&[u32::MAX, u32::MAX]), 1);
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
    }
}
