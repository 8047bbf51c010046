//! A table whose rows can be read: its relation, its open files, and which of its blocks there
//! are.
//!
//! What PostgreSQL would not read as a heap is refused here, once for all operations. What the
//! sizes of the files give away as lost is reported here, once, before any block is read.

use std::ops::Range;
use std::sync::Arc;

use pagemill_cluster::lost_tail::{may_have_lost_its_tail, witness_in_maps};
use pagemill_cluster::{ClassRow, Cluster, Damage, Database, Persistence, Relation, RelationKind};
use pagemill_format::{BlockNumber, Fork};
use pagemill_io::{DEFAULT_EFFECTIVE_IO_CONCURRENCY, ForkFiles};
use pagemill_stream::{ReadStreamOptions, ScanOrder};

use crate::count::count;
use crate::damage::{DamageLog, OnDamage, file_damage};
use crate::error::{Error, Result};
use crate::list::tablespace_of;
use crate::progress::Progress;
use crate::refusal::{Refusal, UnreadableCause};
use crate::scan_plan::{ScanOptions, ScanRequest};

/// A table ready to be scanned.
#[derive(Debug)]
pub struct Table {
    /// Its columns and names.
    pub relation: Relation,
    /// The fork with its rows; `None` when it is lost, and for a partitioned table.
    files: Option<Arc<ForkFiles>>,
    /// The blocks that are not lost: ranges in order, none of them empty.
    present: Vec<Range<u32>>,
    /// 0 for no look-ahead.
    effective_io_concurrency: u32,
    reads_around: bool,
}

impl Table {
    /// Opens the files of a relation, reporting what is lost to `damage`.
    ///
    /// # Errors
    /// When the relation has no rows of its own, is of another access method, or (unless damage
    /// is to be skipped) is damaged.
    pub fn open(database: &Database, relation: Relation, damage: &mut DamageLog) -> Result<Self> {
        refuse_unreadable(database, &relation)?;
        let cluster = database.cluster();
        let fork = fork_with_rows(cluster, &relation.class);
        let Some(files) = cluster.fork(&relation.base, fork)? else {
            let what = match fork {
                Fork::Main => format!("the file of {} is missing", relation.display_name()),
                _ => format!("fork {fork}: the file of {} is missing", relation.display_name()),
            };
            damage.report(Damage::in_file(&relation.base, what))?;
            return Ok(Self::without_rows(relation));
        };
        for found in file_damage(&files) {
            damage.report(found)?;
        }
        if let Some(found) = missing_tail(database, &relation, &files)? {
            damage.report(found)?;
        }
        let present = present_ranges(&files);
        let (effective_io_concurrency, reads_around) = device_settings(database, &relation.class);
        let files = Some(Arc::new(files));
        Ok(Self { relation, files, present, effective_io_concurrency, reads_around })
    }

    /// The files of a B-tree index, as a table of its own columns; `None` where not all of its blocks are there.
    ///
    /// # Errors
    /// When a directory or the size of a file cannot be read.
    pub fn of_index(database: &Database, relation: Relation) -> Result<Option<Self>> {
        let cluster = database.cluster();
        let fork = fork_with_rows(cluster, &relation.class);
        let files = cluster.fork(&relation.base, fork)?;
        let Some(files) = files.filter(|files| files.damage().is_empty()) else { return Ok(None) };
        let present = present_ranges(&files);
        let (effective_io_concurrency, reads_around) = device_settings(database, &relation.class);
        let files = Some(Arc::new(files));
        Ok(Some(Self { relation, files, present, effective_io_concurrency, reads_around }))
    }

    /// A table without blocks, for what a partitioned table has itself: columns.
    pub fn without_rows(relation: Relation) -> Self {
        let effective_io_concurrency = DEFAULT_EFFECTIVE_IO_CONCURRENCY;
        let (files, present) = (None, Vec::new());
        Self { relation, files, present, effective_io_concurrency, reads_around: true }
    }

    /// The open fork with its rows; `None` when there is nothing to read.
    pub fn files(&self) -> Option<&ForkFiles> {
        self.files.as_deref()
    }

    /// The same, shared with a scan that outlives the caller's borrow of the table.
    pub(crate) fn shared_files(&self) -> Option<Arc<ForkFiles>> {
        self.files.clone()
    }

    /// How its files are read: as the tablespace is set to.
    pub(crate) fn reading(&self, options: ScanOptions) -> ReadStreamOptions {
        options.reading(self.effective_io_concurrency)
    }

    /// True when a block that is wanted is worth reading with its neighbours, by the page costs of the
    /// tablespace.
    pub(crate) fn reads_around(&self) -> bool {
        self.reads_around
    }

    /// How many block numbers the table has, lost ones included.
    pub fn blocks(&self) -> u32 {
        self.files().map_or(0, ForkFiles::blocks)
    }

    /// The blocks that are not lost: ranges in ascending order, none of them empty.
    pub fn present(&self) -> &[Range<u32>] {
        &self.present
    }
}

