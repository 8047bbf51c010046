//! The ways to make a write last, as `pg_test_fsync` has them: one write, two writes, and sizes of writes that are synced
//! as they are made.
//!
//! As there (`src/bin/pg_test_fsync/pg_test_fsync.c`, PostgreSQL 15): the file has the size of a WAL segment and was
//! written and synced before; each operation writes at its start; the `open_` methods write past the page cache. Servers do
//! so only where they write WAL past the page cache (`get_sync_bit` in src/backend/access/transam/xlog.c, 14 to 18: with
//! `wal_level = minimal`, from 16 on with `debug_io_direct = wal`), so that these methods come through it as well.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pagemill_sys::AlignedBuffer;
use rustix::fs::OFlags;

use crate::cancel::Cancel;
use crate::contestant::{Contestant, Work};
use crate::error::{Error, Result};
use crate::experiments::random::Random;
use crate::results::Absence;

/// What makes a write last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sync {
    /// The write itself: `O_DSYNC` or `O_SYNC`, through the page cache.
    Open(OFlags),
    /// The same with `O_DIRECT`.
    OpenDirect(OFlags),
    Data,
    All,
}

/// As PostgreSQL's `wal_sync_method` calls them, in the order of pg_test_fsync.
const METHODS: [(&str, Sync); 6] = [
    ("open_datasync", Sync::OpenDirect(OFlags::DSYNC)),
    ("fdatasync", Sync::Data),
    ("fsync", Sync::All),
    ("open_sync", Sync::OpenDirect(OFlags::SYNC)),
    ("open_datasync buffered", Sync::Open(OFlags::DSYNC)),
    ("open_sync buffered", Sync::Open(OFlags::SYNC)),
];

/// A method by its name in [`METHODS`], or [`WRITETHROUGH`].
pub(crate) type Named = &'static str;

/// All methods.
pub(crate) const ALL: &[Named] = &[
    "open_datasync",
    "fdatasync",
    "fsync",
    WRITETHROUGH,
    "open_sync",
    "open_datasync buffered",
    "open_sync buffered",
];

/// Those that servers use as they come.
pub(crate) const OF_SERVERS: &[Named] =
    &["fdatasync", "fsync", "open_datasync buffered", "open_sync buffered"];

/// What Linux has not got.
const WRITETHROUGH: &str = "fsync_writethrough";

/// Operations of writes of the same size, one after the other.
#[derive(Debug, Clone, Copy)]
struct SyncedWrites {
    sync: Sync,
    writes: usize,
    /// Bytes.
    size: usize,
    time: Duration,
}

/// One contestant for each of these methods, each operation so many writes of 8 kB.
pub(crate) fn methods(
    path: &Path,
    writes: usize,
    time: Duration,
    names: &[Named],
) -> Vec<Contestant<'static>> {
    let method = |name: &Named| {
        let known = METHODS.into_iter().find(|(known, _)| known == name);
        let contestant = match known {
            Some((_, sync)) => {
                let work = SyncedWrites { sync, writes, size: 8192, time };
                let direct = matches!(sync, Sync::OpenDirect(_));
                work.contestant((*name).into(), path.into()).parameter("direct", direct)
            }
            None => {
                let why = "Linux has no such call: macOS has".into();
                Contestant::absent(*name, Absence::Skipped(why))
            }
        };
        contestant.parameter("method", name)
    };
    names.iter().map(method).collect()
}

/// Operations of one write of 8 kB by the method of that name, for so long; `None` for a name that Linux has not.
pub(crate) fn operations(path: &Path, method: &str, time: Duration) -> Option<Result<Work>> {
    let (_, sync) = METHODS.into_iter().find(|(name, _)| *name == method)?;
    let work = SyncedWrites { sync, writes: 1, size: 8192, time };
    Some(work.perform(path, &Cancel::default()))
}

