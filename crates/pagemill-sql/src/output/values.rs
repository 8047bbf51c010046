//! Single values of a batch as texts, for whoever lays out rows itself.
//!
//! Invariant: a text is that of PostgreSQL's output function.

use std::sync::Arc;

use arrow::array::Array as _;
use arrow::record_batch::RecordBatch;

use crate::catalog::Catalog;
use crate::error::Result;
use crate::functions::text_form::Printer;
use crate::session::AnswerColumn;

/// Prints the values of an answer's batches.
pub struct ValuePrinter {
    printers: Vec<Printer>,
}

impl ValuePrinter {
    /// For these columns.
    ///
    /// # Errors
    /// When the text of a type is not known here.
    pub fn new(catalog: &Arc<Catalog>, columns: &[AnswerColumn]) -> Result<Self> {
        let printer = |column: &AnswerColumn| Printer::new(catalog, column.ty);
        Ok(Self { printers: columns.iter().map(printer).collect::<Result<_>>()? })
    }

    /// Appends the text of a column in a row as PostgreSQL's output function has it; false for NULL, which has none.
    ///
    /// # Errors
    /// When the value is damaged.
    pub fn text(
        &mut self,
        batch: &RecordBatch,
        (row, column): (usize, usize),
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let array = batch.column(column);
        if array.is_null(row) {
            return Ok(false);
        }
        self.printers[column].print(array, row, out)?;
        Ok(true)
    }
}
