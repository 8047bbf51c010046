//! Finding the few bytes that have a meaning in rows: delimiters, quotes, ends of lines.
//!
//! Each 64 bytes become one word with a bit per byte that is marked; between two marks nothing is
//! looked at again. The words of a window are made at once, with 256-bit vectors where the
//! processor has them ([`pulp::x86::V3`], asked once) and eight bytes at a time elsewhere.
//!
//! Invariants: [`MarkScan::next`] gives every marked byte once, in order; bytes outside the slice
//! are never looked at.

/// Bytes that make one word of marks.
const BLOCK: usize = 64;
/// Words made at once: a window is small enough for the first cache, and long enough that calling
/// code for another processor costs nothing.
const WINDOW_BLOCKS: usize = 32;
/// Most bytes that can be marked.
const MOST_MARKED: usize = 5;

/// The bytes to be marked.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkedBytes {
    /// The last one is repeated to fill the array.
    bytes: [u8; MOST_MARKED],
    #[cfg(target_arch = "x86_64")]
    vectors: Option<pulp::x86::V3>,
}

impl MarkedBytes {
    /// Up to [`MOST_MARKED`] bytes; further ones are left out.
    pub(super) fn new(marked: &[u8]) -> Self {
        let last = marked.last().copied().unwrap_or(b'\n');
        let mut bytes = [last; MOST_MARKED];
        for (place, byte) in bytes.iter_mut().zip(marked) {
            *place = *byte;
        }
        Self {
            bytes,
            #[cfg(target_arch = "x86_64")]
            vectors: pulp::x86::V3::try_new(),
        }
    }

