//! The best a device gives, by other programs than ours: fio, and dd where fio is not installed.
//!
//! Their own start is left out, which is to their advantage: fio's time is the one it reports for the reading itself.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::rows::{Contestant, Fio};
use crate::bench::{fio_writes, output_of};

/// Why this contestant cannot run here; none for those that need nothing.
pub(super) fn unavailable(contestant: &Contestant) -> Option<String> {
    match contestant {
        Contestant::Fio(_) if !is_installed() => Some("fio is not installed".to_owned()),
        Contestant::Dd { .. } if is_installed() => Some("fio is installed".to_owned()),
        _ => None,
    }
}

fn is_installed() -> bool {
    fio_writes::version().is_some()
}

/// What reads most devices the fastest.
const BEST: Fio = Fio { engine: "libaio", block: "1M", depth: 8, direct: true };

/// Milliseconds in which these files can be read: by fio, or where it is not installed by dd.
pub(in crate::bench) fn best_ms(files: &[PathBuf]) -> Result<f64> {
    if !is_installed() {
        return dd_ms(true, files);
    }
    files.chunks(FILES_AT_ONCE).map(|files| fio_ms(BEST, files)).sum()
}

/// A command of fio takes only so many names.
const FILES_AT_ONCE: usize = 16;

/// Milliseconds in which fio reads these files, one after the other, from front to back.
pub(super) fn fio_ms(fio: Fio, files: &[PathBuf]) -> Result<f64> {
    let names: Vec<String> =
        files.iter().map(|file| file.to_string_lossy().replace(':', "\\:")).collect();
    let mut command = Command::new("fio");
    command.args(["--name=read", "--rw=read", "--readonly", "--output-format=json"]);
    command.args(["--file_service_type=sequential", "--invalidate=0", "--thread"]);
    command.arg(format!("--filename={}", names.join(":")));
    command.arg(format!("--ioengine={}", fio.engine)).arg(format!("--bs={}", fio.block));
    command.arg(format!("--iodepth={}", fio.depth));
    command.arg(format!("--direct={}", u8::from(fio.direct)));
    let (bytes, rate) = read_by(&output_of(&mut command)?)?;
    let total = total_bytes(files)?;
    // It leaves out a last block that is not full.
    ensure!(bytes <= total && bytes * 10 >= total * 9, "fio read {bytes} bytes of {total}");
    Ok(total as f64 / rate * 1000.0)
}

/// Bytes, and bytes a second, of the reads in what fio prints.
fn read_by(printed: &str) -> Result<(u64, f64)> {
    // Warnings may stand before the object.
    let object = printed.find('{').and_then(|start| printed.get(start..)).unwrap_or_default();
    let printed: Value = serde_json::from_str(object).context("fio printed no JSON")?;
    let read = &printed["jobs"][0]["read"];
    let bytes = read["io_bytes"].as_u64().context("no io_bytes")?;
    // The rate has more digits than the run time, which is in whole milliseconds.
    let rate = read["bw_bytes"].as_f64().filter(|rate| *rate > 0.0).context("no bw_bytes")?;
    Ok((bytes, rate))
}

/// Milliseconds in which `dd` reads these files, 1 MiB at a time.
pub(super) fn dd_ms(direct: bool, files: &[PathBuf]) -> Result<f64> {
    let start = Instant::now();
    for file in files {
        let mut dd = Command::new("dd");
        dd.arg(format!("if={}", file.display())).args(["of=/dev/null", "bs=1M", "status=none"]);
        if direct {
            dd.arg("iflag=direct");
        }
        output_of(&mut dd)?;
    }
    Ok(start.elapsed().as_secs_f64() * 1000.0)
}

fn total_bytes(files: &[PathBuf]) -> Result<u64> {
    files.iter().map(|file| Ok(std::fs::metadata(file)?.len())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_rate_come_from_the_reads_of_the_first_job() {
        let printed = "note: x\n{\"jobs\":[{\"read\":{\"io_bytes\":1000,\"bw_bytes\":500}}]}";
        assert_eq!(read_by(printed).unwrap(), (1000, 500.0));
        assert!(read_by("fio: no such file").is_err());
    }
}
