//! Full-page images to be written: the page without its hole, compressed where that saves something.
//!
//! What lies in the hole is not logged, and zero after replay. PostgreSQL takes the word of whoever logs a
//! page that it has the usual layout; here a hole is left out only if it is zero indeed, so that a page of
//! another layout (free-space map, visibility map) is never cut.
//!
//! Invariant: an image and its hole make up exactly one page, and what is compressed is smaller than what
//! it stands for by more than the two bytes that it costs.
//!
//! Sources: `XLogRecordAssemble` and `XLogCompressBackupBlock` in
//! `src/backend/access/transam/xloginsert.c`, PostgreSQL 14 to 18.

use std::borrow::Cow;
use std::ops::Range;

use crate::ids::{BLOCK_SIZE, BlockBytes, Fork, PgVersion};
use crate::pglz_compression::PglzCompressor;
use crate::{lz4, zstd};

/// Bytes of a page's header, up to its first line pointer.
const PAGE_HEADER_BYTES: usize = 24;
/// Where the header says where the line pointers end, and where the tuples begin.
const LOWER: Range<usize> = 12..14;
const UPPER: Range<usize> = 14..16;
/// What a compressed image costs besides: the length of its hole.
const HOLE_LENGTH_BYTES: usize = 2;

/// How full-page images are compressed: `wal_compression`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ImageCompression {
    /// Not at all.
    #[default]
    Off,
    /// PostgreSQL's own method, known to every server.
    Pglz,
    /// LZ4; from 15 on, of servers built with it.
    Lz4,
    /// Zstandard; from 15 on, of servers built with it.
    Zstd,
}

impl ImageCompression {
    /// The value of `wal_compression`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Pglz => "pglz",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// True when servers of this version know the method (if they were built with it).
    pub fn is_known_to(self, version: PgVersion) -> bool {
        matches!(self, Self::Off | Self::Pglz) || version >= PgVersion::V15
    }
}

/// A page as an image for a [`RecordBuilder`](super::RecordBuilder).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageImage<'a> {
    /// What is stored: the page up to its hole, or all of it compressed.
    pub(super) head: Cow<'a, [u8]>,
    /// What is stored besides: the page behind its hole.
    pub(super) tail: &'a [u8],
    /// The hole, in bytes of the page; empty if there is none.
    pub(super) hole: Range<usize>,
    pub(super) compression: ImageCompression,
}

impl<'a> PageImage<'a> {
    /// The image of a page of this fork, not compressed.
    pub fn new(page: &'a BlockBytes, fork: Fork) -> Self {
        let hole = hole(page, fork);
        let (head, rest) = page.split_at_checked(hole.start).unwrap_or((page, &[]));
        let tail = rest.get(hole.len()..).unwrap_or_default();
        Self { head: Cow::Borrowed(head), tail, hole, compression: ImageCompression::Off }
    }

    /// Bytes it takes in a record.
    pub fn stored_len(&self) -> usize {
        self.head.len() + self.tail.len()
    }
}

/// Makes images by one method, and keeps the memory that takes.
#[derive(Debug)]
pub struct ImageCompressor {
    method: ImageCompression,
    pglz: PglzCompressor,
    whole: Vec<u8>,
}

impl ImageCompressor {
    /// One for this method.
    pub fn new(method: ImageCompression) -> Self {
        Self { method, pglz: PglzCompressor::default(), whole: Vec::new() }
    }

    /// The image of a page of this fork: compressed, unless that saves nothing.
    pub fn image<'a>(&mut self, page: &'a BlockBytes, fork: Fork) -> PageImage<'a> {
        let plain = PageImage::new(page, fork);
        if self.method == ImageCompression::Off {
            return plain;
        }
        self.whole.clear();
        self.whole.extend_from_slice(&plain.head);
        self.whole.extend_from_slice(plain.tail);
        let cost = if plain.hole.is_empty() { 0 } else { HOLE_LENGTH_BYTES };
        let mut packed = Vec::new();
        if !self.compress(&mut packed) || packed.len() + cost >= self.whole.len() {
            return plain;
        }
        let (hole, compression) = (plain.hole, self.method);
        PageImage { head: Cow::Owned(packed), tail: &[], hole, compression }
    }

    /// Appends what is in `whole` in a smaller form; false when there is none.
    fn compress(&mut self, packed: &mut Vec<u8>) -> bool {
        match self.method {
            ImageCompression::Off => false,
            ImageCompression::Pglz => self.pglz.compress(&self.whole, packed),
            ImageCompression::Lz4 => lz4::compress(&self.whole, packed),
            ImageCompression::Zstd => zstd::compress(&self.whole, packed),
        }
    }
}

/// The part between line pointers and tuples, if the page has that layout and the part is zero.
fn hole(page: &BlockBytes, fork: Fork) -> Range<usize> {
    let offset = |at: Range<usize>| {
        let bytes = page.get(at).and_then(|bytes| bytes.first_chunk::<2>());
        bytes.map_or(0, |bytes| usize::from(u16::from_le_bytes(*bytes)))
    };
    let (lower, upper) = (offset(LOWER), offset(UPPER));
    let is_standard = matches!(fork, Fork::Main | Fork::Init)
        && lower >= PAGE_HEADER_BYTES
        && lower < upper
        && upper <= BLOCK_SIZE;
    let is_zero = |hole: &[u8]| hole.iter().all(|&byte| byte == 0);
    match page.get(lower..upper) {
        Some(hole) if is_standard && is_zero(hole) => lower..upper,
        _ => 0..0,
    }
}
