//! What WAL-G writes down of a backup: its sentinel, the list of its files, and the files of a delta backup.
//!
//! ```text
//! basebackups_005/NAME_backup_stop_sentinel.json     written last: a backup without one is not whole
//!                 NAME/files_metadata.json           which files are as in the backup before, and which are increments
//!                 NAME/tar_partitions/part_001.tar.lz4 …, pg_control.tar.lz4, backup_label.tar.lz4
//! ```
//!
//! Invariant: names of files are plain parts below the data directory.
//!
//! Source: `backup_sentinel_dto.go`, `tablespace_spec.go` and `pagefile.go` in `internal/databases/postgres`,
//! `internal/backup_file_description.go`, WAL-G 3.0.

mod increment;

use std::collections::HashMap;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::ids::{Lsn, Oid};
pub use increment::Increment;

const SENTINEL: &str = "backup sentinel";
const FILES: &str = "files_metadata.json";

/// `NAME_backup_stop_sentinel.json`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Sentinel {
    /// Where the WAL begins that it needs.
    #[serde(rename = "LSN", default)]
    start: Option<u64>,
    #[serde(rename = "FinishLSN", default)]
    finish: Option<u64>,
    /// The backup that it builds on, if it is a delta backup.
    #[serde(rename = "DeltaFrom", default)]
    pub parent: Option<String>,
    /// The server's version: `150004`.
    #[serde(rename = "PgVersion", default)]
    pub version: u32,
    /// The cluster's system identifier.
    #[serde(rename = "SystemIdentifier", default)]
    pub system_identifier: Option<u64>,
    /// Bytes of its files.
    #[serde(rename = "UncompressedSize", default)]
    pub bytes: u64,
    /// Bytes that are stored of it.
    #[serde(rename = "CompressedSize", default)]
    pub stored_bytes: u64,
    /// When it began and ended; older ones do not say it here.
    #[serde(rename = "StartTime", default)]
    pub start_time: Option<String>,
    /// When it ended.
    #[serde(rename = "FinishTime", default)]
    pub finish_time: Option<String>,
    /// There is no list of its files.
    #[serde(rename = "FilesMetadataDisabled", default)]
    pub has_no_list: bool,
    #[serde(rename = "Spec", default)]
    spec: Option<Spec>,
}

/// Where tablespaces were.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Spec {
    #[serde(default)]
    tablespaces: Vec<String>,
}

impl Sentinel {
    /// Reads the file's contents.
    ///
    /// # Errors
    /// Corrupt: no such JSON.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        from_json(SENTINEL, bytes)
    }

    /// Where the WAL begins that it needs, and where that ends.
    pub fn lsns(&self) -> (Option<Lsn>, Option<Lsn>) {
        (self.start.map(Lsn), self.finish.map(Lsn))
    }

    /// The tablespaces of the cluster.
    ///
    /// # Errors
    /// Corrupt: one that is no number.
    pub fn tablespaces(&self) -> Result<Vec<Oid>> {
        let names = self.spec.iter().flat_map(|spec| &spec.tablespaces);
        let number = |name: &String| {
            let wrong = |_| Error::corrupt(SENTINEL, 0, format!("a tablespace {name:?}"));
            name.parse().map(Oid).map_err(wrong)
        };
        names.map(number).collect()
    }
}

/// How a delta backup has a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredAs {
    /// Whole.
    Whole,
    /// As an [`Increment`] over that of the backup before.
    Increment,
    /// Not at all: it is as in the backup before.
    Unchanged,
}

/// `files_metadata.json`: what there is in the data directory, by names without a slash in front.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileList(HashMap<String, StoredAs>);

#[derive(Deserialize)]
struct FilesMetadata {
    #[serde(rename = "Files", default)]
    files: HashMap<String, FileDescription>,
}

#[derive(Deserialize)]
struct FileDescription {
    #[serde(rename = "IsIncremented", default)]
    is_increment: bool,
    #[serde(rename = "IsSkipped", default)]
    is_unchanged: bool,
}

impl FileList {
    /// Reads the file's contents.
    ///
    /// # Errors
    /// Corrupt: no such JSON, a name that leads out of the data directory, a file that is both.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let found: FilesMetadata = from_json(FILES, bytes)?;
        let files = found.files.into_iter().map(|(name, of)| {
            let wrong = |what: &str| Error::corrupt(FILES, 0, format!("{name:?}: {what}"));
            let plain = name.trim_start_matches('/');
            let is_name = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
            if !plain.is_empty() && !plain.split('/').all(is_name) {
                return Err(wrong("no name within a data directory"));
            }
            let stored = match (of.is_increment, of.is_unchanged) {
                (false, false) => StoredAs::Whole,
                (true, false) => StoredAs::Increment,
                (false, true) => StoredAs::Unchanged,
                (true, true) => return Err(wrong("an increment, and unchanged")),
            };
            Ok((plain.to_owned(), stored))
        });
        files.collect::<Result<_>>().map(Self)
    }

    /// How the backup has a file; `None` for what is not in the list.
    pub fn get(&self, name: &str) -> Option<StoredAs> {
        self.0.get(name).copied()
    }

    /// All names, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, StoredAs)> {
        self.0.iter().map(|(name, stored)| (name.as_str(), *stored))
    }
}

