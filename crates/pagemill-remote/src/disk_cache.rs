//! Pieces of objects on a disk of this machine, so that what was read once need not come over the network again.
//!
//! ```text
//! DIR/pieces-1/<hash of the object>/<number>.<class>      one piece each:
//!     bytes | identity of the object and the piece | its length, 4 | crc32c of both, 4 | magic, 8
//! DIR/pieces-1/<hash of the path>/listed                  likewise: what was listed under a path
//! ```
//!
//! A piece is written beside its place under another name, and renamed; so several processes may use one directory, and one that
//! is killed leaves at most a file that nobody looks at, which a later one removes.
//!
//! Invariants: a piece whose checksum or identity is wrong is no piece: nothing is ever synced, so a power failure may tear it;
//! no failure of the cache is one of a read; there is no more than the limit, as far as the last look at the directory told.

use std::fs::{self, DirBuilder, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, IoSliceMut, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tempfile::NamedTempFile;

use crate::object::Object;
use crate::request_counts::RequestCounts;
use crate::runtime;

/// Of this form; another form has another name.
const FOLDER: &str = "pieces-1";
const MAGIC: [u8; 8] = *b"pgmpiece";
/// Checksum, length and magic.
const TRAILER: usize = 16;
/// What a file that is being written is called.
const UNFINISHED: &str = ".new-";
/// After that time nobody writes it any more.
const ABANDONED: Duration = Duration::from_secs(600);
/// A piece that was used so lately is not marked as used again.
const USED_LATELY: Duration = Duration::from_secs(60);
/// The directory is looked at again when this share of the limit was written.
const SHARE: u64 = 16;
/// To make a file in a folder that others remove when it is empty.
const ATTEMPTS: usize = 8;

/// A directory with pieces.
#[derive(Debug)]
pub(crate) struct DiskCache {
    directory: PathBuf,
    limit: u64,
    counts: Arc<RequestCounts>,
    room: Mutex<Room>,
    trouble: OnceLock<String>,
    /// Pieces that are being written.
    writing: Mutex<usize>,
    written: Condvar,
}

/// What may be written.
#[derive(Debug, Default)]
struct Room {
    /// Bytes that may still be promised before the directory is looked at.
    left: u64,
    /// Bytes that were promised and may not lie in the directory yet.
    promised: u64,
}

/// What a piece is known by.
#[derive(Debug, Clone)]
pub(crate) struct PieceKey {
    name: String,
    identity: String,
}

impl PieceKey {
    /// A piece of a size that small reads have; `None` where nothing tells one version of the object from another.
    pub(crate) fn small(object: &Object, number: u64) -> Option<Self> {
        Self::of(object, number, "small")
    }

    /// A piece of the size that scans have.
    pub(crate) fn large(object: &Object, number: u64) -> Option<Self> {
        Self::of(object, number, "large")
    }

    /// What was listed under a path, which is no part of an object.
    pub(crate) fn listed(path: &str) -> Self {
        Self::below(path, "listed")
    }

    fn of(object: &Object, number: u64, class: &str) -> Option<Self> {
        let (store, key, len, etag) = (&object.store.name, &object.key, object.len, object.etag()?);
        Some(Self::below(&format!("{store}/{key}\n{len}\n{etag}"), &format!("{number}.{class}")))
    }

    fn below(object: &str, name: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        object.hash(&mut hasher);
        let identity = format!("{object}\n{name}");
        Self { name: format!("{:016x}/{name}", hasher.finish()), identity }
    }
}

impl DiskCache {
    /// The pieces in a directory, which is made when the first is written.
    pub(crate) fn new(directory: &Path, limit: u64, counts: Arc<RequestCounts>) -> Self {
        Self {
            directory: directory.join(FOLDER),
            limit,
            counts,
            room: Mutex::default(),
            trouble: OnceLock::new(),
            writing: Mutex::new(0),
            written: Condvar::new(),
        }
    }

    /// Why nothing is kept any more.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.get().map(String::as_str)
    }

    /// A piece, if it is there and sound.
    pub(crate) async fn read(self: &Arc<Self>, key: PieceKey) -> Option<Bytes> {
        let this = self.clone();
        runtime::blocking(move || this.read_now(&key)).await?
    }

    /// The same by a thread that may wait.
    pub(crate) fn read_now(&self, key: &PieceKey) -> Option<Bytes> {
        let path = self.directory.join(&key.name);
        let mut file = File::open(&path).ok()?;
        let found = file.metadata().ok()?;
        let len = usize::try_from(found.len()).ok()?;
        let mut bytes = Vec::with_capacity(len + 1);
        file.read_to_end(&mut bytes).ok()?;
        let Some(data) = checked(&bytes, &key.identity) else {
            // Nobody else believes it either.
            let _ = fs::remove_file(&path);
            return None;
        };
        mark_as_used(&file, &found);
        self.counts.count_cached(data);
        bytes.truncate(data);
        Some(bytes.into())
    }

    /// A piece of just this length, if it is there and sound, right to where its bytes are wanted. Where there is none, what is there
    /// then means nothing.
    pub(crate) fn read_into(&self, key: &PieceKey, mut buffers: Vec<&mut [u8]>) -> bool {
        let len: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        let path = self.directory.join(&key.name);
        let Ok(mut file) = File::open(&path) else { return false };
        let rest = key.identity.len() + TRAILER;
        let Ok(found) = file.metadata() else { return false };
        let mut rest_read = vec![0; rest];
        let is_read = found.len() == (len + rest) as u64
            && read_all(&mut file, &mut buffers).is_ok()
            && file.read_exact(&mut rest_read).is_ok();
        let sum = || buffers.iter().fold(0, |sum, bytes| crc32c::crc32c_append(sum, bytes));
        if !is_read || !is_rest(&rest_read, &key.identity, sum()) {
            // Nobody else believes it either.
            let _ = fs::remove_file(&path);
            return false;
        }
        mark_as_used(&file, &found);
        self.counts.count_cached(len);
        true
    }

    /// While it is held, something is to be kept: a reader has its bytes before they are.
    pub(crate) fn announce(self: &Arc<Self>) -> Expected {
        *self.lock_writing() += 1;
        Expected(self.clone())
    }

    /// Keeps a piece, some time soon.
    pub(crate) fn keep(self: &Arc<Self>, key: PieceKey, bytes: Bytes) {
        if self.trouble.get().is_some() {
            return;
        }
        let this = self.announce();
        tokio::task::spawn_blocking(move || this.0.keep_now(&key, &bytes));
    }

    /// Keeps a piece before it returns.
    pub(crate) fn keep_now(&self, key: &PieceKey, bytes: &[u8]) {
        if let Err(error) = self.write(key, bytes) {
            let _ = self.trouble.set(error.to_string());
        }
    }

    /// Waits until all is written that was to be kept.
    pub(crate) fn finish(&self) {
        let mut writing = self.lock_writing();
        while *writing > 0 {
            writing = self.written.wait(writing).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock_writing(&self) -> MutexGuard<'_, usize> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, key: &PieceKey, bytes: &[u8]) -> io::Result<()> {
        let len = (bytes.len() + key.identity.len() + TRAILER) as u64;
        if len > self.limit / SHARE || self.trouble.get().is_some() {
            return Ok(());
        }
        let Some(_promise) = self.promise(len)? else { return Ok(()) };
        let path = self.directory.join(&key.name);
        let mut file = new_file(path.parent().unwrap_or(&self.directory))?;
        let identity = key.identity.as_bytes();
        let sum = crc32c::crc32c_append(crc32c::crc32c(bytes), identity);
        file.write_all(bytes)?;
        let mut rest = identity.to_vec();
        rest.extend(trailer_len(&key.identity));
        rest.extend(sum.to_le_bytes());
        rest.extend(MAGIC);
        file.write_all(&rest)?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Room for a piece; `None` where those that are being written take all there is.
    fn promise(&self, len: u64) -> io::Result<Option<Promise<'_>>> {
        let mut room = self.lock_room();
        if room.left < len {
            room.left = self.make_room(room.promised)?;
        }
        let Some(left) = room.left.checked_sub(len) else { return Ok(None) };
        *room = Room { left, promised: room.promised + len };
        Ok(Some(Promise { cache: self, len }))
    }

    fn lock_room(&self) -> MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much may be written until the next look: what was used longest ago goes, where there is too much.
    fn make_room(&self, promised: u64) -> io::Result<u64> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let mut found = Vec::new();
        for folder in fs::read_dir(&self.directory)?.flatten() {
            found.extend(pieces_in(&folder.path()));
        }
        let share = self.limit / SHARE;
        // A piece that is being written may be counted twice, and is not left out in any case.
        let mut bytes = promised + found.iter().map(|piece| piece.bytes).sum::<u64>();
        if bytes + share > self.limit {
            found.sort_by_key(|piece| piece.used);
            // One that is being written is somebody's.
            for piece in found.iter().filter(|piece| piece.is_finished) {
                if bytes + 2 * share <= self.limit {
                    break;
                }
                // Another process may have removed it.
                let _ = fs::remove_file(&piece.path);
                bytes -= piece.bytes;
            }
        }
        Ok(self.limit.saturating_sub(bytes).min(share))
    }
}

