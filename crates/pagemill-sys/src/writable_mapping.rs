//! A stretch of a file mapped to be written: bytes go to the page cache by a copy and no call.
//!
//! No slice of it is ever lent, so that nothing here depends on what other processes do with the file: bytes
//! are copied in, and that is all. A store may find that the file does not reach so far, or that there is
//! no space for the page (where the file system writes each block to a new place). Then `SIGBUS` is raised,
//! the handler (`sigbus.rs`) puts a page of zeros in that place which belongs to no file, and
//! [`WritableMapping::write`] says so. Such a page stays lost, as does what is written to it.
//!
//! Invariants: `start` is page-aligned and `len` bytes behind it are mapped, readable and writable until
//! `drop`; the slot in the fault table is this mapping's alone and covers its whole machine pages; only
//! `write` changes the bytes, through an exclusive borrow.

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, fence};

use crate::fault_table::{self, Access, Slot};
use crate::mapping::{Faulted, invalid, table_is_full};
use crate::sigbus;

/// A shared mapping of a part of a file, to be written.
pub struct WritableMapping {
    start: NonNull<u8>,
    len: usize,
    /// Where in the file it begins.
    offset: u64,
    slot: &'static Slot,
}

impl WritableMapping {
    /// Maps `len` bytes, at least one, of the file `fd` from `offset` on; the file is open for reading and
    /// writing and may be closed afterwards.
    ///
    /// The range may exceed the file's size: what is written there is lost, and [`write`](Self::write) says
    /// so.
    ///
    /// # Errors
    /// The system's, with its errno: `EINVAL` (the offset is no multiple of the machine's page size), `EACCES`
    /// (not open for both), `ENODEV`, `ENOMEM`. Of kinds `QuotaExceeded` and `InvalidInput` as for
    /// [`Mapping::new`](crate::Mapping::new).
    pub fn new(fd: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<Self> {
        let mapped_len = len
            .checked_next_multiple_of(sigbus::page_size())
            .filter(|&mapped| len > 0 && isize::try_from(mapped).is_ok())
            .ok_or_else(|| {
                invalid("a mapping must have bytes, and fewer than half the address space")
            })?;
        sigbus::install()?;
        let slot = fault_table::claim().ok_or_else(table_is_full)?;
        match map(fd, offset, len) {
            Ok(start) => {
                slot.publish(start.as_ptr() as usize, mapped_len, Access::Write);
                Ok(Self { start, len, offset, slot })
            }
            Err(error) => {
                slot.release();
                Err(error)
            }
        }
    }

    /// How many bytes are mapped.
    pub fn len(&self) -> usize {
        self.len
    }

    /// False: there is always a byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies `bytes` to `at`, counted from the start of the mapping.
    ///
    /// # Errors
    /// When one of these bytes did not come to the file, by this call or because its page was lost before.
    ///
    /// # Panics
    /// When the bytes do not lie within the mapping, as slicing does.
    pub fn write(&mut self, at: usize, bytes: &[u8]) -> Result<(), Faulted> {
        let end = at.checked_add(bytes.len()).filter(|end| *end <= self.len);
        let end = end.expect("the bytes lie within the mapping"); // infallible: the caller's promise
        self.populate(at..end);
        // SAFETY: `at` and `end` lie within the mapping (checked above), whose bytes are writable as long as
        // `self` lives; a page the file lacks becomes one that is, by the handler installed in `new`. Nobody
        // borrows from the mapping, and the borrow of `self` is exclusive, so the bytes do not overlap
        // `bytes` unless another mapping of the file was lent against its own contract.
        unsafe {
            let to = self.start.as_ptr().add(at);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
        // The stores above come before the load of the note about them.
        fence(Ordering::SeqCst);
        if !self.slot.any_fault() {
            return Ok(());
        }
        match self.slot.first_fault(&(at..end), sigbus::page_size()) {
            Some(lost) => Err(Faulted { offset: self.offset + lost as u64 }),
            None => Ok(()),
        }
    }

    /// Has the kernel map the pages of a range at once rather than by a fault each (Linux 5.14). Whatever
    /// comes of it, the copy will tell.
    fn populate(&self, range: Range<usize>) {
        let first = range.start - range.start % sigbus::page_size();
        let start = self.start.as_ptr().wrapping_add(first);
        // SAFETY: the pages lie within this mapping, and the advice changes none of their bytes.
        unsafe { libc::madvise(start.cast(), range.end - first, libc::MADV_POPULATE_WRITE) };
    }

    /// Waits until the device holds what was written to a range, as far as it did not get lost (`msync`).
    ///
    /// # Errors
    /// The system's, with its errno: `EIO`, `ENOSPC`. Of kind `InvalidInput` when the range is not within the
    /// mapping.
    pub fn sync(&self, range: Range<usize>) -> io::Result<()> {
        if range.start > range.end || range.end > self.len {
            return Err(invalid("the range is not within the mapping"));
        }
        let first = range.start - range.start % sigbus::page_size();
        let start = self.start.as_ptr().wrapping_add(first);
        // SAFETY: the pages lie within this mapping, and the call changes none of its bytes.
        let result = unsafe { libc::msync(start.cast(), range.end - first, libc::MS_SYNC) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

fn map(fd: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<NonNull<u8>> {
    let offset = libc::off64_t::try_from(offset).map_err(|_| invalid("no file is so long"))?;
    let (nowhere, access) = (std::ptr::null_mut(), libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: without MAP_FIXED the kernel chooses addresses that nothing has, so no memory in use
    // changes; the descriptor is open as long as it is borrowed.
    let start =
        unsafe { libc::mmap64(nowhere, len, access, libc::MAP_SHARED, fd.as_raw_fd(), offset) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(start.cast()).ok_or_else(|| invalid("the system mapped the file at address 0"))
}

impl Drop for WritableMapping {
    fn drop(&mut self) {
        self.slot.withdraw();
        // SAFETY: these bytes were mapped by `new` and are unmapped only here, and nothing is lent from them.
        // The slot was withdrawn, so the handler will not touch the addresses when something else has them.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
        self.slot.release();
    }
}

// SAFETY: the mapping belongs to the process, not to a thread, and any thread may write to it or unmap it;
// the slot is made of atomics.
unsafe impl Send for WritableMapping {}
// SAFETY: a shared reference only asks the kernel, and changes nothing.
unsafe impl Sync for WritableMapping {}

impl fmt::Debug for WritableMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { len, offset, .. } = self;
        f.debug_struct("WritableMapping")
            .field("len", len)
            .field("offset", offset)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    fn page() -> usize {
        sigbus::page_size()
    }

    #[test]
    fn what_is_written_to_the_mapping_is_in_the_file() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4 * page() as u64).unwrap();
        let mut mapping = WritableMapping::new(file.as_fd(), page() as u64, 3 * page()).unwrap();
        mapping.write(5, b"hello").unwrap();
        mapping.write(2 * page(), &vec![7; page()]).unwrap();
        mapping.sync(0..3 * page()).unwrap();
        drop(mapping);
        let read = |len: usize, offset: usize| {
            let mut bytes = vec![0; len];
            file.read_exact_at(&mut bytes, offset as u64).unwrap();
            bytes
        };
        assert_eq!(read(7, page() + 4), b"\0hello\0");
        assert_eq!(read(page(), 3 * page()), vec![7; page()]);
    }

    #[test]
    fn bytes_behind_the_end_of_the_file_are_told_and_not_those_before_it() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(2 * page() as u64).unwrap();
        let mut mapping = WritableMapping::new(file.as_fd(), 0, 8 * page()).unwrap();
        let lost = mapping.write(page(), &vec![9; 3 * page()]).unwrap_err();
        assert_eq!(lost.offset, 2 * page() as u64);
        mapping.write(0, &vec![8; 2 * page()]).unwrap();
        // What was lost stays lost, also when the file has grown.
        file.set_len(8 * page() as u64).unwrap();
        assert!(mapping.write(3 * page(), b"x").is_err());
        mapping.write(6 * page(), b"x").unwrap();
        drop(mapping);
        let mut bytes = vec![0; 3 * page()];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert!(bytes[..2 * page()].iter().all(|byte| *byte == 8));
        assert!(bytes[2 * page()..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_file_that_cannot_be_written_and_an_offset_within_a_page_are_refused() {
        let read_only = File::open("/dev/zero").unwrap();
        assert!(WritableMapping::new(read_only.as_fd(), 0, 1).is_err());
        let file = tempfile::tempfile().unwrap();
        let refused = WritableMapping::new(file.as_fd(), 1, 1).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
        let refused = WritableMapping::new(file.as_fd(), 0, 0).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }
}
