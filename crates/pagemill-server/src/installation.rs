//! Where PostgreSQL's programs are: where somebody says, or where packages put them.
//!
//! ```text
//! /usr/lib/postgresql/17/bin   Debian and Ubuntu   ┐ the newest version that is known
//! /usr/pgsql-17/bin            Red Hat             ┘
//! pg_config --bindir           elsewhere
//! the search path              the rest
//! ```
//!
//! Invariant: an installation has `initdb`, `postgres` and a `psql`, its own or another's, and a version that the caller knows.

use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result};

/// What a server cannot be made without.
const PROGRAMS: [&str; 2] = ["postgres", "initdb"];

/// One installed PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    bindir: PathBuf,
    psql: PathBuf,
    version: ServerVersion,
}

/// What `postgres --version` says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ServerVersion {
    /// With its package, as `15.14 (Debian 15.14-0+deb12u1)`.
    text: String,
    major: u32,
}

impl Installation {
    /// The one whose programs lie in this directory.
    ///
    /// # Errors
    /// When it has none, or the major version is none of these, or there is no psql.
    pub fn at(bindir: &Path, majors: RangeInclusive<u32>) -> Result<Self> {
        let fault = |why: String| Error::NotAnInstallation { path: bindir.into(), why };
        let missing = missing(bindir);
        if !missing.is_empty() {
            return Err(fault(format!("there is no {}", missing.join(" and no "))));
        }
        // A directory that is reached by a link may lie where the server's account does not get to.
        let resolved = bindir.canonicalize().map_err(|error| fault(error.to_string()))?;
        let version = known_version(&resolved, &majors).map_err(fault)?;
        with_psql(resolved, version)
    }

    /// The newest of these major versions that packages, `pg_config` or the search path lead to.
    ///
    /// # Errors
    /// When none is installed, or there is no psql.
    pub fn newest(majors: RangeInclusive<u32>) -> Result<Self> {
        let usable = candidates(Path::new("/"))
            .into_iter()
            .chain(told_by_pg_config())
            .chain(search_path().into_iter().filter_map(|directory| linked(&directory)))
            .filter(|bindir| missing(bindir).is_empty());
        let known = usable
            .filter_map(|bindir| Some((known_version(&bindir, &majors).ok()?, bindir)))
            .next();
        let (oldest, newest) = majors.into_inner();
        let (version, bindir) = known.ok_or(Error::NotInstalled { oldest, newest })?;
        with_psql(bindir, version)
    }

    /// One of its programs.
    pub fn program(&self, name: &str) -> PathBuf {
        self.bindir.join(name)
    }

    /// The `psql` to talk to it with: its own, else the newest that is installed.
    pub fn psql(&self) -> &Path {
        &self.psql
    }

    /// Its version with that of its package.
    pub fn version(&self) -> &str {
        &self.version.text
    }

    /// Its version alone, as `15.14`.
    pub fn short_version(&self) -> &str {
        self.version.text.split(' ').next().unwrap_or_default()
    }

    /// Its major version.
    pub fn major(&self) -> u32 {
        self.version.major
    }
}

fn missing(bindir: &Path) -> Vec<&'static str> {
    PROGRAMS.into_iter().filter(|name| !bindir.join(name).is_file()).collect()
}

/// What is installed where packages put it, the newest first.
fn candidates(root: &Path) -> Vec<PathBuf> {
    let below = |directory: PathBuf, prefix: &'static str| {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries.filter_map(move |entry| {
            let name = entry.file_name();
            let major: u32 = name.to_str()?.strip_prefix(prefix)?.parse().ok()?;
            Some((major, entry.path().join("bin")))
        })
    };
    let debian = below(root.join("usr/lib/postgresql"), "");
    let mut found: Vec<_> = debian.chain(below(root.join("usr"), "pgsql-")).collect();
    found.sort_unstable_by(|one, other| other.cmp(one));
    found.into_iter().map(|(_, bindir)| bindir).collect()
}

fn told_by_pg_config() -> Option<PathBuf> {
    let output = Command::new("pg_config").arg("--bindir").output().ok()?;
    let told = String::from_utf8(output.stdout).ok()?;
    Some(PathBuf::from(told.trim())).filter(|directory| directory.is_absolute())
}

