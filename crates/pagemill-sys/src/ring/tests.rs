//! A ring of the kernel's: what comes back, in which order, and what a full or refused ring does.
//! Where the kernel refuses rings, a test ends without a finding.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use super::*;
use crate::own_process;

const BLOCK: usize = 8192;

/// A ring, or nothing where the machine forbids them: such a test then has nothing to say.
fn ring_of(entries: u32) -> Option<Ring> {
    match Ring::new(entries) {
        Ok(ring) => Some(ring),
        Err(error) => {
            assert!(matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)), "{error}");
            eprintln!("not tested, no io_uring here: {error}");
            None
        }
    }
}

fn file_of(len: usize) -> (Arc<OwnedFd>, Vec<u8>) {
    let content: Vec<u8> = (0..len).map(|i| (i / BLOCK * 31 + i % 251) as u8).collect();
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(&content, 0).unwrap();
    (Arc::new(OwnedFd::from(file)), content)
}

fn submission(
    id: u64,
    file: RingFile,
    buffer: AlignedBuffer,
    range: Range<usize>,
    offset: u64,
    force_async: bool,
) -> Submission {
    Submission { id, file, buffer, range, offset, force_async }
}

fn read_block(ring: &mut Ring, file: &Arc<OwnedFd>, block: usize, force_async: bool) -> bool {
    let (buffer, offset) = (AlignedBuffer::zeroed(BLOCK), (block * BLOCK) as u64);
    ring.submit_read(submission(block as u64, file.clone(), buffer, 0..BLOCK, offset, force_async))
        .is_ok()
}

#[test]
fn what_is_written_through_the_ring_is_in_the_file() {
    let Some(mut ring) = ring_of(4) else { return };
    let file = Arc::new(OwnedFd::from(tempfile::tempfile().unwrap()));
    for block in [2_u8, 0, 1, 3] {
        let mut buffer = AlignedBuffer::zeroed(2 * BLOCK);
        buffer[BLOCK..].fill(block + 1);
        let offset = usize::from(block) * BLOCK;
        let (id, range) = (u64::from(block), BLOCK..2 * BLOCK);
        let forced = block % 2 == 0;
        ring.submit_write(submission(id, file.clone(), buffer, range, offset as u64, forced))
            .unwrap();
    }
    while ring.in_flight() > 0 {
        let Completed { id, buffer, result } = ring.wait().unwrap();
        assert_eq!(result.unwrap(), BLOCK);
        assert_eq!((buffer[0], u64::from(buffer[BLOCK])), (0, id + 1));
    }
    let mut written = vec![0; 4 * BLOCK];
    File::from(file.try_clone().unwrap()).read_exact_at(&mut written, 0).unwrap();
    assert!((0..4 * BLOCK).all(|at| usize::from(written[at]) == at / BLOCK + 1));
}

#[test]
fn a_write_that_the_kernel_refuses_gives_its_buffer_back() {
    let Some(mut ring) = ring_of(4) else { return };
    let file = Arc::new(OwnedFd::from(File::open("/dev/null").unwrap()));
    ring.submit_write(submission(9, file, AlignedBuffer::zeroed(BLOCK), 0..BLOCK, 0, false))
        .unwrap();
    let Completed { id, buffer, result } = ring.wait().unwrap();
    assert_eq!((id, buffer.len()), (9, BLOCK));
    assert_eq!(result.unwrap_err().raw_os_error(), Some(libc::EBADF));
}

#[test]
fn many_reads_out_of_order_equal_the_file() {
    let Some(mut ring) = ring_of(16) else { return };
    let (file, content) = file_of(500 * BLOCK);
    let (mut next, mut seen) = (0, vec![false; 500]);
    while seen.contains(&false) {
        while next < 500 && read_block(&mut ring, &file, next * 37 % 500, next % 2 == 0) {
            next += 1;
        }
        let Completed { id, buffer, result } = ring.wait().unwrap();
        let block = id as usize;
        assert_eq!(result.unwrap(), BLOCK);
        assert_eq!(buffer[..], content[block * BLOCK..][..BLOCK]);
        assert!(!std::mem::replace(&mut seen[block], true), "block {block} came twice");
    }
    assert_eq!((ring.in_flight(), ring.queued()), (0, 0));
    assert!(ring.enter_calls() <= 500);
}

