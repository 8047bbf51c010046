//! A statement that runs, apart from the threads that speak with clients: its rows come as messages that are encoded already.
//!
//! ```text
//!   compute threads: rows ── encoded ──► chunks of whole messages ── channel of few ──► the connection, at its client's pace
//! ```
//!
//! Invariant: who drops a [`Running`] ends its statement, whatever that is doing.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use futures::FutureExt as _;
use pagemill_engine::Progress;
use pagemill_sql::output::{CopyForm, CopyPrinter, ValuePrinter};
use pagemill_sql::parameters::ParameterValue;
use pagemill_sql::rows::Rows;
use pagemill_sql::session::{Answer, AnswerColumn, Prepared, Session};
use pagemill_sql::statement_texts::StatementText;
use pagemill_sql::{SqlState, StatementError};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::AbortHandle;

use crate::protocol::ResponseBuffer;
use crate::served_cluster::{check_unchanged, check_unchanged_lately};

/// Bytes of rows that are handed over at once.
const CHUNK_BYTES: usize = 64 << 10;
/// Chunks that wait for a slow client.
const WAITING: usize = 4;

type Result<T, E = StatementError> = std::result::Result<T, E>;

/// What a statement tells while it runs.
pub enum Event {
    /// Its columns, once it is known to begin.
    Columns(Arc<[AnswerColumn]>),
    /// Some rows.
    Rows(Chunk),
    /// Its end.
    End(Result<Answer>),
    /// All of it at once, where it is little.
    Whole(Whole),
}

/// An answer that is there as a whole.
pub struct Whole {
    /// Its columns.
    pub columns: Arc<[AnswerColumn]>,
    /// Its rows.
    pub rows: Chunk,
    /// What it came to.
    pub answer: Answer,
}

/// Rows as messages.
#[derive(Debug, Default)]
pub struct Chunk {
    /// The messages.
    pub bytes: Vec<u8>,
    /// Where each of them ends.
    pub ends: Vec<usize>,
}

impl Chunk {
    /// The messages of some rows.
    pub fn rows(&self, rows: std::ops::Range<usize>) -> &[u8] {
        let end = |row: usize| if row == 0 { 0 } else { self.ends[row - 1] };
        &self.bytes[end(rows.start)..end(rows.end)]
    }

    /// Adds some rows of another.
    pub fn take_rows(&mut self, other: &Self, rows: std::ops::Range<usize>) {
        let first = if rows.start == 0 { 0 } else { other.ends[rows.start - 1] };
        let shift = self.bytes.len();
        self.bytes.extend_from_slice(other.rows(rows.clone()));
        self.ends.extend(other.ends[rows].iter().map(|end| end - first + shift));
    }

    /// Adds a `CopyData` that is no row, where there is something in it.
    fn copy_data(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut out = ResponseBuffer::from_bytes(std::mem::take(&mut self.bytes));
        out.message(b'd', |out| out.extend(bytes));
        self.bytes = out.take();
    }
}

/// What runs, and how its rows are written.
#[derive(Debug, Clone)]
pub struct Work {
    /// The statement.
    pub statement: Arc<StatementText>,
    /// What is known of one that was prepared.
    pub prepared: Option<Prepared>,
    /// Values for the parameters of such a one.
    pub values: Vec<ParameterValue>,
    /// How rows are written.
    pub form: RowForm,
}

/// How rows are written.
#[derive(Debug, Clone)]
pub enum RowForm {
    /// As `DataRow`.
    Data(Formats),
    /// As `CopyData`.
    Copy(CopyForm),
}

/// Writes them.
enum RowPrinter {
    Data(ValuePrinter),
    Copy {
        printer: Box<CopyPrinter>,
        /// What goes before the next row, in its message.
        before: Vec<u8>,
    },
}

impl RowPrinter {
    fn new(form: &RowForm, session: &Session, rows: &Rows) -> pagemill_sql::Result<Self> {
        let (catalog, columns) = (session.catalog(), rows.columns());
        Ok(match form {
            RowForm::Data(formats) => {
                Self::Data(ValuePrinter::new(catalog, columns, |at| formats.is_binary(at))?)
            }
            RowForm::Copy(form) => {
                let printer = Box::new(CopyPrinter::new(catalog, columns, form.clone())?);
                Self::Copy { printer, before: Vec::new() }
            }
        })
    }

    /// What stands before the rows.
    fn header(&mut self, columns: &[AnswerColumn]) -> Chunk {
        let mut header = Vec::new();
        if let Self::Copy { printer, before } = self {
            printer.header(columns, &mut header);
            if printer.header_is_part_of_row() {
                *before = std::mem::take(&mut header);
            }
        }
        let mut chunk = Chunk { bytes: Vec::new(), ends: Vec::new() };
        chunk.copy_data(&header);
        chunk
    }

    /// What stands behind them.
    fn trailer(&mut self, chunk: &mut Chunk) {
        let mut trailer = Vec::new();
        if let Self::Copy { printer, before } = self {
            trailer = std::mem::take(before);
            printer.trailer(&mut trailer);
        }
        chunk.copy_data(&trailer);
    }

    fn row(
        &mut self,
        batch: &RecordBatch,
        row: usize,
        out: &mut ResponseBuffer,
    ) -> pagemill_sql::Result<()> {
        match self {
            Self::Data(printer) => out.row(batch.num_columns(), |column, value| {
                printer.print(batch, (row, column), value)
            }),
            Self::Copy { printer, before } => out.try_message(b'd', |out| {
                out.append(before);
                printer.row(batch, row, out)
            }),
        }
    }
}

