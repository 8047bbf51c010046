//! A copy that was cut short by a kill, found by its mark and removed by the next run.
//!
//! ```text
//! pagemill.copy:  copy of a cluster that was not finished
//!                 id 1763862000123456789.4711
//!                 root /mnt/fast-copy            in the copy's own directory: where its tablespaces lie
//!                 entry base                     what is made here, and nothing else is removed
//! ```
//!
//! The directory of the copy and those of its tablespaces get one each before anything else is made in them. The marks are
//! removed when `global/pg_control` has made it a copy that a server starts on, the copy's own as the last: at every moment
//! there is a mark, or nothing, or the whole copy. A mark in a whole copy is in nobody's way; the next run removes it.
//!
//! Invariants: nothing is removed but what a mark names, in a directory that has the mark; a directory whose mark is
//! locked is being made; of one with `global/pg_control` nothing is removed but marks.

use std::path::{Component, Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use pagemill_cluster::Result;
use pagemill_io::{HeldLock, Node, Storage};

use super::ClusterCopy;
use super::created_files::CreatedFiles;
use super::error::CopyResult;
use crate::refusal::CopyRefusal;

pub(super) const NAME: &str = "pagemill.copy";
/// What it is called until it is written.
pub(super) const TEMPORARY: &str = "pagemill.copy.new";
/// What a copy has that is whole.
const CONTROL: &str = "global/pg_control";
const TITLE: &str = "copy of a cluster that was not finished";
/// More than a mark of any copy has.
const LIMIT: u64 = 1 << 20;

/// A copy that was cut short.
#[derive(Debug)]
pub struct UnfinishedCopy {
    directory: PathBuf,
    mark: Mark,
    is_whole: bool,
    _held: HeldLock,
}

/// What a mark says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Mark {
    id: String,
    roots: Vec<PathBuf>,
    entries: Vec<String>,
}

impl Mark {
    fn text(&self) -> String {
        let mut text = format!("{TITLE}\nid {}\n", self.id);
        // A name that does not fit on a line is not looked for again, and its directory is found not to be empty.
        let roots = self.roots.iter().filter_map(|root| root.to_str());
        roots
            .filter(|root| !root.contains('\n'))
            .for_each(|root| text += &format!("root {root}\n"));
        self.entries.iter().for_each(|entry| text += &format!("entry {entry}\n"));
        text
    }

    fn make(&self, storage: &Storage, directory: &Path, made: &mut CreatedFiles) -> Result<()> {
        made.mark(storage, directory.join(NAME), directory.join(TEMPORARY), &self.text())
    }

    /// Nothing where it is no mark.
    fn parse(text: &str) -> Option<Self> {
        let body = text.strip_prefix(TITLE)?;
        let all = |word: &str| {
            let found = body.lines().filter_map(move |line| line.strip_prefix(word));
            found.map(str::to_owned).collect::<Vec<_>>()
        };
        Some(Self {
            id: all("id ").pop()?,
            roots: all("root ").into_iter().map(PathBuf::from).collect(),
            entries: all("entry ").into_iter().filter(|entry| is_one_name(entry)).collect(),
        })
    }

    fn read(storage: &Storage, directory: &Path) -> Result<Option<Self>> {
        if !storage.exists(directory)? || !storage.metadata(directory)?.is_dir {
            return Ok(None);
        }
        match storage.read_file(&directory.join(NAME), LIMIT) {
            Ok(bytes) => Ok(Self::parse(&String::from_utf8_lossy(&bytes))),
            Err(error) if error.is_not_found() => Self::begun(storage, directory),
            Err(error) => Err(error.into()),
        }
    }

    /// One that was being written and has no name of its own yet: then there is nothing else in the directory.
    fn begun(storage: &Storage, directory: &Path) -> Result<Option<Self>> {
        let names = storage.read_dir(directory)?;
        let is_begun = matches!(names.as_slice(), [only] if only.name == TEMPORARY);
        Ok(is_begun.then(Self::default))
    }

    /// What it is called.
    fn name(&self) -> &'static str {
        if *self == Self::default() { TEMPORARY } else { NAME }
    }
}

/// True for a name that leads nowhere else.
fn is_one_name(entry: &str) -> bool {
    let mut parts = Path::new(entry).components();
    matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none()
}

impl ClusterCopy {
    /// Marks the directories of the copy, which are there and empty. What is returned keeps others from taking the copy for
    /// one that was cut short.
    pub(super) fn make_marks(&self, made: &mut CreatedFiles) -> Result<Option<HeldLock>> {
        let (storage, destination) = (self.cluster.storage(), self.options.destination.as_path());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        let id = format!("{now}.{}", std::process::id());
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let roots = self.spaces.iter().map(|space| absolute(&space.new)).collect();
        let own = Mark { id: id.clone(), roots, entries: self.survey.top_entries() };
        own.make(storage, destination, made)?;
        let held = storage.try_lock(&destination.join(NAME))?;
        for (space, part) in self.spaces.iter().zip(self.survey.parts.iter().skip(1)) {
            // What is listed here is removed by the next run, so it has to be the version's directory and nothing above.
            let version = part.to.file_name().and_then(|name| name.to_str());
            let version = version.expect("a part is a version's directory"); // infallible: its last part is such a name
            let entries = vec![version.to_owned()];
            let mark = Mark { id: id.clone(), roots: Vec::new(), entries };
            mark.make(storage, &space.new, made)?;
        }
        Ok(held)
    }
}

