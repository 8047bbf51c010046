//! A server's settings, read from its configuration files as the server itself reads them.
//!
//! `postgresql.conf` is read first, with the files it includes in their places, then
//! `postgresql.auto.conf`, then the command line of the server's last start; of several entries
//! for one setting the last wins. What the server would refuse (a syntax error, an include that is missing) is noted as a problem and passed
//! over, so that one bad line does not hide the others.
//!
//! Invariants: nothing here does I/O (files come through [`SettingFiles`]) and nothing panics.
//! Values are bytes, as files and databases have encodings of their own.
//!
//! Source: `src/backend/utils/misc/guc-file.l` (14 and 15; `guc.c` and `conffiles.c` from 16),
//! `ParseLongOption` in `guc.c`, PostgreSQL 14 to 18.

mod command_line;
mod configuration_file;
mod identifiers;
mod lines;

pub use identifiers::{parse_search_path, parse_setting_list};

use command_line::CommandLine;
use configuration_file::configuration_file;
use lines::{LineError, entries};
use std::collections::HashMap;
use std::io;
use std::path::{Component, Path, PathBuf};

/// How many files deep includes may go (the server's own limit).
const MAX_DEPTH: usize = 10;

/// How many files may be included in all: files that include each other twice over would else
/// be read thousands of times before the depth stops them.
const MAX_INCLUDES: usize = 1000;

/// Reads configuration files.
pub trait SettingFiles {
    /// The contents of a file.
    ///
    /// # Errors
    /// When it cannot be read, with [`io::ErrorKind::NotFound`] when it is not there.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// The names of all files of a directory that are no directories themselves, in any order.
    ///
    /// # Errors
    /// When it cannot be read.
    fn list(&self, directory: &Path) -> io::Result<Vec<String>>;

    /// The names of all directories in a directory, in any order.
    ///
    /// # Errors
    /// When it cannot be read.
    fn directories(&self, directory: &Path) -> io::Result<Vec<String>>;

    /// True when both paths lead to the same place.
    fn is_same(&self, one: &Path, other: &Path) -> bool;
}

/// The value of a setting and where it was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The value, unquoted.
    pub value: Box<[u8]>,
    /// The file, or `None` when it did not come from a file.
    pub file: Option<PathBuf>,
    /// The line in that file, from 1.
    pub line: usize,
}

/// Something in the files that the server would refuse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {what}", .file.display())]
pub struct SettingProblem {
    /// The file.
    pub file: PathBuf,
    /// The line in it, from 1; 0 for the file as a whole.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

/// Settings by name.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    values: HashMap<String, Setting>,
    problems: Vec<SettingProblem>,
    includes: usize,
}

impl Settings {
    /// The settings of a server of this version started on a data directory as it was last
    /// started: its configuration files, wherever they are, then its command line.
    pub fn of_cluster(directory: &Path, major: u32, files: &dyn SettingFiles) -> Self {
        let left = files.read(&directory.join("postmaster.opts"));
        let started = left.map(|bytes| CommandLine::parse(&bytes)).unwrap_or_default();
        let main = configuration_file(directory, major, &started, files);
        let auto = directory.join("postgresql.auto.conf");
        let mut settings = Self::parse(&main, Some(&auto), files);
        for (name, value) in &started.settings {
            settings.set(name, value);
        }
        settings
    }

    /// Reads the file `main` and all that it includes, then `auto` (the data directory's
    /// `postgresql.auto.conf`), which need not exist.
    pub fn parse(main: &Path, auto: Option<&Path>, files: &dyn SettingFiles) -> Self {
        let mut settings = Self::default();
        match files.read(main) {
            Ok(bytes) => settings.file(main, &bytes, 0, files),
            Err(error) => settings.problem(main, 0, format!("could not be read: {error}")),
        }
        if let Some(auto) = auto {
            match files.read(auto) {
                Ok(bytes) => settings.file(auto, &bytes, 0, files),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => settings.problem(auto, 0, format!("could not be read: {error}")),
            }
        }
        settings
    }

