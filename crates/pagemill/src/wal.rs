//! `pagemill wal show`: the records of a cluster's WAL, or of segment files.
//!
//! Where WAL ends is told when it is asked for, and when it ends before it should; damage is an error.

use std::path::{Path, PathBuf};

use anyhow::Result;
use pagemill_engine::inspect::control_file;
use pagemill_format::wal::Record;
use pagemill_format::{Lsn, TransactionId};
use pagemill_wal::{Damage, Error, WalDirectory, WalReader};

use crate::failure::{Outcome, UsageError, say};
use crate::session::Session;
use crate::stats::Work;
use crate::wal_arguments::{ShowArguments, WalArguments, WalCommand, lsn};
use crate::wal_summary::Summary;
use crate::wal_text;

pub(crate) fn run(arguments: &WalArguments) -> Result<Outcome> {
    match &arguments.command {
        WalCommand::Show(arguments) => show(arguments),
    }
}

/// Records that begin at `start` or behind, and before `end`.
struct Stretch {
    directory: WalDirectory,
    start: Lsn,
    end: Option<Lsn>,
}

fn show(arguments: &ShowArguments) -> Result<Outcome> {
    let session = Session::new(&arguments.common)?;
    let mut shown = Shown {
        arguments,
        left: arguments.limit.unwrap_or(u64::MAX),
        summary: arguments.summary.map(Summary::new),
        output: session.standard_output()?,
        text: String::new(),
    };
    for stretch in stretches(&session, arguments)? {
        shown.stretch(&session, &stretch)?;
    }
    if let Some(summary) = shown.summary.take() {
        shown
            .output
            .write_all(summary.text().as_bytes())
            .map_err(pagemill_engine::Error::Output)?;
    }
    session.finish(&Work::default());
    Ok(Outcome::Done)
}

struct Shown<'a> {
    arguments: &'a ShowArguments,
    /// Records to be shown at most.
    left: u64,
    summary: Option<Summary>,
    output: pagemill_io::Output,
    text: String,
}

impl Shown<'_> {
    fn stretch(&mut self, session: &Session<'_>, stretch: &Stretch) -> Result<()> {
        let mut reader = WalReader::from(session.storage(), &stretch.directory, stretch.start)?;
        let version = stretch.directory.version;
        while self.left > 0 {
            let Some(found) = reader.next_record()? else { break };
            if stretch.end.is_some_and(|end| found.lsn >= end) {
                return Ok(());
            }
            let record =
                found.parse().map_err(|error| damaged(&stretch.directory, found.lsn, &error))?;
            if !self.is_wanted(&record) {
                continue;
            }
            self.left -= 1;
            match &mut self.summary {
                Some(summary) => summary.add(&record, version),
                None => {
                    self.text.clear();
                    wal_text::push(
                        &record,
                        found.lsn,
                        version,
                        self.arguments.bkp_details,
                        &mut self.text,
                    );
                    let written = self.output.write_all(self.text.as_bytes());
                    written.map_err(pagemill_engine::Error::Output)?;
                }
            }
        }
        if let Some(end) = reader.end() {
            match stretch.end {
                Some(wanted) if end.lsn < wanted => say(end),
                _ => session.tell(|| end.to_string()),
            }
        }
        Ok(())
    }

    fn is_wanted(&self, record: &Record<'_>) -> bool {
        let ShowArguments { rmgr, xid, relation, .. } = self.arguments;
        let header = &record.header;
        (rmgr.is_empty() || rmgr.contains(&header.resource_manager))
            && xid.is_none_or(|xid| header.xid == TransactionId(xid))
            && relation
                .is_none_or(|wanted| record.blocks.iter().any(|block| block.locator == wanted))
    }
}

/// A record whose CRC is right, and whose parts do not fit together.
fn damaged(directory: &WalDirectory, lsn: Lsn, error: &pagemill_format::Error) -> Error {
    let segment = directory.segment_of(lsn);
    let (path, offset) = (directory.file_of(segment), lsn.0 - segment.start().0);
    Error::Damage(Box::new(Damage { path, offset, lsn, finding: error.to_string() }))
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
    Ok(Stretch { directory, start: start.unwrap_or(control.checkpoint.redo), end })
}

/// Each file's part of the WAL; files that follow each other make one.
fn of_files(session: &Session<'_>, arguments: &ShowArguments) -> Result<Vec<Stretch>> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for file in arguments.places.iter().map(PathBuf::from) {
        let (mut directory, segment) =
            WalDirectory::of_segment(session.storage(), Path::new(&file))?;
        directory.timeline = arguments.timeline.unwrap_or(directory.timeline);
        match stretches.last_mut() {
            Some(last) if last.directory == directory && last.end == Some(segment.start()) => {
                last.end = Some(segment.end());
            }
            _ => stretches.push(Stretch {
                directory,
                start: segment.start(),
                end: Some(segment.end()),
            }),
        }
    }
    Ok(stretches)
}
