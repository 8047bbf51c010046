//! A change of a cluster that takes place wholly or not at all, with PostgreSQL's own recovery as the safety net.
//!
//! ```text
//! begin   the lock; what an earlier change left is removed; WAL is written after the last shutdown checkpoint
//!   │     new files and WAL records. A server that starts now sees none of it: pg_control says "shut down",
//!   │     so it reads no WAL behind the checkpoint, and no catalog names the files.
//!   ├─ drop: the new files are removed
//! commit  images of all changed pages and the commit record; all of it synced
//!   │     ── pg_control says "in production" ──  from here on a server's crash recovery would finish the change
//!   │     the images are put into the live files, the transaction is marked committed, old files are removed
//!   │     a shutdown checkpoint is written, pg_control says "shut down" again
//! ```
//!
//! Invariants: nothing that existed before is changed until `pg_control` was flipped; after that every error says that
//! a server's start finishes the work. What is written into live files comes from the WAL just written, so that it is
//! what a server's replay would have put there.
//!
//! Source: `StartupXLOG`, `CreateCheckPoint` and `UpdateControlFile` in `src/backend/access/transam/xlog.c`,
//! PostgreSQL 14 to 18.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use pagemill_format::checksum::is_new;
use pagemill_format::control::{ClusterState, ControlFile, FullTransactionId};
use pagemill_format::visibility_map::VisibilityPosition;
use pagemill_format::visibility_map_builder::clear_visible;
use pagemill_format::wal::{
    Commit, ExclusiveLock, ImageCompression, Invalidation, RecordBuilder, RelFileLocator,
    StorageFile,
};
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Fork, Lsn, Oid, TransactionId};
use pagemill_io::{Create, OpenForWrite, WritableFork};
use pagemill_wal::{WalDirectory, WalWriter, WriterOptions};

use super::class_indexes::{self, ClassIndex};
use super::class_rows::{ClassChange, ClassEntry, change_rows, class_entries};
use super::class_versions::ClassVersions;
use super::commit_log;
use super::lock::ClusterLock;
use super::oid_counter::OidCounter;
use super::pending;
use super::replay::replay_images;
use crate::data_directory::{Cluster, read_control};
use crate::database::{Database, catalog};
use crate::error::{Error, Result};

/// Transactions that are left before wraparound when no more are given out (`xidStopLimit`).
const RESERVED_TRANSACTIONS: u32 = 3_000_000;
/// Seconds between 1970 and 2000, from where transactions count their time.
const EPOCH_SECONDS: u64 = 946_684_800;

/// A change that is not committed. Dropped, it removes what it made.
#[derive(Debug)]
pub struct ClusterChange {
    database: Database,
    lock: ClusterLock,
    wal: WalWriter,
    wal_directory: WalDirectory,
    xid: FullTransactionId,
    oids: Arc<OidCounter>,
    new_files: Vec<RelFileLocator>,
    dropped_files: Vec<RelFileLocator>,
    classes: HashMap<Oid, ClassChange>,
    /// Relations that standbys lock, as what they hold is exchanged.
    locked: Vec<Oid>,
    pages: BTreeMap<(RelFileLocator, Fork, BlockNumber), Box<BlockBytes>>,
    /// Where the first image for a live file is in the WAL: what is before needs not be replayed.
    live_from: Option<Lsn>,
    is_flipped: bool,
}

impl ClusterChange {
    /// Begins a change of a database, which was opened under `lock`.
    ///
    /// # Errors
    /// When the cluster is in no state to be changed: not shut down, with prepared transactions, about to be recovered
    /// or restored, short of transaction numbers.
    pub fn begin(
        lock: ClusterLock,
        database: Database,
        compression: ImageCompression,
    ) -> Result<Self> {
        let cluster = database.cluster();
        check_state(cluster)?;
        pending::remove_leftovers(cluster)?;
        let control = cluster.control();
        let directory = WalDirectory::of_cluster(cluster.path(), control)?;
        let options = WriterOptions { compression };
        let checkpoint = control.checkpoint_location;
        let wal = WalWriter::begin(cluster.storage(), &directory, checkpoint, options)?;
        let oids = Arc::new(OidCounter::new(control.checkpoint.next_oid));
        let xid = control.checkpoint.next_xid;
        Ok(Self {
            database,
            lock,
            wal,
            wal_directory: directory,
            xid,
            oids,
            new_files: Vec::new(),
            dropped_files: Vec::new(),
            classes: HashMap::new(),
            locked: Vec::new(),
            pages: BTreeMap::new(),
            live_from: None,
            is_flipped: false,
        })
    }

