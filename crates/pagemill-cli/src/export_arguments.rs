//! The flags of `pagemill export`: for the command, and for the program that has workers do it.
//!
//! Invariant: both parse the same words alike, as the one hands them to the other unread.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::arrow_arguments::ArrowArguments;
use crate::cluster_arguments::{CommonArguments, DatabaseArgument, RecoveryArguments};
use crate::table_arguments::{OrderArguments, SelectionArguments};
use crate::values::memory_size;
use crate::worker_arguments::OnWorkersArguments;

/// Write tables as COPY TO would, as JSON, or as Parquet and Arrow
///
/// Text and CSV are the bytes of COPY TO in a session with these settings, regardless of the server's files, ALTER
/// DATABASE and ALTER ROLE: DateStyle ISO, TimeZone UTC, IntervalStyle postgres, bytea_output hex,
/// extra_float_digits 1, client_encoding that of the database. search_path and lc_monetary are
/// those of a new session of the first superuser.
///
/// Rows come in the order of the table's pages or of an index; those of a partitioned table partition by partition, in
/// the order of the bounds, as a server scans them: lists by their smallest value, ranges by their bounds, hashes by
/// modulus and remainder, the default last.
///
/// A file appears under its name only when it is whole. Several tables go to a directory, one file each:
/// SCHEMA.TABLE.txt, .csv, .jsonl, .parquet and so on, with what a file name cannot hold as %XX. A value is in memory as a whole,
/// two to three times while it is written: one of 500 MB takes 1 to 1.5 GB, in each job.
///
/// JSON is what `select row_to_json(t) from t` writes with these settings, an object on each line, always in UTF-8: numbers and
/// booleans as such, arrays as arrays, rows and hstore as objects, json and jsonb as they are, dates in ISO 8601, all others as the
/// text of COPY. Columns are those of COPY, which leaves out generated ones.
///
/// With --workers several machines write Parquet: to each table a directory SCHEMA.TABLE/ below -o, of files part-00000.parquet and so on,
/// which have its rows in its order. Begun again, the same command keeps what is there; when all of it is, _manifest.json tells.
///
/// Parquet and Arrow have each value as it is, or the table is refused, with the row: numbers as numbers, arrays as lists, rows
/// as structs, hstore as maps, PostGIS's shapes as well-known binary, and what they have no type for as the text of COPY, such as
/// intervals and ranges. Fields tell PostgreSQL's type, files their source and up to which LSN they are.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pagemill export -D /var/lib/postgresql/15/main -d shop -t orders > orders.txt
  pagemill export -D /var/lib/postgresql/15/main -d shop -t orders \\
      --format csv --header -o orders.csv
  pagemill export -D /var/lib/postgresql/15/main -d shop -t orders \\
      --order-by orders_pkey --backward
  pagemill export -D /var/lib/postgresql/15/main -d shop -t 'sales.*' \\
      -j 4 -o sales/
  pagemill export -D /var/lib/postgresql/15/main -d shop -t orders \\
      --format json | jq .state
  pagemill export -D /var/lib/postgresql/15/main -d shop -t orders \\
      --format parquet -j 4 -o orders.parquet
  pagemill export -D s3://backups/main -d shop -t 'sales.*' \\
      --format parquet --workers w1:5999,w2:5999 -o s3://lake/shop/")]
pub struct ExportArguments {
    /// The data directory.
    #[command(flatten)]
    pub common: CommonArguments,
    /// Up to where WAL is redone.
    #[command(flatten)]
    pub recovery: RecoveryArguments,
    /// The database.
    #[command(flatten)]
    pub database: DatabaseArgument,
    /// Which of its tables.
    #[command(flatten)]
    pub selection: SelectionArguments,
    /// In what order.
    #[command(flatten)]
    pub order: OrderArguments,
    /// The format
    #[cfg_attr(
        not(feature = "arrow"),
        arg(help = "The format; this program was built without Parquet and Arrow")
    )]
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub format: ExportFormat,
    /// What separates columns; \t and the like are understood [default: tab, in CSV a comma]
    #[arg(long, value_name = "C")]
    pub delimiter: Option<String>,
    /// What stands for null [default: \N, in CSV nothing]
    #[arg(long, value_name = "STRING")]
    pub null: Option<String>,
    /// Begin with a line of column names
    #[arg(long)]
    pub header: bool,
    /// What values are quoted with in CSV [default: "]
    #[arg(long, value_name = "C")]
    pub quote: Option<String>,
    /// What a quote within quotes is escaped with in CSV [default: the quote]
    #[arg(long, value_name = "C")]
    pub escape: Option<String>,
    /// Columns always quoted in CSV, separated by commas, or * for all
    #[arg(long, value_name = "COLUMNS")]
    pub force_quote: Option<String>,
    /// Columns to write, separated by commas, in this order; quotes as in SQL
    #[arg(long, value_name = "COLUMNS")]
    pub columns: Option<String>,
    /// Convert to this encoding [default: as stored; JSON, Parquet and Arrow are UTF-8]
    #[arg(long, value_name = "NAME")]
    pub encoding: Option<String>,
    /// Print money as in this locale [default: lc_monetary of the server's settings, or C]
    #[arg(long, value_name = "LOCALE")]
    pub lc_monetary: Option<String>,
    /// What to do with types that only an extension's code can print: refuse the table, or print their bytes in hex
    #[arg(long, value_enum, value_name = "WHAT", default_value = "refuse")]
    pub unknown_types: UnknownTypesChoice,
    /// Write to this file, or into this directory (DIR/); with --workers, into this directory or URL [default: standard output]
    #[arg(short, long, value_name = "FILE|DIR/")]
    pub output: Option<PathBuf>,
    /// What is of Parquet and Arrow.
    #[command(flatten)]
    pub arrow: ArrowArguments,
    /// The workers that do it.
    #[command(flatten)]
    pub on_workers: OnWorkersArguments,
    /// With --workers, a table has a file for each so many bytes of it
    #[arg(long, value_name = "SIZE", value_parser = memory_size, default_value = "512MB", requires = "workers")]
    pub part_size: usize,
}

/// Formats of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// COPY's: tab-separated, escaped with backslashes
    Text,
    /// COPY's: comma-separated values, quoted
    Csv,
    /// JSON Lines: an object for each row, as row_to_json writes it
    Json,
    /// Apache Parquet
    Parquet,
    /// Arrow IPC's file format, also called Feather 2
    Arrow,
    /// Arrow IPC's stream format
    ArrowStream,
}

impl ExportFormat {
    /// How names of files in this format end.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Text => ".txt",
            Self::Csv => ".csv",
            Self::Json => ".jsonl",
            Self::Parquet => ".parquet",
            Self::Arrow => ".arrow",
            Self::ArrowStream => ".arrows",
        }
    }
}

/// What to do with types that cannot be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UnknownTypesChoice {
    /// Refuse the table
    Refuse,
    /// Print the value's bytes in hex
    Hex,
}
