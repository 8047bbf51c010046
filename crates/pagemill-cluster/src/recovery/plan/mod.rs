//! The recovery of a data directory, planned as a server would begin it, and nothing replayed.
//!
//! ```text
//! control file, label, manifest ─► RecoveryCase ─┐
//! history files, --timeline ─► the way           ├─► RecoveryPlan ─► RecoveryWalk: the records, to the target or the end
//! WAL: the checkpoint record ────────────────────┘                └► WalSurvey: all that the WAL holds
//! ```
//!
//! Where replay begins, when the files agree with each other and where it may end depend on how the directory came
//! to be: by a crash, by a backup with or without its label, by a copy of a standby. [`RecoveryCase`] says which it is.
//!
//! Invariants: `start` is the first record that is replayed, and can be read; the checkpoint's place and
//! `minRecoveryPoint` lie on the way; nothing but small files and WAL was read.
//!
//! Sources: `InitWalRecovery` in `src/backend/access/transam/xlogrecovery.c`, `StartupXLOG` in
//! `src/backend/access/transam/xlog.c`, PostgreSQL 14 to 18 (14: all in `xlog.c`).

mod checkpoint_record;
mod consistency;
mod copy_files;
mod lost_label;
mod moment;
mod problem;
mod recovery_case;
mod survey;
mod target;
mod walk;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use pagemill_format::backup::{TablespaceMap, TimelineHistory};
use pagemill_format::control::{Checkpoint, ControlFile};
use pagemill_format::{Lsn, PgVersion};
use pagemill_io::Storage;
use pagemill_wal::{WalDirectory, WalReader, WalSource};

use crate::directory_state::DirectoryState;
use crate::error::{Error, Result};
use crate::refusal::{RecoveryCause, Refusal};
use checkpoint_record::CheckpointRecord;
pub use consistency::ConsistentAt;
pub use copy_files::CopyFiles;
pub(crate) use copy_files::read_tablespace_map;
pub use lost_label::EndedBackup;
pub use moment::Moment;
pub use problem::RecoveryProblem;
pub use recovery_case::RecoveryCase;
pub use survey::{RestorePoint, WalSurvey};
pub use target::{Landmark, RecoveryTarget, TargetPlace, TransactionEnd};
pub use walk::{RecoveryEnd, RecoveryWalk, Stop};

/// `wal_level` minimal, as a number.
const MINIMAL: u32 = 0;

/// What a caller asks for.
#[derive(Debug, Clone)]
pub struct PlanOptions {
    /// Where WAL lies besides `pg_wal`; looked at first, in this order.
    pub archives: Vec<PathBuf>,
    /// Where to stop; `None` for the end of WAL.
    pub target: Option<RecoveryTarget>,
    /// The timeline to follow.
    pub timeline: TimelineChoice,
    /// The memory that WAL is read in, and what it does is kept in, in bytes; what does not fit goes to temporary files.
    pub memory: usize,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            archives: Vec::new(),
            target: None,
            timeline: TimelineChoice::default(),
            memory: WalSource::DEFAULT_MEMORY,
        }
    }
}

impl PlanOptions {
    /// True when something is asked for that a server's own crash recovery does not do.
    pub fn are_given(&self) -> bool {
        let Self { archives, target, timeline, memory: _ } = self;
        !archives.is_empty() || target.is_some() || *timeline != TimelineChoice::Automatic
    }
}

/// The timeline to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimelineChoice {
    /// The newest where there is an archive or a signal file, else that of the control file: a server's own choice.
    #[default]
    Automatic,
    /// The newest that the control file's leads to.
    Latest,
    /// That of the control file.
    Current,
    /// This one.
    Number(u32),
}

/// `latest`, `current`, a number, or `auto`.
impl FromStr for TimelineChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Automatic),
            "latest" => Ok(Self::Latest),
            "current" => Ok(Self::Current),
            number => match number.parse() {
                Ok(number) if number > 0 => Ok(Self::Number(number)),
                _ => Err("a number from 1 on, latest or current is wanted".into()),
            },
        }
    }
}

