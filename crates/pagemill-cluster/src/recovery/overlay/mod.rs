//! [`OverlayFileSystem`]: the files of a data directory as they are after redo, with nothing written.
//!
//! It lies below the seam that everything is read through, so catalogs, relation maps, TOAST, indexes, visibility maps and
//! the commit log all come from the same moment, and whoever reads them knows nothing of it.
//!
//! | file | what is read |
//! | --- | --- |
//! | of a fork that no record changed | the file itself, mapped where it is mapped today |
//! | main or init fork with records | the file with [redone pages](RelationFile) over it, as long as redo leaves it |
//! | visibility map of a heap with records | the file [without the bits](MapFile) of blocks that records changed |
//! | any fork of an unlogged relation | the main fork is what the init fork is, even where it is not there; others are not there |
//! | `pg_xact`, `pg_multixact` | the file with [what WAL says](LogFile) over it |
//! | `pg_filenode.map` | the last one in WAL |
//! | of a relation or database that was dropped | none |
//!
//! Invariants: nothing is ever written; a file that redo did not change is the file below.
//!
//! Sources: the redo functions of `src/include/access/rmgrlist.h`; `ResetUnloggedRelations` in
//! `src/backend/storage/file/reinit.c`, PostgreSQL 14 to 18.

mod composed_file;
mod layout;
mod log_file;
mod map_file;
mod page_history;
mod page_redo;
mod relation_file;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pagemill_format::wal::RelFileLocator;
use pagemill_format::{BLOCK_SIZE, BlockNumber, Fork, Oid, PgVersion, SEGMENT_BLOCKS};
use pagemill_io::{
    Access, Caching, Capabilities, DirEntry, File, FileState, FileSystem, Identity, IoQueue,
    Metadata, Node, QueueKind, SpaceLeft, StorageTraits,
};
use pagemill_wal::{
    DatabaseDirectory, DirectoryLife, FileLife, ForkHistory, ForkKey, RecordFetch, WalIndex,
};

use crate::data_directory::{DEFAULT_TABLESPACE, GLOBAL_TABLESPACE};
pub(crate) use composed_file::{ComposedFile, Composition, FileInMemory, read_pages};
pub(super) use layout::file_name;
use layout::{Layout, Log, Named};
use log_file::LogFile;
use map_file::MapFile;
pub use page_history::{BasePage, PageHistory, PageRecord};
use page_redo::{PageRedo, PageRules, of_index};
use relation_file::{RelationFile, SegmentExtent};

/// What an overlay is made of.
#[derive(Debug)]
pub(super) struct OverlayParts {
    /// What the WAL did.
    pub(super) index: Arc<WalIndex>,
    /// Its records.
    pub(super) records: RecordFetch,
    /// The data directory.
    pub(super) root: PathBuf,
    /// The directory in each tablespace that is this cluster's.
    pub(super) version_directory: String,
    /// The version that wrote the cluster.
    pub(super) version: PgVersion,
    /// Its pages carry checksums.
    pub(super) has_checksums: bool,
    /// Checksums of pages that redo begins from are verified.
    pub(super) verify_checksums: bool,
    /// Pages get an LSN also for what is a hint.
    pub(super) hints_logged: bool,
}

/// Lays what WAL did over the files of a data directory.
#[derive(Debug)]
pub(crate) struct OverlayFileSystem {
    below: Arc<dyn FileSystem>,
    layout: Layout,
    version: PgVersion,
    index: Arc<WalIndex>,
    redo: Arc<PageRedo>,
    /// The forks with a history, by directory.
    forks: HashMap<DatabaseDirectory, Vec<ForkKey>>,
    /// The unlogged relations of directories that were looked at.
    unlogged: Mutex<HashMap<DatabaseDirectory, Arc<HashSet<Oid>>>>,
}

/// What there is under the name of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    /// Nothing.
    Absent,
    /// The file below.
    AsItLies,
    /// Redone pages over what there is below.
    Redone(SegmentExtent),
    /// A visibility map of so many blocks.
    Map { heap: ForkKey, blocks: u32 },
    /// What the init fork is.
    OfInitFork(PathBuf),
}

impl OverlayFileSystem {
    pub(super) fn new(below: Arc<dyn FileSystem>, parts: OverlayParts) -> Self {
        let mut forks: HashMap<_, Vec<_>> = HashMap::new();
        for (key, _) in parts.index.forks() {
            forks.entry(directory_of(key.locator)).or_default().push(*key);
        }
        let rules = PageRules {
            has_checksums: parts.has_checksums,
            verify_checksums: parts.verify_checksums,
            hints_logged: parts.hints_logged,
        };
        Self {
            below,
            layout: Layout::new(&parts.root, parts.version_directory),
            version: parts.version,
            redo: Arc::new(PageRedo::new(parts.index.clone(), parts.records, rules)),
            index: parts.index,
            forks,
            unlogged: Mutex::default(),
        }
    }