/// Which of several are in binary form: none for no value, one for all, or one for each.
#[derive(Debug, Clone, Default)]
pub struct Formats(pub Vec<bool>);

impl Formats {
    /// Whether the one of this number is.
    pub fn is_binary(&self, number: usize) -> bool {
        match &self.0[..] {
            [all] => *all,
            each => each.get(number).copied().unwrap_or(false),
        }
    }

    /// Whether so many values have the same forms by another.
    pub fn are_as(&self, other: &Self, values: usize) -> bool {
        (0..values).all(|number| self.is_binary(number) == other.is_binary(number))
    }

    /// Whether they are for so many.
    pub fn fit(&self, count: usize) -> bool {
        self.0.len() <= 1 || self.0.len() == count
    }
}

/// A statement that runs.
#[derive(Debug)]
pub struct Running {
    events: Receiver<Event>,
    cancel: Progress,
    task: AbortHandle,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancel.cancel();
        self.task.abort();
    }
}

impl Running {
    /// Begins a statement.
    pub fn start(compute: &Handle, session: Arc<Session>, work: Work) -> Self {
        let cancel = Progress::default();
        let (sender, events) = channel(WAITING);
        let seen = cancel.clone();
        let task = compute.spawn(async move {
            let run = async {
                check_unchanged_lately(&session)?;
                let end = produce(&session, &work, &seen, &sender).await;
                // An answer, or what went wrong, may be of files that are not those that were opened.
                check_unchanged(&session)?;
                end
            };
            let end = std::panic::AssertUnwindSafe(run).catch_unwind().await;
            let end = end.unwrap_or_else(|_| {
                let message = "a statement ended in a defect of pagemill, please report it";
                Err(StatementError::new(SqlState("XX000"), message))
            });
            // A client that left is told nothing.
            let _ = sender.send(end.unwrap_or_else(|error| Event::End(Err(error)))).await;
        });
        Self { events, cancel, task: task.abort_handle() }
    }

    /// What ends it from elsewhere.
    pub fn cancel(&self) -> &Progress {
        &self.cancel
    }

    /// What it tells next. Nothing follows [`Event::End`] and [`Event::Whole`].
    pub async fn next(&mut self) -> Event {
        let event = self.events.recv().await;
        event.expect("a statement tells its end before it goes") // infallible: by `start`; asked once too often else
    }
}

/// Computes the rows and hands them over, but for what it gives: the last that is to be told.
async fn produce(
    session: &Session,
    work: &Work,
    cancel: &Progress,
    to: &Sender<Event>,
) -> Result<Event> {
    let told = |error: pagemill_sql::Error| error.report();
    let Work { statement, prepared, values, .. } = work;
    let rows = match prepared {
        Some(prepared) => session.execute((statement, prepared), values, cancel).await,
        None => session.start_text(statement, cancel).await,
    };
    let mut rows = rows.map_err(told)?;
    let mut printer = RowPrinter::new(&work.form, session, &rows).map_err(told)?;
    let gone = || StatementError::new(SqlState::QUERY_CANCELED, "the client is gone");
    let mut chunk = printer.header(rows.columns());
    if rows.are_few() {
        let columns = rows.columns().clone();
        while let Some(batch) = next(&mut rows).await? {
            print(&mut chunk, &batch, &mut printer).map_err(told)?;
        }
        printer.trailer(&mut chunk);
        return Ok(Event::Whole(Whole { columns, rows: chunk, answer: rows.finish().await }));
    }
    to.send(Event::Columns(rows.columns().clone())).await.map_err(|_| gone())?;
    while let Some(batch) = next(&mut rows).await? {
        let mut row = 0;
        while row < batch.num_rows() {
            row = fill(&mut chunk, (&batch, row), CHUNK_BYTES, &mut printer).map_err(told)?;
            if chunk.bytes.len() >= CHUNK_BYTES {
                let full = std::mem::take(&mut chunk);
                to.send(Event::Rows(full)).await.map_err(|_| gone())?;
            }
        }
    }
    printer.trailer(&mut chunk);
    if !chunk.bytes.is_empty() {
        to.send(Event::Rows(chunk)).await.map_err(|_| gone())?;
    }
    Ok(Event::End(Ok(rows.finish().await)))
}

/// Writes all rows of a batch.
fn print(
    chunk: &mut Chunk,
    batch: &RecordBatch,
    printer: &mut RowPrinter,
) -> pagemill_sql::Result<()> {
    fill(chunk, (batch, 0), usize::MAX, printer).map(drop)
}

async fn next(rows: &mut Rows) -> Result<Option<RecordBatch>> {
    rows.next().await.map_err(|error| error.report())
}

/// Writes rows until the chunk has so many bytes; the first row that is not in it.
fn fill(
    chunk: &mut Chunk,
    (batch, mut row): (&RecordBatch, usize),
    most: usize,
    printer: &mut RowPrinter,
) -> pagemill_sql::Result<usize> {
    let mut out = ResponseBuffer::from_bytes(std::mem::take(&mut chunk.bytes));
    while row < batch.num_rows() && out.len() < most {
        printer.row(batch, row, &mut out)?;
        chunk.ends.push(out.len());
        row += 1;
    }
    chunk.bytes = out.take();
    Ok(row)
}
