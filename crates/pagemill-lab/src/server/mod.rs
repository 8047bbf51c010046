//! A PostgreSQL server of the run's own: made in a directory of the run, started and stopped as experiments need it.
//!
//! ```text
//! DIR/data/            initdb's; postgresql.conf has SETTINGS at its end
//! DIR/server.log       what the server says
//! DIR/psql.errors      what psql says
//! DIR/.s.PGSQL.5432    its socket, the only way in
//! ```
//!
//! The server is a child of this process: it is stopped when the value is dropped, and when this process is killed the
//! kernel has it shut down at once. Should that fail, it ends by itself within a minute after its directory was removed
//! (`RecheckDataDirLockFile`, `src/backend/utils/init/miscinit.c`, PostgreSQL 14 to 18).
//!
//! Invariants: no server but this one is talked to; nothing is made outside the directory but where a socket's name would be too
//! long; while the server is stopped, it was shut down cleanly, or an error was told.

mod account;
mod installation;
mod processes;
mod session;
mod socket_directory;

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use pagemill_sys::{EndSignal, end_with_parent};
use rustix::process::{Pid, Signal, kill_process};

pub use installation::{Installation, InstallationSearch};

use account::Account;
use processes::{ServerTimes, Times};
use session::Session;
use socket_directory::SocketDirectory;

use crate::cancel::Cancel;
use crate::contestant::Work;
use crate::error::{Error, Result};

/// What keeps the server from working by itself while it is timed, or from doing a statement in other ways than meant. All else
/// is as a server has it that nobody has set up.
const SETTINGS: &str = "
# The lab's.
listen_addresses = ''
port = 5432
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

/// From this version on checksums are on unless somebody says otherwise.
const CHECKSUMS_BY_DEFAULT: u32 = 18;
/// How long a server may take to start or to stop.
const LONGEST: Duration = Duration::from_secs(300);
/// How long it may take to end at once.
const AT_ONCE: Duration = Duration::from_secs(10);
/// How often it is looked whether it has started or stopped.
const LOOK: Duration = Duration::from_millis(5);
/// Lines of a log that are told.
const TOLD_LINES: usize = 3;

/// A server, running or not.
#[derive(Debug)]
pub(crate) struct Server {
    installation: Installation,
    account: Account,
    directory: PathBuf,
    /// Ends before the directory of its socket goes.
    running: RefCell<Option<Running>>,
    sockets: SocketDirectory,
}

/// A server that runs. Dropped, it is shut down at once.
#[derive(Debug)]
struct Running {
    session: Option<Session>,
    process: Child,
    settings: Vec<String>,
}

impl Server {
    /// Makes one in `directory`, which is empty; a run's own directory lies right above it.
    ///
    /// # Errors
    /// When there is no account for it, that gets to no directory above, or when initdb fails.
    pub(crate) fn make(installation: &Installation, directory: &Path) -> Result<Self> {
        let account = Account::for_server()?;
        let directory = directory.canonicalize().map_err(Error::file(directory))?;
        let_in(&account, installation, &directory)?;
        let sockets = SocketDirectory::new(&directory, &account)?;
        let installation = installation.clone();
        let server =
            Self { installation, account, directory, sockets, running: RefCell::default() };
        server.initialize()?;
        Ok(server)
    }

    fn initialize(&self) -> Result<()> {
        let mut initdb = self.command(&self.installation.program("initdb"), EndSignal::Terminate);
        initdb.args(["-D", "data", "-U", "postgres", "--auth=trust", "--no-sync"]);
        initdb.args(["--encoding=UTF8", "--locale=C"]);
        if self.installation.major() >= CHECKSUMS_BY_DEFAULT {
            // Nothing here computes any; older versions have none unless asked.
            initdb.arg("--no-data-checksums");
        }
        let output = initdb.output().map_err(Error::system("initdb"))?;
        if !output.status.success() {
            return Err(Error::server(
                "initdb",
                last_lines(&String::from_utf8_lossy(&output.stderr)),
            ));
        }
        let path = self.data().join("postgresql.conf");
        let file = OpenOptions::new().append(true).open(&path);
        file.and_then(|mut file| file.write_all(SETTINGS.as_bytes())).map_err(Error::file(&path))
    }

