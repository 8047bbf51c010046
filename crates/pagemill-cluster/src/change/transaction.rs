//! The transaction of a change: its WAL, the pages of live files it is to change, and the decision.
//!
//! ```text
//! begin   WAL is written after the last shutdown checkpoint. A server that starts now sees none of it: pg_control says
//!   │     "shut down", so it reads no WAL behind the checkpoint.
//! commit  images of all changed pages and the commit record; all of it synced
//!   │     ── pg_control says "in production" ──  from here on a server's crash recovery would finish the change
//!   │     the images are put into the live files, the transaction is marked committed, what is dropped is removed
//!   │     a shutdown checkpoint is written, pg_control says "shut down" again
//! ```
//!
//! Invariants: nothing that existed before is changed until `pg_control` was flipped; after that every error says that
//! a server's start finishes the work. What is written into live files comes from the WAL just written, so that it is
//! what a server's replay would have put there.
//!
//! Source: `StartupXLOG`, `CreateCheckPoint` and `UpdateControlFile` in `src/backend/access/transam/xlog.c`,
//! PostgreSQL 14 to 18.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use pagemill_format::checksum::is_new;
use pagemill_format::control::{ClusterState, ControlFile, FullTransactionId};
use pagemill_format::visibility_map::VisibilityPosition;
use pagemill_format::visibility_map_builder::clear_visible;
use pagemill_format::wal::{
    Commit, ExclusiveLock, ImageCompression, RecordBuilder, RelFileLocator,
};
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Fork, Lsn, Oid, TransactionId};
use pagemill_io::{Create, OpenForWrite, WritableFork, check_interrupt};
use pagemill_wal::{WalDirectory, WalWriter, WriterOptions};

use super::lock::ClusterLock;
use super::oid_counter::OidCounter;
use super::pending::Unfinished;
use super::replay::replay_images;
use super::state_check::make_ready;
use super::{commit_log, commit_timestamps, pending, wal_segments};
use crate::data_directory::Cluster;
use crate::directory_state::read_control;
use crate::error::{Damage, Error, Result};
use crate::settings::Settings;

/// Seconds between 1970 and 2000, from where transactions count their time.
const EPOCH_SECONDS: u64 = 946_684_800;

/// More than a shutdown checkpoint's record takes, headers of pages included.
const CHECKPOINT_ROOM: u64 = 8192;
/// Where the archiver is told of full segments, in the directory of the WAL.
const ARCHIVE_STATUS: &str = "archive_status";

/// A page of a live file.
type PageKey = (RelFileLocator, Fork, BlockNumber);

/// A transaction that is not committed.
#[derive(Debug)]
pub(super) struct Transaction {
    cluster: Cluster,
    /// Given back with the last transaction under it.
    _lock: Arc<ClusterLock>,
    wal: WalWriter,
    wal_directory: WalDirectory,
    xid: FullTransactionId,
    oids: Arc<OidCounter>,
    pages: BTreeMap<PageKey, Box<BlockBytes>>,
    /// Where the first image for a live file is in the WAL: what is before needs not be replayed.
    live_from: Option<Lsn>,
    is_flipped: bool,
    /// The last segment of WAL that was there before.
    last_segment: u64,
    /// What is made is on the list of what an unfinished change leaves.
    is_listed: bool,
    /// Something of what is listed could not be removed.
    keeps_list: bool,
    /// When it commits, microseconds since 2000.
    time: i64,
}

/// What the end of a transaction depends on.
pub(super) struct Ending<'a> {
    /// What the commit record says.
    pub(super) commit: Commit,
    /// Relations that standbys lock from before the catalogs there change until the commit, each with its database, 0
    /// for a shared one.
    pub(super) locked: Vec<(Oid, Oid)>,
    /// Files that hold their pages already, and get none from the WAL.
    pub(super) is_new: &'a dyn Fn(RelFileLocator) -> bool,
    /// The settings of the server, of which those of the archive matter.
    pub(super) settings: &'a Settings,
    /// Removes what is dropped.
    pub(super) remove: &'a dyn Fn(&Cluster) -> Result<()>,
}