/// 16 kB by writes of different sizes, each synced as it is made.
pub(crate) fn sizes(path: &Path, time: Duration) -> Vec<Contestant<'static>> {
    let contestant = |kilobytes: usize| {
        let (size, writes) = (kilobytes * 1024, 16 / kilobytes);
        let work = SyncedWrites { sync: Sync::OpenDirect(OFlags::SYNC), writes, size, time };
        work.contestant(format!("{writes} x {kilobytes} kB"), path.into())
            .parameter("method", "open_sync")
    };
    SIZES.into_iter().map(contestant).collect()
}

/// Sizes of such writes, in kB.
pub(crate) const SIZES: [usize; 5] = [16, 8, 4, 2, 1];

impl SyncedWrites {
    fn contestant(self, name: String, path: PathBuf) -> Contestant<'static> {
        Contestant::new(name, move |cancel| self.perform(&path, cancel))
            .parameter("writes", self.writes)
            .parameter("block_size", self.size)
    }

    fn perform(&self, path: &Path, cancel: &Cancel) -> Result<Work> {
        let file = self.open(path).map_err(Error::file(path))?;
        let mut buffer = AlignedBuffer::zeroed(self.size);
        Random::new(1).fill(&mut buffer);
        let (begin, mut operations) = (Instant::now(), 0);
        // One at least: it may take longer than a short time.
        while operations == 0 || begin.elapsed() < self.time {
            cancel.check()?;
            self.operation(&file, &buffer).map_err(Error::system("synced write"))?;
            operations += 1;
        }
        let elapsed = begin.elapsed();
        let work = Work { elapsed: Some(elapsed), ..Work::operations(operations) };
        let work = work.with_calls("pwrite", operations * self.writes as u64);
        Ok(match self.sync {
            Sync::Open(_) | Sync::OpenDirect(_) => work,
            Sync::Data => work.with_calls("fdatasync", operations),
            Sync::All => work.with_calls("fsync", operations),
        })
    }

    fn open(&self, path: &Path) -> std::io::Result<File> {
        let flags = match self.sync {
            Sync::OpenDirect(flags) => flags | OFlags::DIRECT,
            Sync::Open(flags) => flags,
            Sync::Data | Sync::All => OFlags::empty(),
        };
        // The bits of flags are those of the C library; none is the sign.
        let flags = i32::try_from(flags.bits()).unwrap_or(0);
        OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)
    }

    fn operation(&self, file: &File, buffer: &[u8]) -> std::io::Result<()> {
        for write in 0..self.writes {
            file.write_all_at(buffer, (write * self.size) as u64)?;
        }
        match self.sync {
            Sync::Open(_) | Sync::OpenDirect(_) => Ok(()),
            Sync::Data => file.sync_data(),
            Sync::All => file.sync_all(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_has_its_writes_and_its_sync() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("segment");
        std::fs::write(&path, vec![0; 1 << 16]).unwrap();
        let time = Duration::ZERO;
        let work = SyncedWrites { sync: Sync::Data, writes: 2, size: 8192, time };
        let done = work.perform(&path, &Cancel::default()).unwrap();
        assert_eq!(done.operations, 1);
        assert_eq!(done.calls["pwrite"], 2 * done.operations);
        assert_eq!(done.calls["fdatasync"], done.operations);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 1 << 16);
    }

    #[test]
    fn what_linux_has_not_got_is_a_row_that_says_so() {
        let names: Vec<_> =
            methods(Path::new("x"), 1, Duration::ZERO, ALL).into_iter().map(|c| c.name).collect();
        assert_eq!(names, ALL);
        let absent = methods(Path::new("x"), 1, Duration::ZERO, &[WRITETHROUGH]);
        assert!(absent[0].perform.is_err());
    }

    /// Advice on `wal_sync_method` came from O_DIRECT, which no server with `wal_level = replica` uses.
    #[test]
    fn methods_of_servers_write_through_the_page_cache() {
        for name in OF_SERVERS {
            let (_, sync) = METHODS.into_iter().find(|(known, _)| known == name).unwrap();
            assert!(!matches!(sync, Sync::OpenDirect(_)), "{name}");
        }
    }
}
