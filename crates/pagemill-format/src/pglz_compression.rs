//! Compression into pglz, whose format and decompression are in [`crate::pglz`].
//!
//! Positions that begin with the same four bytes (by a weak hash) are chained, newest first, over the
//! last 4096 of them. At each position the chain is searched for the longest match, the more easily
//! satisfied the longer that takes; a match of three bytes or more becomes a tag, all else literals.
//! These are the choices of the server's default strategy, so the output is byte for byte a server's
//! (on machines whose `char` is signed), and gives up where a server does: inputs under 32 bytes,
//! nothing gained in the first 1024, or less than a quarter gained at all.
//!
//! Invariants: entry 0 is none's and ends every chain; a chain holds positions below the current one
//! only; nothing is allocated per value but what the output grows by.
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

#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    next: u16,
    previous: u16,
    chain: u16,
    position: u32,
}

/// The memory of a compression, kept from value to value.
#[derive(Debug)]
pub struct PglzCompressor {
    heads: Box<[u16]>,
    entries: Box<[Entry]>,
    chain_mask: usize,
    next_entry: u16,
    is_recycling: bool,
}

impl Default for PglzCompressor {
    fn default() -> Self {
        Self {
            heads: vec![0; MAX_CHAINS].into(),
            entries: vec![Entry::default(); HISTORY + 1].into(),
            chain_mask: 0,
            next_entry: 1,
            is_recycling: false,
        }
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
        self.next_entry = 1;
        self.is_recycling = false;
    }

    fn run(&mut self, value: &[u8], tags: &mut Tags<'_>, most: usize) -> bool {
        let (mut at, mut has_matched) = (0, false);
        while let Some(&byte) = value.get(at) {
            if tags.written() >= most || (!has_matched && tags.written() >= PATIENCE) {
                return false;
            }
            match self.find(value, at) {
                Some((distance, length)) => {
                    tags.put_match(distance, length);
                    (at..at + length).for_each(|position| self.remember(value, position));
                    at += length;
                    has_matched = true;
                }
                None => {
                    tags.put_literal(byte);
                    self.remember(value, at);
                    at += 1;
                }
            }
        }
        tags.finish();
        tags.written() < most
    }

    /// Distance and length of the match to take at a position.
    #[inline]
    fn find(&self, value: &[u8], at: usize) -> Option<(usize, usize)> {
        let (mut best, mut best_distance, mut good) = (0, 0, GOOD_MATCH);
        let mut entry = self.heads[self.chain(value, at)];
        while entry != 0 {
            let Entry { next, position, .. } = self.entries[usize::from(entry)];
            let distance = at - position as usize;
            if distance > FARTHEST_MATCH {
                break;
            }
            let length = match_length(value, position as usize, at, best);
            if length > best {
                (best, best_distance) = (length, distance);
            }
            entry = next;
            if best >= good {
                break;
            }
            good -= good * GOOD_MATCH_DROP_PERCENT / 100;
        }
        (best >= SHORTEST_MATCH).then_some((best_distance, best))
    }

    #[inline]
    fn remember(&mut self, value: &[u8], position: usize) {
        let number = self.next_entry;
        if self.is_recycling {
            self.forget(number);
        }
        let chain = self.chain(value, position);
        let head = self.heads[chain];
        self.entries[usize::from(number)] =
            Entry { next: head, previous: 0, chain: chain as u16, position: position as u32 };
        // Of no consequence where the chain was empty: entry 0 is none's.
        self.entries[usize::from(head)].previous = number;
        self.heads[chain] = number;
        self.next_entry += 1;
        if usize::from(self.next_entry) > HISTORY {
            self.next_entry = 1;
            self.is_recycling = true;
        }
    }

    /// Takes an entry out of its chain.
    #[inline]
    fn forget(&mut self, number: u16) {
        let Entry { next, previous, chain, .. } = self.entries[usize::from(number)];
        if previous == 0 {
            self.heads[usize::from(chain)] = next;
        } else {
            self.entries[usize::from(previous)].next = next;
        }
        self.entries[usize::from(next)].previous = previous;
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

/// How many bytes from `from` on are those from `at` on; anything up to `best` counts as 0.
#[inline]
fn match_length(value: &[u8], from: usize, at: usize, best: usize) -> usize {
    if best > 0 && (best >= LONGEST_MATCH || value.get(from + best) != value.get(at + best)) {
        return 0;
    }
    let here = value.get(at..).unwrap_or_default();
    let here = &here[..here.len().min(LONGEST_MATCH)];
    let there = value.get(from..).unwrap_or_default();
    here.iter().zip(there).take_while(|(a, b)| a == b).count()
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