impl Transaction {
    /// Begins a transaction in a cluster that was opened under `lock`.
    ///
    /// # Errors
    /// When the cluster is in no state to be changed, or what an earlier change left cannot be removed.
    pub(super) fn begin(
        lock: Arc<ClusterLock>,
        cluster: &Cluster,
        compression: ImageCompression,
    ) -> Result<Self> {
        // Whoever wants to tell of them asked before.
        let _removed = make_ready(cluster)?;
        let control = cluster.control();
        let wal_directory = WalDirectory::of_cluster(cluster.path(), control)?;
        let options = WriterOptions { compression };
        let checkpoint = control.checkpoint_location;
        let wal = WalWriter::begin(cluster.storage(), &wal_directory, checkpoint, options)?;
        let last_segment = wal_segments::last(cluster, &wal_directory)?;
        Ok(Self {
            last_segment,
            is_listed: false,
            keeps_list: false,
            _lock: lock,
            wal,
            wal_directory,
            xid: control.checkpoint.next_xid,
            oids: Arc::new(OidCounter::new(control.checkpoint.next_oid)),
            pages: BTreeMap::new(),
            live_from: None,
            is_flipped: false,
            time: 0,
            cluster: cluster.clone(),
        })
    }

    pub(super) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub(super) fn xid(&self) -> TransactionId {
        self.xid.xid()
    }

    pub(super) fn oids(&self) -> &Arc<OidCounter> {
        &self.oids
    }

    pub(super) fn wal(&self) -> &WalWriter {
        &self.wal
    }

    /// True once nobody can say any more that nothing has changed.
    pub(super) fn is_flipped(&self) -> bool {
        self.is_flipped
    }

    /// Lists what the change is about to make, beside WAL, for whoever finds it unfinished.
    pub(super) fn list(&mut self, made: &[Unfinished]) -> Result<()> {
        let (timeline, last) = (self.wal_directory.timeline, self.last_segment);
        let wal = Unfinished::Wal { timeline, last };
        let cluster = &self.cluster;
        let list: Vec<_> = std::iter::once(wal).chain(made.iter().copied()).collect();
        pending::write(cluster.storage(), cluster.path(), &list)?;
        self.is_listed = true;
        Ok(())
    }

    /// Leaves the list to the next change, as something on it is still there.
    pub(super) fn keep_list(&mut self) {
        self.keeps_list = true;
    }

    /// The WAL, once it is listed. A wish to stop is seen here: everything that is written in bulk is logged, or written
    /// between records.
    fn writer(&mut self) -> Result<&mut WalWriter> {
        check_interrupt(self.cluster.path())?;
        if !self.is_listed {
            self.list(&[])?;
        }
        Ok(&mut self.wal)
    }

    /// Appends a record that concerns no live file.
    pub(super) fn append(&mut self, record: &RecordBuilder<'_>) -> Result<Lsn> {
        Ok(self.writer()?.append(record)?)
    }

    /// Logs images of pages of one fork, at most 32, and returns the LSN they get. Those of a live file are put there by
    /// the commit.
    pub(super) fn log_images(
        &mut self,
        file: RelFileLocator,
        fork: Fork,
        pages: &[(BlockNumber, &BlockBytes)],
        is_live: bool,
    ) -> Result<Lsn> {
        if is_live {
            self.live_from.get_or_insert(self.wal.position());
        }
        let xid = self.xid();
        Ok(self.writer()?.append_images(file, fork, pages, xid)?)
    }

    /// Changes a page of a live file with the commit.
    pub(super) fn set_page(&mut self, key: PageKey, page: Box<BlockBytes>) {
        self.pages.insert(key, page);
    }