fn search_path() -> Vec<PathBuf> {
    std::env::var_os("PATH").map_or(Vec::new(), |path| absolute_directories(&path))
}

/// Those of a search path that do not depend on where the process stands.
fn absolute_directories(path: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(path).filter(|directory| directory.is_absolute()).collect()
}

/// The directory that `postgres` truly lies in, where the search path leads to it.
fn linked(directory: &Path) -> Option<PathBuf> {
    Some(directory.join("postgres").canonicalize().ok()?.parent()?.to_owned())
}

fn known_version(
    bindir: &Path,
    majors: &RangeInclusive<u32>,
) -> std::result::Result<ServerVersion, String> {
    let output = Command::new(bindir.join("postgres")).arg("--version").output();
    let output = output.map_err(|error| format!("its postgres does not run ({error})"))?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = parse_version(&told).ok_or("its postgres does not tell its version")?;
    match majors.contains(&version.major) {
        true => Ok(version),
        false => Err(format!("its version, {}, is not known here", version.text)),
    }
}

/// Takes `postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)` apart.
fn parse_version(told: &str) -> Option<ServerVersion> {
    let text = told.trim().strip_prefix("postgres (PostgreSQL) ")?;
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some(ServerVersion { text: text.into(), major: text.get(..digits)?.parse().ok()? })
}

/// The server's own psql, else the newest that is installed, else whatever the search path has.
fn with_psql(bindir: PathBuf, version: ServerVersion) -> Result<Installation> {
    let own = std::iter::once(bindir.clone());
    let all = own.chain(candidates(Path::new("/"))).chain(search_path());
    let mut there = all.map(|directory| directory.join("psql")).filter(|psql| psql.is_file());
    match there.next() {
        Some(psql) => Ok(Installation { bindir, psql, version }),
        None => Err(Error::NoPsql),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_all_packages_comes_first_and_other_directories_do_not_count() {
        let root = tempfile::tempdir().unwrap();
        let directories =
            ["lib/postgresql/9", "lib/postgresql/15", "lib/postgresql/common", "pgsql-17", "pgsql"];
        for directory in directories {
            std::fs::create_dir_all(root.path().join("usr").join(directory).join("bin")).unwrap();
        }
        let found = candidates(root.path());
        let expected =
            ["usr/pgsql-17/bin", "usr/lib/postgresql/15/bin", "usr/lib/postgresql/9/bin"];
        assert_eq!(found, expected.map(|directory| root.path().join(directory)));
        assert!(candidates(&root.path().join("usr/pgsql")).is_empty());
    }

    #[test]
    fn a_version_is_told_with_its_package_and_known_by_its_first_number() {
        let found =
            parse_version("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n").unwrap();
        assert_eq!((found.major, found.text.as_str()), (15, "15.14 (Debian 15.14-0+deb12u1)"));
        assert_eq!(parse_version("postgres (PostgreSQL) 19beta1").unwrap().major, 19);
        assert_eq!(parse_version("postgres (Something else) 15.1"), None);
        assert_eq!(parse_version(""), None);
    }

    #[test]
    fn a_directory_that_was_named_has_to_have_the_programs() {
        let dir = tempfile::tempdir().unwrap();
        let refused = |expected: &str| {
            let error = Installation::at(dir.path(), 14..=18).unwrap_err();
            assert!(matches!(error, Error::NotAnInstallation { .. }));
            assert!(error.to_string().contains(expected), "{error}");
        };
        refused("there is no postgres and no initdb");
        std::fs::write(dir.path().join("postgres"), "").unwrap();
        refused("there is no initdb");
        std::fs::write(dir.path().join("initdb"), "").unwrap();
        refused("its postgres does not run");
    }

    #[test]
    fn a_search_path_counts_where_it_is_the_same_everywhere() {
        let found = absolute_directories(OsStr::new("/usr/bin:.::bin:/opt/x"));
        assert_eq!(found, [Path::new("/usr/bin"), Path::new("/opt/x")]);
    }
}
