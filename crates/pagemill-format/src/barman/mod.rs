//! `backup.info`: what Barman, barman-cloud and CloudNativePG write down of one backup.
//!
//! Lines `key=value`, each value as Python prints it: `None` for none, texts without quotes, lists and tuples as literals. Keys come
//! and go with versions of Barman, so none but the status has to be there, and unknown ones are passed over.
//!
//! Invariant: what parses has a status that Barman has a name for.
//!
//! Source: `FieldListFile.load` and `BackupInfo` in `barman/infofile.py`, Barman 3.4 to 3.17.

mod tablespace_list;

use std::str::FromStr;

use crate::error::{Error, Result};
use crate::ids::{Lsn, Oid};

const STRUCTURE: &str = "backup.info";
/// What segments have where nothing is said (`DEFAULT_XLOG_SEG_SIZE` in `barman/xlog.py`).
const SEGMENT_SIZE: u32 = 16 << 20;

/// How far a backup came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackupStatus {
    /// It is whole, and so is the WAL that it needs.
    Done,
    /// Its files are whole; the WAL that it needs was not all archived yet.
    WaitingForWals,
    /// It is being taken, or whoever took it was killed.
    Started,
    /// It failed.
    Failed,
    /// Nothing of it is there.
    Empty,
    /// It is being copied from another Barman.
    Syncing,
}

const STATUSES: [(BackupStatus, &str); 6] = [
    (BackupStatus::Done, "DONE"),
    (BackupStatus::WaitingForWals, "WAITING_FOR_WALS"),
    (BackupStatus::Started, "STARTED"),
    (BackupStatus::Failed, "FAILED"),
    (BackupStatus::Empty, "EMPTY"),
    (BackupStatus::Syncing, "SYNCING"),
];

impl BackupStatus {
    /// The name that Barman has for it.
    pub fn name(self) -> &'static str {
        let found = STATUSES.iter().find(|(status, _)| *status == self);
        found.map_or("", |(_, name)| name)
    }

    /// All files are there: what Barman restores (`STATUS_COPY_DONE`).
    pub fn is_copied(self) -> bool {
        matches!(self, Self::Done | Self::WaitingForWals)
    }
}

/// `backup.info`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupInfo {
    /// How far it came.
    pub status: BackupStatus,
    /// Why it failed.
    pub error: Option<String>,
    /// The name that somebody gave it.
    pub name: Option<String>,
    /// The server's version: `150004`.
    pub version: Option<u32>,
    /// The cluster's system identifier.
    pub system_identifier: Option<u64>,
    /// When it began and ended, as Python prints it.
    pub times: (Option<String>, Option<String>),
    /// Where the WAL begins that it needs, and where that ends.
    pub lsns: (Option<Lsn>, Option<Lsn>),
    /// The segments with these places.
    pub segments: (Option<String>, Option<String>),
    /// Bytes of a segment.
    pub segment_size: u32,
    /// Bytes of its files.
    pub bytes: Option<u64>,
    /// Bytes that it added, where files are shared with the backup before.
    pub stored_bytes: Option<u64>,
    /// The tablespaces of the cluster.
    pub tablespaces: Vec<Oid>,
    /// The backup that it builds on, if it is an incremental one of PostgreSQL's own.
    pub parent: Option<String>,
    /// How its archives are compressed.
    pub compression: Option<String>,
    /// How it is encrypted.
    pub encryption: Option<String>,
    /// It is made of snapshots of volumes.
    pub has_snapshots: bool,
}

impl BackupInfo {
    /// Reads the file's contents.
    ///
    /// # Errors
    /// Corrupt: no status, or a value that its key cannot have.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| Error::corrupt(STRUCTURE, error.valid_up_to(), "not UTF-8"))?;
        let fields = Fields(fields(text)?);
        let status = fields.text("status").unwrap_or_default();
        let Some((status, _)) = STATUSES.iter().find(|(_, name)| *name == status) else {
            return Err(Error::corrupt(STRUCTURE, 0, format!("a status {status:?}")));
        };
        Ok(Self {
            status: *status,
            error: fields.text("error"),
            name: fields.text("backup_name"),
            version: fields.number("version")?,
            system_identifier: fields.number("systemid")?,
            times: (fields.text("begin_time"), fields.text("end_time")),
            lsns: (fields.number("begin_xlog")?, fields.number("end_xlog")?),
            segments: (fields.text("begin_wal"), fields.text("end_wal")),
            segment_size: fields.number("xlog_segment_size")?.unwrap_or(SEGMENT_SIZE),
            bytes: fields.number("size")?,
            stored_bytes: fields.number("deduplicated_size")?,
            tablespaces: fields.tablespaces()?,
            parent: fields.text("parent_backup_id"),
            compression: fields.text("compression"),
            encryption: fields.text("encryption"),
            has_snapshots: fields.text("snapshots_info").is_some(),
        })
    }
}

/// Keys with their values, and where the values begin.
struct Fields<'a>(Vec<(&'a str, &'a str, usize)>);

impl<'a> Fields<'a> {
    /// The last value of a key counts, and `None` is none.
    fn find(&self, key: &str) -> Option<(&'a str, usize)> {
        let found = self.0.iter().rev().find(|(known, ..)| *known == key)?;
        Some((found.1, found.2)).filter(|(value, _)| *value != "None")
    }

    fn text(&self, key: &str) -> Option<String> {
        self.find(key).map(|(value, _)| value.to_owned())
    }

