//! Rows of a batch as texts, value by value, for the formats to lay out.
//!
//! Invariant: NULL is told from every text.

use std::sync::Arc;

use arrow::array::Array as _;
use arrow::record_batch::RecordBatch;

use crate::catalog::Catalog;
use crate::error::Result;
use crate::functions::text_form::Printer;
use crate::session::AnswerColumn;

/// The texts of a row; `None` for NULL.
pub(super) type Texts<'t> = &'t [Option<String>];

/// Prints rows.
pub(super) struct RowPrinter {
    printers: Vec<Printer>,
    texts: Vec<Option<String>>,
}

impl RowPrinter {
    pub(super) fn new(catalog: &Arc<Catalog>, columns: &[AnswerColumn]) -> Result<Self> {
        let printer = |column: &AnswerColumn| Printer::new(catalog, column.ty);
        let printers = columns.iter().map(printer).collect::<Result<_>>()?;
        Ok(Self { printers, texts: Vec::new() })
    }

    pub(super) fn for_each(
        &mut self,
        batch: &RecordBatch,
        mut visit: impl FnMut(Texts<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut bytes = Vec::new();
        for row in 0..batch.num_rows() {
            self.texts.clear();
            for (printer, array) in self.printers.iter_mut().zip(batch.columns()) {
                if array.is_null(row) {
                    self.texts.push(None);
                    continue;
                }
                bytes.clear();
                printer.print(array, row, &mut bytes)?;
                self.texts.push(Some(String::from_utf8_lossy(&bytes).into_owned()));
            }
            visit(&self.texts)?;
        }
        Ok(())
    }
}
