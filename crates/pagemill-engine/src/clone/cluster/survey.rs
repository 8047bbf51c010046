//! The survey: everything that a copy will consist of, found before anything is made.
//!
//! Invariants: a directory comes before what is in it; `global/pg_control` is not among the files, as it is made last;
//! paths are those within the part, so that many files take little memory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use pagemill_cluster::Cluster;
use pagemill_format::{BlockNumber, Fork, Oid, SEGMENT_BLOCKS};
use pagemill_io::{Node, Storage};

use super::error::CopyResult as Result;
use super::left_out::{self, RelationFile};
use super::tablespaces::{Tablespace, version_directory};
use super::unlogged::UnloggedRelations;
use super::wal_files::WalFiles;

/// The data directory, or a tablespace outside of it.
#[derive(Debug, Clone)]
pub struct Part {
    /// The tablespace; `None` for the data directory.
    pub tablespace: Option<Oid>,
    /// What is copied.
    pub from: PathBuf,
    /// Where it is copied to.
    pub to: PathBuf,
    /// How many files.
    pub files: u64,
    /// How many bytes are in them.
    pub bytes: u64,
}

/// A file to be made.
#[derive(Debug)]
pub(super) struct PlannedFile {
    pub(super) part: usize,
    /// Within the part.
    pub(super) path: PathBuf,
    /// What it is copied from, if that has another name in the directory.
    pub(super) source: Option<OsString>,
    pub(super) len: u64,
    /// Which pages are in it, where it is a relation's.
    pub(super) pages: Option<(Fork, BlockNumber)>,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) parts: Vec<Part>,
    /// Part, and path within it.
    pub(super) directories: Vec<(usize, PathBuf)>,
    pub(super) files: Vec<PlannedFile>,
    /// What cannot be copied and is left out, in words.
    pub(super) left_out: Vec<String>,
}

impl Survey {
    /// What there will be in the directory of the copy itself.
    pub(super) fn top_entries(&self) -> Vec<String> {
        let of_data_directory = self.directories.iter().filter(|(part, _)| *part == 0);
        let files = self.files.iter().filter(|file| file.part == 0).map(|file| &file.path);
        let paths = of_data_directory.map(|(_, path)| path).chain(files);
        let mut names: Vec<_> = paths
            .filter(|path| path.components().count() == 1)
            .filter_map(|path| path.to_str().filter(|name| !name.contains('\n')))
            .map(str::to_owned)
            .collect();
        names.sort_unstable();
        names
    }
}

/// What of a directory is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contents {
    All,
    Wal,
    /// Links of tablespaces are made by whoever knows where they lead.
    Tablespaces,
    Nothing,
}

struct Walk<'a> {
    cluster: &'a Cluster,
    storage: &'a Storage,
    version: String,
    /// Directories of tablespaces, as the system names them.
    elsewhere: Vec<PathBuf>,
    survey: Survey,
    /// Directories that are yet to be read.
    waiting: Vec<PathBuf>,
}

/// Finds everything.
///
/// # Errors
/// When a directory cannot be read, or the WAL of the last checkpoint is missing.
pub(super) fn survey(cluster: &Cluster, to: &Path, spaces: &[Tablespace]) -> Result<Survey> {
    let elsewhere = spaces.iter().filter_map(|space| cluster.storage().resolve(&space.old).ok());
    let elsewhere = elsewhere.collect();
    let (storage, version) = (cluster.storage(), version_directory(cluster));
    let survey = Survey::default();
    let waiting = Vec::new();
    let mut walk = Walk { cluster, storage, version, elsewhere, survey, waiting };
    walk.part(None, cluster.path().to_owned(), to.to_owned())?;
    for space in spaces {
        let within = |root: &Path| root.join(&walk.version);
        let (from, to) = (within(&space.old), within(&space.new));
        walk.part(Some(space.oid), from, to)?;
    }
    let mut survey = walk.survey;
    // The largest first: at the end all threads have something to do.
    survey.files.sort_by_key(|file| std::cmp::Reverse(file.len));
    Ok(survey)
}

