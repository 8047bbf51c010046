//! `pagemill wal show`: the records of a cluster's WAL, or of segment files.
//!
//! Where WAL ends is told when that is asked for. Where it ends before it should, not all that was wanted could
//! be shown, and the exit status tells so; damage is an error.

use std::path::{Path, PathBuf};

use anyhow::Result;
use pagemill_engine::inspect::control_file;
use pagemill_format::backup::BackupLabel;
use pagemill_format::wal::{LONG_HEADER_BYTES, PAGE_BYTES, Record};
use pagemill_format::{Lsn, PgVersion, TransactionId};
use pagemill_io::Storage;
use pagemill_wal::{
    Damage, EndOfWal, Error, Finding, WalDirectory, WalReader, WalRecord, WalSource,
};

use crate::failure::{Completion, UsageError, complain};
use crate::session::Session;
use crate::session::stats::Work;
use crate::text_table::printable;
use crate::wal_arguments::{ShowArguments, WalArguments, WalCommand, lsn};
use crate::wal_block::BlockFilter;
use crate::wal_plan;
use crate::wal_summary::Summary;
use crate::wal_text;

pub(crate) fn run(arguments: &WalArguments) -> Result<Completion> {
    match &arguments.command {
        WalCommand::Show(arguments) => show(arguments),
        WalCommand::Plan(arguments) => wal_plan::run(arguments),
    }
}

/// A label is one page at most (`do_pg_backup_start`); a history file adds three lines.
const MAX_NOTES_BYTES: u64 = 64 << 10;

/// Records that begin at `start` or behind, and before `end`.
struct Stretch {
    directory: WalDirectory,
    /// Where WAL comes from, if not from the directory alone.
    source: Option<WalSource>,
    start: Lsn,
    end: Option<Lsn>,
    /// Up to where there has to be WAL.
    needed: Lsn,
    /// Nothing tells up to where there is WAL but the files themselves.
    is_of_files: bool,
}

fn show(arguments: &ShowArguments) -> Result<Completion> {
    let session = Session::new(&arguments.common)?;
    let mut shown = Shown {
        arguments,
        left: arguments.limit.unwrap_or(u64::MAX),
        block: BlockFilter::of(arguments)?,
        summary: arguments.summary.map(Summary::new),
        output: session.standard_output()?,
        text: String::new(),
    };
    let mut outcome = Completion::Done;
    for stretch in stretches(&session, arguments)? {
        if shown.stretch(&session, &stretch)? == Completion::Incomplete {
            outcome = Completion::Incomplete;
        }
    }
    if let Some(summary) = shown.summary.take() {
        shown
            .output
            .write_all(summary.text().as_bytes())
            .map_err(pagemill_engine::Error::Output)?;
    }
    session.finish(&Work::default());
    Ok(outcome)
}

struct Shown<'a> {
    arguments: &'a ShowArguments,
    /// Records to be shown at most.
    left: u64,
    block: Option<BlockFilter>,
    summary: Option<Summary>,
    output: pagemill_io::Output,
    text: String,
}

impl Shown<'_> {
    fn stretch(&mut self, session: &Session<'_>, stretch: &Stretch) -> Result<Completion> {
        let mut reader = match &stretch.source {
            Some(source) => WalReader::from_along(session.storage(), source, stretch.start)?,
            None => WalReader::from(session.storage(), &stretch.directory, stretch.start)?,
        };
        while self.left > 0 {
            let Some(found) = reader.next_record()? else { break };
            if stretch.end.is_some_and(|end| found.lsn >= end) {
                return Ok(Completion::Done);
            }
            let record =
                found.parse().map_err(|error| damaged(&stretch.directory, found.lsn, &error))?;
            if self.is_wanted(&record) {
                self.left -= 1;
                self.show(&found, &record, stretch.directory.version)?;
            }
        }
        match reader.end() {
            Some(end) if stretch.lacks(end) => {
                complain(end);
                Ok(Completion::Incomplete)
            }
            end => {
                end.into_iter().for_each(|end| session.tell(|| end.to_string()));
                Ok(Completion::Done)
            }
        }
    }

    fn show(
        &mut self,
        found: &WalRecord<'_>,
        record: &Record<'_>,
        version: PgVersion,
    ) -> Result<()> {
        if let Some(summary) = &mut self.summary {
            summary.add(record, version);
            return Ok(());
        }
        self.text.clear();
        wal_text::push(record, found.lsn, version, &mut self.text);
        wal_text::push_blocks(record, self.arguments.bkp_details, &mut self.text);
        if let Some(block) = &self.block {
            block.push(found, record, version, &mut self.text);
        }
        let written = self.output.write_all(self.text.as_bytes());
        Ok(written.map_err(pagemill_engine::Error::Output)?)
    }

    fn is_wanted(&self, record: &Record<'_>) -> bool {
        let ShowArguments { rmgr, xid, relation, .. } = self.arguments;
        let header = &record.header;
        (rmgr.is_empty() || rmgr.contains(&header.resource_manager))
            && xid.is_none_or(|xid| header.xid == TransactionId(xid))
            && self.block.as_ref().is_none_or(|block| block.is_of(record))
            && relation
                .filter(|_| self.block.is_none())
                .is_none_or(|wanted| record.blocks.iter().any(|block| block.locator == wanted))
    }
}

