//! What a copy has made so far, so that it can be removed when the copy is given up.
//!
//! Invariants: a name is noted only once it was made here, so that nothing of anybody else is removed; `pg_control` is
//! removed first, so that what is left of a copy is never taken for a whole one.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pagemill_cluster::Result;
use pagemill_io::Storage;

use super::preconditions::DirectoryState;
use super::survey::Survey;

/// What was made.
#[derive(Debug, Default)]
pub(super) struct CreatedFiles {
    directories: Vec<PathBuf>,
    links: Vec<PathBuf>,
    /// What says that the copy is not finished.
    marks: Vec<PathBuf>,
    control: Option<PathBuf>,
    /// By their number in the survey.
    files: Mutex<Vec<usize>>,
}

impl CreatedFiles {
    /// Makes a directory where there is none.
    pub(super) fn directory(&mut self, storage: &Storage, path: &Path) -> Result<()> {
        storage.create_dir(path)?;
        self.directories.push(path.to_owned());
        Ok(())
    }

    /// Makes the directory of the copy or of a tablespace, unless it is there, with the permissions and the owner of
    /// the one it is a copy of.
    pub(super) fn root(
        &mut self,
        storage: &Storage,
        path: &Path,
        like: &Path,
        found: DirectoryState,
    ) -> Result<()> {
        if found == DirectoryState::Missing {
            self.directory(storage, path)?;
        }
        Ok(storage.set_access_like(path, like)?)
    }

    /// Makes a symbolic link.
    pub(super) fn link(&mut self, storage: &Storage, target: &Path, path: &Path) -> Result<()> {
        storage.make_symlink(target, path)?;
        self.links.push(path.to_owned());
        Ok(())
    }

    /// Makes a file that says that the copy is not finished; it is `temporary` until it is written.
    pub(super) fn mark(
        &mut self,
        storage: &Storage,
        path: PathBuf,
        temporary: PathBuf,
        contents: &str,
    ) -> Result<()> {
        // Noted first: either may be there when this fails, also after the mark itself was made.
        self.marks.extend([path.clone(), temporary.clone()]);
        Ok(storage.create_file(&path, &temporary, contents.as_bytes())?)
    }

    /// Removes what says that the copy is not finished, durably; the one that was made first, by which the others are found,
    /// as the last.
    pub(super) fn remove_marks(&mut self, storage: &Storage) -> Result<()> {
        for mark in self.marks.iter().rev() {
            storage.remove_if_there(mark)?;
            storage.sync_dir_of(mark)?;
        }
        // Not before all are gone: those that are left when this fails are still to be undone.
        self.marks.clear();
        Ok(())
    }

    /// Takes note of a file.
    pub(super) fn file(&self, number: usize) {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).push(number);
    }

    /// Makes `pg_control`.
    pub(super) fn control(
        &mut self,
        storage: &Storage,
        path: &Path,
        contents: &[u8],
    ) -> Result<()> {
        // It may be there, and not known to last, when this fails.
        self.control = Some(path.to_owned());
        let temporary = path.with_extension("pagemill");
        Ok(storage.replace_file(path, &temporary, contents)?)
    }

    /// Removes everything, and tells what is left when something cannot be removed.
    pub(super) fn remove(self, storage: &Storage, survey: &Survey) -> Option<pagemill_io::Error> {
        let files = self.files.into_inner().unwrap_or_else(PoisonError::into_inner);
        let files = files.into_iter().map(|number| survey.target_of(&survey.files[number]));
        let mut failed = None;
        let mut note = |outcome: pagemill_io::Result<()>| {
            if let Err(error) = outcome {
                failed.get_or_insert(error);
            }
        };
        for file in self.control.into_iter() {
            note(storage.remove_if_there(&file));
        }
        files.chain(self.links).for_each(|file| note(storage.remove(&file)));
        self.marks.iter().for_each(|mark| note(storage.remove_if_there(mark)));
        for directory in self.directories.iter().rev() {
            note(storage.remove_dir(directory));
        }
        failed
    }
}
