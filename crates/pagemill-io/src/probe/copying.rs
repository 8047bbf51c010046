//! Trying the calls that let the kernel copy, or let two files share their blocks.
//!
//! The copy is compared with what was written before it is believed.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use rustix::io::Errno;

use super::errno;
use super::finding::{Call, Finding};
use super::kernel::Kernel;
use super::trial_file::{TRIAL_BYTES, TrialFile, noise};

const COPY: Call =
    Call { name: "copy_file_range", label: "copy_file_range", since: (4, 5), remedy: None };
const CLONE: Call = Call {
    name: "ficlone",
    label: "reflink (FICLONE)",
    since: (4, 5),
    remedy: Some("btrfs offers it, and XFS made with reflink=1"),
};

/// All that is tried here, for where nothing can be.
pub(super) const CALLS: [&Call; 2] = [&COPY, &CLONE];

/// Copies from the first file to the second, and says what was seen.
type Copying = fn(&File, &File) -> io::Result<String>;

/// The findings about copying the own file `trial` to files made in `directory`.
pub(super) fn findings(trial: &TrialFile, directory: &Path, kernel: &Kernel) -> Vec<Finding> {
    let trials: [Copying; 2] = [copy, clone];
    let judged = |(call, copying): (&&Call, Copying)| {
        let outcome = tempfile::tempfile_in(directory).and_then(|target| {
            let seen = copying(&trial.file, &target)?;
            compare(&target)?;
            Ok(seen)
        });
        match outcome {
            Ok(seen) => call.works(seen),
            Err(error) => call.refused(errno::of(&error), kernel),
        }
    };
    CALLS.iter().zip(trials).map(judged).collect()
}

fn copy(source: &File, target: &File) -> io::Result<String> {
    let (mut from, mut to, mut calls) = (0, 0, 0);
    while from < TRIAL_BYTES as u64 {
        let rest = TRIAL_BYTES - usize::try_from(from).unwrap_or(TRIAL_BYTES);
        calls += 1;
        if rustix::fs::copy_file_range(source, Some(&mut from), target, Some(&mut to), rest)? == 0 {
            break;
        }
    }
    Ok(format!("{to} bytes copied in {calls} {}", if calls == 1 { "call" } else { "calls" }))
}

fn clone(source: &File, target: &File) -> io::Result<String> {
    rustix::fs::ioctl_ficlone(target, source)?;
    Ok(format!("{} bytes shared by two files", target.metadata()?.size()))
}

fn compare(target: &File) -> io::Result<()> {
    let mut contents = vec![0; TRIAL_BYTES];
    target.read_exact_at(&mut contents, 0)?;
    if contents == noise() { Ok(()) } else { Err(Errno::IO.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::finding::State;
    use crate::probe::machine::Machine;

    #[test]
    fn a_copy_is_the_file_and_a_clone_is_refused_with_a_reason_or_works() {
        let dir = tempfile::tempdir().unwrap();
        let trial = TrialFile::make(dir.path()).unwrap();
        let found = findings(&trial, dir.path(), &Kernel::running(&Machine::this()));
        let [copied, cloned] = &found[..] else { panic!("{found:?}") };
        assert_eq!((copied.name, cloned.name), ("copy_file_range", "ficlone"));
        assert!(cloned.state == State::Works || cloned.errno.is_some(), "{cloned:?}");
    }
}