impl Walk<'_> {
    fn part(&mut self, tablespace: Option<Oid>, from: PathBuf, to: PathBuf) -> Result<()> {
        self.survey.parts.push(Part { tablespace, from, to, files: 0, bytes: 0 });
        self.waiting.push(PathBuf::new());
        while let Some(directory) = self.waiting.pop() {
            self.directory(directory)?;
        }
        Ok(())
    }

    fn number(&self) -> usize {
        self.survey.parts.len() - 1
    }

    fn root(&self) -> PathBuf {
        let part = self.survey.parts.last();
        part.expect("a part was begun").from.clone() // infallible: walked are the directories of one
    }

    fn is_data_directory(&self) -> bool {
        self.survey.parts.len() == 1
    }

    fn directory(&mut self, directory: PathBuf) -> Result<()> {
        let (here, contents) = (self.root().join(&directory), self.contents(&directory));
        self.survey.directories.push((self.number(), directory.clone()));
        if contents == Contents::Nothing {
            return Ok(());
        }
        let mut names: Vec<_> =
            self.storage.read_dir(&here)?.into_iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        match contents {
            Contents::Wal => self.wal(&directory, &here, &names),
            _ if self.is_of_database(&directory) => self.relations(&directory, &here, &names),
            _ => names.iter().try_for_each(|name| self.entry(&directory, &here, name)),
        }
    }

    /// What of a directory is copied.
    fn contents(&self, directory: &Path) -> Contents {
        let name = directory.to_str().filter(|_| self.is_data_directory());
        match name {
            Some("pg_wal") => Contents::Wal,
            Some("pg_wal/archive_status" | "pg_wal/summaries") => Contents::Nothing,
            Some("pg_tblspc") => Contents::Tablespaces,
            Some(name) if left_out::is_emptied(name) => Contents::Nothing,
            _ => Contents::All,
        }
    }

    /// True for `base/OID`, and in a tablespace for `OID` below its version's directory.
    fn is_of_database(&self, directory: &Path) -> bool {
        let is_number =
            |name: &std::ffi::OsStr| name.to_str().is_some_and(|name| name.parse::<u32>().is_ok());
        let above = directory.parent().unwrap_or(Path::new(""));
        let in_place = above.file_name().is_some_and(|name| name == self.version.as_str());
        let within = if self.is_data_directory() {
            above == Path::new("base") || in_place
        } else {
            above == Path::new("")
        };
        within && directory.file_name().is_some_and(is_number)
    }

    /// The files of relations: unlogged ones are made from their init forks, and temporary ones are left out.
    fn relations(&mut self, directory: &Path, here: &Path, names: &[OsString]) -> Result<()> {
        let unlogged = UnloggedRelations::among(names);
        for name in names {
            let text = name.to_str().unwrap_or_default(); // default: what is no UTF-8 is no relation's, and copied
            if left_out::is_temporary(text) || unlogged.is_reset(text) {
                continue;
            }
            self.entry(directory, here, name)?;
            let path = directory.join(name);
            let init = self.survey.files.last().filter(|file| file.path == path);
            if let (Some(main), Some(init)) = (unlogged.main_of(text), init) {
                let (part, len) = (init.part, init.len);
                let pages = init.pages.map(|(_, first)| (Fork::Main, first));
                let (path, source) = (directory.join(main), Some(name.clone()));
                self.add(PlannedFile { part, path, source, len, pages });
            }
        }
        Ok(())
    }

    fn wal(&mut self, directory: &Path, here: &Path, names: &[OsString]) -> Result<()> {
        let files = WalFiles::new(self.cluster.control());
        let names: Vec<String> =
            names.iter().filter_map(|name| name.to_str().map(str::to_owned)).collect();
        files.check_found(here, &names)?;
        for name in names {
            let emptied = self.contents(&directory.join(&name)) == Contents::Nothing;
            if emptied || files.needs(self.storage, here, &name)? {
                self.entry(directory, here, &OsString::from(name))?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, directory: &Path, here: &Path, name: &OsString) -> Result<()> {
        let (path, from) = (directory.join(name), here.join(name));
        if name.to_str().is_some_and(left_out::is_left_out)
            || (self.is_data_directory() && path == Path::new("global/pg_control"))
        {
            return Ok(());
        }
        match self.storage.node(&from)? {
            Node::Directory if self.is_elsewhere(&from) => {}
            Node::Directory => self.waiting.push(path),
            Node::File { len } => {
                let (part, pages) = (self.number(), self.pages(directory, name));
                self.add(PlannedFile { part, path, source: None, len, pages });
            }
            Node::Link { .. } if self.contents(directory) == Contents::Tablespaces => {}
            // The copy gets a directory of its own in their place.
            Node::Link { .. } if directory == Path::new("") && self.has_own_rules(&path) => {
                self.waiting.push(path);
            }
            Node::Link { target } => {
                let (from, target) = (from.display(), target.display());
                self.survey.left_out.push(format!("{from}, a symbolic link to {target}"));
            }
            Node::Stream | Node::Other => {
                self.survey.left_out.push(format!("{}, which is no file", from.display()));
            }
        }
        Ok(())
    }

    fn has_own_rules(&self, path: &Path) -> bool {
        self.contents(path) != Contents::All
    }

    /// True for a tablespace that lies within the data directory.
    fn is_elsewhere(&self, directory: &Path) -> bool {
        let real = || self.storage.resolve(directory).ok();
        !self.elsewhere.is_empty()
            && self.is_data_directory()
            && real().is_some_and(|real| self.elsewhere.contains(&real))
    }

    /// The pages of a relation's file.
    fn pages(&self, directory: &Path, name: &OsString) -> Option<(Fork, BlockNumber)> {
        let shared = self.is_data_directory() && directory == Path::new("global");
        if !shared && !self.is_of_database(directory) {
            return None;
        }
        let file = RelationFile::parse(name.to_str()?)?;
        Some((file.fork, BlockNumber(file.segment.checked_mul(SEGMENT_BLOCKS)?)))
    }

    fn add(&mut self, file: PlannedFile) {
        if let Some(part) = self.survey.parts.get_mut(file.part) {
            part.files += 1;
            part.bytes += file.len;
        }
        self.survey.files.push(file);
    }
}
