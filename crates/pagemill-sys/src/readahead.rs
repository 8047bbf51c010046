//! `readahead(2)`: fetch a range of a file into the page cache.
//!
//! Why beside `posix_fadvise`: it is a call of its own, which sandboxes and file systems may treat
//! differently. rustix does not offer it. It may block while the file's block map is read.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Asks for `len` bytes from `offset` on to be fetched, and does not wait for them.
///
/// # Errors
/// What the kernel reports: EINVAL where the file system or the type of file has no readahead, EBADF
/// for a file not open for reading. EINVAL also for an offset above `i64::MAX`.
pub fn readahead(fd: impl AsFd, offset: u64, len: usize) -> io::Result<()> {
    let invalid = |_| io::Error::from_raw_os_error(libc::EINVAL);
    let offset = libc::off64_t::try_from(offset).map_err(invalid)?;
    let fd = fd.as_fd();
    // SAFETY: the call takes no pointer; the descriptor is borrowed, so it stays open.
    match unsafe { libc::readahead(fd.as_raw_fd(), offset, len) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_ahead_and_a_pipe_is_not() {
        let file = tempfile::tempfile().unwrap();
        assert!(readahead(&file, 0, 8192).is_ok());
        let (reader, _writer) = io::pipe().unwrap();
        let error = readahead(&reader, 0, 8192).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
        assert_eq!(readahead(&file, u64::MAX, 1).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}
