//! Power cuts: a file system that remembers every change in order, and directories as a power cut at any of them
//! could leave them.
//!
//! ```text
//!  program ── Storage ── PowerCutFileSystem ──▶ the real directory
//!                              │
//!                              └─ recording: create, write, allocate, cut, sync, rename, remove, …
//!                                     │
//!             image(call, loss) ──────┘──▶ a directory as it could be after the power came back
//! ```
//!
//! One run of a program gives all its power cuts: call number n is cut when everything before it was called, and
//! it and all later ones were not.
//!
//! What a power cut may do to each change that was not yet synced is [`Loss`]. It is meant to be worse than any
//! one file system: a name is there for good only once its directory was synced, synced bytes are of no use
//! without a name, and bytes may come without their order. A sync that failed makes nothing durable, and what it
//! should have made so is not saved by a later one either.
//!
//! Left out: mappings, whose changes nobody sees, and files outside the recorded directory (both are refused);
//! garbage in the place of bytes that were never written (they read as zeros).
//!
//! Invariants: calls are numbered in the order in which they were made, from 0, and made one at a time; the real
//! directory is what the program sees; an image depends on the recording, the call and the loss alone.

mod copied_tree;
mod image;
mod recorded_file;
mod recording;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pagemill_io::{
    Access, Caching, Create, DirEntry, File, FileSystem, Identity, IoQueue, Metadata, Node,
    OpenForWrite, QueueKind, RealFileSystem, SpaceLeft,
};

use self::recorded_file::{InlineQueue, RecordedFile};
use self::recording::{Change, Recording};

/// What becomes of changes that were not synced when the power went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// All of them are lost.
    All,
    /// None is: the process was killed, and the machine went on.
    None,
    /// Each is kept, lost or, if it is a write, torn: some of its sectors of 512 bytes are there, some not. Which
    /// ones follows from the seed.
    Torn(u64),
    /// As a journal that is committed after the data it speaks of (`ext4` with `data=ordered`): names and sizes
    /// are those of some moment since the last sync, what files grew by is there, and what was written over
    /// is kept, lost or torn. Which follows from the seed.
    Ordered(u64),
}

/// What goes wrong at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteFault {
    /// This call finds no space (ENOSPC), if it needs any.
    NoSpace,
    /// Neither this call nor any later one that needs space finds any.
    NoSpaceFromHere,
    /// The device fails this call (EIO).
    Failed,
    /// The file system became read-only (EROFS) with this call, and stays so.
    ReadOnlyFromHere,
}

/// The recording file system. Clones share the recording.
#[derive(Debug, Clone)]
pub struct PowerCutFileSystem {
    real: RealFileSystem,
    recording: Arc<Mutex<Recording>>,
}

impl PowerCutFileSystem {
    /// Begins to record what is done to the files of `directory`, whose present state, taken for durable, is copied
    /// to `snapshot`.
    ///
    /// # Errors
    /// When it cannot be copied.
    pub fn record(directory: &Path, snapshot: &Path) -> io::Result<Self> {
        copied_tree::copy(directory, snapshot)?;
        let recording = Recording::new(directory.canonicalize()?, snapshot.to_owned());
        Ok(Self { real: RealFileSystem, recording: Arc::new(Mutex::new(recording)) })
    }

    /// How many calls that change something were made.
    pub fn calls(&self) -> usize {
        self.recording().calls()
    }

    /// A call in words, for messages.
    pub fn describe(&self, call: usize) -> String {
        self.recording().describe(call)
    }

    /// Lets something go wrong at a call that is yet to come.
    pub fn fail(&self, call: usize, fault: WriteFault) {
        self.recording().fail(call, fault);
    }

    /// Makes `into`, which must not exist, what the recorded directory could be after a power cut just before a
    /// call; with [`calls`](Self::calls) as its number, after all of them.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn image(&self, call: usize, loss: Loss, into: &Path) -> io::Result<()> {
        image::make(&self.recording(), call, loss, into)
    }

    fn recording(&self) -> MutexGuard<'_, Recording> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change of names, and records it.
    fn change(&self, change: Change, act: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.recording().perform(change, act)
    }

    /// A path as the recording knows it: within the recorded directory, whatever links led there.
    fn within(&self, path: &Path) -> io::Result<PathBuf> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new(".")).canonicalize()?;
        self.inside(&parent.join(path.file_name().unwrap_or_default()))
    }

    fn inside(&self, path: &Path) -> io::Result<PathBuf> {
        let within = path.strip_prefix(&self.recording().directory).map(Path::to_owned);
        within.map_err(|_| {
            let why = format!("{} is outside of the directory that is recorded", path.display());
            io::Error::other(why)
        })
    }
}

impl FileSystem for PowerCutFileSystem {
    fn open(&self, path: &Path, caching: Caching) -> io::Result<Box<dyn File>> {
        self.real.open(path, caching)
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.real.read_dir(path)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.real.metadata(path)
    }

    fn open_for_write(&self, path: &Path, how: OpenForWrite) -> io::Result<Box<dyn File>> {
        let within = self.within(path)?;
        let mut recording = self.recording();
        let absent = std::fs::symlink_metadata(path).is_err();
        let file = if absent && how.create != Create::Existing {
            let number = recording.new_file();
            let change = Change::Create { path: within.clone(), file: number };
            recording.perform(change, || self.real.open_for_write(path, how))?
        } else {
            recording.check_writable()?;
            self.real.open_for_write(path, how)?
        };
        let number = recording.file_of(&within);
        Ok(Box::new(RecordedFile::new(file, number, self.recording.clone())))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (old, new) = (self.within(from)?, self.within(to)?);
        let file = self.recording().file_of(&old);
        self.change(Change::Rename { from: old, to: new, file }, || self.real.rename(from, to))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (old, new) = (self.within(from)?, self.within(to)?);
        let file = self.recording().file_of(&old);
        self.change(Change::Create { path: new, file }, || self.real.link(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.change(Change::Remove { path: self.within(path)? }, || self.real.remove(path))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let change = Change::CreateDir { path: self.within(path)? };
        self.change(change, || self.real.create_dir(path))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let change = Change::RemoveDir { path: self.within(path)? };
        self.change(change, || self.real.remove_dir(path))
    }

    fn make_symlink(&self, target: &Path, path: &Path) -> io::Result<()> {
        let change = Change::Link { path: self.within(path)?, target: target.to_owned() };
        self.change(change, || self.real.make_symlink(target, path))
    }

    fn node(&self, path: &Path) -> io::Result<Node> {
        self.real.node(path)
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        self.real.resolve(path)
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        self.real.identity(path)
    }

    fn access(&self, path: &Path) -> io::Result<Access> {
        self.real.access(path)
    }

    fn set_access_like(&self, path: &Path, like: &Path) -> io::Result<()> {
        // Permissions are none of what an image tells of.
        self.recording().check_writable()?;
        self.real.set_access_like(path, like)
    }

    fn space_left(&self, path: &Path) -> io::Result<SpaceLeft> {
        self.real.space_left(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        // What the image is about needs no real sync.
        let path = self.inside(&path.canonicalize()?)?;
        self.change(Change::SyncDir { path }, || Ok(()))
    }

    fn open_queue(&self, _kind: QueueKind, _depth: u32) -> io::Result<Box<dyn IoQueue>> {
        Ok(Box::new(InlineQueue::default()))
    }
}
