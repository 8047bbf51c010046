//! A Parquet file read back, whole, as the batches that it is made of.
//!
//! Invariant: damage in a file is an error, also where the library that reads it would panic.

use std::thread;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::reader::ChunkReader;

use crate::error::{Error, Result};

/// The batches of a file, up to so many bytes in memory.
///
/// # Errors
/// When it is no Parquet file, is damaged, or is larger.
pub fn read_parquet(
    file: impl ChunkReader + 'static,
    memory: Option<usize>,
) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let damaged = || Error::Encoding("no Parquet file, or a damaged one".to_owned());
    thread::scope(|scope| {
        let work = thread::Builder::new().spawn_scoped(scope, || read(file, memory));
        let work = work.map_err(|error| Error::Encoding(error.to_string()))?;
        work.join().unwrap_or_else(|_| Err(damaged()))
    })
}

/// What the end of a file tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FooterRows {
    /// How many rows the file has.
    Rows(u64),
    /// So many bytes of the end are needed.
    NeedsBytes(usize),
}

/// The rows of a file of this size, of which these are the last bytes.
///
/// # Errors
/// When it is no whole Parquet file.
pub fn footer_rows(tail: Vec<u8>, file_bytes: u64) -> Result<FooterRows> {
    let mut reader = ParquetMetaDataReader::new();
    match reader.try_parse_sized(&Bytes::from(tail), file_bytes) {
        Ok(()) => {
            let rows = reader.finish()?.file_metadata().num_rows();
            let negative = |_| Error::Encoding("a damaged Parquet file".to_owned());
            Ok(FooterRows::Rows(u64::try_from(rows).map_err(negative)?))
        }
        Err(ParquetError::NeedMoreData(bytes)) => Ok(FooterRows::NeedsBytes(bytes)),
        Err(error) => Err(error.into()),
    }
}

fn read(
    file: impl ChunkReader + 'static,
    memory: Option<usize>,
) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file)?;
    let schema = builder.schema().clone();
    let (mut batches, mut bytes) = (Vec::new(), 0);
    for batch in builder.build()? {
        let batch = batch?;
        bytes += batch.get_array_memory_size();
        if memory.is_some_and(|memory| bytes > memory) {
            return Err(Error::Usage("it does not fit into the memory allowed".to_owned()));
        }
        batches.push(batch);
    }
    Ok((schema, batches))
}
