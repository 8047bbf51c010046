//! The copy of a whole cluster: a data directory of a stopped server with its tablespaces, made so that a server starts on
//! it without recovery.
//!
//! ```text
//!  preconditions ─▶ survey ─▶ space ─▶ directories with marks, links ─▶ files, by all threads
//!      (nothing is made)
//!  ─▶ directories synced ─▶ pg_control ─▶ marks removed
//!
//!  on failure from the directories on, everything that was made is removed
//! ```
//!
//! What a base backup leaves out is left out (`left_out.rs`), but for WAL: as the source is stopped, the segments from its
//! last checkpoint on are all there is to copy (`wal_files.rs`), and unlogged relations come empty, as after a crash
//! (`unlogged.rs`).
//!
//! A copy that a kill cuts short is marked (`unfinished.rs`), and the next one to the same place removes it.
//!
//! Invariants: `global/pg_control` is the last file made, when everything else is durable, so that no server starts on a copy
//! that was cut short; nothing that was there before is changed or removed, but for the permissions of a directory that was
//! named and empty.

mod created_files;
mod error;
mod files;
mod left_out;
mod page_check;
mod preconditions;
mod survey;
mod tablespaces;
mod unfinished;
mod unlogged;
mod wal_files;

use std::path::{Path, PathBuf};

use pagemill_cluster::{Cluster, Error as ClusterError};
use pagemill_format::BLOCK_SIZE;
use pagemill_io::{CopyMethod, HeldLock, Storage};

use self::created_files::CreatedFiles;
use self::error::CopyResult;
use self::files::CopyFiles;
use self::preconditions::DirectoryState;
use self::survey::{PlannedFile, Survey};
use self::tablespaces::Tablespace;
use super::comparison::compare_files;
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::refusal::CopyRefusal;

pub use pagemill_cluster::tablespace_mapping::{MappingError, TablespaceMapping, escaped};
pub use preconditions::Space;
pub use survey::Part;
pub use unfinished::UnfinishedCopy;

const CONTROL: &str = "global/pg_control";
/// More than `pg_control` has.
const CONTROL_LIMIT: u64 = 1 << 16;

/// How the bytes come to the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CopyStrategy {
    /// By sharing blocks where the file system does that, else by copying.
    #[default]
    Auto,
    /// By copying.
    FileCopy,
    /// By sharing blocks, or not at all.
    Reflink,
}

/// What is to be copied where, and how.
#[derive(Debug, Clone)]
pub struct CopyClusterOptions {
    /// The directory of the copy: one that is not there, or is empty.
    pub destination: PathBuf,
    /// Where the tablespaces of the copy lie.
    pub mappings: Vec<TablespaceMapping>,
    /// How the bytes come there.
    pub strategy: CopyStrategy,
    /// Check the pages of relations.
    pub verify: bool,
    /// Threads that copy.
    pub jobs: usize,
    /// Told of every page copied.
    pub progress: Progress,
    /// Asked again and again: true when the copy is to be given up.
    pub interrupted: fn() -> bool,
}

impl CopyClusterOptions {
    fn check_interrupt(&self) -> CopyResult<()> {
        if (self.interrupted)() { Err(CopyRefusal::Interrupted.into()) } else { Ok(()) }
    }
}

/// What a copy did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CopyClusterSummary {
    /// Files that were copied.
    pub files: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Bytes of them that lie in blocks that the source has too, as the file system tells.
    pub shared_bytes: u64,
}

/// A copy that can be made: everything is known of it, and nothing was made.
#[derive(Debug)]
pub struct ClusterCopy {
    cluster: Cluster,
    options: CopyClusterOptions,
    spaces: Vec<Tablespace>,
    found: (DirectoryState, Vec<DirectoryState>),
    survey: Survey,
    /// For each part.
    methods: Vec<CopyMethod>,
    space: Vec<Space>,
    /// `pg_control` as it was.
    control: Vec<u8>,
}

impl ClusterCopy {
    /// Finds out all about the copy of a cluster that no server runs on and that was shut down. Whoever opened it makes sure
    /// that none starts meanwhile.
    ///
    /// # Errors
    /// When something stands in its way: nothing was made.
    pub fn plan(cluster: Cluster, options: CopyClusterOptions) -> Result<Self> {
        let storage = cluster.storage();
        let (source, destination) = (cluster.path(), options.destination.as_path());
        let spaces = tablespaces::find(&cluster, &options.mappings)?;
        let mut others = vec![source];
        others.extend(spaces.iter().map(|space| space.old.as_path()));
        let own = preconditions::check_directory(storage, destination, &others)?;
        others.push(destination);
        let found = (own, preconditions::check_tablespaces(storage, &spaces, &others)?);
        let survey = survey::survey(&cluster, destination, &spaces)?;
        let sample = source.join(CONTROL);
        let methods = methods(storage, &survey, &sample, options.strategy)?;
        let copied = |part: &Part| {
            let mut parts = survey.parts.iter().zip(&methods);
            parts.any(|(other, method)| other.to == part.to && *method != CopyMethod::Reflink)
        };
        let space = preconditions::space(storage, &survey, copied)?;
        let control = storage.read_file(&source.join(CONTROL), CONTROL_LIMIT);
        let control = control.map_err(ClusterError::from)?;
        Ok(Self { options, spaces, found, survey, methods, space, control, cluster })
    }

    /// The data directory and the tablespaces, each with how it is copied.
    pub fn parts(&self) -> impl Iterator<Item = (&Part, CopyMethod)> {
        self.survey.parts.iter().zip(self.methods.iter().copied())
    }

    /// What is needed and free on each file system that bytes are copied to.
    pub fn space(&self) -> &[Space] {
        &self.space
    }

