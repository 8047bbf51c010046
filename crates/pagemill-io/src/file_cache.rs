//! The open segment files and mappings of one storage: opened and mapped when first used, the least
//! recently used closed and unmapped when there are too many.
//!
//! Why bounded: a table of 32 TB has 32,767 segments, a process by default 1024 descriptors; and what
//! is mapped costs page tables.
//!
//! Invariants: no segment appears twice; between calls there are at most `most_files` files and at
//! most `most_mapped` mapped bytes (or a single mapping that is larger). What a reader holds stays open
//! and mapped until it lets go: the cache gives up its share only. A mapping that met a fault is never
//! handed out again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pagemill_sys::Mapping;

use crate::error::Result;
use crate::seam::File;

/// A segment of a fork: the fork by the number its [`ForkFiles`](crate::ForkFiles) drew.
pub(crate) type Key = (u64, u32);

/// Shared by all threads that read through the storage.
#[derive(Debug)]
pub(crate) struct FileCache {
    most_files: usize,
    most_mapped: u64,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// Counts uses, so that they have an order.
    clock: u64,
    /// The number the next fork draws.
    next_fork: u64,
    files: HashMap<Key, Used<Arc<dyn File>>>,
    mappings: HashMap<Key, Used<Arc<Mapping>>>,
    mapped: u64,
}

#[derive(Debug)]
struct Used<T> {
    value: T,
    last: u64,
}

impl FileCache {
    pub(crate) fn new(most_files: usize, most_mapped: u64) -> Self {
        Self { most_files: most_files.max(1), most_mapped, held: Mutex::default() }
    }

    /// A number for a fork that nothing else has.
    pub(crate) fn draw_fork(&self) -> u64 {
        let mut held = self.lock();
        held.next_fork += 1;
        held.next_fork
    }

    /// The file of a segment, from `open` if it is not open. The lock is held meanwhile, so that
    /// two threads never open the same segment.
    pub(crate) fn file(
        &self,
        key: Key,
        open: impl FnOnce() -> Result<Box<dyn File>>,
    ) -> Result<Arc<dyn File>> {
        let mut held = self.lock();
        let last = held.tick();
        if let Some(found) = held.files.get_mut(&key) {
            found.last = last;
            return Ok(found.value.clone());
        }
        let value: Arc<dyn File> = Arc::from(open()?);
        while held.files.len() >= self.most_files
            && let Some(oldest) = least_recent(&held.files)
        {
            held.files.remove(&oldest);
        }
        held.files.insert(key, Used { value: value.clone(), last });
        Ok(value)
    }

    /// The mapping of a segment, from `map` if there is none or the one there is met a fault. Locked
    /// as [`file`](Self::file).
    pub(crate) fn mapping(
        &self,
        key: Key,
        map: impl FnOnce() -> Result<Mapping>,
    ) -> Result<Arc<Mapping>> {
        let mut held = self.lock();
        let last = held.tick();
        match held.mappings.get_mut(&key) {
            Some(found) if found.value.faulted(0..found.value.len()).is_none() => {
                found.last = last;
                return Ok(found.value.clone());
            }
            _ => held.unmap(key),
        }
        let value = Arc::new(map()?);
        let len = value.len() as u64;
        while held.mapped.saturating_add(len) > self.most_mapped
            && let Some(oldest) = least_recent(&held.mappings)
        {
            held.unmap(oldest);
        }
        held.mapped += len;
        held.mappings.insert(key, Used { value: value.clone(), last });
        Ok(value)
    }

    /// Forgets all of a fork.
    pub(crate) fn forget(&self, fork: u64) {
        let mut held = self.lock();
        held.files.retain(|key, _| key.0 != fork);
        let gone: Vec<Key> = held.mappings.keys().copied().filter(|key| key.0 == fork).collect();
        for key in gone {
            held.unmap(key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn unmap(&mut self, key: Key) {
        if let Some(gone) = self.mappings.remove(&key) {
            self.mapped -= gone.value.len() as u64;
        }
    }
}

fn least_recent<T>(held: &HashMap<Key, Used<T>>) -> Option<Key> {
    held.iter().min_by_key(|(_, used)| used.last).map(|(key, _)| *key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, ErrorKind};
    use std::io::{self, Write as _};

    #[derive(Debug)]
    struct NoFile;

    impl File for NoFile {
        fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
            Ok(0)
        }
        fn len(&self) -> io::Result<u64> {
            Ok(0)
        }
    }

    fn opens(cache: &FileCache, segment: u32) -> bool {
        let mut opened = false;
        let file = cache.file((1, segment), || {
            opened = true;
            Ok(Box::new(NoFile))
        });
        file.unwrap();
        opened
    }

    fn maps(cache: &FileCache, segment: u32, file: &std::fs::File) -> bool {
        use rustix::fd::AsFd as _;
        let mut mapped = false;
        let mapping = cache.mapping((1, segment), || {
            mapped = true;
            Ok(Mapping::new(file.as_fd(), 8192).unwrap())
        });
        assert_eq!(mapping.unwrap().len(), 8192);
        mapped
    }

    #[test]
    fn a_segment_is_opened_once_until_too_many_others_were_used_since() {
        let cache = FileCache::new(64, 0);
        for segment in 0..64 {
            assert!(opens(&cache, segment));
        }
        assert!(!opens(&cache, 0), "still open");
        assert!(opens(&cache, 1000), "takes the place of segment 1");
        assert!(!opens(&cache, 0), "was used again, so it stayed");
        assert!(opens(&cache, 1));
        assert_eq!(cache.lock().files.len(), 64);
    }

    #[test]
    fn a_failed_open_changes_nothing() {
        let cache = FileCache::new(2, 0);
        assert!(opens(&cache, 0));
        let failed = cache.file((1, 1), || Err(Error::new(ErrorKind::NotFound, "x")));
        assert!(failed.is_err());
        assert!(!opens(&cache, 0));
        assert!(opens(&cache, 1));
    }

    #[test]
    fn mappings_give_way_by_their_bytes_and_a_held_one_stays_readable() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 8192]).unwrap();
        let cache = FileCache::new(1, 2 * 8192);
        assert!(maps(&cache, 0, &file));
        let held = cache.mapping((1, 0), || unreachable!("it is mapped")).unwrap();
        assert!(maps(&cache, 1, &file) && maps(&cache, 2, &file));
        assert!(maps(&cache, 0, &file), "it gave way");
        assert_eq!(held.bytes(0..8192), [7; 8192]);
        cache.forget(1);
        assert_eq!(cache.lock().mapped, 0);
    }

    #[test]
    fn a_mapping_whose_file_was_cut_is_mapped_anew() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 8192]).unwrap();
        let cache = FileCache::new(1, 1 << 20);
        assert!(maps(&cache, 0, &file));
        file.set_len(0).unwrap();
        let held = cache.mapping((1, 0), || unreachable!("it is mapped")).unwrap();
        assert!(held.touch(0..8192, 4096).is_err());
        assert!(maps(&cache, 0, &file));
    }
}
