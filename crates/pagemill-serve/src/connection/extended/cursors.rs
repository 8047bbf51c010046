//! Cursors, which are portals that are made, run and closed in words.
//!
//! One with SCROLL keeps the rows that came, and moves among them: a query that ran again might have its rows in another order. Any
//! other gives each row once, and forgets it.
//!
//! Invariants: none outlives the transaction that made it but one that is held, once that is committed; a row has one number as
//! long as its cursor lives.
//!
//! Source: `DoPortalRunFetch` in `src/backend/tcop/pquery.c`, `PerformCursorOpen` in `src/backend/commands/portalcmds.c`,
//! PostgreSQL 14 to 18.

use std::ops::Range;
use std::sync::Arc;

use pagemill_sql::parameters::ParameterValue;
use pagemill_sql::statement_texts::StatementText;
use pagemill_sql::{SqlState, StatementError};

use super::execution::Sending;
use super::{Bound, State, Statement, Told};
use crate::activity::shown;
use crate::command::{Command, CursorOptions, Direction, Fetch, Scroll};
use crate::connection::Connection;
use crate::error::Result;
use crate::protocol::TransactionStatus;
use crate::running::{Chunk, Formats};

/// As many bytes of rows are kept for all cursors of a session that may go back.
const MOST_KEPT: usize = 64 << 20;

/// What a cursor has beside its query.
pub(super) struct Cursor {
    options: CursorOptions,
    /// True once the transaction that made it is committed.
    is_committed: bool,
    /// The row that it stands on, from 1; 0 before the first.
    at: u64,
    /// True behind the last row.
    is_behind: bool,
    /// The rows that came, where it may go back.
    kept: Chunk,
    /// True once no more rows come.
    is_whole: bool,
    /// Bytes that may be kept: what the session's others leave.
    room: usize,
}

impl Cursor {
    fn new(options: CursorOptions) -> Self {
        Self {
            options,
            is_committed: false,
            at: 0,
            is_behind: false,
            kept: Chunk::default(),
            is_whole: false,
            room: MOST_KEPT,
        }
    }

    /// Whether it is there after a transaction has ended.
    pub(super) fn outlives(&mut self, is_commit: bool) -> bool {
        self.is_committed |= is_commit;
        self.options.is_held && self.is_committed
    }

    /// Keeps rows that came.
    pub(super) fn keep(&mut self, chunk: &Chunk, rows: Range<usize>) -> Told<()> {
        self.kept.take_rows(chunk, rows);
        if self.kept_bytes() <= self.room {
            return Ok(());
        }
        let message = format!("cursors with SCROLL over more than {} MB", MOST_KEPT >> 20);
        let hint = "Close others, or declare it without SCROLL.";
        Err(StatementError::unsupported(message).with_hint(hint))
    }

    /// Bytes of the rows that are kept, and of their places.
    fn kept_bytes(&self) -> usize {
        self.kept.bytes.len() + size_of_val(&*self.kept.ends)
    }

    /// How many rows came.
    fn known(&self) -> u64 {
        self.kept.ends.len() as u64
    }

    /// Stands on a row, or behind the last or before the first where there is none of the number. True where there is one.
    fn stand_on(&mut self, row: i64) -> bool {
        let row = u64::try_from(row).unwrap_or(0); // default: before the first row
        self.is_behind = row > self.known();
        self.at = row.min(self.known());
        !self.is_behind && row > 0
    }

    /// The number of the row that it stands on; behind the last that of one more.
    fn place(&self) -> i64 {
        (self.at + u64::from(self.is_behind)).cast_signed()
    }
}

/// The rows that a cursor gives, the first of them first.
enum Given {
    Rows(Range<u64>),
    Backward(Range<u64>),
}

impl Connection {
    /// A cursor, which is a portal that was made in words.
    pub(super) fn cursor(&self, name: &str) -> Told<&Bound> {
        self.extended.portals.get(name).ok_or_else(|| unknown_cursor(name))
    }