    /// What of the source is no file, directory or tablespace and will not be in the copy, in words.
    pub fn left_out(&self) -> &[String] {
        &self.survey.left_out
    }

    /// Pages that [`Progress`] will tell of.
    pub fn pages(&self) -> u64 {
        self.survey.files.iter().map(|file| file.len.div_ceil(BLOCK_SIZE as u64)).sum()
    }

    /// Makes the copy. When this returns, it is durable.
    ///
    /// # Errors
    /// When it cannot be made; what was made of it was removed again, or the error says so.
    pub fn run(&self) -> Result<CopyClusterSummary> {
        preconditions::check_space(&self.space)?;
        let mut made = CreatedFiles::default();
        let copied = self.make(&mut made);
        let Err(error) = copied else { return copied };
        match made.remove(self.cluster.storage(), &self.survey) {
            None => Err(error),
            Some(left) => {
                let (failure, left) = (Box::new(error), left.to_string());
                let destination = self.options.destination.clone();
                Err(Error::refused(CopyRefusal::NotRemoved { failure, left, destination }))
            }
        }
    }

    fn make(&self, made: &mut CreatedFiles) -> Result<CopyClusterSummary> {
        // Held until the copy is whole or given up.
        let _held = self.make_directories(made)?;
        let (cluster, survey) = (&self.cluster, &self.survey);
        let (methods, options) = (self.methods.as_slice(), &self.options);
        let summary = CopyFiles { cluster, survey, methods, options, made }.run()?;
        if options.verify {
            self.compare()?;
        }
        self.sync_directories()?;
        self.make_control(made)?;
        made.remove_marks(self.cluster.storage())?;
        Ok(summary)
    }

    /// Reads the copy back, and compares it with the source.
    fn compare(&self) -> Result<()> {
        for file in &self.survey.files {
            self.options.check_interrupt()?;
            let (from, to) = (self.survey.source_of(file), self.survey.target_of(file));
            compare_files(self.cluster.storage(), &from, &to)?;
        }
        Ok(())
    }

    fn make_directories(
        &self,
        made: &mut CreatedFiles,
    ) -> pagemill_cluster::Result<Option<HeldLock>> {
        let (storage, destination) = (self.cluster.storage(), self.options.destination.as_path());
        made.root(storage, destination, self.cluster.path(), self.found.0)?;
        for (space, found) in self.spaces.iter().zip(&self.found.1) {
            made.root(storage, &space.new, &space.old, *found)?;
        }
        let held = self.make_marks(made)?;
        for (part, path) in &self.survey.directories {
            let Some(root) = self.survey.parts.get(*part) else { continue };
            let own = path.as_os_str().is_empty() && root.tablespace.is_none();
            if !own {
                made.directory(storage, &joined(&root.to, path))?;
            }
        }
        for space in &self.spaces {
            made.link(storage, &space.new, &destination.join("pg_tblspc").join(&space.link))?;
        }
        Ok(held)
    }

    /// Waits until the device has every name, from the inmost to the outmost.
    fn sync_directories(&self) -> pagemill_cluster::Result<()> {
        let storage = self.cluster.storage();
        for (part, path) in self.survey.directories.iter().rev() {
            if let Some(root) = self.survey.parts.get(*part) {
                storage.sync_dir(&joined(&root.to, path))?;
            }
        }
        for space in &self.spaces {
            storage.sync_dir(&space.new)?;
            storage.sync_dir(preconditions::directory_above(&space.new))?;
        }
        Ok(storage.sync_dir(preconditions::directory_above(&self.options.destination))?)
    }

    /// Makes the copy one that a server starts on.
    fn make_control(&self, made: &mut CreatedFiles) -> CopyResult<()> {
        self.options.check_interrupt()?;
        let storage = self.cluster.storage();
        let from = self.cluster.path().join(CONTROL);
        if storage.read_file(&from, CONTROL_LIMIT)? != self.control {
            return Err(CopyRefusal::SourceChanged(from).into());
        }
        Ok(made.control(storage, &self.options.destination.join(CONTROL), &self.control)?)
    }
}

/// How each part is copied. Blocks can be shared or not, and one file of each shows it.
fn methods(
    storage: &Storage,
    survey: &Survey,
    sample: &Path,
    strategy: CopyStrategy,
) -> CopyResult<Vec<CopyMethod>> {
    if strategy == CopyStrategy::FileCopy {
        return Ok(vec![CopyMethod::ReadWrite; survey.parts.len()]);
    }
    let choose = |(number, part): (usize, &Part)| {
        let largest = survey.files.iter().find(|file| file.part == number && file.len > 0);
        let sample = largest.map_or_else(|| sample.to_owned(), |file| survey.source_of(file));
        let directory = preconditions::existing(storage, &part.to);
        match storage.reflink_refusal(&sample, &directory)? {
            None => Ok(CopyMethod::Reflink),
            Some(_) if strategy == CopyStrategy::Auto => Ok(CopyMethod::ReadWrite),
            Some(cause) => {
                let (from, to) = (part.from.clone(), part.to.clone());
                Err(CopyRefusal::NoReflink { from, to, cause }.into())
            }
        }
    };
    survey.parts.iter().enumerate().map(choose).collect()
}

/// `path` within `root`, which it may be itself.
fn joined(root: &Path, path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() { root.to_owned() } else { root.join(path) }
}

impl Survey {
    /// What a file is copied from.
    fn source_of(&self, file: &PlannedFile) -> PathBuf {
        let path = self.parts[file.part].from.join(&file.path);
        file.source.as_ref().map_or(path.clone(), |name| path.with_file_name(name))
    }

    /// What is made of it.
    fn target_of(&self, file: &PlannedFile) -> PathBuf {
        self.parts[file.part].to.join(&file.path)
    }
}
