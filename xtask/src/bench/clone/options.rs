//! The flags of `cargo xtask bench clone`.
//!
//! Read by hand like those of the other benchmarks. Invariant: every number is at least 1.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

const HELP: &str = "usage: cargo xtask bench clone [OPTION]... [ROW]...

Measures `pagemill clone` against CREATE DATABASE of PostgreSQL 15 and 18, in one cluster, durable at the end, and keeps
the result under runs/. ROW is the beginning of a row's name; all rows without one. What makes XFS on a loop device
needs root and mkfs.xfs, what counts calls needs strace; where they are missing, it is said.

options:
  --list              the rows; nothing is measured
  --rows N            rows of table t (2000000, 1.3 GB)
  --quick             a small table, 3 repetitions, result not kept under runs/
  --repetitions N     timed pairs of runs for each row, after one warm-up (5)
  --cold              the database that is copied is not in the page cache; without it, it is
  --no-calls          calls are not counted with strace, which takes a run of each side more
  --jobs N            pagemill's --jobs
  --dir DIR           where the clusters lie, removed at the end (target/bench-clone)
  --shared-buffers S  the server's shared_buffers (128MB, PostgreSQL's default)
  --pagemill PATH     measure this binary instead of building one
  --name NAME         name of the result (clone)

environment: PAGEMILL_PG15_BINDIR and PAGEMILL_PG18_BINDIR, the directories of PostgreSQL's programs";

/// What to do, in full.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Options {
    pub(super) list: bool,
    pub(super) rows: u64,
    pub(super) quick: bool,
    pub(super) repetitions: usize,
    pub(super) cold: bool,
    pub(super) counts_calls: bool,
    pub(super) jobs: Option<usize>,
    pub(super) directory: Option<PathBuf>,
    pub(super) shared_buffers: String,
    pub(super) pagemill: Option<PathBuf>,
    pub(super) name: String,
    pub(super) selected: Vec<String>,
}

impl Options {
    fn new(quick: bool) -> Self {
        let (rows, repetitions) = if quick { (50_000, 3) } else { (2_000_000, 5) };
        Self {
            list: false,
            rows,
            quick,
            repetitions,
            cold: false,
            counts_calls: true,
            jobs: None,
            directory: None,
            shared_buffers: "128MB".into(),
            pagemill: None,
            name: "clone".into(),
            selected: Vec::new(),
        }
    }

    /// The options, or none when help was asked for and printed.
    pub(super) fn parse(arguments: &[String]) -> Result<Option<Self>> {
        let mut options = Self::new(arguments.iter().any(|argument| argument == "--quick"));
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            if word == "--help" {
                println!("{HELP}");
                return Ok(None);
            }
            let mut value = || words.next().with_context(|| format!("{word} wants a value"));
            options.take(word, &mut value)?;
        }
        options.refuse_nonsense()?;
        Ok(Some(options))
    }

    fn take<'a>(
        &mut self,
        word: &str,
        value: &mut dyn FnMut() -> Result<&'a String>,
    ) -> Result<()> {
        match word {
            "--list" => self.list = true,
            "--quick" => self.quick = true,
            "--cold" => self.cold = true,
            "--no-calls" => self.counts_calls = false,
            "--rows" => self.rows = number(word, value()?)?,
            "--repetitions" => self.repetitions = number(word, value()?)?,
            "--jobs" => self.jobs = Some(number(word, value()?)?),
            "--dir" => self.directory = Some(value()?.into()),
            "--shared-buffers" => self.shared_buffers.clone_from(value()?),
            "--pagemill" => self.pagemill = Some(value()?.into()),
            "--name" => self.name.clone_from(value()?),
            _ if word.starts_with('-') => bail!("unknown option {word}; see --help"),
            _ => self.selected.push(word.to_owned()),
        }
        Ok(())
    }

    fn refuse_nonsense(&self) -> Result<()> {
        if self.repetitions == 0 || self.rows == 0 || self.jobs == Some(0) {
            bail!("--rows, --jobs and --repetitions must be at least 1");
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
        assert_eq!(parse("--quick").unwrap().rows, 50_000);
        assert_eq!(parse("--rows 7_000 --quick wal").unwrap().rows, 7_000);
    }

    #[test]
    fn wrong_usage_is_refused() {
        for line in ["--rows", "--rows x", "--rows 0", "--jobs 0", "--what", "--name a/b"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