/// Bytes that a piece takes while it is being written.
struct Promise<'a> {
    cache: &'a DiskCache,
    len: u64,
}

impl Drop for Promise<'_> {
    fn drop(&mut self) {
        self.cache.lock_room().promised -= self.len;
    }
}

/// A file that is being written, in a folder that is made for it, and made again where one that looks found it empty and removed it.
fn new_file(folder: &Path) -> io::Result<NamedTempFile> {
    let mut attempts = 0;
    loop {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        let file =
            made.and_then(|()| tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder));
        attempts += 1;
        // Removed before there was a file in it, or while it was made.
        let may_pass = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists)
        };
        match file {
            Err(error) if may_pass(&error) && attempts < ATTEMPTS => {}
            file => return file,
        }
    }
}

/// A file of the cache.
struct FoundPiece {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
    is_finished: bool,
}

/// The pieces of an object; what was left behind half written is removed, and a folder with nothing in it for long.
fn pieces_in(folder: &Path) -> Vec<FoundPiece> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, Ok(metadata)) = (entry.path(), entry.metadata()) else { continue };
        let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let age = used.elapsed().unwrap_or_default();
        let is_finished = !entry.file_name().to_string_lossy().starts_with(UNFINISHED);
        if !is_finished && age > ABANDONED {
            let _ = fs::remove_file(&path);
            continue;
        }
        found.push(FoundPiece { path, bytes: metadata.len(), used, is_finished });
    }
    // One that was made or emptied lately may be about to get a file.
    let changed = fs::metadata(folder).and_then(|metadata| metadata.modified());
    let age = changed.ok().and_then(|changed| changed.elapsed().ok());
    if found.is_empty() && age.is_some_and(|age| age > ABANDONED) {
        // It stays where it is not empty.
        let _ = fs::remove_dir(folder);
    }
    found
}

