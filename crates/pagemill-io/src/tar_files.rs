//! [`TarFiles`]: a directory whose files lie in tar archives, read where they lie.
//!
//! An archive is listed once, by its headers alone; a file is a window into it. What lies beside the archives under a name of
//! its own is seen too.
//!
//! Members begin at multiples of 512 bytes, so blocks of relations straddle the pages of memory that an archive could be
//! mapped to, and the offsets at which it could be read past the page cache: members are neither mapped nor read directly.
//! Nor are they given to a ring, which knows descriptors and no windows.
//!
//! Invariants: a path below the root whose first name an archive has is looked up in the archives alone, links included, so
//! that nothing in an archive leads to a file of this machine; no two members have one name.

mod listing;

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::capabilities::Capabilities;
use crate::error::{Error, Result};
use crate::file_tree::FileTree;
use crate::file_window::FileWindow;
use crate::refusal::Refusal;
use crate::seam::{
    Access, Caching, DirEntry, File, FileSystem, Identity, IoQueue, Metadata, Node, QueueKind,
    SpaceLeft,
};
use crate::storage::Storage;
use crate::storage_traits::StorageTraits;
use crate::window_queue::WindowQueue;
pub use listing::TarFault;

/// The root of the tree of members.
const TOP: &str = "/";

/// A directory made of the members of archives, read-only.
#[derive(Debug)]
pub struct TarFiles {
    below: Arc<dyn FileSystem>,
    /// The root as it was named, and without links.
    roots: [PathBuf; 2],
    tree: FileTree<FileWindow>,
    /// Names of archives in the root, which are not seen there.
    archives: HashSet<OsString>,
}

impl TarFiles {
    /// No archives: what lies in `root`, which is a directory, is seen as it lies.
    ///
    /// # Errors
    /// When `root` is not there.
    pub fn new(storage: &Storage, root: &Path) -> Result<Self> {
        let roots = [root.to_owned(), storage.resolve(root)?];
        let below = storage.file_system().clone();
        Ok(Self { below, roots, tree: FileTree::default(), archives: HashSet::new() })
    }

    /// Lays the members of an archive into the directory `at`, a path below the root, where they take the place of a link
    /// that another archive has there.
    ///
    /// # Errors
    /// [`ErrorKind::Tar`](crate::ErrorKind::Tar): the archive is damaged or cut short. When it cannot be read.
    pub fn add(&mut self, storage: &Storage, archive: &Path, at: &Path) -> Result<()> {
        let file: Arc<dyn File> = storage.open(archive)?.into();
        self.add_file(storage, archive, file, at)
    }

    /// The same of an archive that is open; its path is for messages, and hidden in the root.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_file(
        &mut self,
        storage: &Storage,
        archive: &Path,
        file: Arc<dyn File>,
        at: &Path,
    ) -> Result<()> {
        if archive.parent() == Some(&self.roots[0]) {
            self.archives.extend(archive.file_name().map(OsString::from));
        }
        let archive = listing::Archive { path: archive, file };
        listing::add_members(storage, archive, &mut self.tree, &Path::new(TOP).join(at))
    }

    /// True when an archive has a file of this name, a path below the root.
    pub fn has_file(&self, path: &Path) -> bool {
        self.tree.file(&Path::new(TOP).join(path)).is_ok()
    }

    /// Where a path is looked up in the archives; `None` for what lies outside of them.
    fn inside(&self, path: &Path) -> Option<PathBuf> {
        let below = self.roots.iter().find_map(|root| path.strip_prefix(root).ok())?;
        let within = Path::new(TOP).join(below);
        match below.components().next() {
            None => Some(within),
            Some(first) => self.tree.contains(&Path::new(TOP).join(first)).then_some(within),
        }
    }

    /// What lies beside the archives under names that they have not.
    fn beside(&self, taken: &[DirEntry]) -> io::Result<Vec<DirEntry>> {
        let mut beside = self.below.read_dir(&self.roots[0])?;
        let taken: HashSet<_> = taken.iter().map(|entry| &entry.name).collect();
        beside.retain(|entry| !self.archives.contains(&entry.name) && !taken.contains(&entry.name));
        Ok(beside)
    }
}

impl FileSystem for TarFiles {
    fn open(&self, path: &Path, caching: Caching) -> io::Result<Box<dyn File>> {
        let Some(within) = self.inside(path) else { return self.below.open(path, caching) };
        match self.tree.file(&within)? {
            _ if caching == Caching::Direct => Err(Refusal::NoDirectIoForFile.into()),
            member => Ok(Box::new(member.clone())),
        }
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let Some(within) = self.inside(path) else { return self.below.read_dir(path) };
        let mut entries = self.tree.read_dir(&within, FileWindow::bytes)?;
        if within == Path::new(TOP) {
            let beside = self.beside(&entries)?;
            entries.extend(beside);
        }
        Ok(entries)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        match self.inside(path) {
            Some(within) => self.tree.metadata(&within, FileWindow::bytes),
            None => self.below.metadata(path),
        }
    }

    fn node(&self, path: &Path) -> io::Result<Node> {
        match self.inside(path) {
            Some(within) => self.tree.node(&within, FileWindow::bytes),
            None => self.below.node(path),
        }
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        let Some(within) = self.inside(path) else { return self.below.resolve(path) };
        let real = self.tree.resolve(&within)?;
        Ok(self.roots[1].join(real.strip_prefix(TOP).unwrap_or(&real)))
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        match self.inside(path) {
            Some(within) if within != Path::new(TOP) => Err(io::ErrorKind::Unsupported.into()),
            _ => self.below.identity(path),
        }
    }

    fn access(&self, path: &Path) -> io::Result<Access> {
        match self.inside(path) {
            Some(_) => self.below.access(&self.roots[0]),
            None => self.below.access(path),
        }
    }

    fn space_left(&self, path: &Path) -> io::Result<SpaceLeft> {
        match self.inside(path) {
            Some(_) => self.below.space_left(&self.roots[0]),
            None => self.below.space_left(path),
        }
    }

    fn open_queue(&self, kind: QueueKind, depth: u32) -> io::Result<Box<dyn IoQueue>> {
        match kind {
            QueueKind::Own => Ok(Box::new(WindowQueue::new(self.below.open_queue(kind, depth)?))),
            QueueKind::Worker | QueueKind::IoUring => self.below.open_queue(kind, depth),
        }
    }

    fn capabilities(&self) -> Capabilities {
        self.below.capabilities()
    }

    fn place(&self, path: &Path) -> StorageTraits {
        match self.inside(path) {
            Some(_) => self.below.place(&self.roots[0]),
            None => self.below.place(path),
        }
    }

    fn now(&self) -> Duration {
        self.below.now()
    }
}

impl From<TarFault> for crate::error::ErrorKind {
    fn from(fault: TarFault) -> Self {
        Self::Tar(fault)
    }
}

/// An error of an archive, at a header.
fn fault_at(archive: &Path, offset: u64, fault: TarFault) -> Error {
    Error::new(fault, archive).with_offset(offset)
}

#[cfg(test)]
mod tests;
