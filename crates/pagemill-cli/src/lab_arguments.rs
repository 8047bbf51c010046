//! The flags of `pagemill lab`.
//!
//! Invariant: without any flag it measures everything in the current directory, and says first what that takes.

use std::path::PathBuf;

use clap::Args;

use crate::progress::ProgressMode;
use crate::sizes::lab_size;

/// Benchmark this storage: old ways of I/O beside today's
///
/// Contestants take turns, so that what disturbs one disturbs its neighbors too; before each turn the page cache is
/// brought into the required state, and checked. At the end a screen of what matters is printed, and a page with
/// charts is written; files that exist are not replaced without --force. The files are made
/// in a directory pagemill-lab.N in DIR, which is removed at the end, or after a kill by the next run; nothing else is
/// touched. What the kernel or a sandbox refuses is reported in its row. All experiments run twice, minutes apart, and what a
/// contestant differs by from itself widens every interval. Space and time are announced first, from the turns that are planned.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Experiments:
  device    sequential and random reads and writes, each I/O method, each way to sync
  pread     seek, pread, preadv and today's methods on a table, in its own order and an index's
  readahead telling the kernel of blocks far ahead; on a model of mirrored disks, with --mirrored on real ones
  mmap      files mapped, read, loaded and written, one and a tree of them; the pieces they end in
  readiness select, poll, epoll and io_uring on 2 to 10,000 descriptors
  copy      a database's files by blocks, streams, the kernel and reflinks, with and without WAL
  extend    making files longer: written zeros, posix_fallocate, ftruncate; WAL segments
  postgres  scans, COPY and CREATE DATABASE in a server of the run's own, beside ours on the same files

PostgreSQL takes part where it is installed, and is needed for nothing else. Its cluster is made in the run's own directory
and listens on no address; root has it run as the account postgres, or nobody. It ends with the run, also when that is killed.

Examples:
  pagemill lab --quick
  pagemill lab /mnt/test --experiment pread,extend --json results.json
  pagemill lab /mnt/test --experiment postgres \\
      --with-postgres /usr/lib/postgresql/17/bin
  pagemill lab --compare before.json after.json")]
pub struct LabArguments {
    /// A directory on the storage that is to be measured [default: the current directory]
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Only these experiments, separated by commas; repeatable [default: all]
    #[arg(short, long = "experiment", value_name = "NAME", value_delimiter = ',')]
    pub experiments: Vec<String>,
    /// Small files and six rounds: rough figures in a few minutes
    #[arg(long)]
    pub quick: bool,
    /// Size of each experiment's main file: kB, MB, GB, or bytes, at least 1MB [default: 1GB, with --quick 64MB]
    #[arg(long, value_name = "SIZE", value_parser = lab_size)]
    pub size: Option<u64>,
    /// Write all that was measured to this new file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a row for each contestant to this new file, as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the tables to this new file, as Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write the page with charts to this new file [default: report.html in the current directory]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Replace files named by --html, --json, --csv and --markdown, and report.html, if they exist
    #[arg(long)]
    pub force: bool,
    /// Print the table of each group when it is done, and all claims and warnings at the end
    #[arg(long, conflicts_with = "compare")]
    pub details: bool,
    /// Write no page
    #[arg(long, conflicts_with = "html")]
    pub no_html: bool,
    /// Profile one more turn of each group's best with perf, for flame graphs on the page and in the JSON; takes a few more
    /// seconds for each group
    #[arg(long, conflicts_with = "compare")]
    pub flame_graphs: bool,
    /// Compare the JSON files of two runs instead of measuring; --markdown and --html write the comparison
    #[arg(
        long,
        num_args = 2,
        value_names = ["A.json", "B.json"],
        conflicts_with_all = ["dir", "experiments", "quick", "size", "json", "csv"]
    )]
    pub compare: Vec<PathBuf>,
    /// For readahead: make a RAID1 of two slow loop devices, as root, where there is btrfs
    #[arg(long, conflicts_with = "compare")]
    pub mirrored: bool,
    /// For postgres: the directory of PostgreSQL's programs, 14 to 18 [default: the newest that is found]
    #[arg(long, value_name = "BINDIR", conflicts_with = "compare")]
    pub with_postgres: Option<PathBuf>,
    /// Seed of random choices
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Threads that make tables [default: one for each processor, at most 8]
    #[arg(
        short,
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=256)
    )]
    pub jobs: Option<u16>,
    /// Report on standard error what is being done
    #[arg(short, long)]
    pub verbose: bool,
    /// Show a progress bar on standard error, if that is a terminal
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    pub progress: ProgressMode,
}
