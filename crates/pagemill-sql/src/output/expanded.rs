//! A line for each column of a row, as psql's `\x` prints them.
//!
//! Source: `print_aligned_vertical` in `src/fe_utils/print.c`, PostgreSQL 15.20, for the appearance; 15.18 did not yet fill rows
//! up to the width of the line above them.

use std::io::Write;

use super::aligned::{Lines, display_width, lines, widest};
use super::{OutputStyle, Table};
use crate::error::Result;

/// The widths of the two sides.
struct Sides {
    names: usize,
    values: usize,
    /// True when some value has more than one line.
    is_multiline: bool,
    border: u8,
}

pub(super) fn write(table: &Table, style: &OutputStyle, out: &mut impl Write) -> Result<()> {
    let names: Vec<Lines> = table.names.iter().map(|name| lines(name)).collect();
    let cell = |value: &Option<String>| lines(value.as_deref().unwrap_or(&style.null));
    let rows: Vec<Vec<Lines>> =
        table.rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    if rows.is_empty() || names.is_empty() {
        let footers = if style.tuples_only { Vec::new() } else { table.footers_or_count() };
        footers.iter().try_for_each(|footer| writeln!(out, "{footer}"))?;
        writeln!(out)?;
        return Ok(());
    }
    let sides = Sides::new((&names, &rows), style);
    if let Some(title) = table.title.as_ref().filter(|_| !style.tuples_only) {
        writeln!(out, "{title}")?;
    }
    for (number, row) in rows.iter().enumerate() {
        if !style.tuples_only {
            writeln!(out, "{}", sides.bar(Some(number + 1)))?;
        } else if number > 0 || style.border == 2 {
            writeln!(out, "{}", sides.bar(None))?;
        }
        names.iter().zip(row).try_for_each(|(name, value)| sides.cell(name, value, out))?;
    }
    if style.border == 2 {
        writeln!(out, "{}", sides.bar(None))?;
    }
    if let Some(footers) = table.footers.as_ref().filter(|f| !style.tuples_only && !f.is_empty()) {
        if style.border < 2 {
            writeln!(out)?;
        }
        footers.iter().try_for_each(|footer| writeln!(out, "{footer}"))?;
    }
    writeln!(out)?;
    Ok(())
}

impl Sides {
    /// Values are at least so wide that the line above a row ends with them.
    fn new((names, rows): (&[Lines], &[Vec<Lines>]), style: &OutputStyle) -> Self {
        let is_multiline = rows.iter().flatten().any(|cell| cell.len() > 1);
        let is_multiline_name = names.iter().any(|name| name.len() > 1);
        let width = names.iter().map(widest).max().unwrap_or(0);
        let border = style.border;
        let between = match border {
            0 => 1 + usize::from(is_multiline_name) + usize::from(is_multiline),
            1 => 3 + usize::from(is_multiline),
            _ => 7,
        };
        let bar = match border {
            _ if style.tuples_only => 0,
            0 => 9,
            1 => 12,
            _ => 15,
        };
        let least = match bar {
            0 => 0,
            bar => (bar + rows.len().to_string().len()).saturating_sub(width + between),
        };
        let widest_value = rows.iter().flatten().map(widest).max().unwrap_or(0);
        Self { names: width, values: widest_value.max(least), is_multiline, border }
    }

    /// The line above a row.
    fn bar(&self, number: Option<usize>) -> String {
        let (dash, mut text) = match self.border {
            0 => (" ", String::new()),
            1 => ("-", "-".to_owned()),
            _ => ("-", "+-".to_owned()),
        };
        let label = match (number, self.border) {
            (None, _) => String::new(),
            (Some(number), 0) => format!("* Record {number}"),
            (Some(number), _) => format!("[ RECORD {number} ]"),
        };
        text.push_str(&label);
        // How far the label reaches, counted from where the names begin.
        let reached = label.len() + usize::from(self.border != 2);
        text.push_str(&dash.repeat(self.names.saturating_sub(reached)));
        let mut over = reached.saturating_sub(self.names);
        let between: &[&str] = if self.border > 0 { &["-", "+", "-"] } else { &[" "] };
        for mark in between {
            match over {
                0 => text.push_str(mark),
                _ => over -= 1,
            }
        }
        text.push_str(&dash.repeat(self.values.saturating_sub(over)));
        if self.border == 2 {
            text.push_str("-+");
        }
        text
    }

    fn cell(&self, name: &Lines, value: &Lines, out: &mut impl Write) -> Result<()> {
        for line in 0..name.len().max(value.len()) {
            let mut text = String::from(if self.border == 2 { "| " } else { "" });
            let shown = name.get(line).map_or("", String::as_str);
            text.push_str(shown);
            text.push_str(&" ".repeat(self.names - display_width(shown)));
            if self.border > 0 {
                text.push_str(if line + 1 < name.len() { "+|" } else { " |" });
            }
            if let Some(shown) = value.get(line) {
                text.push(' ');
                text.push_str(shown);
                let padding = " ".repeat(self.values - display_width(shown));
                let goes_on = line + 1 < value.len();
                if goes_on && self.is_multiline {
                    text.push_str(&padding);
                    text.push('+');
                } else if self.border == 2 {
                    text.push_str(&padding);
                    text.push(' ');
                }
            } else if self.border == 2 {
                text.push_str(&" ".repeat(self.values + 2));
            }
            writeln!(out, "{text}{}", if self.border == 2 { "|" } else { "" })?;
        }
        Ok(())
    }
}