impl UnfinishedCopy {
    /// Looks for a copy in `directory` that was cut short, or was whole and had its mark still when it was.
    ///
    /// # Errors
    /// When the directory cannot be read, or the copy is being made at this moment.
    pub fn find(storage: &Storage, directory: &Path) -> crate::Result<Option<Self>> {
        Ok(Self::held(storage, directory)?)
    }

    fn held(storage: &Storage, directory: &Path) -> CopyResult<Option<Self>> {
        let Some(mark) = Mark::read(storage, directory)? else { return Ok(None) };
        let Some(held) = storage.try_lock(&directory.join(mark.name()))? else {
            return Err(CopyRefusal::BeingMade(directory.to_owned()).into());
        };
        let is_whole = storage.exists(&directory.join(CONTROL))?;
        Ok(Some(Self { directory: directory.to_owned(), mark, is_whole, _held: held }))
    }

    /// True when nothing is wrong with the copy, and only its marks are to be removed.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Its directory, and those of its tablespaces that still have its mark.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn directories(&self, storage: &Storage) -> Result<Vec<PathBuf>> {
        Ok(self.marked(storage)?.into_iter().map(|(directory, _)| directory).collect())
    }

    fn marked(&self, storage: &Storage) -> Result<Vec<(PathBuf, Mark)>> {
        let mut found = Vec::new();
        for root in &self.mark.roots {
            let is_of_it = |mark: &Mark| mark.id == self.mark.id || *mark == Mark::default();
            let mark = Mark::read(storage, root)?.filter(is_of_it);
            found.extend(mark.map(|mark| (root.clone(), mark)));
        }
        // Its own is the last: until then it can be found again.
        found.push((self.directory.clone(), self.mark.clone()));
        Ok(found)
    }

    /// Removes what was made of it, or only the marks of one that is whole. The directories themselves stay, with what else
    /// is in them.
    ///
    /// # Errors
    /// When something cannot be removed: the next run goes on with it.
    pub fn remove(self, storage: &Storage) -> Result<()> {
        for (directory, mark) in self.marked(storage)? {
            let entries = if self.is_whole { &[] } else { mark.entries.as_slice() };
            for entry in entries {
                let path = directory.join(entry);
                match storage.node(&path) {
                    Ok(Node::Directory) => storage.remove_tree(&path)?,
                    Ok(_) => storage.remove_if_there(&path)?,
                    Err(error) if error.is_not_found() => {}
                    Err(error) => return Err(error.into()),
                }
            }
            storage.remove_if_there(&directory.join(TEMPORARY))?;
            storage.remove_if_there(&directory.join(NAME))?;
            storage.sync_dir(&directory)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_mark_names_is_removed_and_only_from_directories_with_that_mark() {
        let dir = tempfile::tempdir().unwrap();
        let (storage, at) = (Storage::real(), |name: &str| dir.path().join(name));
        let mark = |id: &str, roots: &[&str], entries: &[&str]| Mark {
            id: id.into(),
            roots: roots.iter().map(|name| at(name)).collect(),
            entries: entries.iter().map(|name| (*name).to_owned()).collect(),
        };
        let entries = ["base", "PG_VERSION", "../kept", "/etc", "link", "."];
        for (name, mark) in [
            ("copy", mark("1", &["space", "other", "gone"], &entries)),
            ("space", mark("1", &[], &["PG_15_202209061"])),
            ("other", mark("2", &[], &["PG_15_202209061"])),
        ] {
            std::fs::create_dir_all(at(name).join("PG_15_202209061/5")).unwrap();
            std::fs::write(at(name).join(NAME), mark.text()).unwrap();
        }
        std::fs::create_dir_all(at("copy/base/5")).unwrap();
        for name in ["kept", "copy/base/5/1", "copy/PG_VERSION", "copy/notes", "other/x"] {
            std::fs::write(at(name), "").unwrap();
        }
        std::os::unix::fs::symlink(at("other"), at("copy/link")).unwrap();
        let found = UnfinishedCopy::find(&storage, &at("copy")).unwrap().unwrap();
        assert!(UnfinishedCopy::find(&storage, &at("copy")).is_err(), "it is being removed");
        assert_eq!(found.directories(&storage).unwrap(), [at("space"), at("copy")]);
        found.remove(&storage).unwrap();
        let names = |name: &str| {
            let found = std::fs::read_dir(at(name)).unwrap();
            let mut found: Vec<_> = found.map(|entry| entry.unwrap().file_name()).collect();
            found.sort();
            found
        };
        assert_eq!(names("copy"), ["PG_15_202209061", "notes"]);
        assert!(names("space").is_empty() && at("kept").exists());
        assert_eq!(names("other"), ["PG_15_202209061", NAME, "x"]);
        assert!(UnfinishedCopy::find(&storage, &at("copy")).unwrap().is_none());
    }
}
