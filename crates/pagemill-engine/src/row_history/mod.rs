//! What happened to a row: the versions that it had, as far as the WAL that is there, and the pages, tell.
//!
//! ```text
//! ctid ─► its block, followed from record to record ─► versions at that place
//!            each leads to the version before and the one behind it: by the record of the update, which names both, or by
//!            the tuple's own ctid where the update is older than the WAL; on other blocks too, which are then followed
//! ```
//!
//! A line pointer is used again after VACUUM, so there can have been several rows at one place. All are told, the last first.
//!
//! Columns are those that the table has in the end. Versions of a table that was rewritten or truncated since lie in other
//! files, and are not found.

mod block_versions;
mod values;

use std::collections::{BTreeSet, HashMap, HashSet};

use pagemill_cluster::visibility::{TransactionLog as _, is_visible};
use pagemill_cluster::wal_history::WalHistory;
use pagemill_cluster::{ClusterLog, Database, Error as ClusterError, Persistence, Relation};
use pagemill_format::page::{LinePointerState, Page};
use pagemill_format::slru::TransactionStatus;
use pagemill_format::tuple::{HeapTuple, infomask};
use pagemill_format::{
    BLOCK_SIZE, BlockBytes, BlockNumber, Fork, Lsn, MultiXactId, Tid, TransactionId,
};
use pagemill_io::ForkFiles;
use pagemill_redo::TupleAction;
use pagemill_wal::{BlockKey, Error as WalError, ForkKey, ForkRecords};

use crate::error::Result;
use crate::table::refuse_unreadable;
use block_versions::{BlockVersions, Version};
pub use block_versions::{VersionAction, VersionEvent};
pub use values::ColumnValue;
use values::VersionValues;

/// What happened at one place of a table.
#[derive(Debug)]
pub struct RowHistory {
    /// From where to where there is WAL; or why there is none.
    pub wal: Result<(Lsn, Lsn), String>,
    /// The rows that were at the place, the last first.
    pub rows: Vec<Vec<RowVersion>>,
    /// Records that do not fit the pages they change; transactions that lead on and cannot be read.
    pub faults: Vec<String>,
}

/// A version of a row. Those of a row are in the order in which they came to be.
#[derive(Debug, Clone)]
pub struct RowVersion {
    /// Where it is, or was.
    pub tid: Tid,
    /// The transaction that it is of; `None` where neither the page nor a record tells.
    pub inserted_by: Option<TransactionId>,
    /// It was there before the first record that tells of it.
    pub was_there: bool,
    /// What was done to it, in the order of the WAL.
    pub events: Vec<VersionEvent>,
    /// What has become of it.
    pub state: VersionState,
    /// Its columns; `None` where no page or image with it is there.
    pub values: Option<Vec<ColumnValue>>,
}

/// What has become of a row version in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionState {
    /// A query would see it.
    Visible,
    /// It is on its page, and no query would see it.
    Invisible,
    /// It is on its page; whether a query would see it cannot be told.
    Unknown(String),
    /// It is on its page no more.
    Gone,
}

/// How a transaction ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransactionFate {
    /// It committed; when, in microseconds since 2000-01-01 UTC, if the WAL has the record.
    Committed(Option<i64>),
    /// It was rolled back; when, as above.
    RolledBack(Option<i64>),
    /// It did not end.
    Unfinished,
    /// That cannot be told.
    Unknown(String),
}

/// Which version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct VersionKey {
    block: BlockNumber,
    /// Its place among those of the block.
    index: usize,
}

/// Follows rows of one table.
pub struct RowHistories<'a> {
    relation: &'a Relation,
    files: ForkFiles,
    key: ForkKey,
    /// The WAL, and what it says of the table.
    wal: Result<(WalHistory, ForkRecords), String>,
    log: ClusterLog,
    values: VersionValues<'a>,
    blocks: HashMap<BlockNumber, BlockVersions>,
    /// What leads on from a version, and cannot be read.
    lost_ways: BTreeSet<String>,
}

