//! A table in the order of one of its indexes: the entries of the index in batches, with the heap
//! blocks of each batch known before the first of them is needed.
//!
//! ```text
//! leaves ─► entries of a batch ─► their heap blocks, read in the order of the file
//!                             └─► one after the other, in the order of the index
//! ```
//!
//! The first batch is one leaf, so that the first rows come soon; each further one is twice as
//! large, so that a table in random order is read in long strides.
//!
//! Invariants: every entry that is not known to be dead is handed out once, in the order of the
//! scan; the heap blocks of what
//! [`IndexScan::advance`] comes to were all wanted in one round; memory
//! does not grow with index or table.
//!
//! Source: `index_getnext_slot` in `src/backend/access/index/indexam.c`, `IndexOnlyNext` in
//! `src/backend/executor/nodeIndexonlyscan.c`, PostgreSQL 14 to 18.

use std::ops::Range;

use pagemill_cluster::btree_scan::{Direction, LeafWalk, leaf_entries};
use pagemill_cluster::{AllVisible, Cluster, Damage};
use pagemill_format::btree::IndexTuple;
use pagemill_format::tuple::TupleData;
use pagemill_format::{BlockNumber, Tid};
use pagemill_io::ForkFiles;

use crate::damage::{DamageLog, OnDamage, damage_of};
use crate::error::Result;
use crate::fork_pages::IndexPages;
use crate::fork_slots::Full;

/// Leaves of the largest batch: half a megabyte of entries.
const MOST_LEAVES: usize = 64;

/// What an entry of the index stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// Where its row is, or begins.
    pub(crate) tid: Tid,
    /// Its number in [`Batch::keys`], where the index tells all there is to tell.
    pub(crate) key: Option<u32>,
}

/// What is done with entries of heap blocks where all rows are visible to everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexOnly {
    /// They are looked up like all others.
    Never,
    /// They are rows, and counted as such.
    Count,
    /// They are rows, and their values are kept for [`Batch::keys`].
    Keep,
}

/// The entries of some leaves.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    entries: Vec<Entry>,
    /// The entries whose turn it is: those before had theirs.
    turn: Range<usize>,
    keys: Vec<Key>,
    bytes: Vec<u8>,
}

/// The columns of an index tuple.
#[derive(Debug, Clone, Copy)]
struct Key {
    leaf: BlockNumber,
    item: u16,
    nulls: Option<[u8; 4]>,
    start: usize,
    end: usize,
}

/// What an index tuple has to say, and where it lies.
pub(crate) struct KeyTuple<'b> {
    pub(crate) leaf: BlockNumber,
    /// Its number on the leaf.
    pub(crate) item: u16,
    /// Its columns.
    pub(crate) data: TupleData<'b>,
}

impl Batch {
    /// The entries whose turn it is.
    pub(crate) fn entries(&self) -> &[Entry] {
        self.entries.get(self.turn.clone()).unwrap_or_default()
    }

    /// The index tuple of an entry, of so many columns.
    pub(crate) fn key(&self, entry: &Entry, columns: usize) -> Option<KeyTuple<'_>> {
        let key = self.keys.get(entry.key? as usize)?;
        let nulls = key.nulls.as_ref().map(<[u8; 4]>::as_slice);
        let data = self.bytes.get(key.start..key.end)?;
        let data = TupleData { attributes: columns, nulls, data };
        Some(KeyTuple { leaf: key.leaf, item: key.item, data })
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.keys.clear();
        self.bytes.clear();
        self.turn = 0..0;
    }

    fn keep(&mut self, leaf: BlockNumber, item: u16, tuple: &IndexTuple<'_>) -> Option<u32> {
        let number = u32::try_from(self.keys.len()).ok()?;
        let start = self.bytes.len();
        self.bytes.extend_from_slice(tuple.key());
        let (nulls, end) = (tuple.null_bitmap().copied(), self.bytes.len());
        self.keys.push(Key { leaf, item, nulls, start, end });
        Some(number)
    }
}

/// What a scan of an index knows of its heap.
pub(crate) struct KnownHeap {
    pub(crate) blocks: u32,
    pub(crate) index_only: IndexOnly,
    /// Asked where entries are not all looked up.
    pub(crate) all_visible: AllVisible,
}

impl KnownHeap {
    /// True for a block whose entries the index alone answers for.
    #[inline]
    fn is_answered(&mut self, block: BlockNumber) -> bool {
        self.index_only != IndexOnly::Never && self.all_visible.contains(block)
    }
}

/// A scan of an index, from one end to the other.
pub(crate) struct IndexScan {
    tree: IndexPages,
    heap: KnownHeap,
    /// `None` once the last leaf was come to.
    walk: Option<LeafWalk>,
    direction: Direction,
    /// Neighbours of a heap block that is wanted are worth reading with it.
    reads_around: bool,
    batch: Batch,
    /// Leaves of the next batch.
    leaves: usize,
    /// Rows counted without a look at the heap.
    rows: u64,
}

/// Damage to an entry: where it is, and what is wrong with it.
type EntryFault = (BlockNumber, u16, String);

impl IndexScan {
    /// A scan over the pages of an index, whose entries lead to a heap.
    pub(crate) fn new(tree: IndexPages, direction: Direction, heap: KnownHeap) -> Self {
        Self {
            tree,
            heap,
            walk: None,
            direction,
            reads_around: true,
            batch: Batch::default(),
            leaves: 1,
            rows: 0,
        }
    }

    /// Reads heap blocks one by one unless neighbours cost less together.
    pub(crate) fn reading_around(self, reads_around: bool) -> Self {
        Self { reads_around, ..self }
    }

