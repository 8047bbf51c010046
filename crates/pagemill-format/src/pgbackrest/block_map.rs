//! [`BlockMap`]: where the blocks of a file lie that is stored by blocks.
//!
//! Blocks that changed together are compressed together, as a super block; a block that did not change since an earlier backup stays in
//! the super block where it was. So a map tells for each block of the file a super block, which may be in any backup the manifest
//! refers to, and which of the blocks in it this is.
//!
//! ```text
//! flags  ( reference [bundle] [offset]  ( super block's size [blocks, which]  checksum × blocks )… )…      all numbers as varint-128
//! ```
//!
//! Of a reference that comes again, what is not said is as it was: the next super block follows the one before, or is the same.
//!
//! Invariants: there are as many blocks as the file has, each within its super block; no sum overflows; the memory taken is
//! that of the blocks, of which there are no more than bytes in the map.
//!
//! Source: `blockMapNewRead` in `src/command/backup/blockMap.c`, `xxHashOne` in `src/common/crypto/xxhash.c`, pgBackRest 2.46 to 2.59
//! (version 0 of the map).

use std::collections::HashMap;

use twox_hash::XxHash3_128;

use crate::error::{Error, Result};

const STRUCTURE: &str = "block map";
/// Super blocks are of a few MiB at most; one is decompressed as a whole.
const MOST_SUPER_BLOCK_BYTES: u64 = 1 << 28;

/// What the manifest says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockMapShape {
    /// Bytes of the file.
    pub len: u64,
    /// Bytes of a block.
    pub block_size: u64,
    /// Bytes of a checksum.
    pub checksum_size: usize,
    /// How many backups can be referred to.
    pub references: usize,
}

/// The map of a file's blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockMap {
    shape: BlockMapShape,
    super_blocks: Vec<SuperBlock>,
    blocks: Vec<BlockPlace>,
    checksums: Vec<u8>,
}

/// Blocks that were compressed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuperBlock {
    /// Which of the manifest's references it lies in.
    pub reference: usize,
    /// The bundle; 0 for the file's own.
    pub bundle: u64,
    /// Where it begins there.
    pub offset: u64,
    /// Bytes that are stored.
    pub stored_len: u64,
    /// Bytes that come out.
    pub len: u64,
}

/// Where a block lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockPlace {
    /// Which of the super blocks.
    pub super_block: u32,
    /// Where it begins in what comes out of that.
    pub start: u64,
}

/// What is known of a reference from where it came before.
struct Known {
    bundle: u64,
    /// Where its newest super block begins and how many bytes of it are stored, how many come out, and the next block in it.
    offset: u64,
    stored_len: u64,
    len: u64,
    block: u64,
    /// That super block.
    super_block: u32,
}

impl BlockMap {
    /// Reads a map.
    ///
    /// # Errors
    /// Corrupt: what pgBackRest does not write. Unsupported: a later version of maps.
    pub fn parse(shape: BlockMapShape, bytes: &[u8]) -> Result<Self> {
        let map =
            Self { shape, super_blocks: Vec::new(), blocks: Vec::new(), checksums: Vec::new() };
        let mut parser = Parser { map, input: Input { bytes, pos: 0 }, last_len: None };
        if parser.input.number()? & 1 != 0 {
            return Err(Error::unsupported(STRUCTURE, "a later version than 0"));
        }
        let mut known = HashMap::new();
        while !parser.reference(&mut known)? {}
        parser.finish()
    }

    /// Where a block of the file lies; `None` behind its end.
    pub fn place(&self, block: u64) -> Option<(BlockPlace, &SuperBlock)> {
        let place = *self.blocks.get(usize::try_from(block).ok()?)?;
        Some((place, self.super_blocks.get(place.super_block as usize)?))
    }

    /// How many bytes a block of the file has: the last one may be short.
    pub fn block_len(&self, block: u64) -> u64 {
        let start = block.saturating_mul(self.shape.block_size);
        self.shape.len.saturating_sub(start).min(self.shape.block_size)
    }

    /// True when the contents of a block are what was copied.
    pub fn is_sound(&self, block: u64, contents: &[u8]) -> bool {
        let size = self.shape.checksum_size;
        let start = usize::try_from(block).unwrap_or(usize::MAX).saturating_mul(size);
        let said = self.checksums.get(start..start.saturating_add(size));
        let found = XxHash3_128::oneshot(contents).to_be_bytes();
        said.is_some_and(|said| found.starts_with(said))
    }
}

/// A map that is being read.
struct Parser<'a> {
    map: BlockMap,
    input: Input<'a>,
    /// Bytes stored of the super block before: sizes are told as differences.
    last_len: Option<u64>,
}

