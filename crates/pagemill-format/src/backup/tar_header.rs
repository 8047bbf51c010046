//! Headers of tar archives, as `pg_basebackup`, servers and tools of backups write them: ustar, pax, and what GNU tar makes of
//! short names.
//!
//! A member is a header of 512 bytes, then its contents, filled up to a multiple of 512. Numbers are octal digits, or, where
//! they do not fit, big-endian behind a byte 0x80. A header of zeros ends the archive. A name that begins with a slash, as those
//! that WAL-G writes do, is meant below the directory, too.
//!
//! Invariant: a name that parses stays below the directory that the archive stands for: no part of it is `..`.
//!
//! Sources: `src/include/pgtar.h`, `src/port/tar.c`, `_tarWriteHeader` in `src/backend/backup/basebackup.c` (14:
//! `src/backend/replication/basebackup.c`), PostgreSQL 14 to 18; POSIX, "pax", ustar Interchange Format.

use crate::error::{Error, Result};

const STRUCTURE: &str = "tar header";

/// What headers and contents are a multiple of, in bytes.
pub const TAR_BLOCK: usize = 512;

const NAME: Field = Field { at: 0, len: 100 };
const SIZE: Field = Field { at: 124, len: 12 };
const CHECKSUM: Field = Field { at: 148, len: 8 };
const TYPE: usize = 156;
const LINK_TARGET: Field = Field { at: 157, len: 100 };
const MAGIC: Field = Field { at: 257, len: 8 };
const PREFIX: Field = Field { at: 345, len: 155 };

const POSIX_MAGIC: &[u8] = b"ustar\x0000";
const GNU_MAGIC: &[u8] = b"ustar  \0";
/// Begins a number that is not in octal digits.
const BASE_256: u8 = 0x80;

/// Where a field lies in a header, in bytes.
#[derive(Clone, Copy)]
struct Field {
    at: usize,
    len: usize,
}

/// One member of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TarHeader {
    /// The parts of its name, from the top; none for the directory that the archive stands for.
    pub name: Vec<Vec<u8>>,
    /// What it is.
    pub kind: TarMember,
    /// Bytes of contents behind the header. None but files and extended headers have any.
    pub size: u64,
}

/// What a member is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TarMember {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, and where it leads.
    Link(Vec<u8>),
    /// An extended header, whose contents ([`PaxRecords`](super::PaxRecords)) say more of the next member.
    Extended,
}

impl TarHeader {
    /// Reads a header; `None` for the end of the archive.
    ///
    /// # Errors
    /// Corrupt: no header, a wrong checksum, a name that leads out of the archive. Unsupported: other members than files,
    /// directories and symbolic links.
    pub fn parse(bytes: &[u8; TAR_BLOCK]) -> Result<Option<Self>> {
        if bytes.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        check_sum(bytes)?;
        let magic = MAGIC.of(bytes);
        if magic != POSIX_MAGIC && magic != GNU_MAGIC {
            return Err(Error::corrupt(STRUCTURE, MAGIC.at, "it is not marked as ustar"));
        }
        let kind = match bytes[TYPE] {
            b'0' | 0 => TarMember::File,
            b'5' => TarMember::Directory,
            b'2' => TarMember::Link(LINK_TARGET.text(bytes).to_vec()),
            b'x' => TarMember::Extended,
            other => {
                let what = format!(
                    "a member of type {:?}: of backups, files, directories and symbolic links are read",
                    char::from(other)
                );
                return Err(Error::unsupported(STRUCTURE, what));
            }
        };
        let size = SIZE.number(bytes)?;
        if !matches!(kind, TarMember::File | TarMember::Extended) && size != 0 {
            let what = "a directory or symbolic link with contents";
            return Err(Error::corrupt(STRUCTURE, SIZE.at, what));
        }
        // GNU tar keeps other things where ustar has the rest of a long name.
        let prefix = if magic == POSIX_MAGIC { PREFIX.text(bytes) } else { &[] };
        let name = parts(prefix)?.chain(parts(NAME.text(bytes))?).map(<[u8]>::to_vec).collect();
        Ok(Some(Self { name, kind, size }))
    }

