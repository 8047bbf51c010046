//! The flags of `cargo xtask bench tables`.
//!
//! Read by hand: a handful of flags is not worth the compile time of a parser in every first build.

use std::path::PathBuf;
use std::thread::available_parallelism;

use anyhow::{Context, Result, bail};

const HELP: &str = "usage: cargo xtask bench [tables] [OPTION]... [ROW]...

Measures pagemill against PostgreSQL 15 and keeps the result under runs/.
Another benchmark, of every way to read: cargo xtask bench read --help
ROW is count, export, startup, or the beginning of a row's name; all rows without one.

options:
  --rows N            rows of table t (2000000)
  --bigtable-rows N   rows of table bigtable (1500000)
  --quick             small tables, 3 repetitions, result not kept under runs/
  --repetitions N     timed pairs of runs for each row, after one warm-up (5)
  --core N            the core both sides are pinned to (1, or 0 on a machine with one)
  --dir DIR           where the clusters lie (target/bench)
  --fresh             make the clusters anew
  --data-checksums    make them with data checksums
  --same-directory    no copy: pagemill reads the server's own directory, the server stopped meanwhile
  --as-written        leave in the page cache what writing the clusters left there (with --fresh)
  --shared-buffers S  the server's shared_buffers (128MB, PostgreSQL's default)
  --pagemill PATH     measure this binary instead of building one
  --server-only       PostgreSQL's side alone
  --build             time a clean release build too
  --name NAME         name of the result (bench)

environment: PAGEMILL_PG15_BINDIR, the directory of PostgreSQL 15's programs
(/usr/lib/postgresql/15/bin)";

/// What to do, in full.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Options {
    pub(super) rows: u64,
    pub(super) bigtable_rows: u64,
    pub(super) quick: bool,
    pub(super) repetitions: usize,
    pub(super) core: usize,
    pub(super) cores: usize,
    pub(super) directory: Option<PathBuf>,
    pub(super) fresh: bool,
    pub(super) data_checksums: bool,
    /// Both sides read one directory.
    pub(super) same_directory: bool,
    /// The page cache is left as writing the clusters left it.
    pub(super) as_written: bool,
    pub(super) shared_buffers: String,
    pub(super) pagemill: Option<PathBuf>,
    pub(super) server_only: bool,
    pub(super) build: bool,
    pub(super) name: String,
    pub(super) selected: Vec<String>,
}

/// What the arguments ask for.
#[derive(Debug, PartialEq)]
pub(super) enum Parsed {
    Help(&'static str),
    Options(Options),
}

impl Options {
    fn new(cores: usize) -> Self {
        Self {
            rows: 2_000_000,
            bigtable_rows: 1_500_000,
            quick: false,
            repetitions: 5,
            core: usize::from(cores > 1),
            cores,
            directory: None,
            fresh: false,
            data_checksums: false,
            same_directory: false,
            as_written: false,
            shared_buffers: "128MB".into(),
            pagemill: None,
            server_only: false,
            build: false,
            name: "bench".into(),
            selected: Vec::new(),
        }
    }

    pub(super) fn parse(arguments: &[String]) -> Result<Parsed> {
        let mut options = Self::new(available_parallelism().map_or(1, usize::from));
        if arguments.iter().any(|argument| argument == "--quick") {
            (options.rows, options.bigtable_rows, options.repetitions) = (20_000, 15_000, 3);
        }
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            if word == "--help" {
                return Ok(Parsed::Help(HELP));
            }
            let mut value = || words.next().with_context(|| format!("{word} wants a value"));
            options.take(word, &mut value)?;
        }
        options.refuse_nonsense()?;
        Ok(Parsed::Options(options))
    }

    fn take<'a>(
        &mut self,
        word: &str,
        value: &mut dyn FnMut() -> Result<&'a String>,
    ) -> Result<()> {
        match word {
            "--quick" => self.quick = true,
            "--fresh" => self.fresh = true,
            "--data-checksums" => self.data_checksums = true,
            "--same-directory" => self.same_directory = true,
            "--as-written" => self.as_written = true,
            "--server-only" => self.server_only = true,
            "--build" => self.build = true,
            "--rows" => self.rows = number(word, value()?)?,
            "--bigtable-rows" => self.bigtable_rows = number(word, value()?)?,
            "--repetitions" => self.repetitions = number(word, value()?)?,
            "--core" => self.core = number(word, value()?)?,
            "--dir" => self.directory = Some(value()?.into()),
            "--pagemill" => self.pagemill = Some(value()?.into()),
            "--shared-buffers" => self.shared_buffers.clone_from(value()?),
            "--name" => self.name.clone_from(value()?),
            _ if word.starts_with('-') => bail!("unknown option {word}; see --help"),
            _ => self.selected.push(word.to_owned()),
        }
        Ok(())
    }

    fn refuse_nonsense(&self) -> Result<()> {
        if self.repetitions == 0 || self.rows == 0 || self.bigtable_rows == 0 {
            bail!("--rows, --bigtable-rows and --repetitions must be at least 1");
        }
        if self.core >= self.cores {
            bail!("--core {}: this machine has {} cores, counted from 0", self.core, self.cores);
        }
        if !self.name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) {
            bail!("--name {}: letters, digits, '-', '_' and '.' only", self.name);
        }
        Ok(())
    }

    /// The two cores of the `-j 2` rows, as taskset writes them; none on a machine with one core.
    pub(super) fn jobs_cores(&self) -> Option<String> {
        let other = if self.core == 0 { 1 } else { self.core - 1 };
        (self.cores > 1).then(|| format!("{other},{}", self.core))
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
        match Options::parse(&words)? {
            Parsed::Options(options) => Ok(options),
            Parsed::Help(_) => bail!("help"),
        }
    }

    #[test]
    fn quick_makes_it_small_and_an_explicit_size_wins_wherever_it_stands() {
        assert_eq!(parse("--quick").unwrap().rows, 20_000);
        assert_eq!(parse("--rows 7_000 --quick count").unwrap().rows, 7_000);
    }

    #[test]
    fn row_names_are_collected() {
        assert_eq!(parse("count --name x export-csv").unwrap().selected, ["count", "export-csv"]);
    }

    #[test]
    fn wrong_usage_is_refused() {
        for line in
            ["--rows", "--rows x", "--repetitions 0", "--nonsense", "--core 9999", "--name a/b"]
        {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
