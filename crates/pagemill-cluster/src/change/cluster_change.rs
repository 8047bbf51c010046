//! A change of relations of one database that takes place wholly or not at all.
//!
//! ```text
//! begin   the lock; what an earlier change left is removed
//!   │     new files and WAL records; no catalog names the files
//!   ├─ drop: the new files are removed
//! commit  new versions of rows of pg_class name the new files, see `transaction.rs`
//! ```
//!
//! Invariant: nothing that existed before is changed before the commit.

use std::collections::HashMap;
use std::sync::Arc;

use pagemill_format::wal::{Commit, ImageCompression, Invalidation, RelFileLocator, StorageFile};
use pagemill_format::{BlockBytes, BlockNumber, Fork, Lsn, Oid, TransactionId};
use pagemill_wal::WalWriter;

use super::catalog_indexes::{OF_CLASS, needs_lock};
use super::catalog_table::{CatalogTable, files_of};
use super::class_rows::{ClassChange, change_rows, write_versions};
use super::lock::ClusterLock;
use super::oid_counter::OidCounter;
use super::pending::{self, Unfinished};
use super::transaction::{Ending, Transaction};
use crate::database::{Database, catalog};
use crate::error::Result;

/// A change that is not committed. Dropped, it removes what it made.
#[derive(Debug)]
pub struct ClusterChange {
    database: Database,
    transaction: Transaction,
    new_files: Vec<RelFileLocator>,
    dropped_files: Vec<RelFileLocator>,
    classes: HashMap<Oid, ClassChange>,
    /// Relations that standbys lock, as what they hold is exchanged.
    locked: Vec<Oid>,
}

impl ClusterChange {
    /// Begins a change of a database, which was opened under `lock`.
    ///
    /// # Errors
    /// When the cluster is in no state to be changed: not shut down, with prepared transactions, about to be recovered
    /// or restored, short of transaction numbers.
    pub fn begin(
        lock: Arc<ClusterLock>,
        database: Database,
        compression: ImageCompression,
    ) -> Result<Self> {
        let transaction = Transaction::begin(lock, database.cluster(), compression)?;
        Ok(Self {
            database,
            transaction,
            new_files: Vec::new(),
            dropped_files: Vec::new(),
            classes: HashMap::new(),
            locked: Vec::new(),
        })
    }

    /// The database that is changed, as it was when the change began.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// The transaction of the change.
    pub fn xid(&self) -> TransactionId {
        self.transaction.xid()
    }

    /// Where OIDs come from.
    pub fn oids(&self) -> &Arc<OidCounter> {
        self.transaction.oids()
    }

    /// The WAL of the change.
    pub fn wal(&self) -> &WalWriter {
        self.transaction.wal()
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
        let is_live = !self.new_files.contains(&file);
        self.transaction.log_images(file, fork, pages, is_live)
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
        self.list_files(&files)?;
        // A file that gets no page, or none that is logged, has to be there on standbys too.
        let xid = self.xid();
        for &locator in &files {
            let made = StorageFile { locator, fork: Fork::Main };
            self.transaction.append(&made.record(xid))?;
        }
        Ok(files)
    }

    /// The same for a relation that is not logged: standbys get its init fork alone.
    ///
    /// # Errors
    /// As [`new_files`](Self::new_files).
    pub fn new_unlogged_files(&mut self, tablespace: Oid) -> Result<RelFileLocator> {
        let locator = self.unused_file(tablespace)?;
        self.list_files(&[locator])?;
        let made = StorageFile { locator, fork: Fork::Init };
        self.transaction.append(&made.record(self.xid()))?;
        Ok(locator)
    }

    /// Lists files before they are made.
    fn list_files(&mut self, files: &[RelFileLocator]) -> Result<()> {
        self.new_files.extend(files);
        let unfinished: Vec<_> = self.new_files.iter().copied().map(Unfinished::Files).collect();
        self.transaction.list(&unfinished)
    }

