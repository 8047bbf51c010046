//! Where the pages of the table go, and those of its TOAST table.
//!
//! Invariant: a heap in a new file has all its rows there when it is finished, and maps beside it; one that lives on
//! keeps its files and maps, and gets its new blocks by the commit.

use pagemill_cluster::ClassRow;
use pagemill_cluster::change::{ClassChange, ClusterChange};
use pagemill_format::heap_builder::HeapBuilder;
use pagemill_format::page::Page;
use pagemill_format::wal::RelFileLocator;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Fork, Tid};
use pagemill_io::{ForkFiles, WriteMethod};
use pagemill_sys::AlignedBuffer;
use pagemill_wal::ForkKey;

use super::dead_rows::DeadRows;
use super::fork_writer::{ForkWriter, Writing};
use super::index::TupleLocations;
use super::relation_files::{new_files, writing};
use super::table_plan::TableLoad;
use crate::error::Result;
use crate::heap_files::maps::{free_space_pages, room_category, visibility_pages};
use crate::heap_files::page_run::{PIECE_BLOCKS, Piece, Pieces};

/// One relation with rows.
#[derive(Debug)]
pub(super) struct HeapTarget {
    class: ClassRow,
    main: ForkWriter,
    /// What it had, where that stays.
    old: Option<ForkFiles>,
    new_file: Option<RelFileLocator>,
    /// How much room each page has, for the free-space map of a new file.
    categories: Vec<u8>,
    rows: u64,
    fill: (u8, bool),
    /// Rows that come in small runs are packed onto these pages.
    open: Option<HeapBuilder<AlignedBuffer>>,
}

/// The relation that rows go to: the table, or its TOAST table.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowsTarget<'a> {
    pub(super) class: &'a ClassRow,
    /// About how many blocks they will take.
    pub(super) expected: u32,
}

