//! What this kernel, file system and sandbox offer, found out by trying, and never assumed.
//!
//! Why: which calls exist depends on the kernel, which of them do something on the file system, and
//! which are let through on the sandbox. A list of versions tells none of that; a trial does.
//! [`run`] tries them on a file without a name in a directory, and [`device`] tells where a path lies.
//!
//! Invariants: every finding about a call comes from having called it, or says that and why it was
//! not tried; no file that existed before is written, and none stays behind.

mod advice;
mod block_device;
mod copying;
pub mod device;
mod direct;
mod errno;
mod finding;
mod kernel;
mod limits;
mod machine;
mod mounts;
mod reads;
mod ring;
mod space;
mod trial_file;

use std::path::{Path, PathBuf};

pub use finding::{Fact, Finding, State};
pub use limits::Limits;

use crate::error::{Error, ErrorKind, Result};
use device::{Device, DeviceDescription};
use finding::Call;
use kernel::Kernel;
use machine::Machine;
use trial_file::TrialFile;

/// All that was found out.
#[derive(Debug, Clone)]
pub struct Report {
    /// The directory, as it was named.
    pub directory: PathBuf,
    /// The kernel's release.
    pub kernel: String,
    /// What calls were tried on.
    pub tried_on: TriedOn,
    /// Where the directory lies.
    pub place: DeviceDescription,
    /// The findings, in groups.
    pub groups: Vec<Group>,
    /// What limits this process.
    pub limits: Limits,
}

/// What calls were tried on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriedOn {
    /// A file made in the directory, which never had a name or lost it at once.
    OwnFile,
    /// A file that was there, because none can be made; it was only read.
    ExistingFile {
        /// That file.
        path: PathBuf,
        /// Why none can be made: the system's message.
        why: String,
    },
    /// Nothing: no file can be made, and none can be read.
    Nothing {
        /// Why none can be made: the system's message.
        why: String,
    },
}

/// Findings that belong together.
#[derive(Debug, Clone)]
pub struct Group {
    /// The name for programs: stable, in snake_case.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// The findings, none when nothing could be tried.
    pub findings: Vec<Finding>,
}

impl Report {
    /// The finding of that name, if it was looked for.
    pub fn finding(&self, name: &str) -> Option<&Finding> {
        self.groups.iter().flat_map(|group| &group.findings).find(|finding| finding.name == name)
    }
}

/// Tries everything in `directory`.
///
/// # Errors
/// Names the directory, when it is none, does not exist or cannot be looked at. That something does
/// not work is no error, and stands in the report.
pub fn run(directory: &Path) -> Result<Report> {
    let found = std::fs::metadata(directory).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::new(ErrorKind::NoDirectory, directory),
        _ => Error::new(error, directory),
    })?;
    if !found.is_dir() {
        return Err(Error::new(ErrorKind::NotADirectory, directory));
    }
    let machine = Machine::this();
    let kernel = Kernel::running(&machine);
    let place = device::describe(directory)?;
    let (trial, tried_on) = trial_file(directory);
    let polled = (!place.devices.is_empty()).then(|| place.devices.iter().any(is_polled));
    let groups = trial
        .map(|trial| {
            groups(&Trials { trial, directory, kernel: &kernel, machine: &machine, polled })
        })
        .unwrap_or_default();
    Ok(Report {
        directory: directory.to_path_buf(),
        kernel: kernel.release,
        tried_on,
        place,
        groups,
        limits: limits::limits(&machine),
    })
}

fn trial_file(directory: &Path) -> (Option<TrialFile>, TriedOn) {
    let error = match TrialFile::make(directory) {
        Ok(trial) => return (Some(trial), TriedOn::OwnFile),
        Err(error) => error,
    };
    let why = error.to_string();
    match TrialFile::existing(directory) {
        Some(trial) => {
            let path = trial.existing.clone().unwrap_or_default();
            (Some(trial), TriedOn::ExistingFile { path, why })
        }
        None => (None, TriedOn::Nothing { why }),
    }
}

fn is_polled(device: &Device) -> bool {
    device.polled == Some(true) || device.members.iter().any(is_polled)
}

/// What trials need.
struct Trials<'a> {
    trial: TrialFile,
    directory: &'a Path,
    kernel: &'a Kernel,
    machine: &'a Machine,
    /// Whether a device below can be polled, if there is one.
    polled: Option<bool>,
}

fn groups(trials: &Trials<'_>) -> Vec<Group> {
    let Trials { trial, directory, kernel, machine, polled } = trials;
    let group = |name, title, findings| Group { name, title, findings };
    let (space, copying) = match trial.is_own() {
        true => (space::findings(directory, kernel), copying::findings(trial, directory, kernel)),
        false => (unwritable(&space::CALLS), unwritable(&copying::CALLS)),
    };
    vec![
        group("reading", "Reading", reads::findings(trial, kernel, *polled)),
        group("advice", "Advice and the page cache", advice::findings(trial, kernel)),
        group("io_uring", "io_uring", ring::findings(trial, kernel, machine)),
        group("direct", "Direct I/O", direct::findings(trial, kernel)),
        group("space", "Space", space),
        group("copying", "Copying", copying),
    ]
}

fn unwritable(calls: &[&Call]) -> Vec<Finding> {
    calls.iter().map(|call| call.untried("no file can be made in this directory")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_gives_findings_in_every_group_and_stays_empty() {
        let dir = tempfile::tempdir().unwrap();
        let report = run(dir.path()).unwrap();
        assert_eq!(report.tried_on, TriedOn::OwnFile);
        assert!(report.groups.iter().all(|group| !group.findings.is_empty()), "{report:?}");
        assert_eq!(report.finding("pread").unwrap().state, State::Works);
        assert!(report.finding("no_such_call").is_none());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn names_for_programs_are_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let report = run(dir.path()).unwrap();
        let findings = report.groups.iter().flat_map(|group| &group.findings);
        let mut names: Vec<&str> = findings.map(|finding| finding.name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn what_is_no_directory_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let absent = run(&path).unwrap_err().to_string();
        assert!(absent.ends_with("file: no such directory: check the path"), "{absent}");
        std::fs::write(&path, "x").unwrap();
        let file = run(&path).unwrap_err().to_string();
        assert!(file.contains("not a directory"), "{file}");
    }
}
