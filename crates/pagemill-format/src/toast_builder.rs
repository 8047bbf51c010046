//! What to do with a row too wide for its page: compress values, or move them to the TOAST table.
//!
//! Four rounds, each taking the largest value that it may take until the row is short enough:
//! 1. compress columns of storage extended; move what alone is too long already (also external);
//! 2. move columns of storage extended or external;
//! 3. compress columns of storage main;
//! 4. move columns of storage main, but only when the row would not fit a page otherwise.
//!
//! Nothing shorter than a TOAST pointer, padded, is taken, and without TOAST table nothing is moved.
//! A moved value goes to the [`ToastSink`] in chunks of 1996 bytes and leaves a pointer.
//!
//! Invariants: the payloads stay what they were, whatever is done to them; the decisions, and for pglz
//! the bytes, are those of a server. Nothing is allocated per row once the buffers have grown.
//!
//! Sources: `heap_toast_insert_or_update` in `src/backend/access/heap/heaptoast.c`,
//! `src/backend/access/table/toast_helper.c`, `src/backend/access/common/toast_internals.c` and
//! `toast_compression.c`, PostgreSQL 14 to 18.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::ids::Oid;
use crate::lz4;
use crate::page_builder::max_align;
use crate::pglz_compression::PglzCompressor;
use crate::tuple::AttributeLayout;
use crate::tuple_builder::{TupleForm, TupleSize};
use crate::tuple_data_builder::{AttributeStorage, ColumnLayout, Row, Value};
use crate::varlena::{Compression, TOAST_CHUNK_BYTES, ToastPointer, VARLENA_HEADER_BYTES};

/// Rows of more bytes than this are toasted (`TOAST_TUPLE_THRESHOLD`), and become that short unless
/// the table's `toast_tuple_target` says otherwise.
pub const TOAST_TUPLE_THRESHOLD: usize = 2032;
/// What columns of storage main may fill before they are moved (`TOAST_TUPLE_TARGET_MAIN`).
const TARGET_OF_MAIN: usize = 8160;
/// Values shorter than this gain nothing.
const SHORTEST_TO_COMPRESS: usize = 32;

/// Takes the chunks of moved values.
pub trait ToastSink {
    /// What can go wrong, beside the errors of this crate.
    type Error: From<Error>;

    /// A `chunk_id` that no value of the TOAST table has.
    ///
    /// # Errors
    /// When there is none left.
    fn next_value_id(&mut self) -> Result<Oid, Self::Error>;

    /// A row of the TOAST table, for the tuple form that [`chunk_form`] gives.
    ///
    /// # Errors
    /// When it cannot be stored.
    fn chunk(&mut self, chunk: &ToastChunk<'_>) -> Result<(), Self::Error>;
}

/// A row of a TOAST table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToastChunk<'a> {
    value_id: [u8; 4],
    sequence: [u8; 4],
    data: &'a [u8],
}

impl<'a> ToastChunk<'a> {
    /// A row with `chunk_id`, `chunk_seq` (from 0) and `chunk_data`.
    pub fn new(value_id: Oid, sequence: u32, data: &'a [u8]) -> Self {
        Self { value_id: value_id.0.to_le_bytes(), sequence: sequence.to_le_bytes(), data }
    }

    /// `chunk_id`.
    pub fn value_id(&self) -> Oid {
        Oid(u32::from_le_bytes(self.value_id))
    }

    /// `chunk_seq`.
    pub fn sequence(&self) -> u32 {
        u32::from_le_bytes(self.sequence)
    }

    /// `chunk_data`.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }
}

impl Row for ToastChunk<'_> {
    #[inline]
    fn value(&self, column: usize) -> Value<'_> {
        match column {
            0 => Value::Plain(&self.value_id),
            1 => Value::Plain(&self.sequence),
            2 => Value::Plain(self.data),
            _ => Value::Null,
        }
    }
}

/// How the tuples of every TOAST table are made: `chunk_id` oid, `chunk_seq` integer, `chunk_data` bytea.
///
/// # Errors
/// Never, as these columns are fit for a tuple.
pub fn chunk_form() -> Result<TupleForm> {
    let column = |len| ColumnLayout {
        layout: AttributeLayout { len, align: 4 },
        storage: AttributeStorage::Plain,
        compression: Compression::Pglz,
        dropped: false,
    };
    TupleForm::new(&[column(4), column(4), column(-1)])
}

/// What is done with a column's value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Treatment {
    /// It stays as it is, at least for now.
    AsItIs,
    /// It was tried to compress it.
    Incompressible,
    /// It is compressed; where in the scratch memory.
    Compressed(Range<usize>),
    /// It is in the TOAST table.
    Moved(ToastPointer),
}

