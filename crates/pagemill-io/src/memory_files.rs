//! [`MemoryFiles`]: a tree of files held in memory, read-only.
//!
//! A small cluster that came from elsewhere, an archive or a network, is read without a directory on this machine; and the
//! tests of reading run over it, to show that nothing goes past the seam.
//!
//! Invariants: paths are absolute, and directories are there because something lies below them or they were put there;
//! links are followed as the operating system follows them, so a tablespace lies in `pg_tblspc` as on a disk.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use crate::capabilities::Capabilities;
use crate::error::Result;
use crate::host_files::HostFiles;
use crate::seam::{Caching, DirEntry, File, FileSystem, IoQueue, Metadata, Node, QueueKind};
use crate::worker_queue::WorkerQueue;

/// Links followed in one path at most, as in the kernel.
const MOST_LINKS: usize = 40;

/// Files in memory, by absolute path.
#[derive(Debug, Clone, Default)]
pub struct MemoryFiles {
    entries: BTreeMap<PathBuf, Entry>,
}

#[derive(Debug, Clone)]
enum Entry {
    File(Arc<[u8]>),
    Directory,
    Link(PathBuf),
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
            if files.entries.contains_key(&path) {
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
                    files.insert_entry(&path, Entry::Directory);
                }
                Node::Link { target } => {
                    waiting.extend(host.resolve(&path).ok());
                    files.insert_entry(&path, Entry::Link(target));
                }
                // A server's socket holds nothing that is read.
                Node::Stream | Node::Other => {}
            }
        }
        Ok(files)
    }

    /// Puts a file there, in place of what was.
    pub fn insert(&mut self, path: &Path, contents: impl Into<Arc<[u8]>>) {
        self.insert_entry(path, Entry::File(contents.into()));
    }

    fn insert_entry(&mut self, path: &Path, entry: Entry) {
        for above in path.ancestors().skip(1) {
            self.entries.entry(above.to_owned()).or_insert(Entry::Directory);
        }
        self.entries.insert(path.to_owned(), entry);
    }

    /// What a path leads to, and its name without links.
    fn find(&self, path: &Path) -> io::Result<(PathBuf, &Entry)> {
        let mut real = PathBuf::new();
        let mut left: Vec<OsString> = names(path);
        let mut links = 0;
        let mut found = &Entry::Directory;
        while let Some(name) = left.pop() {
            if !matches!(found, Entry::Directory) {
                return Err(Errno::NOTDIR.into());
            }
            if name == ".." {
                real.pop();
                continue;
            }
            real.push(&name);
            found = self.entries.get(&real).ok_or(Errno::NOENT)?;
            if let Entry::Link(target) = found {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Errno::LOOP.into());
                }
                real.pop();
                if target.is_absolute() {
                    real.clear();
                }
                left.extend(names(target));
                found = &Entry::Directory;
            }
        }
        Ok((real, found))
    }
}

/// The names in a path, the last one first; `/` is the first name of an absolute one.
fn names(path: &Path) -> Vec<OsString> {
    let named = path.components().filter(|part| *part != Component::CurDir);
    let mut names: Vec<_> = named.map(|part| part.as_os_str().to_owned()).collect();
    names.reverse();
    names
}

impl FileSystem for MemoryFiles {
    fn open(&self, path: &Path, caching: Caching) -> io::Result<Box<dyn File>> {
        match self.find(path)?.1 {
            // There is no page cache to go past.
            Entry::File(_) if caching == Caching::Direct => Err(io::ErrorKind::Unsupported.into()),
            Entry::File(contents) => Ok(Box::new(MemoryFile(contents.clone()))),
            Entry::Directory | Entry::Link(_) => Err(Errno::ISDIR.into()),
        }
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let (directory, Entry::Directory) = self.find(path)? else {
            return Err(Errno::NOTDIR.into());
        };
        let below = self.entries.range(directory.clone()..);
        let below = below.take_while(|(path, _)| path.starts_with(&directory));
        let inside = below.filter(|(path, _)| path.parent() == Some(&directory));
        let entry = |(path, entry): (&PathBuf, &Entry)| {
            let metadata = match entry {
                Entry::File(contents) => Some((contents.len() as u64, false)),
                Entry::Directory => Some((0, true)),
                Entry::Link(_) => None,
            };
            let metadata = metadata.map(|(len, is_dir)| Metadata { len, is_dir });
            DirEntry { name: path.file_name().unwrap_or_default().to_owned(), metadata }
        };
        Ok(inside.map(entry).collect())
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        Ok(match self.find(path)?.1 {
            Entry::File(contents) => Metadata { len: contents.len() as u64, is_dir: false },
            Entry::Directory | Entry::Link(_) => Metadata { len: 0, is_dir: true },
        })
    }

    fn node(&self, path: &Path) -> io::Result<Node> {
        let within = match (path.parent(), path.file_name()) {
            (Some(above), Some(name)) => match self.find(above)? {
                (directory, Entry::Directory) => directory.join(name),
                _ => return Err(Errno::NOTDIR.into()),
            },
            _ => self.find(path)?.0,
        };
        Ok(match self.entries.get(&within).ok_or(Errno::NOENT)? {
            Entry::File(contents) => Node::File { len: contents.len() as u64 },
            Entry::Directory => Node::Directory,
            Entry::Link(target) => Node::Link { target: target.clone() },
        })
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(self.find(path)?.0)
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