/// How a data directory is recovered.
#[derive(Debug, Clone)]
pub struct RecoveryPlan {
    /// How the directory came to be as it is.
    pub case: RecoveryCase,
    /// The first record that is replayed.
    pub start: Lsn,
    /// Where the checkpoint record lies that recovery begins from.
    pub checkpoint_location: Lsn,
    /// That record.
    pub checkpoint: Checkpoint,
    /// Where WAL comes from, and along which timelines.
    pub source: WalSource,
    /// When the files are consistent.
    pub consistent: ConsistentAt,
    /// Where to stop; `None` for the end of WAL.
    pub target: Option<RecoveryTarget>,
    /// Where tablespaces of the copied server were, if the copy has its label and such a map.
    pub tablespace_map: Option<TablespaceMap>,
    /// What somebody ought to know, and what hinders nothing.
    pub warnings: Vec<String>,
    /// The files came from a tool for backups, and nothing tells where their backup began.
    is_backup_without_label: bool,
    /// A server would be asked to go on from an archive, and so does not do without what WAL of `wal_level` minimal
    /// lacks.
    is_archive_recovery: bool,
    version: PgVersion,
}

impl RecoveryPlan {
    /// Plans the recovery of a data directory.
    ///
    /// # Errors
    /// Refused: a copy that cannot be recovered as it lies, WAL that is not there or of another cluster, a timeline
    /// that does not exist. Damage: files that are not what they should be.
    pub fn new(state: &DirectoryState, options: &PlanOptions) -> Result<Self> {
        let (storage, directory, control) = (state.storage(), state.path(), state.control());
        let files = CopyFiles::read(storage, directory)?;
        refuse_incremental(directory, &files)?;
        check_archives(storage, &options.archives)?;
        let wal = WalDirectory::of_cluster(directory, control)?;
        let is_requested = files.has_signal || !options.archives.is_empty();
        let mut warnings = Vec::new();
        let case = RecoveryCase::of(control, &files, is_requested, &mut warnings);
        case.check(directory, control)?;
        let history = history(state, &wal, options, is_requested)?;
        let source = WalSource::along(&wal, options.archives.clone(), history);
        let source = source.within(options.memory);
        let found = CheckpointRecord::of(storage, &source, control, &case)?;
        check_way(directory, &source, control, &found)?;
        let is_archive_recovery = is_requested || case.is_of_copy();
        if is_archive_recovery && control.settings.wal_level == MINIMAL {
            return Err(refused(directory, RecoveryCause::MinimalWal));
        }
        let consistent = match case.consistent_at(control, &found) {
            Some(rule) => rule,
            None => ConsistentAt::Lsn(end_of_pg_wal(storage, &wal, control, found.start)?),
        };
        let is_backup_without_label = files.lacks_files_of_servers && case.is_as_after_a_crash();
        Ok(Self {
            case,
            is_backup_without_label,
            start: found.start,
            checkpoint_location: found.location,
            checkpoint: found.checkpoint,
            source,
            consistent,
            target: options.target.clone(),
            tablespace_map: files.tablespace_map,
            warnings,
            is_archive_recovery,
            version: control.version,
        })
    }

    /// The timelines from the first that WAL is read of to the one that is followed.
    pub fn timelines(&self) -> Vec<pagemill_format::backup::TimelinePart> {
        let parts = self.source.history().map_or(&[][..], TimelineHistory::parts);
        parts.iter().copied().filter(|part| part.end.is_none_or(|end| end > self.start)).collect()
    }

    /// True when the files are complete as they lie.
    pub fn is_clean(&self) -> bool {
        matches!(self.case, RecoveryCase::ShutDown) && !self.is_archive_recovery
    }

    /// The records that are replayed, one after the other, to the target or to the end of WAL.
    pub fn walk(&self, storage: &Storage) -> RecoveryWalk<'_> {
        RecoveryWalk::new(storage, self)
    }

    /// All that the WAL holds, the target passed over.
    ///
    /// # Errors
    /// Damage that a server stops at; files that cannot be read.
    pub fn survey(&self, storage: &Storage) -> Result<WalSurvey> {
        WalSurvey::of(storage, self)
    }
}

