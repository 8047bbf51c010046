//! Random numbers that a seed repeats, for bytes that do not compress and orders that nobody can guess.
//!
//! SplitMix64, after Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.

/// A sequence of random numbers.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Fills bytes.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let random = self.next().to_le_bytes();
            let (source, _) = random.split_at(chunk.len());
            chunk.copy_from_slice(source);
        }
    }

    /// The numbers below `count`, shuffled.
    pub(crate) fn permutation(&mut self, count: u32) -> Vec<u32> {
        let mut numbers: Vec<u32> = (0..count).collect();
        for last in (1..numbers.len()).rev() {
            let other = self.next() % (last as u64 + 1);
            numbers.swap(last, usize::try_from(other).unwrap_or(last));
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_has_every_number_once_and_a_seed_repeats_it() {
        let shuffled = Random::new(7).permutation(1000);
        assert_eq!(shuffled, Random::new(7).permutation(1000));
        assert_ne!(shuffled, Random::new(8).permutation(1000));
        let mut sorted = shuffled;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn any_length_is_filled() {
        let mut bytes = [0; 13];
        Random::new(1).fill(&mut bytes);
        assert!(bytes.iter().filter(|byte| **byte == 0).count() < 3, "{bytes:?}");
    }
}
