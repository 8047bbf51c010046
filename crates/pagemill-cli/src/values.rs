//! The texts of flags, taken apart: sizes, directories and databases that may be empty in the environment.
//!
//! Whatever is typed is a value or an error that says what would be one.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use pagemill_io::local_path;
use pagemill_stream::buffer_pool::MIN_SHARED_BUFFERS;

use crate::sizes::blocks;

/// What the server takes for `shared_buffers` at most: `INT_MAX / 2` blocks.
const MAX_SHARED_BUFFERS: NonZeroUsize = NonZeroUsize::new(i32::MAX as usize / 2).unwrap(); // infallible: it is not 0

/// The pages of a size as the server's `shared_buffers` is spelled: a number of blocks, or of B, kB,
/// MB, GB or TB, fractions and blanks allowed; rounded to the nearest block, as the server does.
pub fn shared_buffers(text: &str) -> Result<NonZeroUsize, String> {
    let pages = blocks(text).ok_or(
        "a size is a number of 8 kB blocks, or a number and a unit: B, kB, MB, GB, TB, as in 128MB",
    )?;
    match NonZeroUsize::new(pages).filter(|pages| *pages >= MIN_SHARED_BUFFERS) {
        Some(pages) if pages <= MAX_SHARED_BUFFERS => Ok(pages),
        Some(_) => Err(format!("{MAX_SHARED_BUFFERS} blocks of 8 kB (8 TB) are the most")),
        None => Err(format!("{MIN_SHARED_BUFFERS} blocks (128kB) are the least")),
    }
}

/// The bytes of an amount of memory: a number and a unit, spelled as for `shared_buffers` or as MiB.
pub fn memory_size(text: &str) -> Result<usize, String> {
    const LEAST: usize = 1 << 20;
    let spelled = text.strip_suffix("iB").map(|number| format!("{number}B"));
    let has_unit = text.ends_with('B');
    let pages = blocks(spelled.as_deref().unwrap_or(text)).filter(|_| has_unit);
    let pages = pages.ok_or("a size is a number and a unit: kB, MB, GB, TB, as in 256MB")?;
    let bytes = pages.saturating_mul(pagemill_format::BLOCK_SIZE);
    if bytes < LEAST { Err("1MB is the least".into()) } else { Ok(bytes) }
}

/// A path that may be empty, as one out of the environment is that stands for none, or a URL; one of this machine's files is
/// its path.
pub fn maybe_empty() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(|given| local_path(given.into()))
}

/// A database; an empty name, as out of the environment, is the usual one.
pub fn database_name(name: &str) -> Result<String, Infallible> {
    Ok(if name.is_empty() { "postgres" } else { name }.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_amount_of_memory_has_a_unit() {
        assert_eq!(memory_size("1MB"), Ok(1 << 20));
        assert_eq!(memory_size("256MiB"), Ok(256 << 20));
        assert_eq!(memory_size("2GB"), Ok(2 << 30));
        for wrong in ["", "B", "iB", "100", "1000kB", "-1GB", "1XB"] {
            assert!(memory_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shared_buffers_are_blocks_or_have_a_unit_as_the_server_has_them() {
        let known = [
            ("16", 16),
            ("128kB", 16),
            ("132kB", 16),
            ("148kB", 18),
            ("128MB", 16_384),
            (" 1.5 GB ", 196_608),
            ("1TB", 1 << 27),
            ("1048576B", 128),
            ("1073741823", 1_073_741_823),
        ];
        for (text, blocks) in known {
            assert_eq!(shared_buffers(text).map(NonZeroUsize::get), Ok(blocks), "{text}");
        }
        let refused = [
            "",
            "15",
            "0",
            "120kB",
            "-16",
            "+16",
            "1e9",
            "128mb",
            "128 M",
            "MB",
            "1.2.3MB",
            "16x",
            "9TB",
            "1073741824",
            "99999999999999999999999999TB",
            "inf",
            "NaN",
        ];
        for text in refused {
            assert!(shared_buffers(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_size_or_refused(text in "[a-zBGM,. 0-9é]{0,12}") {
            let _ = shared_buffers(&text);
            let _ = memory_size(&text);
        }
    }
}
