//! What a statement gives: columns, counts, and where rows go.
//!
//! Invariant: a sink is told the columns before the first row, and the end after the last.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;

use crate::bind::{Bound, BoundColumn};
use crate::catalog::Catalog;
use crate::error::Result;
use crate::typed::ColumnOrigin;
use crate::types::PgType;

/// A column of an answer.
#[derive(Debug, Clone)]
pub struct AnswerColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: PgType,
    /// Where it comes from, if it is a column of a relation as it stands.
    pub origin: Option<ColumnOrigin>,
}

impl AnswerColumn {
    /// One that is no column of a relation.
    pub fn computed(name: impl Into<String>, ty: PgType) -> Self {
        Self { name: name.into(), ty, origin: None }
    }
}

/// What a statement gave.
pub struct Answer {
    /// The columns.
    pub columns: Arc<[AnswerColumn]>,
    /// How many rows were handed out.
    pub rows: u64,
    /// How many pages of tables were scanned.
    pub pages: u64,
    /// Damage that was left out, each with its place.
    pub losses: Vec<String>,
    /// What there is to say of how it ran.
    pub notices: Vec<String>,
}

/// Where an answer goes.
pub trait AnswerSink: Send {
    /// The columns, before the first row.
    ///
    /// # Errors
    /// When they cannot be written.
    fn begin(&mut self, catalog: &Arc<Catalog>, columns: &[AnswerColumn]) -> Result<()>;

    /// Some rows.
    ///
    /// # Errors
    /// When they cannot be written.
    fn take(&mut self, batch: &RecordBatch) -> Result<()>;

    /// The end, after so many rows.
    ///
    /// # Errors
    /// When it cannot be written.
    fn end(&mut self, rows: u64) -> Result<()>;
}

pub(super) fn columns(bound: Bound) -> Vec<AnswerColumn> {
    let columns = bound.columns.into_iter();
    let column =
        |BoundColumn { name, typed }| AnswerColumn { name, ty: typed.ty, origin: typed.origin };
    columns.map(column).collect()
}
