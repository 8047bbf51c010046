//! Columns of text, lined up; and values as people read them.
//!
//! Invariant: a name cannot break a line or move the cursor: control characters are escaped.

pub(crate) use pagemill_cluster::relation::printable;

/// On which side a column is filled up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A header line and rows, columns two blanks apart, no blanks at the ends of lines.
pub(crate) fn table(header: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
        let title = header.get(at).map_or(0, |(title, _)| title.chars().count());
        cells.fold(title, usize::max)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let titles: Vec<String> = header.iter().map(|(title, _)| (*title).to_owned()).collect();
    let mut text = String::new();
    for row in std::iter::once(&titles).chain(rows) {
        let mut line = String::new();
        for ((cell, (_, align)), width) in row.iter().zip(header).zip(&widths) {
            let filled = match align {
                Align::Left => format!("{cell:<width$}  "),
                Align::Right => format!("{cell:>width$}  "),
            };
            line.push_str(&filled);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Labels and values, the values below each other.
pub(crate) fn fields(fields: &[(&str, String)]) -> String {
    let width = fields.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0) + 1;
    fields
        .iter()
        .map(|(label, value)| format!("{:<width$} {value}\n", format!("{label}:")))
        .collect()
}

/// A size as `pg_size_pretty` prints it.
pub(crate) fn pretty_size(bytes: u64) -> String {
    if bytes < 10 * 1024 {
        return format!("{bytes} bytes");
    }
    let mut halves = bytes >> 9;
    for unit in ["kB", "MB", "GB", "TB"] {
        if halves < 20 * 1024 - 1 {
            return format!("{} {unit}", halves.div_ceil(2));
        }
        halves >>= 10;
    }
    format!("{} PB", halves.div_ceil(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_end_where_their_text_ends() {
        let header = [("Name", Align::Left), ("Rows", Align::Right), ("Kind", Align::Left)];
        let row = |a: &str, b: &str, c: &str| vec![a.to_owned(), b.to_owned(), c.to_owned()];
        let rows = [row("orders", "12", "table"), row("ü", "123456", "")];
        assert_eq!(
            table(&header, &rows),
            "Name      Rows  Kind\norders      12  table\nü       123456\n"
        );
    }

    #[test]
    fn sizes_read_as_pg_size_pretty_prints_them() {
        let cases = [
            (0, "0 bytes"),
            (10_239, "10239 bytes"),
            (10_240, "10 kB"),
            (10_752, "11 kB"),
            (10_485_247, "10239 kB"),
            (10_485_760, "10 MB"),
            (1_365_336_064, "1302 MB"),
            (1 << 40, "1024 GB"),
        ];
        for (bytes, pretty) in cases {
            assert_eq!(pretty_size(bytes), pretty);
        }
    }

    #[test]
    fn a_name_with_a_line_feed_stays_on_its_line() {
        assert_eq!(printable(b"a\nb\x1b"), "a\\nb\\u{1b}");
        assert_eq!(printable("größe".as_bytes()), "größe");
    }
}
