//! Which segment files a directory holds, listed once for all the relations in it.
//!
//! Why a listing: a lost segment shows only by a later one that is still there, and probing names
//! one by one finds no later segment behind a gap of unknown width. One listing answers for every
//! relation of a database at once, and also says at no cost that a fork does not exist.
//!
//! Names (`src/backend/storage/smgr/md.c` and `src/common/relpath.c`, PostgreSQL 14 to 18): segment
//! 0 has the bare name of the fork (`16384`, `16384_vm`, `t3_16384`), segment n has `.n` appended.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pagemill_format::SEGMENT_BLOCKS;

use crate::error::Result;
use crate::storage::Storage;

/// The highest segment number that block numbers of 32 bits can reach.
const LAST_SEGMENT: u32 = u32::MAX / SEGMENT_BLOCKS;

/// The segments found in one directory, at the moment it was read.
#[derive(Debug, Clone)]
pub struct SegmentListing {
    directory: PathBuf,
    /// Segments by the name of segment 0, ascending.
    segments: HashMap<OsString, Vec<ListedSegment>>,
}

/// A segment's number, and its size in bytes where the listing told.
pub(crate) type ListedSegment = (u32, Option<u64>);

impl SegmentListing {
    /// Lists a directory.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn read(storage: &Storage, directory: &Path) -> Result<Self> {
        let mut segments: HashMap<OsString, Vec<ListedSegment>> = HashMap::new();
        for entry in storage.read_dir(directory)? {
            let (name, segment) = split_name(&entry.name);
            segments
                .entry(name.to_owned())
                .or_default()
                .push((segment, entry.metadata.map(|found| found.len)));
        }
        segments.values_mut().for_each(|numbers| numbers.sort_unstable());
        Ok(Self { directory: directory.to_owned(), segments })
    }

    /// The directory listed.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The segments of the fork whose segment 0 is called `name`, ascending.
    pub(crate) fn segments_of(&self, name: &OsStr) -> &[ListedSegment] {
        self.segments.get(name).map_or(&[], Vec::as_slice)
    }
}

/// Parts a file name into the fork's name and the segment number. What does not end like a segment
/// PostgreSQL could have written is a name of its own.
fn split_name(name: &OsStr) -> (&OsStr, u32) {
    let bytes = name.as_bytes();
    let Some(dot) = bytes.iter().rposition(|&byte| byte == b'.') else { return (name, 0) };
    match segment_number(&bytes[dot + 1..]) {
        Some(segment) => (OsStr::from_bytes(&bytes[..dot]), segment),
        None => (name, 0),
    }
}

/// The number in decimal digits, from 1, without leading zeros.
fn segment_number(digits: &[u8]) -> Option<u32> {
    if digits.first() == Some(&b'0') || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = str::from_utf8(digits).ok()?.parse().ok()?;
    (number <= LAST_SEGMENT).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_names_that_postgresql_writes_are_segments() {
        let split = |name| {
            let (fork, segment) = split_name(OsStr::new(name));
            (fork.to_str().unwrap().to_owned(), segment)
        };
        assert_eq!(split("16384"), ("16384".into(), 0));
        assert_eq!(split("16384.1"), ("16384".into(), 1));
        assert_eq!(split("16384_vm.32767"), ("16384_vm".into(), 32_767));
        for other in
            ["16384.", "16384.0", "16384.01", "16384.+1", "16384.32768", "16384.99999999999"]
        {
            assert_eq!(split(other), (other.into(), 0), "{other}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_names_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let (fork, segment) = split_name(OsStr::from_bytes(&bytes));
            prop_assert!(segment <= LAST_SEGMENT && fork.len() <= bytes.len());
        }
    }
}
