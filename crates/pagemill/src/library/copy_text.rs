//! Rows as the text format of COPY, made while they are read.
//!
//! Invariant: what a field has in it is escaped, so that no value can end its field or its row.
//!
//! Source: `CopyAttributeOutText` in `src/backend/commands/copyto.c`, PostgreSQL 14 to 18.

use std::io::{self, Read};

/// Rows are formed until so many bytes are there.
const BATCH: usize = 64 << 10;

/// The bytes of rows.
pub(super) struct CopyText<I> {
    rows: I,
    buffer: Vec<u8>,
    /// How many of them were read.
    read: usize,
}

impl<I> CopyText<I> {
    pub(super) fn new(rows: I) -> Self {
        Self { rows, buffer: Vec::new(), read: 0 }
    }
}

impl<I, R, F> CopyText<I>
where
    I: Iterator<Item = R>,
    R: IntoIterator<Item = Option<F>>,
    F: AsRef<str>,
{
    fn fill(&mut self) {
        self.buffer.clear();
        self.read = 0;
        while self.buffer.len() < BATCH {
            let Some(row) = self.rows.next() else { return };
            for (number, field) in row.into_iter().enumerate() {
                if number > 0 {
                    self.buffer.push(b'\t');
                }
                match field {
                    None => self.buffer.extend_from_slice(b"\\N"),
                    Some(text) => escape(text.as_ref(), &mut self.buffer),
                }
            }
            self.buffer.push(b'\n');
        }
    }
}

impl<I, R, F> Read for CopyText<I>
where
    I: Iterator<Item = R>,
    R: IntoIterator<Item = Option<F>>,
    F: AsRef<str>,
{
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.read == self.buffer.len() {
            self.fill();
        }
        let mut rest = &self.buffer[self.read..];
        let count = rest.read(out)?;
        self.read += count;
        Ok(count)
    }
}

fn escape(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        let letter = match byte {
            b'\\' => b'\\',
            b'\t' => b't',
            b'\n' => b'n',
            b'\r' => b'r',
            other => {
                out.push(other);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(rows: Vec<Vec<Option<&'static str>>>) -> String {
        let mut text = String::new();
        CopyText::new(rows.into_iter()).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn no_value_can_end_its_field_or_its_row() {
        let rows = vec![vec![Some("a\tb\nc\\d\re"), None], vec![Some(""), Some("\\N")]];
        assert_eq!(text(rows), "a\\tb\\nc\\\\d\\re\t\\N\n\t\\\\N\n");
    }

    #[test]
    fn rows_beyond_one_batch_all_come() {
        let rows = vec![vec![Some("0123456789")]; 20_000];
        assert_eq!(text(rows).len(), 20_000 * 11);
        assert_eq!(text(Vec::new()), "");
    }
}
