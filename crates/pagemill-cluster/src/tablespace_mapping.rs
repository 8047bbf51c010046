//! `OLDDIR=NEWDIR`: where a tablespace of a cluster lies in a copy of it, spelled as `pg_basebackup --tablespace-mapping` has
//! it: a `=` that belongs to a name is written `\=`, both are absolute; the new one may be a URL.
//!
//! Source: `tablespace_list_append` in `src/bin/pg_basebackup/pg_basebackup.c`, PostgreSQL 14 to 18.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use pagemill_io::{Storage, is_url, local_path};

use crate::refusal::MappingCause;

/// Where a tablespace was and where it is to be. Both are absolute, without `.` and repeated slashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TablespaceMapping {
    /// The directory as the cluster has it.
    pub old: PathBuf,
    /// That of the copy.
    pub new: PathBuf,
}

/// A mapping that cannot be followed, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given}: {reason}")]
pub struct MappingError {
    given: String,
    reason: &'static str,
}

impl TablespaceMapping {
    /// Reads `OLDDIR=NEWDIR`.
    ///
    /// # Errors
    /// When it is not of that form, or a directory is not absolute.
    pub fn parse(given: &OsStr) -> Result<Self, MappingError> {
        let wrong = |reason| MappingError { given: given.to_string_lossy().into(), reason };
        let mut parts = vec![Vec::new()];
        let mut bytes = given.as_bytes().iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            let escaped = byte == b'\\' && bytes.peek() == Some(&b'=');
            match (byte, parts.last_mut()) {
                (b'=', _) => parts.push(Vec::new()),
                (byte, Some(part)) => {
                    part.push(if escaped { bytes.next() } else { None }.unwrap_or(byte))
                }
                (_, None) => {}
            }
        }
        let mut parts = parts.into_iter().map(|part| PathBuf::from(OsString::from_vec(part)));
        let (old, new) = match (parts.next(), parts.next(), parts.next()) {
            (Some(old), Some(new), None) => (old, new),
            (_, _, Some(_)) => return Err(wrong("more than one =: write \\= for one in a name")),
            _ => return Err(wrong("it must be OLDDIR=NEWDIR")),
        };
        if old.as_os_str().is_empty() || new.as_os_str().is_empty() {
            return Err(wrong("it must be OLDDIR=NEWDIR"));
        }
        let new = local_path(new);
        match (old.is_absolute(), new.is_absolute() || is_url(&new)) {
            (true, true) => Ok(Self { old: plain(&old), new: plain(&new) }),
            (false, _) => Err(wrong("the old directory must be absolute")),
            (_, false) => Err(wrong("the new directory must be absolute")),
        }
    }
}

/// A path without `.` and repeated slashes.
pub fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}

/// A path as it is written in a mapping.
pub fn escaped(path: &Path) -> String {
    path.display().to_string().replace('=', "\\=")
}

/// True for two names of one directory.
pub fn is_same(storage: &Storage, one: &Path, other: &Path) -> bool {
    one == other || storage.is_same(one, other)
}

/// Makes sure that each mapping is of a tablespace, whose directories these are, and that none says the same as another.
///
/// # Errors
/// The first that does not fit.
pub fn check_uses(
    storage: &Storage,
    there: &[&Path],
    mappings: &[TablespaceMapping],
) -> Result<(), MappingCause> {
    for mapping in mappings {
        let is_of = |old: &Path| is_same(storage, old, &mapping.old);
        if !there.iter().any(|old| is_of(old)) {
            let there = there.iter().map(|old| old.to_path_buf()).collect();
            return Err(MappingCause::NoTablespace { old: mapping.old.clone(), there });
        }
        if mappings.iter().filter(|other| is_of(&other.old)).count() > 1 {
            return Err(MappingCause::Twice(mapping.old.clone()));
        }
        if mappings.iter().filter(|other| other.new == mapping.new).count() > 1 {
            return Err(MappingCause::SharedTarget(mapping.new.clone()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(given: &str) -> Result<(String, String), String> {
        let parsed = TablespaceMapping::parse(OsStr::new(given));
        let text = |path: PathBuf| path.display().to_string();
        parsed.map(|found| (text(found.old), text(found.new))).map_err(|error| error.to_string())
    }

    #[test]
    fn a_mapping_names_two_absolute_directories_and_may_escape_the_sign_between() {
        let both = |old: &str, new: &str| Ok((old.to_owned(), new.to_owned()));
        assert_eq!(parse("/a=/b"), both("/a", "/b"));
        assert_eq!(parse("/a=s3://bucket/b"), both("/a", "s3:/bucket/b"));
        assert_eq!(parse("/a//x/./y/=/b/"), both("/a/x/y", "/b"));
        assert_eq!(parse("/a\\=1=/b\\=2"), both("/a=1", "/b=2"));
        assert_eq!(parse("/a\\b=/c"), both("/a\\b", "/c"));
    }

    #[test]
    fn what_is_no_mapping_is_told() {
        for (given, says) in [
            ("", "must be OLDDIR=NEWDIR"),
            ("/a", "must be OLDDIR=NEWDIR"),
            ("/a=", "must be OLDDIR=NEWDIR"),
            ("=/b", "must be OLDDIR=NEWDIR"),
            ("/a=/b=/c", "more than one ="),
            ("a=/b", "the old directory must be absolute"),
            ("/a=b", "the new directory must be absolute"),
        ] {
            let message = parse(given).unwrap_err();
            assert!(message.contains(says), "{given}: {message}");
        }
    }

    #[test]
    fn a_path_that_is_written_in_a_mapping_is_read_back() {
        let path = Path::new("/a=b/c");
        assert_eq!(parse(&format!("{}=/x", escaped(path))).unwrap().0, "/a=b/c");
    }
}
