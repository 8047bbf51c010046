//! One io_uring made, asked what it can, used for one read, and given back.
//!
//! Why: whether a ring may be made says little. A kernel may lack an operation, and a sandbox may
//! allow `io_uring_setup` and forbid `io_uring_enter`; only a read that came back shows that rings
//! work here. Rings for work are elsewhere; this one is for finding out.
//!
//! Invariant: the buffer that a read in flight writes to is owned here, and is given up only after its
//! completion was seen; when that cannot be waited for, it is leaked.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use io_uring::{IoUring, Parameters, Probe, opcode, types};

use crate::AlignedBuffer;

/// What a ring offers here.
#[derive(Debug)]
pub struct RingOffer {
    /// The features of rings, by the names of `IORING_FEAT_…`, and whether the kernel's have them.
    pub features: Vec<(&'static str, bool)>,
    /// The operations asked about, by the names of `IORING_OP_…`, and whether there are such.
    pub operations: Result<Vec<(&'static str, bool)>, io::Error>,
    /// Bytes that one READ through the ring brought.
    pub read: io::Result<usize>,
}

/// The operations asked about: those that read, write and prepare relation files.
const OPERATIONS: [(&str, u8); 7] = [
    ("read", opcode::Read::CODE),
    ("readv", opcode::Readv::CODE),
    ("read_fixed", opcode::ReadFixed::CODE),
    ("write", opcode::Write::CODE),
    ("fsync", opcode::Fsync::CODE),
    ("fadvise", opcode::Fadvise::CODE),
    ("fallocate", opcode::Fallocate::CODE),
];

/// Makes a ring of 8 entries and reads the first `len` bytes of `fd` through it.
///
/// # Errors
/// Why no ring can be made: EPERM, ENOSYS, ENOMEM, EMFILE and others. That a ring can be made and not
/// used is no error of this function, and stands in [`RingOffer`].
pub fn try_ring(fd: impl AsFd, len: usize) -> io::Result<RingOffer> {
    let mut ring = IoUring::new(8)?;
    let features = features(ring.params());
    let operations = operations(&ring);
    let read = read_once(&mut ring, fd, AlignedBuffer::zeroed(len));
    Ok(RingOffer { features, operations, read })
}

fn operations(ring: &IoUring) -> io::Result<Vec<(&'static str, bool)>> {
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe)?;
    Ok(OPERATIONS.map(|(name, code)| (name, probe.is_supported(code))).to_vec())
}

fn features(params: &Parameters) -> Vec<(&'static str, bool)> {
    vec![
        ("single_mmap", params.is_feature_single_mmap()),
        ("nodrop", params.is_feature_nodrop()),
        ("submit_stable", params.is_feature_submit_stable()),
        ("rw_cur_pos", params.is_feature_rw_cur_pos()),
        ("cur_personality", params.is_feature_cur_personality()),
        ("fast_poll", params.is_feature_fast_poll()),
        ("poll_32bits", params.is_feature_poll_32bits()),
        ("sqpoll_nonfixed", params.is_feature_sqpoll_nonfixed()),
        ("ext_arg", params.is_feature_ext_arg()),
        ("native_workers", params.is_feature_native_workers()),
        ("rsrc_tags", params.is_feature_resource_tagging()),
        ("cqe_skip", params.is_feature_skip_cqe_on_success()),
        ("linked_file", params.is_feature_linked_file()),
        ("recvsend_bundle", params.is_feature_recvsend_bundle()),
        ("min_timeout", params.is_feature_min_timeout()),
        ("no_iowait", params.is_feature_no_iowait()),
    ]
}

fn read_once(ring: &mut IoUring, fd: impl AsFd, mut buffer: AlignedBuffer) -> io::Result<usize> {
    let fd = fd.as_fd();
    let len = u32::try_from(buffer.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let entry = opcode::Read::new(types::Fd(fd.as_raw_fd()), buffer.as_mut_ptr(), len).build();
    // SAFETY: `fd` is borrowed until this function returns, by when the kernel has its own reference
    // to the file or the entry was not taken. The `len` bytes of `buffer` are owned here, nobody else
    // touches them, and they are freed only after the completion below was seen.
    let pushed = unsafe { ring.submission().push(&entry) };
    pushed.map_err(|_| io::ErrorKind::WouldBlock)?;
    loop {
        match ring.submit_and_wait(1) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => {
                if let Some(completion) = ring.completion().next() {
                    let result = completion.result();
                    return usize::try_from(result)
                        .map_err(|_| io::Error::from_raw_os_error(-result));
                }
                if let Err(error) = outcome {
                    // The kernel may or may not have taken the entry, and then may still write.
                    std::mem::forget(buffer);
                    return Err(error);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn where_a_ring_can_be_made_a_read_through_it_brings_the_file() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 5000]).unwrap();
        match try_ring(&file, 8192) {
            Err(error) => println!("SKIPPED: io_uring: {error}"),
            Ok(offer) => {
                assert_eq!(offer.read.unwrap(), 5000);
                let operations = offer.operations.unwrap();
                assert!(operations.contains(&("read", true)), "{operations:?}");
                assert!(offer.features.contains(&("nodrop", true)), "{:?}", offer.features);
            }
        }
    }

    #[test]
    fn the_kernels_refusal_of_a_read_is_its_errno() {
        let directory = std::fs::File::open("/").unwrap();
        match try_ring(&directory, 4096) {
            Err(error) => println!("SKIPPED: io_uring: {error}"),
            Ok(offer) => assert_eq!(offer.read.unwrap_err().raw_os_error(), Some(libc::EISDIR)),
        }
    }
}
