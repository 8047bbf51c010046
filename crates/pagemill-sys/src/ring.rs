//! An io_uring that owns what the kernel works on: reads and writes are submitted with their file and
//! buffer, and a completion gives the buffer back.
//!
//! ```text
//!  submit_… ─────▶ queued ──flush/wait──▶ with the kernel ──▶ completed ──try_completed/wait──▶ caller
//!              (no call)  (io_uring_enter)                (seen in memory; a call where the kernel announces one)
//! ```
//!
//! Why: many of them cost one system call, and the thread computes while they are done.
//!
//! The ring asks for `IORING_SETUP_COOP_TASKRUN`: without it the kernel interrupts the thread for each completion, which
//! took a tenth of the reads with 16 in flight. A completion then shows only once the thread is in the kernel, so the ring
//! asks for `TASKRUN_FLAG` too, by which the kernel tells that one waits: whoever looks then makes a call that collects
//! it. It asks for no `SINGLE_ISSUER` and no `DEFER_TASKRUN`: a ring may be handed to another thread.
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

use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue, types};

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

/// A read or write to be queued.
pub struct Submission {
    /// What the completion will carry; the ring does not mind equal ones.
    pub id: u64,
    /// What is read or written.
    pub file: RingFile,
    /// Given up until the completion.
    pub buffer: AlignedBuffer,
    /// The bytes of the buffer that are filled or written.
    pub range: Range<usize>,
    /// Where in the file they lie.
    pub offset: u64,
    /// A worker thread of the kernel does it; without, the kernel first tries at once, and copies what is cached during
    /// the call itself.
    pub force_async: bool,
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

    /// Queues a read of the file's bytes into the buffer's. No call is made: the kernel hears of it at the next
    /// [`Ring::flush`] or [`Ring::wait`]. The kernel reads at most 2 GiB less a page at a time.
    ///
    /// # Errors
    /// When [`Ring::capacity`] reads are in flight.
    ///
    /// # Panics
    /// When the range is not within the buffer, as slicing does, or the offset exceeds `i64::MAX`.
    pub fn submit_read(&mut self, submission: Submission) -> Result<(), RingFull> {
        let Submission { id, file, mut buffer, range, offset, force_async } = submission;
        let entry = read_entry(&*file, &mut buffer[range], offset, force_async);
        self.submit(id, file, buffer, entry)
    }

    /// Queues a write of the buffer's bytes to the file. Otherwise as [`Ring::submit_read`].
    ///
    /// # Errors
    /// When [`Ring::capacity`] reads and writes are in flight.
    ///
    /// # Panics
    /// As [`Ring::submit_read`].
    pub fn submit_write(&mut self, submission: Submission) -> Result<(), RingFull> {
        let Submission { id, file, buffer, range, offset, force_async } = submission;
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

    /// Takes a completed read, if there is one; never waits. A call is made only where the kernel announces completions
    /// that do not show yet, and collects all of these.
    pub fn try_completed(&mut self) -> Option<Completed> {
        let shown = self.ring.completion().next();
        let entry = shown.or_else(|| self.collect_announced())?;
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

    /// The first of the completions that the kernel announces and does not show until it is entered.
    fn collect_announced(&mut self) -> Option<cqueue::Entry> {
        if !self.ring.submission().taskrun() {
            return None;
        }
        // What keeps the kernel from it shows at the next wait.
        let _ = self.enter(|ring| get_events(ring, 0));
        self.ring.completion().next()
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
                self.enter(|ring| get_events(ring, 1))?;
            }
        }
        Ok(())
    }
}

/// Waits for so many completions, and has the kernel show those that there are; submits nothing.
fn get_events(ring: &IoUring, least: u32) -> io::Result<usize> {
    let flags = EnterFlags::GETEVENTS.bits();
    // SAFETY: the call submits nothing, and passes no argument to be read.
    unsafe { ring.submitter().enter::<libc::sigset_t>(0, least, flags, None) }
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

/// Without the flags of Linux 5.18 (`SUBMIT_ALL`) and 5.19 (the others) on kernels that do not know them: the loop in
/// `flush` does with more calls what the first would do, and completions interrupt the thread without the others.
fn build(entries: u32) -> io::Result<IoUring> {
    let newest = IoUring::builder()
        .setup_clamp()
        .setup_submit_all()
        .setup_coop_taskrun()
        .setup_taskrun_flag()
        .build(entries);
    match newest {
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
mod tests;