/// Those that are used go last.
fn mark_as_used(file: &File, found: &fs::Metadata) {
    let used = found.modified().ok().and_then(|used| used.elapsed().ok());
    if used.is_none_or(|used| used > USED_LATELY) {
        // It is read all the same, and may go sooner.
        let _ = file.set_modified(SystemTime::now());
    }
}

/// Fills all of the buffers.
fn read_all(file: &mut File, buffers: &mut [&mut [u8]]) -> io::Result<()> {
    let mut slices: Vec<_> = buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
    let mut left = slices.as_mut_slice();
    IoSliceMut::advance_slices(&mut left, 0);
    while !left.is_empty() {
        match file.read_vectored(left) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(got) => IoSliceMut::advance_slices(&mut left, got),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// How many bytes a piece has, where all of the file is sound and it is the one that was asked for.
fn checked(file: &[u8], identity: &str) -> Option<usize> {
    let len = file.len().checked_sub(identity.len() + TRAILER)?;
    let (bytes, rest) = file.split_at(len);
    is_rest(rest, identity, crc32c::crc32c(bytes)).then_some(len)
}

/// Whether this is what stands behind the bytes of a piece, whose checksum is given.
fn is_rest(rest: &[u8], identity: &str, sum: u32) -> bool {
    let Some((found, trailer)) = rest.split_last_chunk::<TRAILER>() else { return false };
    let sum = crc32c::crc32c_append(sum, found);
    trailer[8..] == MAGIC
        && found == identity.as_bytes()
        && trailer[..4] == trailer_len(identity)
        && trailer[4..8] == sum.to_le_bytes()
}

/// The length of an identity as it is written.
fn trailer_len(identity: &str) -> [u8; 4] {
    u32::try_from(identity.len()).unwrap_or(u32::MAX).to_le_bytes()
}

/// Something that is to be kept: when it is dropped it is written, or will not be.
pub(crate) struct Expected(Arc<DiskCache>);

impl Drop for Expected {
    fn drop(&mut self) {
        *self.0.lock_writing() -= 1;
        self.0.written.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    const LIMIT: u64 = 1 << 20;
    const PIECE: usize = 50_000;

    fn cache(directory: &Path) -> DiskCache {
        DiskCache::new(directory, LIMIT, Arc::default())
    }

    fn key(object: usize, number: usize) -> PieceKey {
        let name = format!("{object:016x}/{number}.small");
        PieceKey { identity: name.clone(), name }
    }

    /// At a moment in which nothing is removed and nothing begun. A file that gets its name meanwhile is listed under both, or under
    /// one.
    fn bytes_in(cache: &DiskCache) -> u64 {
        let _room = cache.lock_room();
        let folders = fs::read_dir(&cache.directory).unwrap().flatten();
        let pieces = folders.flat_map(|folder| pieces_in(&folder.path()));
        let file = |piece: FoundPiece| Some((fs::metadata(&piece.path).ok()?.ino(), piece.bytes));
        pieces.filter_map(file).collect::<std::collections::HashMap<_, _>>().into_values().sum()
    }

    #[test]
    fn pieces_that_are_being_written_count_before_they_lie_there() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache(directory.path());
        let promises: Vec<_> =
            std::iter::from_fn(|| cache.promise(PIECE as u64).unwrap()).collect();
        let promised = promises.len() as u64 * PIECE as u64;
        assert!(promised <= LIMIT && promised > LIMIT - LIMIT / SHARE, "{promised}");
        drop(promises);
        assert!(cache.promise(PIECE as u64).unwrap().is_some());
    }

    #[test]
    fn many_writers_stay_within_the_limit_and_none_fails() {
        let directory = tempfile::tempdir().unwrap();
        let cache = cache(directory.path());
        std::thread::scope(|scope| {
            for object in 0..8 {
                let cache = &cache;
                scope.spawn(move || {
                    for number in 0..40 {
                        cache.write(&key(number, object), &[1; PIECE]).unwrap();
                        assert!(bytes_in(cache) <= LIMIT);
                    }
                });
            }
        });
        assert!(bytes_in(&cache) > LIMIT / 2);
    }
}
