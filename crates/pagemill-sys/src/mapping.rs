//! The first bytes of a file, mapped into memory, read-only and shared with the page cache.
//!
//! Why: a page that the page cache holds is read without a system call and without a copy. What that
//! costs is told here: page faults instead of calls, and a file that changes or shrinks does so under
//! the reader's eyes.
//!
//! # What a lent slice is
//!
//! Rust's `&[u8]` promises bytes that do not change while it lives. A mapping cannot promise that by
//! itself: another process may write or shorten the file, and a page that faults turns to zeros. So
//! this is the contract, and why it is enough:
//!
//! - **A caller maps files at rest only**: those of a cluster that was shut down and that no server
//!   runs on. Then the bytes do not change, and the promise holds. Under a running server read with
//!   `pread` into a buffer; do not map.
//! - **Should a file change all the same**, the address, the length and the mapping's existence do
//!   not: only plain bytes differ from one load to the next. Every value of a byte is valid, and no
//!   length, pointer or reference is ever stored in the file's bytes, only offsets that the reader
//!   checks as it does with any damaged file. By the language's letter such a race is still
//!   undefined behaviour, since the compiler may load a byte twice and trust that both are the
//!   same; that is the remaining risk, taken on breach of the contract only, and the reason why
//!   mapping is one way to read among several.
//! - **Should a page vanish**, its zeros are no answer: [`Mapping::touch`] before use and
//!   [`Mapping::faulted`] after it say so. Ask `faulted` in the function that called
//!   [`Mapping::bytes`], after the slice's last use: inside a function that got the slice as an
//!   argument, the compiler may move a load behind the question.
//!
//! # What faults, and what does not
//!
//! Granularity is the machine's page (4096 bytes on x86-64; up to 65536 on aarch64), not a block.
//! Bytes past the end of a file but within its last machine page read as zeros with no fault: whoever
//! needs the exact end compares the file's size. A system call that is handed bytes of a vanished
//! page returns `EFAULT` and no signal, and records nothing.
//!
//! Invariants: `start` is page-aligned and `len` bytes behind it are mapped and readable until `drop`
//! (both dangle for `len` 0, which has no slot); the slot in the fault table is this mapping's alone
//! and covers its whole machine pages; nothing writes through the mapping; a faulted mapping stays
//! faulted, even if the file grows again: drop it and map anew.

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, fence};

use crate::fault_table::{self, Access, Slot};
use crate::sigbus;

pub use crate::fault_table::{LISTED_PAGES, MAX_MAPPINGS};

/// A read-only shared mapping of the first bytes of a file; see the module for what it promises.
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
    slot: Option<&'static Slot>,
}

/// How a range of a mapping is going to be read (`madvise(2)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapAdvice {
    /// No particular order: the kernel's default read-ahead.
    Normal,
    /// In ascending order: more read-ahead.
    Sequential,
    /// In no order: no read-ahead.
    Random,
    /// Soon: start reading now, do not wait.
    WillNeed,
    /// Now: read and map every page, and return when done. An error where a page cannot be read
    /// (`EFAULT`: past the end of the file, or its device failed) and on kernels before Linux 5.14
    /// (`EINVAL`).
    PopulateRead,
}

/// A byte of the mapped file that could not be read: it was replaced by zero, together with the rest
/// of its machine page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faulted {
    /// The byte's offset in the file: the lowest one of the range that was asked about.
    pub offset: u64,
}

impl fmt::Display for Faulted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the mapped file could not be read at offset {}: it was cut short, or its device failed",
            self.offset
        )
    }
}

impl std::error::Error for Faulted {}