impl<'a> RowHistories<'a> {
    /// Reads all WAL for what it says of a table.
    ///
    /// # Errors
    /// A relation without rows of its own; WAL and files that cannot be read.
    pub fn of(database: &'a Database, relation: &'a Relation) -> Result<Self> {
        let cluster = database.cluster();
        refuse_unreadable(database, relation)?;
        let files = cluster.fork(&relation.base, Fork::Main)?;
        let files =
            files.ok_or_else(|| not_found(format!("the files of {}", relation.display_name())))?;
        let key = ForkKey { locator: database.locator(&relation.class)?, fork: Fork::Main };
        Ok(Self {
            relation,
            files,
            key,
            wal: wal_of(database, relation, key)?,
            log: ClusterLog::new(cluster.clone()),
            values: VersionValues::new(database, relation)?,
            blocks: HashMap::new(),
            lost_ways: BTreeSet::new(),
        })
    }

    /// What happened to the rows that were at this place.
    ///
    /// # Errors
    /// There never was one, as far as can be told; pages and records that cannot be read.
    pub fn at(&mut self, tid: Tid) -> Result<RowHistory> {
        let mut rows = Vec::new();
        let mut told = HashSet::new();
        for key in self.versions_at(tid)?.into_iter().rev() {
            if !told.contains(&key) {
                let row = self.row_of(key)?;
                told.extend(row.iter().copied());
                rows.push(row.into_iter().map(|key| self.report(key)).collect());
            }
        }
        if rows.is_empty() {
            return Err(self.nothing_at(tid).into());
        }
        let wal = self.wal.as_ref().map(|(_, records)| (records.start, records.end));
        let mut blocks: Vec<_> = self.blocks.iter().collect();
        blocks.sort_by_key(|(block, _)| **block);
        let faults = blocks.into_iter().flat_map(|(_, block)| block.faults.clone());
        let faults = faults.chain(self.lost_ways.iter().cloned()).collect();
        Ok(RowHistory { wal: wal.map_err(Clone::clone), rows, faults })
    }

    /// How a transaction ended.
    pub fn fate(&mut self, xid: TransactionId) -> TransactionFate {
        if let Ok((_, records)) = &self.wal
            && let Some(ending) = records.ending(xid)
        {
            let time = Some(ending.time);
            return match ending.committed {
                true => TransactionFate::Committed(time),
                false => TransactionFate::RolledBack(time),
            };
        }
        if !xid.is_normal() {
            return TransactionFate::Committed(None);
        }
        match self.log.status(xid) {
            Ok(TransactionStatus::Committed) => TransactionFate::Committed(None),
            Ok(TransactionStatus::Aborted) => TransactionFate::RolledBack(None),
            Ok(_) => TransactionFate::Unfinished,
            Err(error) => TransactionFate::Unknown(error.to_string()),
        }
    }

    fn nothing_at(&self, tid: Tid) -> ClusterError {
        let (name, blocks) = (self.relation.display_name(), self.files.blocks());
        not_found(match tid.block.0 < blocks {
            true => format!("a row at {tid} of {name}, now or earlier,"),
            false => format!("block {} of {name}, which has {blocks} blocks,", tid.block),
        })
    }

    /// The versions that were ever at a place, and at the one that its line pointer leads to.
    fn versions_at(&mut self, tid: Tid) -> Result<Vec<VersionKey>> {
        let led_to = self.page(tid.block)?.and_then(|page| redirection(&page, tid));
        let block = self.block(tid.block)?;
        let at = |wanted: u16| {
            let versions = block.versions.iter().enumerate();
            let found = versions.filter(move |(_, version)| version.tid.line_pointer == wanted);
            found.map(|(index, _)| VersionKey { block: tid.block, index })
        };
        let behind = led_to.and_then(|number| at(number).next_back());
        Ok(at(tid.line_pointer).chain(behind).collect())
    }

