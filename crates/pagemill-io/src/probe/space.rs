//! Trying the calls that allocate and free the space of files.
//!
//! Each is tried on a file of its own, and believed only when the file's size, its allocated bytes and
//! what is read from it are what the call is for.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use pagemill_sys::posix_fallocate;
use rustix::fs::FallocateFlags;

use super::errno;
use super::finding::{Call, Finding, State};
use super::kernel::Kernel;

/// Bytes that a trial allocates.
const SPACE: u64 = 1 << 20;

/// Bytes that a trial frees, or makes zeros of, from the start: one of the larger blocks of file systems.
const FREED: u64 = 1 << 16;

const REMEDY: Option<&str> = Some("ext4, XFS and btrfs offer it");
const PLAIN: Call = Call { name: "fallocate", label: "fallocate", since: (2, 6), remedy: REMEDY };
const KEEP_SIZE: Call = Call {
    name: "fallocate_keep_size",
    label: "fallocate KEEP_SIZE",
    since: (2, 6),
    remedy: REMEDY,
};
const PUNCH_HOLE: Call = Call {
    name: "fallocate_punch_hole",
    label: "fallocate PUNCH_HOLE",
    since: (2, 6),
    remedy: REMEDY,
};
const ZERO_RANGE: Call = Call {
    name: "fallocate_zero_range",
    label: "fallocate ZERO_RANGE",
    since: (3, 15),
    remedy: REMEDY,
};
const POSIX: Call =
    Call { name: "posix_fallocate", label: "posix_fallocate", since: (2, 6), remedy: REMEDY };

/// All that is tried here, for where nothing can be.
pub(super) const CALLS: [&Call; 5] = [&PLAIN, &KEEP_SIZE, &PUNCH_HOLE, &ZERO_RANGE, &POSIX];

/// What a trial says of a call that the kernel accepted.
type Seen = (State, String);

/// The findings about space, from files made in `directory`.
pub(super) fn findings(directory: &Path, kernel: &Kernel) -> Vec<Finding> {
    let trials: [fn(&File) -> io::Result<Seen>; 5] =
        [plain, keep_size, punch_hole, zero_range, posix];
    let judged =
        |(call, trial): (&&Call, fn(&File) -> io::Result<Seen>)| match tempfile::tempfile_in(
            directory,
        )
        .and_then(|file| trial(&file))
        {
            Ok((state, detail)) => call.found(state, detail),
            Err(error) => call.refused(errno::of(&error), kernel),
        };
    CALLS.iter().zip(trials).map(judged).collect()
}

/// Size, and allocated bytes.
fn sizes(file: &File) -> io::Result<(u64, u64)> {
    let found = file.metadata()?;
    Ok((found.size(), found.blocks() * 512))
}

fn plain(file: &File) -> io::Result<Seen> {
    rustix::fs::fallocate(file, FallocateFlags::empty(), 0, SPACE)?;
    Ok(match sizes(file)? {
        (SPACE, allocated) if allocated >= SPACE => {
            (State::Works, format!("{allocated} bytes allocated without writing them"))
        }
        (size, allocated) => wrong(size, allocated),
    })
}

fn keep_size(file: &File) -> io::Result<Seen> {
    rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, SPACE)?;
    Ok(match sizes(file)? {
        (0, allocated) if allocated >= SPACE => {
            (State::Works, format!("{allocated} bytes allocated behind the end of the file"))
        }
        (size, allocated) => wrong(size, allocated),
    })
}

fn punch_hole(file: &File) -> io::Result<Seen> {
    let (before, after) = with_start_cleared(file, FallocateFlags::PUNCH_HOLE)?;
    Ok(match before.saturating_sub(after) {
        0 => (State::NoEffect, "the bytes read as zeros, but no space was given back".to_owned()),
        freed => (State::Works, format!("{freed} bytes given back, and they read as zeros")),
    })
}

fn zero_range(file: &File) -> io::Result<Seen> {
    let (before, after) = with_start_cleared(file, FallocateFlags::ZERO_RANGE)?;
    let kept = if after < before { ", given back like a hole's" } else { ", their space kept" };
    Ok((State::Works, format!("{FREED} bytes read as zeros{kept}")))
}

/// Writes the file full, and lets the call make zeros of its start; the allocated bytes before and after.
fn with_start_cleared(file: &File, flags: FallocateFlags) -> io::Result<(u64, u64)> {
    file.write_all_at(&vec![1; usize::try_from(SPACE).unwrap_or(0)], 0)?;
    file.sync_data()?;
    let before = sizes(file)?.1;
    rustix::fs::fallocate(file, flags | FallocateFlags::KEEP_SIZE, 0, FREED)?;
    file.sync_data()?;
    let mut start = vec![7; usize::try_from(FREED).unwrap_or(0) + 1];
    file.read_exact_at(&mut start, 0)?;
    let (last, zeros) = start.split_last().ok_or(io::ErrorKind::UnexpectedEof)?;
    if *last != 1 || zeros.iter().any(|&byte| byte != 0) {
        return Err(io::Error::from(rustix::io::Errno::IO));
    }
    Ok((before, sizes(file)?.1))
}

/// The C library's call beside the kernel's: what works here and not there was written by the library.
fn posix(file: &File) -> io::Result<Seen> {
    let kernels = rustix::fs::fallocate(file, FallocateFlags::empty(), 0, SPACE);
    posix_fallocate(file, SPACE, SPACE)?;
    Ok(match kernels {
        Ok(()) => (State::Works, "by the kernel's fallocate".to_owned()),
        Err(error) => {
            let why = errno::name(error);
            let seen = format!("by writing into every block: the kernel's fallocate gives {why}");
            (State::Emulated, seen)
        }
    })
}

fn wrong(size: u64, allocated: u64) -> Seen {
    let seen = format!("accepted, but the file has {size} bytes and {allocated} are allocated");
    (State::NoEffect, seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::machine::Machine;

    #[test]
    fn every_call_gets_its_finding_and_the_directory_stays_empty() {
        let dir = tempfile::tempdir().unwrap();
        let found = findings(dir.path(), &Kernel::running(&Machine::this()));
        let names: Vec<&str> = found.iter().map(|finding| finding.name).collect();
        assert_eq!(names, CALLS.map(|call| call.name));
        assert!(found.iter().all(|finding| !finding.detail.is_empty()), "{found:?}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
