//! The command line of `pagemill wal`. Flags are spelled as `pg_waldump` spells them.
//!
//! A place in the WAL is told from a file's name by its looks: `0/16B3748` is one, a path is not.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use pagemill_cli::cluster_arguments::{CommonArguments, DatabaseArgument, RecoveryArguments};
use pagemill_cli::values::memory_size;
use pagemill_format::wal::{RelFileLocator, ResourceManager};
use pagemill_format::{Lsn, Oid};

use crate::arguments::ForkChoice;

/// Look at the WAL of a cluster
///
/// WAL is read as it lies in its files; nothing is replayed.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
#[command(after_long_help = "\
Examples:
  pagemill wal show -D /var/lib/postgresql/15/main
  pagemill wal show 000000010000000000000042
  pagemill wal plan -D /backup/base --wal /archive")]
pub(crate) struct WalArguments {
    #[command(subcommand)]
    pub(crate) command: WalCommand,
}

/// What is to be done with WAL.
#[derive(Debug, Subcommand)]
pub(crate) enum WalCommand {
    Show(Box<ShowArguments>),
    Plan(Box<PlanArguments>),
}

/// Tell how a data directory would be recovered, and whether its WAL suffices
///
/// Of a crashed cluster, a snapshot, a base backup or a standby's files: where replay begins, from where on the
/// files are consistent, where WAL ends and why it ends there, which restore points and commit times can be
/// recovered to, and which segments are missing. WAL is read as a server would read it: from the directories
/// given with --wal, in their order, then from pg_wal. Segments may be compressed (gzip, zstd, lz4, bzip2), and
/// named as pgBackRest, Barman and WAL-G name them. Data files are not looked at. What hinders a recovery gives
/// exit status 1.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pagemill wal plan -D /backup/base
  pagemill wal plan -D /backup/base --wal /archive
  pagemill wal plan -D /backup/base --wal /archive \\
      --until name:before_the_upgrade")]
pub(crate) struct PlanArguments {
    #[command(flatten)]
    pub(crate) common: CommonArguments,
    #[command(flatten)]
    pub(crate) recovery: RecoveryArguments,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print WAL records, one on each line
///
/// The columns are those of pg_waldump. With -D the WAL of that cluster is read, from START (by
/// default where a recovery would begin) to END (by default to the end of WAL); with files, the
/// records that begin in them. The end of WAL is not a failure: --verbose reports where and why. Damage
/// gives exit status 1, and so does WAL that ends before END, before the last checkpoint, or in a file
/// that has more WAL behind it.
///
/// With --block, the records of one block: below each of them what it does to the block, to which tuples of a table, and
/// whether it brings the whole page. Without START all WAL is then read that is there, from the oldest segment on.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pagemill wal show -D /var/lib/postgresql/15/main
  pagemill wal show -D /var/lib/postgresql/15/main -d shop \\
      --block public.orders:7
  pagemill wal show -D /var/lib/postgresql/15/main \\
      0/1500000 0/1600000 --rmgr heap
  pagemill wal show /archive/000000010000000000000042 --summary")]
pub(crate) struct ShowArguments {
    #[command(flatten)]
    pub(crate) common: CommonArguments,
    /// Where to begin and where to end, as 0/16B3748; or segment files
    #[arg(value_name = "START END|FILE")]
    pub(crate) places: Vec<OsString>,
    /// Stop after this many records
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Only records of this resource manager; repeatable
    #[arg(short, long, value_name = "NAME", value_parser = resource_manager)]
    pub(crate) rmgr: Vec<ResourceManager>,
    /// Only records of this transaction
    #[arg(short, long, value_name = "XID")]
    pub(crate) xid: Option<u32>,
    /// Only records that change blocks of this relation: OIDs of tablespace, database, and relfilenode
    #[arg(short = 'R', long, value_name = "T/D/R", value_parser = relation)]
    pub(crate) relation: Option<RelFileLocator>,
    /// Only records of this block, and what they do to it: a relation of the database, or its OIDs, and the block's number
    #[arg(long, value_name = "RELATION:N")]
    pub(crate) block: Option<String>,
    /// The fork the block is in
    #[arg(long, value_enum, value_name = "FORK", default_value = "main", requires = "block")]
    pub(crate) fork: ForkChoice,
    #[command(flatten)]
    pub(crate) database: DatabaseArgument,
    /// A directory with archived WAL, looked at before pg_wal; repeatable
    #[arg(long, value_name = "DIR")]
    pub(crate) wal: Vec<PathBuf>,
    /// Memory for WAL and for what it changes, from 1MB on, where --block names a relation of a cluster that lacks WAL
    #[arg(long, value_name = "SIZE", default_value = "256MB", value_parser = memory_size)]
    pub(crate) wal_memory: usize,
    /// Follow this timeline [default: that of the last checkpoint, or of the file]
    #[arg(short, long, value_name = "TLI")]
    pub(crate) timeline: Option<u32>,
    /// Show each block reference on a line of its own, with the size of its image
    #[arg(short, long)]
    pub(crate) bkp_details: bool,
    /// Print sums for each resource manager, or each kind of record, instead of records
    #[arg(
        long,
        value_enum,
        value_name = "BY",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "rmgr"
    )]
    pub(crate) summary: Option<SummaryBy>,
}

/// What a summary has a line for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SummaryBy {
    /// Each resource manager
    Rmgr,
    /// Each kind of record
    Record,
}

/// A place in the WAL, if the text looks like one.
pub(crate) fn lsn(text: &str) -> Option<Lsn> {
    text.parse().ok()
}

fn resource_manager(name: &str) -> Result<ResourceManager, String> {
    ResourceManager::named(name).filter(|manager| manager.is_valid()).ok_or_else(|| {
        let names: Vec<_> = ResourceManager::all().map(|manager| manager.name()).collect();
        format!("there are {}, and custom128 to custom255", names.join(", "))
    })
}

pub(crate) fn relation(text: &str) -> Result<RelFileLocator, String> {
    let oids: Vec<Option<u32>> = text.split('/').map(|part| part.parse().ok()).collect();
    match oids[..] {
        [Some(tablespace), Some(database), Some(number)] if tablespace != 0 && number != 0 => {
            let (tablespace, database, number) = (Oid(tablespace), Oid(database), Oid(number));
            Ok(RelFileLocator { tablespace, database, number })
        }
        _ => Err("three numbers are wanted, as in 1663/5/16384".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_from_files() {
        assert_eq!(lsn("0/16B3748"), Some(Lsn(0x016B_3748)));
        assert_eq!(lsn("1F/0"), Some(Lsn(0x1F_0000_0000)));
        for file in
            ["000000010000000000000001", "pg_wal/000000010000000000000001", "/0", "0/", "0/+1"]
        {
            assert_eq!(lsn(file), None, "{file}");
        }
    }

    #[test]
    fn managers_and_relations_are_named_in_the_refusal() {
        assert_eq!(resource_manager("heap2").unwrap(), ResourceManager::HEAP2);
        assert_eq!(resource_manager("custom130").unwrap(), ResourceManager(130));
        assert!(resource_manager("unknown100").unwrap_err().contains("Btree"));
        assert_eq!(relation("1663/5/16384").unwrap().number, Oid(16384));
        for wrong in ["1663/5", "0/5/1", "1663/5/x", "1663/5/1/2"] {
            assert!(relation(wrong).is_err(), "{wrong}");
        }
    }
}
