//! The reads and writes of `io_uring`: a ring that the kernel serves.
//!
//! PostgreSQL's method of the same name (`src/backend/storage/aio/method_io_uring.c`, PostgreSQL 18).
//! The ring itself, and why its buffers stay alive, is in `pagemill-sys`.
//!
//! Invariants: what was taken on comes back exactly once; what finds the ring full waits in order until it
//! has room.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use pagemill_sys::{Ring, RingFile, RingFull, Submission};

use crate::refusal::Refusal;
use crate::seam::{Direction, FinishedIo, IoQueue, QueuedIo};

/// What one stream has in flight.
#[derive(Debug)]
pub(crate) struct RingQueue {
    ring: Ring,
    waiting: VecDeque<QueuedIo>,
    /// What never came to the ring: what is refused, and what the kernel has no descriptor of.
    done_here: VecDeque<FinishedIo>,
}

impl RingQueue {
    /// A ring for `depth` of them at once.
    ///
    /// # Errors
    /// Why the platform refuses one, in words.
    pub(crate) fn new(depth: u32) -> io::Result<Self> {
        let ring = Ring::new(depth.next_power_of_two()).map_err(explain)?;
        Ok(Self { ring, waiting: VecDeque::new(), done_here: VecDeque::new() })
    }

    /// Hands the ring what it has room for.
    fn fill(&mut self) {
        while let Some(read) = self.waiting.pop_front() {
            if let Some(read) = self.hand_over(read) {
                self.waiting.push_front(read);
                break;
            }
        }
    }

    /// Hands one to the ring; gives it back if there is no room.
    fn hand_over(&mut self, read: QueuedIo) -> Option<QueuedIo> {
        let QueuedIo { id, file, direction, buffer, range, offset, force_async, lane } = read;
        if range.end > buffer.len() || i64::try_from(offset).is_err() {
            let outcome = Err(io::ErrorKind::InvalidInput.into());
            self.done_here.push_back(FinishedIo { id, buffer, outcome });
            return None;
        }
        let Some(descriptor) = file.descriptor() else {
            // The kernel knows nothing of it.
            let mut buffer = buffer;
            let outcome = match direction {
                Direction::Read => file.read_at(&mut buffer[range], offset),
                Direction::Write => file.write_at(&buffer[range], offset),
            };
            self.done_here.push_back(FinishedIo { id, buffer, outcome });
            return None;
        };
        let ring_file: RingFile = Arc::clone(descriptor) as RingFile;
        let part = range.clone();
        let submission =
            Submission { id, file: ring_file, buffer, range: part, offset, force_async };
        let refused = match direction {
            Direction::Read => self.ring.submit_read(submission),
            Direction::Write => self.ring.submit_write(submission),
        };
        let Err(RingFull(buffer)) = refused else { return None };
        Some(QueuedIo { id, file, direction, buffer, range, offset, force_async, lane })
    }

    fn came_back(&mut self, read: pagemill_sys::Completed) -> FinishedIo {
        self.fill();
        FinishedIo { id: read.id, buffer: read.buffer, outcome: read.result }
    }
}

impl IoQueue for RingQueue {
    fn submit(&mut self, read: QueuedIo) {
        self.waiting.push_back(read);
        self.fill();
    }

    fn flush(&mut self) -> io::Result<()> {
        self.ring.flush().map(drop)
    }

    fn poll(&mut self) -> Option<FinishedIo> {
        if let Some(done) = self.done_here.pop_front() {
            return Some(done);
        }
        let read = self.ring.try_completed()?;
        Some(self.came_back(read))
    }

    fn wait(&mut self) -> io::Result<Option<FinishedIo>> {
        if let Some(read) = self.poll() {
            return Ok(Some(read));
        }
        if self.ring.in_flight() == 0 && self.ring.queued() == 0 {
            return Ok(None);
        }
        let read = self.ring.wait()?;
        Ok(Some(self.came_back(read)))
    }

    fn ring_calls(&self) -> u64 {
        self.ring.enter_calls()
    }
}

/// Why the kernel refuses a ring, and the remedy.
fn explain(error: io::Error) -> io::Error {
    use rustix::io::Errno;
    let Some(errno) = error.raw_os_error().map(Errno::from_raw_os_error) else { return error };
    let refusal = match errno {
        Errno::NOSYS => Refusal::NoRing,
        Errno::PERM | Errno::ACCESS => forbidden(),
        Errno::NOMEM => Refusal::RingMemory,
        Errno::MFILE => Refusal::RingDescriptor,
        Errno::NFILE => Refusal::FileTableFull,
        _ => Refusal::Ring(error.to_string()),
    };
    refusal.into()
}

/// Who forbids a ring: the administrator, by a setting, or else whatever confines this process.
fn forbidden() -> Refusal {
    const SETTING: &str = "/proc/sys/kernel/io_uring_disabled";
    let set = std::fs::read_to_string(SETTING).ok();
    match set.as_deref().map(str::trim) {
        Some(value @ ("1" | "2")) => Refusal::RingSwitchedOff(value.to_owned()),
        _ => Refusal::RingForbidden,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::real_files::RealFileSystem;
    use crate::seam::{Caching, File, FileSystem};
    use pagemill_sys::AlignedBuffer;
    use std::io::Write as _;

    #[test]
    fn more_reads_than_the_ring_holds_all_come_back_with_their_bytes() {
        let Ok(mut queue) = RingQueue::new(2) else {
            println!("SKIPPED: no io_uring here");
            return;
        };
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let contents: Vec<u8> = (0..32_u8).flat_map(|n| [n; 8192]).collect();
        file.write_all(&contents).unwrap();
        let file = RealFileSystem.open(file.path(), Caching::Buffered).unwrap();
        let file: Arc<dyn File> = Arc::from(file);
        for id in 0..32 {
            let buffer = AlignedBuffer::zeroed(8192);
            let (file, offset) = (file.clone(), id * 8192);
            let read = QueuedIo {
                id,
                file,
                direction: Direction::Read,
                buffer,
                range: 0..8192,
                offset,
                force_async: true,
                lane: None,
            };
            queue.submit(read);
        }
        queue.flush().unwrap();
        let mut seen = Vec::new();
        while let Some(read) = queue.wait().unwrap() {
            assert_eq!(read.outcome.unwrap(), 8192);
            assert!(read.buffer.iter().all(|byte| u64::from(*byte) == read.id));
            seen.push(read.id);
        }
        seen.sort_unstable();
        assert_eq!(seen, Vec::from_iter(0..32));
        assert!(queue.ring_calls() > 0);
    }

    #[test]
    fn each_refusal_has_its_own_words() {
        let why = |errno: rustix::io::Errno| explain(errno.into()).to_string();
        assert!(why(rustix::io::Errno::NOSYS).contains("no io_uring"));
        assert!(why(rustix::io::Errno::NOMEM).contains("ulimit -l"));
        assert!(why(rustix::io::Errno::MFILE).contains("ulimit -n"));
        let error = explain(rustix::io::Errno::PERM.into());
        let forbidden = Refusal::of(&error);
        assert!(matches!(forbidden, Some(Refusal::RingForbidden | Refusal::RingSwitchedOff(_))));
    }
}
