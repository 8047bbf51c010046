//! The ways to make a write last, as `pg_test_fsync` has them: one write, two writes, and sizes of writes that are synced
//! as they are made.
//!
//! As there (`src/bin/pg_test_fsync/pg_test_fsync.c`, PostgreSQL 15): the file has the size of a WAL segment and was
//! written and synced before; each operation writes at its start; the `open_` methods write past the page cache.

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
    /// The write itself: `O_DSYNC` or `O_SYNC`, with `O_DIRECT`.
    Open(OFlags),
    Data,
    All,
}

/// As PostgreSQL's `wal_sync_method` calls them, in the order of pg_test_fsync.
const METHODS: [(&str, Sync); 4] = [
    ("open_datasync", Sync::Open(OFlags::DSYNC)),
    ("fdatasync", Sync::Data),
    ("fsync", Sync::All),
    ("open_sync", Sync::Open(OFlags::SYNC)),
];

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

/// One contestant for each method, each operation so many writes of 8 kB.
pub(crate) fn methods(path: &Path, writes: usize, time: Duration) -> Vec<Contestant<'static>> {
    let method = |(name, sync): (&str, Sync)| {
        let work = SyncedWrites { sync, writes, size: 8192, time };
        work.contestant(name.into(), path.into()).parameter("method", name)
    };
    let mut contestants: Vec<_> = METHODS.into_iter().map(method).collect();
    let why = Absence::Skipped("Linux has no such call: macOS has".into());
    let absent = Contestant::absent(WRITETHROUGH, why).parameter("method", WRITETHROUGH);
    contestants.insert(3, absent);
    contestants
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
        let work = SyncedWrites { sync: Sync::Open(OFlags::SYNC), writes, size, time };
        work.contestant(format!("{writes} x {kilobytes} kB"), path.into())
            .parameter("method", "open_sync")
    };
    [16, 8, 4, 2, 1].into_iter().map(contestant).collect()
}

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
        while begin.elapsed() < self.time {
            cancel.check()?;
            self.operation(&file, &buffer).map_err(Error::system("synced write"))?;
            operations += 1;
        }
        let elapsed = begin.elapsed();
        let work = Work { elapsed: Some(elapsed), ..Work::operations(operations) };
        let work = work.with_calls("pwrite", operations * self.writes as u64);
        Ok(match self.sync {
            Sync::Open(_) => work,
            Sync::Data => work.with_calls("fdatasync", operations),
            Sync::All => work.with_calls("fsync", operations),
        })
    }

    fn open(&self, path: &Path) -> std::io::Result<File> {
        let flags = match self.sync {
            Sync::Open(flags) => flags | OFlags::DIRECT,
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
            Sync::Open(_) => Ok(()),
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
        let time = Duration::from_millis(5);
        let work = SyncedWrites { sync: Sync::Data, writes: 2, size: 8192, time };
        let done = work.perform(&path, &Cancel::default()).unwrap();
        assert!(done.operations > 0);
        assert_eq!(done.calls["pwrite"], 2 * done.operations);
        assert_eq!(done.calls["fdatasync"], done.operations);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 1 << 16);
    }

    #[test]
    fn what_linux_has_not_got_is_a_row_that_says_so() {
        let names: Vec<_> =
            methods(Path::new("x"), 1, Duration::ZERO).into_iter().map(|c| c.name).collect();
        assert_eq!(
            names,
            ["open_datasync", "fdatasync", "fsync", "fsync_writethrough", "open_sync"]
        );
    }
}