    /// `DECLARE`.
    pub(in crate::connection) async fn declare(
        &mut self,
        name: String,
        query: Arc<StatementText>,
        options: CursorOptions,
        values: &[ParameterValue],
    ) -> Result<Told<()>> {
        if self.status == TransactionStatus::Idle && !options.is_held {
            let message = "DECLARE CURSOR can only be used in transaction blocks";
            return Ok(Err(StatementError::new(SqlState("25P01"), message)));
        }
        if self.extended.portals.contains_key(&name) {
            let message = format!("cursor \"{name}\" already exists");
            return Ok(Err(StatementError::new(SqlState("42P03"), message)));
        }
        let text = shown(&query.to_string());
        let command = Command::Query(query);
        let types = values.iter().map(|value| value.type_oid).collect();
        let prepared = match self.prepared(Some(&command), types).await? {
            Ok(prepared) => prepared,
            Err(error) => return Ok(Err(error)),
        };
        if prepared.types.len() > values.len() {
            let message = format!("there is no parameter ${}", values.len() + 1);
            return Ok(Err(StatementError::new(SqlState("42P02"), message)));
        }
        let statement = Arc::new(Statement { command: Some(command), prepared, text });
        let (values, formats) = (values.to_vec(), Formats::default());
        let cursor = Some(Cursor::new(options));
        let bound = Bound { statement, values, formats, state: State::Ready, cursor };
        self.extended.portals.insert(name, bound);
        self.out.complete("DECLARE CURSOR");
        Ok(Ok(()))
    }

    /// `FETCH` and `MOVE`, whose columns were told already, with values in these forms.
    pub(in crate::connection) async fn fetch(
        &mut self,
        fetch: &Fetch,
        formats: Formats,
    ) -> Result<Told<()>> {
        let Some(mut bound) = self.extended.portals.remove(&fetch.name) else {
            return Ok(Err(unknown_cursor(&fetch.name)));
        };
        let columns = bound.statement.prepared.columns.len();
        if let State::Ready = bound.state {
            bound.formats = formats;
        } else if !fetch.is_move && !bound.formats.are_as(&formats, columns) {
            return Ok(Err(StatementError::unsupported("rows of one cursor in several forms")));
        }
        let others = self.extended.portals.values().filter_map(|other| other.cursor.as_ref());
        let taken: usize = others.map(Cursor::kept_bytes).sum();
        // A portal that no DECLARE made goes forward.
        let scroll = bound.cursor.as_mut().map_or(Scroll::Unsaid, |cursor| {
            cursor.room = MOST_KEPT.saturating_sub(taken);
            cursor.options.scroll
        });
        let fetched = match scroll {
            Scroll::Any => self.fetch_anywhere(&mut bound, fetch).await?,
            scroll => self.fetch_forward(&mut bound, fetch, scroll).await?,
        };
        Ok(fetched.map(|rows| {
            let word = if fetch.is_move { "MOVE" } else { "FETCH" };
            self.out.complete(&format!("{word} {rows}"));
            self.extended.portals.insert(fetch.name.clone(), bound);
        }))
    }

    /// More rows of a cursor's query.
    async fn more(
        &mut self,
        bound: &mut Bound,
        most: usize,
        sending: Sending,
    ) -> Result<Told<usize>> {
        let Some(Command::Query(statement)) = bound.statement.command.clone() else {
            return Ok(Err(StatementError::unsupported("FETCH from what is no query")));
        };
        let executed = bound.executed(statement);
        Ok(self.rows(bound, executed, most, sending).await?.map(|sent| sent.rows))
    }

    /// The next rows of a cursor that keeps none.
    async fn fetch_forward(
        &mut self,
        bound: &mut Bound,
        fetch: &Fetch,
        scroll: Scroll,
    ) -> Result<Told<u64>> {
        let most = match fetch.direction {
            Direction::Forward(None) => usize::MAX,
            Direction::Forward(Some(count)) if count > 0 => count as usize,
            Direction::Relative(1) => 1,
            _ if scroll == Scroll::Forward => return Ok(Err(only_forward())),
            _ => {
                let error = StatementError::unsupported("a cursor without SCROLL that goes back");
                return Ok(Err(error.with_hint(SCROLL_HINT)));
            }
        };
        let sending = if fetch.is_move { Sending::LeftOut } else { Sending::Sent };
        Ok(self.more(bound, most, sending).await?.map(|rows| rows as u64))
    }

