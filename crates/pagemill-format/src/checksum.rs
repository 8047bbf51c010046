//! The checksum of a page, which also covers where the page belongs.
//!
//! 32 FNV-1a-like hashes run side by side over the page's 32-bit words, word n going to hash
//! n mod 32; that is what makes the sum fit for SIMD. Two rounds of zeroes mix the end in, the
//! hashes are folded by XOR, the block number is XORed in, and the result is reduced to
//! 1..=65535 so that a sum is never 0. The checksum field itself counts as zero.
//!
//! The block number is that in the fork, counted over all segments. An all-zero page has no
//! checksum, whatever the cluster's setting: ask for [`is_new`] first.
//!
//! The loop is plain code; `pulp` compiles it again for the instruction sets with wider
//! registers and picks one at run time, which keeps this crate without `unsafe`.
//!
//! Sources: `src/include/storage/checksum_impl.h`, `src/include/storage/bufpage.h`, PostgreSQL 14
//! to 18.

use crate::ids::{BLOCK_SIZE, BlockBytes, BlockNumber};

/// Hashes side by side.
const LANES: usize = 32;
/// Bytes of one word for every hash.
pub const ROW_BYTES: usize = LANES * 4;
const _: () = assert!(BLOCK_SIZE.is_multiple_of(ROW_BYTES));
const FNV_PRIME: u32 = 16_777_619;

/// Where `pd_checksum` is; it is the lower half of the page's third word.
const CHECKSUM_OFFSET: usize = 8;
const CHECKSUM_WORD: usize = CHECKSUM_OFFSET / 4;
/// Where `pd_upper` is, 0 only on a page never initialised.
const UPPER_OFFSET: usize = 14;

/// The first value of each hash.
const SEEDS: [u32; LANES] = [
    0x5B1F_36E9,
    0xB852_5960,
    0x02AB_50AA,
    0x1DE6_6D2A,
    0x79FF_467A,
    0x9BB9_F8A3,
    0x217E_7CD2,
    0x83E1_3D2C,
    0xF8D4_474F,
    0xE39E_B970,
    0x42C6_AE16,
    0x9932_16FA,
    0x7B09_3B5D,
    0x98DA_FF3C,
    0xF718_902A,
    0x0B1C_9CDB,
    0xE58F_764B,
    0x1876_36BC,
    0x5D7B_3BB1,
    0xE73D_E7DE,
    0x92BE_C979,
    0xCCA6_C0B2,
    0x304A_0979,
    0x85AA_43D4,
    0x7831_25BB,
    0x6CA8_EAA2,
    0xE407_EAC6,
    0x4B5C_FC3E,
    0x9FBF_8C76,
    0x15CA_20BE,
    0xF2CA_9FD3,
    0x959B_D756,
];

/// The checksum that `page` has to carry as block `block` of its fork.
pub fn page_checksum(page: &BlockBytes, block: BlockNumber) -> u16 {
    page_checksum_beside(page, block, |_| {})
}

/// The same, with something small done beside each [`ROW_BYTES`] of the page, which is told their number: the processor
/// waits for its multiplications half of the time. What is done is best a few instructions that can be inlined.
pub fn page_checksum_beside(page: &BlockBytes, block: BlockNumber, beside: impl Fn(usize)) -> u16 {
    let hash = pulp::Arch::new().dispatch(PageHash { page, beside }) ^ block.0;
    (hash % 65_535 + 1) as u16
}

/// The checksum that `page` carries (`pd_checksum`); 0 where it was written without.
pub fn stored_checksum(page: &BlockBytes) -> u16 {
    u16::from_le_bytes([page[CHECKSUM_OFFSET], page[CHECKSUM_OFFSET + 1]])
}

/// True for a page that was allocated and never initialised (`PageIsNew`), which carries no
/// checksum.
pub fn is_new(page: &BlockBytes) -> bool {
    page[UPPER_OFFSET] == 0 && page[UPPER_OFFSET + 1] == 0
}

/// A page that is to be hashed. Not a closure: the call of one is not sure to be inlined, and what is not is compiled to
/// the least instruction set, which takes twice as long.
struct PageHash<'a, F> {
    page: &'a BlockBytes,
    beside: F,
}

impl<F: Fn(usize)> pulp::WithSimd for PageHash<'_, F> {
    type Output = u32;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> u32 {
        page_hash(self.page, self.beside)
    }
}

