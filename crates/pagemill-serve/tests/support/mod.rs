//! A `pagemill-serve` of a test, on a socket of its own.
//!
//! Invariant: it has ended when the value is gone, also where a test fails between.

use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use pagemill_testkit::{PgInstall, TestCluster};

/// How long a server may take until its socket is there, on a machine that does other things.
const PATIENCE: Duration = Duration::from_secs(30);

/// What psql is told by a server, and by `pagemill-serve` on its files once it has stopped, is the same: `all` asks by a client and
/// says what each answer is of.
#[allow(dead_code)] // Not all tests ask by psql.
pub(crate) fn check_alike(
    mut cluster: TestCluster,
    install: &PgInstall,
    all: impl Fn(&dyn Fn() -> Command) -> Result<Vec<(String, String)>>,
) -> Result<()> {
    let expected = all(&|| cluster.psql_command("postgres"))?;
    cluster.stop()?;
    let served = Served::start(&cluster, &["-p", "5432"])?;
    let found = all(&|| {
        let mut client = Command::new(install.psql());
        client.args(["-X", "-q", "-p", "5432", "-d", "postgres", "-h"]);
        client.arg(served.directory.path());
        client
    })?;
    for ((what, expected), (_, found)) in expected.iter().zip(found) {
        for (line, (expected, found)) in expected.lines().zip(found.lines()).enumerate() {
            assert_eq!(found, expected, "{what}, line {line}");
        }
        assert_eq!(&found, expected, "{what}");
    }
    Ok(())
}

pub(crate) struct Served {
    pub(crate) child: Child,
    /// Where its socket is.
    pub(crate) directory: tempfile::TempDir,
}

impl Served {
    /// Starts it on the files of a stopped cluster, with these flags beside.
    #[allow(dead_code)] // Not all tests have one cluster.
    pub(crate) fn start(cluster: &TestCluster, flags: &[&str]) -> Result<Self> {
        let mut words = vec![OsString::from("-D"), cluster.data_dir().into()];
        words.extend(flags.iter().map(OsString::from));
        Self::by(|command| command.arg("-q").arg("serve").args(words))
    }

    /// Starts it by a command line, to which the place of its socket is added. What it says is in its log.
    pub(crate) fn by(words: impl FnOnce(&mut Command) -> &mut Command) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill-serve"));
        words(&mut command).arg("-k").arg(directory.path());
        let log = std::fs::File::create(directory.path().join("log"))?;
        let child = command.stderr(log).spawn()?;
        let mut served = Self { child, directory };
        let start = Instant::now();
        while !served.has_socket()? {
            ensure!(served.child.try_wait()?.is_none(), "it ended: {}", served.log()?);
            ensure!(start.elapsed() < PATIENCE, "no socket appeared");
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(served)
    }

    #[allow(dead_code)] // Not all tests speak for themselves.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join(".s.PGSQL.5432")
    }

    /// Whether there is one that takes clients, whatever its port: it has its name a moment before it does.
    fn has_socket(&self) -> Result<bool> {
        let mut names = std::fs::read_dir(self.directory.path())?;
        Ok(names.any(|entry| {
            entry.is_ok_and(|entry| {
                entry.file_name().to_string_lossy().starts_with(".s.PGSQL.")
                    && UnixStream::connect(entry.path()).is_ok()
            })
        }))
    }

    /// What it said on standard error.
    #[allow(dead_code)] // Not all tests read it.
    pub(crate) fn log(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.directory.path().join("log"))?)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
