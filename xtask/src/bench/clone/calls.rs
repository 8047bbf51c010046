//! The calls that read, write and sync, as strace saw them, by what the files are for.
//!
//! The server is watched from outside: its processes, and those it starts. Pagemill is watched from its start, and is
//! told that there is no ring, as strace does not see what goes through one: its writes are the same then, by threads.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::cloner::{self, RunStats};

const TRACED: &str = "trace=read,pread64,readv,preadv,preadv2,write,pwrite64,writev,pwritev,pwritev2,\
                      copy_file_range,fsync,fdatasync,sync_file_range,io_uring_setup";
/// Strace changes only what it traces.
const NO_RING: &str = "inject=io_uring_setup:error=ENOSYS";
/// How long strace may take to find the processes it was given.
const PATIENCE: Duration = Duration::from_secs(10);

/// Calls by kind, of data files and of WAL.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Calls {
    pub(super) data_reads: u64,
    pub(super) data_writes: u64,
    pub(super) wal_writes: u64,
    pub(super) syncs: u64,
    pub(super) write_backs: u64,
}

/// Both sides.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    pub(super) server: Calls,
    pub(super) pagemill: Calls,
    /// What pagemill counted itself in the run that strace saw.
    pub(super) stats: RunStats,
}

/// Whether strace is there.
pub(super) fn can_be_counted() -> bool {
    Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_ok_and(|s| s.success())
}

/// The calls of all processes of the server in this data directory, while `work` runs.
pub(super) fn of_server<T>(
    data: &Path,
    log: &Path,
    work: impl FnOnce() -> Result<T>,
) -> Result<Calls> {
    let text = std::fs::read_to_string(data.join("postmaster.pid")).context("no server")?;
    let postmaster = text.lines().next().unwrap_or_default().trim().to_owned();
    let children = format!("/proc/{postmaster}/task/{postmaster}/children");
    let children = std::fs::read_to_string(children).unwrap_or_default();
    let mut watched: Vec<&str> = children.split_whitespace().collect();
    watched.push(&postmaster);
    let mut strace = strace(log);
    for process in &watched {
        strace.args(["-p", process]);
    }
    strace.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = strace.spawn().context("could not start strace")?;
    let attached = wait_until_watched(&watched);
    let worked = attached.and_then(|()| work());
    stop(child)?;
    worked?;
    counted(&std::fs::read_to_string(log)?)
}

/// The calls of a command of pagemill, and its own account.
pub(super) fn of_command(command: &Command, log: &Path) -> Result<(Calls, RunStats)> {
    let mut strace = strace(log);
    strace.args(["-e", NO_RING]).arg(command.get_program()).args(command.get_args());
    let (_, stats) = cloner::timed(strace.stdin(Stdio::null()))?;
    Ok((counted(&std::fs::read_to_string(log)?)?, stats))
}

fn strace(log: &Path) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-s", "0", "-e", TRACED, "-o"]).arg(log);
    strace
}

fn wait_until_watched(processes: &[&str]) -> Result<()> {
    let is_watched = |process: &&str| {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
        tracer.is_some_and(|tracer| tracer.trim() != "0")
    };
    let begin = Instant::now();
    while !processes.iter().all(is_watched) {
        ensure!(begin.elapsed() < PATIENCE, "strace could not watch the server");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Lets strace let go of what it watches, and end.
fn stop(mut strace: Child) -> Result<()> {
    Command::new("kill").args(["-INT", &strace.id().to_string()]).status()?;
    strace.wait()?;
    Ok(())
}

/// Counts the lines of a log, such as `17 pwrite64(5</data/base/5/1249>, ""..., 8192, 0) = 8192`.
fn counted(log: &str) -> Result<Calls> {
    let mut calls = Calls::default();
    for line in log.lines().filter(|line| !line.contains(" resumed>")) {
        let Some((call, arguments)) = called(line) else { continue };
        let path = arguments.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
        let path = path.map_or("", |(path, _)| path);
        let is_wal = path.contains("/pg_wal/");
        let is_data = ["/base/", "/global/", "/pg_tblspc/"].iter().any(|part| path.contains(part));
        let count = match call {
            "fsync" | "fdatasync" => &mut calls.syncs,
            "sync_file_range" => &mut calls.write_backs,
            "copy_file_range" => &mut calls.data_writes,
            _ if call.contains("read") && is_data => &mut calls.data_reads,
            _ if call.contains("write") && is_data => &mut calls.data_writes,
            _ if call.contains("write") && is_wal => &mut calls.wal_writes,
            _ => continue,
        };
        *count += 1;
    }
    ensure!(calls != Calls::default(), "strace saw nothing");
    Ok(calls)
}

/// The name of the call and what follows it.
fn called(line: &str) -> Option<(&str, &str)> {
    let (head, arguments) = line.split_once('(')?;
    Some((head.split_whitespace().last()?, arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_apart_by_their_file_and_counted_once_when_they_were_interrupted() {
        let log = "\
17    pread64(5</d/base/5/1249>, \"\"..., 8192, 0) = 8192
17    pwrite64(6</d/base/6/1249>, \"\"..., 8192, 0) = 8192
18    pwrite64(7</d/pg_wal/000000010000000000000001>, \"\"..., 1048576, 0 <unfinished ...>
17    fdatasync(7</d/pg_wal/000000010000000000000001>) = 0
18    <... pwrite64 resumed>) = 1048576
17    read(9<socket:[1]>, \"\"..., 8192) = 1
17    sync_file_range(6</d/base/6/1249>, 0, 8192, SYNC_FILE_RANGE_WRITE) = 0
17    +++ exited with 0 +++
";
        let expected =
            Calls { data_reads: 1, data_writes: 1, wal_writes: 1, syncs: 1, write_backs: 1 };
        assert_eq!(counted(log).unwrap(), expected);
        assert!(counted("17 +++ exited with 0 +++").is_err());
    }
}
