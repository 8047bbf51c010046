//! How much of a file the page cache holds: `cachestat(2)`, since Linux 6.5.
//!
//! Why: a reader that knows what is cached needs neither guess nor map the file to ask, and no page
//! is touched by asking. The answer is about one moment; it can be stale when it arrives.
//!
//! Invariant: `RawRange` and `RawCacheStat` are laid out as the kernel's `struct
//! cachestat_range` and `struct cachestat` (`include/uapi/linux/mman.h`, Linux 6.5).

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};

/// The number of the call; one for all architectures, as for every call since Linux 5.0.
const SYS_CACHESTAT: libc::c_long = 451;

/// What the page cache holds of a range of a file, in pages of the machine (`PAGE_SIZE`, 4096 bytes
/// on x86-64), however large the folios are they lie in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStat {
    /// Pages in the cache, dirty ones included.
    pub cached: u64,
    /// Pages changed and not yet on their way to the device.
    pub dirty: u64,
    /// Pages being written to the device.
    pub writeback: u64,
    /// Pages that were in the cache and had to leave it for want of memory, as far as remembered.
    pub evicted: u64,
    /// Evicted pages that would be taken for busy ones if they came back now.
    pub recently_evicted: u64,
}

#[repr(C)]
struct RawRange {
    off: u64,
    len: u64,
}

#[repr(C)]
#[derive(Default)]
struct RawCacheStat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

const _: () = assert!(size_of::<RawRange>() == 16 && size_of::<RawCacheStat>() == 40);

/// Asks what the page cache holds of a range of bytes of an open file. The range may reach past the
/// file's end, where nothing is cached, and counts every page it touches.
///
/// On overlayfs the answer is 0 throughout (seen on Linux 6.18): the pages belong to the file below. Who
/// needs to know asks once about a page just read, or maps the file and asks mincore.
///
/// An empty range holds nothing, and the kernel is not asked: to it, a length of 0 means "to the end".
///
/// # Errors
/// What the kernel reports: ENOSYS before Linux 6.5 or under a filter that hides the call, EPERM for
/// a file that the caller neither owns nor may write (newer kernels), EOPNOTSUPP for hugetlbfs,
/// EBADF.
pub fn cachestat(fd: impl AsFd, range: Range<u64>) -> io::Result<CacheStat> {
    if range.is_empty() {
        return Ok(CacheStat::default());
    }
    let asked = RawRange { off: range.start, len: range.end - range.start };
    let mut found = RawCacheStat::default();
    let fd = fd.as_fd();
    // SAFETY: the call reads one `cachestat_range` and writes one `cachestat`; both pointers are to
    // live values of those layouts (see the module's invariant), the second one borrowed mutably, and
    // the kernel keeps neither. The descriptor is borrowed, so it stays open.
    let outcome = unsafe {
        libc::syscall(SYS_CACHESTAT, fd.as_raw_fd(), &raw const asked, &raw mut found, 0u32)
    };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(CacheStat {
        cached: found.cached,
        dirty: found.dirty,
        writeback: found.writeback,
        evicted: found.evicted,
        recently_evicted: found.recently_evicted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// None where the kernel does not have the call.
    fn asked(fd: impl AsFd, range: Range<u64>) -> Option<CacheStat> {
        match cachestat(fd, range) {
            Ok(found) => Some(found),
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                println!("SKIPPED: cachestat: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn pages_just_written_are_cached_and_a_range_past_the_end_adds_none() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[1; 16 * 4096]).unwrap();
        let Some(whole) = asked(&file, 0..u64::MAX) else { return };
        assert_eq!(whole.cached, 16);
        assert!(whole.dirty + whole.writeback <= 16, "{whole:?}");
        assert_eq!(asked(&file, 4096..3 * 4096).unwrap().cached, 2);
        assert_eq!(asked(&file, 4095..4097).unwrap().cached, 2);
        assert_eq!(asked(&file, 16 * 4096..17 * 4096).unwrap().cached, 0);
    }

    #[test]
    fn an_empty_range_holds_nothing() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(cachestat(&file, 4096..4096).unwrap(), CacheStat::default());
        assert_eq!(cachestat(&file, Range { start: 2, end: 1 }).unwrap(), CacheStat::default());
    }
}