    /// Rows of a cursor that keeps them.
    async fn fetch_anywhere(&mut self, bound: &mut Bound, fetch: &Fetch) -> Result<Told<u64>> {
        let wanted = match &bound.cursor {
            Some(cursor) => rows_wanted(cursor, fetch.direction),
            None => unreachable!("a cursor is moved"),
        };
        if let Err(error) = self.keep_until(bound, wanted).await? {
            return Ok(Err(error));
        }
        let Some(cursor) = &mut bound.cursor else { unreachable!("a cursor is moved") };
        let given = moved(cursor, fetch.direction);
        let (Given::Rows(rows) | Given::Backward(rows)) = &given;
        let count = rows.end - rows.start;
        if !fetch.is_move {
            self.send_kept(&cursor.kept, given).await?;
        }
        Ok(Ok(count))
    }

    /// Keeps rows until there are so many, or no more.
    async fn keep_until(&mut self, bound: &mut Bound, wanted: u64) -> Result<Told<()>> {
        let missing = match &bound.cursor {
            Some(cursor) if !cursor.is_whole => wanted.saturating_sub(cursor.known()),
            _ => 0,
        };
        if missing == 0 {
            return Ok(Ok(()));
        }
        let missing = usize::try_from(missing).unwrap_or(usize::MAX); // default: all that there are
        Ok(self.more(bound, missing, Sending::Kept).await?.map(|came| {
            if let Some(cursor) = &mut bound.cursor {
                cursor.is_whole = came < missing;
            }
        }))
    }

    async fn send_kept(&mut self, kept: &Chunk, given: Given) -> Result<()> {
        let place = |row: u64| row as usize;
        match given {
            Given::Rows(rows) => self.append_rows(kept, place(rows.start)..place(rows.end)),
            Given::Backward(rows) => {
                for row in rows.rev() {
                    self.append_rows(kept, place(row)..place(row) + 1);
                }
            }
        }
        self.flush_much().await
    }

    /// `FETCH` in a text: its columns come first.
    pub(in crate::connection) async fn fetch_described(
        &mut self,
        fetch: &Fetch,
    ) -> Result<Told<()>> {
        let (columns, options) = match self.cursor(&fetch.name) {
            Ok(bound) => {
                let options = bound.cursor.as_ref().map(|cursor| cursor.options);
                (bound.statement.prepared.columns.clone(), options)
            }
            Err(error) => return Ok(Err(error)),
        };
        let is_binary = options.is_some_and(|options| options.is_binary);
        let formats = if is_binary { Formats(vec![true]) } else { Formats::default() };
        if !fetch.is_move {
            self.describe(&columns, &formats);
        }
        self.fetch(fetch, formats).await
    }

    /// `CLOSE`.
    pub(in crate::connection) fn close_cursor(&mut self, name: Option<&str>) -> Told<&'static str> {
        match name {
            None => {
                self.extended.close_portals();
                Ok("CLOSE CURSOR ALL")
            }
            Some(name) => match self.extended.portals.remove(name) {
                Some(_) => Ok("CLOSE CURSOR"),
                None => Err(unknown_cursor(name)),
            },
        }
    }
}

/// How many rows have to be known for a move.
fn rows_wanted(cursor: &Cursor, direction: Direction) -> u64 {
    let number = |row: i64| u64::try_from(row).unwrap_or(0); // default: none before the first row
    match direction {
        Direction::Forward(None) => u64::MAX,
        Direction::Forward(Some(count)) => cursor.at.saturating_add(count),
        Direction::Backward(_) => 0,
        Direction::Absolute(row) if row < 0 => u64::MAX,
        Direction::Absolute(row) => number(row),
        Direction::Relative(rows) => number(cursor.place().saturating_add(rows)),
    }
}

