//! A whole table of texts: the answer to a statement, or a list of the shell's.
//!
//! Invariant: each row has as many texts as there are names.

use std::io::Write;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;

use super::rows::{RowPrinter, Texts};
use super::separated::{Separated, is_number};
use super::{Expanded, OutputFormat, OutputStyle, aligned, expanded};
use crate::catalog::Catalog;
use crate::error::Result;
use crate::session::{AnswerColumn, AnswerSink};
use crate::types::PgType;
use pagemill_types::builtin::oid;

/// A table of texts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    /// What stands above it.
    pub(crate) title: Option<String>,
    /// The names of the columns.
    pub(crate) names: Vec<String>,
    /// Which columns are aligned to the right.
    pub(crate) to_right: Vec<bool>,
    /// The rows; `None` for NULL.
    pub(crate) rows: Vec<Vec<Option<String>>>,
    /// What stands below it; without any, how many rows there are.
    pub(crate) footers: Option<Vec<String>>,
}

impl Table {
    /// One for rows of these columns.
    pub(super) fn of(columns: &[AnswerColumn]) -> Self {
        Self {
            names: columns.iter().map(|column| column.name.clone()).collect(),
            to_right: columns.iter().map(is_number).collect(),
            ..Self::default()
        }
    }

    /// A list with these columns, all of texts.
    pub(crate) fn list(title: &str, names: &[&str]) -> Self {
        Self {
            title: Some(title.to_owned()),
            names: names.iter().map(|&name| name.to_owned()).collect(),
            to_right: vec![false; names.len()],
            ..Self::default()
        }
    }

    pub(super) fn push(&mut self, texts: Texts<'_>) {
        self.rows.push(texts.to_vec());
    }

    /// Writes it in the style.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write(&self, style: &OutputStyle, out: &mut impl Write) -> Result<()> {
        match style.format {
            OutputFormat::Unaligned => self.write_unaligned(style, out),
            _ if style.streams() => self.write_separated(style, out),
            _ => self.write_laid_out(style, out),
        }
    }

    fn write_laid_out(&self, style: &OutputStyle, out: &mut impl Write) -> Result<()> {
        let table = aligned::Layout::new(self, style);
        let is_wide = || {
            let columns = style.terminal_columns.unwrap_or(0);
            columns > 0 && self.names.len() > 1 && columns < table.total_width()
        };
        match style.expanded {
            Expanded::On => expanded::write(self, style, out),
            Expanded::Auto if is_wide() => expanded::write(self, style, out),
            _ => table.write(out),
        }
    }

    fn write_separated(&self, style: &OutputStyle, out: &mut impl Write) -> Result<()> {
        let Some(separated) = Separated::of(style) else { return Ok(()) };
        let column = |name: &String| AnswerColumn::computed(name.clone(), PgType::new(oid::TEXT));
        let columns: Vec<AnswerColumn> = self.names.iter().map(column).collect();
        separated.header(&columns, out)?;
        self.rows.iter().try_for_each(|row| separated.row(&columns, row, out))?;
        Ok(out.flush()?)
    }

    /// What stands below, where anything does.
    pub(super) fn footers_or_count(&self) -> Vec<String> {
        self.footers.clone().unwrap_or_else(|| {
            let plural = if self.rows.len() == 1 { "row" } else { "rows" };
            vec![format!("({} {plural})", self.rows.len())]
        })
    }

    /// Source: `print_unaligned_text` and `print_unaligned_vertical` in `src/fe_utils/print.c`, PostgreSQL 15, for the
    /// appearance.
    fn write_unaligned(&self, style: &OutputStyle, out: &mut impl Write) -> Result<()> {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| style.null.clone());
        let line = |row: &Vec<Option<String>>| {
            row.iter().map(text).collect::<Vec<_>>().join(&style.field_separator)
        };
        let is_expanded = style.expanded == Expanded::On;
        let title = self.title.as_ref().filter(|_| !style.tuples_only);
        let mut lines: Vec<String> = title.cloned().into_iter().collect();
        if is_expanded {
            for (number, row) in self.rows.iter().enumerate() {
                if number > 0 {
                    lines.push(String::new());
                }
                let names = self.names.iter().zip(row);
                lines.extend(names.map(|(name, value)| {
                    format!("{name}{}{}", style.field_separator, text(value))
                }));
            }
        } else {
            if !style.tuples_only {
                lines.push(self.names.join(&style.field_separator));
            }
            lines.extend(self.rows.iter().map(line));
        }
        if !style.tuples_only {
            match (is_expanded, &self.footers) {
                (true, None) => {}
                (true, Some(footers)) => {
                    lines.push(String::new());
                    lines.extend(footers.iter().cloned());
                }
                (false, _) => lines.extend(self.footers_or_count()),
            }
        }
        for line in lines {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}

/// Keeps an answer as a table.
#[derive(Default)]
pub(crate) struct TableSink {
    pub(crate) table: Table,
    printer: Option<RowPrinter>,
}

impl AnswerSink for TableSink {
    fn begin(&mut self, catalog: &Arc<Catalog>, columns: &[AnswerColumn]) -> Result<()> {
        self.printer = Some(RowPrinter::new(catalog, columns)?);
        self.table = Table::of(columns);
        Ok(())
    }

    fn take(&mut self, batch: &RecordBatch) -> Result<()> {
        let Self { printer, table } = self;
        let printer = printer.as_mut().expect("an answer begins before its rows"); // infallible: by the trait
        printer.for_each(batch, |row| {
            table.push(row);
            Ok(())
        })
    }

    fn end(&mut self, _: u64) -> Result<()> {
        Ok(())
    }
}
