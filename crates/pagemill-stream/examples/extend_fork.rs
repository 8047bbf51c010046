//! One way to extend or to fill a fork, timed: the program that `cargo xtask bench extend` runs.
//!
//! ```text
//! extend_fork FILE zeros|fallocate|extension|fill [KEY=VALUE]...
//! ```
//! `zeros` and `fallocate` are the experiment of "extending relations more efficiently" (pgsql-hackers,
//! 1 May 2012): `blocks` at a time until the file has its size, then one `fdatasync`. `extension` is how this
//! project extends, block by block for its caller, synced at the end. `fill` writes pages through write streams,
//! extended before and durable at the end.
//!
//! Prints one line: milliseconds until the sync and in it, calls, and in how many pieces the file lies.
//!
//! Invariant: the file is new, has exactly the size asked for, and is removed at the end.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pagemill_format::{BLOCK_SIZE, BlockNumber, Fork};
use pagemill_io::{
    Caching, Create, FileExtendMethod, FileExtension, OpenForWrite, Storage, WritableFork,
    WriteMethod,
};
use pagemill_stream::{WriteStream, WriteStreamOptions, create_fork};
use pagemill_sys::AlignedBuffer;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What is to be done.
#[derive(Debug, Clone)]
struct Trial {
    what: String,
    /// Size of the file, in blocks.
    size: u32,
    /// Blocks at a time.
    blocks: u32,
    writers: u32,
    caching: Caching,
    io_method: Option<WriteMethod>,
    extend_method: Option<FileExtendMethod>,
    in_flight: u32,
    /// True when the extension is told the size beforehand.
    expected: bool,
}

fn main() -> Result<(), Failure> {
    let mut words = std::env::args().skip(1);
    let (Some(file), Some(what)) = (words.next(), words.next()) else {
        return Err("usage: extend_fork FILE zeros|fallocate|extension|fill [KEY=VALUE]...".into());
    };
    let mut trial = Trial {
        what,
        size: 131_072,
        blocks: 128,
        writers: 1,
        caching: Caching::Buffered,
        io_method: None,
        extend_method: None,
        in_flight: WriteStreamOptions::default().in_flight,
        expected: false,
    };
    for word in words {
        trial.take(&word)?;
    }
    let storage = Storage::real();
    let fork = Arc::new(trial.open(&storage, Path::new(&file))?);
    let outcome = trial.run(&fork).and_then(|times| trial.tell(&fork, times));
    fork.remove_made()?;
    outcome
}

impl Trial {
    fn take(&mut self, word: &str) -> Result<(), Failure> {
        let (key, value) = word.split_once('=').ok_or("wanted KEY=VALUE")?;
        match key {
            "size" => self.size = value.parse()?,
            "blocks" => self.blocks = value.parse::<u32>()?.max(1),
            "writers" => self.writers = value.parse()?,
            "in_flight" => self.in_flight = value.parse()?,
            "expected" if value == "yes" => self.expected = true,
            "direct" if value == "yes" => self.caching = Caching::Direct,
            "io_method" => self.io_method = Some(value.parse()?),
            "file_extend_method" => self.extend_method = Some(value.parse()?),
            _ => return Err(format!("unknown: {word}").into()),
        }
        Ok(())
    }

    /// The new file; one that is filled by `auto` is opened as `auto` would.
    fn open(&self, storage: &Storage, file: &Path) -> Result<WritableFork, Failure> {
        if self.what == "fill" && self.io_method.is_none() {
            return Ok(create_fork(storage, file, Fork::Main, self.size)?);
        }
        let how = OpenForWrite { create: Create::New, caching: self.caching };
        Ok(WritableFork::open(storage, file, Fork::Main, how)?)
    }

    /// The time until the sync, and that of the sync.
    fn run(&self, fork: &Arc<WritableFork>) -> Result<(Duration, Duration), Failure> {
        let begin = Instant::now();
        match self.what.as_str() {
            "zeros" => self.write_zeros(fork)?,
            "fallocate" => self.allocate(fork)?,
            "extension" => self.extend(fork)?,
            "fill" => self.fill(fork)?,
            other => return Err(format!("unknown: {other}").into()),
        }
        let written = begin.elapsed();
        fork.sync()?;
        Ok((written, begin.elapsed() - written))
    }

