//! [`MemoryFiles`]: a tree of files held in memory, read-only.
//!
//! A small cluster that came from elsewhere, an archive or a network, is read without a directory on this machine; and the
//! tests of reading run over it, to show that nothing goes past the seam.
//!
//! Invariants: paths are absolute, and directories are there because something lies below them or they were put there;
//! links are followed as the operating system follows them, so a tablespace lies in `pg_tblspc` as on a disk.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::capabilities::Capabilities;
use crate::error::Result;
use crate::file_tree::{FileTree, TreeEntry};
use crate::host_files::HostFiles;
use crate::seam::{Caching, DirEntry, File, FileSystem, IoQueue, Metadata, Node, QueueKind};
use crate::worker_queue::WorkerQueue;

/// Files in memory, by absolute path.
#[derive(Debug, Clone, Default)]
pub struct MemoryFiles {
    tree: FileTree<Arc<[u8]>>,
}

impl MemoryFiles {
    /// No files.
    pub fn new() -> Self {
        Self::default()
    }

    /// All that lies below a directory of this machine, under its own absolute path; with what links in it lead to, as
    /// those of tablespaces do.
    ///
    /// # Errors
    /// When something cannot be read.
    pub fn load(host: &HostFiles, directory: &Path) -> Result<Self> {
        let mut files = Self::new();
        let directory = host.resolve(directory)?;
        let mut waiting = vec![directory];
        while let Some(path) = waiting.pop() {
            if files.tree.contains(&path) {
                continue;
            }
            match host.storage().node(&path)? {
                Node::File { .. } => {
                    let contents = host.read_file(&path, u64::MAX)?;
                    files.insert(&path, contents);
                }
                Node::Directory => {
                    let entries = host.read_dir(&path)?;
                    waiting.extend(entries.into_iter().map(|entry| path.join(entry.name)));
                    files.tree.insert(&path, TreeEntry::Directory);
                }
                Node::Link { target } => {
                    waiting.extend(host.resolve(&path).ok());
                    files.tree.insert(&path, TreeEntry::Link(target));
                }
                // A server's socket holds nothing that is read.
                Node::Stream | Node::Other => {}
            }
        }
        Ok(files)
    }

    /// Puts a file there, in place of what was.
    pub fn insert(&mut self, path: &Path, contents: impl Into<Arc<[u8]>>) {
        self.tree.insert(path, TreeEntry::File(contents.into()));
    }
}

impl FileSystem for MemoryFiles {
    fn open(&self, path: &Path, caching: Caching) -> io::Result<Box<dyn File>> {
        match self.tree.file(path)? {
            // There is no page cache to go past.
            _ if caching == Caching::Direct => Err(io::ErrorKind::Unsupported.into()),
            contents => Ok(Box::new(MemoryFile(contents.clone()))),
        }
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.tree.read_dir(path, len)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.tree.metadata(path, len)
    }

    fn node(&self, path: &Path) -> io::Result<Node> {
        self.tree.node(path, len)
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        self.tree.resolve(path)
    }

    fn open_queue(&self, kind: QueueKind, depth: u32) -> io::Result<Box<dyn IoQueue>> {
        match kind {
            QueueKind::Worker => Ok(Box::new(WorkerQueue::new(depth)?)),
            QueueKind::IoUring | QueueKind::Own => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { of_this_machine: false, ..Capabilities::default() }
    }
}

fn len(contents: &Arc<[u8]>) -> u64 {
    contents.len() as u64
}

#[derive(Debug)]
struct MemoryFile(Arc<[u8]>);

impl File for MemoryFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.0.get(start..).unwrap_or_default();
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::storage::Storage;

    /// A directory with a file, a directory with nothing in it, and links: to it, to a file, to nothing, in a circle.
    fn tree() -> (tempfile::TempDir, PathBuf, Storage) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (data, space) = (root.join("data"), root.join("space"));
        std::fs::create_dir_all(data.join("pg_tblspc/empty")).unwrap();
        std::fs::create_dir_all(space.join("5")).unwrap();
        std::fs::write(data.join("PG_VERSION"), "15\n").unwrap();
        std::fs::write(space.join("5/16384"), [7; 100]).unwrap();
        for (target, link) in [
            (space.as_os_str().to_str().unwrap(), "pg_tblspc/1"),
            ("../PG_VERSION", "pg_tblspc/version"),
            ("nowhere", "pg_tblspc/broken"),
            ("circle", "pg_tblspc/circle"),
        ] {
            std::os::unix::fs::symlink(target, data.join(link)).unwrap();
        }
        let files = MemoryFiles::load(&HostFiles::real(), &data).unwrap();
        (dir, data, Storage::new(Arc::new(files)))
    }

    fn names(storage: &Storage, path: &Path) -> Vec<String> {
        let entries = storage.read_dir(path).unwrap().into_iter();
        let mut names: Vec<_> = entries.map(|e| e.name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn every_answer_is_that_of_the_directory_it_was_loaded_from() {
        let (_dir, data, memory) = tree();
        let real = Storage::real();
        for path in [
            "",
            "PG_VERSION",
            "pg_tblspc",
            "pg_tblspc/1",
            "pg_tblspc/1/5",
            "pg_tblspc/1/5/16384",
            "pg_tblspc/../pg_tblspc/1/5/../../data/PG_VERSION",
            "pg_tblspc/version",
            "pg_tblspc/broken",
            "pg_tblspc/circle",
            "pg_tblspc/empty",
            "absent",
            "absent/..",
            "PG_VERSION/below",
            "PG_VERSION/..",
        ] {
            let path = data.join(path);
            let asked = |storage: &Storage| {
                let metadata = storage
                    .metadata(&path)
                    .map(|found| (found.is_dir, if found.is_dir { 0 } else { found.len }));
                let text = |error: Error| error.to_string();
                (
                    metadata.map_err(text),
                    storage.resolve(&path).map_err(text),
                    storage.node(&path).map_err(text),
                )
            };
            assert_eq!(asked(&memory), asked(&real), "{}", path.display());
        }
        for directory in ["", "pg_tblspc", "pg_tblspc/1/5", "pg_tblspc/empty"] {
            let directory = data.join(directory);
            assert_eq!(names(&memory, &directory), names(&real, &directory));
        }
        let file = data.join("pg_tblspc/1/5/16384");
        assert_eq!(memory.read_file(&file, 1000).unwrap(), [7; 100]);
        assert!(memory.read_dir(&data.join("PG_VERSION")).is_err());
        assert!(memory.open(&data).is_err());
    }

    #[test]
    fn nothing_can_be_written() {
        let (_dir, data, memory) = tree();
        let made = memory.create_dir(&data.join("new")).unwrap_err();
        assert!(matches!(made.kind(), crate::ErrorKind::Refused(_)), "{made}");
    }
}
