//! Finding the first byte of a value that an output format has to treat specially.
//!
//! Most values contain none, so what counts is how fast a value can be found clean. Blocks of 64
//! bytes are tested without a branch inside, in code the compiler turns into vector instructions,
//! with the widest ones this processor has ([`pulp::Arch`] asks once). Only a block with a hit is
//! looked at byte by byte. Short values never reach the dispatch: a table decides byte by byte.
//!
//! Invariants: [`ByteScan::clean_prefix`] and [`ByteScan::clean_suffix`] agree with the test on
//! every byte; bytes outside the slice are never looked at.

use pulp::{Arch, Simd, WithSimd};

/// Bytes tested together before the first branch.
const BLOCK: usize = 64;
/// Block of values too short for [`BLOCK`]; shorter ones use the table.
const SMALL_BLOCK: usize = 16;

/// The question asked of each byte; implementations must be branch-free to be turned into vectors.
pub trait ByteTest: Copy {
    /// Whether the format treats this byte specially.
    fn is_special(self, byte: u8) -> bool;
}

/// A byte test, its table for short values, and what the processor can do.
#[derive(Clone, Debug)]
pub struct ByteScan<T> {
    test: T,
    table: Box<[bool; 256]>,
    arch: Arch,
}

impl<T: ByteTest> ByteScan<T> {
    /// A scan for the bytes of a test.
    pub fn new(test: T) -> Self {
        let mut table = Box::new([false; 256]);
        for (byte, special) in (0..=u8::MAX).zip(table.iter_mut()) {
            *special = test.is_special(byte);
        }
        ByteScan { test, table, arch: Arch::new() }
    }

    /// Whether this byte is special.
    #[inline]
    pub fn is_special(&self, byte: u8) -> bool {
        self.table[usize::from(byte)]
    }

    /// Whether no byte is special.
    #[inline]
    pub fn is_clean(&self, bytes: &[u8]) -> bool {
        if bytes.len() < SMALL_BLOCK {
            return !bytes.iter().fold(false, |hit, &byte| hit | self.is_special(byte));
        }
        self.first_hit_block(bytes) == bytes.len()
    }

    /// How many bytes are special.
    pub fn count(&self, bytes: &[u8]) -> usize {
        // Counting in bytes keeps the loop narrow; a block is too short to overflow one.
        let in_block = |block: &[u8]| {
            block.iter().fold(0u8, |count, &byte| count + u8::from(self.test.is_special(byte)))
        };
        bytes.chunks(BLOCK).map(|block| usize::from(in_block(block))).sum()
    }

    /// Length of the longest prefix without a special byte.
    #[inline]
    pub fn clean_prefix(&self, bytes: &[u8]) -> usize {
        let skipped = if bytes.len() < SMALL_BLOCK { 0 } else { self.first_hit_block(bytes) };
        let rest = bytes.get(skipped..).unwrap_or_default();
        let found = rest.iter().position(|&byte| self.is_special(byte));
        skipped + found.unwrap_or(rest.len())
    }

    /// Length of the longest suffix without a special byte.
    pub fn clean_suffix(&self, bytes: &[u8]) -> usize {
        let dirty = |block: &&[u8]| any_special(self.test, block);
        let clean = BLOCK * bytes.rchunks_exact(BLOCK).take_while(|block| !dirty(block)).count();
        let rest = bytes.get(..bytes.len() - clean).unwrap_or_default();
        let small_blocks = rest.rchunks_exact(SMALL_BLOCK).take_while(|block| !dirty(block));
        let clean = clean + SMALL_BLOCK * small_blocks.count();
        let rest = bytes.get(..bytes.len() - clean).unwrap_or_default();
        let found = rest.iter().rev().position(|&byte| self.is_special(byte));
        clean + found.unwrap_or(rest.len())
    }

    /// A position before which all is clean: the start of the first small block with a hit, or the
    /// end.
    fn first_hit_block(&self, bytes: &[u8]) -> usize {
        self.arch.dispatch(FirstHitBlock { test: self.test, bytes })
    }
}

/// [`first_hit_block`] for the widest instructions. A type, not a closure: only what is inlined into the caller made
/// for them is compiled to them, and a closure need not be.
struct FirstHitBlock<'a, T> {
    test: T,
    bytes: &'a [u8],
}

impl<T: ByteTest> WithSimd for FirstHitBlock<'_, T> {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        first_hit_block(self.test, self.bytes)
    }
}

#[inline(always)]
fn any_special<T: ByteTest>(test: T, block: &[u8]) -> bool {
    block.iter().fold(0u8, |hit, &byte| hit | u8::from(test.is_special(byte))) != 0
}

#[inline(always)]
fn first_hit_block<T: ByteTest>(test: T, bytes: &[u8]) -> usize {
    let mut clean = 0;
    for block in bytes.as_chunks::<BLOCK>().0 {
        if any_special(test, block) {
            break;
        }
        clean += BLOCK;
    }
    // Either the end is near, or a block with a hit is, which small blocks narrow down.
    let (small_blocks, rest) = bytes.get(clean..).unwrap_or_default().as_chunks::<SMALL_BLOCK>();
    for block in small_blocks {
        if any_special(test, block) {
            return clean;
        }
        clean += SMALL_BLOCK;
    }
    // The last bytes are tested together with bytes already found clean.
    match bytes.last_chunk::<SMALL_BLOCK>() {
        Some(block) if !rest.is_empty() && !any_special(test, block) => bytes.len(),
        _ => clean,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    struct Comma;

    impl ByteTest for Comma {
        fn is_special(self, byte: u8) -> bool {
            byte == b','
        }
    }

    #[test]
    fn a_comma_is_found_at_every_position_of_every_length() {
        let scan = ByteScan::new(Comma);
        for length in 0..200 {
            let mut bytes = vec![b'a'; length];
            assert_eq!(scan.clean_prefix(&bytes), length);
            assert_eq!(scan.clean_suffix(&bytes), length);
            assert!(scan.is_clean(&bytes));
            for position in 0..length {
                bytes[position] = b',';
                assert_eq!(scan.clean_prefix(&bytes), position);
                assert_eq!(scan.clean_suffix(&bytes), length - position - 1);
                assert!(!scan.is_clean(&bytes));
                bytes[position] = b'a';
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_scan_as_byte_by_byte(bytes in prop::collection::vec(40u8..50, 0..300)) {
            let scan = ByteScan::new(Comma);
            let first = bytes.iter().position(|&b| b == b',');
            let last = bytes.iter().rev().position(|&b| b == b',');
            prop_assert_eq!(scan.clean_prefix(&bytes), first.unwrap_or(bytes.len()));
            prop_assert_eq!(scan.clean_suffix(&bytes), last.unwrap_or(bytes.len()));
            prop_assert_eq!(scan.count(&bytes), bytes.iter().filter(|&&b| b == b',').count());
        }
    }
}
