//! An io_uring that owns what the kernel works on: reads and writes are submitted with their file and
//! buffer, and a completion gives the buffer back.
//!
//! ```text
//!  submit_… ─────▶ queued ──flush/wait──▶ with the kernel ──▶ completed ──try_completed/wait──▶ caller
//!              (no call)  (io_uring_enter)                (seen in memory, no call)
//! ```
//!
//! Why: many of them cost one system call, and the thread computes while they are done.
//!
//! The ring asks for no `IORING_SETUP_COOP_TASKRUN` or `DEFER_TASKRUN`: with them a completion shows
//! only once the thread enters the kernel, so looking for one without a call would miss it. It asks
//! for no `SINGLE_ISSUER`: a ring may be handed to another thread.
//!
//! Invariants:
//! 1. A slot is occupied from its submission until its completion is reaped, and the file and buffer
//!    in it are neither moved out nor looked at in between.
//! 2. There are as many slots as submission entries, and the completion queue has twice as many: no
//!    push fails, and no completion overflows.
//! 3. What the kernel has taken from the submission queue is read from the queue's head, which the
//!    kernel moves: occupied slots, less those still queued, are with the kernel or completed.
//! 4. No slot is freed while the kernel may have it: `drop` waits, and leaks what it cannot wait for.

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use io_uring::{EnterFlags, IoUring, opcode, squeue, types};

use crate::AlignedBuffer;

/// A file that a ring can own until a read or write is done: any `Arc<T>` whose `T` lends a descriptor, such
/// as `Arc<OwnedFd>` or `Arc<File>`, becomes one where it is passed.
pub type RingFile = Arc<dyn AsFd + Send + Sync>;

/// Reads and writes in flight, up to a fixed number, and the kernel's queues for them. For one thread at a time.
pub struct Ring {
    ring: IoUring,
    slots: Vec<Option<InFlight>>,
    free: Vec<usize>,
    enter_calls: u64,
}

/// What the kernel reads from and writes to.
struct InFlight {
    id: u64,
    buffer: AlignedBuffer,
    _file: RingFile,
}

/// A read or write that is over.
#[derive(Debug)]
pub struct Completed {
    /// The caller's number for it.
    pub id: u64,
    /// The buffer that was read into, or written from.
    pub buffer: AlignedBuffer,
    /// How many bytes were moved: fewer than asked for at the end of the file, and possibly elsewhere.
    /// The system's error, with its errno, when none were; `EINTR` and `EAGAIN` mean to try again.
    pub result: io::Result<usize>,
}

/// As many reads are in flight as the ring has places for; the buffer comes back unread. Take
/// completions with [`Ring::wait`] or [`Ring::try_completed`], then submit again.
#[derive(Debug)]
pub struct RingFull(pub AlignedBuffer);

impl fmt::Display for RingFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("every place of the ring has a read in flight")
    }
}

impl std::error::Error for RingFull {}

impl Ring {
    /// Makes a ring for `entries` reads in flight; the kernel rounds up to a power of two, and down
    /// to its limit (see [`Ring::capacity`]).
    ///
    /// # Errors
    /// The system's, with its errno: `ENOSYS` (a kernel without io_uring, or before Linux 5.6, which
    /// has no plain read in it), `EPERM` (forbidden by `kernel.io_uring_disabled` or a container's
    /// seccomp filter; some filters say `ENOSYS`), `ENOMEM` (out of memory, or before Linux 5.12 out
    /// of `ulimit -l`), `EMFILE` and `ENFILE` (out of descriptors), `EINVAL` (no entries).
    pub fn new(entries: u32) -> io::Result<Self> {
        let ring = build(entries)?;
        // IORING_OP_READ and this feature came with the same kernel.
        if !ring.params().is_feature_rw_cur_pos() {
            return Err(io::Error::from_raw_os_error(libc::ENOSYS));
        }
        let capacity = ring.params().sq_entries() as usize;
        let slots = (0..capacity).map(|_| None).collect();
        Ok(Self { ring, slots, free: (0..capacity).rev().collect(), enter_calls: 0 })
    }

    /// How many reads may be in flight.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// How many reads were submitted and not yet taken back: queued, with the kernel, or completed.
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// How many reads the kernel has not been told of; [`Ring::flush`] or [`Ring::wait`] does.
    pub fn queued(&mut self) -> usize {
        self.ring.submission().len()
    }

    /// How many times `io_uring_enter` was called, interrupted calls included, as `strace` counts.
    pub fn enter_calls(&self) -> u64 {
        self.enter_calls
    }

