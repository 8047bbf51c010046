//! A PostgreSQL server of the run's own: made in a directory of the run, started and stopped as experiments need it, and timed.
//!
//! When this process is killed the kernel has the server shut down at once.
//!
//! Invariant: while the server is stopped, it was shut down cleanly, or an error was told.

mod processes;

use std::cell::RefCell;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use pagemill_server::{Account, Answer, InitdbOptions, Postmaster, Session, Shutdown};

pub use pagemill_server::Installation;

use processes::{ServerTimes, Times};

use crate::advice::Version;
use crate::cancel::Cancel;
use crate::contestant::Work;
use crate::error::{Error, Result};

/// An installation, or why there is none and what would help.
pub type InstallationSearch = std::result::Result<Installation, String>;

/// The accounts that root tries, one after the other.
const ACCOUNTS: [&str; 2] = ["postgres", "nobody"];

/// What keeps the server from working by itself while it is timed, or from doing a statement in other ways than meant. All else
/// is as a server has it that nobody has set up.
const SETTINGS: &str = "
# The lab's.
autovacuum = off
checkpoint_timeout = 1h
max_wal_size = 64GB
max_parallel_workers_per_gather = 0
jit = off
synchronize_seqscans = off
enable_bitmapscan = off
enable_indexonlyscan = off
enable_sort = off
";

/// A server, running or not.
#[derive(Debug)]
pub(crate) struct Server {
    /// Ends before the directory of its socket goes.
    running: RefCell<Option<Running>>,
    own: pagemill_server::Server,
}

/// A server that runs.
#[derive(Debug)]
struct Running {
    /// Ends before the server does.
    session: Option<KnownSession>,
    postmaster: Postmaster,
    settings: Vec<String>,
}

/// A session, and the process on the server's side.
#[derive(Debug)]
struct KnownSession {
    session: Session,
    backend: u32,
}

/// The installation of a directory, if one is given; else what is found.
///
/// # Errors
/// When the directory is given and has no server of a known version.
pub(crate) fn look_for(bindir: Option<&Path>) -> Result<InstallationSearch> {
    let majors = Version::OLDEST..=Version::NEWEST;
    let found = match bindir {
        Some(bindir) => Installation::at(bindir, majors),
        None => Installation::newest(majors),
    };
    match found {
        Ok(found) => Ok(Ok(found)),
        Err(why @ pagemill_server::Error::NoPsql) => Ok(Err(why.to_string())),
        Err(why @ pagemill_server::Error::NotInstalled { .. }) => Ok(Err(format!(
            "{why}: install one, or name the directory of its programs with --with-postgres"
        ))),
        Err(error) => Err(error.into()),
    }
}

impl Server {
    /// Makes one in `directory`, which is empty; a run's own directory lies right above it. Only where it has to does that
    /// let others pass; what is in it stays closed to them.
    ///
    /// # Errors
    /// When there is no account for it, that gets to no directory above, or when initdb fails.
    pub(crate) fn make(installation: &Installation, directory: &Path) -> Result<Self> {
        let account = Account::for_server(&ACCOUNTS)?;
        let directory = directory.canonicalize().map_err(Error::file(directory))?;
        let mode = |path: &Path, mode: u32| {
            fs::set_permissions(path, Permissions::from_mode(mode)).map_err(Error::file(path))
        };
        mode(&directory, 0o700)?;
        let own = pagemill_server::Server::new(installation.clone(), account, &directory)?;
        let own = own.ending_with_parent();
        // Nothing here computes checksums.
        let options = InitdbOptions {
            data_checksums: Some(false),
            settings: SETTINGS,
            ..InitdbOptions::default()
        };
        match (own.initdb(&options), directory.parent()) {
            (Err(pagemill_server::Error::OutOfReach { .. }), Some(above)) => {
                mode(above, 0o711)?;
                own.initdb(&options)?;
            }
            (made, _) => made?,
        }
        Ok(Self { running: RefCell::default(), own })
    }