    /// The name, for messages.
    pub fn display_name(&self) -> String {
        String::from_utf8_lossy(&self.name.join(&b'/')).into_owned()
    }

    /// Bytes from the end of the header to the next one; `None` where no file is that long.
    pub fn padded_size(&self) -> Option<u64> {
        self.size.checked_next_multiple_of(TAR_BLOCK as u64)
    }
}

/// The sum of all bytes, those of the checksum itself taken as spaces.
fn check_sum(bytes: &[u8; TAR_BLOCK]) -> Result<()> {
    let own = CHECKSUM.at..CHECKSUM.at + CHECKSUM.len;
    let byte = |(at, &byte): (usize, &u8)| u64::from(if own.contains(&at) { b' ' } else { byte });
    let sum: u64 = bytes.iter().enumerate().map(byte).sum();
    match CHECKSUM.number(bytes)? {
        stored if stored == sum => Ok(()),
        stored => {
            let what = format!("its checksum is {stored}, but its bytes sum up to {sum}");
            Err(Error::corrupt(STRUCTURE, CHECKSUM.at, what))
        }
    }
}

/// The parts of a name, without those that say nothing.
pub(super) fn parts(name: &[u8]) -> Result<impl Iterator<Item = &[u8]>> {
    let parts = || name.split(|&byte| byte == b'/');
    if parts().any(|part| part == b"..") {
        let what = format!("the name {} leads out of the archive", String::from_utf8_lossy(name));
        return Err(Error::corrupt(STRUCTURE, NAME.at, what));
    }
    Ok(parts().filter(|part| !part.is_empty() && *part != b"."))
}

impl Field {
    fn of(self, bytes: &[u8; TAR_BLOCK]) -> &[u8] {
        &bytes[self.at..self.at + self.len]
    }

    /// Up to the first zero, or the whole field.
    fn text(self, bytes: &[u8; TAR_BLOCK]) -> &[u8] {
        self.of(bytes).split(|&byte| byte == 0).next().unwrap_or_default()
    }

