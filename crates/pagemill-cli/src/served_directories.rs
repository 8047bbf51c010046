//! The data directories of `pagemill serve`: several, each with the flags that stand behind it.
//!
//! ```text
//! -D a --until lsn:0/3000000 -D old=b --wal archive      a: its WAL up to 0/3000000      old: the archive's WAL, too
//! ```
//!
//! Invariant: no flag counts for a directory that it was not given for: with several, one that stands before the first of them is refused.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use pagemill_cluster::recovery::plan::{TargetPlace, TimelineChoice};
use pagemill_cluster::{BackupName, TablespaceMapping};
use pagemill_io::HostFiles;

use crate::cluster_arguments::{CommonArguments, RecoveryArguments};
use crate::failure::UsageError;

/// A data directory that is served.
#[derive(Debug, Clone)]
pub struct ServedDirectory {
    /// Its name: what stands before the names of its databases where there are several.
    pub name: String,
    /// How it is read.
    pub common: CommonArguments,
    /// Up to where its WAL is redone.
    pub recovery: RecoveryArguments,
}

/// What was given for each directory, in the order of the command line.
///
/// Among a command's arguments it stands before those that it looks at, as they take their values away.
#[derive(Debug, Default)]
pub struct DirectoryArguments {
    given: Vec<Given>,
}

/// A directory, and what stands behind it.
#[derive(Debug, Default)]
struct Given {
    path: PathBuf,
    base: Vec<PathBuf>,
    backup: Option<BackupName>,
    stanza: Option<String>,
    wal: Vec<PathBuf>,
    until: Option<TargetPlace>,
    exclusive: bool,
    timeline: TimelineChoice,
    tablespace_mapping: Vec<TablespaceMapping>,
}

/// A flag that names a directory, or counts once for each, can be given again.
pub fn of_each_directory(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "pgdata" | "backup" | "stanza" | "until" | "timeline" => arg.action(ArgAction::Append),
        "exclusive" => {
            let arg = arg.action(ArgAction::Append).num_args(0);
            let arg = arg.value_parser(clap::value_parser!(bool));
            arg.default_value("false").default_missing_value("true")
        }
        _ => arg,
    }
}

impl DirectoryArguments {
    /// All directories, with the flags that count for each. Of what no directory was given for, `common` has the rest.
    ///
    /// # Errors
    /// When a directory has no name of its own.
    pub fn served(
        &self,
        common: &CommonArguments,
        recovery: &RecoveryArguments,
    ) -> Result<Vec<ServedDirectory>, UsageError> {
        let is_one_of_several = self.given.len() > 1;
        let served = self.given.iter().map(|given| given.served(common, recovery));
        let served: Vec<_> = served.collect();
        let mut known = HashSet::new();
        for directory in served.iter().filter(|_| is_one_of_several) {
            let (name, path) =
                (&directory.name, directory.common.pgdata.clone().unwrap_or_default());
            if name.is_empty() {
                let message =
                    format!("{0}: no name: give it one, as in -D NAME={0}", path.display());
                return Err(UsageError(message));
            }
            if !known.insert(name) {
                let message = format!(
                    "{}: a directory named \"{name}\" is there already: give it another name, as in -D NAME={0}",
                    path.display()
                );
                return Err(UsageError(message));
            }
        }
        Ok(served)
    }
}

impl Given {
    fn served(&self, common: &CommonArguments, recovery: &RecoveryArguments) -> ServedDirectory {
        let (name, path) = named(&self.path);
        let common = CommonArguments {
            pgdata: Some(path.to_owned()),
            base: self.base.clone(),
            backup: self.backup.clone(),
            stanza: self.stanza.clone(),
            ..common.clone()
        };
        let recovery = RecoveryArguments {
            wal: self.wal.clone(),
            until: self.until.clone(),
            exclusive: self.exclusive,
            timeline: self.timeline,
            tablespace_mapping: self.tablespace_mapping.clone(),
            ..recovery.clone()
        };
        ServedDirectory { name: name.unwrap_or_else(|| last_name(path)), common, recovery }
    }
}

