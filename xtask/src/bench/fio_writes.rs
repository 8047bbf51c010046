//! What a device takes at best, as fio writes it: the limit that whoever writes durably is held against.
//!
//! Its own start is left out, which is to its advantage, and its file has its blocks before it begins; its sync at the
//! end is part of its time.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::output_of;

/// How fio writes: 1 MiB at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FioWrites {
    pub(super) engine: &'static str,
    pub(super) depth: u32,
    pub(super) direct: bool,
}

/// The way that was the fastest on most devices.
pub(super) const BEST: FioWrites = FioWrites { engine: "libaio", depth: 8, direct: true };

/// What fio says its version is; none where it is not installed.
pub(super) fn version() -> Option<String> {
    Some(output_of(Command::new("fio").arg("--version")).ok()?.trim().to_owned())
}

/// What fio writes at a time.
const PIECE: u64 = 1 << 20;

/// Milliseconds in which fio fills a new file with so many bytes, at its rate over whole pieces, and syncs it.
pub(super) fn milliseconds(file: &Path, how: FioWrites, bytes: u64) -> Result<f64> {
    let whole = bytes.next_multiple_of(PIECE);
    let mut command = Command::new("fio");
    command.args(["--name=write", "--rw=write", "--end_fsync=1", "--thread"]);
    command.arg(format!("--bs={PIECE}"));
    command.args(["--fallocate=posix", "--output-format=json"]);
    command.arg(format!("--filename={}", file.to_string_lossy().replace(':', "\\:")));
    command.arg(format!("--ioengine={}", how.engine)).arg(format!("--iodepth={}", how.depth));
    command.arg(format!("--direct={}", u8::from(how.direct))).arg(format!("--size={whole}"));
    let (written, rate) = written_by(&output_of(&mut command)?)?;
    ensure!(written == whole, "fio wrote {written} bytes of {whole}");
    Ok(bytes as f64 / rate * 1000.0)
}

/// Bytes, and bytes a second, of the writes in what fio prints.
fn written_by(printed: &str) -> Result<(u64, f64)> {
    // Warnings may stand before the object.
    let object = printed.find('{').and_then(|start| printed.get(start..)).unwrap_or_default();
    let printed: Value = serde_json::from_str(object).context("fio printed no JSON")?;
    let written = &printed["jobs"][0]["write"];
    let bytes = written["io_bytes"].as_u64().context("no io_bytes")?;
    let rate = written["bw_bytes"].as_f64().filter(|rate| *rate > 0.0).context("no bw_bytes")?;
    Ok((bytes, rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_rate_come_from_the_writes_of_the_first_job() {
        let printed = "note: x\n{\"jobs\":[{\"write\":{\"io_bytes\":1000,\"bw_bytes\":500}}]}";
        assert_eq!(written_by(printed).unwrap(), (1000, 500.0));
        assert!(written_by("fio: no such file").is_err());
    }
}
