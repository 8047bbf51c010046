//! Many files brought to the device by a few threads at once.
//!
//! Why: a sync of a small file is little more than a flush of the device's cache, which the kernel does once for all who
//! wait for it. Measured on ext4 (Linux 6.18, a virtual disk, 300 new files of a template, their write-back begun,
//! medians of 9): one after the other 456 ms, by 4 threads 58 ms, by 8 73 ms, and by 8 without the write-back
//! begun 89 ms.
//!
//! Invariant: success means that every file was synced.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

/// Threads, the caller's among them, which wait more than they work.
const THREADS: usize = 8;

/// Calls `sync` for each of the files, in any order.
///
/// # Errors
/// One that a thread met: it leaves the rest to the others, or undone.
pub fn sync_all<F: Sync, E: Send>(
    files: &[F],
    sync: impl Fn(&F) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            sync(file)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        // Where no more threads are to be had, those that are do it all.
        let start = |_| Builder::new().spawn_scoped(scope, work).ok();
        let helpers: Vec<_> = (1..THREADS.min(files.len())).filter_map(start).collect();
        let own = work();
        let ended = helpers
            .into_iter()
            .map(|helper| helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ended.fold(own, Result::and)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn every_file_is_synced_once() {
        for count in [0, 1, 2, 100] {
            let files: Vec<u32> = (0..count).collect();
            let synced = Mutex::new(Vec::new());
            let sync = |file: &u32| {
                synced.lock().unwrap().push(*file);
                Ok::<_, u32>(())
            };
            sync_all(&files, sync).unwrap();
            let mut synced = synced.into_inner().unwrap();
            synced.sort_unstable();
            assert_eq!(synced, files);
        }
    }

    #[test]
    fn one_failure_is_enough() {
        let failing = |file: &u32| if *file == 7 { Err(*file) } else { Ok(()) };
        assert_eq!(sync_all(&[7], failing), Err(7));
        assert_eq!(sync_all(&(0..100).collect::<Vec<u32>>(), failing), Err(7));
    }
}
