//! Extended headers of tar archives (pax): what Python and Go write in front of a member whose header cannot say all of it.
//!
//! A member of type `x` whose contents are lines `LENGTH key=value`, where the length counts the whole line with its own digits
//! and the end of the line. What they say holds for the next member: here its name, where it leads, and its size. Times with
//! fractions, which Python writes for every member, say nothing about contents.
//!
//! Invariant: what changes how contents are stored (sparse files of GNU tar) is refused, and never read as if it were not there.
//!
//! Source: POSIX, "pax", pax Extended Header.

use super::tar_header::{TarHeader, TarMember, parts};
use crate::error::{Error, Result};

const STRUCTURE: &str = "extended tar header";

/// What an extended header says of the member behind it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PaxRecords {
    name: Option<Vec<Vec<u8>>>,
    target: Option<Vec<u8>>,
    size: Option<u64>,
}

impl PaxRecords {
    /// Extended headers are at most so long, in bytes: they hold names.
    pub const MOST_BYTES: u64 = 1 << 20;

    /// Reads the contents of such a member.
    ///
    /// # Errors
    /// Corrupt: lines that are not of this form; a name that leads out of the archive. Unsupported: a sparse file.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut records = Self::default();
        let mut at = 0;
        while at < bytes.len() {
            let wrong = |what: &'static str| Error::corrupt(STRUCTURE, at, what);
            let (len, key, value) = record(&bytes[at..])
                .ok_or_else(|| wrong("no line of its length, key and value"))?;
            match key {
                b"path" => records.name = Some(parts(value)?.map(<[u8]>::to_vec).collect()),
                b"linkpath" => records.target = Some(value.to_vec()),
                b"size" => {
                    let size = number(value).ok_or_else(|| wrong("a size that is no number"))?;
                    records.size = Some(size);
                }
                key if key.starts_with(b"GNU.sparse.") => {
                    return Err(Error::unsupported(STRUCTURE, "a sparse file of GNU tar"));
                }
                _ => {}
            }
            at += len;
        }
        Ok(records)
    }

    /// The header behind it, as it is meant.
    pub fn applied_to(self, header: TarHeader) -> TarHeader {
        TarHeader {
            name: self.name.unwrap_or(header.name),
            kind: match (header.kind, self.target) {
                (TarMember::Link(_), Some(target)) => TarMember::Link(target),
                (kind, _) => kind,
            },
            size: self.size.unwrap_or(header.size),
        }
    }
}

/// The first line: how long it is, its key and its value.
fn record(bytes: &[u8]) -> Option<(usize, &[u8], &[u8])> {
    let space = bytes.iter().position(|&byte| byte == b' ')?;
    let len = usize::try_from(number(&bytes[..space])?).ok()?;
    let line = bytes.get(space + 1..len)?.strip_suffix(b"\n")?;
    let equals = line.iter().position(|&byte| byte == b'=')?;
    Some((len, &line[..equals], &line[equals + 1..]))
}

fn number(digits: &[u8]) -> Option<u64> {
    let are_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| are_digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A line, with its length in front of it.
    fn line(key: &str, value: &[u8]) -> Vec<u8> {
        let rest = [b" ", key.as_bytes(), b"=", value, b"\n"].concat();
        let fits = |len: &usize| len.to_string().len() + rest.len() == *len;
        let len = (rest.len()..).find(fits).unwrap();
        [len.to_string().as_bytes(), &rest].concat()
    }

    fn header(kind: TarMember) -> TarHeader {
        TarHeader { name: vec![b"short".to_vec()], kind, size: 0 }
    }

    #[test]
    fn name_target_and_size_are_those_of_the_extended_header() {
        let bytes = [
            line("mtime", b"1700000000.25"),
            line("path", b"./base/with = and \n"),
            line("linkpath", b"/space"),
            line("size", b"8589934592"),
        ];
        let records = PaxRecords::parse(&bytes.concat()).unwrap();
        let link = records.clone().applied_to(header(TarMember::Link(b"/".to_vec())));
        assert_eq!(link.kind, TarMember::Link(b"/space".to_vec()));
        let file = records.applied_to(header(TarMember::File));
        assert_eq!(file.name, [b"base".to_vec(), b"with = and \n".to_vec()]);
        assert_eq!((file.kind, file.size), (TarMember::File, 8 << 30));
        let plain = PaxRecords::parse(b"").unwrap();
        assert_eq!(plain.applied_to(header(TarMember::File)), header(TarMember::File));
    }

    #[test]
    fn lines_that_are_cut_names_that_lead_out_and_sparse_files_are_refused() {
        let whole = line("path", b"name");
        for bytes in [&whole[..whole.len() - 1], b"5 a=", b"0 a=b\n", b" 6 a=b\n", b"x"] {
            let error = PaxRecords::parse(bytes).unwrap_err().to_string();
            assert!(error.contains("no line of its length"), "{error}");
        }
        let error = PaxRecords::parse(&line("path", b"../x")).unwrap_err().to_string();
        assert!(error.contains("leads out"), "{error}");
        let error = PaxRecords::parse(&line("size", b"-1")).unwrap_err().to_string();
        assert!(error.contains("no number"), "{error}");
        let error = PaxRecords::parse(&line("GNU.sparse.major", b"1")).unwrap_err().to_string();
        assert!(error.contains("sparse"), "{error}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_records_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = PaxRecords::parse(&bytes);
        }

        #[test]
        fn what_was_written_is_read(name in "[a-z]{1,200}", size in any::<u64>()) {
            let bytes = [line("path", name.as_bytes()), line("size", size.to_string().as_bytes())];
            let found = PaxRecords::parse(&bytes.concat()).unwrap();
            let found = found.applied_to(header(TarMember::File));
            prop_assert_eq!((found.display_name(), found.size), (name, size));
        }
    }
}