impl Stretch {
    /// True when there should be WAL behind the end.
    fn lacks(&self, end: &EndOfWal) -> bool {
        // The next record would begin behind the header of the page.
        let is_page_start = end.lsn.0.is_multiple_of(PAGE_BYTES as u64);
        let next = end.lsn.0 + if is_page_start { LONG_HEADER_BYTES as u64 } else { 0 };
        next < self.needed.0 || self.is_of_files && end.page_behind.is_some()
    }
}

/// A record whose CRC is right, and whose parts do not fit together.
fn damaged(directory: &WalDirectory, lsn: Lsn, error: &pagemill_format::Error) -> Error {
    let segment = directory.segment_of(lsn);
    let (path, offset) = (directory.file_of(segment), lsn.0 - segment.start().0);
    Error::Damage(Box::new(Damage {
        path,
        offset,
        lsn,
        finding: Finding::Parts(error.to_string()),
    }))
}

fn stretches(session: &Session<'_>, arguments: &ShowArguments) -> Result<Vec<Stretch>> {
    let places: Vec<Option<Lsn>> =
        arguments.places.iter().map(|place| lsn(place.to_str().unwrap_or_default())).collect();
    match places[..] {
        [] => Ok(vec![of_cluster(session, arguments, None, None)?]),
        [Some(start)] => Ok(vec![of_cluster(session, arguments, Some(start), None)?]),
        [Some(start), Some(end)] => {
            Ok(vec![of_cluster(session, arguments, Some(start), Some(end))?])
        }
        _ if places.iter().all(Option::is_none) => of_files(session, arguments),
        _ => {
            let reason = "name a START and an END, or files, not both";
            Err(UsageError(reason.into()).into())
        }
    }
}

fn of_cluster(
    session: &Session<'_>,
    arguments: &ShowArguments,
    start: Option<Lsn>,
    end: Option<Lsn>,
) -> Result<Stretch> {
    let path = session.directory()?;
    let control = control_file(session.storage(), path)?;
    let mut directory = WalDirectory::of_cluster(path, &control)?;
    directory.timeline = arguments.timeline.unwrap_or(directory.timeline);
    // The checkpoint that the control file names has to be there.
    let is_current = directory.timeline == control.checkpoint.timeline;
    let checkpoint = if is_current { Lsn(control.checkpoint_location.0 + 1) } else { Lsn(0) };
    let storage = session.storage();
    let source = source(storage, &directory, arguments, session.archives())?;
    let start = match (start, &arguments.block) {
        (Some(start), _) => start,
        (None, None) => control.checkpoint.redo,
        (None, Some(_)) => {
            let of_directory = WalSource::of_directory(&directory);
            let source = source.as_ref().unwrap_or(&of_directory);
            source.oldest_before(storage, control.checkpoint.redo)?
        }
    };
    let needed = end.unwrap_or(checkpoint);
    Ok(Stretch { directory, source, start, end, needed, is_of_files: false })
}

/// The archives that were named, and `pg_wal`.
fn source(
    storage: &Storage,
    directory: &WalDirectory,
    arguments: &ShowArguments,
    of_backup: &[PathBuf],
) -> Result<Option<WalSource>> {
    let archives = &[&arguments.wal, of_backup].concat();
    if archives.is_empty() {
        return Ok(None);
    }
    let timeline = match arguments.timeline {
        Some(timeline) => timeline,
        None => WalSource::newest_timeline(storage, directory, archives, directory.timeline)?,
    };
    let history = WalSource::read_history(storage, directory, archives, timeline)?;
    Ok(Some(WalSource::along(directory, archives.clone(), history)))
}

/// What an archive keeps beside segments of the backups that need them: told, as it has no records.
fn refuse_notes_on_backups(storage: &Storage, file: &Path) -> Result<()> {
    let name = file.file_name().unwrap_or_default().as_encoded_bytes();
    let what = match name {
        b"backup_label" => "the label of a backup",
        _ if name.ends_with(b".backup") => "a backup history file",
        _ => return Ok(()),
    };
    let Ok(label) = BackupLabel::parse(&storage.read_file(file, MAX_NOTES_BYTES)?) else {
        return Ok(());
    };
    let called = label.label.unwrap_or_default();
    let called = printable(called.as_bytes());
    let end = label.end.map_or(String::new(), |end| format!(" to {}", end.lsn));
    let (path, redo, timeline) = (file.display(), label.redo, label.timeline);
    let reason = format!(
        "{path}: {what}, which has no records: the WAL of backup \"{called}\" is that from {redo}{end} on timeline {timeline}"
    );
    Err(UsageError(reason).into())
}

/// Each file's part of the WAL; files that follow each other make one.
fn of_files(session: &Session<'_>, arguments: &ShowArguments) -> Result<Vec<Stretch>> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for file in arguments.places.iter().map(PathBuf::from) {
        refuse_notes_on_backups(session.storage(), &file)?;
        let (mut directory, segment) =
            WalDirectory::of_segment(session.storage(), Path::new(&file))?;
        directory.timeline = arguments.timeline.unwrap_or(directory.timeline);
        match stretches.last_mut() {
            Some(last) if last.directory == directory && last.end == Some(segment.start()) => {
                last.end = Some(segment.end());
                last.needed = segment.start();
            }
            _ => stretches.push(Stretch {
                directory,
                source: None,
                start: segment.start(),
                end: Some(segment.end()),
                needed: segment.start(),
                is_of_files: true,
            }),
        }
    }
    Ok(stretches)
}
