//! What is made once and used by many tests, processes and runs: `SCRATCH/NAME-HASH/`.
//!
//! HASH covers the server's version, the sources and scripts of this crate and of `pagemill-server`, and what the maker adds. `SCRATCH` is
//! `$PAGEMILL_TEST_SCRATCH`, or `pagemill-oracle-UID` in the temporary directory. A lock file makes the first
//! process build while the others wait.
//!
//! ```text
//! SCRATCH/pg15.lock
//! SCRATCH/pg15-0123456789abcdef/...         what was made
//!                              /complete    the mark that all of it is there; locked by those who read
//! ```
//!
//! What one test uses, and nobody after it, lies in memory where there is a file system for that: thousands of files are
//! made and removed, and an ext4 without a journal looks at each that was removed lately before it makes a new one.
//!
//! Must hold: nothing is removed while a `CachedDir` of it lives; `TMPDIR`, where it is set, decides.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use rustix::fs::{FlockOperation, flock};

use crate::checkout::in_checkout;
use crate::install::PgInstall;
use crate::program::READ_VARIABLE;

/// The file whose presence says that a build was finished.
const COMPLETE: &str = "complete";

/// Memory as a file system, and what has to be free there.
const MEMORY: &str = "/dev/shm";
const ROOM: u64 = 3 << 30;

/// A directory that outlives its test, for those that come after it.
#[derive(Debug)]
pub(crate) struct CachedDir {
    dir: PathBuf,
    /// Holds a shared lock, so that no other build removes the files while they are read.
    _in_use: File,
}

impl CachedDir {
    /// The directory of this name and hash, made now if it does not lie there from an earlier test. It takes the
    /// place of those of the same name and other hashes.
    pub(crate) fn new(
        name: &str,
        hash: u64,
        make: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<CachedDir> {
        let scratch = scratch_dir()?;
        let lock = File::create(scratch.join(format!("{name}.lock")))?;
        flock(&lock, FlockOperation::LockExclusive).context("waiting for another test's build")?;
        let dir = scratch.join(format!("{name}-{hash:016x}"));
        if !dir.join(COMPLETE).exists() {
            remove_older(&scratch, &format!("{name}-"))?;
            fs::create_dir_all(&dir)?;
            make(&dir).with_context(|| format!("building {}", dir.display()))?;
            File::create(dir.join(COMPLETE))?;
        }
        let in_use = File::open(dir.join(COMPLETE))?;
        flock(&in_use, FlockOperation::LockShared)?;
        Ok(CachedDir { dir, _in_use: in_use })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
}

/// Where clusters lie that outlive one test: the server's account, too, can enter it.
pub fn scratch_dir() -> Result<PathBuf> {
    let uid = fs::metadata("/proc/self")?.uid();
    let dir = std::env::var_os("PAGEMILL_TEST_SCRATCH")
        .map(PathBuf::from)
        .unwrap_or_else(|| std::env::temp_dir().join(format!("pagemill-oracle-{uid}")));
    fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    let metadata = fs::metadata(&dir)?;
    ensure!(metadata.uid() == uid, "{} belongs to another user", dir.display());
    fs::set_permissions(&dir, Permissions::from_mode(0o755))?;
    Ok(dir)
}

/// What the cluster of one test lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// In memory where there is room, on disk where there is not.
    Memory,
    /// In the temporary directory: for tests of ways to write to a file system, or of what takes its time there.
    Disk,
}

/// A new directory for a cluster.
pub fn cluster_root(medium: Medium) -> Result<PathBuf> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("pagemill-pg");
    let in_memory = medium == Medium::Memory && has_room_in_memory();
    let made = if in_memory { builder.tempdir_in(MEMORY)? } else { builder.tempdir()? };
    Ok(made.keep())
}

/// Direct reads are told from others on disk only.
fn has_room_in_memory() -> bool {
    let reads_directly = std::env::var(READ_VARIABLE).is_ok_and(|flags| flags.contains("--direct"));
    if std::env::var_os("TMPDIR").is_some() || reads_directly {
        return false;
    }
    let free = rustix::fs::statvfs(MEMORY).map_or(0, |found| found.f_bavail * found.f_frsize);
    free >= ROOM && memory_available().unwrap_or(0) >= ROOM
}

fn memory_available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

/// Removes what other sources built, and what was not finished; not what another process reads just now.
fn remove_older(scratch: &Path, prefix: &str) -> Result<()> {
    for entry in fs::read_dir(scratch)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(prefix) && !is_in_use(&entry.path()) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn is_in_use(dir: &Path) -> bool {
    File::open(dir.join(COMPLETE))
        .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_err())
}

/// Changes with the server's version, with anything here that decides what is built, and with `more`.
pub(crate) fn fingerprint(install: &PgInstall, more: &str) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    of_kit_and_server(install)?.hash(&mut hasher);
    more.hash(&mut hasher);
    Ok(hasher.finish())
}

/// The part that stays the same as long as this process runs.
fn of_kit_and_server(install: &PgInstall) -> Result<u64> {
    static KNOWN: Mutex<BTreeMap<PathBuf, u64>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(hash) = known.get(&install.bindir) {
        return Ok(*hash);
    }
    let mut hasher = DefaultHasher::new();
    install.installation()?.version().hash(&mut hasher);
    for part in ["pagemill-testkit/src", "pagemill-testkit/fixtures", "pagemill-server/src"] {
        hash_files(&in_checkout("crates").join(part), &mut hasher)?;
    }
    known.insert(install.bindir.clone(), hasher.finish());
    Ok(hasher.finish())
}

fn hash_files(dir: &Path, hasher: &mut DefaultHasher) -> Result<()> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    for file in files {
        file.file_name().hash(hasher);
        fs::read(&file)?.hash(hasher);
    }
    Ok(())
}
