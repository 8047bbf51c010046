//! Values of variable length: the length word in its four shapes, and TOAST pointers.
//!
//! ```text
//! first byte (little-endian)   meaning                        header
//! xxxxxx00                     plain, 30-bit length           4 bytes
//! xxxxxx10                     compressed in line             4 bytes, then size and method
//! xxxxxxx1                     short, 7-bit length            1 byte
//! 00000001                     TOAST pointer, tag follows     2 bytes
//! ```
//!
//! Lengths count their own header. Source: `src/include/varatt.h` (16 on; before it
//! `src/include/postgres.h`), PostgreSQL 14 to 18.

use crate::error::{Error, Result};
use crate::ids::Oid;
use crate::{lz4, pglz};

/// Bytes of a plain length word.
pub const VARLENA_HEADER_BYTES: usize = 4;
/// The largest a value can be, in bytes (`MaxAllocSize`).
pub const MAX_VALUE_BYTES: usize = 0x3FFF_FFFF;
/// Payload bytes of a TOAST chunk of full size (`TOAST_MAX_CHUNK_SIZE`, 8 kB blocks).
pub const TOAST_CHUNK_BYTES: usize = 1996;

const VARLENA: &str = "varlena";
const VARTAG_ONDISK: u8 = 18;
const TOAST_POINTER_BYTES: usize = 18;
const SIZE_BITS: u32 = 30;
const SIZE_MASK: u32 = (1 << SIZE_BITS) - 1;

/// How a value was compressed (the top two bits of its size word).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// PostgreSQL's own.
    Pglz,
    /// LZ4 block format.
    Lz4,
}

impl Compression {
    /// What the top two bits of a size word say for it.
    fn bits(self) -> u32 {
        match self {
            Self::Pglz => 0,
            Self::Lz4 => 1,
        }
    }

    /// The size word of a compressed value: the payload's bytes once decompressed, and the method.
    pub fn size_word(self, raw_bytes: usize) -> [u8; 4] {
        (raw_bytes as u32 & SIZE_MASK | self.bits() << SIZE_BITS).to_le_bytes()
    }
}

/// A pointer to a value kept in a TOAST table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToastPointer {
    /// Bytes of the value once decompressed, its 4-byte header included.
    pub raw_size: u32,
    /// Bytes stored in the TOAST table.
    pub stored_size: u32,
    /// Set when what is stored is compressed.
    pub compression: Option<Compression>,
    /// `chunk_id` of the value's chunks.
    pub value_id: Oid,
    /// The TOAST table.
    pub toast_relation: Oid,
}

/// A value of variable length as it lies in a tuple, without its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Varlena<'a> {
    /// The payload itself.
    Plain(&'a [u8]),
    /// Compressed in line.
    Compressed {
        /// Payload bytes once decompressed.
        raw_bytes: usize,
        /// The method.
        method: Compression,
        /// What to decompress.
        data: &'a [u8],
    },
    /// Kept elsewhere.
    External(ToastPointer),
}

/// Total bytes of the varlena at the start of `bytes`, its header included.
///
/// # Errors
/// When `bytes` end before the length they announce.
#[inline]
pub fn total_len(bytes: &[u8]) -> Result<usize> {
    let Some(&first) = bytes.first() else { return Err(short(1, 0)) };
    let len = if first == 1 {
        TOAST_POINTER_BYTES
    } else if first & 1 == 1 {
        usize::from(first >> 1)
    } else {
        let Some(word) = bytes.first_chunk::<4>() else { return Err(short(4, bytes.len())) };
        let len = (u32::from_le_bytes(*word) >> 2) as usize;
        if len < VARLENA_HEADER_BYTES {
            return Err(Error::corrupt(VARLENA, 0, format!("length word says {len} bytes")));
        }
        len
    };
    if len > bytes.len() { Err(short(len, bytes.len())) } else { Ok(len) }
}

#[cold]
fn short(wanted: usize, left: usize) -> Error {
    Error::corrupt(VARLENA, 0, format!("{wanted} bytes announced, {left} left"))
}

impl<'a> Varlena<'a> {
    /// Reads the varlena that `bytes` are, header included.
    ///
    /// # Errors
    /// When the header does not fit the bytes, or is of an unknown kind.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let len = total_len(bytes)?;
        let value = &bytes[..len];
        match value[0] {
            1 => Ok(Self::External(ToastPointer::parse(value)?)),
            first if first & 1 == 1 => Ok(Self::Plain(&value[1..])),
            first if first & 3 == 0 => Ok(Self::Plain(&value[VARLENA_HEADER_BYTES..])),
            _ => Self::parse_compressed(value),
        }
    }

    fn parse_compressed(value: &'a [u8]) -> Result<Self> {
        let Some((header, data)) = value.split_at_checked(8) else {
            return Err(short(8, value.len()));
        };
        let info = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
        let method = compression(info >> SIZE_BITS, 4)?;
        Ok(Self::Compressed { raw_bytes: (info & SIZE_MASK) as usize, method, data })
    }
}

impl ToastPointer {
    /// Bytes of a pointer in a tuple, its header included.
    pub const BYTES: usize = TOAST_POINTER_BYTES;

