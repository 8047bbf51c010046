//! [`ListedFiles`]: a directory whose files are known beforehand from a list, and lie elsewhere, each in its own way.
//!
//! The list is that of a backup, say: it has the names and sizes, so that nothing below is asked for them. What a file is, whoever
//! made the list knows ([`ListedFile`]); it is opened when it is read, and not before.
//!
//! Invariants: a path below the root is looked up in the list alone; nothing can be written.

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::capabilities::Capabilities;
use crate::file_tree::{FileTree, TreeEntry};
use crate::refusal::Refusal;
use crate::seam::{
    Access, Caching, DirEntry, File, FileState, FileSystem, Identity, IoQueue, Metadata, Node,
    QueueKind, SpaceLeft,
};
use crate::storage::Storage;
use crate::storage_traits::StorageTraits;
use crate::window_queue::WindowQueue;

/// The root of the tree of files.
const TOP: &str = "/";

/// A file of the list.
pub trait ListedFile: Send + Sync + Debug {
    /// Bytes of its contents.
    fn bytes(&self) -> u64;

    /// Opens it.
    ///
    /// # Errors
    /// When what it is made of cannot be opened.
    fn open(&self) -> io::Result<Box<dyn File>>;
}

/// Listed files in place of what lies below a directory.
#[derive(Debug)]
pub struct ListedFiles {
    below: Arc<dyn FileSystem>,
    root: PathBuf,
    /// The list: what owners, space and changes are asked of.
    list: PathBuf,
    tree: FileTree<Arc<dyn ListedFile>>,
}

impl ListedFiles {
    /// An empty directory `root`, of which the file `list` tells.
    pub fn new(storage: &Storage, root: &Path, list: &Path) -> Self {
        let mut tree = FileTree::default();
        tree.insert(Path::new(TOP), TreeEntry::Directory);
        let below = storage.file_system().clone();
        Self { below, root: root.to_owned(), list: list.to_owned(), tree }
    }

    /// Adds a file, by its path below the root.
    pub fn add_file(&mut self, path: &Path, file: Arc<dyn ListedFile>) {
        self.tree.insert(&Path::new(TOP).join(path), TreeEntry::File(file));
    }

    /// Adds a directory, by its path below the root, where nothing has that name yet.
    pub fn add_directory(&mut self, path: &Path) {
        let path = Path::new(TOP).join(path);
        if !self.tree.contains(&path) {
            self.tree.insert(&path, TreeEntry::Directory);
        }
    }

    /// Where a path is looked up in the list; `None` for what lies outside.
    fn inside(&self, path: &Path) -> Option<PathBuf> {
        path.strip_prefix(&self.root).ok().map(|within| Path::new(TOP).join(within))
    }

    /// What is asked below in place of a path.
    fn real<'a>(&'a self, path: &'a Path) -> &'a Path {
        if path.starts_with(&self.root) { &self.list } else { path }
    }
}

fn bytes(file: &Arc<dyn ListedFile>) -> u64 {
    file.bytes()
}

impl FileSystem for ListedFiles {
    fn open(&self, path: &Path, caching: Caching) -> io::Result<Box<dyn File>> {
        let Some(within) = self.inside(path) else { return self.below.open(path, caching) };
        match self.tree.file(&within)? {
            _ if caching == Caching::Direct => Err(Refusal::NoDirectIoForFile.into()),
            file => file.open(),
        }
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        match self.inside(path) {
            Some(within) => self.tree.read_dir(&within, bytes),
            None => self.below.read_dir(path),
        }
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        match self.inside(path) {
            Some(within) => self.tree.metadata(&within, bytes),
            None => self.below.metadata(path),
        }
    }

    fn node(&self, path: &Path) -> io::Result<Node> {
        match self.inside(path) {
            Some(within) => self.tree.node(&within, bytes),
            None => self.below.node(path),
        }
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        let Some(within) = self.inside(path) else { return self.below.resolve(path) };
        let real = self.tree.resolve(&within)?;
        Ok(self.root.join(real.strip_prefix(TOP).unwrap_or(&real)))
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        match self.inside(path) {
            Some(_) => Err(io::ErrorKind::Unsupported.into()),
            None => self.below.identity(path),
        }
    }

    /// A file is as it was while the list is.
    fn state(&self, path: &Path) -> io::Result<FileState> {
        if let Some(within) = self.inside(path) {
            self.tree.metadata(&within, bytes)?;
        }
        self.below.state(self.real(path))
    }

    fn access(&self, path: &Path) -> io::Result<Access> {
        self.below.access(self.real(path))
    }

    fn space_left(&self, path: &Path) -> io::Result<SpaceLeft> {
        self.below.space_left(self.real(path))
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

    fn read_whole(&self, path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
        match self.inside(path) {
            Some(_) => Ok(None),
            None => self.below.read_whole(path, limit),
        }
    }

    fn place(&self, path: &Path) -> StorageTraits {
        self.below.place(self.real(path))
    }

    fn now(&self) -> Duration {
        self.below.now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileWindow, MemoryFiles};

    #[derive(Debug)]
    struct Part(Arc<dyn FileSystem>, u64, u64);

    impl ListedFile for Part {
        fn bytes(&self) -> u64 {
            self.2
        }
        fn open(&self) -> io::Result<Box<dyn File>> {
            let whole = self.0.open(Path::new("/repository/bundle"), Caching::Buffered)?;
            Ok(Box::new(FileWindow::new(whole.into(), self.1, self.2)))
        }
    }

    #[test]
    fn listed_files_are_read_and_nothing_else_below_the_root() {
        let mut below = MemoryFiles::new();
        below.insert(Path::new("/repository/bundle"), *b"abcdefgh");
        below.insert(Path::new("/repository/list"), *b"list");
        below.insert(Path::new("/repository/data/stray"), *b"stray");
        let storage = Storage::new(Arc::new(below));
        let root = Path::new("/repository/data");
        let mut files = ListedFiles::new(&storage, root, Path::new("/repository/list"));
        let part = |start, len| Arc::new(Part(storage.file_system().clone(), start, len));
        files.add_file(Path::new("base/1/2"), part(2, 3));
        files.add_file(Path::new("cut"), part(6, 9));
        files.add_directory(Path::new("pg_wal"));
        files.add_directory(Path::new("cut"));
        let over = storage.over(|_| Arc::new(files));
        assert_eq!(over.read_file(&root.join("base/1/2"), 10).unwrap(), b"cde");
        assert_eq!(over.metadata(&root.join("cut")).unwrap(), Metadata { len: 9, is_dir: false });
        let mut names: Vec<_> =
            over.read_dir(root).unwrap().into_iter().map(|entry| entry.name).collect();
        names.sort();
        assert_eq!(names, ["base", "cut", "pg_wal"]);
        assert!(over.read_file(&root.join("stray"), 10).unwrap_err().is_not_found());
        assert_eq!(over.read_file(Path::new("/repository/list"), 10).unwrap(), b"list");
    }
}
