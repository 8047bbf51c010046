//! [`RedirectedFiles`]: a file system in which some directories are read elsewhere.
//!
//! The tablespaces of a copied data directory lie where their links do not lead, or have no links. Whoever knows where they
//! are says so once, below everything that reads, and paths stay what they are in the cluster.
//!
//! Invariants: what is read elsewhere is shown where it belongs as a symbolic link would be; nothing can be written.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::capabilities::Capabilities;
use crate::seam::{
    Access, Caching, DirEntry, File, FileState, FileSystem, Identity, IoQueue, Metadata, Node,
    QueueKind, SpaceLeft,
};
use crate::storage_traits::StorageTraits;

/// A directory, and where it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// The path that is asked for.
    pub path: PathBuf,
    /// The directory that is read.
    pub target: PathBuf,
}

/// A file system with some directories elsewhere; it reads only.
#[derive(Debug)]
pub struct RedirectedFiles {
    below: Arc<dyn FileSystem>,
    redirects: Vec<Redirect>,
}

impl RedirectedFiles {
    /// The file system `below`, with these directories elsewhere in it.
    pub fn new(below: Arc<dyn FileSystem>, redirects: Vec<Redirect>) -> Self {
        Self { below, redirects }
    }

    /// Where a path is read.
    fn real(&self, path: &Path) -> PathBuf {
        let found = self.redirects.iter().find_map(|Redirect { path: from, target }| {
            let rest = path.strip_prefix(from).ok()?;
            Some(if rest.as_os_str().is_empty() { target.clone() } else { target.join(rest) })
        });
        found.unwrap_or_else(|| path.to_owned())
    }
}

impl FileSystem for RedirectedFiles {
    fn open(&self, path: &Path, caching: Caching) -> io::Result<Box<dyn File>> {
        self.below.open(&self.real(path), caching)
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let inside = || self.redirects.iter().filter(|found| found.path.parent() == Some(path));
        let mut entries = match self.below.read_dir(&self.real(path)) {
            // What lies there is elsewhere, and an object store has no empty directories.
            Err(error) if error.kind() == io::ErrorKind::NotFound && inside().next().is_some() => {
                Vec::new()
            }
            entries => entries?,
        };
        for redirect in inside() {
            let Some(name) = redirect.path.file_name() else { continue };
            if entries.iter().all(|entry| entry.name != name) {
                entries.push(DirEntry::named(name.to_owned()));
            }
        }
        Ok(entries)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.below.metadata(&self.real(path))
    }

    fn node(&self, path: &Path) -> io::Result<Node> {
        match self.redirects.iter().find(|redirect| redirect.path == path) {
            Some(redirect) => Ok(Node::Link { target: redirect.target.clone() }),
            None => self.below.node(&self.real(path)),
        }
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        self.below.resolve(&self.real(path))
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        self.below.identity(&self.real(path))
    }

    fn state(&self, path: &Path) -> io::Result<FileState> {
        self.below.state(&self.real(path))
    }

    fn access(&self, path: &Path) -> io::Result<Access> {
        self.below.access(&self.real(path))
    }

    fn space_left(&self, path: &Path) -> io::Result<SpaceLeft> {
        self.below.space_left(&self.real(path))
    }

    fn open_queue(&self, kind: QueueKind, depth: u32) -> io::Result<Box<dyn IoQueue>> {
        self.below.open_queue(kind, depth)
    }

    fn capabilities(&self) -> Capabilities {
        self.below.capabilities()
    }

    fn read_whole(&self, path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
        self.below.read_whole(&self.real(path), limit)
    }

    fn place(&self, path: &Path) -> StorageTraits {
        self.below.place(&self.real(path))
    }

    fn now(&self) -> Duration {
        self.below.now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryFiles, Storage};

    #[test]
    fn a_directory_is_read_elsewhere_under_its_own_name_whether_there_is_a_link_or_not() {
        let mut files = MemoryFiles::new();
        files.insert(Path::new("/d/pg_tblspc/1/PG/5/1"), *b"old");
        files.insert(Path::new("/copy/1/PG/5/1"), *b"new");
        files.insert(Path::new("/copy/2/PG/5/2"), *b"two");
        files.insert(Path::new("/other/file"), *b"file");
        let redirect = |number: u32| Redirect {
            path: format!("/d/pg_tblspc/{number}").into(),
            target: format!("/copy/{number}").into(),
        };
        let lay = |below| -> Arc<dyn FileSystem> {
            let empty = Redirect { path: "/other/none/1".into(), target: "/copy/1".into() };
            Arc::new(RedirectedFiles::new(below, vec![redirect(1), redirect(2), empty]))
        };
        let storage = Storage::new(Arc::new(files)).over(lay);
        let read = |path: &str| storage.read_file(Path::new(path), 100).unwrap();
        assert_eq!(read("/d/pg_tblspc/1/PG/5/1"), b"new");
        assert_eq!(read("/d/pg_tblspc/2/PG/5/2"), b"two");
        let mut names = storage.read_dir(Path::new("/d/pg_tblspc")).unwrap();
        names.sort_by(|one, other| one.name.cmp(&other.name));
        let names: Vec<_> = names.iter().map(|entry| entry.name.to_str().unwrap()).collect();
        assert_eq!(names, ["1", "2"]);
        let node = storage.node(Path::new("/d/pg_tblspc/2")).unwrap();
        assert_eq!(node, Node::Link { target: "/copy/2".into() });
        // A directory that has nothing else need not be there.
        let alone = storage.read_dir(Path::new("/other/none")).unwrap();
        assert!(alone.len() == 1 && alone[0].name == "1");
        assert!(storage.read_dir(Path::new("/other/nothing")).is_err());
        // A name that only begins alike is another one.
        assert!(!storage.exists(Path::new("/d/pg_tblspc/22")).unwrap());
    }
}