fn from_json<'a, T: Deserialize<'a>>(structure: &'static str, bytes: &'a [u8]) -> Result<T> {
    // A list would do, too, as what there is in order.
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(Error::corrupt(structure, 0, "no object of JSON"));
    }
    serde_json::from_slice(bytes).map_err(|error| Error::corrupt(structure, 0, error.to_string()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As WAL-G 3.0 wrote it.
    const WRITTEN: &str = r#"{"LSN":184549416,"DeltaLSN":150994984,"DeltaFrom":"base_000000010000000000000009",
"DeltaFullName":"base_000000010000000000000009","DeltaCount":1,"PgVersion":150018,"FinishLSN":184549632,
"SystemIdentifier":7712238517619570419,"UncompressedSize":41313,"CompressedSize":4263,"DataCatalogSize":26503449,
"Spec":{"16384":{"loc":"/tmp/ts","link":"pg_tblspc/16384"},"base_prefix":"/tmp/pg","tablespaces":["16384"]},
"ChkpNum":null,"Version":2,"StartTime":"2026-11-25T22:30:30.273464Z","FinishTime":"2026-11-25T22:30:31.357124Z",
"DateFmt":"%Y-%m-%dT%H:%M:%S.%fZ","Hostname":"vm","DataDir":"/tmp/pg","IsPermanent":false}"#;

    #[test]
    fn what_wal_g_wrote_is_read() {
        let sentinel = Sentinel::parse(WRITTEN.as_bytes()).unwrap();
        assert_eq!(sentinel.lsns(), (Some(Lsn(0xB00_0028)), Some(Lsn(0xB00_0100))));
        assert_eq!(sentinel.parent.as_deref(), Some("base_000000010000000000000009"));
        assert_eq!(
            (sentinel.version, sentinel.bytes, sentinel.stored_bytes),
            (150_018, 41_313, 4_263)
        );
        assert_eq!(sentinel.tablespaces().unwrap(), [Oid(16384)]);
        assert_eq!(sentinel.start_time.as_deref(), Some("2026-11-25T22:30:30.273464Z"));
        let older = Sentinel::parse(br#"{"LSN":null,"PgVersion":140000,"Spec":null}"#).unwrap();
        assert_eq!((older.lsns(), older.finish_time.clone()), ((None, None), None));
        assert!(older.tablespaces().unwrap().is_empty());
        let wrong = Sentinel::parse(br#"{"Spec":{"tablespaces":["x"]}}"#).unwrap().tablespaces();
        assert!(wrong.unwrap_err().to_string().contains("a tablespace \"x\""));
        assert!(Sentinel::parse(b"{").unwrap_err().to_string().contains("corrupt backup sentinel"));
    }

    #[test]
    fn the_list_says_how_each_file_is_stored() {
        let list = br#"{"Files":{"/":{},"/PG_VERSION":{"IsIncremented":false,"IsSkipped":true,"MTime":"2026","UpdatesCount":0},
            "/base/5/1":{"IsIncremented":true},"/base/5/2":{"IsSkipped":false}},"TarFileSets":{"part_001.tar.lz4":["/"]}}"#;
        let list = FileList::parse(list).unwrap();
        assert_eq!(list.get("PG_VERSION"), Some(StoredAs::Unchanged));
        assert_eq!(list.get("base/5/1"), Some(StoredAs::Increment));
        assert_eq!(list.get("base/5/2"), Some(StoredAs::Whole));
        assert_eq!((list.get("backup_label"), list.iter().count()), (None, 4));
        for (files, says) in [
            (&br#"{"Files":{"/a/../../b":{}}}"#[..], "no name within"),
            (br#"{"Files":{"/a//b":{}}}"#, "no name within"),
            (br#"{"Files":{"/a":{"IsIncremented":true,"IsSkipped":true}}}"#, "and unchanged"),
            (br#"{"Files":[]}"#, "corrupt files_metadata.json"),
        ] {
            let said = FileList::parse(files).unwrap_err().to_string();
            assert!(said.contains(says), "{says}: {said}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_an_error(bytes in "[{}\\[\\]\":,/a-zA-Z0-9. ]{0,60}") {
            let _ = (Sentinel::parse(bytes.as_bytes()), FileList::parse(bytes.as_bytes()));
        }
    }
}
