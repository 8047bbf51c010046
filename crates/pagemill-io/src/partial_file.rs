//! A file that is being written and gets its name when it is whole.
//!
//! ```text
//!   nameless (O_TMPFILE) ──── whole ───► linked to its name, or beside it and renamed over an older file
//!   .NAME.PID.pagemill-partial ─ whole ─► renamed
//! ```
//!
//! The second is for file systems that have no nameless files. Its file is locked as long as somebody writes it, so that
//! the next one that writes to the directory can tell one that a killed process left, and removes it; a signal that ends
//! the process removes it on the way.
//!
//! A directory in the making (`output_directory.rs`) has such a name and lock, too.
//!
//! Invariant: nothing is removed but regular files and directories of our account and of such a name that nobody has locked.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use pagemill_sys::{RemovedOnSignal, remove_on_signal};
use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

/// Names tried before it is given up.
const MOST_NAMES: u32 = 1000;
/// How names end that stand for what is not whole.
const SUFFIX: &str = ".pagemill-partial";
/// What a file of everybody's may be; the mask of the process takes some of it away.
const MODE: u32 = 0o666;
const DIRECTORY_MODE: u32 = 0o777;

/// The name a file has until it is whole.
#[derive(Debug)]
pub(crate) enum Partial {
    /// None: it goes with its last descriptor.
    Nameless,
    /// One beside its own.
    Named {
        /// That name.
        path: PathBuf,
        _removed: Option<RemovedOnSignal>,
    },
}

/// Makes a file that is to become `target`, and removes what killed processes left beside it.
///
/// # Errors
/// When none can be made there.
pub(crate) fn create(target: &Path) -> rustix::io::Result<(OwnedFd, Partial)> {
    remove_left_behind(directory_of(target));
    match nameless(directory_of(target)) {
        Some(fd) => Ok((fd, Partial::Nameless)),
        None => named(target),
    }
}

/// Makes a directory of such a name, locked, and removes what killed processes left beside it.
///
/// # Errors
/// When none can be made there.
pub(crate) fn create_directory(target: &Path) -> rustix::io::Result<(PathBuf, OwnedFd)> {
    remove_left_behind(directory_of(target));
    // Between its making and its lock somebody may have removed it: then another name is tried.
    let (held, path) = unused_name(target, |name| {
        rustix::fs::mkdir(name, Mode::from_bits_truncate(DIRECTORY_MODE))?;
        let fd = open(name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW);
        let fd = fd.map_err(|_| Errno::EXIST)?;
        lock(&fd).map_err(|_| Errno::EXIST)?;
        is_still_there(fd)
    })?;
    Ok((path, held))
}

/// Gives a whole file its name, in place of what has it.
///
/// # Errors
/// When it cannot be had; no file of another name stays then.
pub(crate) fn name(fd: &OwnedFd, partial: Partial, target: &Path) -> io::Result<()> {
    let beside = match partial {
        Partial::Named { path, _removed } => return rename(&path, target),
        Partial::Nameless => match link(fd, target) {
            Err(Errno::EXIST) => unused_name(target, |name| link(fd, name))?.1,
            linked => return Ok(linked?),
        },
    };
    rename(&beside, target)
}

/// Removes a file that will never be whole.
pub(crate) fn remove(partial: &Partial) {
    if let Partial::Named { path, .. } = partial {
        // Nothing can be done about a failure, and the name says what the file is.
        let _ = std::fs::remove_file(path);
    }
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to).inspect_err(|_| {
        // The name could not be given; what was written is of no use to anybody.
        let _ = std::fs::remove_file(from);
    })
}

/// A file without a name that can be given one, where the file system has such files.
fn nameless(directory: &Path) -> Option<OwnedFd> {
    let fd = open(directory, OFlags::WRONLY | OFlags::TMPFILE).ok()?;
    // It is named by way of /proc, which is not everywhere.
    rustix::fs::stat(by_descriptor(&fd)).ok().map(|_| fd)
}

