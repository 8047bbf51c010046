//! The directory in which a run has its files, and nothing else.
//!
//! ```text
//! DIR/pagemill-lab.XXXXXX/             made by a run, removed at its end, however it ends
//!     PAGEMILL-LAB                     the marker: this directory is ours; locked (flock) while its run lives
//!     …                                files of experiments
//! ```
//!
//! A run that was killed cannot remove its directory; the next run in the same DIR does. Invariants: nothing is removed
//! but a directory of that name, of this user, with a marker of ours whose lock nobody holds; the marker gets its
//! name only once it is locked, so nobody ever finds a living run's directory unlocked.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use crate::error::{Error, Result};

/// What the directory's name begins with.
const PREFIX: &str = "pagemill-lab.";
/// The name of the marker.
const MARKER: &str = "PAGEMILL-LAB";
/// What it says, and what it is known by.
const MARK: &str =
    "This directory was made by `pagemill lab` and is removed by it or by its next run.\n";
/// Names that are tried at most.
const MOST_NAMES: u32 = 1000;

/// A run's own directory.
#[derive(Debug)]
pub struct Workspace {
    path: PathBuf,
    /// Locked as long as it is open.
    _marker: File,
}

impl Workspace {
    /// Removes what killed runs left in `directory`, sees that `needed` bytes are free there, and makes a directory in it.
    ///
    /// # Errors
    /// When it is no directory, nothing can be made in it, or there is not enough space.
    pub fn create(directory: &Path, needed: u64) -> Result<Self> {
        if !directory.is_dir() {
            return Err(Error::NotADirectory { path: directory.into() });
        }
        remove_leftovers(directory);
        let not_writable = |source| Error::NotWritable { path: directory.into(), source };
        let path = make_directory(directory).map_err(not_writable)?;
        let marker = make_marker(&path).map_err(|error| {
            // It is empty, or holds a marker without its name.
            let _ = fs::remove_dir_all(&path);
            not_writable(error)
        })?;
        let workspace = Self { path, _marker: marker };
        let available = available_bytes(directory)?;
        match available < needed {
            true => Err(Error::NoSpace { path: directory.into(), needed, available }),
            false => Ok(workspace),
        }
    }

    /// Where files can be made.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // What cannot be removed now is left to the next run.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Bytes that an ordinary user can still write below a directory.
///
/// # Errors
/// What the system reports.
pub fn available_bytes(directory: &Path) -> Result<u64> {
    let found = rustix::fs::statvfs(directory);
    let found = found.map_err(|error| Error::system("free space")(error.into()))?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

fn make_directory(directory: &Path) -> io::Result<PathBuf> {
    let mut number = std::process::id();
    for _ in 0..MOST_NAMES {
        let path = directory.join(format!("{PREFIX}{number:06}"));
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            made => return made.map(|()| path),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn make_marker(directory: &Path) -> io::Result<File> {
    let unnamed = directory.join("marker");
    let mut marker = OpenOptions::new().read(true).write(true).create_new(true).open(&unnamed)?;
    marker.write_all(MARK.as_bytes())?;
    match rustix::fs::flock(&marker, FlockOperation::NonBlockingLockExclusive) {
        // Without locks nobody can tell whose directory is alive, and nobody will remove it.
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
        Err(error) => return Err(error.into()),
    }
    fs::rename(&unnamed, directory.join(MARKER))?;
    Ok(marker)
}

/// Removes the directories of runs that are no more.
fn remove_leftovers(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let is_named_so = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if is_named_so && let Some(_lock) = lock_of_dead_run(&entry.path()) {
            // What cannot be removed stays: it is in nobody's way.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The lock of a directory of ours, if nobody else holds it.
fn lock_of_dead_run(directory: &Path) -> Option<File> {
    let found = fs::symlink_metadata(directory).ok()?;
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
        return None;
    }
    let path = directory.join(MARKER);
    if !fs::symlink_metadata(&path).ok()?.is_file() {
        return None;
    }
    let marker = File::open(&path).ok()?;
    rustix::fs::flock(&marker, FlockOperation::NonBlockingLockExclusive).ok()?;
    (fs::read(&path).ok()? == MARK.as_bytes()).then_some(marker)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// What a killed run leaves behind.
    fn leave_behind(directory: &Path, name: &str) {
        let left = directory.join(name);
        fs::create_dir_all(left.join("experiment")).unwrap();
        fs::write(left.join("experiment/file"), "x").unwrap();
        fs::write(left.join(MARKER), MARK).unwrap();
    }

    #[test]
    fn a_directory_that_is_not_empty_is_used_and_what_was_in_it_stays() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("mine"), "x").unwrap();
        let workspace = Workspace::create(dir.path(), 1).unwrap();
        fs::write(workspace.path().join("file"), "x").unwrap();
        assert_eq!(names(dir.path()).len(), 2);
        drop(workspace);
        assert_eq!(names(dir.path()), ["mine"]);
    }

    #[test]
    fn only_marked_directories_whose_run_is_dead_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        leave_behind(dir.path(), "pagemill-lab.dead");
        leave_behind(dir.path(), "pagemill-lab.alive");
        let alive = File::open(dir.path().join("pagemill-lab.alive").join(MARKER)).unwrap();
        rustix::fs::flock(&alive, FlockOperation::NonBlockingLockExclusive).unwrap();
        leave_behind(dir.path(), "named-by-somebody-else");
        fs::create_dir(dir.path().join("pagemill-lab.unmarked")).unwrap();
        fs::create_dir(dir.path().join("pagemill-lab.other-mark")).unwrap();
        fs::write(dir.path().join("pagemill-lab.other-mark").join(MARKER), "mine").unwrap();
        std::os::unix::fs::symlink("named-by-somebody-else", dir.path().join("pagemill-lab.link"))
            .unwrap();
        drop(Workspace::create(dir.path(), 1).unwrap());
        let expected = [
            "named-by-somebody-else",
            "pagemill-lab.alive",
            "pagemill-lab.link",
            "pagemill-lab.other-mark",
            "pagemill-lab.unmarked",
        ];
        assert_eq!(names(dir.path()), expected);
    }

    #[test]
    fn two_runs_at_once_have_directories_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let one = Workspace::create(dir.path(), 1).unwrap();
        let two = Workspace::create(dir.path(), 1).unwrap();
        assert_ne!(one.path(), two.path());
        assert!(one.path().is_dir());
    }

    #[test]
    fn too_little_space_and_no_directory_are_told_and_leave_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let error = Workspace::create(dir.path(), u64::MAX).unwrap_err();
        assert!(matches!(error, Error::NoSpace { .. }), "{error}");
        assert!(error.to_string().contains("are free"), "{error}");
        assert!(names(dir.path()).is_empty());
        let file = dir.path().join("file");
        fs::write(&file, "x").unwrap();
        let error = Workspace::create(&file, 1).unwrap_err();
        assert!(matches!(error, Error::NotADirectory { .. }), "{error}");
        assert!(error.is_usage());
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_told_so() {
        // Nothing can be made here, by root neither.
        let error = Workspace::create(Path::new("/proc"), 1).unwrap_err();
        assert!(matches!(error, Error::NotWritable { .. }), "{error}");
    }
}