    fn number(self, bytes: &[u8; TAR_BLOCK]) -> Result<u64> {
        let field = self.of(bytes);
        let wrong = |what| Error::corrupt(STRUCTURE, self.at, what);
        if field[0] == BASE_256 {
            let digits = &field[1..];
            let (high, low) = digits.split_at(digits.len().saturating_sub(8));
            if high.iter().any(|&byte| byte != 0) {
                return Err(wrong("a number that no file's size can be"));
            }
            return Ok(low.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)));
        }
        let is_blank = |byte: &u8| matches!(byte, b' ' | 0);
        let digits = field.iter().skip_while(|byte| **byte == b' ');
        let mut number = 0;
        let mut is_over = false;
        for byte in digits {
            match byte {
                // Twelve digits of three bits are no more than 36.
                b'0'..=b'7' if !is_over => number = number << 3 | u64::from(byte - b'0'),
                byte if is_blank(byte) => is_over = true,
                _ => return Err(wrong("not a number in octal digits")),
            }
        }
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn octal(bytes: &mut [u8; TAR_BLOCK], field: Field, number: u64) {
        let text = format!("{number:0width$o} ", width = field.len - 1);
        bytes[field.at..field.at + field.len].copy_from_slice(text.as_bytes());
    }

    fn seal(bytes: &mut [u8; TAR_BLOCK]) {
        bytes[CHECKSUM.at..CHECKSUM.at + CHECKSUM.len].fill(b' ');
        let sum = bytes.iter().map(|&byte| u64::from(byte)).sum();
        octal(bytes, CHECKSUM, sum);
    }

    fn header(name: &str, kind: u8, size: u64) -> [u8; TAR_BLOCK] {
        let mut bytes = [0; TAR_BLOCK];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        bytes[TYPE] = kind;
        bytes[MAGIC.at..MAGIC.at + MAGIC.len].copy_from_slice(POSIX_MAGIC);
        octal(&mut bytes, SIZE, size);
        seal(&mut bytes);
        bytes
    }

    fn parsed(bytes: &[u8; TAR_BLOCK]) -> TarHeader {
        TarHeader::parse(bytes).unwrap().unwrap()
    }

    #[test]
    fn a_member_has_a_name_a_kind_and_a_size() {
        let file = parsed(&header("./base/5/1259", b'0', 8192));
        assert_eq!(
            (file.display_name().as_str(), file.kind.clone()),
            ("base/5/1259", TarMember::File)
        );
        assert_eq!((file.size, file.padded_size()), (8192, Some(8192)));
        assert_eq!(parsed(&header("PG_VERSION", 0, 3)).padded_size(), Some(512));
        let directory = parsed(&header("pg_wal/", b'5', 0));
        assert_eq!(
            (directory.kind.clone(), directory.name),
            (TarMember::Directory, vec![b"pg_wal".to_vec()])
        );
        let mut link = header("pg_tblspc/16400", b'2', 0);
        link[LINK_TARGET.at..][..6].copy_from_slice(b"/space");
        seal(&mut link);
        assert_eq!(parsed(&link).kind, TarMember::Link(b"/space".to_vec()));
        assert_eq!(TarHeader::parse(&[0; TAR_BLOCK]).unwrap(), None);
    }

    #[test]
    fn a_name_with_a_slash_in_front_stays_below_and_extended_headers_have_contents() {
        assert_eq!(parsed(&header("/base/5", b'5', 0)).name, [b"base".to_vec(), b"5".to_vec()]);
        let extended = parsed(&header("./PaxHeaders/x", b'x', 28));
        assert_eq!((extended.kind, extended.size), (TarMember::Extended, 28));
    }

    #[test]
    fn long_names_and_large_sizes_are_read() {
        let mut bytes = header("1259", b'0', 0);
        bytes[PREFIX.at..][..6].copy_from_slice(b"base/5");
        bytes[SIZE.at..][..SIZE.len].copy_from_slice(&[0x80, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 1]);
        seal(&mut bytes);
        let found = parsed(&bytes);
        assert_eq!((found.display_name().as_str(), found.size), ("base/5/1259", (3 << 40) + 1));
    }

    #[test]
    fn what_leads_out_or_is_damaged_is_refused_with_its_byte() {
        for name in ["../escaped", "base/../../escaped", "/../passwd"] {
            let error = TarHeader::parse(&header(name, b'0', 1)).unwrap_err().to_string();
            assert!(error.contains("leads out of the archive"), "{error}");
        }
        let mut flipped = header("base", b'5', 0);
        flipped[0] ^= 1;
        let error = TarHeader::parse(&flipped).unwrap_err().to_string();
        assert!(error.contains("its checksum is") && error.contains("(byte 148)"), "{error}");
        let device = TarHeader::parse(&header("null", b'3', 0)).unwrap_err().to_string();
        assert!(device.contains("a member of type '3'"), "{device}");
        let filled = TarHeader::parse(&header("base", b'5', 512)).unwrap_err().to_string();
        assert!(filled.contains("with contents"), "{filled}");
        let mut hostile = header("huge", b'0', 0);
        hostile[SIZE.at..][..SIZE.len].fill(0xFF);
        hostile[SIZE.at] = BASE_256;
        seal(&mut hostile);
        let error = TarHeader::parse(&hostile).unwrap_err().to_string();
        assert!(error.contains("no file's size"), "{error}");
    }

    proptest! {
        #[test]
        fn any_block_is_a_member_the_end_or_an_error(
            noise in proptest::collection::vec((0..TAR_BLOCK, any::<u8>()), 0..12),
            name in "[./a-z0-9]{0,40}",
            kind in any::<u8>(),
            size in 0..1_u64 << 33,
            is_sealed in any::<bool>(),
        ) {
            let mut bytes = header(&name, kind, size);
            for (at, byte) in noise {
                bytes[at] = byte;
            }
            if is_sealed {
                seal(&mut bytes);
            }
            if let Ok(Some(found)) = TarHeader::parse(&bytes) {
                prop_assert!(found.name.iter().all(|part| !part.is_empty() && part != b".."));
                prop_assert!(matches!(found.kind, TarMember::File | TarMember::Extended) || found.size == 0);
                prop_assert!(found.padded_size().is_none_or(|padded| padded >= found.size));
            }
        }
    }
}
