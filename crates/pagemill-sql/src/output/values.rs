//! Single values of a batch as texts or in the protocol's binary form, for whoever lays out rows itself.
//!
//! Invariant: a text is that of PostgreSQL's output function.

use std::sync::Arc;

use arrow::array::Array as _;
use arrow::record_batch::RecordBatch;

use crate::binary_form::{self, BinaryForm};
use crate::catalog::Catalog;
use crate::error::Result;
use crate::functions::text_form::Printer;
use crate::session::AnswerColumn;

/// Prints the values of an answer's batches.
pub struct ValuePrinter {
    printers: Vec<Printer>,
    /// Of the columns that are wanted in binary form.
    forms: Vec<Option<BinaryForm>>,
}

impl ValuePrinter {
    /// For these columns, each of which is wanted in binary form or not.
    ///
    /// # Errors
    /// When the form of a type is not known here.
    pub fn new(
        catalog: &Arc<Catalog>,
        columns: &[AnswerColumn],
        is_binary: impl Fn(usize) -> bool,
    ) -> Result<Self> {
        let printer = |column: &AnswerColumn| Printer::new(catalog, column.ty);
        let form = |(at, column): (usize, &AnswerColumn)| {
            is_binary(at).then(|| BinaryForm::of(catalog, column.ty)).transpose()
        };
        Ok(Self {
            printers: columns.iter().map(printer).collect::<Result<_>>()?,
            forms: columns.iter().enumerate().map(form).collect::<Result<_>>()?,
        })
    }

    /// Appends a column in a row as PostgreSQL's output function has it, or its send function; false for NULL.
    ///
    /// # Errors
    /// When the value is damaged.
    pub fn print(
        &mut self,
        batch: &RecordBatch,
        (row, column): (usize, usize),
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let array = batch.column(column);
        if array.is_null(row) {
            return Ok(false);
        }
        let printer = &mut self.printers[column];
        match &self.forms[column] {
            Some(form) => binary_form::print((printer, form), array, row, out)?,
            None => printer.print(array, row, out)?,
        }
        Ok(true)
    }
}
