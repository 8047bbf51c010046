//! `pagemill clone`: its command, and what it tells of itself.
//!
//! Apart from its side of the turns, so that a run under strace is the same command.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;

use super::options::Options;
use super::rows::Row;
use crate::bench::process;

/// What a run told of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RunStats {
    pub(super) blocks: u64,
    pub(super) read_calls: u64,
    pub(super) write_calls: u64,
    pub(super) bytes_written: u64,
    pub(super) sync_calls: u64,
    /// Bytes that the copy shares with its template.
    pub(super) shared_bytes: Option<u64>,
}

/// The command of a row.
pub(super) fn command(options: &Options, binary: &Path, data: &Path, row: &Row) -> Command {
    let mut command = Command::new(binary);
    command.arg("clone").arg("-D").arg(data).args(row.arguments(options)).stdin(Stdio::null());
    command
}

/// Runs it, and gives the milliseconds of the whole process with its account.
pub(super) fn timed(command: &mut Command) -> Result<(f64, RunStats)> {
    let (milliseconds, said) = process::timed(command)?;
    let stats = RunStats {
        blocks: said.number("pages")?,
        read_calls: said.number("read_calls")?,
        write_calls: said.number("write_calls")?,
        bytes_written: said.number("bytes_written")?,
        sync_calls: said.number("sync_calls")?,
        shared_bytes: shared_bytes(&said.text),
    };
    Ok((milliseconds, stats))
}

/// From `"copy": 3 files with 8 blocks, 65536 bytes shared, …`.
fn shared_bytes(said: &str) -> Option<u64> {
    said.split(", ").find_map(|part| part.strip_suffix(" bytes shared")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_is_told_between_blocks_and_wal() {
        let said = "\"copy\": 3 files with 8 blocks, 65536 bytes shared, 99 bytes of WAL, 0.1 s\n";
        assert_eq!(shared_bytes(said), Some(65536));
        assert_eq!(shared_bytes("\"copy\": 3 files with 8 blocks, 99 bytes of WAL, 0.1 s"), None);
    }
}
