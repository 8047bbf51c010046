//! A segment as it is stored: plain, or compressed by an archiver.
//!
//! How a file is compressed is told by what it begins with, never by its name, since names are not always changed.
//! A plain file is read where it is needed; a compressed one is decompressed as a whole, into memory, and there is
//! never more than a segment of it.
//!
//! Invariant: what comes out of an archive's whole file has the size of a segment, or is refused, as a server
//! refuses it.

use std::io::{self, Read};
use std::path::Path;

use pagemill_format::wal;
use pagemill_io::{File, Storage};

use crate::compression::Compression;
use crate::error::{Error, Refusal, Result};

/// The bytes of a segment.
#[derive(Debug)]
pub(crate) enum SegmentBytes {
    /// Read where needed.
    File(Box<dyn File>),
    /// Decompressed, all of it.
    Memory(Vec<u8>),
}

/// How a file is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Plain,
    Compressed(Compression),
    /// Known by name alone.
    Refused(&'static str),
    Unknown,
}

/// What files of each sort that is not read begin with.
const MAGIC: [(&[u8], Format); 8] = [
    (&[0xFD, b'7', b'z', b'X', b'Z', 0], Format::Refused("compressed by xz")),
    (
        &[0xFF, 0x06, 0, 0, b's', b'N', b'a', b'P', b'p', b'Y'],
        Format::Refused("compressed by snappy"),
    ),
    (&[0x89, b'L', b'Z', b'O', 0], Format::Refused("compressed by lzop")),
    (&[0x5D, 0, 0], Format::Refused("compressed by lzma")),
    (b"Salted__", Format::Refused("encrypted (by OpenSSL or pgBackRest)")),
    (b"age-encryption.org", Format::Refused("encrypted (by age)")),
    (b"-----BEGIN PGP", Format::Refused("encrypted (by PGP)")),
    (&[0x50, 0x4B, 0x03, 0x04], Format::Refused("a zip file")),
];
/// What is not told by the contents, but by the name.
const SUFFIXES: [(&str, &str); 5] = [
    ("br", "compressed by brotli"),
    ("gpg", "encrypted (by PGP)"),
    ("pgp", "encrypted (by PGP)"),
    ("enc", "encrypted"),
    ("age", "encrypted (by age)"),
];
/// The longest of [`MAGIC`].
const HEAD_BYTES: usize = 18;

/// What is expected of a file.
pub(super) struct Expected {
    /// Bytes of a segment.
    pub(super) segment_size: u32,
    /// It may be compressed, and is whole.
    pub(super) is_archived: bool,
    /// It may end anywhere.
    pub(super) is_partial: bool,
}

impl SegmentBytes {
    /// Opens a segment's file.
    pub(super) fn open(storage: &Storage, path: &Path, expected: &Expected) -> Result<Self> {
        let file = storage.open(path)?;
        if !expected.is_archived {
            return Ok(Self::File(file));
        }
        let format = format_of(storage, file.as_ref(), path)?;
        if format == Format::Plain {
            let len = file.len().map_err(|error| pagemill_io::Error::new(error, path))?;
            check_size(path, len, expected)?;
            return Ok(Self::File(file));
        }
        drop(file);
        let bytes = decompress(storage, path, format, expected)?;
        check_size(path, bytes.len() as u64, expected)?;
        Ok(Self::Memory(bytes))
    }
}

/// A small file, decompressed if it is compressed.
pub(super) fn read_small(storage: &Storage, path: &Path, limit: u64) -> Result<Vec<u8>> {
    let file = storage.open(path)?;
    let format = match format_of(storage, file.as_ref(), path)? {
        // Text begins with anything.
        Format::Plain | Format::Unknown => return Ok(storage.read_file(path, limit)?),
        format => format,
    };
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    let expected = Expected { segment_size: limit, is_archived: true, is_partial: false };
    decompress(storage, path, format, &expected)
}

fn format_of(storage: &Storage, file: &dyn File, path: &Path) -> Result<Format> {
    let mut head = [0; HEAD_BYTES];
    let got = storage.read_fully_at(file, &mut head, 0);
    let got = got.map_err(|error| pagemill_io::Error::new(error, path))?;
    let head = head.get(..got).unwrap_or_default();
    if let Some(compression) = Compression::of(head) {
        return Ok(Format::Compressed(compression));
    }
    if let Some((_, format)) = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Ok(*format);
    }
    let suffix = path.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default();
    if let Some((_, what)) = SUFFIXES.iter().find(|(known, _)| *known == suffix) {
        return Ok(Format::Refused(what));
    }
    let magic = head.first_chunk().map_or(0, |bytes| u16::from_le_bytes(*bytes));
    let is_wal = wal::version_of_magic(magic).is_some() || head.iter().all(|&byte| byte == 0);
    Ok(if is_wal { Format::Plain } else { Format::Unknown })
}

fn decompress(
    storage: &Storage,
    path: &Path,
    format: Format,
    expected: &Expected,
) -> Result<Vec<u8>> {
    let refuse = |cause: Refusal| Error::Refused { path: path.to_path_buf(), cause };
    // What compression makes longer, it makes little longer.
    let packed = storage.read_file(path, 2 * u64::from(expected.segment_size) + (1 << 20))?;
    let packed = packed.as_slice();
    let mut bytes = Vec::new();
    let limit = u64::from(expected.segment_size) + 1;
    let outcome = match format {
        Format::Compressed(compression) => {
            compression.decoder(packed).and_then(|decoder| take(decoder, limit, &mut bytes))
        }
        Format::Refused(what) => {
            return Err(refuse(Refusal::Compression(what)));
        }
        Format::Plain | Format::Unknown => {
            return Err(refuse(Refusal::UnknownKind));
        }
    };
    match outcome {
        // What a partial file has is all there is of it.
        Err(_) if expected.is_partial && !bytes.is_empty() => Ok(bytes),
        Err(error) => Err(refuse(Refusal::Decompression(error))),
        Ok(()) if bytes.len() as u64 == limit => {
            Err(refuse(Refusal::TooLong(expected.segment_size)))
        }
        Ok(()) => Ok(bytes),
    }
}

/// Reads up to `limit` bytes; what came before an error stays in `bytes`.
fn take(from: impl Read, limit: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    from.take(limit).read_to_end(bytes).map(drop)
}

fn check_size(path: &Path, len: u64, expected: &Expected) -> Result<()> {
    let wanted = u64::from(expected.segment_size);
    if len == wanted || expected.is_partial && len < wanted {
        return Ok(());
    }
    let cause = Refusal::NotWhole { found: len, expected: wanted };
    Err(Error::Refused { path: path.to_path_buf(), cause })
}
