//! Compression into pglz, whose format and decompression are in [`crate::pglz`].
//!
//! Positions that begin with the same four bytes (by a weak hash) are chained, newest first, over the
//! last 4094 of them. At each position the chain is searched for the longest match, the more easily
//! satisfied the longer that takes; a match of three bytes or more becomes a tag, all else literals.
//! These are the choices of the server's default strategy, so the output is byte for byte a server's
//! (on machines whose `char` is signed), and gives up where a server does: inputs under 32 bytes,
//! nothing gained in the first 1024, or less than a quarter gained at all.
//!
//! A server takes positions out of their chains when they are too far back. Here a chain just ends where
//! it gets too far: positions in it only go backward, so nothing behind can be near again.
//!
//! Invariants: a chain's positions go backward, and those within reach are intact, as a position's place
//! is used again 4096 later; nothing is allocated per value but what the output grows by.
//!
//! Source: `src/common/pg_lzcompress.c`, PostgreSQL 14 to 18.

/// Positions remembered.
const HISTORY: usize = 4096;
const MAX_CHAINS: usize = 8192;
const LONGEST_MATCH: usize = 273;
const SHORTEST_MATCH: usize = 3;
/// A tag has twelve bits for the distance, and the highest is not used.
const FARTHEST_MATCH: usize = 0x0FFE;
const SHORTEST_INPUT: usize = 32;
/// Output after which there must have been a match.
const PATIENCE: usize = 1024;
/// A match so long ends the search at once; less suffices after each entry looked at.
const GOOD_MATCH: usize = 128;
const GOOD_MATCH_DROP_PERCENT: usize = 10;
/// What the output may have of the input, in percent.
const NEEDED_PERCENT: usize = 75;

/// The memory of a compression, kept from value to value. Positions are counted from 1; 0 ends a chain.
#[derive(Debug)]
pub struct PglzCompressor {
    heads: Box<[u32; MAX_CHAINS]>,
    next: Box<[u32; HISTORY]>,
    chain_mask: usize,
}

impl Default for PglzCompressor {
    fn default() -> Self {
        Self { heads: Box::new([0; MAX_CHAINS]), next: Box::new([0; HISTORY]), chain_mask: 0 }
    }
}

impl PglzCompressor {
    /// Appends the compressed value to `out`, or leaves `out` as it was and says false when that does not
    /// pay.
    pub fn compress(&mut self, value: &[u8], out: &mut Vec<u8>) -> bool {
        if value.len() < SHORTEST_INPUT || value.len() > i32::MAX as usize {
            return false;
        }
        self.begin(value.len());
        let start = out.len();
        let done = self.run(value, &mut Tags::new(out), most_output(value.len()));
        if !done {
            out.truncate(start);
        }
        done
    }

    fn begin(&mut self, length: usize) {
        let chains = match length {
            ..128 => 512,
            128..256 => 1024,
            256..512 => 2048,
            512..1024 => 4096,
            _ => MAX_CHAINS,
        };
        self.heads[..chains].fill(0);
        self.chain_mask = chains - 1;
    }

    fn run(&mut self, value: &[u8], tags: &mut Tags<'_>, most: usize) -> bool {
        let (mut at, mut has_matched) = (0, false);
        while let Some(&byte) = value.get(at) {
            if tags.written() >= most || (!has_matched && tags.written() >= PATIENCE) {
                return false;
            }
            let chain = self.chain(value, at);
            let found = self.find(value, at, chain);
            self.remember(at, chain);
            at += 1;
            match found {
                Some((distance, length)) => {
                    tags.put_match(distance, length);
                    for _ in 1..length {
                        self.remember(at, self.chain(value, at));
                        at += 1;
                    }
                    has_matched = true;
                }
                None => tags.put_literal(byte),
            }
        }
        tags.finish();
        tags.written() < most
    }

    /// Distance and length of the match to take at a position.
    #[inline]
    fn find(&self, value: &[u8], at: usize, chain: usize) -> Option<(usize, usize)> {
        let (mut best, mut best_distance, mut good) = (0, 0, GOOD_MATCH);
        let mut position = self.heads[chain % MAX_CHAINS] as usize;
        while position != 0 && at + 1 - position <= FARTHEST_MATCH {
            let from = position - 1;
            let length = match_length(value, from, at, best);
            if length > best {
                (best, best_distance) = (length, at - from);
            }
            if best >= good {
                break;
            }
            good -= good * GOOD_MATCH_DROP_PERCENT / 100;
            position = self.next[from % HISTORY] as usize;
        }
        (best >= SHORTEST_MATCH).then_some((best_distance, best))
    }

    #[inline]
    fn remember(&mut self, at: usize, chain: usize) {
        let head = &mut self.heads[chain % MAX_CHAINS];
        self.next[at % HISTORY] = *head;
        *head = at as u32 + 1;
    }