    /// The stretches of `blocks` blocks that make the file.
    fn stretches(&self) -> impl Iterator<Item = (u32, u32)> {
        let (size, blocks) = (self.size, self.blocks);
        (0..size).step_by(blocks as usize).map(move |first| (first, blocks.min(size - first)))
    }

    fn write_zeros(&self, fork: &WritableFork) -> Result<(), Failure> {
        let zeros = AlignedBuffer::zeroed(self.blocks as usize * BLOCK_SIZE);
        for (first, count) in self.stretches() {
            fork.write_blocks(BlockNumber(first), &zeros[..count as usize * BLOCK_SIZE])?;
        }
        Ok(())
    }

    fn allocate(&self, fork: &WritableFork) -> Result<(), Failure> {
        for (first, count) in self.stretches() {
            let (file, offset) = fork.file(BlockNumber(first))?;
            let wanted = BlockNumber(first + count - 1);
            let (last, end) = fork.file(wanted)?;
            if last.path() != file.path() {
                return Err("blocks at a time must divide a segment".into());
            }
            file.allocate(offset..end + BLOCK_SIZE as u64)?;
        }
        Ok(())
    }

    fn extend(&self, fork: &Arc<WritableFork>) -> Result<(), Failure> {
        let extension = FileExtension::new(fork.clone(), 0, self.extend_method);
        for (_, count) in self.stretches() {
            extension.extend(count)?;
        }
        Ok(extension.cut_back()?)
    }

    fn fill(&self, fork: &Arc<WritableFork>) -> Result<(), Failure> {
        let space = Arc::new(FileExtension::new(fork.clone(), 0, self.extend_method));
        if self.expected {
            space.expect_blocks(self.size);
        }
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..self.writers)
                .map(|number| {
                    let space = space.clone();
                    scope.spawn(move || self.fill_part(number, space))
                })
                .collect();
            writers
                .into_iter()
                .try_for_each(|writer| writer.join().map_err(|_| "a writer panicked")?)
        })?;
        Ok(space.cut_back()?)
    }

    /// One writer's share: runs of `blocks` blocks, each as soon as it is granted.
    fn fill_part(&self, number: u32, space: Arc<FileExtension>) -> Result<(), Failure> {
        let options = WriteStreamOptions {
            io_method: self.io_method,
            io_combine_limit: self.blocks,
            in_flight: self.in_flight,
            ..WriteStreamOptions::default()
        };
        let mut stream = WriteStream::new(space.clone(), options, None)?;
        let mine =
            self.stretches().filter(|(first, _)| first / self.blocks % self.writers == number);
        for (_, count) in mine {
            let granted = space.extend(count)?;
            let buffer = stream.buffer()?;
            let mut buffer = match buffer.len() >= count as usize * BLOCK_SIZE {
                true => buffer,
                false => AlignedBuffer::zeroed(count as usize * BLOCK_SIZE),
            };
            // One word tells each page from the others: what costs is the writing.
            let (pages, _) = buffer.as_chunks_mut::<BLOCK_SIZE>();
            for (block, page) in granted.clone().zip(pages) {
                page[..4].copy_from_slice(&block.to_le_bytes());
            }
            stream.write_run(BlockNumber(granted.start), buffer, granted.len())?;
        }
        Ok(stream.drain()?)
    }

    fn tell(&self, fork: &WritableFork, times: (Duration, Duration)) -> Result<(), Failure> {
        let (file, _) = fork.file(BlockNumber(0))?;
        let len = file.len()?;
        let expected = (u64::from(self.size) * BLOCK_SIZE as u64).min(1 << 30);
        if len != expected {
            return Err(format!("the file has {len} bytes, {expected} expected").into());
        }
        let extents = file.file().descriptor().map(pagemill_sys::extents);
        let fragments = match extents {
            Some(Ok(extents)) => pagemill_sys::fragments(&extents).to_string(),
            _ => "?".to_owned(),
        };
        let calls = fork.storage().counters().snapshot();
        println!(
            "write_ms={:.3} sync_ms={:.3} write_calls={} extend_calls={} fragments={fragments}",
            times.0.as_secs_f64() * 1000.0,
            times.1.as_secs_f64() * 1000.0,
            calls.write_calls,
            calls.extend_calls,
        );
        Ok(())
    }
}