    /// A program that runs where the server is, under its account, no longer than this process.
    fn command(&self, program: &Path, signal: EndSignal) -> Command {
        let mut command = self.account.command(program);
        command.current_dir(&self.directory);
        end_with_parent(&mut command, signal);
        command
    }

    /// Its data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// What it was made with.
    pub(crate) fn installation(&self) -> &Installation {
        &self.installation
    }

    /// Lets the server read a file.
    pub(crate) fn give(&self, path: &Path) -> Result<()> {
        self.account.give(path).map_err(Error::file(path))
    }

    /// Sees that it runs, with these settings over those it has anyway.
    ///
    /// # Errors
    /// When it does not start, or the run shall end.
    pub(crate) fn start(&self, settings: &[String], cancel: &Cancel) -> Result<()> {
        let is_running = |running: &mut Running| {
            running.settings == settings && matches!(running.process.try_wait(), Ok(None))
        };
        if self.running.borrow_mut().as_mut().is_some_and(is_running) {
            return Ok(());
        }
        self.stop()?;
        let log = self.directory.join("server.log");
        let said = File::create(&log).map_err(Error::file(&log))?;
        let again = said.try_clone().map_err(Error::file(&log))?;
        let program = self.installation.program("postgres");
        let mut postgres = self.command(&program, EndSignal::Quit);
        postgres.args(["-D", "data", "-c"]);
        postgres.arg(format!("unix_socket_directories={}", self.sockets.path().display()));
        postgres.args(settings.iter().flat_map(|setting| ["-c", setting]));
        let process = postgres.stdout(said).stderr(again).spawn();
        let process = process.map_err(Error::system("postgres"))?;
        let running = Running { session: None, process, settings: settings.to_vec() };
        let running = self.wait_until_ready(running, &log, cancel)?;
        *self.running.borrow_mut() = Some(running);
        Ok(())
    }

    fn wait_until_ready(
        &self,
        mut running: Running,
        log: &Path,
        cancel: &Cancel,
    ) -> Result<Running> {
        let begin = Instant::now();
        let file = self.data().join("postmaster.pid");
        loop {
            let text = fs::read_to_string(&file).unwrap_or_default();
            if is_ready(&text, running.process.id()) {
                return Ok(running);
            }
            let ended = running.process.try_wait().map_err(Error::system("postgres"))?;
            if ended.is_some() || begin.elapsed() > LONGEST {
                let said = fs::read_to_string(log).unwrap_or_default();
                return Err(Error::server("the server did not start", last_lines(&said)));
            }
            cancel.check()?;
            std::thread::sleep(LOOK);
        }
    }

    /// Sees that it is stopped, and cleanly so.
    ///
    /// # Errors
    /// When it does not stop, or had ended before.
    pub(crate) fn stop(&self) -> Result<()> {
        let Some(mut running) = self.running.borrow_mut().take() else { return Ok(()) };
        running.session = None;
        running.signal(Signal::INT);
        let status = running.wait(LONGEST).ok_or_else(|| {
            Error::server("the server did not stop", format!("after {} s", LONGEST.as_secs()))
        })?;
        match status {
            true => Ok(()),
            false => {
                let said =
                    fs::read_to_string(self.directory.join("server.log")).unwrap_or_default();
                Err(Error::server("the server ended by itself", last_lines(&said)))
            }
        }
    }

    /// Runs a statement in the database postgres, and gives its rows.
    ///
    /// # Errors
    /// When the server is not running or refuses it, or the run shall end.
    pub(crate) fn run(&self, statement: &str, cancel: &Cancel) -> Result<String> {
        self.with_session(cancel, |session, _| Ok(session.ask(statement, cancel)?.text))
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
        let mut session = self.session(database, cancel)?;
        statements.iter().try_for_each(|statement| session.ask(statement, cancel).map(drop))
    }