    /// Queues a read of the file's bytes from `offset` into the buffer's bytes `range`. No call is
    /// made: the kernel hears of it at the next [`Ring::flush`] or [`Ring::wait`].
    ///
    /// With `force_async` a worker thread of the kernel reads; without, the kernel first tries at
    /// once, and copies what is cached during the call itself. The completion will carry `id`; the
    /// ring does not mind equal ones. The kernel reads at most 2 GiB less a page at a time.
    ///
    /// # Errors
    /// When [`Ring::capacity`] reads are in flight.
    ///
    /// # Panics
    /// When the range is not within the buffer, as slicing does, or the offset exceeds `i64::MAX`.
    pub fn submit_read(
        &mut self,
        id: u64,
        file: RingFile,
        mut buffer: AlignedBuffer,
        range: Range<usize>,
        offset: u64,
        force_async: bool,
    ) -> Result<(), RingFull> {
        let entry = read_entry(&*file, &mut buffer[range], offset, force_async);
        self.submit(id, file, buffer, entry)
    }

    /// Queues a write of the buffer's bytes `range` to the file from `offset` on. Otherwise as
    /// [`Ring::submit_read`].
    ///
    /// # Errors
    /// When [`Ring::capacity`] reads and writes are in flight.
    ///
    /// # Panics
    /// As [`Ring::submit_read`].
    pub fn submit_write(
        &mut self,
        id: u64,
        file: RingFile,
        buffer: AlignedBuffer,
        range: Range<usize>,
        offset: u64,
        force_async: bool,
    ) -> Result<(), RingFull> {
        let entry = write_entry(&*file, &buffer[range], offset, force_async);
        self.submit(id, file, buffer, entry)
    }

    /// Queues an entry that was made of this file and of bytes of this buffer.
    fn submit(
        &mut self,
        id: u64,
        file: RingFile,
        buffer: AlignedBuffer,
        entry: squeue::Entry,
    ) -> Result<(), RingFull> {
        let Some(slot) = self.free.pop() else { return Err(RingFull(buffer)) };
        self.slots[slot] = Some(InFlight { id, buffer, _file: file });
        // SAFETY: the entry names a descriptor and bytes. Both stay valid until its completion is
        // reaped, because the slot owns them until then (invariants 1 and 4): the descriptor is lent
        // by a value that the slot's `Arc` keeps alive and unmoved, and which nobody can borrow
        // mutably meanwhile; the bytes are on the heap, where moving the buffer into the slot
        // leaves them, within the buffer as the slicing above checked. Nobody else can reach them,
        // so the kernel may read and write.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(slot as u64)) };
        // No push fails (invariant 2); if one did, the kernel would not have the buffer.
        let refused = pushed.err().and_then(|_| self.vacate(slot));
        refused.map_or(Ok(()), |refused| Err(RingFull(refused.buffer)))
    }

    /// Tells the kernel of all queued reads, and returns how many calls that took: none when
    /// nothing was queued, mostly one otherwise. Does not wait.
    ///
    /// # Errors
    /// The system's, with its errno, such as `EAGAIN` (the kernel is out of memory for requests).
    /// What is still queued stays so; the ring can be used on.
    pub fn flush(&mut self) -> io::Result<u32> {
        let before = self.enter_calls;
        while self.queued() > 0 {
            self.enter(|ring| ring.submit())?;
        }
        Ok(u32::try_from(self.enter_calls - before).unwrap_or(u32::MAX))
    }

    /// Takes a completed read, if there is one; never makes a call.
    pub fn try_completed(&mut self) -> Option<Completed> {
        let entry = self.ring.completion().next()?;
        let InFlight { id, buffer, .. } = self.vacate(entry.user_data() as usize)?;
        let result = match usize::try_from(entry.result()) {
            Ok(read) => Ok(read),
            Err(_) => Err(io::Error::from_raw_os_error(-entry.result())),
        };
        Some(Completed { id, buffer, result })
    }

    /// Takes a completed read; when there is none yet, tells the kernel of the queued reads and
    /// waits, in one call.
    ///
    /// # Errors
    /// Of kind `InvalidInput` when nothing is in flight, and else as [`Ring::flush`]. A read that
    /// failed is not an error here but a [`Completed`] with one.
    pub fn wait(&mut self) -> io::Result<Completed> {
        loop {
            if let Some(completed) = self.try_completed() {
                return Ok(completed);
            }
            if self.in_flight() == 0 {
                let why = "waited for a read where none is in flight";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
            }
            self.enter(|ring| ring.submit_and_wait(1))?;
        }
    }

