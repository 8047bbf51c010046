//! The flags that say which tables are meant, and in what order their rows are wanted.
//!
//! Invariant: they are spelled as psql's and pg_dump's are.

use clap::{ArgGroup, Args};
use pagemill_engine::ScanOrder;
use pagemill_format::BlockNumber;

/// Which tables are meant.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("selection").required(true).multiple(true))]
pub struct SelectionArguments {
    /// Tables of this name or pattern ([SCHEMA.]TABLE, * and ?, quotes as in SQL); repeatable
    #[arg(short, long = "table", value_name = "PATTERN", group = "selection")]
    pub tables: Vec<String>,
    /// Leave out tables of this name or pattern; repeatable
    #[arg(short = 'T', long = "exclude-table", value_name = "PATTERN", group = "selection")]
    pub excluded_tables: Vec<String>,
    /// All tables of the schemas of this name or pattern; repeatable
    #[arg(short = 'n', long = "schema", value_name = "PATTERN", group = "selection")]
    pub schemas: Vec<String>,
    /// Leave out the schemas of this name or pattern; repeatable
    #[arg(short = 'N', long = "exclude-schema", value_name = "PATTERN", group = "selection")]
    pub excluded_schemas: Vec<String>,
}

/// In what order rows are wanted.
#[derive(Debug, Args)]
pub struct OrderArguments {
    /// Read rows in the order of this B-tree index of the table ([SCHEMA.]INDEX); with one job only
    ///
    /// The order is that of PostgreSQL's index scan, including rows with equal keys. So they
    /// are read one after the other, and -j is refused.
    #[arg(long, value_name = "INDEX")]
    pub order_by: Option<String>,
    /// From the last row to the first: of the index, or of the table; of several tables or partitions,
    /// each
    #[arg(long)]
    pub backward: bool,
    /// Begin with this block, counted from 0, and wrap around at the end of the table
    ///
    /// The rows come as PostgreSQL's synchronized scans give them. A partition that has no such block
    /// is scanned from its beginning.
    #[arg(long, value_name = "N", conflicts_with = "order_by")]
    pub start_block: Option<u32>,
    /// Read the table for every row, even where the index and the visibility map would do
    #[arg(long, requires = "order_by")]
    pub no_index_only: bool,
}

impl OrderArguments {
    /// The order of blocks where no index gives the order of rows.
    pub fn scan_order(&self) -> ScanOrder {
        ScanOrder { backward: self.backward, start: self.start_block.map(BlockNumber) }
    }
}