impl Parser<'_> {
    /// Reads what lies in one reference; true when it is the last one.
    fn reference(&mut self, known: &mut HashMap<u64, Known>) -> Result<bool> {
        let encoded = self.input.number()?;
        let number = encoded >> 3;
        let mut goes_on = false;
        let of = match known.entry(number) {
            std::collections::hash_map::Entry::Vacant(vacant) => {
                let bundle = if encoded & 2 != 0 { self.input.number()? } else { 0 };
                let offset = if encoded & 4 != 0 { self.input.number()? } else { 0 };
                let len = self.map.shape.block_size;
                let new = Known { bundle, offset, stored_len: 0, len, block: 0, super_block: 0 };
                vacant.insert(new)
            }
            std::collections::hash_map::Entry::Occupied(occupied) => {
                let of = occupied.into_mut();
                goes_on = encoded & 2 != 0;
                if !goes_on {
                    let gap = if encoded & 4 != 0 { self.input.number()? } else { 0 };
                    of.offset = self.input.sum(of.offset, of.stored_len)?;
                    of.offset = self.input.sum(of.offset, gap)?;
                }
                of
            }
        };
        if goes_on {
            self.last_len = Some(of.stored_len).filter(|len| *len != 0);
            self.some_blocks(of)?;
        }
        let mut is_done = goes_on && encoded & 4 != 0;
        let mut follows = goes_on;
        while !is_done {
            if follows {
                of.offset = self.input.sum(of.offset, of.stored_len)?;
            }
            is_done = self.super_block(number, of)?;
            follows = true;
        }
        Ok(encoded & 1 != 0)
    }

    /// Reads a super block that begins where `of` says; true when it is the last one of the reference for now.
    fn super_block(&mut self, reference: u64, of: &mut Known) -> Result<bool> {
        let encoded = self.input.number()?;
        let told = encoded >> 3;
        of.stored_len = match self.last_len {
            None => told,
            Some(last) => {
                last.checked_add_signed(zigzag(told)).ok_or_else(|| self.input.wrong(TOO_LARGE))?
            }
        };
        // Zero stands for no super block before, as in pgBackRest.
        self.last_len = Some(of.stored_len).filter(|len| *len != 0);
        if encoded & 2 != 0 {
            let told = self.input.number()?;
            let blocks = (told >> 1).checked_mul(self.map.shape.block_size);
            let rest = if told & 1 != 0 { self.input.number()? } else { 0 };
            let blocks = blocks.ok_or_else(|| self.input.wrong(TOO_LARGE))?;
            of.len = self.input.sum(blocks, rest)?;
        }
        self.begin(reference, of)?;
        match encoded & 4 != 0 {
            true => self.some_blocks(of)?,
            false => self.blocks(of.len.div_ceil(self.map.shape.block_size), of)?,
        }
        Ok(encoded & 1 != 0)
    }

    fn begin(&mut self, reference: u64, of: &mut Known) -> Result<()> {
        let number = usize::try_from(reference).ok();
        let Some(reference) = number.filter(|number| *number < self.map.shape.references) else {
            return Err(self.input.wrong("a backup that the manifest does not refer to"));
        };
        self.input.sum(of.offset, of.stored_len)?;
        if of.len > MOST_SUPER_BLOCK_BYTES || of.stored_len > 2 * MOST_SUPER_BLOCK_BYTES {
            return Err(self.input.wrong("a super block larger than there are"));
        }
        let &mut Known { bundle, offset, stored_len, len, .. } = of;
        of.block = 0;
        of.super_block = u32::try_from(self.map.super_blocks.len()).unwrap_or(u32::MAX);
        self.map.super_blocks.push(SuperBlock { reference, bundle, offset, stored_len, len });
        Ok(())
    }

    /// Blocks of a super block of which not all belong to the file any more, or not in one piece.
    fn some_blocks(&mut self, of: &mut Known) -> Result<()> {
        let told = self.input.number()?;
        if told & 1 != 0 {
            let skipped = self.input.number()?;
            of.block = self.input.sum(of.block, skipped)?;
        }
        self.blocks((told >> 1) + 1, of)
    }

    fn blocks(&mut self, count: u64, of: &mut Known) -> Result<()> {
        let BlockMapShape { len, block_size, checksum_size, .. } = self.map.shape;
        for _ in 0..count {
            if self.map.blocks.len() as u64 >= len.div_ceil(block_size) {
                return Err(self.input.wrong("more blocks than the file has"));
            }
            let checksum = self.input.take(checksum_size)?;
            let start = of.block.checked_mul(block_size).filter(|start| *start < of.len);
            let Some(start) = start else {
                return Err(self.input.wrong("a block behind the end of its super block"));
            };
            self.map.checksums.extend_from_slice(checksum);
            self.map.blocks.push(BlockPlace { super_block: of.super_block, start });
            of.block += 1;
        }
        Ok(())
    }

    fn finish(self) -> Result<BlockMap> {
        let BlockMapShape { len, block_size, .. } = self.map.shape;
        let wanted = len.div_ceil(block_size);
        match self.map.blocks.len() as u64 {
            found if found != wanted => {
                Err(self.input.wrong_owned(format!("{found} blocks, and the file has {wanted}")))
            }
            _ if self.input.pos != self.input.bytes.len() => {
                Err(self.input.wrong("bytes behind its end"))
            }
            _ => Ok(self.map),
        }
    }
}

const TOO_LARGE: &str = "a number that is too large";

/// Differences have their sign in the lowest bit.
fn zigzag(told: u64) -> i64 {
    (told >> 1) as i64 ^ -((told & 1) as i64)
}

/// The bytes of a map, and how far they were read.
struct Input<'a> {
    bytes: &'a [u8],
    pos: usize,
}

impl<'a> Input<'a> {
    #[cold]
    fn wrong(&self, what: &'static str) -> Error {
        Error::corrupt(STRUCTURE, self.pos, what)
    }

    #[cold]
    fn wrong_owned(&self, what: String) -> Error {
        Error::corrupt(STRUCTURE, self.pos, what)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let end = self.pos.checked_add(count);
        let taken = end.and_then(|end| self.bytes.get(self.pos..end));
        let taken = taken.ok_or_else(|| self.wrong("it was cut short"))?;
        self.pos += count;
        Ok(taken)
    }

    /// A number of 7 bits a byte, the lowest first.
    fn number(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?.first().copied().unwrap_or_default();
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits {
                return Err(self.wrong(TOO_LARGE));
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.wrong(TOO_LARGE))
    }

    fn sum(&self, one: u64, other: u64) -> Result<u64> {
        one.checked_add(other).ok_or_else(|| self.wrong(TOO_LARGE))
    }
}
