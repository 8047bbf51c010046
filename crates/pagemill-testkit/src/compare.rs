//! The first difference between two exports, told by line and column.
//!
//! Equality is that of bytes; lines and columns are worked out only to tell a difference.

use std::fmt;

use crate::oracle::CopyFormat;

/// How much of a value is shown on each side of the first byte that differs.
const CONTEXT: usize = 60;

/// Where two exports part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// The line, counted from 1. In CSV a quoted line break does not end a line.
    pub line: usize,
    /// The column's name, or its number where there is no such column.
    pub column: String,
    /// The expected value; `None` when the line should not be there.
    pub expected: Option<Vec<u8>>,
    /// The actual value; `None` when the line or column is missing.
    pub actual: Option<Vec<u8>>,
    /// How many lines were expected, and how many there are.
    pub lines: (usize, usize),
}

impl std::error::Error for Diff {}

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = first_difference(self.expected.as_deref(), self.actual.as_deref());
        write!(f, "line {}, column {}, byte {at}:", self.line, self.column)?;
        write!(f, "\n  expected {}", excerpt(self.expected.as_deref(), at))?;
        write!(f, "\n  actual   {}", excerpt(self.actual.as_deref(), at))?;
        write!(f, "\n  ({} lines expected, {} there)", self.lines.0, self.lines.1)
    }
}

/// Says where `actual` first differs from `expected`.
pub fn compare(
    format: CopyFormat,
    columns: &[String],
    expected: &[u8],
    actual: &[u8],
) -> Result<(), Diff> {
    if expected == actual {
        return Ok(());
    }
    let (want, have) = (records(format, expected), records(format, actual));
    let line = want.iter().zip(&have).take_while(|(w, h)| w == h).count();
    let fields = |rows: &[&[u8]]| rows.get(line).map(|row| split_fields(format, row));
    let (want_row, have_row) = (fields(&want), fields(&have));
    let count = |row: &Option<Vec<Vec<u8>>>| row.as_ref().map_or(0, Vec::len);
    let field = |row: &Option<Vec<Vec<u8>>>, i: usize| row.as_ref().and_then(|r| r.get(i).cloned());
    let column = (0..count(&want_row).max(count(&have_row)))
        .find(|i| field(&want_row, *i) != field(&have_row, *i))
        .unwrap_or(0);
    Err(Diff {
        line: line + 1,
        column: columns.get(column).cloned().unwrap_or_else(|| format!("{}", column + 1)),
        expected: field(&want_row, column),
        actual: field(&have_row, column),
        lines: (want.len(), have.len()),
    })
}

/// The lines, each with its line feed, so that a missing one at the end shows.
fn records(format: CopyFormat, bytes: &[u8]) -> Vec<&[u8]> {
    let mut quoted = false;
    let mut end = |byte: &u8| {
        quoted ^= format == CopyFormat::Csv && *byte == b'"';
        *byte == b'\n' && !quoted
    };
    let mut rows: Vec<&[u8]> = bytes.split_inclusive(|byte| end(byte)).collect();
    rows.retain(|row| !row.is_empty());
    rows
}

fn split_fields(format: CopyFormat, row: &[u8]) -> Vec<Vec<u8>> {
    let mut quoted = false;
    row.split(|byte| match format {
        CopyFormat::Text => *byte == b'\t',
        CopyFormat::Csv => {
            quoted ^= *byte == b'"';
            *byte == b',' && !quoted
        }
    })
    .map(<[u8]>::to_vec)
    .collect()
}

fn first_difference(a: Option<&[u8]>, b: Option<&[u8]>) -> usize {
    a.unwrap_or_default().iter().zip(b.unwrap_or_default()).take_while(|(a, b)| a == b).count()
}

fn excerpt(value: Option<&[u8]>, at: usize) -> String {
    let Some(value) = value else { return "nothing".into() };
    let start = at.saturating_sub(CONTEXT).min(value.len());
    let end = at.saturating_add(CONTEXT).min(value.len());
    let (before, after) =
        (if start > 0 { "…" } else { "" }, if end < value.len() { "…" } else { "" });
    format!("{before}{:?}{after}", String::from_utf8_lossy(&value[start..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<String> {
        ["a", "b"].map(String::from).to_vec()
    }

    #[test]
    fn equal_exports_have_no_difference() {
        assert_eq!(compare(CopyFormat::Text, &columns(), b"1\t2\n", b"1\t2\n"), Ok(()));
    }

    #[test]
    fn the_first_differing_line_and_column_is_named() {
        let diff =
            compare(CopyFormat::Text, &columns(), b"1\t2\n3\t4\n", b"1\t2\n3\t5\n").unwrap_err();
        assert_eq!((diff.line, diff.column.as_str()), (2, "b"));
        assert_eq!(diff.expected.as_deref(), Some(&b"4\n"[..]));
    }

    #[test]
    fn a_missing_line_and_a_surplus_column_are_told() {
        let diff = compare(CopyFormat::Text, &columns(), b"1\t2\n3\t4\n", b"1\t2\n").unwrap_err();
        assert_eq!((diff.line, diff.actual), (2, None));
        let diff = compare(CopyFormat::Text, &columns(), b"1\t2\n", b"1\t2\n\n").unwrap_err();
        assert_eq!((diff.line, diff.expected, diff.lines), (2, None, (1, 2)));
    }

    #[test]
    fn a_quoted_line_break_in_csv_does_not_end_the_line() {
        let diff = compare(CopyFormat::Csv, &columns(), b"\"x\n,\"\"y\",1\n", b"\"x\n,\"\"y\",2\n")
            .unwrap_err();
        assert_eq!((diff.line, diff.column.as_str()), (1, "b"));
    }
}