/// `NAME=DIR`. A path that has `=` within its first name is meant where `./` stands before it.
fn named(given: &Path) -> (Option<String>, &Path) {
    let bytes = given.as_os_str().as_bytes();
    let end = bytes.iter().position(|byte| *byte == b'=' || *byte == b'/');
    let name = match end {
        Some(end) if bytes[end] == b'=' && end > 0 => std::str::from_utf8(&bytes[..end]).ok(),
        _ => None,
    };
    let rest = name.map_or(given, |name| Path::new(OsStr::from_bytes(&bytes[name.len() + 1..])));
    (name.map(str::to_owned), rest)
}

/// The last name in a path, empty where there is none that is a text.
fn last_name(path: &Path) -> String {
    let of = |path: &Path| path.file_name().and_then(OsStr::to_str).map(str::to_owned);
    let resolved = || of(&HostFiles::real().resolve(path).ok()?);
    of(path).or_else(resolved).unwrap_or_default()
}

/// What was given with a flag on the command line, each with its place there.
fn given<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, flag: &str) -> Vec<(usize, T)> {
    if matches.value_source(flag) != Some(ValueSource::CommandLine) {
        return Vec::new();
    }
    let places = matches.indices_of(flag).into_iter().flatten();
    places.zip(matches.get_many(flag).into_iter().flatten().cloned()).collect()
}

/// Directories by their places on the command line.
struct Places(Vec<usize>);

impl Places {
    /// Which directory a flag is for.
    fn directory(&self, flag: &str, place: usize) -> Result<usize, clap::Error> {
        match self.0.iter().filter(|directory| **directory < place).count() {
            // With one directory the order does not matter.
            _ if self.0.len() <= 1 => Ok(0),
            0 => Err(refused(format!(
                "{flag}: which directory is it for? with several -D it has to stand behind the one that it is for"
            ))),
            number => Ok(number - 1),
        }
    }

    /// The values of a flag for each directory.
    fn shared<T: Clone + Send + Sync + 'static>(
        &self,
        matches: &ArgMatches,
        id: &str,
    ) -> Result<Vec<Vec<T>>, clap::Error> {
        let mut of_each = vec![Vec::new(); self.0.len().max(1)];
        for (place, value) in given(matches, id) {
            of_each[self.directory(&spelled(id), place)?].push(value);
        }
        Ok(of_each)
    }

    /// The same of a flag that counts once.
    fn once<T: Clone + Send + Sync + 'static>(
        &self,
        matches: &ArgMatches,
        id: &str,
    ) -> Result<Vec<Option<T>>, clap::Error> {
        let of_each =
            self.shared(matches, id)?.into_iter().map(|mut values: Vec<T>| match values.len() {
                0 | 1 => Ok(values.pop()),
                _ => Err(refused(format!("{} is given twice for one directory", spelled(id)))),
            });
        of_each.collect()
    }
}

fn spelled(id: &str) -> String {
    format!("--{}", id.replace('_', "-"))
}

fn refused(message: String) -> clap::Error {
    clap::Error::raw(ErrorKind::ArgumentConflict, format!("{message}\n"))
}

impl FromArgMatches for DirectoryArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let directories = given::<PathBuf>(matches, "pgdata");
        let places = Places(directories.iter().map(|(place, _)| *place).collect());
        // Without one on the command line it is the environment's.
        let paths: Vec<PathBuf> = match directories.is_empty() {
            true => matches.get_one::<PathBuf>("pgdata").into_iter().cloned().collect(),
            false => directories.into_iter().map(|(_, path)| path).collect(),
        };
        let mut base = places.shared(matches, "base")?.into_iter();
        let mut backup = places.once(matches, "backup")?.into_iter();
        let mut stanza = places.once(matches, "stanza")?.into_iter();
        let mut wal = places.shared(matches, "wal")?.into_iter();
        let mut until = places.once(matches, "until")?.into_iter();
        let mut exclusive = places.once::<bool>(matches, "exclusive")?.into_iter();
        let mut timeline = places.once(matches, "timeline")?.into_iter();
        let mut mapping = places.shared(matches, "tablespace_mapping")?.into_iter();
        let of = |path| Given {
            path,
            base: base.next().unwrap_or_default(),
            backup: backup.next().flatten(),
            stanza: stanza.next().flatten(),
            wal: wal.next().unwrap_or_default(),
            until: until.next().flatten(),
            exclusive: exclusive.next().flatten().unwrap_or(false),
            timeline: timeline.next().flatten().unwrap_or_default(),
            tablespace_mapping: mapping.next().unwrap_or_default(),
        };
        let given: Vec<Given> = paths.into_iter().map(of).collect();
        if given.iter().any(|given| given.exclusive && given.until.is_none()) {
            let message =
                "--exclusive: there is no --until for this directory that it could be about";
            return Err(refused(message.to_owned()));
        }
        Ok(Self { given })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// All flags that it looks at are others'.