    fn mark(&self, blocks: &[[u8; BLOCK]], words: &mut [u64; WINDOW_BLOCKS]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(vectors) = self.vectors {
            vectors.vectorize(
                #[inline(always)]
                || {
                    for (word, block) in words.iter_mut().zip(blocks) {
                        *word = vector_word(vectors, self.bytes, block);
                    }
                },
            );
            return;
        }
        for (word, block) in words.iter_mut().zip(blocks) {
            *word = plain_word(self.bytes, block);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn vector_word(vectors: pulp::x86::V3, marked: [u8; MOST_MARKED], block: &[u8; BLOCK]) -> u64 {
    let [low, high]: [std::arch::x86_64::__m256i; 2] = pulp::cast(*block);
    let mut hits = [vectors.avx._mm256_setzero_si256(); 2];
    for byte in marked {
        let wanted = vectors.avx._mm256_set1_epi8(i8::from_ne_bytes([byte]));
        for (hit, half) in hits.iter_mut().zip([low, high]) {
            let equal = vectors.avx2._mm256_cmpeq_epi8(half, wanted);
            *hit = vectors.avx2._mm256_or_si256(*hit, equal);
        }
    }
    let [low, high] = hits.map(|hit| {
        let bits = vectors.avx2._mm256_movemask_epi8(hit);
        u64::from(u32::from_ne_bytes(bits.to_ne_bytes()))
    });
    low | (high << 32)
}

/// The lowest bit of each byte.
const LOW_BITS: u64 = 0x0101_0101_0101_0101;
/// Multiplied with lowest bits, it brings the bit of byte `k` to bit `56 + k`.
const GATHER: u64 = 0x0102_0408_1020_4080;

fn plain_word(marked: [u8; MOST_MARKED], block: &[u8; BLOCK]) -> u64 {
    let mut word = 0;
    for (place, eight) in block.as_chunks::<8>().0.iter().enumerate() {
        let eight = u64::from_le_bytes(*eight);
        let found = marked.iter().fold(0, |found, &byte| found | zero_bytes(eight, byte));
        word |= ((found.wrapping_mul(GATHER)) >> 56) << (8 * place);
    }
    word
}

/// 1 in each byte that is the one looked for.
fn zero_bytes(eight: u64, byte: u8) -> u64 {
    let rest = eight ^ (LOW_BITS * u64::from(byte));
    let high = LOW_BITS * 0x7f;
    // The sum carries into the highest bit unless the lower ones are all zero; nothing leaves a byte.
    (!(((rest & high) + high) | rest | high)) >> 7
}

/// The marked bytes of a text, one after the other.
#[derive(Debug)]
pub(super) struct MarkScan<'a> {
    marked: MarkedBytes,
    bytes: &'a [u8],
    words: [u64; WINDOW_BLOCKS],
    /// Where the current word's block starts.
    start: usize,
    /// The words behind the current one that are made already: from this index to `made`.
    next: usize,
    made: usize,
    /// Marks of the current word that were not given yet.
    word: u64,
    /// Where the next window starts.
    window: usize,
}

impl<'a> MarkScan<'a> {
    /// All marks from the beginning of the text.
    pub(super) fn new(marked: MarkedBytes, bytes: &'a [u8]) -> Self {
        let words = [0; WINDOW_BLOCKS];
        Self { marked, bytes, words, start: 0, next: 0, made: 0, word: 0, window: 0 }
    }

    /// Where the next marked byte is.
    #[inline]
    pub(super) fn next(&mut self) -> Option<usize> {
        while self.word == 0 {
            if self.next >= self.made && !self.make_window() {
                return None;
            }
            self.word = self.words.get(self.next).copied().unwrap_or(0);
            self.start = self.window - (self.made - self.next) * BLOCK;
            self.next += 1;
        }
        let place = self.start + self.word.trailing_zeros() as usize;
        self.word &= self.word - 1;
        Some(place)
    }

    /// Makes the words of the next window; false at the end of the text.
    #[inline(never)]
    fn make_window(&mut self) -> bool {
        let rest = self.bytes.get(self.window..).unwrap_or_default();
        let (blocks, tail) = rest.as_chunks::<BLOCK>();
        let blocks = blocks.get(..WINDOW_BLOCKS).unwrap_or(blocks);
        (self.next, self.made) = (0, blocks.len());
        if blocks.is_empty() {
            return self.make_tail(tail);
        }
        self.marked.mark(blocks, &mut self.words);
        self.window += blocks.len() * BLOCK;
        true
    }

    /// Makes the word of the last bytes, fewer than a block.
    fn make_tail(&mut self, tail: &[u8]) -> bool {
        let mut block = [0; BLOCK];
        for (place, byte) in block.iter_mut().zip(tail) {
            *place = *byte;
        }
        self.marked.mark(&[block], &mut self.words);
        if let Some(word) = self.words.first_mut() {
            // What stands in for missing bytes may be marked too.
            *word &= (1 << tail.len()) - 1;
        }
        self.made = usize::from(!tail.is_empty());
        self.window += self.made * BLOCK;
        !tail.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn marks(marked: MarkedBytes, bytes: &[u8]) -> Vec<usize> {
        let mut scan = MarkScan::new(marked, bytes);
        let found: Vec<_> = std::iter::from_fn(|| scan.next()).collect();
        assert_eq!(scan.next(), None, "an end stays an end");
        found
    }

    #[test]
    fn one_mark_is_found_at_every_place_of_every_length() {
        let marked = MarkedBytes::new(b",");
        for length in (0..200).chain(4090..4103) {
            let mut bytes = vec![b'a'; length];
            assert!(marks(marked, &bytes).is_empty());
            for place in [0, 1, 63, 64, 65, 127, 128, 2047, 2048, 4095, 4096, length.max(1) - 1] {
                if place < length {
                    bytes[place] = b',';
                    assert_eq!(marks(marked, &bytes), [place]);
                    bytes[place] = b'a';
                }
            }
        }
    }

    #[test]
    fn the_plain_way_gives_the_same_word() {
        let marked = MarkedBytes::new(b"\x00\x80\xff,\n");
        for seed in 0..256_usize {
            let block: [u8; BLOCK] = std::array::from_fn(|i| (seed * 31 + i * 57) as u8);
            let mut words = [0; WINDOW_BLOCKS];
            marked.mark(&[block], &mut words);
            assert_eq!(plain_word(marked.bytes, &block), words[0]);
        }
    }

    proptest! {
        #[test]
        fn marks_are_those_found_byte_by_byte(
            bytes in prop::collection::vec(prop::sample::select(b"abc,\n\"\\\0\xff".to_vec()), 0..5000),
            marked in prop::collection::vec(prop::sample::select(b",\n\"\\\0\xff".to_vec()), 1..6),
        ) {
            let expected: Vec<_> =
                (0..bytes.len()).filter(|&place| marked.contains(&bytes[place])).collect();
            prop_assert_eq!(marks(MarkedBytes::new(&marked), &bytes), expected);
        }
    }
}
