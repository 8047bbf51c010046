//! The flags that benchmarks share, and how their values are read.
//!
//! What differs from one benchmark to the next, a default or a word of the help, is said where the flags are
//! flattened in. Invariant: a number that is no number, or zero where something is counted, is refused before anything
//! is made.

use std::path::PathBuf;
use std::str::FromStr;
use std::thread::available_parallelism;

use clap::Args;

/// Where PostgreSQL 15 is looked for.
pub(super) const PG15: &str = "Environment:
  PAGEMILL_PG15_BINDIR  the directory of PostgreSQL 15's programs (/usr/lib/postgresql/15/bin)";

/// Where both servers are looked for.
pub(super) const PG15_AND_PG18: &str = "Environment:
  PAGEMILL_PG15_BINDIR, PAGEMILL_PG18_BINDIR  the directories of the servers' programs";

/// How long, where, and under which name.
#[derive(Debug, Clone, PartialEq, Args)]
pub(super) struct RunOptions {
    /// A trial: little data, few repetitions, a result that is not kept under runs/
    #[arg(long)]
    pub(super) quick: bool,
    /// Timed turns of each contestant
    #[arg(long, value_name = "N", default_value = "5", value_parser = number::<usize>)]
    pub(super) repetitions: usize,
    #[arg(long = "dir", value_name = "DIR")]
    pub(super) directory: Option<PathBuf>,
    /// The name of the result
    #[arg(long, value_name = "NAME", default_value = "bench", value_parser = file_name)]
    pub(super) name: String,
}

/// The two programs that are held against each other.
#[derive(Debug, Clone, PartialEq, Args)]
pub(super) struct SidesOptions {
    /// The server's shared_buffers; PostgreSQL's default unless given
    #[arg(long, value_name = "SIZE", default_value = "128MB")]
    pub(super) shared_buffers: String,
    /// Measure this binary instead of building one
    #[arg(long, value_name = "PATH")]
    pub(super) pagemill: Option<PathBuf>,
}

/// A number from 1 on, with `_` between its digits where one likes.
pub(super) fn number<N: FromStr + Default + PartialEq>(text: &str) -> Result<N, String> {
    let number = text.replace('_', "").parse().map_err(|_| "not a number".to_owned())?;
    if number == N::default() { Err("must be at least 1".into()) } else { Ok(number) }
}

/// The number of a core of this machine, from 0 on.
pub(super) fn core(text: &str) -> Result<usize, String> {
    let core: usize = text.replace('_', "").parse().map_err(|_| "not a number".to_owned())?;
    let cores = cores();
    if core < cores { Ok(core) } else { Err(format!("this machine has {cores}, counted from 0")) }
}

/// The second core, where there is one: the first has the machine's interrupts.
pub(super) fn default_core() -> usize {
    usize::from(cores() > 1)
}

