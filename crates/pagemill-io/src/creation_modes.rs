//! The modes of what is made in a cluster: those that its data directory says.
//!
//! A cluster may be initialized so that the group can read it. A server then makes every file and directory so, whatever
//! mask it was started with, and knows it by the mode of the data directory alone.
//!
//! Invariant: modes are set after a file or directory was made, so that the mask of the process, which other threads
//! share, stays what it is.
//!
//! Source: `GetDataDirectoryCreatePerm` and `SetDataDirectoryCreatePerm` in `src/common/file_perm.c`, PostgreSQL 14 to 18.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;

use crate::seam::{File, FileSystem};

/// What the data directory's mode has to hold for the group to be let in.
const GROUP_ACCESS: u32 = 0o750;
/// Files that the group may read, and files it may not.
const FILE_WITH_GROUP: u32 = 0o640;
const FILE_OF_OWNER: u32 = 0o600;

/// The modes that a cluster has.
#[derive(Debug)]
pub(crate) struct CreationModes {
    /// Directories get its mode.
    pub(crate) data_directory: PathBuf,
    file: Mode,
}

impl CreationModes {
    pub(crate) fn of(files: &dyn FileSystem, data_directory: &Path) -> Option<Self> {
        let found = files.access(data_directory).ok()?;
        let with_group = found.mode & GROUP_ACCESS == GROUP_ACCESS;
        let file = if with_group { FILE_WITH_GROUP } else { FILE_OF_OWNER };
        Some(Self { data_directory: data_directory.to_owned(), file: Mode::from_raw_mode(file) })
    }

    /// Gives a file that was just made its mode, where it is one of the operating system's.
    ///
    /// # Errors
    /// What the system reports.
    pub(crate) fn set(&self, file: &dyn File) -> io::Result<()> {
        match file.descriptor() {
            Some(fd) => Ok(rustix::fs::fchmod(fd, self.file)?),
            None => Ok(()),
        }
    }
}