impl Args for DirectoryArguments {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve_arguments::ServeArguments;

    fn parsed(words: &[&str]) -> Result<Vec<ServedDirectory>, String> {
        let command = ServeArguments::augment_args(Command::new("serve"));
        let words = ["serve"].iter().chain(words);
        let matches = command.try_get_matches_from(words).map_err(|error| error.to_string())?;
        let arguments = ServeArguments::from_arg_matches(&matches);
        let arguments = arguments.map_err(|error| error.to_string())?;
        arguments.directories().map_err(|error| error.to_string())
    }

    fn until(directory: &ServedDirectory) -> Option<String> {
        directory.recovery.until.as_ref().map(|until| format!("{until:?}"))
    }

    #[test]
    fn flags_are_of_the_directory_before_them() {
        let words = "-D /x/a --until xid:7 --exclusive --base f --pgdata=old=/y/a --backup latest --wal w --wal v --until xid:9 -D/z/c --jobs 3";
        let found = parsed(&words.split(' ').collect::<Vec<_>>()).unwrap();
        let names: Vec<&str> = found.iter().map(|directory| directory.name.as_str()).collect();
        assert_eq!(names, ["a", "old", "c"]);
        let [a, old, c] = &found[..] else { panic!("three") };
        assert_eq!(old.common.pgdata, Some(PathBuf::from("/y/a")));
        assert_ne!(until(a), until(old));
        assert!(until(a).is_some() && until(old).is_some() && until(c).is_none());
        assert!(a.recovery.exclusive && !old.recovery.exclusive && !c.recovery.exclusive);
        assert_eq!((a.common.base.len(), old.common.base.len()), (1, 0));
        assert_eq!(old.recovery.wal, [PathBuf::from("w"), PathBuf::from("v")]);
        assert_eq!(old.common.backup, Some(BackupName::Latest));
        assert!(a.common.backup.is_none() && c.common.backup.is_none());
        assert!(a.recovery.wal.is_empty() && c.recovery.wal.is_empty());
        assert!(found.iter().all(|directory| directory.common.jobs == 3));
    }

    #[test]
    fn with_one_directory_the_order_does_not_matter() {
        for words in [["--until", "xid:7", "-D", "/x/a"], ["-D", "/x/a", "--until", "xid:7"]] {
            let found = parsed(&words).unwrap();
            assert_eq!((found.len(), found[0].name.as_str()), (1, "a"));
            assert!(until(&found[0]).is_some());
        }
        let found = parsed(&["-D", "./x=y"]).unwrap();
        assert_eq!(found[0].common.pgdata, Some(PathBuf::from("./x=y")));
        assert_eq!(parsed(&["-D", "/"]).unwrap().len(), 1);
    }

    #[test]
    fn what_is_of_no_directory_is_refused() {
        let wrong: [(&[&str], &str); 6] = [
            (&["--until", "xid:7", "-D", "a", "-D", "b"], "--until: which directory is it for"),
            (&["--wal", "w", "-D", "a", "-D", "b"], "--wal: which directory is it for"),
            (&["-D", "a", "--until", "xid:7", "--until", "xid:8"], "--until is given twice"),
            (
                &["-D", "a", "--until", "xid:7", "-D", "b", "--exclusive"],
                "--exclusive: there is no",
            ),
            (&["-D", "/x/a", "-D", "/y/a"], "a directory named \"a\" is there already"),
            (&["-D", "/", "-D", "/y/a"], "no name"),
        ];
        for (words, says) in wrong {
            let found = parsed(words).unwrap_err();
            assert!(found.contains(says), "{words:?}: {found}");
        }
    }
}