    /// All versions of the row that one is of.
    fn row_of(&mut self, key: VersionKey) -> Result<Vec<VersionKey>> {
        let (mut met, mut left) = (HashSet::from([key]), vec![key]);
        while let Some(key) = left.pop() {
            left.extend(self.neighbors(key)?.into_iter().filter(|next| met.insert(*next)));
        }
        let mut found: Vec<_> = met.into_iter().collect();
        let since = |VersionKey { block, index }: &VersionKey| {
            let version = &self.blocks[block].versions[*index];
            let first = version.events.first().filter(|_| !version.was_there());
            let xmin = version.heap_tuple().map_or(0, |tuple| tuple.xmin().0);
            (first.map_or(Lsn(0), |event| event.lsn), xmin)
        };
        found.sort_by_key(since);
        Ok(found)
    }

    /// The versions just before and behind one.
    fn neighbors(&mut self, key: VersionKey) -> Result<Vec<VersionKey>> {
        let VersionKey { block, index } = key;
        let version = self.block(block)?.versions[index].clone();
        let (mut found, mut is_updated) = (Vec::new(), false);
        for event in &version.events {
            let VersionAction::Tuple(action) = event.action else { continue };
            let (TupleAction::NewVersion(other) | TupleAction::Update(other)) = action else {
                continue;
            };
            is_updated |= matches!(action, TupleAction::Update(_));
            let at_other = self.block(other.block)?.updated_at(event.lsn, other.line_pointer);
            found.extend(at_other.map(|index| VersionKey { block: other.block, index }));
        }
        if !is_updated && let Some((next, updater)) = self.successor(&version)? {
            found.extend(self.found_there(next, updater)?);
        }
        if version.was_there() {
            found.extend(self.predecessor(block, &version)?);
        }
        Ok(found)
    }

    /// The version at a place that was there before WAL tells of it, and is of this transaction.
    fn found_there(&mut self, tid: Tid, xmin: TransactionId) -> Result<Option<VersionKey>> {
        let mut versions = self.block(tid.block)?.versions.iter();
        let is_it = |v: &Version| v.tid == tid && v.was_there() && xmin_of(v) == Some(xmin);
        Ok(versions.position(is_it).map(|index| VersionKey { block: tid.block, index }))
    }

    /// The version behind one, by its tuple: where it is, and whose.
    fn successor(&mut self, version: &Version) -> Result<Option<(Tid, TransactionId)>> {
        let Some(tuple) = version.heap_tuple() else { return Ok(None) };
        let mask = tuple.infomask();
        let is_last = tuple.ctid() == version.tid || tuple.ctid().line_pointer == 0;
        if is_last || mask & (infomask::XMAX_INVALID | infomask::XMAX_LOCK_ONLY) != 0 {
            return Ok(None);
        }
        let updater = match mask & infomask::XMAX_IS_MULTI != 0 {
            true => self.updater_among(MultiXactId(tuple.xmax()), version.tid),
            false => Some(TransactionId(tuple.xmax())),
        };
        let is_there = tuple.ctid().block.0 < self.files.blocks();
        Ok(updater.filter(|_| is_there).map(|updater| (tuple.ctid(), updater)))
    }

    /// The updater among the members of a multixact. These are removed when no table needs them any more, and a version that
    /// is gone may still have needed them.
    fn updater_among(&mut self, multixact: MultiXactId, of: Tid) -> Option<TransactionId> {
        match self.log.updater(multixact) {
            Ok(updater) => updater,
            Err(error) => {
                let what =
                    format!("who updated {of} cannot be told: multixact {multixact}: {error}");
                self.lost_ways.insert(what);
                None
            }
        }
    }