    /// Runs a statement, and gives its rows, with the time it took and what the server's processes used meanwhile.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub(crate) fn timed(&self, statement: &str, cancel: &Cancel) -> Result<(String, Work)> {
        self.with_session(cancel, |session, server| {
            let look = |session: &Session| {
                (ServerTimes::of(server), processes::run_and_queued(session.backend()))
            };
            let before = look(session);
            let answer = session.ask(statement, cancel)?;
            let after = look(session);
            let added =
                |now: Option<Times>, then: Option<Times>| Some(processes::since(now?, then?));
            let waited = added(after.1, before.1)
                .map(|(run, queued)| answer.time.saturating_sub(run).saturating_sub(queued));
            let work = Work {
                elapsed: Some(answer.time),
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
        act: impl FnOnce(&mut Session, u32) -> Result<T>,
    ) -> Result<T> {
        let mut running = self.running.borrow_mut();
        let running =
            running.as_mut().ok_or_else(|| Error::server("the server", "it is not running"))?;
        let mut session = match running.session.take() {
            Some(session) => session,
            None => self.session("postgres", cancel)?,
        };
        let outcome = act(&mut session, running.process.id())?;
        running.session = Some(session);
        Ok(outcome)
    }

    fn session(&self, database: &str, cancel: &Cancel) -> Result<Session> {
        let mut psql = self.command(self.installation.psql(), EndSignal::Terminate);
        psql.args(["-U", "postgres", "-d", database, "-p", "5432", "-h"]).arg(self.sockets.path());
        Session::begin(psql, &self.directory.join("psql.errors"), cancel)
    }
}

/// Gives the directory to the account, and sees that it gets there and may run the server's programs. Only where it has to
/// does the run's directory let others pass; what is in it stays closed to them.
fn let_in(account: &Account, installation: &Installation, directory: &Path) -> Result<()> {
    let initdb = installation.program("initdb");
    let is_possible = |place: &Path| {
        let mut command = account.command(&initdb);
        command.arg("--version").current_dir(place);
        command.output().is_ok_and(|output| output.status.success())
    };
    let name = account.name();
    if !is_possible(Path::new("/")) {
        let remedy = "install it where every account may run it";
        return Err(Error::server(format!("{name} cannot run PostgreSQL's programs"), remedy));
    }
    account.give(directory).map_err(Error::file(directory))?;
    fs::set_permissions(directory, Permissions::from_mode(0o700))
        .map_err(Error::file(directory))?;
    if let Some(above) = directory.parent().filter(|_| !is_possible(directory)) {
        fs::set_permissions(above, Permissions::from_mode(0o711)).map_err(Error::file(above))?;
    }
    match is_possible(directory) {
        true => Ok(()),
        false => Err(Error::server(
            format!(
                "PostgreSQL's server does not run as root, and {name} does not get to this directory"
            ),
            "let others pass through the directories above it (chmod o+x), or name one elsewhere, as /var/tmp",
        )),
    }
}

impl Running {
    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw);
        // One that has ended cannot be signalled, and needs not.
        let _ = pid.map(|pid| kill_process(pid, signal));
    }

    /// Waits for its end: whether that was a clean one. `None` when it has not ended.
    fn wait(&mut self, longest: Duration) -> Option<bool> {
        let begin = Instant::now();
        while begin.elapsed() < longest {
            if let Ok(Some(status)) = self.process.try_wait() {
                return Some(status.success());
            }
            std::thread::sleep(LOOK);
        }
        None
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.session = None;
        if matches!(self.process.try_wait(), Ok(Some(_))) {
            return;
        }
        self.signal(Signal::QUIT);
        if self.wait(AT_ONCE).is_none() {
            // Its children see that it is gone, and end.
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

/// Whether `postmaster.pid` says that this process takes connections (its eighth line, `src/include/utils/pidfile.h`,
/// PostgreSQL 14 to 18).
fn is_ready(text: &str, pid: u32) -> bool {
    let mut lines = text.lines();
    lines.next() == Some(&pid.to_string())
        && lines.nth(6).is_some_and(|line| line.trim() == "ready")
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(TOLD_LINES);
    let told = lines.get(from..).unwrap_or_default().join("; ");
    if told.is_empty() { "it said nothing".into() } else { told }
}

#[cfg(test)]
mod tests;
