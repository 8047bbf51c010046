//! [`SlowFiles`]: another file system, each call of which takes a fixed time, as over a network; in virtual time.
//!
//! A call that its caller waits for moves the clock by that time. Reads that a queue has in flight all take it at once: that
//! is what many calls in flight gain. So the clock tells how many calls were made one after the other, whatever the machine
//! does meanwhile. Threads share the clock, so that calls of two threads count as one after the other.
//!
//! Invariant: everything that a network would be asked for is a call: also opening a file and asking for its size.

use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::capabilities::Capabilities;
use crate::seam::{
    Caching, DirEntry, Direction, File, FileSystem, FinishedIo, IoQueue, Metadata, Node, QueueKind,
    QueuedIo,
};

/// A read-only file system whose calls take long. Clones share the clock.
#[derive(Debug, Clone)]
pub struct SlowFiles {
    below: Arc<dyn FileSystem>,
    clock: Clock,
}

impl SlowFiles {
    /// The files below, each call of which takes this long.
    pub fn new(below: Arc<dyn FileSystem>, each: Duration) -> Self {
        let calls = Calls { each, now: Duration::ZERO, made: Vec::new() };
        Self { below, clock: Clock(Arc::new(Mutex::new(calls))) }
    }

    /// How many calls were made.
    pub fn calls(&self) -> usize {
        self.clock.calls().made.len()
    }

    /// How many calls in a row were waited for.
    pub fn calls_in_a_row(&self) -> u64 {
        let calls = self.clock.calls();
        u64::try_from(calls.now.as_nanos() / calls.each.as_nanos().max(1)).unwrap_or(u64::MAX)
    }

    /// What was asked, call by call: when it began, in calls in a row, which call it was, and of what.
    pub fn report(&self) -> String {
        let calls = self.clock.calls();
        let round = |begun: &Duration| begun.as_nanos() / calls.each.as_nanos().max(1);
        let line = |(begun, what): &(Duration, String)| format!("{:3} {what}\n", round(begun));
        calls.made.iter().map(line).collect()
    }
}

#[derive(Debug, Clone)]
struct Clock(Arc<Mutex<Calls>>);

#[derive(Debug)]
struct Calls {
    each: Duration,
    now: Duration,
    /// When each began, and what it was.
    made: Vec<(Duration, String)>,
}

impl Clock {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call that its caller waits for.
    fn call(&self, what: &str, path: &Path) {
        let end = self.begin(what, path);
        self.wait_until(end);
    }

    /// A call that is begun now; when it will be over.
    fn begin(&self, what: &str, path: &Path) -> Duration {
        let mut calls = self.calls();
        let now = calls.now;
        calls.made.push((now, format!("{what} {}", path.display())));
        now + calls.each
    }

    fn wait_until(&self, end: Duration) {
        let mut calls = self.calls();
        calls.now = calls.now.max(end);
    }

    fn now(&self) -> Duration {
        self.calls().now
    }
}

impl FileSystem for SlowFiles {
    fn open(&self, path: &Path, caching: Caching) -> io::Result<Box<dyn File>> {
        self.clock.call("open", path);
        let file = self.below.open(path, caching)?;
        Ok(Box::new(SlowFile { file, path: path.to_owned(), clock: self.clock.clone() }))
    }