    /// Makes one kind of `io_uring_enter` call, again when a signal interrupted it.
    fn enter(&mut self, call: impl Fn(&IoUring) -> io::Result<usize>) -> io::Result<()> {
        loop {
            self.enter_calls += 1;
            match call(&self.ring) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Empties a slot that the kernel is done with.
    fn vacate(&mut self, slot: usize) -> Option<InFlight> {
        let done = self.slots.get_mut(slot)?.take()?;
        self.free.push(slot);
        Some(done)
    }

    /// Waits for everything that the kernel has taken; what is only queued it never hears of.
    fn finish(&mut self) -> io::Result<()> {
        while self.in_flight() > self.queued() {
            if self.try_completed().is_none() {
                // SAFETY: the call submits nothing, and passes no argument to be read.
                let wait_only = |ring: &IoUring| unsafe {
                    let flags = EnterFlags::GETEVENTS.bits();
                    ring.submitter().enter::<libc::sigset_t>(0, 1, flags, None)
                };
                self.enter(wait_only)?;
            }
        }
        Ok(())
    }
}

/// A request to read into `bytes`; whoever submits it answers for the two outliving the read.
fn read_entry(file: &dyn AsFd, bytes: &mut [u8], offset: u64, force_async: bool) -> squeue::Entry {
    // The kernel would take a negative offset for "at the file's position".
    assert!(i64::try_from(offset).is_ok(), "no file has a byte at offset {offset}");
    let fd = types::Fd(file.as_fd().as_raw_fd());
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let entry = opcode::Read::new(fd, bytes.as_mut_ptr(), len).offset(offset).build();
    entry.flags(flags(force_async))
}

/// A request to write `bytes`; as [`read_entry`].
fn write_entry(file: &dyn AsFd, bytes: &[u8], offset: u64, force_async: bool) -> squeue::Entry {
    assert!(i64::try_from(offset).is_ok(), "no file has a byte at offset {offset}");
    let fd = types::Fd(file.as_fd().as_raw_fd());
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let entry = opcode::Write::new(fd, bytes.as_ptr(), len).offset(offset).build();
    entry.flags(flags(force_async))
}

fn flags(force_async: bool) -> squeue::Flags {
    if force_async { squeue::Flags::ASYNC } else { squeue::Flags::empty() }
}

/// Without the flag that Linux 5.18 brought on kernels that do not know it; the loop in `flush` does
/// with more calls what it would do.
fn build(entries: u32) -> io::Result<IoUring> {
    match IoUring::builder().setup_clamp().setup_submit_all().build(entries) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            IoUring::builder().setup_clamp().build(entries)
        }
        built => built,
    }
}

impl Drop for Ring {
    /// Waits for the reads that the kernel has begun, so one of a pipe may keep it waiting.
    fn drop(&mut self) {
        if self.finish().is_err() {
            // The kernel may still write to the buffers: they must never be used again.
            std::mem::forget(std::mem::take(&mut self.slots));
        }
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("capacity", &self.capacity())
            .field("in_flight", &self.in_flight())
            .field("enter_calls", &self.enter_calls)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
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
                assert!(
                    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)),
                    "{error}"
                );
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

    fn read_block(ring: &mut Ring, file: &Arc<OwnedFd>, block: usize, force_async: bool) -> bool {
        let (buffer, offset) = (AlignedBuffer::zeroed(BLOCK), (block * BLOCK) as u64);
        ring.submit_read(block as u64, file.clone(), buffer, 0..BLOCK, offset, force_async).is_ok()
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
            ring.submit_write(id, file.clone(), buffer, range, offset as u64, forced).unwrap();
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
        ring.submit_write(9, file, AlignedBuffer::zeroed(BLOCK), 0..BLOCK, 0, false).unwrap();
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
        ring.submit_read(1, file, buffer, BLOCK..BLOCK + 100, 50, false).unwrap();
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
        ring.submit_read(1, directory, AlignedBuffer::zeroed(BLOCK), 0..BLOCK, 0, false).unwrap();
        ring.submit_read(2, write_only, AlignedBuffer::zeroed(BLOCK), 0..BLOCK, 0, false).unwrap();
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
        let refused = ring.submit_read(2, file.clone(), buffer, 0..BLOCK, 0, false);
        let RingFull(buffer) = refused.unwrap_err();
        assert_eq!(buffer[0], 77);
        ring.flush().unwrap();
        assert!(!read_block(&mut ring, &file, 2, false), "completed reads hold their places");
        ring.wait().unwrap();
        ring.submit_read(3, file, buffer, 0..BLOCK, 3 * BLOCK as u64, false).unwrap();
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
                ring.submit_read(read, file.clone(), buffer, 0..1 << 20, read << 20, true).unwrap();
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
            ring.submit_read(1, file.clone(), buffer, 1..BLOCK + 1, 0, false).is_ok()
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
        ring.submit_read(1, Arc::new(from), buffer, 0..1, 0, false).unwrap();
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
        assert_eq!(
            own_process::run("ring::tests::has_no_descriptor_left").unwrap().code(),
            Some(0)
        );
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
}
