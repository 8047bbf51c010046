//! Aligned tables, as psql prints them: headers in the middle, numbers to the right, line breaks continued with a plus.
//!
//! The whole answer is kept until its end, since the widest value decides.
//!
//! Source: `print_aligned_text` in `src/fe_utils/print.c`, PostgreSQL 15, for the appearance.

use std::io::Write;

use super::{OutputStyle, Table};
use crate::error::Result;

/// Lines of a cell.
pub(super) type Lines = Vec<String>;

/// A table with its widths measured.
pub(super) struct Layout<'t> {
    table: &'t Table,
    style: &'t OutputStyle,
    names: Vec<Lines>,
    widths: Vec<usize>,
}

/// What a line of a row holds in one column.
struct Piece<'t> {
    text: Option<&'t str>,
    goes_on: bool,
}

impl<'t> Layout<'t> {
    pub(super) fn new(table: &'t Table, style: &'t OutputStyle) -> Self {
        let names: Vec<Lines> = table.names.iter().map(|name| lines(name)).collect();
        let mut widths: Vec<usize> = names.iter().map(widest).collect();
        for row in &table.rows {
            for (width, value) in widths.iter_mut().zip(row) {
                *width = (*width).max(widest(&lines(value.as_deref().unwrap_or(&style.null))));
            }
        }
        Self { table, style, names, widths }
    }

    pub(super) fn total_width(&self) -> usize {
        let columns = self.widths.len();
        let lines = match self.style.border {
            0 => columns,
            1 => (columns * 3).saturating_sub(usize::from(columns > 0)),
            _ => columns * 3 + 1,
        };
        lines + self.widths.iter().sum::<usize>()
    }

    pub(super) fn write(&self, out: &mut impl Write) -> Result<()> {
        if !self.style.tuples_only {
            self.title(out)?;
            if self.style.border == 2 {
                self.rule(out)?;
            }
            self.header(out)?;
            self.rule(out)?;
        }
        let cell = |value: &Option<String>| lines(value.as_deref().unwrap_or(&self.style.null));
        for row in &self.table.rows {
            self.row(&row.iter().map(cell).collect::<Vec<Lines>>(), out)?;
        }
        if self.style.border == 2 {
            self.rule(out)?;
        }
        if !self.style.tuples_only {
            for footer in self.table.footers_or_count() {
                writeln!(out, "{footer}")?;
            }
        }
        writeln!(out)?;
        Ok(())
    }

    fn title(&self, out: &mut impl Write) -> Result<()> {
        let Some(title) = &self.table.title else { return Ok(()) };
        let (width, total) =
            (title.split('\n').map(display_width).max().unwrap_or(0), self.total_width());
        writeln!(out, "{}{title}", " ".repeat(total.saturating_sub(width) / 2))?;
        Ok(())
    }

    fn rule(&self, out: &mut impl Write) -> Result<()> {
        let dashes: Vec<String> = self.widths.iter().map(|width| "-".repeat(*width)).collect();
        match self.style.border {
            0 => writeln!(out, "{}", dashes.join(" "))?,
            1 => writeln!(out, "-{}-", dashes.join("-+-"))?,
            _ => writeln!(out, "+-{}-+", dashes.join("-+-"))?,
        }
        Ok(())
    }

    fn header(&self, out: &mut impl Write) -> Result<()> {
        let height = self.names.iter().map(Vec::len).max().unwrap_or(0);
        let border = self.style.border;
        for line in 0..height {
            let mut text = String::from(if border == 2 { "|" } else { "" });
            for (at, (name, width)) in self.names.iter().zip(&self.widths).enumerate() {
                let piece = name.get(line).map_or("", String::as_str);
                let rest = width - display_width(piece);
                if border != 0 {
                    text.push(' ');
                }
                text.push_str(&" ".repeat(rest / 2));
                text.push_str(piece);
                text.push_str(&" ".repeat(rest - rest / 2));
                text.push(if line + 1 < name.len() { '+' } else { ' ' });
                if border != 0 && at + 1 < self.widths.len() {
                    text.push('|');
                }
            }
            writeln!(out, "{text}{}", if border == 2 { "|" } else { "" })?;
        }
        Ok(())
    }

    fn row(&self, row: &[Lines], out: &mut impl Write) -> Result<()> {
        let height = row.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            let mut text = String::from(if self.style.border == 2 { "|" } else { "" });
            for (at, cell) in row.iter().enumerate() {
                let piece = Piece {
                    text: cell.get(line).map(String::as_str),
                    goes_on: line + 1 < cell.len(),
                };
                self.push_piece(&piece, at, &mut text);
            }
            writeln!(out, "{text}{}", if self.style.border == 2 { "|" } else { "" })?;
        }
        Ok(())
    }

    fn push_piece(&self, piece: &Piece<'_>, at: usize, text: &mut String) {
        let (border, is_last) = (self.style.border, at + 1 == self.widths.len());
        let is_padded = border == 2 || !is_last;
        let shown = piece.text.unwrap_or("");
        let padding = " ".repeat(self.widths[at] - display_width(shown));
        if border != 0 {
            text.push(' ');
        }
        match (piece.text, self.table.to_right[at]) {
            (Some(_), true) => {
                text.push_str(&padding);
                text.push_str(shown);
            }
            _ => {
                text.push_str(shown);
                if is_padded || piece.goes_on {
                    text.push_str(&padding);
                }
            }
        }
        match piece.goes_on {
            true => text.push('+'),
            false if is_padded => text.push(' '),
            false => {}
        }
        if border != 0 && !is_last {
            text.push('|');
        }
    }
}

pub(super) fn widest(cell: &Lines) -> usize {
    cell.iter().map(|line| display_width(line)).max().unwrap_or(0)
}

/// Columns of a terminal that a text takes.
pub(super) fn display_width(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

/// The lines of a text, with control characters as psql shows them.
pub(super) fn lines(text: &str) -> Lines {
    text.split('\n').map(printable).collect()
}

fn printable(line: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            '\r' => out.push_str("\\r"),
            '\t' => {
                let column = display_width(&out);
                out.push_str(&" ".repeat(8 - column % 8));
            }
            c if u32::from(c) < 0x20 || u32::from(c) == 0x7f => {
                let _ = write!(out, "\\x{:02X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}