    /// A page as it was changed so far.
    pub(super) fn changed_page(&self, key: PageKey) -> Option<Box<BlockBytes>> {
        self.pages.get(&key).cloned()
    }

    /// Makes the visibility map of a relation promise nothing of these blocks.
    pub(super) fn take_back_visibility(
        &mut self,
        file: RelFileLocator,
        blocks: impl Iterator<Item = BlockNumber>,
    ) -> Result<()> {
        let Some(map) = self.cluster.fork(&pending::base(&self.cluster, file), Fork::Vm)? else {
            return Ok(());
        };
        for heap_block in blocks {
            let block = VisibilityPosition::of(heap_block).block;
            if block.0 >= map.blocks() {
                continue;
            }
            let key = (file, Fork::Vm, block);
            let mut page = match self.pages.remove(&key) {
                Some(page) => page,
                None => {
                    let mut page = Box::new([0; BLOCK_SIZE]);
                    map.read_block(block, &mut page)?;
                    page
                }
            };
            if !is_new(&page) {
                clear_visible(&mut page, heap_block);
                self.pages.insert(key, page);
            }
        }
        Ok(())
    }

    /// Takes space for a live fork that has `blocks` blocks once the change took place, and leaves it as long as it
    /// is: a full disk is then told before anything depends on the space.
    pub(super) fn reserve(&self, file: RelFileLocator, fork: Fork, blocks: u32) -> Result<()> {
        let base = pending::base(&self.cluster, file);
        let how = OpenForWrite::default();
        let fork = WritableFork::open(self.cluster.storage(), &base, fork, how)?;
        let mut first = 0;
        while first < blocks {
            let here = WritableFork::within_segment(BlockNumber(first), blocks - first);
            let (segment, _) = fork.file(BlockNumber(first))?;
            let (len, wanted) = (segment.len()?, u64::from(here) * BLOCK_SIZE as u64);
            if len < wanted {
                segment.reserve(len..wanted)?;
            }
            first += here;
        }
        Ok(())
    }

    /// Takes space for what the changed pages add to live forks.
    fn reserve_pages(&self) -> Result<()> {
        let mut ends = BTreeMap::new();
        for &(file, fork, block) in self.pages.keys() {
            ends.insert((file, fork), block.0 + 1);
        }
        ends.into_iter().try_for_each(|((file, fork), blocks)| self.reserve(file, fork, blocks))
    }

    /// Logs the pages that were changed so far, with the locks that have to come before them. What is appended next
    /// comes after them in a replay.
    pub(super) fn log_pages(&mut self, locked: &[(Oid, Oid)]) -> Result<()> {
        self.reserve_pages()?;
        let xid = self.xid();
        let lock = |&(database, relation): &(Oid, Oid)| ExclusiveLock { xid, database, relation };
        let locks: Vec<_> = locked.iter().map(lock).collect();
        if !locks.is_empty() {
            self.append(&ExclusiveLock::record(&locks))?;
        }
        for ((file, fork, block), page) in std::mem::take(&mut self.pages) {
            self.log_images(file, fork, &[(block, &page)], true)?;
        }
        Ok(())
    }

    /// Makes the change take place.
    ///
    /// # Errors
    /// When something fails before the decision, nothing has changed. [`Error::Unfinished`] when it is after that, and
    /// [`Error::Undecided`] when it is the decision itself that fails.
    pub(super) fn commit(&mut self, ending: Ending<'_>) -> Result<()> {
        assert!(!self.is_flipped, "a change is decided once");
        self.log_pages(&ending.locked)?;
        assert!(self.pages.is_empty(), "every changed page is logged before the commit record");
        // Last, as a recovery that stops before it must see none of what the records before it did.
        self.log_commit(&ending)?;
        // Before the sync: what it makes is synced with it, and a full disk still undoes everything.
        self.make_room_for_last_steps(ending.settings)?;
        // Before the decision: a server that starts after it replays what is durable, and nothing else.
        self.wal.sync()?;
        tracing::debug!(xid = %self.xid(), end = %self.wal.position(), "commit: WAL is durable");
        // The last moment at which everything can be undone.
        check_interrupt(self.cluster.path())?;
        self.flip()?;
        tracing::info!(xid = %self.xid(), "commit: decided");
        self.finish(&ending).map_err(|error| Error::Unfinished {
            path: self.cluster.path().into(),
            reason: Box::new(error),
        })
    }