impl Mapping {
    /// Maps the first `len` bytes of the file `fd`, which may be closed afterwards.
    ///
    /// `len` may exceed the file's size; the pages behind its end fault. The first mapping of a
    /// process installs the handler of `SIGBUS`, which stays.
    ///
    /// # Errors
    /// The system's, with its errno: `ENODEV` (not mappable), `EACCES` (not open for reading),
    /// `ENOMEM` (too many mappings, or no address space). Of kind `QuotaExceeded` when the process
    /// has [`MAX_MAPPINGS`] mappings, of kind `InvalidInput` when `len` is half the address space.
    pub fn new(fd: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        if len == 0 {
            return Ok(Self { start: NonNull::dangling(), len, slot: None });
        }
        let mapped_len = len
            .checked_next_multiple_of(sigbus::page_size())
            .filter(|&len| isize::try_from(len).is_ok())
            .ok_or_else(|| invalid("a mapping must be smaller than half the address space"))?;
        sigbus::install()?;
        let slot = fault_table::claim().ok_or_else(table_is_full)?;
        match map(fd, len) {
            Ok(start) => {
                slot.publish(start.as_ptr() as usize, mapped_len, Access::Read);
                Ok(Self { start, len, slot: Some(slot) })
            }
            Err(error) => {
                slot.release();
                Err(error)
            }
        }
    }

