//! Values and WAL images that PostgreSQL compresses with LZ4: a raw LZ4 block,
//! its decompressed size known from the value's header.
//!
//! The size is believed only as far as the input could fill it, so a hostile header takes no
//! memory; the output grows by exactly that size or not at all.
//!
//! Sources: `src/backend/access/common/toast_compression.c`, PostgreSQL 14 to 18, and the LZ4
//! block format, <https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md>.

use crate::error::{Error, Result};

const STRUCTURE: &str = "lz4";
/// A byte that extends a length adds 255 at most, and nothing in the format does better.
const MAX_EXPANSION: usize = 255;

/// Appends the `raw_size` bytes that `data` stands for to `out`; leaves `out` as it was on error.
///
/// # Errors
/// Corrupt: the input is no LZ4 block of exactly `raw_size` bytes.
pub fn decompress(data: &[u8], raw_size: usize, out: &mut Vec<u8>) -> Result<()> {
    if raw_size > data.len().saturating_mul(MAX_EXPANSION) {
        let what = format!("{} bytes cannot become {raw_size}", data.len());
        return Err(Error::corrupt(STRUCTURE, 0, what));
    }
    let start = out.len();
    out.resize(start.saturating_add(raw_size), 0);
    let value = out.get_mut(start..).unwrap_or_default();
    let what = match lz4_flex::block::decompress_into(data, value) {
        Ok(written) if written == raw_size => return Ok(()),
        Ok(written) => format!("{written} bytes came out where {raw_size} belong"),
        Err(error) => error.to_string(),
    };
    out.truncate(start);
    Err(Error::corrupt(STRUCTURE, 0, what))
}

/// Appends the value as an LZ4 block to `out`, or leaves `out` as it was and says false when that would
/// not be shorter.
pub fn compress(value: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let room = lz4_flex::block::get_maximum_output_size(value.len());
    out.resize(start.saturating_add(room), 0);
    let block = out.get_mut(start..).unwrap_or_default();
    let written = lz4_flex::block::compress_into(value, block).unwrap_or(value.len());
    let pays = written < value.len();
    out.truncate(if pays { start + written } else { start });
    pays
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::noise::noise;

    fn refusal(data: &[u8], raw_size: usize) -> String {
        let mut out = vec![7];
        let error = decompress(data, raw_size, &mut out).unwrap_err();
        assert_eq!(out, [7], "an error leaves the output as it was");
        error.to_string()
    }

    /// What PostgreSQL 15 stored for the text in the test (after the length words).
    const SERVER_VALUE: &[u8] = include_bytes!("../fixtures/compressed/lz4.bin");

    #[test]
    fn a_servers_value_comes_out_as_it_went_in() {
        let expected: String = (0..200).map(|n| format!("row {n} of two hundred, ")).collect();
        let mut out = b"before".to_vec();
        decompress(SERVER_VALUE, expected.len(), &mut out).unwrap();
        assert_eq!(out, format!("before{expected}").as_bytes());
    }

    #[test]
    fn a_value_of_another_size_is_corrupt() {
        let block = lz4_flex::block::compress(&[b'a'; 100]);
        assert!(refusal(&block, 101).contains("100 bytes came out where 101 belong"));
        assert!(refusal(&block, 99).starts_with("corrupt lz4: "));
        assert!(refusal(&block[..3], 100).starts_with("corrupt lz4: "));
    }

    #[test]
    fn a_huge_size_claimed_by_few_bytes_takes_no_memory() {
        assert!(refusal(&[0; 20], 1 << 30).contains("20 bytes cannot become 1073741824"));
    }

    #[test]
    fn the_best_compression_there_is_passes_the_size_check() {
        let value = vec![0; 1 << 20];
        let mut out = Vec::new();
        decompress(&lz4_flex::block::compress(&value), value.len(), &mut out).unwrap();
        assert_eq!(out, value);
    }

    #[test]
    fn noise_is_not_compressed_and_leaves_the_output_alone() {
        let noise = noise(500);
        let mut out = vec![7];
        assert!(!compress(&noise, &mut out));
        assert_eq!(out, [7]);
        assert!(compress(&[0; 500], &mut out));
        let mut back = Vec::new();
        decompress(&out[1..], 500, &mut back).unwrap();
        assert_eq!(back, [0; 500]);
    }

    proptest! {
        #[test]
        fn what_is_compressed_comes_back(value in prop::collection::vec(0_u8..4, 0..2000)) {
            let mut out = Vec::new();
            decompress(&lz4_flex::block::compress(&value), value.len(), &mut out).unwrap();
            prop_assert_eq!(out, value);
        }

        #[test]
        fn arbitrary_bytes_never_panic(
            data in prop::collection::vec(any::<u8>(), 0..200), raw_size in 0_usize..2000,
        ) {
            let _ = decompress(&data, raw_size, &mut Vec::new());
        }
    }
}