    /// Tells the sizes of what it lists, as object stores do.
    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.clock.call("read_dir", path);
        let mut entries = self.below.read_dir(path)?;
        for entry in &mut entries {
            if let Ok(Node::File { len }) = self.below.node(&path.join(&entry.name)) {
                entry.metadata = Some(Metadata { len, is_dir: false });
            }
        }
        Ok(entries)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.clock.call("metadata", path);
        self.below.metadata(path)
    }

    fn node(&self, path: &Path) -> io::Result<Node> {
        self.clock.call("node", path);
        self.below.node(path)
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        self.clock.call("resolve", path);
        self.below.resolve(path)
    }

    fn read_whole(&self, path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
        self.clock.call("read_whole", path);
        let file = self.below.open(path, Caching::Buffered)?;
        let len = file.len()?.min(limit.saturating_add(1));
        let mut contents = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        let mut done = 0;
        while done < contents.len() {
            match file.read_at(&mut contents[done..], done as u64)? {
                0 => break,
                got => done += got,
            }
        }
        contents.truncate(done);
        Ok(Some(contents))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { of_this_machine: false, distant: true, own_queue: true }
    }

    fn open_queue(&self, kind: QueueKind, _depth: u32) -> io::Result<Box<dyn IoQueue>> {
        match kind {
            QueueKind::Own => {
                let clock = self.clock.clone();
                Ok(Box::new(SlowQueue { clock, in_flight: VecDeque::new() }))
            }
            QueueKind::Worker | QueueKind::IoUring => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn now(&self) -> Duration {
        self.clock.now()
    }
}

#[derive(Debug)]
struct SlowFile {
    file: Box<dyn File>,
    path: PathBuf,
    clock: Clock,
}

impl File for SlowFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.clock.call("read", &self.path);
        self.file.read_at(buf, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.clock.call("len", &self.path);
        self.file.len()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

/// Reads in flight, the one that is over first at the front.
#[derive(Debug)]
struct SlowQueue {
    clock: Clock,
    in_flight: VecDeque<(Duration, FinishedIo)>,
}

impl IoQueue for SlowQueue {
    fn submit(&mut self, read: QueuedIo) {
        let QueuedIo { id, file, direction, mut buffer, range, offset, .. } = read;
        let slow = file.as_any().and_then(|file| file.downcast_ref::<SlowFile>());
        let (end, outcome) = match (slow, direction) {
            (Some(slow), Direction::Read) => {
                let end = self.clock.begin("read", &slow.path);
                (end, slow.file.read_at(&mut buffer[range], offset))
            }
            _ => (self.clock.now(), Err(io::ErrorKind::Unsupported.into())),
        };
        self.in_flight.push_back((end, FinishedIo { id, buffer, outcome }));
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn poll(&mut self) -> Option<FinishedIo> {
        let now = self.clock.now();
        self.in_flight.front().filter(|(end, _)| *end <= now)?;
        self.in_flight.pop_front().map(|(_, finished)| finished)
    }

    fn wait(&mut self) -> io::Result<Option<FinishedIo>> {
        Ok(self.in_flight.pop_front().map(|(end, finished)| {
            self.clock.wait_until(end);
            finished
        }))
    }
}

#[cfg(test)]
mod tests {
    use pagemill_sys::AlignedBuffer;

    use super::*;
    use crate::memory_files::MemoryFiles;

    #[test]
    fn calls_that_are_waited_for_follow_each_other_and_queued_reads_do_not() {
        let mut memory = MemoryFiles::new();
        memory.insert(Path::new("/a"), vec![5; 8192 * 3]);
        let slow = SlowFiles::new(Arc::new(memory), Duration::from_millis(30));
        let file: Arc<dyn File> = slow.open(Path::new("/a"), Caching::Buffered).unwrap().into();
        assert_eq!(file.len().unwrap(), 8192 * 3);
        assert_eq!((slow.calls(), slow.calls_in_a_row()), (2, 2));
        let mut queue = slow.open_queue(QueueKind::Own, 8).unwrap();
        for id in 0..3 {
            queue.submit(QueuedIo {
                id,
                file: file.clone(),
                direction: Direction::Read,
                buffer: AlignedBuffer::zeroed(8192),
                range: 0..8192,
                offset: id * 8192,
                force_async: false,
                lane: None,
            });
        }
        assert!(queue.poll().is_none());
        let first = queue.wait().unwrap().unwrap();
        assert_eq!((first.id, first.outcome.unwrap(), first.buffer[8191]), (0, 8192, 5));
        assert!(queue.poll().is_some() && queue.poll().is_some() && queue.poll().is_none());
        assert_eq!((slow.calls(), slow.calls_in_a_row()), (5, 3));
        assert!(slow.report().ends_with("  2 read /a\n"));
    }
}