    /// What there is under the name of a segment, whose path this is.
    fn segment(&self, path: &Path, key: ForkKey, segment: u32) -> io::Result<Segment> {
        let directory = directory_of(key.locator);
        if self.index.files.directory(directory) == Some(DirectoryLife::Dropped) {
            return Ok(Segment::Absent);
        }
        if key.fork != Fork::Init && self.is_unlogged(path, key.locator)? {
            let number = key.locator.number;
            return Ok(match (key.fork, segment) {
                (Fork::Main, 0) => Segment::OfInitFork(
                    path.with_file_name(format!("{number}{}", Fork::Init.suffix())),
                ),
                _ => Segment::Absent,
            });
        }
        let history = self.index.fork(key);
        match key.fork {
            Fork::Fsm | Fork::Vm if history.is_some_and(|h| h.life() == FileLife::Dropped) => {
                Ok(Segment::Absent)
            }
            Fork::Fsm => Ok(Segment::AsItLies),
            Fork::Vm => self.map_segment(path, key),
            Fork::Main | Fork::Init => match history {
                Some(history) => self.redone_segment(path, history, segment),
                None => Ok(Segment::AsItLies),
            },
        }
    }

    fn map_segment(&self, path: &Path, key: ForkKey) -> io::Result<Segment> {
        let heap = ForkKey { fork: Fork::Main, ..key };
        if self.index.fork(heap).is_none() {
            return Ok(Segment::AsItLies);
        }
        Ok(match self.file_blocks(path)? {
            Some((blocks, _)) => Segment::Map { heap, blocks },
            None => Segment::Absent,
        })
    }

    fn redone_segment(
        &self,
        path: &Path,
        history: &ForkHistory,
        segment: u32,
    ) -> io::Result<Segment> {
        let file = self.file_blocks(path)?;
        let extent = SegmentExtent::of(history, segment, file.map_or(0, |(blocks, _)| blocks));
        let exists = match segment {
            0 => history.exists(file.is_some()),
            _ => history.life() != FileLife::Dropped && extent.blocks > 0,
        };
        if !exists {
            return Ok(Segment::Absent);
        }
        let start = segment.saturating_mul(SEGMENT_BLOCKS);
        let next = history.next_touched(BlockNumber(start)).map_err(of_index)?;
        let is_touched = next.is_some_and(|next| next.0 - start < SEGMENT_BLOCKS);
        let whole = SegmentExtent { blocks: extent.blocks, base_blocks: extent.blocks };
        match file {
            Some((blocks, true)) if !is_touched && extent == whole && blocks == extent.blocks => {
                Ok(Segment::AsItLies)
            }
            _ => Ok(Segment::Redone(extent)),
        }
    }