    /// Has all there that the steps after the decision need: the pages of the commit log and of commit times, WAL for the
    /// checkpoint, the directory of the archiver's notes. Live files were opened and got their space when their pages were logged.
    fn make_room_for_last_steps(&mut self, settings: &Settings) -> Result<()> {
        commit_log::make_page(&self.cluster, self.xid())?;
        if self.keeps_timestamps() {
            commit_timestamps::make_page(&self.cluster, self.xid())?;
        }
        self.wal.reserve(CHECKPOINT_ROOM)?;
        let notes = self.wal_directory.path.join(ARCHIVE_STATUS);
        if settings.archives_wal() && !self.cluster.storage().exists(&notes)? {
            let what = "the directory is missing, in which the archiver finds full segments";
            return Err(Damage::in_file(notes, what).into());
        }
        Ok(())
    }

    fn log_commit(&mut self, ending: &Ending<'_>) -> Result<()> {
        let (xid, version) = (self.xid(), self.cluster.version());
        if commit_log::begins_page(xid) {
            let page = commit_log::page_of(xid);
            self.append(&RecordBuilder::commit_log_zero_page(page, version))?;
        }
        if self.keeps_timestamps() && commit_timestamps::begins_page(xid) {
            let page = commit_timestamps::page_of(xid);
            self.append(&RecordBuilder::commit_timestamp_zero_page(page, version))?;
        }
        self.append(&RecordBuilder::next_oid(self.oids.peek()))?;
        self.time = now_since_2000();
        let commit = Commit {
            time: self.time,
            had_exclusive_locks: ending.commit.had_exclusive_locks || !ending.locked.is_empty(),
            force_sync: true,
            ..ending.commit.clone()
        };
        self.append(&commit.record(xid, version))?;
        Ok(())
    }

    /// Decides: `pg_control` says "in production". When that fails, and the file does not still say "shut down", nobody
    /// knows what the device will have, and everything that a recovery would need has to stay.
    fn flip(&mut self) -> Result<()> {
        // Before the write, not after: once it was tried, undoing could take away what a recovery needs.
        self.is_flipped = true;
        let Err(error) = self.write_control(ClusterState::InProduction) else { return Ok(()) };
        let cluster = &self.cluster;
        match read_control(cluster.storage(), cluster.path(), Some(cluster.version())) {
            Ok(control) if control.state == ClusterState::ShutDown => {
                self.is_flipped = false;
                Err(error)
            }
            _ => Err(Error::Undecided { path: cluster.path().into(), reason: Box::new(error) }),
        }
    }

    /// What follows the decision: live files, the commit log, the checkpoint.
    fn finish(&mut self, ending: &Ending<'_>) -> Result<()> {
        let cluster = self.cluster.clone();
        assert!(self.is_flipped, "live files change only after the decision");
        let (begin, end) = (self.wal.start_lsn(), self.wal.position());
        // Pages first: a commit that is marked while its pages are missing would show rows that are not there.
        if let Some(from) = self.live_from {
            replay_images(&cluster, &self.wal_directory, from..end, ending.is_new)?;
            tracing::debug!(%from, %end, "commit: images are in the live files");
        }
        commit_log::mark_committed(&cluster, self.xid())?;
        if self.keeps_timestamps() {
            commit_timestamps::write(&cluster, self.xid(), self.time)?;
        }
        // After the commit is marked: until then the rows that count name the old files.
        (ending.remove)(&cluster)?;
        self.tell_archiver(ending.settings, begin, end)?;
        self.checkpoint()?;
        tracing::debug!("commit: shutdown checkpoint written");
        // Last: as long as the list stands, the next run looks after what it names.
        pending::forget(cluster.storage(), cluster.path())
    }

