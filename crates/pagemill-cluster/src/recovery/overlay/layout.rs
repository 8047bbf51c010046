//! [`Layout`]: what a path below a data directory stands for, and what the files of a fork are called.
//!
//! Only what recovery can change has a meaning of its own here; everything else lies as it lies.
//!
//! Sources: `GetRelationPath` in `src/common/relpath.c`, `SlruFileName` in `src/backend/access/transam/slru.c`,
//! `src/backend/utils/cache/relmapper.c`, PostgreSQL 14 to 18.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use pagemill_format::slru;
use pagemill_format::wal::RelFileLocator;
use pagemill_format::{Fork, Oid};
use pagemill_wal::{DatabaseDirectory, ForkKey};

use crate::data_directory::{DEFAULT_TABLESPACE, GLOBAL_TABLESPACE};

/// The relation map's file in each directory of relations.
pub(super) const MAP_FILE: &str = "pg_filenode.map";
/// The file in each database's directory that names the major version.
const VERSION_FILE: &str = "PG_VERSION";

/// One of the logs of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Log {
    Statuses,
    Offsets,
    Members,
}

/// What a path stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// A segment of a fork.
    Segment(ForkKey, u32),
    /// A segment of a log.
    LogSegment(Log, u32),
    /// The directory of a log.
    LogDirectory(Log),
    /// The relation map of a directory.
    Map(DatabaseDirectory),
    /// The version file of a database.
    VersionFile(DatabaseDirectory),
    /// A directory of relations.
    Directory(DatabaseDirectory),
    /// Something that recovery does not change.
    Other,
}

/// Where the parts of a data directory are.
#[derive(Debug)]
pub(super) struct Layout {
    root: PathBuf,
    /// The directory in a tablespace that is this cluster's.
    version_directory: String,
}

impl Layout {
    pub(super) fn new(root: &Path, version_directory: String) -> Self {
        Self { root: root.to_path_buf(), version_directory }
    }

    /// What a path stands for.
    pub(super) fn named(&self, path: &Path) -> Named {
        let Ok(below) = path.strip_prefix(&self.root) else { return Named::Other };
        let mut parts = [""; 6];
        let mut count = 0;
        for component in below.components() {
            let (Component::Normal(name), Some(part)) = (component, parts.get_mut(count)) else {
                return Named::Other;
            };
            let Some(name) = name.to_str() else { return Named::Other };
            (*part, count) = (name, count + 1);
        }
        self.named_by(parts.get(..count).unwrap_or_default()).unwrap_or(Named::Other)
    }

    fn named_by(&self, parts: &[&str]) -> Option<Named> {
        let (directory, rest) = match parts {
            ["pg_xact", rest @ ..] => return log(Log::Statuses, rest),
            ["pg_multixact", "offsets", rest @ ..] => return log(Log::Offsets, rest),
            ["pg_multixact", "members", rest @ ..] => return log(Log::Members, rest),
            ["global", rest @ ..] => {
                let database = Oid::INVALID;
                (DatabaseDirectory { tablespace: GLOBAL_TABLESPACE, database }, rest)
            }
            ["base", database, rest @ ..] => {
                let database = number(database)?;
                (DatabaseDirectory { tablespace: DEFAULT_TABLESPACE, database }, rest)
            }
            ["pg_tblspc", tablespace, version, database, rest @ ..]
                if *version == self.version_directory =>
            {
                let (tablespace, database) = (number(tablespace)?, number(database)?);
                (DatabaseDirectory { tablespace, database }, rest)
            }
            _ => return None,
        };
        Some(match rest {
            [] => Named::Directory(directory),
            [MAP_FILE] => Named::Map(directory),
            [VERSION_FILE] => Named::VersionFile(directory),
            [name] => segment(directory, name)?,
            _ => return None,
        })
    }
}

fn log(log: Log, rest: &[&str]) -> Option<Named> {
    match rest {
        [] => Some(Named::LogDirectory(log)),
        [name] => Some(Named::LogSegment(log, slru::segment_number(name)?)),
        _ => None,
    }
}

/// What a name in a directory of relations stands for, if it is a fork's.
pub(super) fn segment_of(directory: DatabaseDirectory, name: &OsStr) -> Option<(ForkKey, u32)> {
    match segment(directory, name.to_str()?)? {
        Named::Segment(key, segment) => Some((key, segment)),
        _ => None,
    }
}