    /// The version before one on the same page, by its tuple.
    fn predecessor(&mut self, block: BlockNumber, version: &Version) -> Result<Option<VersionKey>> {
        let candidates = self.block(block)?.versions.clone();
        for (index, candidate) in candidates.iter().enumerate() {
            if let Some((next, updater)) = self.successor(candidate)?
                && next == version.tid
                && xmin_of(version) == Some(updater)
            {
                return Ok(Some(VersionKey { block, index }));
            }
        }
        Ok(None)
    }

    /// The versions of a block, which is followed when it is asked for first.
    fn block(&mut self, block: BlockNumber) -> Result<&BlockVersions> {
        if !self.blocks.contains_key(&block) {
            let page = self.page(block)?;
            let mut versions = BlockVersions::new(block);
            if let Ok((wal, records)) = &self.wal {
                let (path, offset) = self.files.locate(block);
                let base = wal.page_in_file(&path, offset, block)?;
                let key = BlockKey { fork: self.key, block };
                wal.follow(key, &records.of(block), base.as_deref(), |step| {
                    versions.step(step, wal.version());
                    Ok::<(), crate::Error>(())
                })?;
            }
            versions.finish(page.as_deref());
            self.blocks.insert(block, versions);
        }
        Ok(&self.blocks[&block])
    }

    /// The page as it is in the end; `None` behind the last one.
    fn page(&self, block: BlockNumber) -> Result<Option<Box<BlockBytes>>> {
        if block.0 >= self.files.blocks() {
            return Ok(None);
        }
        let mut page: Box<BlockBytes> = Box::new([0; BLOCK_SIZE]);
        self.files.read_block(block, &mut page).map_err(ClusterError::from)?;
        Ok(Some(page))
    }

    fn report(&mut self, key: VersionKey) -> RowVersion {
        let VersionKey { block, index } = key;
        let version = self.blocks[&block].versions[index].clone();
        let tuple = version.heap_tuple();
        let of_record = version.events.first().map(|event| event.xid);
        let inserted_by = match version.was_there() {
            true => tuple.map(HeapTuple::xmin),
            false => of_record,
        };
        RowVersion {
            tid: version.tid,
            inserted_by,
            was_there: version.was_there(),
            state: self.state(&version),
            values: tuple.map(|tuple| self.values.of(tuple)),
            events: version.events,
        }
    }

    fn state(&mut self, version: &Version) -> VersionState {
        let Some(tuple) = version.heap_tuple().filter(|_| version.is_there) else {
            return VersionState::Gone;
        };
        match is_visible(tuple, &mut self.log) {
            Ok(true) => VersionState::Visible,
            Ok(false) => VersionState::Invisible,
            Err(error) => VersionState::Unknown(error.to_string()),
        }
    }
}

/// The WAL and what it says of a table, or why there is none of it.
fn wal_of(
    database: &Database,
    relation: &Relation,
    key: ForkKey,
) -> Result<Result<(WalHistory, ForkRecords), String>> {
    if relation.class.persistence != Persistence::Permanent {
        return Ok(Err("the table is not logged".into()));
    }
    let read = || {
        let wal = WalHistory::of(database.cluster())?;
        let records = wal.fork(key)?;
        Ok((wal, records))
    };
    match read() {
        Ok(found) => Ok(Ok(found)),
        Err(ClusterError::Wal(error @ WalError::Missing { .. })) => Ok(Err(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

/// The line pointer of the same page that one leads to, if it leads to another.
fn redirection(page: &BlockBytes, tid: Tid) -> Option<u16> {
    let lp = Page::new(page).line_pointer(tid.line_pointer)?;
    (lp.state() == LinePointerState::Redirect).then(|| lp.offset() as u16)
}

fn xmin_of(version: &Version) -> Option<TransactionId> {
    version.heap_tuple().map(HeapTuple::xmin)
}

fn not_found(what: String) -> ClusterError {
    ClusterError::NotFound { what, near: Vec::new() }
}
