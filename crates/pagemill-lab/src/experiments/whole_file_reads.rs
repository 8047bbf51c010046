//! Whole files read one after the other: into a buffer as large as the file, into one of 64 kB, through a mapping made each
//! time or once; and what becomes of the bytes.
//!
//! ```text
//! way          each time a file comes                                  what a loader would do
//! read whole   open, a new buffer of its size, one read, close         slurp it
//! read 64 kB   open, reads into one buffer, close                      read it through
//! mmap each    open, mmap, madvise, munmap, close                      map it
//! mmap once    nothing but the first time                              keep it mapped
//! ```
//!
//! What becomes of the bytes decides what a mapping costs: a write to `/dev/null` looks at none of them, so that the kernel never
//! fetches a page of a mapping for it. Invariant: under [`Use::Lines`] every byte is looked at, and the bytes a turn claims
//! are bytes it was given.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pagemill_sys::{MapAdvice, Mapping};

use crate::cancel::Cancel;
use crate::contestant::{Contestant, Work};
use crate::error::{Error, Result};

/// Bytes of the buffer that is not as large as the file.
const BUFFER: usize = 64 << 10;

/// A way to get at all bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadTechnique {
    Whole,
    Buffer,
    MapEach(MapAdvice),
    MapOnce(MapAdvice),
}

/// All advice there is, with its name.
pub(crate) const ADVICE: [(MapAdvice, &str); 5] = [
    (MapAdvice::Normal, "normal"),
    (MapAdvice::Sequential, "sequential"),
    (MapAdvice::Random, "random"),
    (MapAdvice::WillNeed, "willneed"),
    (MapAdvice::PopulateRead, "populate"),
];

impl ReadTechnique {
    /// `read 64 kB`, `mmap each time`, `mmap once populate`.
    pub(crate) fn name(self) -> String {
        let with = |what: &str, advice: MapAdvice| match advice {
            MapAdvice::Normal => what.to_owned(),
            _ => format!("{what} {}", advice_name(advice)),
        };
        match self {
            Self::Whole => "read whole".into(),
            Self::Buffer => "read 64 kB".into(),
            Self::MapEach(advice) => with("mmap each time", advice),
            Self::MapOnce(advice) => with("mmap once", advice),
        }
    }

    fn advice(self) -> Option<MapAdvice> {
        match self {
            Self::Whole | Self::Buffer => None,
            Self::MapEach(advice) | Self::MapOnce(advice) => Some(advice),
        }
    }
}

fn advice_name(advice: MapAdvice) -> &'static str {
    ADVICE.iter().find(|(each, _)| *each == advice).map_or("normal", |(_, name)| name)
}

/// What becomes of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Written to `/dev/null`, as the document's program did.
    Null,
    /// Their lines are counted, as a loader's first step.
    Lines,
}

/// How long a turn lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    /// Until each file was read once.
    Once,
    /// So long, round and round.
    Time(Duration),
}

/// Files to read.
#[derive(Debug, Clone)]
pub(crate) struct WholeFileReads {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) use_of_bytes: Use,
    pub(crate) span: Span,
}

impl WholeFileReads {
    /// One who reads them so.
    pub(crate) fn contestant(&self, way: ReadTechnique) -> Contestant<'static> {
        let reads = self.clone();
        let work = move |cancel: &Cancel| reads.perform(way, cancel);
        let method = if way.advice().is_some() { "mmap" } else { "read" };
        let contestant = Contestant::new(way.name(), work).parameter("method", method);
        match way.advice() {
            Some(advice) => contestant.parameter("madvise", advice_name(advice)),
            None => contestant,
        }
    }

    fn perform(&self, way: ReadTechnique, cancel: &Cancel) -> Result<Work> {
        let null = OpenOptions::new().write(true).open("/dev/null");
        let null = null.map_err(Error::system("/dev/null"))?;
        let mut turn = Turn {
            way,
            sink: Sink { use_of_bytes: self.use_of_bytes, null, lines: 0, writes: 0 },
            buffer: vec![0; BUFFER],
            kept: (0..self.files.len()).map(|_| None).collect(),
            work: Work::default(),
            bytes: 0,
        };
        let begin = Instant::now();
        'turn: loop {
            for (place, path) in self.files.iter().enumerate() {
                cancel.check()?;
                turn.file(place, path)?;
                if matches!(self.span, Span::Time(time) if begin.elapsed() >= time) {
                    break 'turn;
                }
            }
            if self.span == Span::Once || self.files.is_empty() {
                break;
            }
        }
        // Letting go of mappings belongs to it.
        let Turn { kept, work, bytes, sink, .. } = turn;
        let unmapped = kept.into_iter().flatten().count() as u64;
        let elapsed = begin.elapsed();
        std::hint::black_box(sink.lines);
        let work = work.with_calls("munmap", unmapped).with_calls("write", sink.writes);
        Ok(Work { bytes: Some(bytes), elapsed: Some(elapsed), ..work })
    }
}

/// Where the bytes go.
struct Sink {
    use_of_bytes: Use,
    null: File,
    lines: u64,
    writes: u64,
}

impl Sink {
    fn take(&mut self, bytes: &[u8]) -> Result<()> {
        match self.use_of_bytes {
            Use::Null => {
                self.writes += 1;
                self.null.write_all(bytes).map_err(Error::system("/dev/null"))
            }
            Use::Lines => {
                self.lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
                Ok(())
            }
        }
    }
}

/// A turn under way.
struct Turn {
    way: ReadTechnique,
    sink: Sink,
    buffer: Vec<u8>,
    kept: Vec<Option<Mapping>>,
    work: Work,
    bytes: u64,
}

impl Turn {
    fn called(&mut self, name: &str, count: u64) {
        self.work = std::mem::take(&mut self.work).with_calls(name, count);
    }