fn by_descriptor(fd: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

fn link(fd: &OwnedFd, name: &Path) -> rustix::io::Result<()> {
    rustix::fs::linkat(CWD, by_descriptor(fd), CWD, name, AtFlags::SYMLINK_FOLLOW)
}

fn named(target: &Path) -> rustix::io::Result<(OwnedFd, Partial)> {
    let (fd, path) = unused_name(target, |name| {
        let fd = open(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
        lock(&fd)?;
        is_still_there(fd)
    })?;
    let removed = remove_on_signal(&path).ok();
    Ok((fd, Partial::Named { path, _removed: removed }))
}

/// Somebody may have taken what was made for left behind before it was locked.
fn is_still_there(fd: OwnedFd) -> rustix::io::Result<OwnedFd> {
    match rustix::fs::fstat(&fd)?.st_nlink {
        0 => Err(Errno::EXIST),
        _ => Ok(fd),
    }
}

/// Tries names beside the target until one is not taken.
fn unused_name<T>(
    target: &Path,
    mut make: impl FnMut(&Path) -> rustix::io::Result<T>,
) -> rustix::io::Result<(T, PathBuf)> {
    let mut attempt = 0;
    loop {
        let name = temporary_name(target, attempt);
        match make(&name) {
            Err(Errno::EXIST) if attempt < MOST_NAMES => attempt += 1,
            made => return made.map(|made| (made, name)),
        }
    }
}

fn temporary_name(target: &Path, attempt: u32) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    if attempt > 0 {
        name.push(format!(".{attempt}"));
    }
    name.push(SUFFIX);
    target.with_file_name(name)
}

/// Removes files and directories of such names that nobody writes. What cannot be looked at or removed stays: it is in nobody's way.
fn remove_left_behind(directory: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten().filter(|entry| is_partial(&entry.file_name())) {
        let path = entry.path();
        let _ = match left_behind(&path) {
            Ok(Some(FileType::Directory)) => std::fs::remove_dir_all(path),
            Ok(Some(_)) => std::fs::remove_file(path),
            Ok(None) | Err(_) => Ok(()),
        };
    }
}

fn is_partial(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".") && name.as_bytes().ends_with(SUFFIX.as_bytes())
}

/// What it is, if it is a regular file or a directory of our account that can be locked.
fn left_behind(path: &Path) -> rustix::io::Result<Option<FileType>> {
    let fd = open(path, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK)?;
    let found = rustix::fs::fstat(&fd)?;
    let is_ours = found.st_uid == rustix::process::geteuid().as_raw();
    let kind = FileType::from_raw_mode(found.st_mode);
    let may_go = matches!(kind, FileType::RegularFile | FileType::Directory);
    Ok((is_ours && may_go && lock(&fd).is_ok()).then_some(kind))
}

fn lock(fd: impl AsFd) -> rustix::io::Result<()> {
    rustix::fs::flock(fd, FlockOperation::NonBlockingLockExclusive)
}

fn open(path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::from_bits_truncate(MODE))
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_become_a_file_also_over_an_older_one_and_leave_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("t.txt");
        for make in [create, named] {
            for contents in [b"one", b"two"] {
                let (fd, partial) = make(&target).unwrap();
                rustix::io::write(&fd, contents).unwrap();
                name(&fd, partial, &target).unwrap();
                assert_eq!(std::fs::read(&target).unwrap(), contents);
                assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
            }
        }
    }

    #[test]
    fn what_is_being_written_stays_and_what_was_left_behind_goes() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("t.txt");
        let (_fd, partial) = named(&target).unwrap();
        let Partial::Named { path: written, .. } = &partial else { panic!("a nameless file") };
        let left = dir.path().join(".other.csv.77.pagemill-partial");
        let foreign = dir.path().join(".mine.partial");
        for path in [&left, &foreign] {
            std::fs::write(path, b"x").unwrap();
        }
        let _ = create(&target).unwrap();
        assert!(written.exists() && foreign.exists() && !left.exists());
        remove(&partial);
        assert!(!written.exists());
    }
}