    #[inline]
    fn chain(&self, value: &[u8], at: usize) -> usize {
        let signed = |byte: u8| i32::from(byte as i8);
        let rest = value.get(at..).unwrap_or_default();
        let hash = match rest.first_chunk::<4>() {
            Some(&[a, b, c, d]) => signed(a) << 6 ^ signed(b) << 4 ^ signed(c) << 2 ^ signed(d),
            None => signed(rest.first().copied().unwrap_or(0)),
        };
        hash as usize & self.chain_mask
    }
}

/// Output of so many bytes or more is not worth it.
fn most_output(length: usize) -> usize {
    // A server avoids an overflow of 32 bits this way, at the price of a few bytes.
    if length > i32::MAX as usize / 100 {
        length / 100 * NEEDED_PERCENT
    } else {
        length * NEEDED_PERCENT / 100
    }
}

/// How many bytes from `from` on are those from `at` on; anything up to `best` may count as 0.
#[inline]
fn match_length(value: &[u8], from: usize, at: usize, best: usize) -> usize {
    if value.get(from + best) != value.get(at + best) {
        return 0;
    }
    let here = value.get(at..).unwrap_or_default();
    let here = &here[..here.len().min(LONGEST_MATCH)];
    let there = value.get(from..).unwrap_or_default();
    common_prefix(here, &there[..here.len().min(there.len())])
}

#[inline]
fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let (eights_a, _) = a.as_chunks::<8>();
    let (eights_b, _) = b.as_chunks::<8>();
    let mut length = 0;
    for (a, b) in eights_a.iter().zip(eights_b) {
        let differing = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differing != 0 {
            return length + (differing.trailing_zeros() / 8) as usize;
        }
        length += 8;
    }
    let rest = a.get(length..).unwrap_or_default().iter().zip(b.get(length..).unwrap_or_default());
    length + rest.take_while(|(a, b)| a == b).count()
}

/// The output: control bytes, and the items they speak of.
struct Tags<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    /// Where the control byte is.
    control_at: usize,
    control: u8,
    /// The bit of the next item, 0 when a new control byte is due.
    bit: u8,
}

impl<'a> Tags<'a> {
    fn new(out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        Self { out, start, control_at: start, control: 0, bit: 0 }
    }

    #[inline]
    fn written(&self) -> usize {
        self.out.len() - self.start
    }

    #[inline]
    fn next_item(&mut self) {
        if self.bit == 0 {
            self.finish();
            self.control_at = self.out.len();
            self.out.push(0);
            (self.control, self.bit) = (0, 1);
        }
    }

    #[inline]
    fn put_literal(&mut self, byte: u8) {
        self.next_item();
        self.out.push(byte);
        self.bit <<= 1;
    }

    #[inline]
    fn put_match(&mut self, distance: usize, length: usize) {
        self.next_item();
        self.control |= self.bit;
        self.bit <<= 1;
        let high = (distance & 0xF00) >> 4;
        if length > 17 {
            self.out.extend([(high | 0x0F) as u8, distance as u8, (length - 18) as u8]);
        } else {
            self.out.extend([(high | (length - SHORTEST_MATCH)) as u8, distance as u8]);
        }
    }

    #[inline]
    fn finish(&mut self) {
        if let Some(place) = self.out.get_mut(self.control_at) {
            *place = self.control;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::noise::noise;
    use crate::pglz::decompress;

    fn compressed(value: &[u8]) -> Option<Vec<u8>> {
        let mut out = b"before".to_vec();
        let done = PglzCompressor::default().compress(value, &mut out);
        assert_eq!(&out[..6], b"before");
        assert!(done || out.len() == 6);
        done.then(|| out.split_off(6))
    }

    #[test]
    fn a_run_of_one_byte_becomes_matches_of_the_greatest_length() {
        let expected = [0b0000_1110, b'a', 0x0F, 1, 255, 0x0F, 1, 255, 0x0F, 1, 53 - 18];
        assert_eq!(compressed(&[b'a'; 1 + 273 + 273 + 53]).as_deref(), Some(&expected[..]));
    }

    #[test]
    fn short_or_random_values_are_left_alone() {
        assert_eq!(compressed(&[b'a'; 31]), None);
        let noise = noise(5000);
        assert_eq!(compressed(&noise), None);
    }

    proptest! {
        #[test]
        fn what_is_compressed_comes_back_from_a_used_compressor_too(
            values in prop::collection::vec(prop::collection::vec(0_u8..4, 0..3000), 1..4),
            stretch in 1_usize..6,
        ) {
            let mut compressor = PglzCompressor::default();
            for value in values {
                let value = value.repeat(stretch);
                let mut out = Vec::new();
                if compressor.compress(&value, &mut out) {
                    prop_assert!(out.len() < value.len());
                    let mut back = Vec::new();
                    decompress(&out, value.len(), &mut back).unwrap();
                    prop_assert_eq!(back, value);
                }
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(value in prop::collection::vec(any::<u8>(), 0..6000)) {
            let _ = compressed(&value);
        }
    }
}