impl HeapTarget {
    /// Makes the new file, where there is to be one, with a copy of the old blocks if they stay.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(super) fn new(
        change: &mut ClusterChange,
        load: TableLoad<'_>,
        rows: RowsTarget<'_>,
        pieces: &Pieces,
    ) -> Result<Self> {
        let TableLoad { plan, table } = load;
        let RowsTarget { class, expected } = rows;
        let old_file = change.files_of(class.oid)?;
        let base = change.database().base_path(class)?;
        let old = match table.is_fresh {
            true => None,
            false => Some(change.database().cluster().main_fork(&base)?),
        };
        let is_toast = class.oid != table.relation.class.oid;
        let fillfactor = if is_toast { 100 } else { table.rules.fillfactor };
        let mut target = Self {
            class: class.clone(),
            main: ForkWriter::behind(
                old_file,
                Fork::Main,
                old.as_ref().map_or(0, ForkFiles::blocks),
                &plan.options.read_back,
            ),
            old,
            new_file: None,
            categories: Vec::new(),
            rows: 0,
            fill: (fillfactor, plan.options.freeze),
            open: None,
        };
        if table.has_new_files {
            let new = new_files(change, class, table.is_unlogged, &plan.options)?;
            let blocks = target.old.as_ref().map_or(0, ForkFiles::blocks).saturating_add(expected);
            let writing = writing(table.is_unlogged, &plan.options, pieces.blocks());
            target.main = ForkWriter::new_file(
                change,
                ForkKey { locator: new, fork: Fork::Main },
                blocks,
                writing,
            )?;
            target.new_file = Some(new);
            target.copy_old(change, pieces)?;
        }
        Ok(target)
    }

    /// Copies the blocks that stay into the new file, as they are.
    fn copy_old(&mut self, change: &mut ClusterChange, pieces: &Pieces) -> Result<()> {
        let Some(old) = self.old.take() else { return Ok(()) };
        let mut first = 0;
        while first < old.blocks() {
            let pages = (old.blocks() - first).min(pieces.blocks() as u32);
            let mut buffer = pieces.take();
            let blocks = buffer.as_chunks_mut::<BLOCK_SIZE>().0;
            assert!(
                blocks.len() >= pages as usize,
                "a buffer holds as many pages as are asked for"
            );
            let blocks = &mut blocks[..pages as usize];
            old.read_blocks(BlockNumber(first), blocks).map_err(pagemill_cluster::Error::from)?;
            self.note_room(blocks);
            self.main.add(change, Piece { buffer, pages: pages as usize }, pieces)?;
            first += pages;
        }
        self.old = Some(old);
        Ok(())
    }

    fn note_room(&mut self, pages: &[BlockBytes]) {
        if self.new_file.is_some() {
            self.categories.extend(pages.iter().map(room_category));
        }
    }

    /// The blocks it had, where they stay.
    pub(super) fn old(&self) -> Option<&ForkFiles> {
        self.old.as_ref()
    }

    /// How the new file is written.
    pub(super) fn write_method(&self) -> Option<WriteMethod> {
        self.main.write_method()
    }

    /// Blocks that are new.
    pub(super) fn new_blocks(&self) -> u32 {
        self.main.blocks() - self.old.as_ref().map_or(0, ForkFiles::blocks)
    }

    /// Adds the pages of a batch, with so many rows on them, and tells which block they begin at.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(super) fn add(
        &mut self,
        change: &mut ClusterChange,
        run: Vec<Piece>,
        rows: u64,
        pieces: &Pieces,
    ) -> Result<BlockNumber> {
        self.rows += rows;
        for piece in &run {
            self.note_room(piece.filled());
        }
        self.main.add_heap(change, run, pieces)
    }

    /// Adds the rows of a batch to those on the last page so far, and tells where each came to lie: a batch brings a
    /// partition few rows at a time, and a page for each batch would be mostly empty.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(super) fn pack(
        &mut self,
        change: &mut ClusterChange,
        run: Vec<Piece>,
        rows: u64,
        pieces: &Pieces,
    ) -> Result<TupleLocations> {
        self.rows += rows;
        let mut places = Vec::new();
        for piece in run {
            for page in piece.filled() {
                let count = Page::new(page).line_pointer_count();
                let pointers =
                    (1..=count).filter_map(|number| Page::new(page).line_pointer(number));
                let tuples = pointers.filter_map(|pointer| {
                    page.get(pointer.offset()..pointer.offset() + pointer.len())
                });
                let placed = tuples.map(|tuple| self.pack_tuple(change, tuple, pieces));
                let placed = placed.collect::<Result<Vec<_>>>()?;
                // Entries of indexes find their rows by the line pointers that these had.
                assert_eq!(placed.len(), usize::from(count), "every row of a page is packed");
                places.push(placed);
            }
            pieces.put(piece.buffer);
        }
        Ok(TupleLocations::Packed(places))
    }

    fn pack_tuple(
        &mut self,
        change: &mut ClusterChange,
        tuple: &[u8],
        pieces: &Pieces,
    ) -> Result<Tid> {
        loop {
            let (fillfactor, all_visible) = self.fill;
            let is_empty = self.open.is_none();
            let open = self
                .open
                .get_or_insert_with(|| HeapBuilder::new(pieces.take(), fillfactor, all_visible));
            if let Some(tid) = open.add_formed(tuple) {
                return Ok(Tid { block: BlockNumber(self.main.blocks() + tid.block.0), ..tid });
            }
            assert!(!is_empty, "a tuple that lay on a page fits on an empty one");
            self.close(change, pieces)?;
        }
    }

    /// Writes the pages that rows are being packed onto.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(super) fn close(&mut self, change: &mut ClusterChange, pieces: &Pieces) -> Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let (buffer, pages) = open.finish();
        let run = vec![Piece { buffer, pages }];
        self.add(change, run, 0, pieces).map(|_| ())
    }

    /// The rows among those that stay which nobody sees any more.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub(super) fn dead_rows(&self, change: &ClusterChange) -> Result<Option<DeadRows>> {
        let Some(old) = &self.old else { return Ok(None) };
        DeadRows::find(change.database(), &self.class, old).map(Some)
    }

    /// `reltuples` afterwards: what was estimated of the old rows, at their density then, and the new ones. `None`
    /// where the old ones were never counted.
    pub(super) fn tuples(&self) -> Option<f32> {
        let Some(old) = self.old.as_ref().filter(|old| old.blocks() > 0) else {
            return Some(self.rows as f32);
        };
        if self.class.tuples < 0.0 || self.class.pages == 0 {
            return None;
        }
        let density = f64::from(self.class.tuples) / f64::from(self.class.pages);
        Some((density * f64::from(old.blocks()) + self.rows as f64) as f32)
    }

    /// Makes everything durable, and tells the catalogs.
    ///
    /// # Errors
    /// When something cannot be written.
    pub(super) fn finish(self, change: &mut ClusterChange, load: TableLoad<'_>) -> Result<()> {
        let TableLoad { plan, table } = load;
        assert!(self.open.is_none(), "pages were closed before");
        let writing = writing(table.is_unlogged, &plan.options, PIECE_BLOCKS);
        let (blocks, tuples) = (self.main.blocks(), self.tuples());
        let seen = if plan.options.freeze { blocks } else { 0 };
        if let Some(new) = self.new_file {
            write_free_space(change, writing.clone(), new, &self.categories)?;
            if plan.options.freeze {
                write_visibility(change, writing, new, blocks)?;
            }
            change.replace_files(self.class.oid, new)?;
        } else if self.new_blocks() > 0 {
            change.reserve(self.main.file(), Fork::Main, blocks)?;
        }
        self.main.finish()?;
        let told = self.new_file.map(|_| seen);
        let size = ClassChange {
            pages: Some(blocks),
            tuples,
            all_visible: told,
            all_frozen: told,
            filenode: None,
        };
        change.set_size(self.class.oid, size);
        Ok(())
    }
}

/// The free-space map is a hint that servers do not log either.
fn write_free_space(
    change: &mut ClusterChange,
    writing: Writing,
    file: RelFileLocator,
    categories: &[u8],
) -> Result<()> {
    if categories.is_empty() {
        return Ok(());
    }
    let mut map =
        ForkWriter::new_file(change, ForkKey { locator: file, fork: Fork::Fsm }, 0, writing)?;
    free_space_pages(categories, |block, page| map.add_page(change, block, page))?;
    map.flush(change)?;
    map.finish()
}

fn write_visibility(
    change: &mut ClusterChange,
    writing: Writing,
    file: RelFileLocator,
    blocks: u32,
) -> Result<()> {
    if blocks == 0 {
        return Ok(());
    }
    let mut map =
        ForkWriter::new_file(change, ForkKey { locator: file, fork: Fork::Vm }, 0, writing)?;
    visibility_pages(blocks, |block, page| map.add_page(change, block, page))?;
    map.flush(change)?;
    map.finish()
}
