//! `backup_label`: where recovery of a copied data directory has to begin. A backup history file
//! (`<segment>.<offset>.backup` in an archive) is the same, with the backup's end.
//!
//! A server reads its lines in a fixed order, and passes over those that it does not expect; so a label of
//! several lines hides nothing. The first two lines have to be there. The timeline is that of the segment's name.
//!
//! Sources: `read_backup_label` in `src/backend/access/transam/xlogrecovery.c` (14: `xlog.c`),
//! `build_backup_content` in `src/backend/access/transam/xlogbackup.c`, `CreateBackupLabel` in
//! `src/bin/pg_rewind/pg_rewind.c`, PostgreSQL 14 to 18.

use crate::error::{Error, Result};
use crate::ids::Lsn;

const STRUCTURE: &str = "backup_label";

/// What `backup_label` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupLabel {
    /// Where replay begins.
    pub redo: Lsn,
    /// The timeline of that place.
    pub timeline: u32,
    /// Where the checkpoint record lies.
    pub checkpoint: Lsn,
    /// Who made the copy.
    pub method: BackupMethod,
    /// The server that was copied was a standby; for `pg_rewind`, always.
    pub from_standby: bool,
    /// When it began, as the server wrote it.
    pub start_time: Option<String>,
    /// What it was called.
    pub label: Option<String>,
    /// The copy has only what changed since this place on this timeline; 17 and later.
    pub incremental_from: Option<(Lsn, Option<u32>)>,
    /// The end, in a backup history file.
    pub end: Option<BackupEnd>,
}

/// Who made a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackupMethod {
    /// `pg_basebackup`, or any tool between `pg_backup_start` and `pg_backup_stop`.
    Streamed,
    /// `pg_rewind`: the directory was made to fit another server's.
    PgRewind,
    /// `pg_start_backup` of 14 in its exclusive form, which writes the label into the live directory.
    Exclusive,
    /// Something that no server writes; servers take it as `pg_rewind`.
    Other(String),
}

/// What a backup history file adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupEnd {
    /// Where the backup ended.
    pub lsn: Lsn,
    /// The timeline there.
    pub timeline: u32,
    /// When, as the server wrote it.
    pub time: Option<String>,
}

/// The lines behind the first, in the order they are looked for.
const KEYS: [&str; 11] = [
    "STOP WAL LOCATION: ",
    "CHECKPOINT LOCATION: ",
    "BACKUP METHOD: ",
    "BACKUP FROM: ",
    "START TIME: ",
    "LABEL: ",
    "START TIMELINE: ",
    "STOP TIME: ",
    "STOP TIMELINE: ",
    "INCREMENTAL FROM LSN: ",
    "INCREMENTAL FROM TLI: ",
];

impl BackupLabel {
    /// Reads the file's contents.
    ///
    /// # Errors
    /// Corrupt: no start or no checkpoint location, or two timelines that differ.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.lines().map(|line| line.strip_suffix('\r').unwrap_or(line));
        let start = lines.next().and_then(|line| line.strip_prefix("START WAL LOCATION: "));
        let (redo, timeline) = start.and_then(place).ok_or_else(|| {
            corrupt("the first line is not START WAL LOCATION with an LSN and a file")
        })?;
        let values = values(lines);
        let value = |key: &str| {
            let at = KEYS.iter().position(|known| known.trim_end() == key)?;
            values.get(at).copied().flatten()
        };
        let checkpoint =
            value("CHECKPOINT LOCATION:").and_then(|value| value.trim_end().parse().ok());
        let checkpoint = checkpoint.ok_or_else(|| corrupt("no line CHECKPOINT LOCATION"))?;
        if checkpoint < redo {
            let what = format!("the checkpoint at {checkpoint} lies before the start at {redo}");
            return Err(corrupt(what));
        }
        check_timeline(value("START TIMELINE:"), timeline)?;
        Ok(Self {
            redo,
            timeline,
            checkpoint,
            method: method(value("BACKUP METHOD:")),
            from_standby: value("BACKUP FROM:") == Some("standby"),
            start_time: value("START TIME:").map(str::to_owned),
            label: value("LABEL:").map(str::to_owned),
            incremental_from: value("INCREMENTAL FROM LSN:")
                .and_then(|value| value.parse().ok())
                .map(|from| {
                    (from, value("INCREMENTAL FROM TLI:").and_then(|tli| tli.parse().ok()))
                }),
            end: value("STOP WAL LOCATION:").and_then(place).map(|(lsn, timeline)| BackupEnd {
                lsn,
                timeline: value("STOP TIMELINE:").and_then(|t| t.parse().ok()).unwrap_or(timeline),
                time: value("STOP TIME:").map(str::to_owned),
            }),
        })
    }
}

/// The value of each of [`KEYS`], each looked for behind the one before.
fn values<'a>(lines: impl Iterator<Item = &'a str>) -> [Option<&'a str>; KEYS.len()] {
    let mut values = [None; KEYS.len()];
    let mut next = 0;
    for line in lines {
        for (at, key) in KEYS.iter().enumerate().skip(next) {
            let Some(value) = line.strip_prefix(key) else { continue };
            if let Some(to) = values.get_mut(at) {
                *to = Some(value);
            }
            next = at + 1;
            break;
        }
    }
    values
}

/// An LSN and the timeline of the segment's name behind it: `0/2000028 (file 000000010000000000000002)`.
fn place(text: &str) -> Option<(Lsn, u32)> {
    let (at, file) = text.split_once(" (file ")?;
    let name = file.strip_suffix(')').filter(|name| name.len() == 24 && name.is_ascii())?;
    let digits_are_right = name.bytes().all(|b| b.is_ascii_hexdigit());
    let timeline = u32::from_str_radix(name.get(..8)?, 16).ok().filter(|timeline| *timeline > 0)?;
    Some((at.parse().ok()?, timeline)).filter(|_| digits_are_right)
}

fn check_timeline(line: Option<&str>, timeline: u32) -> Result<()> {
    match line.and_then(|line| line.trim_end().parse::<u32>().ok()) {
        Some(said) if said != timeline => {
            let what = format!(
                "START TIMELINE is {said}, but the first segment is of timeline {timeline}"
            );
            Err(corrupt(what))
        }
        _ => Ok(()),
    }
}

fn method(line: Option<&str>) -> BackupMethod {
    match line.map(str::trim_end) {
        Some("streamed") => BackupMethod::Streamed,
        Some("pg_rewind") => BackupMethod::PgRewind,
        Some("pg_start_backup") => BackupMethod::Exclusive,
        other => BackupMethod::Other(other.unwrap_or_default().to_owned()),
    }
}

fn corrupt(what: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::corrupt(STRUCTURE, 0, what)
}
