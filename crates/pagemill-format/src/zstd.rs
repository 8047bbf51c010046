//! Zstandard, as WAL images are compressed with it: one frame for each image.
//!
//! The size is known beforehand, and never more than that is written, so that a hostile frame takes no
//! memory.
//!
//! Sources: `XLogCompressBackupBlock` in `src/backend/access/transam/xloginsert.c`, PostgreSQL 15 to 18, and
//! RFC 8878.

use crate::error::{Error, Result};

const STRUCTURE: &str = "zstd";
/// ZSTD_CLEVEL_DEFAULT, which the server uses.
const LEVEL: i32 = 3;

/// Appends the `raw_size` bytes that `data` stands for to `out`; leaves `out` as it was on error.
///
/// # Errors
/// Corrupt: the input is no frame of exactly `raw_size` bytes.
pub fn decompress(data: &[u8], raw_size: usize, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    out.resize(start.saturating_add(raw_size), 0);
    let value = out.get_mut(start..).unwrap_or_default();
    let what = match zstd::bulk::decompress_to_buffer(data, value) {
        Ok(written) if written == raw_size => return Ok(()),
        Ok(written) => format!("{written} bytes came out where {raw_size} belong"),
        Err(error) => error.to_string(),
    };
    out.truncate(start);
    Err(Error::corrupt(STRUCTURE, 0, what))
}

/// Appends the value as one frame to `out`, or leaves `out` as it was and says false when that would not be
/// shorter.
pub fn compress(value: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    out.resize(start.saturating_add(value.len()), 0);
    let frame = out.get_mut(start..).unwrap_or_default();
    // A frame that does not fit is an error of its own.
    let written = zstd::bulk::compress_to_buffer(value, frame, LEVEL).unwrap_or(value.len());
    let pays = written < value.len();
    out.truncate(if pays { start + written } else { start });
    pays
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_frame_of_another_size_is_corrupt_and_leaves_the_output_alone() {
        let mut frame = Vec::new();
        assert!(compress(&[7; 100], &mut frame));
        for (data, raw_size) in [(&frame[..], 99), (&frame[..], 101), (&frame[..5], 100), (&[], 9)]
        {
            let mut out = vec![1];
            assert!(decompress(data, raw_size, &mut out).is_err());
            assert_eq!(out, [1]);
        }
    }

    #[test]
    fn noise_is_not_compressed() {
        let mut out = vec![1];
        assert!(!compress(&crate::noise::noise(5000), &mut out));
        assert_eq!(out, [1]);
    }

    proptest! {
        #[test]
        fn what_is_compressed_comes_back(value in prop::collection::vec(0_u8..4, 100..2000)) {
            let (mut frame, mut out) = (Vec::new(), Vec::new());
            prop_assume!(compress(&value, &mut frame));
            decompress(&frame, value.len(), &mut out).unwrap();
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
