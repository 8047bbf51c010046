//! The flags of `cargo xtask bench read`.
//!
//! Read by hand like those of `bench tables`; the two share few enough to keep them apart.

use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Duration;

use anyhow::{Context, Result, bail};

const HELP: &str = "usage: cargo xtask bench read [OPTION]... [ROW]...

Measures every way to read against PostgreSQL, against the device and against each other, on one data
directory, and keeps the result under runs/. ROW is the beginning of a row's name; all rows without one.
Rows that need root, a program or a device this machine has not are reported as SKIPPED.

options:
  --list              the rows, and what this binary cannot do yet; nothing is measured
  --clean             take down what a killed run left: mounts, loop devices, control groups
  --rows N            rows of table t (1500000, about 1 GB)
  --bigtable-rows N   rows of table bigtable (1500000)
  --quick             small tables, 3 repetitions, result not kept under runs/
  --repetitions N     timed turns of each contestant (5)
  --core N            the core of the rows of one core (1, or 0 on a machine with one)
  --dir DIR           where clusters and images of devices lie (target/bench-read)
  --fresh             make the clusters anew
  --shared-buffers S  the server's shared_buffers (128MB, PostgreSQL's default)
  --pagemill PATH     measure this binary instead of building one
  --mirror-mib-s N    each disk of the mirror, MiB a second (60)
  --device-reads-s N  the slow device, reads a second (2000)
  --patience N        seconds after which a run on a device or in little memory is cut off (120)
  --name NAME         name of the result (read)

environment: PAGEMILL_PG15_BINDIR and PAGEMILL_PG18_BINDIR, the directories of the servers' programs";

/// What to do, in full.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Options {
    pub(super) list: bool,
    pub(super) clean: bool,
    pub(super) rows: u64,
    pub(super) bigtable_rows: u64,
    pub(super) quick: bool,
    pub(super) repetitions: usize,
    pub(super) core: usize,
    pub(super) directory: Option<PathBuf>,
    pub(super) fresh: bool,
    pub(super) shared_buffers: String,
    pub(super) pagemill: Option<PathBuf>,
    pub(super) mirror_mib_s: u64,
    pub(super) device_reads_s: u64,
    pub(super) patience: Duration,
    pub(super) name: String,
    pub(super) selected: Vec<String>,
}

impl Options {
    fn new(cores: usize) -> Self {
        Self {
            list: false,
            clean: false,
            rows: 1_500_000,
            bigtable_rows: 1_500_000,
            quick: false,
            repetitions: 5,
            core: usize::from(cores > 1),
            directory: None,
            fresh: false,
            shared_buffers: "128MB".into(),
            pagemill: None,
            mirror_mib_s: 60,
            device_reads_s: 2000,
            patience: Duration::from_secs(120),
            name: "read".into(),
            selected: Vec::new(),
        }
    }

    /// The options, or none when help was asked for and printed.
    pub(super) fn parse(arguments: &[String]) -> Result<Option<Self>> {
        let cores = available_parallelism().map_or(1, usize::from);
        let mut options = Self::new(cores);
        if arguments.iter().any(|argument| argument == "--quick") {
            (options.rows, options.bigtable_rows, options.repetitions) = (60_000, 60_000, 3);
        }
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            if word == "--help" {
                println!("{HELP}");
                return Ok(None);
            }
            let mut value = || words.next().with_context(|| format!("{word} wants a value"));
            options.take(word, &mut value)?;
        }
        options.refuse_nonsense(cores)?;
        Ok(Some(options))
    }

    fn take<'a>(
        &mut self,
        word: &str,
        value: &mut dyn FnMut() -> Result<&'a String>,
    ) -> Result<()> {
        match word {
            "--list" => self.list = true,
            "--clean" => self.clean = true,
            "--quick" => self.quick = true,
            "--fresh" => self.fresh = true,
            "--rows" => self.rows = number(word, value()?)?,
            "--bigtable-rows" => self.bigtable_rows = number(word, value()?)?,
            "--repetitions" => self.repetitions = number(word, value()?)?,
            "--core" => self.core = number(word, value()?)?,
            "--dir" => self.directory = Some(value()?.into()),
            "--pagemill" => self.pagemill = Some(value()?.into()),
            "--shared-buffers" => self.shared_buffers.clone_from(value()?),
            "--mirror-mib-s" => self.mirror_mib_s = number(word, value()?)?,
            "--device-reads-s" => self.device_reads_s = number(word, value()?)?,
            "--patience" => self.patience = Duration::from_secs(number(word, value()?)?),
            "--name" => self.name.clone_from(value()?),
            _ if word.starts_with('-') => bail!("unknown option {word}; see --help"),
            _ => self.selected.push(word.to_owned()),
        }
        Ok(())
    }

    fn refuse_nonsense(&self, cores: usize) -> Result<()> {
        let counts = [self.rows, self.bigtable_rows, self.mirror_mib_s, self.device_reads_s];
        if self.repetitions == 0 || self.patience.is_zero() || counts.contains(&0) {
            bail!("numbers must be at least 1");
        }
        if self.core >= cores {
            bail!("--core {}: this machine has {cores} cores, counted from 0", self.core);
        }
        if !self.name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) {
            bail!("--name {}: letters, digits, '-', '_' and '.' only", self.name);
        }
        Ok(())
    }
}

fn number<N: std::str::FromStr>(word: &str, value: &str) -> Result<N> {
    value.replace('_', "").parse().ok().with_context(|| format!("{word}: {value} is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)?.context("help")
    }

    #[test]
    fn quick_makes_it_small_and_an_explicit_size_wins_wherever_it_stands() {
        assert_eq!(parse("--quick").unwrap().repetitions, 3);
        assert_eq!(parse("--rows 7_000 --quick count").unwrap().rows, 7_000);
    }

    #[test]
    fn wrong_usage_is_refused() {
        let lines = ["--rows", "--rows x", "--repetitions 0", "--nonsense", "--core 9999"];
        for line in lines.into_iter().chain(["--name a/b", "--patience 0", "--mirror-mib-s 0"]) {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
