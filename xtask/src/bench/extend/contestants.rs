//! Who takes part, and how each is run once.
//!
//! Programs of others run with their own start left out where they tell it themselves (fio), which is to their
//! advantage; ours are timed inside the program too.
//!
//! Invariant: a contestant leaves no file behind, whatever became of it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::bench::fio_writes::{self, FioWrites};
use crate::bench::output_of;
use crate::bench::settling::settle;

/// Blocks at a time in the table.
pub(super) const STEPS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Bytes in a block.
const BLOCK: u64 = 8192;
/// Blocks in a MiB, which `dd` writes at a time.
const PER_MIB: u32 = 128;

/// One way to extend or to fill.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Contestant {
    /// The program `extend_fork` with these words.
    Ours(String),
    /// fio, writing at best.
    Fio(FioWrites),
    /// `dd bs=1M`, so many of them at once, each with its part of one file.
    Dd { writers: u32 },
}

/// What one turn gave.
#[derive(Debug, Clone, Default)]
pub(super) struct Measured {
    pub(super) write_ms: f64,
    pub(super) sync_ms: f64,
    pub(super) write_calls: Option<u64>,
    pub(super) extend_calls: Option<u64>,
    /// In how many pieces the file lies, where that is told.
    pub(super) fragments: Option<u64>,
}

/// Everybody, in the order of the report.
pub(super) fn all() -> Vec<Contestant> {
    let steps = |what: &'static str| {
        STEPS.map(|blocks| Contestant::Ours(format!("{what} blocks={blocks}")))
    };
    let mut all = [steps("zeros"), steps("fallocate")].concat();
    all.extend(
        ["extension blocks=1", "extension blocks=1 file_extend_method=write_zeros"].map(ours),
    );
    all.extend([FILL, "fill", "fill writers=4"].map(ours));
    for method in ["pwrite", "pwritev", "mmap", "worker", "io_uring"] {
        all.push(ours(&format!("fill io_method={method}")));
    }
    for method in ["pwrite", "worker", "io_uring"] {
        all.push(ours(&format!("fill io_method={method} direct=yes")));
    }
    let fio = |engine, depth, direct| Contestant::Fio(FioWrites { engine, depth, direct });
    all.extend([fio("psync", 1, false), fio("psync", 1, true)]);
    all.extend([fio("libaio", 8, true), fio("io_uring", 8, true), fio("io_uring", 8, false)]);
    all.extend([Contestant::Dd { writers: 1 }, Contestant::Dd { writers: 4 }]);
    all
}

/// Filling by `auto`, told the size as a load of a file is.
pub(super) const FILL: &str = "fill expected=yes";

fn ours(words: &str) -> Contestant {
    Contestant::Ours(words.to_owned())
}

impl Contestant {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Ours(words) => words.clone(),
            Self::Fio(FioWrites { engine, depth, direct }) => {
                let cache = if *direct { "direct" } else { "buffered" };
                format!("fio {engine} 1m depth {depth} {cache}")
            }
            Self::Dd { writers: 1 } => "dd bs=1M".to_owned(),
            Self::Dd { writers } => format!("dd bs=1M, {writers} at once"),
        }
    }

    /// One turn on a new file.
    pub(super) fn run(&self, program: &Path, directory: &Path, blocks: u32) -> Result<Measured> {
        let file = directory.join("extended");
        remove_if_there(&file)?;
        // What others left to be written would be charged to this one.
        settle(directory)?;
        let measured = match self {
            Self::Ours(words) => run_ours(program, &file, words, blocks),
            Self::Fio(how) => run_fio(&file, *how, blocks),
            Self::Dd { writers } => run_dd(&file, *writers, blocks),
        };
        remove_if_there(&file)?;
        measured
    }
}

fn remove_if_there(file: &Path) -> Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

fn run_ours(program: &Path, file: &Path, words: &str, blocks: u32) -> Result<Measured> {
    let mut command = Command::new(program);
    command.arg(file).args(words.split(' ')).arg(format!("size={blocks}"));
    told(&output_of(&mut command)?)
}

/// The numbers of the program's one line.
fn told(line: &str) -> Result<Measured> {
    let value = |name: &str| {
        let word = line.split_whitespace().find_map(|word| word.strip_prefix(name));
        word.and_then(|word| word.strip_prefix('=')).with_context(|| format!("no {name} in {line}"))
    };
    Ok(Measured {
        write_ms: value("write_ms")?.parse()?,
        sync_ms: value("sync_ms")?.parse()?,
        write_calls: value("write_calls")?.parse().ok(),
        extend_calls: value("extend_calls")?.parse().ok(),
        fragments: value("fragments")?.parse().ok(),
    })
}

fn run_fio(file: &Path, how: FioWrites, blocks: u32) -> Result<Measured> {
    let write_ms = fio_writes::milliseconds(file, how, u64::from(blocks) * BLOCK)?;
    Ok(Measured { write_ms, fragments: fragments(file), ..Measured::default() })
}

/// Each writes its quarter, or the whole, and syncs it.
fn run_dd(file: &Path, writers: u32, blocks: u32) -> Result<Measured> {
    let mib = blocks.div_ceil(PER_MIB).div_ceil(writers);
    let start = Instant::now();
    let begin = |writer: u32| {
        let mut dd = Command::new("dd");
        dd.args(["if=/dev/zero", "bs=1M", "status=none", "conv=fdatasync,notrunc"]);
        dd.arg(format!("of={}", file.display())).arg(format!("count={mib}"));
        dd.arg(format!("seek={}", writer * mib)).stdin(Stdio::null());
        dd.spawn().context("could not start dd")
    };
    let running: Vec<Result<Child>> = (0..writers).map(begin).collect();
    for child in running {
        ensure!(child?.wait()?.success(), "dd failed");
    }
    let write_ms = start.elapsed().as_secs_f64() * 1000.0;
    Ok(Measured { write_ms, fragments: fragments(file), ..Measured::default() })
}

/// The pieces of a file, as `filefrag` counts them; none where it cannot tell.
fn fragments(file: &Path) -> Option<u64> {
    let printed = output_of(Command::new("filefrag").arg(file)).ok()?;
    printed.rsplit_once(": ")?.1.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_line_is_read_and_what_it_cannot_tell_is_left_out() {
        let line = "write_ms=2.5 sync_ms=0.125 write_calls=3 extend_calls=0 fragments=?\n";
        let measured = told(line).unwrap();
        assert_eq!((measured.write_ms, measured.sync_ms), (2.5, 0.125));
        assert_eq!((measured.write_calls, measured.fragments), (Some(3), None));
        assert!(told("write_ms=1").is_err());
    }

    #[test]
    fn nobody_takes_part_twice() {
        let mut names: Vec<String> = all().iter().map(Contestant::name).collect();
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