    /// Goes down the tree to its first leaf.
    ///
    /// # Errors
    /// On damage, unless it is to be skipped: then there are no entries.
    pub(crate) fn start(&mut self, cluster: &Cluster, damage: &mut DamageLog) -> Result<()> {
        match LeafWalk::start(&mut self.tree, self.direction, !cluster.is_live()) {
            Ok(walk) => self.walk = Some(walk),
            Err(error) => report_end(error, damage)?,
        }
        Ok(())
    }

    /// Rows counted without a look at the heap.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// The index's files.
    pub(crate) fn files(&self) -> &ForkFiles {
        self.tree.files()
    }

    /// Pages of the index that were asked for and there, and pages of it and of the visibility
    /// map that were read.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let (hits, read) = self.tree.counts();
        (hits, read + self.heap.all_visible.pages_read())
    }

    /// True when a look at this heap block may become necessary, and it is worth reading before that is
    /// certain.
    pub(crate) fn is_worth_reading(&mut self, block: BlockNumber) -> bool {
        self.reads_around && !self.heap.is_answered(block)
    }

    /// Goes on to the next entries, whose heap blocks were all taken by `want`; false at the end.
    ///
    /// # Errors
    /// On damage, unless it is to be skipped.
    pub(crate) fn advance(
        &mut self,
        damage: &mut DamageLog,
        mut want: impl FnMut(BlockNumber) -> Result<(), Full>,
    ) -> Result<bool> {
        while self.batch.turn.end == self.batch.entries.len() {
            if self.walk.is_none() {
                return Ok(false);
            }
            self.collect(damage)?;
        }
        let start = self.batch.turn.end;
        let left = &self.batch.entries[start..];
        let full = left.iter().position(|e| e.key.is_none() && want(e.tid.block) == Err(Full));
        // One block always has room; without this a scan that had none for it would not end.
        let count = full.map_or(left.len(), |count| count.max(1));
        self.batch.turn = start..start + count;
        Ok(true)
    }

    /// What [`IndexScan::advance`] came to.
    pub(crate) fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Takes the entries of the next leaves.
    fn collect(&mut self, damage: &mut DamageLog) -> Result<()> {
        self.batch.clear();
        let leaves = self.leaves;
        self.leaves = (leaves * 2).min(MOST_LEAVES);
        let mut faults: Vec<EntryFault> = Vec::new();
        for _ in 0..leaves {
            let Some(walk) = &mut self.walk else { break };
            match walk.next(&mut self.tree) {
                Ok(Some((leaf, page))) => {
                    let mut sorter =
                        EntrySorter { heap: &mut self.heap, batch: &mut self.batch, rows: 0 };
                    let Ok(()) = leaf_entries(&page, self.direction, |item, tuple| {
                        let sorted = tuple
                            .map_err(|error| error.to_string())
                            .and_then(|tuple| sorter.sort(leaf, item, &tuple));
                        faults.extend(sorted.err().map(|what| (leaf, item, what)));
                        Ok::<(), std::convert::Infallible>(())
                    });
                    self.rows += sorter.rows;
                }
                Ok(None) => self.walk = None,
                Err(error) => {
                    self.walk = None;
                    self.report(&mut faults, damage)?;
                    report_end(error, damage)?;
                }
            }
            self.report(&mut faults, damage)?;
        }
        Ok(())
    }

    fn report(&self, faults: &mut Vec<EntryFault>, damage: &mut DamageLog) -> Result<()> {
        for (leaf, item, what) in faults.drain(..) {
            damage.report(entry_damage(self.tree.files(), leaf, item, what))?;
        }
        Ok(())
    }
}

/// Damage to an entry of an index.
pub(crate) fn entry_damage(
    index: &ForkFiles,
    leaf: BlockNumber,
    item: u16,
    what: impl Into<String>,
) -> Damage {
    let (path, _) = index.locate(leaf);
    Damage::in_block(path, index.fork(), leaf, what).at_line_pointer(item)
}

/// Damage that leaves no way to the rest of the index.
#[cold]
fn report_end(error: pagemill_cluster::Error, damage: &mut DamageLog) -> Result<()> {
    let mut found = damage_of(error)?;
    if damage.policy() == OnDamage::Skip {
        found.what += "; the index is read no further, all entries behind this are left out";
    }
    damage.report(found)
}

/// Sorts the entries of a leaf: those the index alone answers for, and those to be looked up.
struct EntrySorter<'s> {
    heap: &'s mut KnownHeap,
    batch: &'s mut Batch,
    rows: u64,
}

impl EntrySorter<'_> {
    #[inline]
    fn sort(&mut self, leaf: BlockNumber, item: u16, tuple: &IndexTuple<'_>) -> Result<(), String> {
        let mut key = None;
        let mut past_end = None;
        for tid in tuple.heap_tids() {
            if tid.block.0 >= self.heap.blocks {
                past_end = Some(tid);
                continue;
            }
            let answered = self.heap.is_answered(tid.block);
            if answered && self.heap.index_only == IndexOnly::Count {
                self.rows += 1;
                continue;
            }
            if answered && key.is_none() {
                key = self.batch.keep(leaf, item, tuple);
            }
            let key = if answered { key } else { None };
            self.batch.entries.push(Entry { tid, key });
        }
        match past_end {
            None => Ok(()),
            Some(tid) => Err(format!(
                "the entry leads to {tid} of the table, which has {} blocks",
                self.heap.blocks
            )),
        }
    }
}