    /// The database that is changed, as it was when the change began.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// The transaction of the change.
    pub fn xid(&self) -> TransactionId {
        self.xid.xid()
    }

    /// Where OIDs come from.
    pub fn oids(&self) -> &Arc<OidCounter> {
        &self.oids
    }

    /// The WAL of the change.
    pub fn wal(&self) -> &WalWriter {
        &self.wal
    }

    /// Logs images of pages of one fork, at most 32, and returns the LSN they get. Those of a new file are in that file
    /// already, or will be; those of a live one are put there by the commit.
    ///
    /// # Errors
    /// When the WAL cannot be written.
    pub fn log_images(
        &mut self,
        file: RelFileLocator,
        fork: Fork,
        pages: &[(BlockNumber, &BlockBytes)],
    ) -> Result<Lsn> {
        if !self.new_files.contains(&file) {
            self.live_from.get_or_insert(self.wal.position());
        }
        Ok(self.wal.append_images(file, fork, pages, self.xid())?)
    }

    /// Numbers for new relation files in these tablespaces, which nothing has yet.
    ///
    /// # Errors
    /// When the directories or the list of unfinished files cannot be read or written.
    pub fn new_files(&mut self, tablespaces: &[Oid]) -> Result<Vec<RelFileLocator>> {
        let mut files = Vec::new();
        for &tablespace in tablespaces {
            files.push(self.unused_file(tablespace)?);
        }
        self.new_files.extend(&files);
        let cluster = self.database.cluster();
        pending::write(cluster.storage(), cluster.path(), &self.new_files)?;
        // A file that gets no page, or none that is logged, has to be there on standbys too.
        let xid = self.xid();
        for &locator in &files {
            let made = StorageFile { locator, fork: Fork::Main };
            self.wal.append(&made.record(xid))?;
        }
        Ok(files)
    }

    fn unused_file(&self, tablespace: Oid) -> Result<RelFileLocator> {
        let (cluster, database) = (self.database.cluster(), self.database.row().oid);
        loop {
            let file = RelFileLocator { tablespace, database, number: self.oids.take() };
            let base = pending::base(cluster, file);
            let is_known = |class: &crate::ClassRow| class.filenode == file.number.0;
            if !self.database.classes().iter().any(is_known) && !cluster.storage().exists(&base)? {
                return Ok(file);
            }
        }
    }

    /// The files a relation has now.
    ///
    /// # Errors
    /// When it is mapped, and not in the relation map.
    pub fn files_of(&self, relation: Oid) -> Result<RelFileLocator> {
        let class = self.database.class(relation);
        let class =
            class.ok_or_else(|| Error::refused(format!("there is no relation {relation}")))?;
        let row = self.database.row();
        let tablespace = match class.tablespace {
            Oid::INVALID => row.tablespace,
            other => other,
        };
        let base = self.database.base_path(class)?;
        let number = base.file_name().and_then(|name| name.to_str()?.parse().ok()).map(Oid);
        let number =
            number.ok_or_else(|| Error::refused(format!("relation {relation} has no files")))?;
        Ok(RelFileLocator { tablespace, database: row.oid, number })
    }

    /// Gives a relation new files in place of those it has, which are removed with the commit.
    ///
    /// # Errors
    /// As [`files_of`](Self::files_of).
    pub fn replace_files(&mut self, relation: Oid, new: RelFileLocator) -> Result<()> {
        let old = self.files_of(relation)?;
        self.dropped_files.push(old);
        self.locked.push(relation);
        self.classes.entry(relation).or_default().filenode = Some(new.number.0);
        Ok(())
    }

    /// Notes a relation's new size.
    pub fn set_size(&mut self, relation: Oid, size: ClassChange) {
        let entry = self.classes.entry(relation).or_default();
        *entry = ClassChange { filenode: entry.filenode, ..size };
    }

