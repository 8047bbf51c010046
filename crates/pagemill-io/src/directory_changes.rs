//! Changes of a directory through [`Storage`]: names given, taken and made to last.
//!
//! A name lasts when its directory was synced, and not before: each of these says whether it does so itself.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use crate::error::{Error, Result};
use crate::seam::{Access, Create, File, FileState, Identity, Node, OpenForWrite, SpaceLeft};
use crate::storage::Storage;
use crate::writable_file::WritableFile;

/// Files left behind by killed processes of the same id that are passed over.
const MOST_LEFT_BEHIND: u32 = 1000;

/// A lock on a file that ends with the process or with this value.
#[derive(Debug)]
pub struct HeldLock(#[expect(dead_code, reason = "closing it gives the lock up")] Box<dyn File>);

impl Storage {
    /// Takes a lock on a file that only one process has at a time; `None` when another has it. A file system
    /// without locks grants every one.
    ///
    /// # Errors
    /// Names the file.
    pub fn try_lock(&self, path: &Path) -> Result<Option<HeldLock>> {
        let file = self.open(path)?;
        let Some(descriptor) = file.descriptor() else { return Ok(Some(HeldLock(file))) };
        let locked = rustix::fs::flock(descriptor, FlockOperation::NonBlockingLockExclusive);
        match locked {
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(Some(HeldLock(file))),
            Err(error) => Err(Error::new(io::Error::from(error), path)),
        }
    }

    /// Gives a file another name, in place of what had that name. Syncs nothing.
    ///
    /// # Errors
    /// Names the file as it was called.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.file_system().rename(from, to).map_err(|error| Error::new(error, from))
    }

    /// Removes a file. Syncs nothing.
    ///
    /// # Errors
    /// Names the file.
    pub fn remove(&self, path: &Path) -> Result<()> {
        self.file_system().remove(path).map_err(|error| Error::new(error, path))
    }

    /// Removes a file if it is there. Syncs nothing.
    ///
    /// # Errors
    /// Names the file.
    pub fn remove_if_there(&self, path: &Path) -> Result<()> {
        match self.remove(path) {
            Err(error) if error.is_not_found() => Ok(()),
            outcome => outcome,
        }
    }

    /// Makes a directory that its owner may enter, and the group where it may enter the one above, or where the cluster
    /// [lets it](Self::with_modes_of). Syncs nothing.
    ///
    /// # Errors
    /// Names the directory.
    pub fn create_dir(&self, path: &Path) -> Result<()> {
        let made = self.file_system().create_dir(path);
        made.map_err(|error| Error::new(error, path))?;
        let Some(modes) = self.modes() else { return Ok(()) };
        match self.file_system().set_access_like(path, &modes.data_directory) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
            set => set.map_err(|error| Error::new(error, path)),
        }
    }

    /// Removes a directory with everything in it, if it is there. Syncs the directory it was in.
    ///
    /// # Errors
    /// Names what could not be removed.
    pub fn remove_tree(&self, path: &Path) -> Result<()> {
        let entries = match self.read_dir(path) {
            Err(error) if error.is_not_found() => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let inner = path.join(&entry.name);
            // A link to a directory is removed as what it is, and what it leads to stays.
            match self.file_system().remove(&inner) {
                Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                    self.remove_tree(&inner)?;
                }
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::new(error, inner));
                }
                _ => {}
            }
        }
        let removed = self.file_system().remove_dir(path);
        removed.map_err(|error| Error::new(error, path))?;
        self.sync_dir_of(path)
    }

    /// Removes a directory with nothing in it. Syncs nothing.
    ///
    /// # Errors
    /// Names the directory.
    pub fn remove_dir(&self, path: &Path) -> Result<()> {
        self.file_system().remove_dir(path).map_err(|error| Error::new(error, path))
    }

    /// Makes a symbolic link to `target`. Syncs nothing.
    ///
    /// # Errors
    /// Names the link.
    pub fn make_symlink(&self, target: &Path, path: &Path) -> Result<()> {
        self.file_system().make_symlink(target, path).map_err(|error| Error::new(error, path))
    }

    /// What `path` itself names: symbolic links are not followed.
    ///
    /// # Errors
    /// Names the file.
    pub fn node(&self, path: &Path) -> Result<Node> {
        self.file_system().node(path).map_err(|error| Error::new(error, path))
    }

    /// The path without symbolic links, `.` and `..` in it.
    ///
    /// # Errors
    /// Names the file; also when the path leads nowhere.
    pub fn resolve(&self, path: &Path) -> Result<PathBuf> {
        self.file_system().resolve(path).map_err(|error| Error::new(error, path))
    }

    /// True for two names of one file or directory, which is there.
    pub fn is_same(&self, one: &Path, other: &Path) -> bool {
        let resolved = |path| self.file_system().resolve(path).ok();
        resolved(one).is_some_and(|one| Some(one) == resolved(other))
    }

    /// What tells the file or directory that a path leads to from all others of this machine.
    ///
    /// # Errors
    /// Names the file; also where files are not those of this machine.
    pub fn identity(&self, path: &Path) -> Result<Identity> {
        self.file_system().identity(path).map_err(|error| Error::new(error, path))
    }

    /// What changes with the file that a path leads to.
    ///
    /// # Errors
    /// Names the file; also where nothing tells.
    pub fn state(&self, path: &Path) -> Result<FileState> {
        self.file_system().state(path).map_err(|error| Error::new(error, path))
    }

    /// Who may do what with a file or directory.
    ///
    /// # Errors
    /// Names the file; also where there are no owners and modes.
    pub fn access(&self, path: &Path) -> Result<Access> {
        self.file_system().access(path).map_err(|error| Error::new(error, path))
    }

    /// Gives a directory the permissions of another, and its owner where this process is the superuser's.
    ///
    /// # Errors
    /// Names the directory.
    pub fn set_access_like(&self, path: &Path, like: &Path) -> Result<()> {
        self.file_system().set_access_like(path, like).map_err(|error| Error::new(error, path))
    }

    /// How much space there is in the file system of a file or directory; `None` where nobody knows.
    ///
    /// # Errors
    /// Names the file.
    pub fn space_left(&self, path: &Path) -> Result<Option<SpaceLeft>> {
        match self.file_system().space_left(path) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
            left => left.map(Some).map_err(|error| Error::new(error, path)),
        }
    }

    /// Waits until the device holds the names in a directory.
    ///
    /// # Errors
    /// Names the directory; [`ErrorKind::SyncFailed`](crate::ErrorKind::SyncFailed), or that an earlier sync had failed. A directory that
    /// cannot be opened is told as what it is.
    pub fn sync_dir(&self, path: &Path) -> Result<()> {
        let named = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        self.sync_call(named, || self.file_system().sync_dir(named))
    }

    /// Waits until the device holds the names in the directory of a file.
    ///
    /// # Errors
    /// As [`sync_dir`](Self::sync_dir).
    pub fn sync_dir_of(&self, path: &Path) -> Result<()> {
        path.parent().map_or(Ok(()), |directory| self.sync_dir(directory))
    }

    /// Makes a small file that did not exist, with these contents, and syncs it and its directory. It is written
    /// beside its place as `temporary` and linked there, so that nobody ever finds it empty, a power cut included. A
    /// file that could not be finished is removed again.
    ///
    /// So a lock file is made: of two that try at once one succeeds, and the other finds
    /// [`ErrorKind::Exists`](crate::ErrorKind::Exists). Two that have the same `temporary` must not try at once.
    ///
    /// # Errors
    /// Names the file.
    pub fn create_file(&self, path: &Path, temporary: &Path, contents: &[u8]) -> Result<()> {
        // It may be a second name of a file that is in use: never written to, but removed.
        self.remove_if_there(temporary)?;
        let how = OpenForWrite { create: Create::New, ..OpenForWrite::default() };
        let file = self.open_for_write(temporary, how)?;
        let link = || {
            file.write_all_at(contents, 0)?;
            file.sync_all()?;
            self.file_system().link(temporary, path).map_err(|error| Error::new(error, path))
        };
        let linked = link();
        let removed = self.remove(temporary);
        linked?;
        removed.and_then(|()| self.sync_dir_of(path)).inspect_err(|_| {
            // The failure that is told is the one before it.
            let _ = self.remove(path);
        })
    }

    /// A new file without a name, which is gone when nobody has it open any more. A process killed at the wrong moment
    /// leaves it behind, empty.
    ///
    /// # Errors
    /// Names the directory's file that cannot be made.
    pub fn temporary_file(&self, directory: &Path) -> Result<WritableFile> {
        let how = OpenForWrite { create: Create::New, ..OpenForWrite::default() };
        for number in 0..=MOST_LEFT_BEHIND {
            let path = directory.join(format!("pagemill_tmp.{}.{number}", std::process::id()));
            match self.open_for_write(&path, how) {
                Err(error) if matches!(error.kind(), crate::ErrorKind::Exists) => {}
                Err(error) => return Err(error),
                Ok(file) => {
                    self.remove(&path)?;
                    return Ok(file);
                }
            }
        }
        Err(Error::new(io::Error::from(io::ErrorKind::AlreadyExists), directory))
    }

    /// Gives a small file these contents at once: written beside it as `temporary`, synced, renamed, the
    /// directory synced. Whoever looks finds the old file or the new one, also after a power cut.
    ///
    /// # Errors
    /// Names the file. What `path` had before is then still there, or already replaced but possibly not for
    /// good.
    pub fn replace_file(&self, path: &Path, temporary: &Path, contents: &[u8]) -> Result<()> {
        let how = OpenForWrite { create: Create::OrNew, ..OpenForWrite::default() };
        let file = self.open_for_write(temporary, how)?;
        let finish = || {
            file.set_len(0)?;
            file.write_all_at(contents, 0)?;
            file.sync_all()?;
            self.rename(temporary, path)
        };
        finish().inspect_err(|_| {
            // The failure that is told is the one before it.
            let _ = self.remove(temporary);
        })?;
        self.sync_dir_of(path)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_tree_is_removed_and_what_a_link_in_it_leads_to_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (tree, other) = (dir.path().join("5"), dir.path().join("other"));
        std::fs::create_dir_all(tree.join("inner/deep")).unwrap();
        std::fs::create_dir(&other).unwrap();
        std::fs::write(other.join("kept"), "x").unwrap();
        std::fs::write(tree.join("inner/16384"), "x").unwrap();
        std::os::unix::fs::symlink(&other, tree.join("link")).unwrap();
        let storage = Storage::real();
        storage.remove_tree(&tree).unwrap();
        storage.remove_tree(&tree).unwrap();
        assert!(!tree.exists());
        assert!(other.join("kept").exists());
    }

    use super::*;
    use crate::ErrorKind;

    #[test]
    fn of_two_that_make_the_same_file_one_finds_it_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("postmaster.pid");
        let storage = Storage::real();
        let temporary = dir.path().join("postmaster.pid.new");
        storage.create_file(&path, &temporary, b"42\n").unwrap();
        let before = storage.counters().snapshot();
        let error = storage.create_file(&path, &temporary, b"43\n").unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Exists), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"42\n");
        assert!(!temporary.exists());
        assert_eq!((before.write_calls, before.bytes_written, before.sync_calls), (1, 3, 2));
        storage.remove(&path).unwrap();
        assert!(storage.remove(&path).unwrap_err().is_not_found());
        storage.remove_if_there(&path).unwrap();
    }

    #[test]
    fn a_temporary_name_left_by_a_killed_process_is_removed_and_its_file_not_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let (path, temporary) = (dir.path().join("lock"), dir.path().join("lock.new"));
        std::fs::write(&path, b"held").unwrap();
        std::fs::hard_link(&path, &temporary).unwrap();
        let error = Storage::real().create_file(&path, &temporary, b"43").unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Exists), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"held");
        assert!(!temporary.exists());
    }

    #[test]
    fn a_new_file_may_be_read_by_the_group_only_where_the_cluster_allows_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::real();
        let mode = |name: &str| {
            let found = std::fs::metadata(dir.path().join(name)).unwrap();
            found.permissions().mode() & 0o777
        };
        let temporary = dir.path().join("temporary");
        let allow = |mode| {
            std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        allow(0o700);
        storage.create_file(&dir.path().join("own"), &temporary, b"").unwrap();
        storage.create_dir(&dir.path().join("directory")).unwrap();
        assert_eq!((mode("own"), mode("directory")), (0o600, 0o700));
        allow(0o750);
        storage.create_file(&dir.path().join("group"), &temporary, b"").unwrap();
        storage.create_dir(&dir.path().join("shared")).unwrap();
        // The mask of the process may take some of it away, and is told by a file of everybody's.
        std::fs::write(dir.path().join("all"), b"").unwrap();
        let masked = mode("all");
        assert_eq!(mode("group"), 0o640 & (masked | 0o600));
        assert_eq!(mode("shared") & 0o040, masked & 0o040);
    }

    #[test]
    fn what_is_made_in_a_cluster_has_the_modes_of_its_data_directory_and_not_those_of_its_parent() {
        use std::os::unix::fs::PermissionsExt as _;
        let (dir, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let allow = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        for (number, of_data, of_parent) in [(1, 0o750, 0o700), (2, 0o700, 0o750)] {
            allow(data.path(), of_data);
            allow(dir.path(), of_parent);
            let storage = Storage::real().with_modes_of(data.path());
            let (file, directory) = (format!("file{number}"), format!("directory{number}"));
            let (file, directory) = (dir.path().join(file), dir.path().join(directory));
            storage.create_file(&file, &dir.path().join("temporary"), b"").unwrap();
            storage.create_dir(&directory).unwrap();
            assert_eq!((mode(&file), mode(&directory)), (of_data & 0o640, of_data));
        }
    }

    #[test]
    fn a_replaced_file_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let (path, temporary) = (dir.path().join("map"), dir.path().join("map.tmp"));
        let storage = Storage::real();
        std::fs::write(&temporary, b"left behind, and longer").unwrap();
        storage.replace_file(&path, &temporary, b"one").unwrap();
        storage.replace_file(&path, &temporary, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_directory_that_is_not_there_is_no_failed_sync() {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::real();
        assert!(storage.sync_dir(&dir.path().join("absent")).is_err());
        storage.sync_dir(dir.path()).unwrap();
    }
}