    /// Its data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.own.data()
    }

    /// What it was made with.
    pub(crate) fn installation(&self) -> &Installation {
        self.own.installation()
    }

    /// Lets the server read a file.
    pub(crate) fn give(&self, path: &Path) -> Result<()> {
        Ok(self.own.account().own(path)?)
    }

    /// Sees that it runs, with these settings over those it has anyway.
    ///
    /// # Errors
    /// When it does not start, or the run shall end.
    pub(crate) fn start(&self, settings: &[String], cancel: &Cancel) -> Result<()> {
        let is_running = |running: &mut Running| {
            running.settings == settings && matches!(running.postmaster.has_ended(), Ok(false))
        };
        if self.running.borrow_mut().as_mut().is_some_and(is_running) {
            return Ok(());
        }
        self.stop()?;
        let postmaster = self.own.start(settings, &|| cancel.is_cancelled())?;
        let running = Running { session: None, postmaster, settings: settings.to_vec() };
        *self.running.borrow_mut() = Some(running);
        Ok(())
    }

    /// Sees that it is stopped, and cleanly so.
    ///
    /// # Errors
    /// When it does not stop, or had ended before.
    pub(crate) fn stop(&self) -> Result<()> {
        let Some(running) = self.running.borrow_mut().take() else { return Ok(()) };
        drop(running.session);
        Ok(running.postmaster.stop(Shutdown::Fast)?)
    }

    /// Runs a statement in the database postgres, and gives its rows.
    ///
    /// # Errors
    /// When the server is not running or refuses it, or the run shall end.
    pub(crate) fn run(&self, statement: &str, cancel: &Cancel) -> Result<String> {
        self.with_session(cancel, |known, _| Ok(known.ask(statement, cancel)?.text))
    }

    /// Runs statements in a session of their own in another database.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub(crate) fn run_in(
        &self,
        database: &str,
        statements: &[&str],
        cancel: &Cancel,
    ) -> Result<()> {
        let mut known = self.session(database, cancel)?;
        statements.iter().try_for_each(|statement| known.ask(statement, cancel).map(drop))
    }

    /// Runs a statement, and gives its rows, with the time it took and what the server's processes used meanwhile.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub(crate) fn timed(&self, statement: &str, cancel: &Cancel) -> Result<(String, Work)> {
        self.with_session(cancel, |known, server| {
            let look = |backend: u32| (ServerTimes::of(server), processes::run_and_queued(backend));
            let before = look(known.backend);
            let answer = known.ask(statement, cancel)?;
            let after = look(known.backend);
            let added =
                |now: Option<Times>, then: Option<Times>| Some(processes::since(now?, then?));
            let waited = answer
                .time
                .zip(added(after.1, before.1))
                .map(|(time, (run, queued))| time.saturating_sub(run).saturating_sub(queued));
            let work = Work {
                elapsed: answer.time,
                processor: after.0.zip(before.0).map(|(now, then)| now.since(then)),
                wait: waited,
                ..Work::operations(1)
            };
            Ok((answer.text, work))
        })
    }

    /// Does something with the session, which ends if that fails.
    fn with_session<T>(
        &self,
        cancel: &Cancel,
        act: impl FnOnce(&mut KnownSession, u32) -> Result<T>,
    ) -> Result<T> {
        let mut running = self.running.borrow_mut();
        let running =
            running.as_mut().ok_or_else(|| Error::server("the server", "it is not running"))?;
        let mut known = match running.session.take() {
            Some(known) => known,
            None => self.session("postgres", cancel)?,
        };
        let outcome = act(&mut known, running.postmaster.id())?;
        running.session = Some(known);
        Ok(outcome)
    }

    fn session(&self, database: &str, cancel: &Cancel) -> Result<KnownSession> {
        let mut known = KnownSession { session: self.own.session(database)?, backend: 0 };
        known.backend = known.ask("SELECT pg_backend_pid()", cancel)?.text.parse().unwrap_or(0);
        Ok(known)
    }
}

impl KnownSession {
    fn ask(&mut self, statement: &str, cancel: &Cancel) -> Result<Answer> {
        Ok(self.session.ask(&format!("{statement};"), &|| cancel.is_cancelled())?)
    }
}

#[cfg(test)]
mod tests;
