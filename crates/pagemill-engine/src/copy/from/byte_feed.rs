//! The bytes of one input, a window at a time: lent out of a mapping, or read and decompressed.
//!
//! ```text
//!   regular file ──────────────► mapping ──► slices of it
//!   .gz, .zst (by name or first bytes), pipe ──► decoder ──► buffers that batches take along
//! ```
//!
//! Invariant: a window starts behind what was taken last; its bytes stay the same until then.

use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use pagemill_io::{InputStream, MappedInput, Storage};

use crate::error::{Error, Result};

/// Bytes that the kernel is asked to have ready ahead of what is taken from a mapping.
const AHEAD: usize = 8 << 20;
/// Longest buffer that is used again.
const LARGEST_SPARE: usize = 4 << 20;
/// Most buffers that are kept to be used again.
const MOST_SPARE: usize = 8;
/// Bytes read at once from what is decompressed.
const COMPRESSED_READ: usize = 256 << 10;
/// The first bytes of gzip (RFC 1952) and Zstandard (RFC 8878) data.
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const LONGEST_MAGIC: usize = 4;
/// What a frame of Zstandard that holds no data begins with, its lowest four bits aside: pzstd writes one first.
const SKIPPABLE_MAGIC: u32 = 0x184D_2A50;

/// What rows are read from.
#[derive(Debug)]
pub enum InputSource {
    /// A file, or a pipe that has a name.
    File(PathBuf),
    /// An open descriptor, such as standard input.
    Stream(InputStream),
}

/// How the bytes of an input are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Plain,
    Gzip,
    Zstd,
}

impl Packing {
    /// By what the first bytes are; a name that says otherwise is an error.
    fn of(path: &Path, first: &[u8]) -> Result<Self> {
        let found = match first {
            _ if first.starts_with(GZIP_MAGIC) => Self::Gzip,
            _ if first.starts_with(ZSTD_MAGIC) || is_skippable(first) => Self::Zstd,
            _ => Self::Plain,
        };
        let named = match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => Self::Gzip,
            Some("zst") => Self::Zstd,
            _ => Self::Plain,
        };
        if first.is_empty() && named != Self::Plain {
            return Err(packing_error(path, named, "unexpected end of file: it has 0 bytes"));
        }
        if found == Self::Plain && named != Self::Plain {
            let reason = "it does not begin as such data does; if it is not compressed, rename it";
            return Err(packing_error(path, named, reason));
        }
        Ok(found)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

fn is_skippable(first: &[u8]) -> bool {
    let magic = first.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    magic.is_some_and(|magic| magic & !0xF == SKIPPABLE_MAGIC)
}

fn packing_error(path: &Path, packing: Packing, reason: impl ToString) -> Error {
    Error::Decompression {
        input: path.display().to_string(),
        format: packing.name(),
        reason: reason.to_string(),
    }
}

/// The bytes of a batch.
#[derive(Debug)]
pub(super) enum BatchBytes {
    /// Lent out of a mapping.
    Mapped {
        /// The mapping.
        input: Arc<MappedInput>,
        /// Where in it.
        start: usize,
        /// How many bytes.
        length: usize,
    },
    /// The first bytes of a buffer.
    Owned {
        /// The buffer.
        buffer: Vec<u8>,
        /// How many bytes.
        length: usize,
    },
}

impl BatchBytes {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Mapped { input, start, length } => input.bytes(*start..start + length),
            Self::Owned { buffer, length } => buffer.get(..*length).unwrap_or(buffer),
        }
    }

    /// Makes sure that the bytes were those of the input. To be asked after they were used.
    pub(super) fn check(&self) -> Result<()> {
        let Self::Mapped { input, start, length } = self else { return Ok(()) };
        input.check(*start..start + length).map_err(Error::Input)
    }

    /// Lets go of what the bytes take of this process's memory; gives back a buffer to be used again.
    pub(super) fn release(self) -> Option<Vec<u8>> {
        match self {
            Self::Mapped { input, start, length } => {
                input.release(start..start + length);
                None
            }
            Self::Owned { buffer, .. } => Some(buffer),
        }
    }
}

/// One input, read from its beginning to its end.
#[derive(Debug)]
pub(super) enum ByteFeed {
    Mapped(MappedFeed),
    Stream(StreamFeed),
}

impl ByteFeed {
    pub(super) fn open(storage: &Storage, source: InputSource) -> Result<Self> {
        let stream = match source {
            InputSource::Stream(stream) => stream,
            InputSource::File(path) => {
                if let Some(input) =
                    MappedInput::open(&storage.host(), &path).map_err(Error::Input)?
                    && Packing::of(&path, input.bytes(0..LONGEST_MAGIC))? == Packing::Plain
                {
                    return Ok(Self::Mapped(MappedFeed::new(input)));
                }
                InputStream::open(&storage.host(), &path).map_err(Error::Input)?
            }
        };
        StreamFeed::new(stream).map(Self::Stream)
    }