/// Moves a cursor whose rows are known as far as it takes.
fn moved(cursor: &mut Cursor, direction: Direction) -> Given {
    let (place, known) = (cursor.place(), cursor.known());
    let one = |cursor: &mut Cursor, row: i64| {
        let is_there = cursor.stand_on(row);
        Given::Rows(if is_there { cursor.at - 1..cursor.at } else { 0..0 })
    };
    match direction {
        // The row that it stands on again, where it stands on one.
        Direction::Forward(Some(0)) | Direction::Backward(Some(0)) | Direction::Relative(0) => {
            let is_on_row = cursor.at > 0 && !cursor.is_behind;
            Given::Rows(if is_on_row { cursor.at - 1..cursor.at } else { 0..0 })
        }
        Direction::Forward(most) => {
            let from = cursor.at;
            let end = most.map_or(u64::MAX, |most| from.saturating_add(most));
            cursor.is_behind |= end > known;
            cursor.at = end.min(known);
            Given::Rows(from..cursor.at)
        }
        Direction::Backward(most) => {
            let before = (place - 1).max(0).cast_unsigned();
            let count = most.map_or(before, |most| most.min(before));
            let has_ended = most.is_none_or(|most| most > before);
            let first = before - count;
            cursor.is_behind = false;
            cursor.at = if has_ended { 0 } else { first + 1 };
            Given::Backward(first..before)
        }
        Direction::Absolute(row) if row < 0 => {
            one(cursor, known.cast_signed().saturating_add(1).saturating_add(row))
        }
        Direction::Absolute(row) => one(cursor, row),
        Direction::Relative(rows) => one(cursor, place.saturating_add(rows)),
    }
}

const SCROLL_HINT: &str = "Declare it with SCROLL option to enable backward scan.";

fn only_forward() -> StatementError {
    let message = "cursor can only scan forward";
    StatementError::new(SqlState("55000"), message).with_hint(SCROLL_HINT)
}

fn unknown_cursor(name: &str) -> StatementError {
    StatementError::new(SqlState("34000"), format!("cursor \"{name}\" does not exist"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cursor over five rows of a byte each.
    fn five() -> Cursor {
        let mut cursor = Cursor::new(CursorOptions::default());
        let rows = Chunk { bytes: vec![1, 2, 3, 4, 5], ends: vec![1, 2, 3, 4, 5] };
        cursor.keep(&rows, 0..5).unwrap();
        cursor.room = 44;
        assert!(cursor.keep(&rows, 0..0).is_err());
        cursor.room = 45;
        cursor.keep(&rows, 0..0).unwrap();
        cursor.is_whole = true;
        cursor
    }

    fn given(cursor: &mut Cursor, direction: Direction) -> Vec<u64> {
        match moved(cursor, direction) {
            Given::Rows(rows) => rows.map(|row| row + 1).collect(),
            Given::Backward(rows) => rows.rev().map(|row| row + 1).collect(),
        }
    }

    #[test]
    fn a_cursor_moves_as_the_server_moves_it() {
        use Direction::{Absolute, Backward, Forward, Relative};
        let mut cursor = five();
        let mut next = |direction| given(&mut cursor, direction);
        assert_eq!(next(Backward(Some(1))), [] as [u64; 0]);
        assert_eq!(next(Forward(Some(2))), [1, 2]);
        assert_eq!(next(Forward(Some(0))), [2]);
        assert_eq!(next(Backward(Some(1))), [1]);
        assert_eq!(next(Relative(2)), [3]);
        assert_eq!(next(Forward(None)), [4, 5]);
        assert_eq!(next(Relative(0)), [] as [u64; 0]);
        assert_eq!(next(Backward(Some(2))), [5, 4]);
        assert_eq!(next(Absolute(-2)), [4]);
        assert_eq!(next(Absolute(9)), [] as [u64; 0]);
        assert_eq!(next(Backward(Some(1))), [5]);
        assert_eq!(next(Forward(Some(1))), [] as [u64; 0]);
        assert_eq!(next(Backward(None)), [5, 4, 3, 2, 1]);
        assert_eq!(next(Forward(Some(1))), [1]);
        assert_eq!(next(Absolute(0)), [] as [u64; 0]);
        assert_eq!(next(Relative(1)), [1]);
        assert_eq!(next(Forward(Some(4))), [2, 3, 4, 5]);
        assert_eq!(next(Relative(0)), [5]);
        assert_eq!(next(Relative(-9)), [] as [u64; 0]);
        assert_eq!(next(Absolute(-9)), [] as [u64; 0]);
        assert_eq!(next(Forward(Some(1))), [1]);
    }

    #[test]
    fn a_held_cursor_outlives_the_transaction_that_commits_it() {
        let mut cursor = Cursor::new(CursorOptions { is_held: true, ..CursorOptions::default() });
        assert!(cursor.outlives(true) && cursor.outlives(false));
        let mut cursor = Cursor::new(CursorOptions { is_held: true, ..CursorOptions::default() });
        assert!(!cursor.outlives(false));
        assert!(!five().outlives(true));
    }
}