    /// Whole blocks of a file below, and whether they are all of it; `None` when it is not there.
    fn file_blocks(&self, path: &Path) -> io::Result<Option<(u32, bool)>> {
        let len = match self.below.metadata(path) {
            Ok(found) => found.len,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let blocks = u32::try_from(len / BLOCK_SIZE as u64).unwrap_or(u32::MAX);
        Ok(Some((blocks, len.is_multiple_of(BLOCK_SIZE as u64))))
    }

    fn is_unlogged(&self, path: &Path, locator: RelFileLocator) -> io::Result<bool> {
        let Some(parent) = path.parent() else { return Ok(false) };
        Ok(self.unlogged_in(directory_of(locator), parent)?.contains(&locator.number))
    }

    /// The relations of a directory that have an init fork after redo.
    fn unlogged_in(
        &self,
        directory: DatabaseDirectory,
        path: &Path,
    ) -> io::Result<Arc<HashSet<Oid>>> {
        let mut unlogged = self.unlogged.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = unlogged.get(&directory) {
            return Ok(found.clone());
        }
        let found = Arc::new(self.find_unlogged(directory, path)?);
        unlogged.insert(directory, found.clone());
        Ok(found)
    }

    fn find_unlogged(&self, directory: DatabaseDirectory, path: &Path) -> io::Result<HashSet<Oid>> {
        let names = match self.below.read_dir(path) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let lying = names.iter().filter_map(|entry| layout::segment_of(directory, &entry.name));
        let lying = lying.filter(|(key, _)| key.fork == Fork::Init).map(|(key, _)| key);
        let mut found: HashSet<Oid> = lying.map(|key| key.locator.number).collect();
        for key in self.forks_in(directory).filter(|key| key.fork == Fork::Init) {
            let lies = found.contains(&key.locator.number);
            match self.index.fork(*key).is_some_and(|history| history.exists(lies)) {
                true => found.insert(key.locator.number),
                false => found.remove(&key.locator.number),
            };
        }
        Ok(found)
    }

    fn forks_in(&self, directory: DatabaseDirectory) -> impl Iterator<Item = &ForkKey> {
        self.forks.get(&directory).into_iter().flatten()
    }

    /// The file below, if there is one.
    fn below_if_there(&self, path: &Path, caching: Caching) -> io::Result<Option<Box<dyn File>>> {
        match self.below.open(path, caching) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn open_segment(
        &self,
        path: &Path,
        key: ForkKey,
        segment: u32,
        caching: Caching,
    ) -> io::Result<Box<dyn File>> {
        let redo = self.redo.clone();
        Ok(match self.segment(path, key, segment)? {
            Segment::Absent => return Err(not_there()),
            Segment::AsItLies => self.below.open(path, caching)?,
            Segment::OfInitFork(init) => self.open(&init, caching)?,
            Segment::Redone(extent) => {
                let base = self.below_if_there(path, caching)?;
                Box::new(ComposedFile(RelationFile { redo, key, segment, base, extent }))
            }
            Segment::Map { heap, blocks } => {
                let base = self.below.open(path, caching)?;
                Box::new(ComposedFile(MapFile { redo, heap, segment, base, blocks }))
            }
        })
    }

    fn open_log(&self, path: &Path, log: Log, segment: u32) -> io::Result<Box<dyn File>> {
        let known = log_file::known_pages(&self.index, log, segment);
        if known == 0 {
            return self.below.open(path, Caching::Buffered);
        }
        let base = self.below_if_there(path, Caching::Buffered)?;
        let index = self.index.clone();
        let pages = self.log_pages(path, known)?;
        Ok(Box::new(ComposedFile(LogFile { index, log, segment, base, pages })))
    }

    /// Pages of a log's segment, of which WAL knows so many.
    fn log_pages(&self, path: &Path, known: u32) -> io::Result<u32> {
        Ok(self.file_blocks(path)?.map_or(known, |(blocks, _)| blocks.max(known)))
    }

    /// A small file that WAL, or the mere existence of its directory, says all of.
    fn small_file(&self, path: &Path, named: Named) -> io::Result<Option<Vec<u8>>> {
        let (Named::Map(directory) | Named::VersionFile(directory)) = named else {
            return Ok(None);
        };
        let life = self.index.files.directory(directory);
        if life == Some(DirectoryLife::Dropped) {
            return Err(not_there());
        }
        if let (Named::Map(_), Some(map)) = (named, self.index.files.relation_map(directory)) {
            return Ok(Some(map.to_vec()));
        }
        let is_new = life.is_some() && matches!(named, Named::VersionFile(_));
        if is_new && self.file_blocks(path)?.is_none() {
            return Ok(Some(format!("{}\n", self.version).into_bytes()));
        }
        Ok(None)
    }

    /// True where a tablespace's own directory is missing, which is older than the WAL: most of what was in it is not in
    /// the WAL, so to show what is would be to show tables cut short.
    fn lacks_tablespace(&self, path: &Path, directory: DatabaseDirectory) -> bool {
        let is_outside = !matches!(directory.tablespace, DEFAULT_TABLESPACE | GLOBAL_TABLESPACE);
        let of_version = path.parent();
        is_outside
            && !self.index.files.makes_tablespace(directory.tablespace)
            && of_version.is_some_and(|of_version| self.below.metadata(of_version).is_err())
    }

    fn read_relations(
        &self,
        path: &Path,
        directory: DatabaseDirectory,
    ) -> io::Result<Vec<DirEntry>> {
        let life = self.index.files.directory(directory);
        let lying = match self.below.read_dir(path) {
            _ if life == Some(DirectoryLife::Dropped) => return Err(not_there()),
            Ok(lying) => lying,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let is_known = life.is_some() || self.forks_in(directory).next().is_some();
                if !is_known || self.lacks_tablespace(path, directory) {
                    return Err(error);
                }
                Vec::new()
            }
            Err(error) => return Err(error),
        };
        let mut names = BTreeSet::new();
        for DirEntry { name, .. } in lying {
            let is_there = match layout::segment_of(directory, &name) {
                Some((key, segment)) => {
                    self.segment(&path.join(&name), key, segment)? != Segment::Absent
                }
                None => true,
            };
            if is_there {
                names.insert(name);
            }
        }
        self.add_made(path, directory, &mut names)?;
        Ok(entries(names))
    }

    /// Adds the names of what is only there after redo.
    fn add_made(
        &self,
        path: &Path,
        directory: DatabaseDirectory,
        names: &mut BTreeSet<OsString>,
    ) -> io::Result<()> {
        for key in self.forks_in(directory) {
            if !matches!(key.fork, Fork::Main | Fork::Init) {
                continue;
            }
            for segment in 0.. {
                let name = file_name(*key, segment);
                if self.segment(&path.join(&name), *key, segment)? == Segment::Absent {
                    break;
                }
                names.insert(name.into());
            }
        }
        // A backup has only the init forks of these, and no record tells of the others.
        for number in self.unlogged_in(directory, path)?.iter() {
            names.insert(format!("{number}{}", Fork::Main.suffix()).into());
        }
        if self.index.files.relation_map(directory).is_some() {
            names.insert(layout::MAP_FILE.into());
        }
        Ok(())
    }

    fn read_log_directory(&self, path: &Path, log: Log) -> io::Result<Vec<DirEntry>> {
        let lying = self.below.read_dir(path)?.into_iter().map(|entry| entry.name);
        let mut names: BTreeSet<OsString> = lying.collect();
        for page in log_file::pages_of(&self.index, log).numbers() {
            let segment = page / pagemill_format::slru::PAGES_PER_SEGMENT;
            names.insert(pagemill_format::slru::segment_name(segment).into());
        }
        Ok(entries(names))
    }
}

impl FileSystem for OverlayFileSystem {
    fn open(&self, path: &Path, caching: Caching) -> io::Result<Box<dyn File>> {
        let named = self.layout.named(path);
        match named {
            Named::Segment(key, segment) => self.open_segment(path, key, segment, caching),
            Named::LogSegment(log, segment) => self.open_log(path, log, segment),
            Named::Map(_) | Named::VersionFile(_) => match self.small_file(path, named)? {
                Some(bytes) => Ok(Box::new(FileInMemory(bytes))),
                None => self.below.open(path, caching),
            },
            _ => self.below.open(path, caching),
        }
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        match self.layout.named(path) {
            Named::Directory(directory) => self.read_relations(path, directory),
            Named::LogDirectory(log) => self.read_log_directory(path, log),
            _ => self.below.read_dir(path),
        }
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let of_blocks =
            |blocks: u32| Metadata { len: u64::from(blocks) * BLOCK_SIZE as u64, is_dir: false };
        let named = self.layout.named(path);
        match named {
            Named::Segment(key, segment) => match self.segment(path, key, segment)? {
                Segment::Absent => Err(not_there()),
                Segment::AsItLies => self.below.metadata(path),
                Segment::OfInitFork(init) => self.metadata(&init),
                Segment::Redone(SegmentExtent { blocks, .. }) | Segment::Map { blocks, .. } => {
                    Ok(of_blocks(blocks))
                }
            },
            Named::LogSegment(log, segment) => {
                match log_file::known_pages(&self.index, log, segment) {
                    0 => self.below.metadata(path),
                    known => self.log_pages(path, known).map(of_blocks),
                }
            }
            Named::Map(_) | Named::VersionFile(_) => match self.small_file(path, named)? {
                Some(bytes) => Ok(Metadata { len: bytes.len() as u64, is_dir: false }),
                None => self.below.metadata(path),
            },
            Named::Directory(directory) => match self.index.files.directory(directory) {
                Some(DirectoryLife::Dropped) => Err(not_there()),
                Some(_) => Ok(Metadata { len: 0, is_dir: true }),
                None => self.below.metadata(path),
            },
            _ => self.below.metadata(path),
        }
    }