    fn unused_file(&self, tablespace: Oid) -> Result<RelFileLocator> {
        let (cluster, database) = (self.database.cluster(), self.database.row().oid);
        loop {
            let file = RelFileLocator { tablespace, database, number: self.oids().take() };
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
        files_of(&self.database, relation)
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
        self.transaction.set_page((file, fork, block), page);
    }

    /// Takes space for a live fork that has `blocks` blocks once the change took place, and leaves it as long as it
    /// is: a full disk is then told before anything depends on the space.
    ///
    /// # Errors
    /// When there is no space, or the files cannot be opened.
    pub fn reserve(&self, file: RelFileLocator, fork: Fork, blocks: u32) -> Result<()> {
        self.transaction.reserve(file, fork, blocks)
    }

    /// Makes the change take place.
    ///
    /// # Errors
    /// When something fails before the decision, nothing has changed. [`Error::Unfinished`](crate::Error::Unfinished)
    /// when it is after that, and [`Error::Undecided`](crate::Error::Undecided) when it is the decision itself that
    /// fails.
    pub fn commit(mut self) -> Result<()> {
        self.prepare_catalog()?;
        let row = self.database.row();
        let (new_files, dropped) = (&self.new_files, &self.dropped_files);
        let commit = Commit {
            database: Some((row.oid, row.tablespace)),
            dropped_files: dropped.clone(),
            invalidations: self.invalidations(),
            ..Commit::default()
        };
        self.transaction.commit(Ending {
            commit,
            locked: self.locked.iter().map(|&relation| (row.oid, relation)).collect(),
            is_new: &|file| new_files.contains(&file),
            settings: self.database.session_settings()?,
            remove: &|cluster| {
                dropped.iter().try_for_each(|&file| pending::remove_files(cluster, file))
            },
        })
    }

    /// Turns changes of relations into changed pages of `pg_class`, and of its indexes.
    fn prepare_catalog(&mut self) -> Result<()> {
        let changes = self.classes.iter().map(|(&oid, &change)| (oid, change));
        let (moved, resized): (HashMap<_, _>, HashMap<_, _>) =
            changes.partition(|(_, change)| change.filenode.is_some());
        let classes = CatalogTable::open(&self.database, catalog::PG_CLASS)?;
        let file = classes.file;
        if !resized.is_empty() {
            for (block, page) in change_rows(&classes, &resized)? {
                self.set_page(file, Fork::Main, block, page);
            }
        }
        if moved.is_empty() {
            return Ok(());
        }
        let mut entries = classes.entries(OF_CLASS.keys)?;
        let changed = |block| self.transaction.changed_page((file, Fork::Main, block));
        let versions = write_versions(&classes, self.xid(), &moved, changed)?;
        entries.extend(versions.entries);
        self.transaction.take_back_visibility(file, versions.pages.keys().copied())?;
        for (block, page) in versions.pages {
            self.set_page(file, Fork::Main, block, page);
        }
        for index in OF_CLASS.all {
            let file = self.files_of(index.oid)?;
            let pages = index.rebuilt(&self.database, &entries)?;
            if needs_lock(&pages) {
                self.locked.push(index.oid);
            }
            for (block, page) in pages {
                self.set_page(file, Fork::Main, block, page);
            }
        }
        Ok(())
    }

    /// What the sessions of a standby are to forget: what they know of `pg_class`, and of each changed relation.
    fn invalidations(&self) -> Vec<Invalidation> {
        let database = self.database.row().oid;
        let of_class = Invalidation::Catalog { database, catalog: catalog::PG_CLASS };
        let relation = |&relation: &Oid| Invalidation::Relation { database, relation };
        std::iter::once(of_class).chain(self.classes.keys().map(relation)).collect()
    }
}

impl Drop for ClusterChange {
    fn drop(&mut self) {
        if self.transaction.is_flipped() {
            return;
        }
        let cluster = self.database.cluster();
        let removed =
            self.new_files.iter().try_for_each(|&file| pending::remove_files(cluster, file));
        if removed.is_err() {
            self.transaction.keep_list();
        }
    }
}