#[test]
fn cached_blocks_are_read_by_one_call_and_reaped_by_none() {
    let Some(mut ring) = ring_of(8) else { return };
    let (file, content) = file_of(8 * BLOCK);
    for block in 0..8 {
        assert!(read_block(&mut ring, &file, block, false));
    }
    assert_eq!((ring.queued(), ring.enter_calls()), (8, 0));
    assert!(ring.try_completed().is_none());
    assert_eq!(ring.flush().unwrap(), 1);
    assert_eq!(ring.flush().unwrap(), 0, "nothing is left to tell");
    let mut reaped = 0;
    while ring.in_flight() > 0 {
        let Some(completed) = ring.try_completed() else { continue };
        let block = completed.id as usize;
        assert_eq!(completed.buffer[..], content[block * BLOCK..][..BLOCK]);
        reaped += 1;
    }
    assert_eq!((reaped, ring.enter_calls()), (8, 1));
}

#[test]
fn only_the_range_of_the_buffer_is_written() {
    let Some(mut ring) = ring_of(1) else { return };
    let (file, content) = file_of(BLOCK);
    let buffer = AlignedBuffer::zeroed(3 * BLOCK);
    ring.submit_read(submission(1, file, buffer, BLOCK..BLOCK + 100, 50, false)).unwrap();
    let Completed { buffer, result, .. } = ring.wait().unwrap();
    assert_eq!(result.unwrap(), 100);
    assert_eq!(buffer[BLOCK..BLOCK + 100], content[50..150]);
    assert!(buffer[..BLOCK].iter().chain(&buffer[BLOCK + 100..]).all(|&byte| byte == 0));
}

#[test]
fn a_read_at_the_end_of_the_file_is_short() {
    let Some(mut ring) = ring_of(4) else { return };
    let (file, _) = file_of(BLOCK + 100);
    for (block, expected) in [(0, BLOCK), (1, 100), (2, 0)] {
        assert!(read_block(&mut ring, &file, block, true));
        assert_eq!(ring.wait().unwrap().result.unwrap(), expected);
    }
}

#[test]
fn a_failed_read_gives_its_errno_and_the_buffer_back() {
    let Some(mut ring) = ring_of(4) else { return };
    let directory = Arc::new(File::open("/").unwrap());
    let dev_null = File::options().write(true).open("/dev/null").unwrap();
    let write_only: Arc<OwnedFd> = Arc::new(dev_null.into());
    ring.submit_read(submission(1, directory, AlignedBuffer::zeroed(BLOCK), 0..BLOCK, 0, false))
        .unwrap();
    ring.submit_read(submission(2, write_only, AlignedBuffer::zeroed(BLOCK), 0..BLOCK, 0, false))
        .unwrap();
    let mut errors = [ring.wait().unwrap(), ring.wait().unwrap()].map(|completed| {
        assert_eq!(completed.buffer.len(), BLOCK);
        (completed.id, completed.result.unwrap_err().raw_os_error())
    });
    errors.sort();
    assert_eq!(errors, [(1, Some(libc::EISDIR)), (2, Some(libc::EBADF))]);
}

#[test]
fn a_full_ring_gives_the_buffer_back_and_takes_it_later() {
    let Some(mut ring) = ring_of(2) else { return };
    let (file, content) = file_of(4 * BLOCK);
    assert_eq!(ring.capacity(), 2);
    assert!(read_block(&mut ring, &file, 0, false) && read_block(&mut ring, &file, 1, false));
    let mut buffer = AlignedBuffer::zeroed(BLOCK);
    buffer[0] = 77;
    let refused = ring.submit_read(submission(2, file.clone(), buffer, 0..BLOCK, 0, false));
    let RingFull(buffer) = refused.unwrap_err();
    assert_eq!(buffer[0], 77);
    ring.flush().unwrap();
    assert!(!read_block(&mut ring, &file, 2, false), "completed reads hold their places");
    ring.wait().unwrap();
    ring.submit_read(submission(3, file, buffer, 0..BLOCK, 3 * BLOCK as u64, false)).unwrap();
    let last = [ring.wait().unwrap(), ring.wait().unwrap()];
    let last = last.into_iter().find(|completed| completed.id == 3).unwrap();
    assert_eq!(last.buffer[..], content[3 * BLOCK..]);
}