/// Inlined into every version `pulp` makes of its caller, and there compiled to that
/// instruction set.
#[inline(always)]
fn page_hash(page: &BlockBytes, beside: impl Fn(usize)) -> u32 {
    let (rows, _) = page.as_chunks::<ROW_BYTES>();
    let mut hashes = SEEDS;
    if let Some((first, others)) = rows.split_first() {
        let mut words = words(first);
        words[CHECKSUM_WORD] &= 0xFFFF_0000;
        beside(0);
        mix(&mut hashes, &words);
        for (number, row) in (1..).zip(others) {
            beside(number);
            mix(&mut hashes, &self::words(row));
        }
    }
    mix(&mut hashes, &[0; LANES]);
    mix(&mut hashes, &[0; LANES]);
    hashes.iter().fold(0, |folded, hash| folded ^ hash)
}

#[inline(always)]
fn words(row: &[u8; ROW_BYTES]) -> [u32; LANES] {
    let (words, _) = row.as_chunks::<4>();
    let mut out = [0; LANES];
    for (out, word) in out.iter_mut().zip(words) {
        *out = u32::from_le_bytes(*word);
    }
    out
}

#[inline(always)]
fn mix(hashes: &mut [u32; LANES], words: &[u32; LANES]) {
    for (hash, word) in hashes.iter_mut().zip(words) {
        let mixed = *hash ^ word;
        *hash = mixed.wrapping_mul(FNV_PRIME) ^ (mixed >> 17);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Block 0 of `pg_am` in a PostgreSQL 18 cluster with checksums: header, line pointers,
    /// and the tuples from `upper` on; zeroes between.
    const PG_AM_START: &[u8] = include_bytes!("../fixtures/checksum/pg_am-18-start.bin");
    const PG_AM_END: &[u8] = include_bytes!("../fixtures/checksum/pg_am-18-end.bin");

    fn pg_am() -> BlockBytes {
        let mut page = [0; BLOCK_SIZE];
        page[..PG_AM_START.len()].copy_from_slice(PG_AM_START);
        page[BLOCK_SIZE - PG_AM_END.len()..].copy_from_slice(PG_AM_END);
        page
    }

    /// The same sum, word by word.
    fn slow_checksum(page: &BlockBytes, block: u32) -> u16 {
        let mut hashes = SEEDS;
        for n in 0..(BLOCK_SIZE / 4 + 2 * LANES) {
            let word = page.get(n * 4..n * 4 + 4).map_or([0; 4], |word| word.try_into().unwrap());
            let word = if n == 2 { [0, 0, word[2], word[3]] } else { word };
            let mixed = hashes[n % LANES] ^ u32::from_le_bytes(word);
            hashes[n % LANES] = mixed.wrapping_mul(FNV_PRIME) ^ (mixed >> 17);
        }
        ((hashes.into_iter().reduce(|a, b| a ^ b).unwrap() ^ block) % 65_535 + 1) as u16
    }

    #[test]
    fn a_servers_page_has_the_checksum_it_carries() {
        let page = pg_am();
        assert_ne!(stored_checksum(&page), 0);
        assert_eq!(page_checksum(&page, BlockNumber(0)), stored_checksum(&page));
        assert!(!is_new(&page));
    }

    #[test]
    fn a_page_in_the_wrong_place_has_another_checksum() {
        let page = pg_am();
        assert_ne!(page_checksum(&page, BlockNumber(1)), stored_checksum(&page));
        assert_ne!(page_checksum(&page, BlockNumber(131_072)), stored_checksum(&page));
    }

    #[test]
    fn a_page_of_zeroes_is_new() {
        assert!(is_new(&[0; BLOCK_SIZE]));
    }

    proptest! {
        #[test]
        fn the_fast_sum_is_the_slow_one_whatever_the_checksum_field(
            bytes in prop::collection::vec(any::<u8>(), 64),
            offset in 0..BLOCK_SIZE - 64,
            field in any::<[u8; 2]>(),
            block in any::<u32>(),
        ) {
            let mut page = [0x5A; BLOCK_SIZE];
            page[offset..offset + 64].copy_from_slice(&bytes);
            let before = page_checksum(&page, BlockNumber(block));
            page[CHECKSUM_OFFSET..CHECKSUM_OFFSET + 2].copy_from_slice(&field);
            let after = page_checksum(&page, BlockNumber(block));
            prop_assert!(before != 0);
            prop_assert_eq!(after, slow_checksum(&page, block));
            prop_assert_eq!(before == after, true);
        }
    }
}