    /// The pointer as it lies in a tuple.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let method = self.compression.map_or(0, Compression::bits) << SIZE_BITS;
        let words =
            [self.raw_size, self.stored_size | method, self.value_id.0, self.toast_relation.0];
        let mut out = [1, VARTAG_ONDISK, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for (to, word) in out[2..].as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *to = word.to_le_bytes();
        }
        out
    }

    fn parse(value: &[u8]) -> Result<Self> {
        if value[1] != VARTAG_ONDISK {
            let what = format!("TOAST pointer of kind {}, on disk it must be 18", value[1]);
            return Err(Error::corrupt(VARLENA, 1, what));
        }
        let word = |at: usize| {
            u32::from_le_bytes([value[at], value[at + 1], value[at + 2], value[at + 3]])
        };
        let (raw_size, info) = (word(2), word(6));
        let stored_size = info & SIZE_MASK;
        if raw_size as usize > MAX_VALUE_BYTES || (raw_size as usize) < VARLENA_HEADER_BYTES {
            let what = format!("TOAST pointer to a value of {raw_size} bytes");
            return Err(Error::corrupt(VARLENA, 2, what));
        }
        let payload = raw_size - VARLENA_HEADER_BYTES as u32;
        if stored_size > payload {
            let what = format!("TOAST pointer with {stored_size} bytes stored for {payload}");
            return Err(Error::corrupt(VARLENA, 6, what));
        }
        let compressed = stored_size < payload;
        let compression = compressed.then(|| compression(info >> SIZE_BITS, 6)).transpose()?;
        let (value_id, toast_relation) = (Oid(word(10)), Oid(word(14)));
        Ok(Self { raw_size, stored_size, compression, value_id, toast_relation })
    }

    /// Chunks that the stored bytes take.
    pub fn chunk_count(&self) -> u32 {
        self.stored_size.div_ceil(TOAST_CHUNK_BYTES as u32)
    }
}

fn compression(bits: u32, offset: usize) -> Result<Compression> {
    match bits {
        0 => Ok(Compression::Pglz),
        1 => Ok(Compression::Lz4),
        other => {
            let what = format!("compression method {other}, known are 0 (pglz) and 1 (lz4)");
            Err(Error::corrupt(VARLENA, offset, what))
        }
    }
}

/// Appends what `data` decompress to, which must be `raw_bytes` bytes.
///
/// # Errors
/// When the data do not decompress to just that many bytes.
pub fn decompress(
    method: Compression,
    data: &[u8],
    raw_bytes: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    match method {
        Compression::Pglz => pglz::decompress(data, raw_bytes, out),
        Compression::Lz4 => lz4::decompress(data, raw_bytes, out),
    }
}

/// Decompresses what a TOAST table held for a compressed value: 4 bytes of size and method (as
/// behind the length word of a value compressed in line), then the data.
///
/// # Errors
/// When the size word disagrees with the pointer, or the data are damaged.
pub fn decompress_stored(pointer: &ToastPointer, stored: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let Some((word, data)) = stored.split_first_chunk::<4>() else {
        return Err(short(4, stored.len()));
    };
    let info = u32::from_le_bytes(*word);
    let method = compression(info >> SIZE_BITS, 0)?;
    let raw_bytes = pointer.raw_size as usize - VARLENA_HEADER_BYTES;
    if (info & SIZE_MASK) as usize != raw_bytes {
        let what = format!(
            "stored value says {} bytes once decompressed, its pointer {raw_bytes}",
            info & SIZE_MASK
        );
        return Err(Error::corrupt(VARLENA, 0, what));
    }
    decompress(method, data, raw_bytes, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_shape_of_header_is_told_apart() {
        assert_eq!(Varlena::parse(&[0x07, b'a', b'b']).unwrap(), Varlena::Plain(b"ab"));
        assert_eq!(Varlena::parse(&[24, 0, 0, 0, b'a', b'b']).unwrap(), Varlena::Plain(b"ab"));
        let compressed = [0x26, 0, 0, 0, 5, 0, 0, 0x40, b'x'];
        assert_eq!(
            Varlena::parse(&compressed).unwrap(),
            Varlena::Compressed { raw_bytes: 5, method: Compression::Lz4, data: b"x" }
        );
    }

    #[test]
    fn a_toast_pointer_is_compressed_when_less_is_stored_than_its_payload() {
        let mut p = vec![1, 18];
        p.extend(104u32.to_le_bytes());
        p.extend(100u32.to_le_bytes());
        p.extend(7u32.to_le_bytes());
        p.extend(8u32.to_le_bytes());
        let Varlena::External(pointer) = Varlena::parse(&p).unwrap() else { panic!() };
        assert_eq!(pointer.compression, None);
        assert_eq!((pointer.value_id, pointer.toast_relation), (Oid(7), Oid(8)));
        p[6] = 99;
        let Varlena::External(pointer) = Varlena::parse(&p).unwrap() else { panic!() };
        assert_eq!(pointer.compression, Some(Compression::Pglz));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(Varlena::Compressed { raw_bytes, method, data }) = Varlena::parse(&bytes) {
                let _ = decompress(method, data, raw_bytes, &mut Vec::new());
            }
        }
    }
}
