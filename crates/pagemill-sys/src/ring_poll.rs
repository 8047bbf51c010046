//! Descriptors watched by an io_uring: a request for each, and one call that waits.
//!
//! A request is over when its descriptor was ready once; those that were told of are asked for again at the next wait, in the
//! same call. Invariants: at most one request for each descriptor is with the kernel; the requests name descriptors that are
//! borrowed as long as the ring lives, and no memory.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::{IoUring, opcode, types};

/// Watches descriptors until one can be read.
pub struct RingPoll<'f> {
    ring: IoUring,
    files: Vec<BorrowedFd<'f>>,
    /// Places of those that have no request with the kernel.
    idle: Vec<usize>,
    enter_calls: u64,
}

impl<'f> RingPoll<'f> {
    /// A ring that watches these descriptors. No call is made for them yet.
    ///
    /// # Errors
    /// As [`Ring::new`](crate::Ring::new).
    pub fn new(files: Vec<BorrowedFd<'f>>) -> io::Result<Self> {
        let entries = u32::try_from(files.len()).unwrap_or(u32::MAX).max(1);
        let ring = IoUring::builder().setup_clamp().build(entries)?;
        let idle = (0..files.len()).collect();
        Ok(Self { ring, files, idle, enter_calls: 0 })
    }

    /// Waits until so many of the descriptors can be read, and replaces `ready` by their places in the order given to
    /// [`new`](Self::new).
    ///
    /// # Errors
    /// The system's, with its errno, for the wait or for a descriptor.
    pub fn wait(&mut self, least: usize, ready: &mut Vec<usize>) -> io::Result<()> {
        ready.clear();
        loop {
            self.arm()?;
            self.enter_calls += 1;
            match self.ring.submit_and_wait(least.saturating_sub(ready.len())) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                entered => entered?,
            };
            for entry in self.ring.completion() {
                if entry.result() < 0 {
                    return Err(io::Error::from_raw_os_error(-entry.result()));
                }
                ready.push(entry.user_data() as usize);
            }
            if ready.len() >= least {
                self.idle.extend_from_slice(ready);
                return Ok(());
            }
        }
    }

    /// How many times `io_uring_enter` was called.
    pub fn enter_calls(&self) -> u64 {
        self.enter_calls
    }

    /// Queues a request for each descriptor that has none.
    fn arm(&mut self) -> io::Result<()> {
        while let Some(place) = self.idle.pop() {
            let Some(file) = self.files.get(place) else { continue };
            let entry = opcode::PollAdd::new(types::Fd(file.as_raw_fd()), libc::POLLIN as u32);
            let entry = entry.build().user_data(place as u64);
            // SAFETY: the request names a descriptor, which is borrowed as long as this ring lives, and no memory
            // that the kernel would read or write.
            let pushed = unsafe { self.ring.submission().push(&entry) };
            if pushed.is_err() {
                // The queue is as long as a clamped ring has it.
                self.idle.push(place);
                self.enter_calls += 1;
                self.ring.submit()?;
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for RingPoll<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RingPoll").field("files", &self.files.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::fd::AsFd as _;

    #[test]
    fn those_that_are_ready_come_again_until_they_are_read() {
        let pipes: Vec<_> = (0..40).map(|_| io::pipe().unwrap()).collect();
        let files = pipes.iter().map(|(reader, _)| reader.as_fd()).collect();
        let mut poll = match RingPoll::new(files) {
            Ok(poll) => poll,
            Err(error) => {
                eprintln!("skipped: no io_uring: {error}");
                return;
            }
        };
        (&pipes[7].1).write_all(b"x").unwrap();
        (&pipes[30].1).write_all(b"x").unwrap();
        let mut ready = Vec::new();
        for round in 1..=3 {
            poll.wait(2, &mut ready).unwrap();
            ready.sort_unstable();
            assert_eq!((ready.as_slice(), poll.enter_calls()), (&[7, 30][..], round));
        }
        (&pipes[0].1).write_all(b"x").unwrap();
        poll.wait(3, &mut ready).unwrap();
        ready.sort_unstable();
        assert_eq!(ready, [0, 7, 30]);
    }
}
