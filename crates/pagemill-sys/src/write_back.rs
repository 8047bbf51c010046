//! `sync_file_range(2)`: the page cache's changes of a part of a file, sent to the device.
//!
//! Why: a writer that sends each stretch on its way while it fills the next one leaves little for the sync
//! at the end to wait for, and the kernel never has so much to write at once that others wait too.
//!
//! Nothing here makes anything durable: neither the device's own cache nor the file's size and place are
//! written, and where the file system does not overwrite in place the bytes may not be found again. What
//! must last needs `fdatasync`.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};

/// How far a range is to be brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteBack {
    /// Begin to write it, and do not wait (but for a place in the device's queue).
    Begin,
    /// Write it, and wait until the device took it.
    Wait,
}

/// Sends what the page cache changed in a range of a file, in bytes, to the device. Nothing for an empty
/// range: to the kernel a length of 0 means "to the end".
///
/// # Errors
/// What the kernel reports: EIO (also for an earlier write of the file, where it waits), ENOSPC, ENOMEM,
/// ESPIPE, EINVAL for numbers above `i64::MAX`, ENOSYS where there is no such call.
pub fn write_back(fd: impl AsFd, range: Range<u64>, how: WriteBack) -> io::Result<()> {
    if range.is_empty() {
        return Ok(());
    }
    let signed = |number| {
        libc::off64_t::try_from(number).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
    };
    let (offset, len) = (signed(range.start)?, signed(range.end - range.start)?);
    let flags = match how {
        WriteBack::Begin => libc::SYNC_FILE_RANGE_WRITE,
        WriteBack::Wait => {
            libc::SYNC_FILE_RANGE_WAIT_BEFORE
                | libc::SYNC_FILE_RANGE_WRITE
                | libc::SYNC_FILE_RANGE_WAIT_AFTER
        }
    };
    let fd = fd.as_fd();
    // SAFETY: the call takes no pointer; the descriptor is borrowed, so it stays open.
    match unsafe { libc::sync_file_range(fd.as_raw_fd(), offset, len, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_range_is_sent_to_the_device_and_an_empty_one_costs_nothing() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 20_000]).unwrap();
        for how in [WriteBack::Begin, WriteBack::Wait] {
            write_back(&file, 0..8192, how).unwrap();
            write_back(&file, 8192..8192, how).unwrap();
        }
        let (from, _to) = io::pipe().unwrap();
        let refused = write_back(&from, 0..1, WriteBack::Begin).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ESPIPE));
        let refused = write_back(&file, 0..u64::MAX, WriteBack::Begin).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
    }
}
