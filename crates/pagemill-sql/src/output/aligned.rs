//! Aligned tables, as psql prints them: headers in the middle, numbers to the right, line breaks continued with a plus.
//!
//! The whole answer is kept until its end, since the widest value decides.
//!
//! Source: `print_aligned_text` and `print_aligned_vertical` in `src/fe_utils/print.c`, PostgreSQL 18, for the appearance.

use std::io::Write;
use std::sync::Arc;

use super::rows::Texts;
use super::separated::is_number;
use crate::catalog::Catalog;
use crate::error::Result;
use crate::session::AnswerColumn;

/// A table in the making.
#[derive(Default)]
pub(super) struct Aligned {
    names: Vec<String>,
    to_right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Aligned {
    pub(super) fn new(_: &Arc<Catalog>, columns: &[AnswerColumn]) -> Self {
        Self {
            names: columns.iter().map(|column| column.name.clone()).collect(),
            to_right: columns.iter().map(is_number).collect(),
            rows: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, texts: Texts<'_>) {
        let shown = |text: &Option<String>| text.as_deref().map_or(String::new(), printable);
        self.rows.push(texts.iter().map(shown).collect());
    }

    pub(super) fn write(&mut self, out: &mut impl Write, rows: u64) -> Result<()> {
        let widths: Vec<usize> = (0..self.names.len()).map(|at| self.width(at)).collect();
        self.header(&widths, out)?;
        for row in &self.rows {
            self.row(row, &widths, out)?;
        }
        let plural = if rows == 1 { "row" } else { "rows" };
        writeln!(out, "({rows} {plural})\n")?;
        self.rows.clear();
        Ok(())
    }

    fn width(&self, at: usize) -> usize {
        let widest = |text: &str| text.split('\n').map(display_width).max().unwrap_or(0);
        let values = self.rows.iter().map(|row| widest(&row[at]));
        values.chain([widest(&self.names[at])]).max().unwrap_or(0)
    }

    fn header(&self, widths: &[usize], out: &mut impl Write) -> Result<()> {
        let centered = |(name, width): (&String, &usize)| {
            let rest = width - display_width(name);
            format!(" {}{name}{} ", " ".repeat(rest / 2), " ".repeat(rest - rest / 2))
        };
        let cells: Vec<String> = self.names.iter().zip(widths).map(centered).collect();
        writeln!(out, "{}", cells.join("|"))?;
        let rules: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
        writeln!(out, "{}", rules.join("+"))?;
        Ok(())
    }

    fn row(&self, row: &[String], widths: &[usize], out: &mut impl Write) -> Result<()> {
        let lines: Vec<Vec<&str>> = row.iter().map(|text| text.split('\n').collect()).collect();
        let height = lines.iter().map(Vec::len).max().unwrap_or(1);
        for line in 0..height {
            let mut text = String::new();
            for (at, width) in widths.iter().enumerate() {
                let piece = lines[at].get(line).copied();
                let goes_on = line + 1 < lines[at].len();
                let is_last = at + 1 == widths.len();
                text.push(' ');
                match is_last && !goes_on && !self.to_right[at] {
                    true => text.push_str(piece.unwrap_or("")),
                    false => self.push_cell(piece.unwrap_or(""), at, *width, &mut text),
                }
                match (goes_on, is_last) {
                    (true, _) => text.push('+'),
                    (false, false) => text.push(' '),
                    (false, true) => {}
                }
                if !is_last {
                    text.push('|');
                }
            }
            writeln!(out, "{text}")?;
        }
        Ok(())
    }

    fn push_cell(&self, piece: &str, at: usize, width: usize, text: &mut String) {
        let padding = " ".repeat(width - display_width(piece));
        match self.to_right[at] {
            true => {
                text.push_str(&padding);
                text.push_str(piece);
            }
            false => {
                text.push_str(piece);
                text.push_str(&padding);
            }
        }
    }

    pub(super) fn write_expanded(&mut self, out: &mut impl Write) -> Result<()> {
        let names = self.names.iter().map(|name| display_width(name)).max().unwrap_or(0);
        let all = self.rows.iter().flatten();
        let values = all.flat_map(|text| text.split('\n')).map(display_width).max().unwrap_or(0);
        if self.rows.is_empty() {
            writeln!(out, "(0 rows)")?;
        }
        for (number, row) in self.rows.iter().enumerate() {
            let title = format!("-[ RECORD {} ]", number + 1);
            let left = title + &"-".repeat((names + 1).saturating_sub(13 + digits(number + 1) - 1));
            let bar = match left.len() > names + 1 {
                true => left,
                false => format!("{left}+"),
            };
            let rest = (names + values + 4).saturating_sub(bar.len() + 1);
            writeln!(out, "{bar}{}", "-".repeat(rest))?;
            for (name, value) in self.names.iter().zip(row) {
                let padding = " ".repeat(names - display_width(name));
                writeln!(out, "{name}{padding} | {value}")?;
            }
        }
        writeln!(out)?;
        self.rows.clear();
        Ok(())
    }
}

fn digits(number: usize) -> usize {
    number.to_string().len()
}

/// Columns of a terminal that a text takes.
fn display_width(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

/// Control characters as psql shows them.
fn printable(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push('\n'),
            '\r' => out.push_str("\\r"),
            '\t' => {
                let line = out.rsplit('\n').next().unwrap_or("");
                let column = display_width(line);
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
