//! Where a file lies on its device: its extents, by the `FIEMAP` request.
//!
//! Why: how many pieces a file is in shows whether it was extended well, and whether two files share their
//! blocks shows whether a copy was one.
//!
//! Invariant: `RawMap` and `RawExtent` are laid out as the kernel's `struct fiemap` and `struct fiemap_extent`
//! (`include/uapi/linux/fiemap.h`), the extents right behind the head.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// The number of the request: `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: libc::c_ulong = 0xC020_660B;
/// Writes back what is changed before it looks (`FIEMAP_FLAG_SYNC`).
const SYNC: u32 = 1;
/// This extent is the file's last (`FIEMAP_EXTENT_LAST`).
const LAST: u32 = 1;
/// Allocated, and reads as zeros (`FIEMAP_EXTENT_UNWRITTEN`).
const UNWRITTEN: u32 = 0x800;
/// Other files have it too (`FIEMAP_EXTENT_SHARED`).
const SHARED: u32 = 0x2000;
/// Extents asked for at once.
const BATCH: usize = 128;

/// A stretch of a file that lies in one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Where in the file, in bytes.
    pub logical: u64,
    /// Where on the device, or in the file system's own numbering, in bytes.
    pub physical: u64,
    /// How long, in bytes.
    pub len: u64,
    /// True when it is only allocated, and reads as zeros.
    pub unwritten: bool,
    /// True when other files share it.
    pub shared: bool,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct RawMap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [RawExtent; BATCH],
}

const _: () = assert!(size_of::<RawExtent>() == 56 && size_of::<RawMap>() == 32 + 56 * BATCH);

/// The extents of a file, in the order of the file; what is changed in the page cache is written back first.
///
/// # Errors
/// What the kernel reports: EOPNOTSUPP where the file system does not tell, EIO, EBADF.
pub fn extents(fd: impl AsFd) -> io::Result<Vec<Extent>> {
    let (mut found, mut start) = (Vec::new(), 0);
    loop {
        let map = ask(&fd, start)?;
        let count = (map.mapped_extents as usize).min(BATCH);
        for raw in map.extents.iter().take(count) {
            found.push(Extent {
                logical: raw.logical,
                physical: raw.physical,
                len: raw.length,
                unwritten: raw.flags & UNWRITTEN != 0,
                shared: raw.flags & SHARED != 0,
            });
            start = raw.logical.saturating_add(raw.length);
            if raw.flags & LAST != 0 {
                return Ok(found);
            }
        }
        if count == 0 {
            return Ok(found);
        }
    }
}

fn ask(fd: impl AsFd, start: u64) -> io::Result<Box<RawMap>> {
    let mut map = Box::new(RawMap {
        start,
        length: u64::MAX - start,
        flags: SYNC,
        mapped_extents: 0,
        extent_count: BATCH as u32,
        reserved: 0,
        extents: [RawExtent::default(); BATCH],
    });
    let fd = fd.as_fd();
    let at: *mut RawMap = &raw mut *map;
    // SAFETY: the request reads the head of a `fiemap` and writes it and at most `extent_count` extents behind
    // it, which is how many there is room for (see the module's invariant); the pointer is to a live value that
    // nobody else borrows, and the kernel does not keep it. The descriptor is borrowed, so it stays open.
    match unsafe { libc::ioctl(fd.as_raw_fd(), FS_IOC_FIEMAP as _, at) } {
        0 => Ok(map),
        _ => Err(io::Error::last_os_error()),
    }
}

/// In how many pieces a file lies: extents that are neighbours in the file and on the device count as one.
pub fn fragments(extents: &[Extent]) -> usize {
    let joins = |pair: &[Extent]| {
        let [one, next] = pair else { return false };
        one.logical.saturating_add(one.len) == next.logical
            && one.physical.saturating_add(one.len) == next.physical
    };
    extents.len() - extents.windows(2).filter(|pair| joins(pair)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// The extents of a file, or nothing where the file system does not tell.
    fn told(file: &std::fs::File) -> Option<Vec<Extent>> {
        match extents(file) {
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                println!("SKIPPED: no FIEMAP here");
                None
            }
            found => Some(found.unwrap()),
        }
    }

    #[test]
    fn what_was_written_lies_somewhere_and_a_hole_nowhere() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 65_536]).unwrap();
        file.set_len(1 << 20).unwrap();
        let Some(found) = told(&file) else { return };
        assert_eq!(found.iter().map(|extent| extent.len).sum::<u64>(), 65_536);
        assert_eq!(found.first().map(|extent| extent.logical), Some(0));
        assert!(fragments(&found) >= 1);
    }

    #[test]
    fn more_extents_than_one_answer_holds_are_all_found() {
        use std::os::unix::fs::FileExt as _;
        let file = tempfile::tempfile().unwrap();
        let pieces = 2 * BATCH as u64 + 3;
        for piece in 0..pieces {
            file.write_all_at(&[1; 4096], piece * 65_536).unwrap();
        }
        let Some(found) = told(&file) else { return };
        assert_eq!(found.len() as u64, pieces);
        assert!(found.windows(2).all(|pair| pair[0].logical < pair[1].logical));
        assert_eq!(fragments(&found) as u64, pieces);
    }

    #[test]
    fn neighbours_in_the_file_and_on_the_device_are_one_piece() {
        let extent = |logical, physical, len| Extent {
            logical,
            physical,
            len,
            unwritten: false,
            shared: false,
        };
        assert_eq!(fragments(&[]), 0);
        assert_eq!(fragments(&[extent(0, 100, 10), extent(10, 110, 5), extent(15, 200, 5)]), 2);
        assert_eq!(fragments(&[extent(0, 100, 10), extent(20, 110, 5)]), 2);
    }
}