/// How many cores this machine has.
pub(super) fn cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// The middle of a file's name.
fn file_name(text: &str) -> Result<String, String> {
    if text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) {
        return Ok(text.to_owned());
    }
    Err("letters, digits, '-', '_' and '.' only".into())
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser};

    use super::*;
    use crate::bench::{builds, clone, device, extend, load, read, serve, sql, tables, wal};

    #[derive(Parser)]
    #[command(args_override_self = true)]
    struct Line<O: Args> {
        #[command(flatten)]
        options: O,
    }

    /// The options of a line, or what is said of it.
    fn parse<O: Args>(line: &str) -> Result<O, String> {
        let words = std::iter::once("bench").chain(line.split_whitespace());
        let matches = Line::<O>::command().try_get_matches_from(words);
        let parsed = matches.and_then(|matches| O::from_arg_matches(&matches));
        parsed.map_err(|error| error.to_string())
    }

    #[test]
    fn quick_makes_it_small_and_an_explicit_size_wins_wherever_it_stands() {
        let quick = "--quick";
        let tables = parse::<tables::Options>(quick).unwrap();
        assert_eq!(
            (tables.rows, tables.bigtable_rows, tables.run.repetitions),
            (20_000, 15_000, 3)
        );
        let read = parse::<read::Options>(quick).unwrap();
        assert_eq!((read.rows, read.bigtable_rows, read.run.repetitions), (60_000, 60_000, 3));
        let load = parse::<load::Options>(quick).unwrap();
        assert_eq!((load.rows, load.bigtable_rows, load.run.repetitions), (20_000, 15_000, 3));
        let clone = parse::<clone::Options>(quick).unwrap();
        assert_eq!((clone.rows, clone.run.repetitions), (50_000, 3));
        let extend = parse::<extend::Options>(quick).unwrap();
        assert_eq!((extend.blocks(), extend.run.repetitions), (64 * 128, 1));
        let device = parse::<device::Options>(quick).unwrap();
        assert_eq!((device.mib, device.seconds, device.run.repetitions), (64, 1, 1));
        let wal = parse::<wal::Options>(quick).unwrap();
        assert_eq!((wal.wal_mib, wal.rows, wal.run.repetitions), (96, 200_000, 3));
        let builds = parse::<builds::Options>("--quick --before old").unwrap();
        assert_eq!(
            (builds.rows, builds.bigtable_rows, builds.run.repetitions),
            (20_000, 15_000, 3)
        );
        let sql = parse::<sql::Options>(quick).unwrap();
        assert_eq!((sql.scale, sql.run.repetitions), (0.05, 3));
        let serve = parse::<serve::Options>(quick).unwrap();
        assert_eq!((serve.thousands, serve.seconds, serve.run.repetitions), (100, 1, 2));
        for line in ["--rows 7_000 --quick count", "count --quick --rows 1 --rows 7000"] {
            assert_eq!(parse::<tables::Options>(line).unwrap().rows, 7_000, "{line}");
        }
        assert_eq!(parse::<extend::Options>("--size-mib 3 --quick").unwrap().blocks(), 384);
    }

    #[test]
    fn without_flags_a_result_is_worth_keeping() {
        let tables = parse::<tables::Options>("").unwrap();
        assert_eq!((tables.rows, tables.bigtable_rows), (2_000_000, 1_500_000));
        assert_eq!((tables.run.repetitions, tables.run.name.as_str()), (5, "bench"));
        let read = parse::<read::Options>("").unwrap();
        assert_eq!(
            (read.rows, read.run.name.as_str(), read.patience.as_secs()),
            (1_500_000, "read", 120)
        );
        let load = parse::<load::Options>("").unwrap();
        assert_eq!((load.rows, load.run.name.as_str()), (2_000_000, "load"));
        let clone = parse::<clone::Options>("").unwrap();
        assert_eq!(
            (clone.rows, clone.run.name.as_str(), clone.no_calls),
            (2_000_000, "clone", false)
        );
        let extend = parse::<extend::Options>("").unwrap();
        assert_eq!((extend.blocks(), extend.run.name.as_str()), (131_072, "extend"));
        let device = parse::<device::Options>("").unwrap();
        assert_eq!((device.mib, device.seconds, device.run.name.as_str()), (1024, 2, "device"));
        let wal = parse::<wal::Options>("").unwrap();
        assert_eq!((wal.wal_mib, wal.rows, wal.run.name.as_str()), (1024, 2_000_000, "wal"));
    }

    #[test]
    fn names_of_rows_are_collected() {
        let options = parse::<tables::Options>("count --name x export-csv").unwrap();
        assert_eq!(options.selected, ["count", "export-csv"]);
    }

    fn assert_refused<O: Args>(lines: &[&str]) {
        for line in
            ["--repetitions 0", "--repetitions", "--nonsense", "--name a/b"].iter().chain(lines)
        {
            assert!(parse::<O>(line).is_err(), "{line}");
        }
    }

    #[test]
    fn wrong_usage_is_refused() {
        assert_refused::<tables::Options>(&["--rows x", "--bigtable-rows 0", "--core 9999"]);
        assert_refused::<read::Options>(&[
            "--rows 0",
            "--core 9999",
            "--patience 0",
            "--mirror-mib-s 0",
        ]);
        assert_refused::<load::Options>(&["--rows", "--rows 0", "--bigtable-rows -1"]);
        assert_refused::<clone::Options>(&["--rows 0", "--jobs 0"]);
        assert_refused::<extend::Options>(&[
            "--size-mib",
            "--size-mib 0",
            "--size-mib 2000",
            "count",
        ]);
        assert_refused::<wal::Options>(&["--wal-mib 0", "--rows x"]);
        assert_refused::<builds::Options>(&["", "--before old --rows 0"]);
        assert_refused::<serve::Options>(&["--thousands 0", "--seconds x", "--soak-minutes 0"]);
        assert_refused::<sql::Options>(&["--scale 0", "--scale -1", "--scale x"]);
        assert_refused::<device::Options>(&["--seconds", "--seconds 0", "--size-mib 0"]);
    }
}
