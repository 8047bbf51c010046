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
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;
    use std::os::unix::process::ExitStatusExt;
    use std::sync::Barrier;

    use super::*;
    use crate::own_process;

    const BLOCK: usize = 8192;

    /// A file whose every byte tells where it is, never zero.
    fn file_of(len: usize) -> (File, Vec<u8>) {
        let content: Vec<u8> = (0..len).map(|i| (i / 4096 % 127 + i % 127 + 1) as u8).collect();
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&content, 0).unwrap();
        (file, content)
    }

    fn mapping_of(file: &File, len: usize) -> Mapping {
        Mapping::new(file.as_fd(), len).unwrap()
    }

    #[test]
    fn what_was_let_go_of_reads_as_before_and_what_could_not_be_read_as_lost() {
        let (file, content) = file_of(4 * BLOCK);
        let mapping = mapping_of(&file, content.len());
        assert_eq!(mapping.bytes(0..content.len()), content);
        mapping.release(BLOCK..3 * BLOCK).unwrap();
        assert_eq!(mapping.bytes(0..content.len()), content);
        file.set_len(BLOCK as u64).unwrap();
        assert!(mapping.touch(BLOCK..2 * BLOCK, 4096).is_err());
        mapping.release(0..content.len()).unwrap();
        assert_eq!(mapping.bytes(0..BLOCK), &content[..BLOCK]);
        assert!(mapping.touch(BLOCK..2 * BLOCK, 4096).is_err());
        assert!(mapping.release(0..content.len() + 1).is_err());
    }

    #[test]
    fn the_bytes_are_those_of_the_file_even_when_it_is_closed() {
        let (file, content) = file_of(10 * BLOCK + 100);
        let mapping = mapping_of(&file, content.len());
        drop(file);
        assert_eq!(mapping.len(), content.len());
        assert_eq!(mapping.bytes(0..content.len()), content);
        assert_eq!(mapping.bytes(5000..5010), &content[5000..5010]);
        assert_eq!(mapping.touch(0..content.len(), BLOCK), Ok(()));
        assert_eq!(mapping.faulted(0..content.len()), None);
    }

    #[test]
    fn nothing_is_mapped_for_no_bytes() {
        let (file, _) = file_of(0);
        let mapping = mapping_of(&file, 0);
        assert!(mapping.is_empty());
        assert_eq!(mapping.bytes(0..0), b"");
        assert_eq!(mapping.touch(0..0, BLOCK), Ok(()));
        assert!(mapping.advise(0..0, MapAdvice::WillNeed).is_ok());
        assert_eq!(mapping.resident(0..0).unwrap(), [false; 0]);
    }

    #[test]
    fn advice_is_taken_and_populated_pages_are_resident() {
        let (file, content) = file_of(4 * BLOCK);
        let mapping = mapping_of(&file, content.len());
        for advice in [
            MapAdvice::Normal,
            MapAdvice::Sequential,
            MapAdvice::Random,
            MapAdvice::WillNeed,
            MapAdvice::PopulateRead,
        ] {
            mapping.advise(BLOCK + 1..3 * BLOCK, advice).unwrap();
        }
        let pages = 2 * BLOCK / sigbus::page_size().min(2 * BLOCK);
        assert_eq!(mapping.resident(BLOCK + 1..3 * BLOCK).unwrap(), vec![true; pages]);
        let beyond = mapping.advise(0..4 * BLOCK + 1, MapAdvice::Normal).unwrap_err();
        assert_eq!(beyond.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_file_cut_to_nothing_is_faulted_from_the_first_byte_asked_for() {
        let (file, content) = file_of(300 * BLOCK);
        let mapping = mapping_of(&file, content.len());
        assert_eq!(mapping.touch(0..content.len(), BLOCK), Ok(()));
        file.set_len(0).unwrap();
        let asked = 7 * BLOCK + 3..8 * BLOCK;
        assert_eq!(mapping.touch(asked, 4096), Err(Faulted { offset: 7 * BLOCK as u64 + 3 }));
        assert_eq!(mapping.faulted(0..7 * BLOCK), None, "what nobody read is not known to be lost");
        assert_eq!(mapping.touch(0..content.len(), 4096), Err(Faulted { offset: 0 }));
        assert!(mapping.bytes(0..content.len()).iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_file_cut_in_the_middle_keeps_the_bytes_before_the_cut() {
        let (file, content) = file_of(64 * BLOCK);
        let mapping = mapping_of(&file, content.len());
        let cut = 32 * BLOCK; // a multiple of every machine's page size
        file.set_len(cut as u64).unwrap();
        assert_eq!(mapping.touch(0..cut, BLOCK), Ok(()));
        assert_eq!(mapping.bytes(0..cut), &content[..cut]);
        let lost = Err(Faulted { offset: cut as u64 });
        assert_eq!(mapping.touch(0..content.len(), 4096), lost);
        assert_eq!(mapping.touch(0..cut, BLOCK), Ok(()));
    }

    #[test]
    fn a_fault_in_use_is_found_after_use() {
        let (file, content) = file_of(16 * BLOCK);
        let mapping = mapping_of(&file, content.len());
        file.set_len(8 * BLOCK as u64).unwrap();
        let sum: u64 = mapping.bytes(8 * BLOCK..9 * BLOCK).iter().map(|&byte| byte as u64).sum();
        assert_eq!(sum, 0);
        assert_eq!(mapping.faulted(0..content.len()), Some(8 * BLOCK as u64));
    }

    #[test]
    fn a_faulted_mapping_stays_faulted_and_a_new_one_does_not() {
        let (file, content) = file_of(16 * BLOCK);
        let mapping = mapping_of(&file, content.len());
        file.set_len(0).unwrap();
        assert!(mapping.touch(0..1, 1).is_err());
        file.write_all_at(&content, 0).unwrap();
        assert_eq!(mapping.touch(0..1, 1), Err(Faulted { offset: 0 }));
        let new = mapping_of(&file, content.len());
        assert_eq!(new.touch(0..content.len(), 4096), Ok(()));
        assert_eq!(new.bytes(0..content.len()), content);
    }

    #[test]
    fn bytes_behind_the_end_of_the_file_are_faulted() {
        let (file, content) = file_of(16 * BLOCK);
        let mapping = mapping_of(&file, 1 << 24);
        assert_eq!(mapping.touch(0..content.len(), 4096), Ok(()));
        let end = content.len() as u64;
        assert_eq!(mapping.touch(0..1 << 24, 4096), Err(Faulted { offset: end }));
        let error = mapping.advise(0..1 << 24, MapAdvice::PopulateRead);
        assert!(error.is_ok() || error.is_err(), "an answer, and no signal");
    }

    #[test]
    fn many_threads_survive_faults_in_the_same_pages() {
        const THREADS: usize = 8;
        let (file, content) = file_of(256 * BLOCK);
        let mapping = mapping_of(&file, content.len());
        let cut = 128 * BLOCK;
        file.set_len(cut as u64).unwrap();
        let start = Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (mapping, start, content) = (&mapping, &start, &content);
                scope.spawn(move || {
                    start.wait();
                    for number in 0..256 {
                        let block = (number * 37 + thread) % 256;
                        let range = block * BLOCK..(block + 1) * BLOCK;
                        let touched = mapping.touch(range.clone(), 4096);
                        if range.start >= cut {
                            assert_eq!(touched, Err(Faulted { offset: range.start as u64 }));
                        } else {
                            assert_eq!(touched, Ok(()));
                            assert_eq!(mapping.bytes(range.clone()), &content[range]);
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn faults_in_one_mapping_are_not_those_of_another() {
        let (file, content) = file_of(16 * BLOCK);
        let (other, _) = file_of(16 * BLOCK);
        let first = mapping_of(&file, content.len());
        let second = mapping_of(&other, content.len());
        file.set_len(0).unwrap();
        assert!(first.touch(0..content.len(), 4096).is_err());
        assert_eq!(second.touch(0..content.len(), 4096), Ok(()));
    }

    #[test]
    fn what_cannot_be_mapped_is_an_error_with_its_errno() {
        let directory = File::open("/").unwrap();
        let error = Mapping::new(directory.as_fd(), BLOCK).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
        let too_long = Mapping::new(directory.as_fd(), usize::MAX).unwrap_err();
        assert_eq!(too_long.kind(), io::ErrorKind::InvalidInput);
    }

    /// Reads a page that its file has lost, through a mapping that Pagemill knows nothing of.
    fn fault_elsewhere() {
        let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        let (file, _) = file_of(BLOCK);
        let wild = map(file.as_fd(), BLOCK).unwrap();
        file.set_len(0).unwrap();
        // SAFETY: the limit is initialized; the page was just mapped, and the fault that its load
        // raises is what this process is started for.
        unsafe {
            libc::setrlimit(libc::RLIMIT_CORE, &no_core);
            std::ptr::read_volatile(wild.as_ptr());
        }
    }

    #[test]
    fn a_fault_outside_every_mapping_still_kills_the_process() {
        let status = own_process::run("mapping::tests::dies_of_a_fault_elsewhere").unwrap();
        assert_eq!(status.signal(), Some(libc::SIGBUS));
    }

    #[test]
    fn dies_of_a_fault_elsewhere() {
        if !own_process::is_alone() {
            return;
        }
        let (file, content) = file_of(BLOCK);
        let mapping = mapping_of(&file, content.len());
        file.set_len(0).unwrap();
        assert!(mapping.touch(0..BLOCK, 4096).is_err(), "a fault of ours is survived");
        drop(mapping);
        fault_elsewhere();
    }

    const HANDLED: i32 = 42;

    extern "C" fn exit_handled(_: libc::c_int) {
        // SAFETY: _exit is async-signal-safe and does not return.
        unsafe { libc::_exit(HANDLED) }
    }

    #[test]
    fn a_handler_installed_before_gets_what_is_not_ours() {
        assert_eq!(
            own_process::run("mapping::tests::exits_in_the_handler_installed_before")
                .unwrap()
                .code(),
            Some(HANDLED)
        );
    }

    #[test]
    fn exits_in_the_handler_installed_before() {
        if !own_process::is_alone() {
            return;
        }
        let handler = exit_handled as extern "C" fn(libc::c_int);
        // SAFETY: the handler has the signature of a plain handler, and does only what one may.
        unsafe { libc::signal(libc::SIGBUS, handler as usize) };
        let (file, content) = file_of(BLOCK);
        let mapping = mapping_of(&file, content.len());
        file.set_len(0).unwrap();
        assert!(mapping.touch(0..BLOCK, 4096).is_err());
        fault_elsewhere();
    }

    #[test]
    fn one_mapping_too_many_is_refused() {
        assert_eq!(own_process::run("mapping::tests::takes_every_place").unwrap().code(), Some(0));
    }

    #[test]
    fn takes_every_place() {
        if !own_process::is_alone() {
            return;
        }
        let (file, content) = file_of(BLOCK);
        let mut all: Vec<_> = (0..MAX_MAPPINGS).map(|_| mapping_of(&file, BLOCK)).collect();
        let error = Mapping::new(file.as_fd(), BLOCK).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::QuotaExceeded);
        all.pop();
        assert_eq!(mapping_of(&file, BLOCK).bytes(0..BLOCK), content);
    }
}