    fn node(&self, path: &Path) -> io::Result<Node> {
        match self.layout.named(path) {
            Named::Other => self.below.node(path),
            _ => {
                let found = self.metadata(path)?;
                Ok(if found.is_dir { Node::Directory } else { Node::File { len: found.len } })
            }
        }
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        self.below.resolve(path)
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        self.below.identity(path)
    }

    fn state(&self, path: &Path) -> io::Result<FileState> {
        self.below.state(path)
    }

    fn access(&self, path: &Path) -> io::Result<Access> {
        self.below.access(path)
    }

    fn space_left(&self, path: &Path) -> io::Result<SpaceLeft> {
        self.below.space_left(path)
    }

    fn capabilities(&self) -> Capabilities {
        self.below.capabilities()
    }

    fn open_queue(&self, kind: QueueKind, depth: u32) -> io::Result<Box<dyn IoQueue>> {
        self.below.open_queue(kind, depth)
    }

    fn place(&self, path: &Path) -> StorageTraits {
        self.below.place(path)
    }

    fn now(&self) -> Duration {
        self.below.now()
    }
}

/// The directory that a relation's files lie in.
fn directory_of(locator: RelFileLocator) -> DatabaseDirectory {
    DatabaseDirectory { tablespace: locator.tablespace, database: locator.database }
}

fn not_there() -> io::Error {
    io::ErrorKind::NotFound.into()
}

fn entries(names: BTreeSet<OsString>) -> Vec<DirEntry> {
    names.into_iter().map(DirEntry::named).collect()
}
