//! The flags of `pagemill ls`: for the command, and for the program that writes definitions with `--ddl`.
//!
//! Invariant: both parse the same words alike, as the one hands them to the other unread.

use clap::Args;

use crate::cluster_arguments::{CommonArguments, RecoveryArguments};

/// List databases, or with -d the tables of one; the backups of a repository
///
/// Databases are listed with OID, encoding, tablespace and size. Tables are listed with their
/// kind, blocks, estimated rows (as of the last VACUUM or ANALYZE), the size of all their forks,
/// and that of their TOAST table. Only catalogs are read, so this is fast. Files, segments and directories that
/// are missing are shown beside what they belong to, and give exit status 1. Of a repository of pgBackRest, Barman (the directory of a
/// server) or WAL-G, the backups are listed, and the WAL in its archive; --backup shows what is in one of them.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pagemill ls -D /var/lib/postgresql/15/main
  pagemill ls -D /var/lib/postgresql/15/main -d shop -t 'sales.*'
  pagemill ls -D backup -d shop -t orders --ddl
  pagemill ls -D /var/lib/pgbackrest
  pagemill ls -D /var/lib/pgbackrest --backup latest -d shop
  pagemill ls -D /var/lib/barman/shop
  pagemill ls -D s3://backups/shop")]
pub struct LsArguments {
    /// The data directory.
    #[command(flatten)]
    pub common: CommonArguments,
    /// Up to where WAL is redone.
    #[command(flatten)]
    pub recovery: RecoveryArguments,
    /// List the tables of this database
    #[arg(short, long, value_name = "DBNAME")]
    pub dbname: Option<String>,
    /// Only tables of this name or pattern; repeatable
    #[arg(short, long = "table", value_name = "PATTERN", requires = "dbname")]
    pub tables: Vec<String>,
    /// Include the tables of the system
    #[arg(short = 'S', long, requires = "dbname")]
    pub system: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print SQL that makes the tables, views and sequences as they are, without rows, owners and privileges
    ///
    /// It is what pg_dump -s -O -x writes of them: columns, defaults, sequences that belong to them, constraints, indexes, statistics, rules,
    /// triggers, policies and comments. Types, functions and tables that they need are not in it unless they are chosen, too.
    #[arg(long, requires = "dbname", conflicts_with = "json")]
    pub ddl: bool,
}
