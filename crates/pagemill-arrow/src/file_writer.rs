//! Record batches into a file: what a thread can encode by itself, and what puts it together in order.
//!
//! A Parquet file is made of row groups, which are encoded and compressed by the threads that scan and only written here; Arrow
//! IPC has its batches compressed as they are written.
//!
//! Invariant: the bytes are those that one thread would have written for the same pieces.

use std::io::BufWriter;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter as IpcFileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::SchemaRef;
use pagemill_io::ByteSink;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::basic::{Compression as ParquetCompression, GzipLevel, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use crate::error::{Error, Result};
use crate::options::{ArrowOptions, Compression, FileFormat};
use crate::sink::{KeptError, SinkWriter};

/// Rows of a row group where nothing else was asked for.
pub(crate) const ROW_GROUP_ROWS: usize = 1 << 20;
/// A row group ends once it takes so many bytes in memory, whatever its rows.
const ROW_GROUP_BYTES: usize = 256 << 20;
/// Calls of the IPC writer are small.
const IPC_BUFFER_BYTES: usize = 64 << 10;

/// What goes into a file next.
pub(crate) enum Piece {
    Batch(RecordBatch),
    RowGroup(Vec<ArrowColumnChunk>),
}

/// An open file, or stream, of one format.
pub(crate) struct TableFile<S: ByteSink + Send> {
    format: Format<S>,
    kept: KeptError,
}

enum Format<S: ByteSink + Send> {
    Parquet(Box<SerializedFileWriter<SinkWriter<S>>>),
    Arrow(Box<IpcFileWriter<BufWriter<SinkWriter<S>>>>),
    Stream(Box<StreamWriter<BufWriter<SinkWriter<S>>>>),
}

/// What the threads that encode have in common.
#[derive(Clone)]
pub(crate) struct EncoderSetup(Option<Arc<RowGroupSetup>>);

struct RowGroupSetup {
    factory: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    most_rows: usize,
}

impl<S: ByteSink + Send> TableFile<S> {
    /// Begins a file.
    ///
    /// # Errors
    /// When the format has not the compression, or the output fails.
    pub(crate) fn begin(
        sink: S,
        schema: &SchemaRef,
        options: &ArrowOptions,
    ) -> Result<(Self, EncoderSetup)> {
        let (sink, kept) = SinkWriter::new(sink);
        if options.format == FileFormat::Parquet {
            let begun =
                ArrowWriter::try_new(sink, schema.clone(), Some(properties(schema, options)?));
            let parts = begun.and_then(ArrowWriter::into_serialized_writer);
            let (writer, factory) = kept.instead(parts)?;
            let most_rows = options.row_group_rows.unwrap_or(ROW_GROUP_ROWS);
            let setup = RowGroupSetup { factory, schema: schema.clone(), most_rows };
            let format = Format::Parquet(Box::new(writer));
            return Ok((Self { format, kept }, EncoderSetup(Some(Arc::new(setup)))));
        }
        let sink = BufWriter::with_capacity(IPC_BUFFER_BYTES, sink);
        let how = ipc_options(options)?;
        let format = match options.format {
            FileFormat::ArrowStream => {
                let begun = StreamWriter::try_new_with_options(sink, schema, how);
                Format::Stream(Box::new(kept.instead(begun)?))
            }
            _ => {
                let begun = IpcFileWriter::try_new_with_options(sink, schema, how);
                let mut writer = kept.instead(begun)?;
                for (key, value) in &schema.metadata {
                    writer.write_metadata(key, value);
                }
                Format::Arrow(Box::new(writer))
            }
        };
        Ok((Self { format, kept }, EncoderSetup(None)))
    }

    /// Writes what comes next.
    ///
    /// # Errors
    /// When the output fails.
    pub(crate) fn write(&mut self, piece: Piece) -> Result<()> {
        match (&mut self.format, piece) {
            (Format::Parquet(writer), Piece::RowGroup(chunks)) => {
                let mut group = self.kept.instead(writer.next_row_group())?;
                for chunk in chunks {
                    self.kept.instead(chunk.append_to_row_group(&mut group))?;
                }
                self.kept.instead(group.close().map(drop))
            }
            (Format::Arrow(writer), Piece::Batch(batch)) => self.kept.instead(writer.write(&batch)),
            (Format::Stream(writer), Piece::Batch(batch)) => {
                self.kept.instead(writer.write(&batch))
            }
            _ => unreachable!("pieces are those of the file's own encoder"),
        }
    }

    /// Hands what was written on to the output, all of it.
    ///
    /// # Errors
    /// When the output fails.
    pub(crate) fn flush(&mut self) -> Result<()> {
        match &mut self.format {
            Format::Parquet(writer) => {
                self.kept.instead(writer.flush().map_err(ParquetError::from))
            }
            Format::Arrow(writer) => self.kept.instead(writer.flush()),
            Format::Stream(writer) => self.kept.instead(writer.flush()),
        }
    }

    /// Writes what ends the file.
    ///
    /// # Errors
    /// When the output fails.
    pub(crate) fn finish(self) -> Result<()> {
        match self.format {
            Format::Parquet(writer) => self.kept.instead(writer.close().map(drop)),
            // Their own ends flush what is buffered.
            Format::Arrow(mut writer) => self.kept.instead(writer.finish()),
            Format::Stream(mut writer) => self.kept.instead(writer.finish()),
        }
    }
}

fn properties(schema: &SchemaRef, options: &ArrowOptions) -> Result<WriterProperties> {
    let compression = match options.compression.unwrap_or(Compression::Zstd(None)) {
        Compression::None => ParquetCompression::UNCOMPRESSED,
        Compression::Zstd(level) => {
            ParquetCompression::ZSTD(ZstdLevel::try_new(level.unwrap_or(1))?)
        }
        Compression::Snappy => ParquetCompression::SNAPPY,
        Compression::Lz4 => ParquetCompression::LZ4_RAW,
        Compression::Gzip(level) => {
            ParquetCompression::GZIP(GzipLevel::try_new(level.unwrap_or(6))?)
        }
    };
    let mut pairs: Vec<KeyValue> = schema
        .metadata
        .iter()
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()))
        .collect();
    pairs.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(WriterProperties::builder()
        .set_compression(compression)
        .set_created_by(concat!("pagemill version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(pairs))
        .build())
}

fn ipc_options(options: &ArrowOptions) -> Result<IpcWriteOptions> {
    let (compression, level) = match options.compression {
        None | Some(Compression::None) => (None, None),
        Some(Compression::Zstd(level)) => (Some(CompressionType::ZSTD), level),
        Some(Compression::Lz4) => (Some(CompressionType::LZ4_FRAME), None),
        Some(Compression::Snappy | Compression::Gzip(_)) => {
            let reason = "Arrow files are compressed by zstd or lz4, or not at all";
            return Err(Error::Usage(reason.to_owned()));
        }
    };
    let how = IpcWriteOptions::default().try_with_compression(compression)?;
    Ok(how.try_with_compression_level(level)?)
}

/// Record batches into pieces of a file; one per thread.
pub(crate) struct Encoder {
    setup: EncoderSetup,
    group: Vec<ArrowColumnWriter>,
    rows: usize,
}

impl Encoder {
    pub(crate) fn new(setup: &EncoderSetup) -> Self {
        Self { setup: setup.clone(), group: Vec::new(), rows: 0 }
    }

    /// Takes a batch, and gives the pieces that are complete.
    ///
    /// # Errors
    /// When it cannot be encoded, or a piece not be given.
    pub(crate) fn push(
        &mut self,
        batch: RecordBatch,
        emit: &mut dyn FnMut(Piece) -> Result<()>,
    ) -> Result<()> {
        let Some(setup) = self.setup.0.clone() else { return emit(Piece::Batch(batch)) };
        let mut rest = batch;
        while rest.num_rows() > 0 {
            let count = (setup.most_rows - self.rows).min(rest.num_rows());
            self.encode(&setup, &rest.slice(0, count))?;
            rest = rest.slice(count, rest.num_rows() - count);
            let bytes = self.group.iter().map(ArrowColumnWriter::memory_size).sum::<usize>();
            if self.rows == setup.most_rows || bytes > ROW_GROUP_BYTES {
                self.finish(emit)?;
            }
        }
        Ok(())
    }

    fn encode(&mut self, setup: &RowGroupSetup, batch: &RecordBatch) -> Result<()> {
        if self.rows == 0 {
            self.group = setup.factory.create_column_writers(0)?;
        }
        let mut writers = self.group.iter_mut();
        for (field, array) in setup.schema.fields().iter().zip(batch.columns()) {
            for leaf in compute_leaves(field, array)? {
                let writer = writers.next();
                let writer = writer.expect("a writer for each leaf"); // infallible: made by the same schema
                writer.write(&leaf)?;
            }
        }
        self.rows += batch.num_rows();
        Ok(())
    }

    /// Gives what there is as a piece, be it small.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(crate) fn finish(&mut self, emit: &mut dyn FnMut(Piece) -> Result<()>) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let writers = std::mem::take(&mut self.group).into_iter();
        let chunks = writers.map(ArrowColumnWriter::close).collect::<Result<Vec<_>, _>>()?;
        emit(Piece::RowGroup(chunks))
    }
}