    /// The value of a setting, when one was given. Names are compared without case.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.setting(name).map(|setting| &*setting.value)
    }

    /// All names, in small letters, and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.values.iter().map(|(name, setting)| (name.as_str(), &*setting.value))
    }

    /// True when full segments of WAL are handed to an archive.
    pub(crate) fn archives_wal(&self) -> bool {
        let mode = self.get("archive_mode").unwrap_or_default().to_ascii_lowercase();
        matches!(mode.as_slice(), b"on" | b"true" | b"yes" | b"1" | b"always")
    }

    /// The value of a setting and where it comes from.
    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.values.get(&name.to_ascii_lowercase())
    }

    /// Sets a value over the one from the files: a row of `pg_db_role_setting` or an option of
    /// the command line.
    pub fn set(&mut self, name: &str, value: &[u8]) {
        let setting = Setting { value: value.into(), file: None, line: 0 };
        self.values.insert(name.to_ascii_lowercase(), setting);
    }

    /// What the server would refuse, in the order it was met.
    pub fn problems(&self) -> &[SettingProblem] {
        &self.problems
    }

    fn file(&mut self, path: &Path, bytes: &[u8], depth: usize, files: &dyn SettingFiles) {
        for (line, entry) in entries(bytes) {
            let (name, value) = match entry {
                Ok(entry) => entry,
                Err(LineError(what)) => {
                    self.problem(path, line, what);
                    continue;
                }
            };
            let here = IncludeLine { path, line, depth };
            match name.as_str() {
                "include" => self.include(&here, &value, true, files),
                "include_if_exists" => self.include(&here, &value, false, files),
                "include_dir" => self.include_dir(&here, &value, files),
                _ => {
                    let file = Some(path.to_owned());
                    self.values.insert(name, Setting { value: value.into(), file, line });
                }
            }
        }
    }

    fn include(
        &mut self,
        here: &IncludeLine,
        target: &[u8],
        must_exist: bool,
        files: &dyn SettingFiles,
    ) {
        match here.resolve(target) {
            Ok(path) => self.included_file(here, &path, must_exist, files),
            Err(what) => self.problem(here.path, here.line, what),
        }
    }

    fn included_file(
        &mut self,
        here: &IncludeLine,
        path: &Path,
        must_exist: bool,
        files: &dyn SettingFiles,
    ) {
        if here.depth >= MAX_DEPTH {
            return self.problem(here.path, here.line, "includes are nested too deeply");
        }
        if self.includes >= MAX_INCLUDES {
            return self.problem(here.path, here.line, "too many files are included");
        }
        if path == here.path {
            return self.problem(here.path, here.line, "the file includes itself");
        }
        self.includes += 1;
        match files.read(path) {
            Ok(bytes) => self.file(path, &bytes, here.depth + 1, files),
            Err(error) if must_exist => {
                let what = format!("{} could not be read: {error}", path.display());
                self.problem(here.path, here.line, what);
            }
            Err(_) => {}
        }
    }

    fn include_dir(&mut self, here: &IncludeLine, target: &[u8], files: &dyn SettingFiles) {
        let listed = here.resolve(target).and_then(|directory| {
            let listed = files.list(&directory);
            let names =
                listed.map_err(|e| format!("{} could not be read: {e}", directory.display()))?;
            Ok((directory, names))
        });
        let (directory, mut names) = match listed {
            Ok(listed) => listed,
            Err(what) => return self.problem(here.path, here.line, what),
        };
        names.retain(|name| name.len() >= 6 && name.ends_with(".conf") && !name.starts_with('.'));
        names.sort_unstable();
        for name in names {
            self.included_file(here, &directory.join(name), true, files);
        }
    }

    fn problem(&mut self, file: &Path, line: usize, what: impl Into<String>) {
        self.problems.push(SettingProblem { file: file.to_owned(), line, what: what.into() });
    }
}

/// A line that includes another file, and how many includes lead to it.
struct IncludeLine<'a> {
    path: &'a Path,
    line: usize,
    depth: usize,
}

impl IncludeLine<'_> {
    /// The path that `target` means here: relative to the directory of this file.
    fn resolve(&self, target: &[u8]) -> Result<PathBuf, String> {
        if target.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
            return Err("the name of the file to include is empty".into());
        }
        let target = std::str::from_utf8(target)
            .map_err(|_| "the name of the file to include is not UTF-8".to_owned())?;
        Ok(canonical(&self.path.parent().unwrap_or(Path::new("")).join(target)))
    }
}

/// `path` without `.` and `..`, so that a file that includes itself is recognized.
fn canonical(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(out.components().next_back(), Some(Component::Normal(_))) =>
            {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// Splits `name=value`, as an element of `pg_db_role_setting.setconfig` and an option of the
/// command line are written; `None` without a `=`.
pub fn parse_role_setting(entry: &[u8]) -> Option<(String, &[u8])> {
    let equals = entry.iter().position(|&byte| byte == b'=')?;
    let (name, value) = (entry.get(..equals)?, entry.get(equals + 1..)?);
    let name = String::from_utf8_lossy(name).replace('-', "_").to_ascii_lowercase();
    Some((name, value))
}

#[cfg(test)]
mod tests;