    /// Leaves a note for the archiver, where there is one, for each segment that is full now.
    ///
    /// Source: `XLogArchiveNotify` in `src/backend/access/transam/xlogarchive.c`, PostgreSQL 14 to 18.
    fn tell_archiver(&self, settings: &Settings, begin: Lsn, end: Lsn) -> Result<()> {
        if !settings.archives_wal() {
            return Ok(());
        }
        let storage = self.cluster.storage();
        let mut segment = self.wal_directory.segment_of(begin);
        while segment.end() <= end {
            let note = format!("{ARCHIVE_STATUS}/{segment}.ready");
            let how = OpenForWrite { create: Create::OrNew, ..OpenForWrite::default() };
            storage.open_for_write(&self.wal_directory.path.join(note), how)?;
            segment = self.wal_directory.segment_of(segment.end());
        }
        Ok(())
    }

    /// True where the last server kept the time of every commit.
    fn keeps_timestamps(&self) -> bool {
        self.cluster.control().settings.track_commit_timestamp
    }

    fn checkpoint(&mut self) -> Result<()> {
        let mut control = self.cluster.control().clone();
        if self.keeps_timestamps() {
            let checkpoint = &mut control.checkpoint;
            checkpoint.newest_commit_ts_xid = self.xid();
            if checkpoint.oldest_commit_ts_xid == TransactionId::INVALID {
                checkpoint.oldest_commit_ts_xid = self.xid();
            }
        }
        control.checkpoint.next_xid = self.xid.next();
        control.checkpoint.next_oid = self.oids.peek();
        control.checkpoint.time = seconds_since_1970();
        control.checkpoint.redo = self.wal.next_record_lsn();
        let version = self.cluster.version();
        let record = RecordBuilder::shutdown_checkpoint(&control.checkpoint, version);
        control.checkpoint_location = control.checkpoint.redo;
        self.wal.append(&record)?;
        self.wal.sync()?;
        control.state = ClusterState::ShutDown;
        self.store_control(&control)
    }

    fn write_control(&self, state: ClusterState) -> Result<()> {
        let mut control = self.cluster.control().clone();
        control.state = state;
        self.store_control(&control)
    }

    /// Overwrites `pg_control` where it lies: what counts of it is within one sector of 512 bytes.
    fn store_control(&self, control: &ControlFile) -> Result<()> {
        let mut control = control.clone();
        control.time = seconds_since_1970();
        control.min_recovery_point = Lsn(0);
        control.min_recovery_point_timeline = 0;
        let bytes = control.encode()?;
        let path = self.cluster.path().join("global/pg_control");
        let file = self.cluster.storage().open_for_write(&path, OpenForWrite::default())?;
        file.write_all_at(&bytes, 0)?;
        Ok(file.sync_all()?)
    }
}

impl Drop for Transaction {
    /// A change that did not take place takes its WAL back.
    fn drop(&mut self) {
        if self.is_flipped || !self.is_listed {
            return;
        }
        let (cluster, timeline) = (&self.cluster, self.wal_directory.timeline);
        let removed = wal_segments::remove_behind(cluster, timeline, self.last_segment);
        // What cannot be removed stays on the list, for the next change to remove.
        if removed.is_ok() && !self.keeps_list {
            let _ = pending::forget(cluster.storage(), cluster.path());
        }
    }
}

fn seconds_since_1970() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(0))
}

/// Microseconds since 2000, PostgreSQL's time.
fn now_since_2000() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(); // default: a clock before 1970
    let since = now.saturating_sub(std::time::Duration::from_secs(EPOCH_SECONDS));
    i64::try_from(since.as_micros()).unwrap_or(0)
}
