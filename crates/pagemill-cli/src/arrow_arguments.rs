//! The flags of `export` for Parquet and Arrow IPC.
//! Each is optional, so that what was given with a format it means nothing for can be refused.

use anyhow::Result;
use clap::{Args, ValueEnum};
use pagemill_arrow::{
    ArrayChoice, ArrowOptions, Compression, FileFormat, InfinityChoice, NumericChoice,
};
use pagemill_engine::ScanOptions;

use crate::column_lists::{ColumnNames, column_list};

/// How a table becomes Arrow batches, and a file of them.
#[derive(Debug, Args)]
#[command(next_help_heading = "Parquet and Arrow")]
pub struct ArrowArguments {
    /// How files are compressed.
    #[arg(
        long,
        value_name = "METHOD",
        help = "Compress by zstd[:LEVEL], snappy, lz4, gzip[:LEVEL] or none [default: zstd:1, in Arrow none]"
    )]
    pub compression: Option<Compression>,
    /// Most rows of a Parquet row group [default: 1048576]
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..))]
    pub row_group_size: Option<u32>,
    /// Numerics of no declared size, or of more than 38 digits: auto, text, double or decimal(P,S) [default: auto]
    ///
    /// With auto the table is read once before, for the smallest decimal that holds all values of a column; where none of
    /// 38 digits does, and inside of arrays and rows, they are text. `text` is for all numerics, also numeric(P,S).
    #[arg(long, value_name = "WHAT")]
    pub numeric: Option<NumericChoice>,
    /// Infinite dates and timestamps, 24:00:00, and NaN in decimals [default: error]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub infinity: Option<InfinityFlag>,
    /// Write a directory (-o DIR) with files by the values of these columns: COLUMN=VALUE/part-0.parquet, as Hive names them
    ///
    /// The columns, separated by commas, are not in the files. NULL is __HIVE_DEFAULT_PARTITION__. Each job writes files of its
    /// own: part-0, part-1 and so on, which have the rows in the order of the table. At most 4096 values. The directory appears when
    /// all of it is whole.
    #[arg(long, value_name = "COLUMNS")]
    pub partition_by: Option<String>,
    /// Arrays: lists, which have one dimension, or text or JSON [default: list]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub arrays: Option<ArrayFlag>,
}

impl ArrowArguments {
    /// What they ask for, of these columns, in a format.
    ///
    /// # Errors
    /// When a list of columns is none.
    pub fn options(
        &self,
        format: FileFormat,
        columns: Option<ColumnNames>,
        scan: ScanOptions,
    ) -> Result<ArrowOptions> {
        let partition_by = self.partition_by.as_deref();
        let partition_by =
            partition_by.map(|text| column_list("partition-by", text)).transpose()?;
        Ok(ArrowOptions {
            columns,
            partition_by: partition_by.unwrap_or_default(),
            numeric: self.numeric.unwrap_or_default(),
            infinity: self.infinity.map(Into::into).unwrap_or_default(),
            arrays: self.arrays.map(Into::into).unwrap_or_default(),
            format,
            compression: self.compression,
            row_group_rows: self.row_group_size.map(|rows| rows as usize),
            scan,
            redo_end: None,
        })
    }
}

/// What becomes of values past the range of their type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InfinityFlag {
    /// Refuse them, with their row
    Error,
    /// NULL
    Null,
    /// 0001-01-01 or 9999-12-31, 23:59:59.999999; NaN is refused
    Clamp,
}

impl From<InfinityFlag> for InfinityChoice {
    fn from(flag: InfinityFlag) -> Self {
        match flag {
            InfinityFlag::Error => Self::Error,
            InfinityFlag::Null => Self::Null,
            InfinityFlag::Clamp => Self::Clamp,
        }
    }
}

/// What arrays become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ArrayFlag {
    /// Lists; arrays of several dimensions are refused, with their row
    List,
    /// Text as COPY prints it
    Text,
    /// JSON, nested for each dimension
    Json,
}

impl From<ArrayFlag> for ArrayChoice {
    fn from(flag: ArrayFlag) -> Self {
        match flag {
            ArrayFlag::List => Self::List,
            ArrayFlag::Text => Self::Text,
            ArrayFlag::Json => Self::Json,
        }
    }
}
