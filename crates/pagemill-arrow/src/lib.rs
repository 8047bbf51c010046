#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod answer_file;
mod batch_builder;
mod column_builder;
mod conversion;
mod error;
mod export;
mod file_metadata;
mod file_writer;
mod fixed_length;
mod measure;
mod options;
mod parquet_file;
mod partition_names;
mod partitioned;
mod pieces;
mod plan;
mod record_batches;
mod sink;
mod table_part;

pub use answer_file::{AnswerColumn, AnswerFile, AnswerSchema, NumericExtents};
pub use batch_builder::{BatchBuilder, BatchSize, RowHeader};
pub use error::{Error, Remedy, Result, RowPlace, Unfit};
pub use export::{ArrowExport, ArrowSink, BlockRange};
pub use options::{
    ArrayChoice, ArrowOptions, Compression, FileFormat, InfinityChoice, NumericChoice, ParseError,
};
pub use parquet_file::{FooterRows, footer_rows, read_parquet};
pub use plan::{Plan, columns_to_measure, stored_type};
pub use record_batches::RecordBatches;
