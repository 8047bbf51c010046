//! [`RemoteFiles`]: the seam's file system over object stores, with this machine's files beside them.
//!
//! A path that is a URL lies on a store, any other on this machine: so an archive of WAL may lie in a bucket and the cluster
//! here, or the other way round.
//!
//! Invariants: it reads only, as far as stores are concerned (results are written elsewhere, `folder.rs`); what a session sees of a store does not change while it lasts.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use object_store::ObjectStore;
use object_store::path::Path as Key;
use pagemill_io::{
    Access, Caching, Capabilities, DirEntry, File, FileState, FileSystem, Identity, IoQueue,
    Metadata, Node, QueueKind, Refusal, SpaceLeft, StorageTraits, is_url,
};

use crate::connect;
use crate::directories::{Directories, Entry, Listing, parted};
use crate::disk_cache::DiskCache;
use crate::earlier_listings::EarlierListings;
use crate::error::Result;
use crate::foresight::{self, Expected};
use crate::http_requests::Connector;
use crate::object::{MOST_IN_FLIGHT, Store};
use crate::pieces::Pieces;
use crate::remote_file::RemoteFile;
use crate::remote_queue::RemoteQueue;
use crate::request_counts::{RequestCounts, RequestSnapshot};
use crate::retry::RetryPolicy;
use crate::runtime;
use crate::url::Url;

/// How stores are read.
#[derive(Debug, Clone, Default)]
pub struct RemoteOptions {
    /// Where pieces are kept on this machine, and how many bytes of them.
    pub cache: Option<(PathBuf, u64)>,
    /// When requests are made again.
    pub retry: RetryPolicy,
}

/// Files of stores by their URLs, and of this machine by their paths.
#[derive(Debug)]
pub struct RemoteFiles {
    below: Arc<dyn FileSystem>,
    /// Whether what is read lies on a store, and not only something beside it.
    is_distant: bool,
    connector: Connector,
    stores: Mutex<HashMap<String, Arc<Directories>>>,
    pieces: Arc<Pieces>,
    earlier: Option<EarlierListings>,
}

impl RemoteFiles {
    /// The files of stores beside those of `below`, to read `directory` from.
    pub fn new(below: Arc<dyn FileSystem>, directory: &Path, options: &RemoteOptions) -> Self {
        let counts = Arc::<RequestCounts>::default();
        let cache = options.cache.as_ref();
        let disk =
            cache.map(|(path, limit)| Arc::new(DiskCache::new(path, *limit, counts.clone())));
        let earlier = disk.as_ref().and_then(|disk| EarlierListings::of(directory, disk));
        Self {
            below,
            earlier,
            is_distant: is_url(directory),
            connector: Connector { counts, policy: options.retry },
            stores: Mutex::default(),
            pieces: Arc::new(Pieces::new(disk)),
        }
    }

    /// What was asked of stores so far.
    pub fn requests(&self) -> RequestSnapshot {
        self.connector.counts.snapshot()
    }

    /// Waits for what is still being kept on this machine. Why nothing is kept there any more, if so.
    pub fn finish(&self) -> Option<&str> {
        let disk = self.pieces.disk.as_ref()?;
        if let Some(earlier) = &self.earlier
            && let Some(directories) = self.lock().get(&earlier.store)
        {
            earlier.replace(directories.wanted());
        }
        disk.finish();
        disk.trouble()
    }

    /// Reads a store by a client that is there already, under its name: `s3://bucket`.
    pub fn add_store(&self, name: &str, client: Arc<dyn ObjectStore>) {
        let directories = self.directories(name.to_owned(), client);
        self.lock().insert(name.to_owned(), directories);
    }

    fn directories(&self, name: String, client: Arc<dyn ObjectStore>) -> Arc<Directories> {
        let Connector { counts, policy } = self.connector.clone();
        let in_flight = tokio::sync::Semaphore::new(MOST_IN_FLIGHT);
        let store = Arc::new(Store { name, client, counts, policy, in_flight });
        let directories = Arc::new(Directories::new(store));
        self.list_as_earlier(&directories);
        directories
    }