    /// How many bytes of the file are mapped.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no byte is mapped.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The file's bytes at the offsets `range`. Reading them costs no call, but may fault.
    ///
    /// # Panics
    /// When the range is not within the mapping, as slicing does.
    #[inline]
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        // SAFETY: `len` bytes from `start` are mapped readable as long as `self` lives (or there are
        // none, and `start` is dangling and aligned); a page that the file lacks reads as zeros, by
        // the handler installed in `new`. That nobody changes them is the contract of this module.
        let all = unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) };
        &all[range]
    }

    /// Reads one byte in every `step` bytes of the range, and its last one, so that pages are
    /// fetched and faults happen here.
    ///
    /// A step of at most the machine's page size meets every page; the size of a block (8192 bytes)
    /// may miss a cut in its middle, which [`Mapping::faulted`] finds after use.
    ///
    /// # Errors
    /// When a byte of the range is known to be lost, by this call or before it.
    ///
    /// # Panics
    /// When the range is not within the mapping, as slicing does.
    pub fn touch(&self, range: Range<usize>, step: usize) -> Result<(), Faulted> {
        let bytes = self.bytes(range.clone());
        for byte in bytes.iter().step_by(step.max(1)).chain(bytes.last()) {
            // SAFETY: a reference is valid for reads; volatile, so that the load is made and is made
            // before the question below.
            unsafe { std::ptr::read_volatile(byte) };
        }
        match self.faulted(range) {
            Some(offset) => Err(Faulted { offset }),
            None => Ok(()),
        }
    }

    /// The lowest offset of the range whose byte could not be read when somebody tried, since the
    /// file was mapped. Costs one load as long as nothing ever faulted in this mapping.
    ///
    /// Exact: the bytes it speaks of are those that read as zeros in place of the file's. Up to
    /// [`LISTED_PAGES`] machine pages are told apart; a further one
    /// turns everything from there to the mapping's end into zeros, and counts as such.
    #[inline]
    pub fn faulted(&self, range: Range<usize>) -> Option<u64> {
        // The loads of the caller's bytes come before the load of the note about them.
        fence(Ordering::Acquire);
        let slot = self.slot?;
        if !slot.any_fault() {
            return None;
        }
        slot.first_fault(&range, sigbus::page_size()).map(|offset| offset as u64)
    }

    /// Tells the kernel how the range will be read: rounded out to whole machine pages.
    ///
    /// # Errors
    /// The system's, with its errno (see [`MapAdvice`]); of kind `InvalidInput` when the range is not
    /// within the mapping.
    pub fn advise(&self, range: Range<usize>, advice: MapAdvice) -> io::Result<()> {
        let Some((start, len)) = self.whole_pages(range)? else { return Ok(()) };
        // SAFETY: the pages lie within this mapping, and none of these advices changes what its
        // bytes are.
        let result = unsafe { libc::madvise(start.cast(), len, advice.number()) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Lets go of the memory that the range takes in this process: rounded out to whole machine pages. The
    /// bytes stay mapped, and whoever reads them again gets them from the page cache.
    ///
    /// # Errors
    /// The system's, with its errno; of kind `InvalidInput` when the range is not within the mapping.
    pub fn release(&self, range: Range<usize>) -> io::Result<()> {
        let Some((start, len)) = self.whole_pages(range)? else { return Ok(()) };
        // SAFETY: the pages lie within this mapping, which is shared and read-only: their contents come
        // again from the file. Those that the handler of SIGBUS put in come again as the zeros they were.
        let result = unsafe { libc::madvise(start.cast(), len, libc::MADV_DONTNEED) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// For each machine page that has bytes of the range: whether it is in memory now, so that
    /// reading it needs no device (`mincore(2)`).
    ///
    /// The kernel says `true` for all when the process may not write the file and does not own it.
    ///
    /// # Errors
    /// As [`Mapping::advise`].
    pub fn resident(&self, range: Range<usize>) -> io::Result<Vec<bool>> {
        let Some((start, len)) = self.whole_pages(range)? else { return Ok(Vec::new()) };
        let mut pages = vec![0_u8; len.div_ceil(sigbus::page_size())];
        // SAFETY: the pages lie within this mapping, and the vector has a byte for each of them.
        let result = unsafe { libc::mincore(start.cast(), len, pages.as_mut_ptr()) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(pages.iter().map(|page| page & 1 != 0).collect())
    }

    /// The address of the machine page that the range begins in, and the bytes from there to the
    /// range's end; nothing for an empty range.
    fn whole_pages(&self, range: Range<usize>) -> io::Result<Option<(*mut u8, usize)>> {
        if range.start > range.end || range.end > self.len {
            return Err(invalid("the range is not within the mapping"));
        }
        if range.is_empty() {
            return Ok(None);
        }
        let first = range.start - range.start % sigbus::page_size();
        // `start` is page-aligned and `first` at most `len`: the pointer stays in the mapping.
        Ok(Some((self.start.as_ptr().wrapping_add(first), range.end - first)))
    }
}

impl MapAdvice {
    fn number(self) -> libc::c_int {
        match self {
            Self::Normal => libc::MADV_NORMAL,
            Self::Sequential => libc::MADV_SEQUENTIAL,
            Self::Random => libc::MADV_RANDOM,
            Self::WillNeed => libc::MADV_WILLNEED,
            Self::PopulateRead => libc::MADV_POPULATE_READ,
        }
    }
}

fn map(fd: BorrowedFd<'_>, len: usize) -> io::Result<NonNull<u8>> {
    let nowhere = std::ptr::null_mut();
    // SAFETY: without MAP_FIXED the kernel chooses addresses that nothing has, so no memory in use
    // changes; the descriptor is open as long as it is borrowed.
    let start =
        unsafe { libc::mmap(nowhere, len, libc::PROT_READ, libc::MAP_SHARED, fd.as_raw_fd(), 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(start.cast()).ok_or_else(|| invalid("the system mapped the file at address 0"))
}

pub(crate) fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

pub(crate) fn table_is_full() -> io::Error {
    let why = format!("{MAX_MAPPINGS} files are mapped already, the most that one process may map");
    io::Error::new(io::ErrorKind::QuotaExceeded, why)
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let Some(slot) = self.slot else { return };
        slot.withdraw();
        // SAFETY: these bytes were mapped by `new` and are unmapped only here; every slice lent from
        // them borrowed `self`, so none is left. The slot was withdrawn, so the handler will not
        // touch the addresses when something else has them.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
        slot.release();
    }
}

// SAFETY: the mapping belongs to the process, not to a thread, and any thread may unmap it; the slot
// is made of atomics.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference only reads the bytes, the kernel's view of them, and atomics.
unsafe impl Sync for Mapping {}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapping").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