fn segment(directory: DatabaseDirectory, name: &str) -> Option<Named> {
    let (fork_name, segment) = match name.split_once('.') {
        Some((fork_name, digits)) => (fork_name, number(digits)?.0),
        None => (name, 0),
    };
    // The main fork's suffix is empty, and ends every name: it comes last.
    let forks = [Fork::Fsm, Fork::Vm, Fork::Init, Fork::Main];
    let split = |fork: Fork| Some((fork, fork_name.strip_suffix(fork.suffix())?));
    let (fork, digits) = forks.into_iter().find_map(split)?;
    let DatabaseDirectory { tablespace, database } = directory;
    let locator = RelFileLocator { tablespace, database, number: number(digits)? };
    Some(Named::Segment(ForkKey { locator, fork }, segment))
}

/// A number as PostgreSQL writes it: not 0, without leading zeros.
fn number(digits: &str) -> Option<Oid> {
    let is_number = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { digits.parse().ok().map(Oid) } else { None }
}

/// The name of a segment of a fork.
pub(in crate::recovery) fn file_name(key: ForkKey, segment: u32) -> String {
    let (number, suffix) = (key.locator.number, key.fork.suffix());
    match segment {
        0 => format!("{number}{suffix}"),
        _ => format!("{number}{suffix}.{segment}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(path: &str) -> Named {
        Layout::new(Path::new("/data"), "PG_15_202209061".into()).named(Path::new(path))
    }

    fn segment(tablespace: u32, database: u32, number: u32, fork: Fork, segment: u32) -> Named {
        let (tablespace, database) = (Oid(tablespace), Oid(database));
        let locator = RelFileLocator { tablespace, database, number: Oid(number) };
        Named::Segment(ForkKey { locator, fork }, segment)
    }

    #[test]
    fn segments_of_forks_are_told_by_their_names_in_each_kind_of_directory() {
        assert_eq!(named("/data/base/5/16384"), segment(1663, 5, 16384, Fork::Main, 0));
        assert_eq!(named("/data/base/5/16384_vm.2"), segment(1663, 5, 16384, Fork::Vm, 2));
        assert_eq!(named("/data/global/1262_fsm"), segment(1664, 0, 1262, Fork::Fsm, 0));
        let path = "/data/pg_tblspc/16400/PG_15_202209061/5/16385_init";
        assert_eq!(named(path), segment(16400, 5, 16385, Fork::Init, 0));
        for key in ["16384", "16384_init", "16384_vm.7"] {
            let Named::Segment(key_found, number) = named(&format!("/data/base/5/{key}")) else {
                panic!("{key}");
            };
            assert_eq!(file_name(key_found, number), key);
        }
    }

    #[test]
    fn logs_and_maps_have_their_places() {
        assert_eq!(named("/data/pg_xact/001F"), Named::LogSegment(Log::Statuses, 0x1F));
        assert_eq!(named("/data/pg_multixact/members"), Named::LogDirectory(Log::Members));
        let shared = DatabaseDirectory { tablespace: Oid(1664), database: Oid(0) };
        assert_eq!(named("/data/global/pg_filenode.map"), Named::Map(shared));
        let own = DatabaseDirectory { tablespace: Oid(1663), database: Oid(5) };
        assert_eq!(named("/data/base/5/PG_VERSION"), Named::VersionFile(own));
        assert_eq!(named("/data/base/5"), Named::Directory(own));
        assert_eq!(named("/data/base/5/"), Named::Directory(own));
    }

    #[test]
    fn what_recovery_does_not_change_is_something_else() {
        for path in [
            "/data",
            "/data/PG_VERSION",
            "/data/base",
            "/data/base/5/t3_16384",
            "/data/base/5/pg_internal.init",
            "/data/base/5/016384",
            "/data/base/5/16384.",
            "/data/base/5/16384.01",
            "/data/base/05/16384",
            "/data/base/5/6/16384",
            "/data/pg_tblspc/16400/PG_14_202107181/5/16385",
            "/data/pg_xact/1",
            "/data/../data/base/5/16384",
            "/other/base/5/16384",
        ] {
            assert_eq!(named(path), Named::Other, "{path}");
        }
    }
}
