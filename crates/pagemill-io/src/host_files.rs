//! [`HostFiles`]: files of the machine that this process runs on, beside those of the cluster that is read.
//!
//! What is loaded, where results go, time zones of the system: the user names these as files of this machine, wherever the
//! cluster's own come from. So they have a type of their own, and a cluster on another file system cannot make an input or an
//! output come from there by mistake. Calls are counted with those of the storage that the host was asked from.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::real_files::RealFileSystem;
use crate::seam::{Access, DirEntry, FileSystem, Identity, Node};
use crate::storage::Storage;

/// The files of this machine. Clones share their counters.
#[derive(Debug, Clone)]
pub struct HostFiles {
    storage: Storage,
}

impl HostFiles {
    /// The operating system's files, counted by themselves.
    pub fn real() -> Self {
        Self { storage: Storage::real() }
    }

    /// Any file system in the place of the operating system's: one with faults.
    pub fn new(file_system: Arc<dyn FileSystem>) -> Self {
        Self { storage: Storage::new(file_system) }
    }

    /// The machine's files beside those of a storage, counted with them.
    pub(crate) fn beside(storage: &Storage) -> Self {
        Self { storage: storage.over(|_| Arc::new(RealFileSystem)) }
    }

    /// The same files, whose calls are counted and not timed.
    #[must_use]
    pub fn untimed(self) -> Self {
        Self { storage: self.storage.untimed() }
    }

    /// What these files are read through, and counted by.
    pub(crate) fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The contents of a small file.
    ///
    /// # Errors
    /// As [`Storage::read_file`].
    pub fn read_file(&self, path: &Path, limit: u64) -> Result<Vec<u8>> {
        self.storage.read_file(path, limit)
    }

    /// What a file of the system says whose size the system does not tell, up to `limit` bytes of it.
    ///
    /// # Errors
    /// Names the file.
    pub fn read_system_file(&self, path: &Path, limit: usize) -> Result<Vec<u8>> {
        let file = self.storage.open(path)?;
        let mut contents = vec![0; limit];
        let read = self.storage.read_fully_at(&*file, &mut contents, 0);
        contents.truncate(read.map_err(|error| Error::new(error, path))?);
        Ok(contents)
    }

    /// Everything in a directory but `.` and `..`, in no particular order.
    ///
    /// # Errors
    /// Names the directory.
    pub fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        self.storage.read_dir(path)
    }

    /// What a path leads to, symbolic links followed; so never a link.
    ///
    /// # Errors
    /// Names the file; also when the path leads nowhere.
    pub fn node(&self, path: &Path) -> Result<Node> {
        self.storage.node(&self.resolve(path)?)
    }

    /// True when the path leads to a directory.
    pub fn is_dir(&self, path: &Path) -> bool {
        self.storage.metadata(path).is_ok_and(|found| found.is_dir)
    }

    /// True when the path leads to something.
    pub fn is_there(&self, path: &Path) -> bool {
        self.storage.exists(path).unwrap_or(false)
    }

    /// The path without symbolic links, `.` and `..` in it.
    ///
    /// # Errors
    /// Names the file; also when the path leads nowhere.
    pub fn resolve(&self, path: &Path) -> Result<PathBuf> {
        self.storage.resolve(path)
    }

    /// Who may do what with what a path leads to.
    ///
    /// # Errors
    /// Names the file; also when the path leads nowhere.
    pub fn access(&self, path: &Path) -> Result<Access> {
        self.storage.access(path)
    }

    /// What tells the file or directory that a path leads to from all others.
    ///
    /// # Errors
    /// Names the file; also when the path leads nowhere.
    pub fn identity(&self, path: &Path) -> Result<Identity> {
        self.storage.identity(path)
    }

    /// Makes a directory with the mode that the process's mask gives, not with that of a cluster's directories.
    ///
    /// # Errors
    /// Names the directory.
    pub fn create_dir(&self, path: &Path) -> Result<()> {
        // The system's own words: the remedies for files of a data directory are others.
        std::fs::create_dir(path).map_err(|error| Error::new(ErrorKind::Io(error), path))
    }

    /// Makes a directory, and those above it that are not there.
    ///
    /// # Errors
    /// Names the directory.
    pub fn create_dir_all(&self, path: &Path) -> Result<()> {
        std::fs::create_dir_all(path).map_err(|error| Error::new(ErrorKind::Io(error), path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::FaultyFileSystem;

    #[test]
    fn files_of_the_machine_stay_its_own_beside_another_file_system_and_are_counted_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows.csv");
        std::fs::write(&path, "1\n").unwrap();
        let elsewhere = FaultyFileSystem::default();
        elsewhere.vanish(&path);
        let storage = Storage::new(Arc::new(elsewhere));
        assert!(!storage.exists(&path).unwrap() && storage.host().is_there(&path));
        assert_eq!(storage.host().read_file(&path, 10).unwrap(), b"1\n");
        assert_eq!(storage.counters().snapshot().read_calls, 1);
    }

    #[test]
    fn a_link_is_what_it_leads_to() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&file, "12").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let host = HostFiles::real();
        assert_eq!(host.node(&link).unwrap(), Node::File { len: 2 });
        assert_eq!(host.identity(&link).unwrap(), host.identity(&file).unwrap());
        assert_eq!(host.node(Path::new("/dev/null")).unwrap(), Node::Stream);
        assert!(host.node(&dir.path().join("absent")).unwrap_err().is_not_found());
    }
}
