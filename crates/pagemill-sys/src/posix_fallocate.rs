//! `posix_fallocate(3)`: the C library's call, not the kernel's.
//!
//! Why it is here although rustix offers `fallocate`: this is what PostgreSQL calls to extend files,
//! and where the kernel's call is not supported, glibc writes a byte to every block instead, and musl
//! does not. The two cannot be told apart by the result, only beside `fallocate` on the same file.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Makes sure that `len` bytes from `offset` on are allocated; the file grows to hold them.
///
/// # Errors
/// What the library reports: ENOSPC, EFBIG, EINVAL for a length of 0, EOPNOTSUPP (musl). EINVAL also
/// for numbers above `i64::MAX`.
pub fn posix_fallocate(fd: impl AsFd, offset: u64, len: u64) -> io::Result<()> {
    let signed = |number| {
        libc::off64_t::try_from(number).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
    };
    let (offset, len) = (signed(offset)?, signed(len)?);
    let fd = fd.as_fd();
    // SAFETY: the call takes no pointer; the descriptor is borrowed, so it stays open.
    match unsafe { libc::posix_fallocate64(fd.as_raw_fd(), offset, len) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_grows_to_hold_what_was_allocated_and_nothing_is_refused() {
        let file = tempfile::tempfile().unwrap();
        posix_fallocate(&file, 8192, 8192).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 16_384);
        assert_eq!(posix_fallocate(&file, 0, 0).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}
