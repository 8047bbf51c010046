//! The ways of compression that archivers of WAL and `pg_basebackup` use: told by what a file begins with, and undone.
//!
//! Invariant: a name says nothing, since names are not always changed.

use std::io::{self, BufRead, Read};

/// A way of compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// gzip (RFC 1952), one or more members.
    Gzip,
    /// Zstandard (RFC 8878).
    Zstd,
    /// LZ4 frames.
    Lz4,
    /// bzip2.
    Bzip2,
    /// zlib (RFC 1950), which only whoever stored a file so knows: it begins with what anything may begin with.
    Zlib,
}

/// What files of each way begin with.
const MAGIC: [(&[u8], Compression); 4] = [
    (&[0x1F, 0x8B, 0x08], Compression::Gzip),
    (&[0x28, 0xB5, 0x2F, 0xFD], Compression::Zstd),
    (&[0x04, 0x22, 0x4D, 0x18], Compression::Lz4),
    (b"BZh", Compression::Bzip2),
];

impl Compression {
    /// How a file is compressed that begins so.
    pub fn of(head: &[u8]) -> Option<Self> {
        let found = MAGIC.iter().find(|(magic, _)| head.starts_with(magic));
        found.map(|(_, compression)| *compression)
    }

    /// What was compressed, as it comes out.
    ///
    /// # Errors
    /// When a decoder cannot be made.
    pub fn decoder<'a>(self, packed: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
        Ok(match self {
            Self::Zlib => Box::new(flate2::bufread::ZlibDecoder::new(packed)),
            Self::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(packed)),
            Self::Zstd => Box::new(zstd::Decoder::with_buffer(packed)?),
            Self::Lz4 => Box::new(lz4_flex::frame::FrameDecoder::new(packed)),
            Self::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(packed)),
        })
    }

    /// How many bytes a file says will come out, told by its first bytes, of which 32 are enough; not all files say it.
    pub fn unpacked_size(self, head: &[u8]) -> Option<u64> {
        /// Of the LZ4 frame's flags: the size of the contents follows the descriptor.
        const HAS_SIZE: u8 = 0x08;
        match self {
            Self::Zstd => zstd::zstd_safe::get_frame_content_size(head).ok().flatten(),
            Self::Lz4 if head.get(4)? & HAS_SIZE != 0 => {
                head.get(6..14)?.try_into().ok().map(u64::from_le_bytes)
            }
            // gzip tells it at the end, and modulo 4 GiB.
            Self::Lz4 | Self::Gzip | Self::Bzip2 | Self::Zlib => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_was_compressed_comes_out_and_its_size_is_told_where_it_is_written_down() {
        let contents = b"wal ".repeat(1000);
        let zstd = {
            let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
            encoder.set_pledged_src_size(Some(4000)).unwrap();
            encoder.include_contentsize(true).unwrap();
            encoder.write_all(&contents).unwrap();
            encoder.finish().unwrap()
        };
        let lz4 = {
            let info = lz4_flex::frame::FrameInfo::new().content_size(Some(4000));
            let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
            encoder.write_all(&contents).unwrap();
            encoder.finish().unwrap()
        };
        let gzip = {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(&contents).unwrap();
            encoder.finish().unwrap()
        };
        for (packed, is, size) in [
            (zstd, Compression::Zstd, Some(4000)),
            (lz4, Compression::Lz4, Some(4000)),
            (gzip, Compression::Gzip, None),
        ] {
            assert_eq!(Compression::of(&packed), Some(is));
            assert_eq!(is.unpacked_size(&packed[..packed.len().min(32)]), size);
            let mut bytes = Vec::new();
            is.decoder(packed.as_slice()).unwrap().read_to_end(&mut bytes).unwrap();
            assert_eq!(bytes, contents);
        }
        assert_eq!(Compression::of(b"PG"), None);
        assert_eq!(Compression::Lz4.unpacked_size(&[4]), None);
    }
}
