//! A `pagemill-serve` of a test, on a socket of its own.
//!
//! Invariant: it has ended when the value is gone, also where a test fails between.

use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use pagemill_testkit::TestCluster;

/// How long a server may take until its socket is there, on a machine that does other things.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Served {
    pub(crate) child: Child,
    /// Where its socket is.
    pub(crate) directory: tempfile::TempDir,
}

impl Served {
    /// Starts it on the files of a stopped cluster, with these flags beside.
    pub(crate) fn start(cluster: &TestCluster, flags: &[&str]) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill-serve"));
        command.args(["-q", "serve", "-D"]).arg(cluster.data_dir()).args(flags);
        let child = command.arg("-k").arg(directory.path()).spawn()?;
        let served = Self { child, directory };
        let start = Instant::now();
        while !served.socket().exists() {
            ensure!(start.elapsed() < PATIENCE, "no socket appeared");
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(served)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join(".s.PGSQL.5432")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
