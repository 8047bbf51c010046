//! What is wrong with an input, where, in COPY's words.
//!
//! The messages are those of `src/backend/commands/copyfromparse.c`, the places those of
//! `CopyFromErrorCallback` in `copyfrom.c` (PostgreSQL 14 to 18): the line is the last one read of
//! the row, and lines in quoted values count.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a value or row that a message shows at most.
pub(super) const MOST_BYTES_SHOWN: usize = 100;

/// The message for a row with too many values.
pub(super) const EXTRA_DATA: &str = "extra data after last expected column";

/// A row that cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyError {
    /// The name of the input.
    pub input: Arc<str>,
    /// The table's name, as messages have it.
    pub relation: Arc<str>,
    /// The line, from 1.
    pub line: u64,
    /// What of that line.
    pub place: ErrorContext,
    /// PostgreSQL's message.
    pub message: String,
    /// PostgreSQL's detail: the row that violates a constraint.
    pub detail: Option<String>,
    /// PostgreSQL's hint.
    pub hint: Option<&'static str>,
}

/// Which part of a line an error is about. Texts are in UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorContext {
    /// The line, which was not read to its end.
    Line,
    /// The row of this text, shortened if it is long.
    Row(String),
    /// A value that its column does not take: what ON_ERROR passes over.
    Value {
        /// The column's name.
        column: String,
        /// The value; nothing for null.
        value: Option<String>,
        /// The same, shortened if it is long.
        shown: Option<String>,
    },
}

impl CopyError {
    /// True when PostgreSQL 17's `ON_ERROR ignore` would pass over the row: a value is not what its
    /// column takes. A row with too many or too few values is an error all the same.
    pub fn is_soft(&self) -> bool {
        matches!(self.place, ErrorContext::Value { .. })
    }

    /// The place as COPY says it: `COPY t, line 3, column a: "x"`.
    pub fn context(&self) -> String {
        format!("COPY {}, {}", self.relation, self.line_context())
    }

    fn line_context(&self) -> String {
        let line = self.line;
        match &self.place {
            ErrorContext::Line => format!("line {line}"),
            ErrorContext::Row(row) => format!("line {line}: \"{row}\""),
            ErrorContext::Value { column, shown: Some(shown), .. } => {
                format!("line {line}, column {column}: \"{shown}\"")
            }
            ErrorContext::Value { column, .. } => {
                format!("line {line}, column {column}: null input")
            }
        }
    }
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.input, self.message)?;
        if let Some(detail) = &self.detail {
            write!(f, "\nDETAIL:  {detail}")?;
        }
        if let Some(hint) = self.hint {
            write!(f, "\nHINT:  {hint}")?;
        }
        write!(f, "\nCONTEXT:  {}", self.context())
    }
}

impl std::error::Error for CopyError {}

/// What is wrong with a row, before its line and its input are looked at. A pointer, as every result of reading a row
/// has room for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowFault(Box<FaultParts>);

/// What a fault is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FaultParts {
    pub(super) message: String,
    pub(super) hint: Option<&'static str>,
    /// Where the row is, if it was read to its end and can be shown.
    pub(super) row: Option<Range<usize>>,
}

impl RowFault {
    /// A fault of the line, found before its end.
    #[cold]
    pub(super) fn line(message: impl Into<String>) -> Self {
        Self(Box::new(FaultParts { message: message.into(), hint: None, row: None }))
    }

    /// A fault of a row that was read to its end.
    #[cold]
    pub(super) fn row(message: impl Into<String>, row: Range<usize>) -> Self {
        Self(Box::new(FaultParts { message: message.into(), hint: None, row: Some(row) }))
    }

    pub(super) fn with_hint(mut self, hint: &'static str) -> Self {
        self.0.hint = Some(hint);
        self
    }

    /// True when the row was read to its end.
    pub(super) fn has_row(&self) -> bool {
        self.0.row.is_some()
    }

    pub(super) fn into_parts(self) -> FaultParts {
        *self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_where_what_and_how_to_go_on() {
        let value = |value: Option<&str>| ErrorContext::Value {
            column: "a".into(),
            value: value.map(Into::into),
            shown: value.map(Into::into),
        };
        let message = "invalid input syntax for type integer: \"x\"";
        let mut error = CopyError {
            input: "t.csv".into(),
            relation: "t".into(),
            line: 3,
            place: value(Some("x")),
            message: message.into(),
            detail: None,
            hint: None,
        };
        let context = "COPY t, line 3, column a: \"x\"";
        assert_eq!(error.to_string(), format!("t.csv: {message}\nCONTEXT:  {context}"));
        assert!(error.is_soft());
        error.place = value(None);
        assert_eq!(error.context(), "COPY t, line 3, column a: null input");
        error.place = ErrorContext::Row("1,2".into());
        error.detail = Some("Failing row contains (1, 2).".into());
        assert_eq!(error.context(), "COPY t, line 3: \"1,2\"");
        assert!(error.to_string().contains("\nDETAIL:  Failing row contains (1, 2).\nCONTEXT:  "));
        error.place = ErrorContext::Line;
        error.hint = Some("Use \"\\n\" to represent newline.");
        assert!(
            error.to_string().contains("\nHINT:  Use \"\\n\" to represent newline.\nCONTEXT:  ")
        );
        assert!(!error.is_soft());
    }
}
