//! A cluster in a directory, and all that is done with its server.
//!
//! ```text
//! DIR/data/            initdb's; postgresql.conf has the caller's settings at its end
//! DIR/server.log       what the server says
//! DIR/.s.PGSQL.5432    its socket, the only way in
//! ```
//!
//! Should a server outlive all of this, it ends by itself within a minute after its directory was removed
//! (`RecheckDataDirLockFile`, `src/backend/utils/init/miscinit.c`, PostgreSQL 14 to 18).
//!
//! Invariant: nothing is made outside the directory but where a socket's name would be too long.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pagemill_sys::{EndSignal, end_with_parent};

use crate::IsCanceled;
use crate::account::{Account, clear_settings};
use crate::error::{Error, Result};
use crate::initdb::InitdbOptions;
use crate::installation::Installation;
use crate::postmaster::{Postmaster, last_lines};
use crate::session::Session;
use crate::socket_directory::{PORT, SocketDirectory};

/// The superuser of every cluster.
pub const SUPERUSER: &str = "postgres";

/// A server, running or not.
#[derive(Debug)]
pub struct Server {
    installation: Installation,
    account: Account,
    directory: PathBuf,
    sockets: SocketDirectory,
    ends_with_parent: bool,
}

impl Server {
    /// One in `directory`, an absolute path. The directory is there, and becomes the account's.
    ///
    /// # Errors
    /// When it cannot be given to the account, or no directory will do for a socket.
    pub fn new(installation: Installation, account: Account, directory: &Path) -> Result<Self> {
        account.own(directory)?;
        let sockets = SocketDirectory::new(directory, &account)?;
        let directory = directory.to_owned();
        Ok(Self { installation, account, directory, sockets, ends_with_parent: false })
    }

    /// The same, but all that it starts ends with the thread that does so, however that ends; see
    /// [`pagemill_sys::end_with_parent`].
    #[must_use]
    pub fn ending_with_parent(self) -> Self {
        Self { ends_with_parent: true, ..self }
    }

    /// Where its programs are.
    pub fn installation(&self) -> &Installation {
        &self.installation
    }

    /// Whose it is.
    pub fn account(&self) -> Account {
        self.account
    }

    /// Where everything of it lies.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// What it says.
    pub fn log(&self) -> PathBuf {
        self.directory.join("server.log")
    }

    /// Makes the cluster. Its superuser is [`SUPERUSER`], whom everybody on its socket may be.
    ///
    /// # Errors
    /// When the account cannot run the programs, or does not get to the directory, or when initdb fails.
    pub fn initdb(&self, options: &InitdbOptions<'_>) -> Result<()> {
        self.check_reach()?;
        let mut initdb = self.command("initdb", EndSignal::Terminate);
        initdb.args(options.arguments(self.installation.major())).arg("-D").arg(self.data());
        succeed(initdb)?;
        let path = self.data().join("postgresql.conf");
        let file = OpenOptions::new().append(true).open(&path);
        let text = options.configuration();
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(Error::file(&path))
    }

    /// Sees that the account may run the server's programs and gets to the directory.
    fn check_reach(&self) -> Result<()> {
        let is_possible = |place: &Path| {
            let mut command = self.command("initdb", EndSignal::Terminate);
            command.arg("--version").current_dir(place);
            command.output().is_ok_and(|output| output.status.success())
        };
        let account = self.account.name();
        if !is_possible(Path::new("/")) {
            return Err(Error::NotExecutable { account });
        }
        match is_possible(&self.directory) {
            true => Ok(()),
            false => Err(Error::OutOfReach { account, path: self.directory.clone() }),
        }
    }

    /// Starts it with these settings (`name=value`) over those of its files, and waits until it accepts connections.
    ///
    /// # Errors
    /// When it does not start, or the wait was to end.
    pub fn start(&self, settings: &[String], is_canceled: IsCanceled<'_>) -> Result<Postmaster> {
        self.start_by(self.command("postgres", EndSignal::Quit), settings, is_canceled)
    }

    /// The same, but as a program that `wrapper` runs in place of itself, such as `taskset`.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_through(&self, wrapper: Command, settings: &[String]) -> Result<Postmaster> {
        let postgres = self.installation.program("postgres");
        let command = self.account.command_through(wrapper, &postgres);
        self.start_by(command, settings, &crate::never)
    }

    fn start_by(
        &self,
        mut postgres: Command,
        settings: &[String],
        is_canceled: IsCanceled<'_>,
    ) -> Result<Postmaster> {
        let (data, log) = (self.data(), self.log());
        File::options().append(true).create(true).open(&log).map_err(Error::file(&log))?;
        self.account.own(&log)?;
        postgres.arg("-D").arg(&data).arg("-k").arg(self.sockets.path()).args(["-p", PORT]);
        postgres.args(settings.iter().flat_map(|setting| ["-c", setting]));
        Postmaster::start(postgres, &data, &log, is_canceled)
    }

    /// The server that runs here, whoever started it.
    ///
    /// # Errors
    /// When none does.
    pub fn running(&self) -> Result<Postmaster> {
        Postmaster::found(&self.data(), &self.log())
    }

    /// Where the server listens while it runs.
    pub fn socket(&self) -> PathBuf {
        self.sockets.path().join(format!(".s.PGSQL.{PORT}"))
    }

    /// Has a client connect to this server.
    pub fn connect(&self, client: &mut Command, database: &str) {
        client.env("PGHOST", self.sockets.path()).env("PGPORT", PORT);
        client.env("PGUSER", SUPERUSER).env("PGDATABASE", database).env("PGCONNECT_TIMEOUT", "60");
    }

    /// A `psql` of the caller's that connects to a database, stops at the first error and reads no `.psqlrc`.
    pub fn psql_command(&self, database: &str) -> Command {
        let mut command = Command::new(self.installation.psql());
        clear_settings(&mut command);
        self.connect(&mut command, database);
        command.args(["-X", "-q", "-v", "ON_ERROR_STOP=1"]);
        if self.ends_with_parent {
            end_with_parent(&mut command, EndSignal::Terminate);
        }
        command
    }

    /// Runs statements, or psql's own commands, in one session, and gives what they print, unaligned and without headings.
    ///
    /// # Errors
    /// What psql said when one failed.
    pub fn psql(&self, database: &str, statements: &[&str]) -> Result<String> {
        let mut command = self.psql_command(database);
        command.args(["-A", "-t"]);
        command.args(statements.iter().flat_map(|statement| ["-c", statement]));
        let output = succeed(command)?;
        Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned())
    }

    /// A session in a database.
    ///
    /// # Errors
    /// When psql does not start.
    pub fn session(&self, database: &str) -> Result<Session> {
        Session::begin(self.psql_command(database))
    }

    /// One of its programs as its account runs it.
    fn command(&self, program: &str, signal: EndSignal) -> Command {
        let mut command = self.account.command(&self.installation.program(program));
        if self.ends_with_parent {
            end_with_parent(&mut command, signal);
        }
        command
    }
}

/// Runs a program to its end.
fn succeed(mut command: Command) -> Result<Output> {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default();
    let program = name.to_string_lossy().into_owned();
    let output = command.output().map_err(Error::system(program.clone()))?;
    match output.status.success() {
        true => Ok(output),
        false => Err(Error::Program {
            program,
            said: last_lines(&String::from_utf8_lossy(&output.stderr)),
        }),
    }
}