    /// Asks for all directories at once that the session before read.
    fn list_as_earlier(&self, directories: &Arc<Directories>) {
        let Some(earlier) = &self.earlier else { return };
        // Who reads learns why no thread can be started.
        let Ok(runtime) = runtime::handle() else { return };
        if earlier.store == directories.store.name {
            let _within = runtime.enter();
            for directory in &earlier.directories {
                list_along(directories, directory.clone(), &self.pieces);
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn directories_of(&self, store: &str) -> Arc<Directories> {
        self.lock()[store].clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Directories>>> {
        self.stores.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store and the key of a path that is a URL; `None` for a path of this machine.
    fn place_of(&self, path: &Path) -> Result<Option<(Arc<Directories>, Key)>> {
        let Some(url) = Url::of(path)? else { return Ok(None) };
        let mut stores = self.lock();
        if let Some(store) = stores.get(&url.store) {
            return Ok(Some((store.clone(), url.key)));
        }
        let directories =
            self.directories(url.store.clone(), connect::client(&url, &self.connector)?);
        stores.insert(url.store, directories.clone());
        Ok(Some((directories, url.key)))
    }

    /// What a path on a store leads to; `None` for a path of this machine.
    fn entry(&self, path: &Path) -> io::Result<Option<Entry>> {
        let Some((directories, key)) = self.place_of(path)? else { return Ok(None) };
        let pieces = self.pieces.clone();
        let entry = runtime::wait(async move {
            let (directory, _) = parted(&key).unwrap_or_else(|| (key.clone(), String::new()));
            directories.want(&directory);
            let entry = directories.entry(&key).await?;
            fetch_along(&directories, &directory, &pieces);
            Result::Ok(entry)
        })??;
        entry.map(Some).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Asks for what is likely to be wanted next; nobody waits for it, and what fails is asked for again by who wants it.
fn fetch_along(directories: &Arc<Directories>, directory: &Key, pieces: &Arc<Pieces>) {
    let Some(Some(listing)) = directories.known(directory) else { return };
    if !directories.follow(directory) {
        return;
    }
    for expected in foresight::expected(directory, &listing) {
        match expected {
            Expected::Listing(key) => list_along(directories, key, pieces),
            Expected::Names(key) => {
                let directories = directories.clone();
                tokio::spawn(async move { directories.listing(&key).await });
            }
            Expected::File(name) => fetch_file_along(&listing, &name, pieces),
        }
    }
}

/// The same of a directory, with what follows from it.
fn list_along(directories: &Arc<Directories>, directory: Key, pieces: &Arc<Pieces>) {
    let (directories, pieces) = (directories.clone(), pieces.clone());
    tokio::spawn(async move {
        if directories.listing(&directory).await.is_ok() {
            fetch_along(&directories, &directory, &pieces);
        }
    });
}

/// The same of a small file.
fn fetch_file_along(listing: &Listing, name: &str, pieces: &Arc<Pieces>) {
    let Some(Entry::Object(object)) = listing.get(name).cloned() else { return };
    let pieces = pieces.clone();
    if (1..=foresight::MOST_BYTES).contains(&object.len) {
        tokio::spawn(async move { pieces.fetch(&object, 0..object.len).await });
    }
}

fn metadata_of(entry: &Entry) -> Metadata {
    match entry {
        Entry::Directory => Metadata { len: 0, is_dir: true },
        Entry::Object(object) => Metadata { len: object.len, is_dir: false },
    }
}

impl FileSystem for RemoteFiles {
    fn open(&self, path: &Path, caching: Caching) -> io::Result<Box<dyn File>> {
        match self.entry(path)? {
            None => self.below.open(path, caching),
            Some(Entry::Directory) => Err(io::ErrorKind::IsADirectory.into()),
            Some(Entry::Object(_)) if caching == Caching::Direct => Err(Refusal::NoDirectIo.into()),
            Some(Entry::Object(object)) => {
                Ok(Box::new(RemoteFile::new(object, self.pieces.clone())))
            }
        }
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let Some((directories, key)) = self.place_of(path)? else {
            return self.below.read_dir(path);
        };
        let above = directories.clone();
        let directory = key.clone();
        let pieces = self.pieces.clone();
        let listing = runtime::wait(async move {
            directories.want(&directory);
            let listing = directories.listing(&directory).await?;
            fetch_along(&directories, &directory, &pieces);
            Result::Ok(listing)
        })??;
        let Some(listing) = listing else {
            let found = runtime::wait(async move { above.entry(&key).await })??;
            return Err(match found {
                Some(Entry::Object(_)) => io::ErrorKind::NotADirectory.into(),
                _ => io::ErrorKind::NotFound.into(),
            });
        };
        let entry = |(name, entry): (&String, &Entry)| DirEntry {
            name: name.into(),
            metadata: Some(metadata_of(entry)),
        };
        Ok(listing.iter().map(entry).collect())
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        match self.entry(path)? {
            None => self.below.metadata(path),
            Some(entry) => Ok(metadata_of(&entry)),
        }
    }

    fn node(&self, path: &Path) -> io::Result<Node> {
        match self.entry(path)? {
            None => self.below.node(path),
            Some(Entry::Directory) => Ok(Node::Directory),
            Some(Entry::Object(object)) => Ok(Node::File { len: object.len }),
        }
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        // Nothing there is a link, and whether it is there is seen when it is read.
        if is_url(path) { Ok(path.to_owned()) } else { self.below.resolve(path) }
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        if is_url(path) { Err(read_only()) } else { self.below.identity(path) }
    }

    fn state(&self, path: &Path) -> io::Result<FileState> {
        if is_url(path) { Err(read_only()) } else { self.below.state(path) }
    }

    fn access(&self, path: &Path) -> io::Result<Access> {
        if is_url(path) { Err(read_only()) } else { self.below.access(path) }
    }

    fn space_left(&self, path: &Path) -> io::Result<SpaceLeft> {
        if is_url(path) { Err(read_only()) } else { self.below.space_left(path) }
    }

    fn open_queue(&self, kind: QueueKind, depth: u32) -> io::Result<Box<dyn IoQueue>> {
        match kind {
            QueueKind::Own => Ok(Box::new(RemoteQueue::new(self.pieces.clone())?)),
            QueueKind::Worker | QueueKind::IoUring => self.below.open_queue(kind, depth),
        }
    }

    fn capabilities(&self) -> Capabilities {
        match self.is_distant {
            true => Capabilities { of_this_machine: false, distant: true, own_queue: true },
            false => self.below.capabilities(),
        }
    }

    fn read_whole(&self, path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(entry) = self.entry(path)? else { return self.below.read_whole(path, limit) };
        let Entry::Object(object) = entry else { return Err(io::ErrorKind::IsADirectory.into()) };
        let len = object.len.min(limit.saturating_add(1));
        let mut contents = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        RemoteFile::new(object, self.pieces.clone()).read_at(&mut contents, 0)?;
        Ok(Some(contents))
    }

    fn place(&self, path: &Path) -> StorageTraits {
        if is_url(path) { StorageTraits::default() } else { self.below.place(path) }
    }
}

/// What is asked of files of a machine.
fn read_only() -> io::Error {
    io::ErrorKind::Unsupported.into()
}
