//! [`UnpackedFiles`]: what was unpacked of a backup and may be read again: files in memory and on disk, and super blocks.
//!
//! Invariants: memory and the number of temporary files are bounded, and the one used longest ago goes first; a temporary file is made
//! only where there is space for it, and told before.

use std::collections::HashMap;
use std::hash::Hash;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pagemill_io::{File, TemporaryFile};

use crate::unpacked_archive::{ArchiveToUnpack, UnpackNotice, check_space};

/// Bytes of small files, and of super blocks, that stay in memory.
const MOST_BYTES: u64 = 64 << 20;
/// Temporary files there are at a time.
const MOST_FILES: u64 = 64;

/// Where a super block lies: reference, bundle or file, offset.
pub(super) type SuperBlockKey = (usize, u64, usize, u64);

/// Things by what they are of, each with what it weighs.
#[derive(Debug)]
struct Recent<K, T> {
    entries: HashMap<K, (T, u64, u64)>,
    limit: u64,
    weight: u64,
    uses: u64,
}

impl<K: Hash + Eq + Copy, T: Clone> Recent<K, T> {
    fn new(limit: u64) -> Self {
        Self { entries: HashMap::new(), limit, weight: 0, uses: 0 }
    }

    fn get(&mut self, key: K) -> Option<T> {
        self.uses += 1;
        let (found, _, used) = self.entries.get_mut(&key)?;
        *used = self.uses;
        Some(found.clone())
    }

    /// Adds something, in place of what was used longest ago where the limit says so.
    fn add(&mut self, key: K, of: T, weight: u64) {
        while self.weight + weight > self.limit && self.remove_oldest() {}
        self.uses += 1;
        self.weight += weight;
        if let Some((_, before, _)) = self.entries.insert(key, (of, weight, self.uses)) {
            self.weight -= before;
        }
    }

    /// False when there is nothing to remove.
    fn remove_oldest(&mut self) -> bool {
        let oldest = self.entries.iter().min_by_key(|(_, (_, _, used))| *used).map(|(key, _)| *key);
        let removed = oldest.and_then(|key| self.entries.remove(&key));
        self.weight -= removed.as_ref().map_or(0, |(_, weight, _)| *weight);
        removed.is_some()
    }
}

/// What is at hand of a backup's files.
#[derive(Debug)]
pub(super) struct UnpackedFiles {
    in_memory: Mutex<Recent<usize, Arc<dyn File>>>,
    on_disk: Mutex<Recent<usize, Arc<dyn File>>>,
    super_blocks: Mutex<Recent<SuperBlockKey, Arc<[u8]>>>,
    notice: UnpackNotice,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl UnpackedFiles {
    pub(super) fn new(notice: UnpackNotice) -> Self {
        Self {
            in_memory: Mutex::new(Recent::new(MOST_BYTES)),
            on_disk: Mutex::new(Recent::new(MOST_FILES)),
            super_blocks: Mutex::new(Recent::new(MOST_BYTES)),
            notice,
        }
    }

    /// A file, by its number in the manifest.
    pub(super) fn get(&self, number: usize) -> Option<Arc<dyn File>> {
        let in_memory = locked(&self.in_memory).get(number);
        in_memory.or_else(|| locked(&self.on_disk).get(number))
    }

    pub(super) fn add_in_memory(&self, number: usize, file: &Arc<dyn File>, len: u64) {
        locked(&self.in_memory).add(number, file.clone(), len);
    }

    pub(super) fn add_on_disk(&self, number: usize, file: &Arc<dyn File>) {
        locked(&self.on_disk).add(number, file.clone(), 1);
    }

    /// Tells that a file will be unpacked to disk; others are given up where there is no space.
    pub(super) fn make_room(&self, path: &Path, bytes: u64) -> io::Result<()> {
        let announced = ArchiveToUnpack {
            path: path.to_owned(),
            bytes,
            is_exact: true,
            directory: TemporaryFile::directory(),
        };
        while let Err(error) = check_space(&announced) {
            if !locked(&self.on_disk).remove_oldest() {
                return Err(io::Error::other(error));
            }
        }
        self.notice.tell(&announced);
        Ok(())
    }

    pub(super) fn super_block(&self, key: SuperBlockKey) -> Option<Arc<[u8]>> {
        locked(&self.super_blocks).get(key)
    }

    pub(super) fn add_super_block(&self, key: SuperBlockKey, contents: &Arc<[u8]>) {
        locked(&self.super_blocks).add(key, contents.clone(), contents.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let mut recent = Recent::new(3);
        for key in [1, 2, 3] {
            recent.add(key, key, 1);
        }
        assert_eq!(recent.get(1), Some(1));
        recent.add(4, 4, 1);
        assert_eq!([1, 2, 3, 4].map(|key| recent.get(key)), [Some(1), None, Some(3), Some(4)]);
        recent.add(5, 5, 2);
        assert_eq!([1, 3, 4, 5].map(|key| recent.get(key)), [None, None, Some(4), Some(5)]);
        recent.add(4, 6, 1);
        assert_eq!((recent.weight, recent.get(4)), (3, Some(6)));
        // What is too large alone is there until the next comes.
        recent.add(7, 7, 9);
        assert_eq!((recent.entries.len(), recent.get(7)), (1, Some(7)));
        assert!(recent.remove_oldest() && !recent.remove_oldest() && recent.weight == 0);
    }
}