/// Toasts the rows of one table.
#[derive(Debug)]
pub struct ToastBuilder {
    form: TupleForm,
    columns: Vec<ColumnLayout>,
    relation: Option<Oid>,
    target: usize,
    treatments: Vec<Treatment>,
    compressor: ValueCompressor,
    scratch: Vec<u8>,
}

impl ToastBuilder {
    /// For a table with these columns, its TOAST table if it has one, and its `toast_tuple_target` in
    /// bytes if that is set.
    ///
    /// # Errors
    /// As [`TupleForm::new`].
    pub fn new(
        columns: &[ColumnLayout],
        relation: Option<Oid>,
        tuple_target: Option<usize>,
    ) -> Result<Self> {
        Ok(Self {
            form: TupleForm::new(columns)?,
            columns: columns.to_vec(),
            relation,
            target: tuple_target.unwrap_or(TOAST_TUPLE_THRESHOLD),
            treatments: Vec::new(),
            compressor: ValueCompressor::default(),
            scratch: Vec::new(),
        })
    }

    /// True for a row that has to be toasted before it is stored.
    #[inline]
    pub fn is_due(size: TupleSize) -> bool {
        size.bytes() > TOAST_TUPLE_THRESHOLD
    }

    /// Makes the row as short as it can be or needs to be. What comes back is the row to form the tuple of,
    /// which may still be too big for a page: that is [`TupleSize::on_page`]'s to say.
    ///
    /// # Errors
    /// Those of the sink, and of measuring the row.
    pub fn toast<'a, R: Row + ?Sized, S: ToastSink>(
        &'a mut self,
        row: &'a R,
        sink: &mut S,
    ) -> Result<ToastedRow<'a, R>, S::Error> {
        self.treatments.clear();
        self.treatments.resize(self.columns.len(), Treatment::AsItIs);
        self.scratch.clear();
        Rounds { builder: self, row, sink }.run()?;
        Ok(ToastedRow { row, treatments: &self.treatments, scratch: &self.scratch })
    }
}

/// A row after toasting.
#[derive(Debug)]
pub struct ToastedRow<'a, R: ?Sized> {
    row: &'a R,
    treatments: &'a [Treatment],
    scratch: &'a [u8],
}

impl<R: Row + ?Sized> Row for ToastedRow<'_, R> {
    fn value(&self, column: usize) -> Value<'_> {
        match self.treatments.get(column) {
            Some(Treatment::Compressed(range)) => Value::Compressed(&self.scratch[range.clone()]),
            Some(Treatment::Moved(pointer)) => Value::External(*pointer),
            _ => self.row.value(column),
        }
    }
}

/// Which columns a round takes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Pick {
    main: bool,
    to_compress: bool,
}

/// The four rounds over one row.
struct Rounds<'b, 'r, 's, R: ?Sized, S> {
    builder: &'b mut ToastBuilder,
    row: &'r R,
    sink: &'s mut S,
}

