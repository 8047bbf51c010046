//! Synchronized scans: a scan of a large file begins where another scan of it is, so that both have
//! use of the same pages while they are in memory, and goes round to what it missed.
//!
//! ```text
//! blocks     0                    p                              end
//! first      ●────────────────────●──────────────────────────────►
//! second                          ●──────────────────────────────►   together
//!            ●────────────────────►                                  what it missed
//! ```
//!
//! Who runs several scans keeps one [`SyncScans`] for them. Each scan [joins](SyncScans::join) and
//! reports how far it is; what comes of a report that is missed is only a start a little further behind.
//! A file where nobody scans any more keeps its position: a scan that ended by itself left it where it
//! began, one that was stopped where it stopped.
//!
//! The rules and numbers are PostgreSQL's (`src/backend/access/common/syncscan.c`, `initscan` in
//! `heapam.c`, PostgreSQL 14 to 18): a report every 16 blocks that gives up rather than wait for the
//! lock, 20 files remembered, and only files larger than a quarter of the memory for pages, as smaller
//! ones stay in it anyway. A backward scan takes no part.
//!
//! Invariants: no more than [`MOST_FILES`] locations, each file at most once, the one used last first;
//! a start is a block of the file, and a multiple of [`REPORT_INTERVAL`].

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use pagemill_format::BlockNumber;

/// Files whose position is remembered (`SYNC_SCAN_NELEM`).
pub const MOST_FILES: usize = 20;
/// Blocks between reports, 128 kB (`SYNC_SCAN_REPORT_INTERVAL`).
pub const REPORT_INTERVAL: u32 = 16;

/// Where the scans of several files are. Shared by all that scan.
#[derive(Debug)]
pub struct SyncScans {
    small_blocks: u32,
    /// The one used last first.
    locations: Mutex<Vec<Location>>,
}

#[derive(Debug)]
struct Location {
    file: Arc<Path>,
    block: u32,
}

/// A scan that takes part, and tells the others where it is.
#[derive(Debug)]
pub struct JoinedScan<'s> {
    scans: &'s SyncScans,
    file: Arc<Path>,
    blocks: u32,
    start: u32,
}

impl SyncScans {
    /// For scans beside a memory for so many pages: files of at most a quarter of that are scanned from
    /// their beginning.
    pub fn beside_buffers(pages: NonZeroUsize) -> Self {
        let small_blocks = u32::try_from(pages.get() / 4).unwrap_or(u32::MAX);
        Self { small_blocks, locations: Mutex::default() }
    }

