//! What must hold before anything is made: a place for the copy that has nothing in it, and space for it.
//!
//! Invariant: nothing is made or changed here, but for files that are gone when a trial of the file system is over.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pagemill_io::Storage;

use super::error::CopyResult as Result;
use super::survey::{Part, PlannedFile, Survey};
use super::tablespaces::Tablespace;
use crate::refusal::{CopyRefusal, DirectoryCause};

/// What a file takes is a multiple of this many bytes, on most file systems.
const UNIT: u64 = 4096;
/// Files from this size on are asked for holes, in bytes.
const MAY_HAVE_HOLES: u64 = 1 << 20;

/// Whether a directory of the copy is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DirectoryState {
    Missing,
    Empty,
}

/// Space that the file system of a directory has to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    /// The directory.
    pub directory: PathBuf,
    /// What its files and those of the other directories on the file system will take, in bytes.
    pub needed: u64,
    /// What there is, in bytes.
    pub free: u64,
}

/// Makes sure that a directory can be one of the copy: it is missing, and the one above it is there, or it is empty;
/// and it lies neither in the source nor in another one of the copy.
///
/// # Errors
/// Says what stands in the way.
pub(super) fn check_directory(
    storage: &Storage,
    path: &Path,
    outside: &[&Path],
) -> Result<DirectoryState> {
    let refuse = |cause| {
        let path = path.to_owned();
        Err(CopyRefusal::Directory { path, cause }.into())
    };
    let above = directory_above(path);
    if !storage.exists(above)? {
        return refuse(DirectoryCause::NoParent(above.to_owned()));
    }
    for other in outside {
        if is_within(storage, path, other) {
            return refuse(DirectoryCause::Within((*other).to_owned()));
        }
    }
    if !storage.exists(path)? {
        return Ok(DirectoryState::Missing);
    }
    if !storage.metadata(path)?.is_dir {
        return refuse(DirectoryCause::File);
    }
    let names = storage.read_dir(path)?;
    if names.is_empty() {
        return Ok(DirectoryState::Empty);
    }
    let names: Vec<_> = names.iter().map(|entry| entry.name.to_string_lossy()).collect();
    let unfinished = names.iter().any(|name| LIKE_A_COPY.iter().any(|like| name.starts_with(like)))
        && !storage.exists(&path.join("global/pg_control"))?;
    refuse(if unfinished { DirectoryCause::Unfinished } else { DirectoryCause::NotEmpty })
}

/// What names of a data directory or of a tablespace begin with.
const LIKE_A_COPY: [&str; 4] = ["PG_", "pg_", "base", "global"];

/// The directory above, which need not be named.
pub(super) fn directory_above(path: &Path) -> &Path {
    path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// True when a path, of which only the last part may be missing, lies in a directory or is the directory.
fn is_within(storage: &Storage, path: &Path, directory: &Path) -> bool {
    let above = storage.resolve(directory_above(path));
    let name = path.file_name().unwrap_or_default(); // default: `..` and `/` are there, and were resolved
    let real = storage.resolve(path).or(above.map(|above| above.join(name)));
    let within = |directory: PathBuf| real.is_ok_and(|real| real.starts_with(directory));
    storage.resolve(directory).or_else(|_| std::path::absolute(directory)).is_ok_and(within)
}

/// Makes sure that the directories of all tablespaces can be those of the copy.
///
/// # Errors
/// As [`check_directory`].
pub(super) fn check_tablespaces(
    storage: &Storage,
    spaces: &[Tablespace],
    outside: &[&Path],
) -> Result<Vec<DirectoryState>> {
    let check = |(number, space): (usize, &Tablespace)| {
        let others = spaces.iter().enumerate().filter(|(other, _)| *other != number);
        let others = others.map(|(_, other)| other.new.as_path());
        let outside: Vec<_> = outside.iter().copied().chain(others).collect();
        check_directory(storage, &space.new, &outside)
    };
    spaces.iter().enumerate().map(check).collect()
}

/// The directory that is there, of one that may be missing.
pub(super) fn existing(storage: &Storage, path: &Path) -> PathBuf {
    let there = path.ancestors().filter(|path| !path.as_os_str().is_empty());
    let mut there = there.filter(|path| storage.exists(path).unwrap_or(false));
    there.next().unwrap_or(Path::new(".")).to_owned()
}

/// What each file system will have to hold, and has.
///
/// # Errors
/// When the system does not tell.
pub(super) fn space(
    storage: &Storage,
    survey: &Survey,
    counts: impl Fn(&Part) -> bool,
) -> Result<Vec<Space>> {
    let mut systems: BTreeMap<u64, Space> = BTreeMap::new();
    for (number, part) in survey.parts.iter().enumerate().filter(|(_, part)| counts(part)) {
        let directory = existing(storage, &part.to);
        let Some(left) = storage.space_left(&directory)? else { continue };
        let files = survey.files.iter().filter(|file| file.part == number);
        let mut needed = 0;
        for file in files {
            needed += space_of(storage, survey, file)?.next_multiple_of(UNIT);
        }
        let directories = survey.directories.iter().filter(|(part, _)| *part == number).count();
        let new = || Space { directory: part.to.clone(), needed: 0, free: left.bytes };
        systems.entry(left.file_system).or_insert_with(new).needed +=
            needed + directories as u64 * UNIT;
    }
    Ok(systems.into_values().collect())
}

/// What a file takes, holes left out. Nobody looks for them in a small one.
fn space_of(storage: &Storage, survey: &Survey, file: &PlannedFile) -> Result<u64> {
    if file.len < MAY_HAVE_HOLES {
        return Ok(file.len);
    }
    Ok(storage.bytes_without_holes(&survey.source_of(file))?)
}

/// Refuses what does not fit.
///
/// # Errors
/// Names the directory, what is needed and what there is.
pub(super) fn check_space(spaces: &[Space]) -> Result<()> {
    match spaces.iter().find(|space| space.needed > space.free) {
        None => Ok(()),
        Some(space) => {
            let (path, needed, free) = (space.directory.clone(), space.needed, space.free);
            Err(CopyRefusal::NoSpace { path, needed, free }.into())
        }
    }
}