/// Consecutive pieces of a table in the order of a scan, by number. Lost blocks are in none of them,
/// so that a lost stretch of any length costs nothing.
pub(crate) struct Shares {
    /// In the order of the scan.
    ranges: Vec<Range<u32>>,
    backward: bool,
    /// The number of the first share of each range.
    first_shares: Vec<u32>,
    share_blocks: u32,
    count: u32,
}

impl Shares {
    /// Present blocks cut into shares of at most so many.
    pub(crate) fn new(present: &[Range<u32>], order: ScanOrder, share_blocks: u32) -> Self {
        let ranges = order.arrange(present);
        let mut count = 0;
        let mut first_shares = Vec::with_capacity(ranges.len());
        for range in &ranges {
            first_shares.push(count);
            count += (range.end - range.start).div_ceil(share_blocks);
        }
        Self { ranges, backward: order.backward, first_shares, share_blocks, count }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// The blocks of a share, numbered from 0; `None` past the last one.
    pub(crate) fn get(&self, share: u32) -> Option<Range<u32>> {
        if share >= self.count {
            return None;
        }
        let index = self.first_shares.partition_point(|first| *first <= share).checked_sub(1)?;
        let (range, first) = (self.ranges.get(index)?, self.first_shares.get(index)?);
        let passed = (share - first) * self.share_blocks;
        Some(if self.backward {
            let end = range.end - passed;
            end.saturating_sub(self.share_blocks).max(range.start)..end
        } else {
            let start = range.start + passed;
            start..start.saturating_add(self.share_blocks).min(range.end)
        })
    }
}

/// How many reads a relation's tablespace bears at once, and whether it favours neighbours. Where its
/// settings cannot be read the relation is read all the same, by the defaults.
pub(crate) fn device_settings(database: &Database, class: &ClassRow) -> (u32, bool) {
    match database.tablespace_settings(tablespace_of(database, class)) {
        Ok(found) => (found.effective_io_concurrency.value, found.favours_neighbours()),
        Err(_) => (DEFAULT_EFFECTIVE_IO_CONCURRENCY, true),
    }
}

/// The fork that a server's first query would find the rows in. After a crash that is the init
/// fork for an unlogged relation: the server copies it over the main fork before anything else
/// (`src/backend/storage/file/reinit.c`, PostgreSQL 14 to 18). It holds what a new relation has:
/// nothing for a table, one row for a sequence.
pub(crate) fn fork_with_rows(cluster: &Cluster, class: &ClassRow) -> Fork {
    let unlogged = class.persistence == Persistence::Unlogged;
    let reset = unlogged && !cluster.is_clean() && !cluster.is_live();
    if reset { Fork::Init } else { Fork::Main }
}

/// The blocks that a file holds: what lies between the lost ones.
pub(crate) fn present_ranges(files: &ForkFiles) -> Vec<Range<u32>> {
    let mut present = Vec::new();
    let mut start = 0;
    for lost in files.damage().iter().map(|d| d.lost_blocks()).filter(|lost| !lost.is_empty()) {
        present.push(start..lost.start);
        start = start.max(lost.end);
    }
    present.push(start..files.blocks());
    present.retain(|range| !range.is_empty());
    present
}

pub(crate) fn refuse_unreadable(database: &Database, relation: &Relation) -> Result<()> {
    let ClassRow { kind, access_method, persistence, is_populated, .. } = &relation.class;
    let name = relation.display_name();
    let refuse = |cause| Err(Error::refused(Refusal::Unreadable { relation: name, cause }));
    if !kind.has_rows() {
        return refuse(UnreadableCause::Kind(*kind));
    }
    if !is_populated {
        return refuse(UnreadableCause::NotPopulated(*kind));
    }
    if *persistence == Persistence::Temporary {
        return refuse(UnreadableCause::Temporary);
    }
    let sequence = *kind == RelationKind::Sequence && !access_method.is_valid();
    if !sequence && !database.is_heap(*access_method)? {
        return refuse(UnreadableCause::AccessMethod(*access_method));
    }
    Ok(())
}

/// The first of what the files of a table have lost, whether that leaves a gap or not.
///
/// # Errors
/// When the catalogs, a directory or the size of a file cannot be read.
pub(crate) fn first_loss(
    database: &Database,
    relation: &Relation,
    files: &ForkFiles,
) -> Result<Option<Damage>> {
    match file_damage(files).into_iter().next() {
        None => missing_tail(database, relation, files),
        found => Ok(found),
    }
}

/// A lost last segment leaves no gap, and neither does a file that was emptied. But where all segments before it are
/// full, the size noted by the last vacuum or analyze tells of it, as a truncation would have corrected that, and so
/// does what is kept beside the table.
fn missing_tail(
    database: &Database,
    relation: &Relation,
    files: &ForkFiles,
) -> Result<Option<Damage>> {
    let (class, blocks) = (&relation.class, files.blocks());
    let (path, _) = files.locate(BlockNumber(blocks));
    if let Some(found) = tail_by_sizes_and_maps(database, class, files)? {
        return Ok(Some(Damage::in_file(path, found)));
    }
    if !is_trusted_end(database.cluster(), files) {
        return Ok(None);
    }
    if let Some(found) = database.tail_witness_in_indexes(class.oid, blocks)? {
        return Ok(Some(Damage::in_file(path, found.loss(blocks))));
    }
    if blocks == 0 && has_long_values(database, class)? {
        let what = "fork main, from block 0 on: the file is empty: its TOAST table has long values of its rows";
        return Ok(Some(Damage::in_file(path, what)));
    }
    Ok(None)
}

/// What the size that `pg_class` notes and the maps tell of a lost end of a main fork, without a look at indexes.
///
/// # Errors
/// When a directory or the size of a file cannot be read.
pub(crate) fn tail_by_sizes_and_maps(
    database: &Database,
    class: &ClassRow,
    files: &ForkFiles,
) -> Result<Option<String>> {
    let (blocks, noted) = (files.blocks(), class.pages);
    if !is_trusted_end(database.cluster(), files) {
        return Ok(None);
    }
    // A table that was truncated by the transaction that made it keeps what was noted before.
    if blocks > 0 && noted > blocks {
        return Ok(Some(format!(
            "fork main, blocks {blocks} to {}: the segment file is missing: pg_class knows of {noted} \
             blocks",
            noted - 1
        )));
    }
    if blocks == 0 && class.kind == RelationKind::Sequence {
        return Ok(Some(
            "fork main, block 0: the file is empty, and a sequence has one block".into(),
        ));
    }
    let found = witness_in_maps(database.cluster(), &database.base_path(class)?, blocks)?;
    Ok(found.map(|found| found.loss(blocks)))
}

/// True for a main fork that may have lost its end unseen, in a cluster where others can be asked.
fn is_trusted_end(cluster: &Cluster, files: &ForkFiles) -> bool {
    let is_asked = cluster.is_clean() && !cluster.is_live() && files.fork() == Fork::Main;
    is_asked && files.damage().is_empty() && may_have_lost_its_tail(files.blocks())
}

/// True when the TOAST table of an empty table has chunks that nobody deleted: a row takes its own along when it
/// goes. What cannot be read says nothing.
fn has_long_values(database: &Database, class: &ClassRow) -> Result<bool> {
    let Some(toast) = database.class(class.toast) else { return Ok(false) };
    let mut damage = DamageLog::new(OnDamage::Skip);
    let table = Table::open(database, database.relation(toast)?, &mut damage)?;
    let (cluster, table) = (database.cluster(), &Arc::new(table));
    let (options, progress) = (ScanOptions::default(), &Progress::default());
    let chunks = count(ScanRequest { cluster, table, options, progress }, &mut damage);
    Ok(chunks.is_ok_and(|chunks| chunks > 0))
}

#[cfg(test)]
mod tests {
    use pagemill_format::SEGMENT_BLOCKS;
    use proptest::prelude::*;