    /// Where to begin a scan of a file of `blocks` blocks, and whom to report to; `None` where the file
    /// is too small.
    pub fn join(&self, file: &Path, blocks: u32) -> Option<JoinedScan<'_>> {
        if blocks <= self.small_blocks {
            return None;
        }
        let (file, block) = self.locations().find_or_insert(file);
        // The file may have been cut since.
        let start = if block < blocks { block } else { 0 };
        Some(JoinedScan { scans: self, file, blocks, start })
    }

    fn locations(&self) -> Locations<'_> {
        Locations(self.locations.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The locations, unless somebody else has them now.
    fn try_locations(&self) -> Option<Locations<'_>> {
        match self.locations.try_lock() {
            Ok(found) => Some(Locations(found)),
            Err(TryLockError::Poisoned(found)) => Some(Locations(found.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl JoinedScan<'_> {
    /// The block to begin with.
    pub fn start(&self) -> BlockNumber {
        BlockNumber(self.start)
    }

    /// Takes note of consecutive blocks that were scanned.
    #[inline]
    pub fn report(&self, scanned: Range<u32>) {
        let at_end = scanned.end >= self.blocks;
        if at_end || scanned.start / REPORT_INTERVAL != scanned.end / REPORT_INTERVAL {
            self.report_location(if at_end { 0 } else { scanned.end });
        }
    }

    fn report_location(&self, next: u32) {
        if let Some(mut locations) = self.scans.try_locations() {
            locations.set(&self.file, next - next % REPORT_INTERVAL);
        }
    }
}

/// The list while it is locked.
struct Locations<'l>(MutexGuard<'l, Vec<Location>>);

impl Locations<'_> {
    fn find_or_insert(&mut self, file: &Path) -> (Arc<Path>, u32) {
        let location = match self.0.iter().position(|found| *found.file == *file) {
            Some(at) => self.0.remove(at),
            None => Location { file: file.into(), block: 0 },
        };
        let found = (location.file.clone(), location.block);
        self.put_first(location);
        found
    }

    fn set(&mut self, file: &Arc<Path>, block: u32) {
        match self.0.iter().position(|found| *found.file == **file) {
            Some(at) => {
                self.0[..=at].rotate_right(1);
                self.0[0].block = block;
            }
            None => self.put_first(Location { file: file.clone(), block }),
        }
    }

    fn put_first(&mut self, location: Location) {
        self.0.truncate(MOST_FILES - 1);
        self.0.insert(0, location);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn scans_of_all_files() -> SyncScans {
        SyncScans::beside_buffers(NonZeroUsize::MIN)
    }

    fn start(scans: &SyncScans, file: &str, blocks: u32) -> u32 {
        scans.join(Path::new(file), blocks).unwrap().start().0
    }

    #[test]
    fn a_scan_begins_where_the_one_before_it_is() {
        let scans = scans_of_all_files();
        let first = scans.join(Path::new("a"), 100).unwrap();
        assert_eq!(first.start(), BlockNumber(0));
        first.report(0..15);
        assert_eq!(start(&scans, "a", 100), 0, "less than an interval");
        first.report(15..40);
        assert_eq!((start(&scans, "a", 100), start(&scans, "b", 100)), (32, 0));
    }

    #[test]
    fn a_scan_that_went_round_leaves_the_position_where_it_began() {
        let scans = scans_of_all_files();
        let path = Path::new("a");
        scans.join(path, 100).unwrap().report(0..50);
        let second = scans.join(path, 100).unwrap();
        assert_eq!(second.start().0, 48);
        second.report(48..100);
        assert_eq!(start(&scans, "a", 100), 0, "round at the end");
        second.report(0..48);
        assert_eq!(start(&scans, "a", 100), 48);
    }

    #[test]
    fn small_files_are_scanned_from_their_beginning() {
        let scans = SyncScans::beside_buffers(NonZeroUsize::new(403).unwrap());
        let path = Path::new("a");
        assert!(scans.join(path, 100).is_none());
        assert!(scans.join(path, 101).is_some());
    }

    #[test]
    fn a_file_that_was_cut_is_scanned_from_its_beginning() {
        let scans = scans_of_all_files();
        scans.join(Path::new("a"), 100).unwrap().report(0..96);
        assert_eq!((start(&scans, "a", 97), start(&scans, "a", 96)), (96, 0));
    }

    #[test]
    fn a_report_does_not_wait() {
        let scans = scans_of_all_files();
        let scan = scans.join(Path::new("a"), 100).unwrap();
        let held = scans.locations();
        scan.report(0..32);
        drop(held);
        assert_eq!(start(&scans, "a", 100), 0);
    }

    proptest! {
        #[test]
        fn the_files_used_last_keep_their_positions(
            steps in prop::collection::vec((0u32..30, prop::option::of(0u32..100)), 0..200),
        ) {
            let scans = scans_of_all_files();
            let mut used: Vec<u32> = Vec::new();
            let mut blocks: HashMap<u32, u32> = HashMap::new();
            for (file, reported) in steps {
                let path = file.to_string();
                let scan = scans.join(Path::new(&path), 100).unwrap();
                let kept = used.iter().rev().take(MOST_FILES).any(|found| *found == file);
                let known = if kept { blocks.get(&file).copied().unwrap_or(0) } else { 0 };
                prop_assert_eq!(scan.start().0, known);
                prop_assert!(scan.start().0.is_multiple_of(REPORT_INTERVAL));
                used.retain(|found| *found != file);
                used.push(file);
                if !kept {
                    blocks.remove(&file);
                }
                if let Some(end) = reported {
                    scan.report(0..end);
                    if end >= REPORT_INTERVAL {
                        blocks.insert(file, end - end % REPORT_INTERVAL);
                    }
                }
                prop_assert!(scans.locations().0.len() <= MOST_FILES);
            }
        }
    }
}