    /// At least `length` bytes, or all that are left; and whether they are.
    pub(super) fn window(&mut self, length: usize) -> Result<(&[u8], bool)> {
        match self {
            Self::Mapped(feed) => Ok(feed.window(length)),
            Self::Stream(feed) => feed.window(length),
        }
    }

    /// Takes the first bytes of the window.
    pub(super) fn take(&mut self, length: usize) -> BatchBytes {
        match self {
            Self::Mapped(feed) => feed.take(length),
            Self::Stream(feed) => feed.take(length),
        }
    }

    /// Takes back a buffer that a batch was done with.
    pub(super) fn reuse(&mut self, buffer: Vec<u8>) {
        if let Self::Stream(feed) = self
            && buffer.len() <= LARGEST_SPARE
            && feed.spare.len() < MOST_SPARE
        {
            feed.spare.push(buffer);
        }
    }
}

#[derive(Debug)]
pub(super) struct MappedFeed {
    input: Arc<MappedInput>,
    position: usize,
    /// Up to where the kernel was asked to have the file ready.
    advised: usize,
}

impl MappedFeed {
    fn new(input: MappedInput) -> Self {
        Self { input: Arc::new(input), position: 0, advised: 0 }
    }

    fn window(&mut self, length: usize) -> (&[u8], bool) {
        let end = self.position.saturating_add(length);
        let ahead = end.saturating_add(AHEAD);
        // A stretch at a time: the kernel takes only so much of one advice.
        while self.advised < ahead.min(self.input.len()) {
            let next = self.advised + (1 << 20);
            self.input.will_need(self.advised..next);
            self.advised = next;
        }
        (self.input.bytes(self.position..end), end >= self.input.len())
    }

    fn take(&mut self, length: usize) -> BatchBytes {
        let start = self.position;
        self.position += length;
        BatchBytes::Mapped { input: Arc::clone(&self.input), start, length }
    }
}

pub(super) struct StreamFeed {
    reader: Box<dyn Read + Send>,
    path: PathBuf,
    packing: Packing,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were read.
    filled: usize,
    is_ended: bool,
    spare: Vec<Vec<u8>>,
}

impl StreamFeed {
    fn new(mut stream: InputStream) -> Result<Self> {
        let path = stream.path().to_owned();
        let mut first = [0; LONGEST_MAGIC];
        let mut got = 0;
        while let Some(rest) = first.get_mut(got..).filter(|rest| !rest.is_empty()) {
            match stream.read(rest).map_err(Error::Input)? {
                0 => break,
                count => got += count,
            }
        }
        let first = first.get(..got).unwrap_or_default();
        let packing = Packing::of(&path, first)?;
        let all = Cursor::new(first.to_vec()).chain(StreamReader(stream));
        let buffered = |all| io::BufReader::with_capacity(COMPRESSED_READ, all);
        let reader: Box<dyn Read + Send> = match packing {
            Packing::Plain => Box::new(all),
            Packing::Gzip => Box::new(MultiGzDecoder::new(buffered(all))),
            Packing::Zstd => {
                let decoder = zstd::Decoder::with_buffer(buffered(all));
                Box::new(decoder.map_err(|error| packing_error(&path, packing, error))?)
            }
        };
        let (buffer, spare) = (Vec::new(), Vec::new());
        Ok(Self { reader, path, packing, buffer, filled: 0, is_ended: false, spare })
    }

    fn window(&mut self, length: usize) -> Result<(&[u8], bool)> {
        if self.buffer.len() < length {
            self.buffer.resize(length, 0);
        }
        while self.filled < length && !self.is_ended {
            let rest = self.buffer.get_mut(self.filled..length).unwrap_or_default();
            match self.reader.read(rest) {
                Ok(0) => self.is_ended = true,
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error(error)),
            }
        }
        Ok((self.buffer.get(..self.filled).unwrap_or_default(), self.is_ended))
    }

    fn take(&mut self, length: usize) -> BatchBytes {
        let mut next = self.spare.pop().unwrap_or_default();
        let rest = self.buffer.get(length..self.filled).unwrap_or_default();
        if next.len() < rest.len() {
            next.resize(rest.len(), 0);
        }
        if let Some(place) = next.get_mut(..rest.len()) {
            place.copy_from_slice(rest);
        }
        self.filled = rest.len();
        let buffer = std::mem::replace(&mut self.buffer, next);
        BatchBytes::Owned { buffer, length }
    }

    /// Failures of the input come through the decoder as they are.
    fn error(&self, error: io::Error) -> Error {
        match error.downcast::<pagemill_io::Error>() {
            Ok(failed) => Error::Input(failed),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                packing_error(&self.path, self.packing, "it ends in the middle")
            }
            Err(error) => packing_error(&self.path, self.packing, error),
        }
    }
}

impl std::fmt::Debug for StreamFeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamFeed").field("path", &self.path).finish_non_exhaustive()
    }
}

/// An input as the decoders want it.
struct StreamReader(InputStream);

impl Read for StreamReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf).map_err(io::Error::other)
    }
}