    use super::*;

    fn shares_of(present: &[Range<u32>], share_blocks: u32) -> Vec<Range<u32>> {
        shares_in(ScanOrder::default(), present, share_blocks)
    }

    fn shares_in(order: ScanOrder, present: &[Range<u32>], share_blocks: u32) -> Vec<Range<u32>> {
        let shares = Shares::new(present, order, share_blocks);
        assert_eq!(shares.get(shares.count()), None);
        (0..shares.count()).map(|share| shares.get(share).unwrap()).collect()
    }

    #[test]
    fn a_stretch_that_is_lost_is_in_no_share() {
        assert_eq!(shares_of(&[], 10), []);
        assert_eq!(
            shares_of(&[0..25, 4_000_000_000..4_000_000_001], 10),
            [0..10, 10..20, 20..25, 4_000_000_000..4_000_000_001]
        );
    }

    #[test]
    fn what_lies_between_lost_segments_is_present_and_found_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("16384");
        std::fs::write(&base, [0; 3 * 8192]).unwrap();
        std::fs::write(dir.path().join("16384.30000"), [0; 8192]).unwrap();
        let storage = pagemill_io::Storage::real();
        let files = ForkFiles::open(&storage, &base, Fork::Main).unwrap().unwrap();
        let high = 30_000 * SEGMENT_BLOCKS;
        assert_eq!(present_ranges(&files), [0..3, high..high + 1]);
    }

    proptest! {
        #[test]
        fn shares_hold_every_present_block_once_and_in_order(
            lens in prop::collection::vec((0u32..5, 1u32..40), 0..6), share_blocks in 1u32..20,
            backward: bool, start in prop::option::of((0u32..250).prop_map(BlockNumber)),
        ) {
            let mut present = Vec::new();
            let mut at = 0;
            for (gap, len) in lens {
                present.push(at + gap..at + gap + len);
                at += gap + len;
            }
            let order = ScanOrder { backward, start };
            let in_order = |ranges: Vec<Range<u32>>| -> Vec<BlockNumber> {
                ranges.into_iter().flat_map(|range| order.blocks(range)).collect()
            };
            let shares = shares_in(order, &present, share_blocks);
            prop_assert!(shares.iter().all(|share| share.len() <= share_blocks as usize));
            prop_assert_eq!(in_order(shares), in_order(order.arrange(&present)));
        }
    }
}