    fn number<T: FromStr>(&self, key: &str) -> Result<Option<T>> {
        let read = |(value, at): (&str, usize)| {
            let wrong = |_| Error::corrupt(STRUCTURE, at, format!("{key} {value:?}"));
            value.parse().map_err(wrong)
        };
        self.find(key).map(read).transpose()
    }

    fn tablespaces(&self) -> Result<Vec<Oid>> {
        let Some((value, at)) = self.find("tablespaces") else { return Ok(Vec::new()) };
        tablespace_list::numbers(value).ok_or_else(|| {
            let what = format!("tablespaces {value:?}: no list of name, number and directory");
            Error::corrupt(STRUCTURE, at, what)
        })
    }
}

fn fields(text: &str) -> Result<Vec<(&str, &str, usize)>> {
    let mut fields = Vec::new();
    let mut offset = 0;
    for line in text.split('\n') {
        let is_empty = line.trim().is_empty() || line.starts_with('#');
        match line.split_once('=') {
            _ if is_empty => {}
            Some((key, value)) => {
                fields.push((key.trim(), value.trim(), offset + key.len() + 1));
            }
            None => return Err(Error::corrupt(STRUCTURE, offset, "a line without key=value")),
        }
        offset += line.len() + 1;
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As Barman 3.4 wrote it, but for the keys that nobody reads.
    const WRITTEN: &str = "\
backup_label='START WAL LOCATION: 0/2000028 (file 000000010000000000000002)\\nSTART TIMELINE: 1\\n'
backup_name=before the release
begin_offset=40
begin_time=2026-11-25 22:24:23.539015+00:00
begin_wal=000000010000000000000002
begin_xlog=0/2000028
compression=None
copy_stats={'total_time': 0.775325, 'number_of_workers': 1}
deduplicated_size=23075062
end_time=2026-11-25 22:24:24.412996+00:00
end_wal=000000010000000000000002
end_xlog=0/2000100
error=None
size=23075063
status=DONE
systemid=7712238517619570419
tablespaces=[('ts', 16384, '/tmp/ts'), (\"it's\", 16385, '/a, \\'b')]
timeline=1
version=150018
xlog_segment_size=16777216
";

    fn parsed(text: &str) -> Result<BackupInfo, String> {
        BackupInfo::parse(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_barman_wrote_is_read() {
        let info = parsed(WRITTEN).unwrap();
        assert_eq!((info.status, info.error), (BackupStatus::Done, None));
        assert_eq!(info.name.as_deref(), Some("before the release"));
        assert_eq!(
            (info.version, info.system_identifier),
            (Some(150_018), Some(7712238517619570419))
        );
        assert_eq!(info.times.0.as_deref(), Some("2026-11-25 22:24:23.539015+00:00"));
        assert_eq!(info.lsns, (Some(Lsn(0x200_0028)), Some(Lsn(0x200_0100))));
        assert_eq!(info.segments.1.as_deref(), Some("000000010000000000000002"));
        assert_eq!((info.bytes, info.stored_bytes), (Some(23_075_063), Some(23_075_062)));
        assert_eq!(info.tablespaces, [Oid(16384), Oid(16385)]);
        assert_eq!((info.parent, info.compression, info.encryption), (None, None, None));
        assert!(!info.has_snapshots);
    }

    #[test]
    fn keys_of_other_versions_and_backups_that_failed_are_read() {
        let text = "# made by hand\n\nstatus = FAILED\nerror=failure copying (it = broke)\nnew_key=[1]\n\
                    parent_backup_id=20260101T000000\nencryption=gpg\nsnapshots_info={'a': 1}\n";
        let info = parsed(text).unwrap();
        assert_eq!(info.error.as_deref(), Some("failure copying (it = broke)"));
        assert_eq!(info.parent.as_deref(), Some("20260101T000000"));
        assert!(!info.status.is_copied() && info.has_snapshots && info.encryption.is_some());
        assert_eq!((info.segment_size, info.bytes), (16 << 20, None));
        for (status, name) in STATUSES {
            assert_eq!(
                (parsed(&format!("status={name}")).unwrap().status, status.name()),
                (status, name)
            );
        }
    }

    #[test]
    fn what_a_key_cannot_have_is_an_error_with_its_place() {
        for (text, says) in [
            ("size=1\n", "a status \"\""),
            ("status=GOOD\n", "a status \"GOOD\""),
            ("status=DONE\nrubbish\n", "a line without key=value (byte 12)"),
            ("status=DONE\nsize=big\n", "size \"big\" (byte 17)"),
            ("status=DONE\nbegin_xlog=2000028\n", "begin_xlog \"2000028\""),
            ("status=DONE\ntablespaces=[('ts', 16384)]\n", "no list of name, number and directory"),
        ] {
            let said = parsed(text).unwrap_err();
            assert!(said.contains(says), "{says}: {said}");
        }
        assert!(
            BackupInfo::parse(b"status=DONE\n\xFF").unwrap_err().to_string().contains("byte 12")
        );
    }

    proptest! {
        #[test]
        fn any_text_is_a_backup_or_an_error(
            lines in proptest::collection::vec("(status=DONE|(tablespaces|size|begin_xlog)=[\\[\\]()',\"0-9a/ ]{0,20}|.{0,20})", 0..8),
        ) {
            let _ = BackupInfo::parse(lines.join("\n").as_bytes());
        }
    }
}
