//! Where PostgreSQL of a given major version is installed on this machine.
//!
//! Debian's packages are looked for first, then the directory an environment variable names, then the cache that
//! `ci/fetch-postgres-matrix.sh` fills. Paths are resolved, because the cache in root's home is a symbolic link
//! to a place the server's account may enter.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use pagemill_server::Installation;

/// The major versions Pagemill reads.
pub const MAJORS: [u32; 5] = [14, 15, 16, 17, 18];

/// The version the tests cannot do without.
pub const REQUIRED_MAJOR: u32 = 15;

/// One installed PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PgInstall {
    /// The directory with `initdb`, `pg_ctl` and `postgres`.
    pub bindir: PathBuf,
    /// The major version.
    pub major: u32,
}

impl PgInstall {
    /// The installation of this major version, if there is one.
    pub fn find(major: u32) -> Option<PgInstall> {
        candidates(major)
            .into_iter()
            .find(|dir| is_server_dir(dir))
            .and_then(|dir| dir.canonicalize().ok())
            .map(|bindir| PgInstall { bindir, major })
    }

    /// Of every installation found the oldest, that of the required version, and the newest: for long tests of what
    /// versions hardly differ in. All of them where `PAGEMILL_TEST_MAJORS` asks for some.
    pub fn spread() -> Vec<PgInstall> {
        let all = PgInstall::all();
        if std::env::var_os("PAGEMILL_TEST_MAJORS").is_some() {
            return all;
        }
        let (first, last) = (all.first().map(|i| i.major), all.last().map(|i| i.major));
        let is_kept = |install: &PgInstall| {
            [first, Some(REQUIRED_MAJOR), last].contains(&Some(install.major))
        };
        all.into_iter().filter(is_kept).collect()
    }

    /// The required version and the newest, one with data checksums in its prepared cluster and one without: for what
    /// lies below everything that versions differ in, such as ways to read a file. All of them where
    /// `PAGEMILL_TEST_MAJORS` asks for some.
    pub fn two() -> Vec<PgInstall> {
        let mut some = PgInstall::spread();
        if std::env::var_os("PAGEMILL_TEST_MAJORS").is_none() {
            let last = some.last().map(|install| install.major);
            some.retain(|install| [Some(REQUIRED_MAJOR), last].contains(&Some(install.major)));
        }
        some
    }

    /// Every installation found; says on standard error which versions are skipped. `PAGEMILL_TEST_MAJORS=15,18`
    /// asks for some of them only.
    pub fn all() -> Vec<PgInstall> {
        let wanted = std::env::var("PAGEMILL_TEST_MAJORS").ok();
        MAJORS
            .into_iter()
            .filter(|major| is_wanted(wanted.as_deref(), *major))
            .filter_map(|major| {
                let found = PgInstall::find(major);
                if found.is_none() {
                    eprintln!(
                        "SKIPPED: PostgreSQL {major} is not installed (ci/fetch-postgres-matrix.sh)"
                    );
                }
                found
            })
            .collect()
    }

    /// The path of one of the server's programs.
    pub fn program(&self, name: &str) -> PathBuf {
        self.bindir.join(name)
    }

    /// The `psql` to talk to this server with: its own, or any installed one.
    pub fn psql(&self) -> PathBuf {
        self.installation().map_or_else(|_| "psql".into(), |found| found.psql().to_owned())
    }

    /// The same with all that its programs say of themselves; each is asked once by a process.
    ///
    /// # Errors
    /// When its server is of another version.
    pub fn installation(&self) -> Result<Installation> {
        static KNOWN: Mutex<BTreeMap<PathBuf, Installation>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(&self.bindir) {
            return Ok(found.clone());
        }
        let found = Installation::at(&self.bindir, self.major..=self.major)?;
        known.insert(self.bindir.clone(), found.clone());
        Ok(found)
    }
}

fn is_wanted(majors: Option<&str>, major: u32) -> bool {
    majors.is_none_or(|majors| majors.split(',').any(|one| one.trim() == major.to_string()))
}

fn candidates(major: u32) -> Vec<PathBuf> {
    let mut dirs = vec![debian_bindir(major)];
    if let Some(dir) = std::env::var_os(format!("PAGEMILL_PG{major}_BINDIR")) {
        dirs.push(PathBuf::from(dir));
    }
    if let Some(home) = std::env::var_os("HOME") {
        dirs.push(Path::new(&home).join(format!(".cache/pagemill-test/pg{major}/bin")));
    }
    dirs
}

fn debian_bindir(major: u32) -> PathBuf {
    PathBuf::from(format!("/usr/lib/postgresql/{major}/bin"))
}

fn is_server_dir(dir: &Path) -> bool {
    ["initdb", "pg_ctl", "postgres"].iter().all(|program| dir.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_versions_are_wanted_unless_some_are_named() {
        assert!(is_wanted(None, 14));
        assert!(is_wanted(Some("15, 18"), 18));
        assert!(!is_wanted(Some("15,18"), 14));
    }
}