    /// One file; it counts as an operation.
    fn file(&mut self, place: usize, path: &PathBuf) -> Result<()> {
        let fault = || Error::file(path);
        self.work.operations += 1;
        let bytes = match self.way {
            ReadTechnique::Whole => {
                let mut file = self.open(path)?;
                let len = length(&file).map_err(fault())?;
                let mut all = vec![0; len];
                file.read_exact(&mut all).map_err(fault())?;
                self.called("read", 1);
                self.sink.take(&all)?;
                len
            }
            ReadTechnique::Buffer => self.by_buffer(path)?,
            ReadTechnique::MapEach(advice) => {
                let mapping = self.map(path, advice)?;
                self.take_mapped(&mapping)?;
                self.called("munmap", 1);
                mapping.len()
            }
            ReadTechnique::MapOnce(advice) => {
                let mapping = match self.kept.get_mut(place).and_then(Option::take) {
                    Some(mapping) => mapping,
                    None => self.map(path, advice)?,
                };
                self.take_mapped(&mapping)?;
                let len = mapping.len();
                if let Some(kept) = self.kept.get_mut(place) {
                    *kept = Some(mapping);
                }
                len
            }
        };
        self.bytes += bytes as u64;
        Ok(())
    }

    fn open(&mut self, path: &PathBuf) -> Result<File> {
        self.called("open", 1);
        File::open(path).map_err(Error::file(path))
    }

    fn by_buffer(&mut self, path: &PathBuf) -> Result<usize> {
        let mut file = self.open(path)?;
        let (mut sum, mut calls) = (0, 0);
        loop {
            let got = file.read(&mut self.buffer).map_err(Error::file(path))?;
            calls += 1;
            if got == 0 {
                break;
            }
            sum += got;
            self.sink.take(self.buffer.get(..got).unwrap_or_default())?;
        }
        self.called("read", calls);
        Ok(sum)
    }

    fn map(&mut self, path: &PathBuf, advice: MapAdvice) -> Result<Mapping> {
        let file = self.open(path)?;
        let len = length(&file).map_err(Error::file(path))?;
        let mapping = Mapping::new(file.as_fd(), len).map_err(Error::system("mmap"))?;
        self.called("mmap", 1);
        if advice != MapAdvice::Normal {
            mapping.advise(0..len, advice).map_err(Error::system("madvise"))?;
            self.called("madvise", 1);
        }
        Ok(mapping)
    }

    fn take_mapped(&mut self, mapping: &Mapping) -> Result<()> {
        self.sink.take(mapping.bytes(0..mapping.len()))?;
        match mapping.faulted(0..mapping.len()) {
            Some(_) => Err(Error::system("mmap")(rustix::io::Errno::IO.into())),
            None => Ok(()),
        }
    }
}

fn length(file: &File) -> std::io::Result<usize> {
    Ok(usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways() -> impl Iterator<Item = ReadTechnique> {
        let mapped = ADVICE.into_iter().flat_map(|(advice, _)| {
            [ReadTechnique::MapEach(advice), ReadTechnique::MapOnce(advice)]
        });
        [ReadTechnique::Whole, ReadTechnique::Buffer].into_iter().chain(mapped)
    }

    fn two_files(directory: &std::path::Path) -> Vec<PathBuf> {
        let files = vec![directory.join("a"), directory.join("b")];
        std::fs::write(&files[0], "one\ntwo\n".repeat(10_000)).unwrap();
        std::fs::write(&files[1], "three\n".repeat(3)).unwrap();
        files
    }

    #[test]
    fn every_way_reads_all_bytes_of_all_files() {
        let dir = tempfile::tempdir().unwrap();
        let files = two_files(dir.path());
        for use_of_bytes in [Use::Null, Use::Lines] {
            for way in ways() {
                let reads = WholeFileReads { files: files.clone(), use_of_bytes, span: Span::Once };
                let work = reads.perform(way, &Cancel::default()).unwrap();
                assert_eq!((work.bytes, work.operations), (Some(80_018), 2), "{way:?}");
                assert_eq!(work.calls.get("mmap"), work.calls.get("munmap"), "{way:?}");
            }
        }
    }

    #[test]
    fn calls_are_those_of_the_way() {
        let dir = tempfile::tempdir().unwrap();
        let files = two_files(dir.path());
        let reads = WholeFileReads { files, use_of_bytes: Use::Null, span: Span::Once };
        let calls = |way| reads.perform(way, &Cancel::default()).unwrap().calls;
        assert_eq!(calls(ReadTechnique::Whole)["read"], 2);
        // Two and the empty one of the first file, one and the empty one of the second.
        assert_eq!(calls(ReadTechnique::Buffer)["read"], 5);
        assert_eq!(calls(ReadTechnique::MapEach(MapAdvice::Normal)).get("madvise"), None);
        assert_eq!(calls(ReadTechnique::MapEach(MapAdvice::Random))["madvise"], 2);
    }

    #[test]
    fn a_file_is_mapped_once_however_often_it_comes() {
        let dir = tempfile::tempdir().unwrap();
        let files = two_files(dir.path());
        let lasting = |millis| {
            let span = Span::Time(Duration::from_millis(millis));
            let reads = WholeFileReads { files: files.clone(), use_of_bytes: Use::Null, span };
            reads.perform(ReadTechnique::MapOnce(MapAdvice::Normal), &Cancel::default()).unwrap()
        };
        // A busy machine may open no more than a file in the time, so that more time is given until it came around.
        let work = (0..).map(|turn| lasting(1 << turn)).find(|work| work.operations > 4).unwrap();
        assert_eq!((work.calls["mmap"], work.calls["munmap"]), (2, 2));
    }
}
