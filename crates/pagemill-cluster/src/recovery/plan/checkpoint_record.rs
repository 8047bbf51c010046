//! The checkpoint that a recovery begins from: its record in WAL, and the first record to be replayed.
//!
//! Source: `ReadCheckpointRecord` and `PerformWalRecovery` in `src/backend/access/transam/xlogrecovery.c`
//! (14: `xlog.c`), PostgreSQL 14 to 18.

use pagemill_format::control::{CHECKPOINT_BYTES, Checkpoint, ControlFile};
use pagemill_format::wal::{RECORD_HEADER_BYTES, RecoveryRecord, ResourceManager};
use pagemill_format::{Lsn, PgVersion};
use pagemill_io::Storage;
use pagemill_wal::{EndOfWal, WalReader, WalRecord, WalSource};

use super::{Landmark, RecoveryCase, refused};
use crate::error::Result;
use crate::refusal::RecoveryCause;

/// Bytes of the record: its header, the two bytes that announce the body, and the body.
const RECORD_BYTES: usize = RECORD_HEADER_BYTES + 2 + CHECKPOINT_BYTES;

/// The checkpoint that a recovery begins from.
#[derive(Debug)]
pub(super) struct CheckpointRecord {
    /// Where its record begins.
    pub(super) location: Lsn,
    /// The timeline it was written on.
    pub(super) timeline: u32,
    /// What the record says.
    pub(super) checkpoint: Checkpoint,
    /// The first record to be replayed.
    pub(super) start: Lsn,
}

impl CheckpointRecord {
    /// Finds and checks it.
    pub(super) fn of(
        storage: &Storage,
        source: &WalSource,
        control: &ControlFile,
        case: &RecoveryCase,
    ) -> Result<Self> {
        let (location, timeline, redo) = match (case, case.label()) {
            (_, Some(label)) => (label.checkpoint, label.timeline, label.redo),
            (RecoveryCase::LostLabel(range, _), _) => {
                (first_of(storage, source, range.start)?, range.timeline, range.start)
            }
            _ => {
                let checkpoint = &control.checkpoint;
                (control.checkpoint_location, checkpoint.timeline, checkpoint.redo)
            }
        };
        let (checkpoint, is_shutdown, end) = read(storage, source, location)?;
        let directory = &source.directory().path;
        let found = checkpoint.redo;
        if found != redo {
            let (checkpoint, expected) = (location, redo);
            let cause = RecoveryCause::OtherRedo { checkpoint, found, expected };
            return Err(refused(directory, cause));
        }
        if found > location || is_shutdown && found != location {
            let cause = RecoveryCause::WrongRedo { checkpoint: location, found };
            return Err(refused(directory, cause));
        }
        let start = if found == location { end } else { found };
        if found != location {
            check_redo(storage, source, found)?;
        }
        Ok(Self { location, timeline, checkpoint, start })
    }
}

/// The checkpoint record at a place: its body, whether no server ran after it, and where it ends.
fn read(storage: &Storage, source: &WalSource, location: Lsn) -> Result<(Checkpoint, bool, Lsn)> {
    let mut reader = WalReader::along(storage, source, location);
    let version = source.version();
    let directory = &source.directory().path;
    let Some(record) = reader.next_record()? else {
        let found = end_of(&reader).reason.clone();
        let cause = RecoveryCause::NoCheckpoint { checkpoint: location, found };
        return Err(refused(directory, cause));
    };
    let landmark = Landmark::of(&record, version)?;
    match landmark {
        Some(Landmark::Recovery(RecoveryRecord::Checkpoint(checkpoint, is_shutdown)))
            if record.lsn == location && record.bytes.len() == RECORD_BYTES =>
        {
            Ok((*checkpoint, is_shutdown, record.end))
        }
        _ => {
            let found = name(&record, version);
            let cause = RecoveryCause::OtherRecord { checkpoint: location, found };
            Err(refused(directory, cause))
        }
    }
}

/// The first record to be replayed has to be there; from 17 on it says itself that a checkpoint began.
fn check_redo(storage: &Storage, source: &WalSource, redo: Lsn) -> Result<()> {
    let mut reader = WalReader::along(storage, source, redo);
    let directory = &source.directory().path;
    let Some(record) = reader.next_record()? else {
        let found = end_of(&reader).reason.clone();
        return Err(refused(directory, RecoveryCause::NoRedo { redo, found }));
    };
    let version = source.version();
    let is_begin = record.header.resource_manager == ResourceManager::XLOG
        && record.header.kind() == ResourceManager::XLOG_CHECKPOINT_REDO;
    if version >= PgVersion::V17 && !is_begin {
        let found = name(&record, version);
        return Err(refused(directory, RecoveryCause::NoCheckpointBegin(found)));
    }
    Ok(())
}

/// Where the first checkpoint record from `redo` on lies that replay begins at `redo` for.
fn first_of(storage: &Storage, source: &WalSource, redo: Lsn) -> Result<Lsn> {
    let mut reader = WalReader::along(storage, source, redo);
    let version = source.version();
    while let Some(record) = reader.next_record()? {
        let lsn = record.lsn;
        if let Some(Landmark::Recovery(RecoveryRecord::Checkpoint(found, _))) =
            Landmark::of(&record, version)?
            && found.redo == redo
        {
            return Ok(lsn);
        }
    }
    let end = Box::new(end_of(&reader).clone());
    Err(refused(&source.directory().path, RecoveryCause::NoCheckpointFor { redo, end }))
}

/// Where WAL ends for a reader that has no more records.
fn end_of(reader: &WalReader) -> &EndOfWal {
    reader.end().expect("a reader without another record has met the end") // infallible: it has just given none
}

fn name(record: &WalRecord<'_>, version: PgVersion) -> String {
    let manager = record.header.resource_manager;
    let name = manager.record_name(record.header.info, version).unwrap_or("UNKNOWN");
    format!("a record {}/{name} at {}", manager.name(), record.lsn)
}