fn refuse_incremental(directory: &Path, files: &CopyFiles) -> Result<()> {
    match files.label.as_ref().and_then(|label| label.incremental_from) {
        Some((from, _)) => {
            Err(Error::refused(Refusal::Incremental { path: directory.into(), from }))
        }
        None => Ok(()),
    }
}

fn check_archives(storage: &Storage, archives: &[PathBuf]) -> Result<()> {
    for archive in archives {
        if !storage.metadata(archive)?.is_dir {
            return Err(refused(archive, RecoveryCause::ArchiveIsNoDirectory));
        }
    }
    Ok(())
}

/// Where the WAL of a data directory comes from, and along which timelines it is read.
///
/// # Errors
/// As [`RecoveryPlan::new`], for WAL and its histories.
pub(crate) fn wal_source(state: &DirectoryState, options: &PlanOptions) -> Result<WalSource> {
    check_archives(state.storage(), &options.archives)?;
    let wal = WalDirectory::of_cluster(state.path(), state.control())?;
    let is_requested = !options.archives.is_empty();
    let history = history(state, &wal, options, is_requested)?;
    Ok(WalSource::along(&wal, options.archives.clone(), history).within(options.memory))
}

/// The way that is followed: to the timeline asked for, or to that which a server would choose.
fn history(
    state: &DirectoryState,
    wal: &WalDirectory,
    options: &PlanOptions,
    is_requested: bool,
) -> Result<TimelineHistory> {
    let (storage, archives) = (state.storage(), &options.archives);
    let own = own_timeline(state.control());
    let timeline = match options.timeline {
        TimelineChoice::Number(timeline) => timeline,
        TimelineChoice::Automatic if !is_requested => own,
        TimelineChoice::Current => own,
        TimelineChoice::Automatic | TimelineChoice::Latest => {
            WalSource::newest_timeline(storage, wal, archives, own)?
        }
    };
    let history = WalSource::read_history(storage, wal, archives, timeline)?;
    let is_unknown = history.parts().len() == 1 && timeline != own && timeline != 1;
    if is_unknown {
        let history = TimelineHistory::file_name(timeline);
        return Err(refused(&wal.path, RecoveryCause::NoTimeline { timeline, history }));
    }
    Ok(history)
}

/// The timeline that the control file is on.
fn own_timeline(control: &ControlFile) -> u32 {
    control.min_recovery_point_timeline.max(control.checkpoint.timeline)
}

/// The way has to lead over the checkpoint and over all that the files have seen.
fn check_way(
    directory: &Path,
    source: &WalSource,
    control: &ControlFile,
    found: &CheckpointRecord,
) -> Result<()> {
    let Some(history) = source.history() else { return Ok(()) };
    let (timeline, own) = (history.timeline(), found.timeline);
    if history.timeline_at(found.location) != own {
        let left_at = history.part(own).and_then(|part| part.end);
        let checkpoint = found.location;
        let cause = RecoveryCause::OtherTimeline { timeline, checkpoint, own, left_at };
        return Err(refused(directory, cause));
    }
    let (seen, of) = (control.min_recovery_point, control.min_recovery_point_timeline);
    if seen != Lsn(0) && history.timeline_at(Lsn(seen.0 - 1)) != of {
        return Err(refused(directory, RecoveryCause::TimelineTooShort { timeline, seen, of }));
    }
    Ok(())
}

/// Where the WAL of `pg_wal` alone ends: a snapshot is consistent there, before an archive is gone on with.
fn end_of_pg_wal(
    storage: &Storage,
    wal: &WalDirectory,
    control: &ControlFile,
    start: Lsn,
) -> Result<Lsn> {
    let history = WalSource::read_history(storage, wal, &[], own_timeline(control))?;
    let source = WalSource::along(wal, Vec::new(), history);
    let mut reader = WalReader::along(storage, &source, start);
    while reader.next_record()?.is_some() {}
    Ok(reader.end().map_or(start, |end| end.lsn))
}

/// A refusal of what lies at `path`.
fn refused(path: &Path, cause: RecoveryCause) -> Error {
    Error::refused(Refusal::RecoveryPlan { path: path.to_path_buf(), cause: Box::new(cause) })
}
