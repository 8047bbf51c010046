//! The command line of `pagemill history`. A ctid is written as SQL writes it, so that it can be copied from a query: what is
//! none is refused before anything is opened.

use clap::Args;
use pagemill_cli::cluster_arguments::{CommonArguments, DatabaseArgument, RecoveryArguments};
use pagemill_format::{BlockNumber, Tid};

/// Tell what happened to a row: its versions, as far as WAL and pages tell
///
/// The row is named by its ctid. Its versions are told from the oldest on: what was done to each, by which record and which
/// transaction, whether and when that committed, and the columns of the version as COPY would print them. Updates are
/// followed backward and forward, also to other blocks. All WAL is read that is there: in pg_wal, and in the directories
/// given with --wal. A version older than that is told as its page has it.
///
/// After VACUUM a place is used again: then several rows were at it, and all are told, the last first. Columns are those that
/// the table has in the end. What was before a TRUNCATE or a rewrite of the table lies in other files, and is not found.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pagemill history -D /var/lib/postgresql/15/main -d shop \\
      -t orders --ctid '(7,3)'
  pagemill history -D /backup/base --wal /archive -d shop \\
      -t orders --ctid '(7,3)' --until name:before")]
pub(crate) struct HistoryArguments {
    #[command(flatten)]
    pub(crate) common: CommonArguments,
    #[command(flatten)]
    pub(crate) recovery: RecoveryArguments,
    #[command(flatten)]
    pub(crate) database: DatabaseArgument,
    /// The table
    #[arg(short, long, value_name = "[SCHEMA.]TABLE")]
    pub(crate) table: String,
    /// Where the row is or was: its block and its line pointer, as in (7,3)
    #[arg(long, value_name = "(BLOCK,N)", value_parser = tid)]
    pub(crate) ctid: Tid,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// A tid as SQL writes it.
fn tid(text: &str) -> Result<Tid, String> {
    let inner = text.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let parts = inner.and_then(|inner| inner.split_once(','));
    let numbers = parts.and_then(|(block, number)| {
        Some((block.trim().parse::<u32>().ok()?, number.trim().parse::<u16>().ok()?))
    });
    match numbers {
        Some((block, line_pointer)) if block != u32::MAX && line_pointer != 0 => {
            Ok(Tid { block: BlockNumber(block), line_pointer })
        }
        _ => Err("a block and a line pointer are wanted, as in (7,3)".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ctid_is_written_as_in_sql() {
        let expected = Tid { block: BlockNumber(7), line_pointer: 3 };
        assert_eq!(tid("(7,3)"), Ok(expected));
        assert_eq!(tid(" ( 7, 3 ) "), Ok(expected));
        for wrong in ["7,3", "(7,3", "(7)", "(7,0)", "(-1,3)", "(4294967295,1)", "(1,65536)", ""] {
            assert!(tid(wrong).is_err(), "{wrong}");
        }
    }
}