#[test]
fn dropping_a_ring_waits_for_its_reads_and_lets_go_of_their_files() {
    let (file, _) = file_of(64 << 20);
    for flushed in [0, 20, 64] {
        let Some(mut ring) = ring_of(64) else { return };
        for read in 0..64_u64 {
            let buffer = AlignedBuffer::zeroed(1 << 20);
            ring.submit_read(submission(read, file.clone(), buffer, 0..1 << 20, read << 20, true))
                .unwrap();
            if read + 1 == flushed {
                ring.flush().unwrap();
            }
        }
        drop(ring);
        assert_eq!(Arc::strong_count(&file), 1);
    }
}

#[test]
fn a_ring_reads_on_when_it_is_handed_to_another_thread() {
    let Some(mut ring) = ring_of(8) else { return };
    let (file, content) = file_of(8 * BLOCK);
    for block in 0..4 {
        assert!(read_block(&mut ring, &file, block, true));
    }
    ring.flush().unwrap();
    let reader = std::thread::spawn(move || {
        assert!(read_block(&mut ring, &file, 5, false));
        (0..5).map(|_| ring.wait().unwrap()).collect::<Vec<_>>()
    });
    for completed in reader.join().unwrap() {
        let block = completed.id as usize;
        assert_eq!(completed.buffer[..], content[block * BLOCK..][..BLOCK]);
    }
}

#[test]
fn a_range_outside_the_buffer_takes_no_place() {
    let Some(mut ring) = ring_of(1) else { return };
    let (file, _) = file_of(BLOCK);
    let outside = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let buffer = AlignedBuffer::zeroed(BLOCK);
        ring.submit_read(submission(1, file.clone(), buffer, 1..BLOCK + 1, 0, false)).is_ok()
    }));
    assert!(outside.is_err());
    assert_eq!(ring.in_flight(), 0);
    assert!(read_block(&mut ring, &file, 0, false));
    assert_eq!(ring.wait().unwrap().result.unwrap(), BLOCK);
}

#[test]
fn waiting_for_nothing_is_an_error_and_not_forever() {
    let Some(mut ring) = ring_of(1) else { return };
    assert_eq!(ring.wait().unwrap_err().kind(), io::ErrorKind::InvalidInput);
}

extern "C" fn do_nothing(_: libc::c_int) {}

#[test]
fn an_interrupted_wait_waits_on() {
    let Some(mut ring) = ring_of(1) else { return };
    let handler = do_nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the action is plain data that may be zero (no SA_RESTART), and its handler has the
    // signature of a plain one; no other test uses the signal. Asking for the thread's own
    // identifier has no precondition.
    let waiting = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
        // A pointer in musl, which could not be handed to another thread; a number in glibc.
        libc::pthread_self() as usize
    };
    let (from, mut to) = io::pipe().unwrap();
    let interrupter = std::thread::spawn(move || {
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(10));
            // SAFETY: the thread waits for this one's byte, so it still lives.
            unsafe { libc::pthread_kill(waiting as libc::pthread_t, libc::SIGUSR1) };
        }
        std::thread::sleep(Duration::from_millis(10));
        to.write_all(b"x").unwrap();
    });
    let buffer = AlignedBuffer::zeroed(BLOCK);
    ring.submit_read(submission(1, Arc::new(from), buffer, 0..1, 0, false)).unwrap();
    assert_eq!(ring.wait().unwrap().result.unwrap(), 1);
    assert!(ring.enter_calls() > 1, "the signals came too early or too late");
    interrupter.join().unwrap();
}

#[test]
fn a_ring_that_cannot_be_made_says_why() {
    if ring_of(1).is_none() {
        return;
    }
    assert_eq!(Ring::new(0).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    assert_eq!(own_process::run("ring::tests::has_no_descriptor_left").unwrap().code(), Some(0));
}

#[test]
fn has_no_descriptor_left() {
    if !own_process::is_alone() {
        return;
    }
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is initialized.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &none) }, 0);
    assert_eq!(Ring::new(4).unwrap_err().raw_os_error(), Some(libc::EMFILE));
}
