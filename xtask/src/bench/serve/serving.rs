//! `pagemill serve` as a process that stands, and the clients of either server.
//!
//! Invariant: the process ends when its value is dropped.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// The port in the name of its socket.
const PORT: &str = "5432";
const USER: &str = "postgres";
/// How long a start may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server of ours.
pub(super) struct Serving {
    child: Child,
    sockets: PathBuf,
}

impl Serving {
    /// Starts it on a directory, with these flags, and waits for its socket.
    pub(super) fn start(
        program: &Path,
        data: &Path,
        sockets: &Path,
        flags: &[&str],
    ) -> Result<Self> {
        std::fs::create_dir_all(sockets)?;
        let mut command = command(program, data);
        command.arg("-k").arg(sockets).args(["-p", PORT, "-N", "250"]).args(flags);
        let child =
            command.stderr(Stdio::null()).spawn().context("could not start pagemill-serve")?;
        let mut serving = Self { child, sockets: sockets.into() };
        let begin = Instant::now();
        while !serving.socket().exists() {
            if let Some(status) = serving.child.try_wait()? {
                bail!("pagemill-serve ended: {status}");
            }
            ensure!(begin.elapsed() < PATIENCE, "pagemill-serve made no socket");
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(serving)
    }

    /// Its socket.
    pub(super) fn socket(&self) -> PathBuf {
        self.sockets.join(format!(".s.PGSQL.{PORT}"))
    }

    /// Has a client connect to it.
    pub(super) fn connect(&self, client: &mut Command) {
        client.env("PGHOST", &self.sockets).env("PGPORT", PORT).env("PGUSER", USER);
        client.env("PGDATABASE", "postgres");
    }

    /// What it has in memory, MiB.
    pub(super) fn resident(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        Ok(kib.context("no VmRSS")? / 1024.0)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It has nothing to write: a process that reads may be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
        // A socket that nobody listens at would pass for one of the next.
        let _ = std::fs::remove_file(self.socket());
    }
}

/// `pagemill-serve serve` on a directory.
pub(super) fn command(program: &Path, data: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["serve", "-D"]).arg(data).stdin(Stdio::null());
    command
}
