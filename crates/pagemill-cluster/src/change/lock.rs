//! The right to change a cluster: a `postmaster.pid` that a starting server respects, and a lock that other processes
//! of this kind respect.
//!
//! A server that finds `postmaster.pid` asks whether the process named there lives, and if so does not start; one that
//! names nobody, or one that the server's account may not signal, is removed and replaced. The number is written negative, as a server in single-user mode does: `pg_ctl`
//! then neither stops nor reloads the process as if it were a server. Two processes that both found the same stale file
//! could each remove what the other has just made, so the cluster's `PG_VERSION` is locked first.
//!
//! A server also refuses to start when it finds the file empty. So it is written under another name and linked to its
//! own: a process killed at any moment, or a power cut, leaves a whole file or none.
//!
//! Invariant: while a [`ClusterLock`] lives, the file names this process; when it is dropped, the file is removed. A
//! killed process leaves it behind, and it stands in nobody's way.
//!
//! Source: `CreateLockFile` in `src/backend/utils/init/miscinit.c`, PostgreSQL 14 to 18.

use std::path::{Path, PathBuf};
use std::thread::{self, ThreadId};
use std::time::{SystemTime, UNIX_EPOCH};

use pagemill_io::{ErrorKind, HeldLock, Storage};
use rustix::process::{Uid, geteuid, getuid};
use rustix::thread::set_thread_res_uid;

use crate::directory_state::read_version;
use crate::error::{Error, Result};
use crate::lock_file::LockFile;
use crate::refusal::{LockCause, Refusal};

/// How often a stale file is removed before it is taken for something else.
const TRIES: usize = 3;

/// Where Linux lists shared memory segments: their number and how many processes are attached.
const SHARED_MEMORY: &str = "/proc/sysvipc/shm";
/// More than a list of all that a system can have in use.
const LIST_BYTES: usize = 1 << 20;

/// The right to change one cluster.
#[derive(Debug)]
pub struct ClusterLock {
    storage: Storage,
    directory: PathBuf,
    file: PathBuf,
    _held: HeldLock,
    /// After the file is removed, as a server may ask until then.
    _seen: Option<SeenByOwner>,
}

impl ClusterLock {
    /// Takes the right to change the data directory at `directory`.
    ///
    /// # Errors
    /// When a server or another process that changes it is there, when it is no data directory, or when nothing can be
    /// written there.
    pub fn take(storage: &Storage, directory: &Path) -> Result<Self> {
        read_version(storage, directory)?;
        let file = directory.join(LockFile::NAME);
        let held = storage.try_lock(&directory.join("PG_VERSION"))?;
        let Some(held) = held else { return Err(Error::BeingChanged { path: directory.into() }) };
        let seen = be_seen_by_owner(storage, directory)?;
        let temporary = directory.join(LockFile::TEMPORARY);
        let storage = &storage.clone().with_modes_of(directory);
        for _ in 0..TRIES {
            match storage.create_file(&file, &temporary, contents(directory).as_bytes()) {
                Ok(()) => {
                    let (storage, directory) = (storage.clone(), directory.to_owned());
                    tracing::debug!(path = %file.display(), "lock file made");
                    return Ok(Self { storage, directory, file, _held: held, _seen: seen });
                }
                Err(error) if matches!(error.kind(), ErrorKind::Exists) => {
                    remove_if_stale(storage, directory, &file)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::refused(Refusal::Lock { path: file, cause: LockCause::ComesBack }))
    }

    /// The data directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for ClusterLock {
    fn drop(&mut self) {
        // What stays behind names a process that is gone, and stands in nobody's way.
        let _ = self.storage.remove(&self.file);
        tracing::debug!(path = %self.file.display(), "lock file removed");
    }
}

/// Lets the account of the server see that this process lives. A starting server asks with `kill(pid, 0)`, and takes a
/// process that it may not signal for one that is not of its cluster: the superuser's would stand in nobody's way. With
/// the owner of the directory as real user the question is answered; what this process may do stays as it is.
///
/// The answer is given for the thread that the process began with, so that one has to take the lock.
fn be_seen_by_owner(storage: &Storage, directory: &Path) -> Result<Option<SeenByOwner>> {
    let Ok(found) = storage.access(directory) else { return Ok(None) };
    let (owner, keep, real) = (Uid::from_raw(found.owner), geteuid(), getuid());
    if owner == keep {
        return Ok(None);
    }
    set_thread_res_uid(owner, keep, owner).map_err(|error| {
        let cause = LockCause::NotSeen(error.into());
        Error::refused(Refusal::Lock { path: directory.into(), cause })
    })?;
    Ok(Some(SeenByOwner { thread: thread::current().id(), real }))
}

/// A thread whose real user is the owner of a data directory, until this is dropped. What is started from such a thread is
/// taken by the dynamic loader for a program that gained rights, and does not find libraries beside itself: so a lock that
/// was given back may leave nothing of this behind.
#[derive(Debug)]
struct SeenByOwner {
    thread: ThreadId,
    /// The real user before.
    real: Uid,
}

impl Drop for SeenByOwner {
    fn drop(&mut self) {
        // Users belong to threads: another thread's cannot be changed from here.
        if thread::current().id() == self.thread {
            // The effective user was kept, and may always be the saved one.
            let _ = set_thread_res_uid(self.real, geteuid(), geteuid());
        }
    }
}

/// The lines of `postmaster.pid` up to the address that is listened on; those of the shared memory are left out, as there is none.
fn contents(directory: &Path) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    format!("-{}\n{}\n{now}\n0\n\n\n", std::process::id(), directory.display())
}

/// Removes the file of a process that is gone and has left no child behind.
fn remove_if_stale(storage: &Storage, directory: &Path, file: &Path) -> Result<()> {
    let Some(found) = LockFile::read_any(storage, directory)? else { return Ok(()) };
    if found.is_alive() && !found.is_this_process() {
        return Err(Error::Running { path: file.into(), pid: found.pid });
    }
    if let Some(segment) = found.shared_memory
        && attached(storage, segment) > 0
    {
        let cause = LockCause::SharedMemory { pid: found.pid, segment };
        return Err(Error::refused(Refusal::Lock { path: file.into(), cause }));
    }
    Ok(storage.remove_if_there(file)?)
}

/// How many processes are attached to a shared memory segment, as far as the system tells.
fn attached(storage: &Storage, segment: u32) -> u64 {
    let listed = storage.host().read_system_file(Path::new(SHARED_MEMORY), LIST_BYTES);
    let listed = listed.unwrap_or_default(); // default: without the list nobody is known to be attached
    let listed = String::from_utf8_lossy(&listed);
    let mut lines = listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let Some(header) = lines.next() else { return 0 };
    let column = |name| header.iter().position(|&title| title == name);
    let (Some(id), Some(count)) = (column("shmid"), column("nattch")) else { return 0 };
    let number = |line: &[&str], at: usize| line.get(at).and_then(|text| text.parse().ok());
    let found = lines.find(|line| number(line, id) == Some(u64::from(segment)));
    found.and_then(|line| number(&line, count)).unwrap_or(0)
}