impl<R: Row + ?Sized, S: ToastSink> Rounds<'_, '_, '_, R, S> {
    fn run(&mut self) -> Result<(), S::Error> {
        let header = self.size()?.header_bytes();
        let most = self.builder.target.saturating_sub(header);
        self.compress_or_move(most)?;
        self.move_while_over(most, false)?;
        while let Some(column) = self.next(most, Pick { main: true, to_compress: true })? {
            self.compress(column);
        }
        self.move_while_over(TARGET_OF_MAIN - header, true)
    }

    fn compress_or_move(&mut self, most: usize) -> Result<(), S::Error> {
        while let Some(column) = self.next(most, Pick { main: false, to_compress: true })? {
            if self.storage(column) == Some(AttributeStorage::Extended) {
                self.compress(column);
            } else {
                self.set(column, Treatment::Incompressible);
            }
            // One long value among short ones is moved at once, before the others are compressed.
            if self.value_size(column) > most && self.builder.relation.is_some() {
                self.move_out(column)?;
            }
        }
        Ok(())
    }

    fn move_while_over(&mut self, most: usize, main: bool) -> Result<(), S::Error> {
        while self.builder.relation.is_some()
            && let Some(column) = self.next(most, Pick { main, to_compress: false })?
        {
            self.move_out(column)?;
        }
        Ok(())
    }

    /// The column of the largest value to take, as long as the row's data are over `most` bytes.
    fn next(&self, most: usize, pick: Pick) -> Result<Option<usize>> {
        if self.size()?.data_bytes() <= most {
            return Ok(None);
        }
        let mut biggest = (None, max_align(ToastPointer::BYTES));
        for column in 0..self.builder.columns.len() {
            let size = self.value_size(column);
            if self.is_eligible(column, pick) && size > biggest.1 {
                biggest = (Some(column), size);
            }
        }
        Ok(biggest.0)
    }

    fn is_eligible(&self, column: usize, pick: Pick) -> bool {
        let storage_fits = match self.storage(column) {
            Some(AttributeStorage::Main) => pick.main,
            Some(AttributeStorage::Extended | AttributeStorage::External) => !pick.main,
            _ => false,
        };
        let state_fits = match self.builder.treatments.get(column) {
            Some(Treatment::AsItIs) => true,
            Some(Treatment::Incompressible | Treatment::Compressed(_)) => !pick.to_compress,
            _ => false,
        };
        storage_fits && state_fits && matches!(self.row.value(column), Value::Plain(_))
    }

    /// The storage of a column that has values of variable length.
    fn storage(&self, column: usize) -> Option<AttributeStorage> {
        let column = self.builder.columns.get(column)?;
        (column.layout.len == -1 && !column.dropped).then_some(column.storage)
    }

    fn current(&self) -> ToastedRow<'_, R> {
        let ToastBuilder { treatments, scratch, .. } = &*self.builder;
        ToastedRow { row: self.row, treatments, scratch }
    }

    fn size(&self) -> Result<TupleSize> {
        self.builder.form.measure(&self.current())
    }

    /// Bytes of a value with its header, which is the short one where it can be; 0 for NULL.
    fn value_size(&self, column: usize) -> usize {
        match self.current().value(column) {
            Value::Null => 0,
            Value::Plain(payload) if payload.len() <= 126 => payload.len() + 1,
            Value::Plain(bytes) | Value::Compressed(bytes) => bytes.len() + VARLENA_HEADER_BYTES,
            Value::External(_) => ToastPointer::BYTES,
        }
    }

    fn set(&mut self, column: usize, treatment: Treatment) {
        if let Some(place) = self.builder.treatments.get_mut(column) {
            *place = treatment;
        }
    }

    fn compress(&mut self, column: usize) {
        let ToastBuilder { compressor, scratch, columns, .. } = &mut *self.builder;
        let start = scratch.len();
        let method = columns.get(column).map_or(Compression::Pglz, |column| column.compression);
        let done = match self.row.value(column) {
            Value::Plain(payload) => compressor.compress(method, payload, scratch),
            _ => false,
        };
        let range = start..scratch.len();
        let treatment = if done { Treatment::Compressed(range) } else { Treatment::Incompressible };
        self.set(column, treatment);
    }

    fn move_out(&mut self, column: usize) -> Result<(), S::Error> {
        let Some(relation) = self.builder.relation else { return Ok(()) };
        let Value::Plain(payload) = self.row.value(column) else { return Ok(()) };
        let (stored, compression) = match self.builder.treatments.get(column) {
            Some(Treatment::Compressed(range)) => {
                let method = self.builder.columns.get(column).map(|column| column.compression);
                (&self.builder.scratch[range.clone()], method)
            }
            _ => (payload, None),
        };
        let value_id = self.sink.next_value_id()?;
        for (sequence, data) in (0..).zip(stored.chunks(TOAST_CHUNK_BYTES)) {
            self.sink.chunk(&ToastChunk::new(value_id, sequence, data))?;
        }
        let pointer = ToastPointer {
            raw_size: (payload.len() + VARLENA_HEADER_BYTES) as u32,
            stored_size: stored.len() as u32,
            compression,
            value_id,
            toast_relation: relation,
        };
        self.set(column, Treatment::Moved(pointer));
        Ok(())
    }
}

/// Compresses values as they are stored.
#[derive(Debug, Default)]
pub struct ValueCompressor {
    pglz: PglzCompressor,
}

impl ValueCompressor {
    /// Appends size word and compressed data of a payload, or leaves `out` as it was and says false when
    /// that does not save more than two bytes (`toast_compress_datum`).
    pub fn compress(&mut self, method: Compression, payload: &[u8], out: &mut Vec<u8>) -> bool {
        let start = out.len();
        out.extend(method.size_word(payload.len()));
        let done = match method {
            Compression::Pglz if payload.len() < SHORTEST_TO_COMPRESS => false,
            Compression::Pglz => self.pglz.compress(payload, out),
            Compression::Lz4 => lz4::compress(payload, out),
        };
        let pays = VARLENA_HEADER_BYTES + out.len() - start < payload.len().saturating_sub(2);
        if !done || !pays {
            out.truncate(start);
        }
        done && pays
    }
}

#[cfg(test)]
mod tests;