    /// Changes a page of a live file with the commit.
    pub fn set_page(
        &mut self,
        file: RelFileLocator,
        fork: Fork,
        block: BlockNumber,
        page: Box<BlockBytes>,
    ) {
        self.pages.insert((file, fork, block), page);
    }

    /// Takes space for a live fork that has `blocks` blocks once the change took place, and leaves it as long as it
    /// is: a full disk is then told before anything depends on the space.
    ///
    /// # Errors
    /// When there is no space, or the files cannot be opened.
    pub fn reserve(&self, file: RelFileLocator, fork: Fork, blocks: u32) -> Result<()> {
        let cluster = self.database.cluster();
        let base = pending::base(cluster, file);
        let how = OpenForWrite::default();
        let fork = WritableFork::open(cluster.storage(), &base, fork, how)?;
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

    /// Makes the change take place.
    ///
    /// # Errors
    /// When something fails before the decision, nothing has changed. [`Error::Unfinished`] when it is after that, and
    /// [`Error::Undecided`] when it is the decision itself that fails.
    pub fn commit(mut self) -> Result<()> {
        self.prepare_catalog()?;
        self.reserve_pages()?;
        self.log_locks()?;
        self.log_pages()?;
        self.log_commit()?;
        self.wal.sync()?;
        self.flip()?;
        let finished = self.finish();
        finished.map_err(|error| Error::Unfinished {
            path: self.database.cluster().path().into(),
            reason: Box::new(error),
        })
    }

    /// Decides: `pg_control` says "in production". When that fails, and the file does not still say "shut down", nobody
    /// knows what the device will have, and everything that a recovery would need has to stay.
    fn flip(&mut self) -> Result<()> {
        self.is_flipped = true;
        let Err(error) = self.write_control(ClusterState::InProduction) else { return Ok(()) };
        let cluster = self.database.cluster();
        match read_control(cluster.storage(), cluster.path(), Some(cluster.version())) {
            Ok(control) if control.state == ClusterState::ShutDown => {
                self.is_flipped = false;
                Err(error)
            }
            _ => Err(Error::Undecided { path: cluster.path().into(), reason: Box::new(error) }),
        }
    }

    /// Turns changes of relations into changed pages of `pg_class`, and of its indexes.
    fn prepare_catalog(&mut self) -> Result<()> {
        let classes = self.classes.iter().map(|(&oid, &change)| (oid, change));
        let (moved, resized): (HashMap<_, _>, HashMap<_, _>) =
            classes.partition(|(_, change)| change.filenode.is_some());
        let file = self.files_of(catalog::PG_CLASS)?;
        if !resized.is_empty() {
            for (block, page) in change_rows(&self.database, &resized)? {
                self.set_page(file, Fork::Main, block, page);
            }
        }
        if moved.is_empty() {
            return Ok(());
        }
        let mut entries = class_entries(&self.database)?;
        let changed = |block| self.pages.get(&(file, Fork::Main, block)).cloned();
        let versions = ClassVersions::write(&self.database, self.xid(), &moved, changed)?;
        entries.extend(versions.entries);
        self.take_back_visibility(file, versions.pages.keys().copied())?;
        for (block, page) in versions.pages {
            self.set_page(file, Fork::Main, block, page);
        }
        class_indexes::ALL.iter().try_for_each(|index| self.rebuild(index, &entries))
    }

    fn rebuild(&mut self, index: &ClassIndex, entries: &[ClassEntry]) -> Result<()> {
        let file = self.files_of(index.oid)?;
        for (block, page) in index.rebuilt(&self.database, entries)? {
            self.set_page(file, Fork::Main, block, page);
        }
        Ok(())
    }

    /// Makes the visibility map of `pg_class` promise nothing of these blocks.
    fn take_back_visibility(
        &mut self,
        file: RelFileLocator,
        blocks: impl Iterator<Item = BlockNumber>,
    ) -> Result<()> {
        let cluster = self.database.cluster().clone();
        let Some(map) = cluster.fork(&pending::base(&cluster, file), Fork::Vm)? else {
            return Ok(());
        };
        for heap_block in blocks {
            let block = VisibilityPosition::of(heap_block).block;
            if block.0 >= map.blocks() {
                continue;
            }
            let mut page = match self.pages.remove(&(file, Fork::Vm, block)) {
                Some(page) => page,
                None => {
                    let mut page = Box::new([0; BLOCK_SIZE]);
                    map.read_block(block, &mut page)?;
                    page
                }
            };
            if !is_new(&page) {
                clear_visible(&mut page, heap_block);
                self.set_page(file, Fork::Vm, block, page);
            }
        }
        Ok(())
    }

    /// Keeps sessions of standbys out, from before the catalogs there say something new until the commit.
    fn log_locks(&mut self) -> Result<()> {
        let (xid, database) = (self.xid(), self.database.row().oid);
        let lock = |&relation: &Oid| ExclusiveLock { xid, database, relation };
        let locks: Vec<_> = self.locked.iter().map(lock).collect();
        if !locks.is_empty() {
            self.wal.append(&ExclusiveLock::record(&locks))?;
        }
        Ok(())
    }

    fn log_pages(&mut self) -> Result<()> {
        for ((file, fork, block), page) in std::mem::take(&mut self.pages) {
            self.log_images(file, fork, &[(block, &page)])?;
        }
        Ok(())
    }

    fn log_commit(&mut self) -> Result<()> {
        let (xid, version) = (self.xid(), self.database.cluster().version());
        let row = self.database.row();
        if commit_log::begins_page(xid) {
            let page = commit_log::page_of(xid);
            self.wal.append(&RecordBuilder::commit_log_zero_page(page, version))?;
        }
        self.wal.append(&RecordBuilder::next_oid(self.oids.peek()))?;
        let commit = Commit {
            time: now_since_2000(),
            database: Some((row.oid, row.tablespace)),
            dropped_files: self.dropped_files.clone(),
            invalidations: self.invalidations(),
            had_exclusive_locks: !self.locked.is_empty(),
            force_sync: true,
            ..Commit::default()
        };
        self.wal.append(&commit.record(xid, version))?;
        Ok(())
    }

    /// What the sessions of a standby are to forget: what they know of `pg_class`, and of each changed relation.
    fn invalidations(&self) -> Vec<Invalidation> {
        let database = self.database.row().oid;
        let of_class = Invalidation::Catalog { database, catalog: catalog::PG_CLASS };
        let relation = |&relation: &Oid| Invalidation::Relation { database, relation };
        std::iter::once(of_class).chain(self.classes.keys().map(relation)).collect()
    }

    /// What follows the decision: live files, the commit log, the checkpoint.
    fn finish(&mut self) -> Result<()> {
        let cluster = self.database.cluster().clone();
        let skipped: HashSet<_> = self.new_files.iter().copied().collect();
        let (begin, end) = (self.wal.start_lsn(), self.wal.position());
        if let Some(from) = self.live_from {
            replay_images(&cluster, &self.wal_directory, from, end, &skipped)?;
        }
        commit_log::mark_committed(&cluster, self.xid())?;
        for &file in &self.dropped_files {
            pending::remove_files(&cluster, file)?;
        }
        self.tell_archiver(begin, end)?;
        self.checkpoint()?;
        pending::forget(cluster.storage(), cluster.path())
    }

    /// Leaves a note for the archiver, where there is one, for each segment that is full now.
    ///
    /// Source: `XLogArchiveNotify` in `src/backend/access/transam/xlogarchive.c`, PostgreSQL 14 to 18.
    fn tell_archiver(&self, begin: Lsn, end: Lsn) -> Result<()> {
        let settings = self.database.session_settings()?;
        let mode = settings.get("archive_mode").unwrap_or_default().to_ascii_lowercase();
        if !matches!(mode.as_slice(), b"on" | b"true" | b"yes" | b"1" | b"always") {
            return Ok(());
        }
        let storage = self.database.cluster().storage();
        let mut segment = self.wal_directory.segment_of(begin);
        while segment.end() <= end {
            let note = format!("archive_status/{segment}.ready");
            let how = OpenForWrite { create: Create::OrNew, ..OpenForWrite::default() };
            storage.open_for_write(&self.wal_directory.path.join(note), how)?;
            segment = self.wal_directory.segment_of(segment.end());
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<()> {
        let cluster = self.database.cluster().clone();
        let mut control = cluster.control().clone();
        control.checkpoint.next_xid = self.xid.next();
        control.checkpoint.next_oid = self.oids.peek();
        control.checkpoint.time = seconds_since_1970();
        control.checkpoint.redo = self.wal.next_record_lsn();
        let record = RecordBuilder::shutdown_checkpoint(&control.checkpoint, cluster.version());
        control.checkpoint_location = control.checkpoint.redo;
        self.wal.append(&record)?;
        self.wal.sync()?;
        control.state = ClusterState::ShutDown;
        self.store_control(&control)
    }

    fn write_control(&self, state: ClusterState) -> Result<()> {
        let mut control = self.database.cluster().control().clone();
        control.state = state;
        self.store_control(&control)
    }

    /// Overwrites `pg_control` where it lies: what counts of it is within one sector of 512 bytes.
    fn store_control(&self, control: &ControlFile) -> Result<()> {
        let cluster = self.database.cluster();
        let mut control = control.clone();
        control.time = seconds_since_1970();
        control.min_recovery_point = Lsn(0);
        control.min_recovery_point_timeline = 0;
        let bytes = control.encode()?;
        let path = cluster.path().join("global/pg_control");
        let file = cluster.storage().open_for_write(&path, OpenForWrite::default())?;
        file.write_all_at(&bytes, 0)?;
        Ok(file.sync_all()?)
    }
}

impl Drop for ClusterChange {
    fn drop(&mut self) {
        if self.is_flipped {
            return;
        }
        let cluster = self.database.cluster();
        let removed =
            self.new_files.iter().try_for_each(|&file| pending::remove_files(cluster, file));
        // What cannot be removed stays on the list, for the next change to remove.
        if removed.is_ok() {
            let _ = pending::forget(cluster.storage(), self.lock.directory());
        }
    }
}

/// Refuses a cluster that a change could damage or that would not keep it.
fn check_state(cluster: &Cluster) -> Result<()> {
    let control = cluster.control();
    let refuse =
        |reason: String| Err(Error::refused(format!("{}: {reason}", cluster.path().display())));
    if control.state != ClusterState::ShutDown {
        return refuse(format!(
            "the cluster's state is \"{}\", not \"shut down\": start PostgreSQL on it and stop it",
            control.state
        ));
    }
    for name in ["backup_label", "recovery.signal", "standby.signal"] {
        if cluster.storage().exists(&cluster.path().join(name))? {
            return refuse(format!("there is a {name}: start PostgreSQL on it first, and stop it"));
        }
    }
    let prepared: Vec<PathBuf> = prepared_transactions(cluster)?;
    if !prepared.is_empty() {
        return refuse(format!(
            "{} prepared transactions are waiting, which may hold locks: COMMIT or ROLLBACK PREPARED them first",
            prepared.len()
        ));
    }
    if control.settings.track_commit_timestamp {
        return refuse("track_commit_timestamp is on, whose log is not written here: set it off, start and stop the server".into());
    }
    let left = control
        .checkpoint
        .oldest_xid
        .0
        .wrapping_add(i32::MAX as u32)
        .wrapping_sub(control.checkpoint.next_xid.xid().0);
    if (left as i32) < RESERVED_TRANSACTIONS as i32 {
        return refuse("transaction numbers are running out: VACUUM the databases first".into());
    }
    Ok(())
}

fn prepared_transactions(cluster: &Cluster) -> Result<Vec<PathBuf>> {
    let directory = cluster.path().join("pg_twophase");
    let entries = cluster.storage().read_dir(&directory)?;
    Ok(entries.into_iter().map(|entry| directory.join(entry.name)).collect())
}

fn seconds_since_1970() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(0))
}

/// Microseconds since 2000, PostgreSQL's time.
fn now_since_2000() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let since = now.saturating_sub(std::time::Duration::from_secs(EPOCH_SECONDS));
    i64::try_from(since.as_micros()).unwrap_or(0)
}
