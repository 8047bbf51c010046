//! Columns and paragraphs for a terminal of 80 to 120 columns.
//!
//! Invariants: no text from the results breaks a line or moves the cursor, control characters are escaped; lines end
//! where their text ends; a first column that is too wide gets a line of its own instead of being cut.

/// The widest line of a paragraph, and that of a table.
pub(super) const WIDTH: usize = 100;
const WIDEST: usize = 120;
/// The widest first column.
const WIDEST_NAME: usize = 30;

/// On which side a column is filled up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// One line of a table: fields, or a name with a remark instead of fields.
#[derive(Debug)]
pub(crate) enum Line {
    Fields(Vec<String>),
    Remark(String, String),
}

/// A table with its header; columns in which nothing is said are left out. Columns that do not fit beside the others
/// follow in another table, with the names once more.
pub(crate) fn table(header: &[(&str, Align)], lines: &[Line], indent: usize) -> String {
    let widths: Vec<usize> = (0..header.len()).map(|at| width(header, lines, at)).collect();
    let told = told_columns(header.len(), lines);
    let parts = parts(&told, &widths, indent);
    let part =
        |(at, told): (usize, &Vec<bool>)| part(header, lines, &widths, told, indent, at == 0);
    parts.iter().enumerate().map(part).collect()
}

/// A text in lines of at most [`WIDTH`], the first indented by `first`, the others by `rest`.
pub(crate) fn paragraph(text: &str, first: usize, rest: usize) -> String {
    let text = printable(text);
    let (mut out, mut line) = (String::new(), " ".repeat(first));
    let mut empty = true;
    for word in text.split(' ') {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out += line.trim_end();
            out.push('\n');
            line = " ".repeat(rest);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += word;
        empty = false;
    }
    out += line.trim_end();
    out.push('\n');
    out
}

/// A text with its control characters escaped; bidirectional overrides count among them.
pub(crate) fn printable(text: &str) -> String {
    let hidden = |ch: char| matches!(ch, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let escaped = text.chars().map(|ch| match ch.is_control() || hidden(ch) {
        true => ch.escape_default().to_string(),
        false => ch.to_string(),
    });
    escaped.collect()
}

/// Which columns stand in which of the tables below each other; the first stands in all of them.
fn parts(told: &[bool], widths: &[usize], indent: usize) -> Vec<Vec<bool>> {
    let names = indent + widths.first().copied().unwrap_or(0);
    let empty = || (0..told.len()).map(|at| at == 0).collect::<Vec<bool>>();
    let (mut parts, mut part, mut used) = (Vec::new(), empty(), names);
    for (at, width) in widths.iter().enumerate().skip(1) {
        if !told.get(at).is_some_and(|told| *told) {
            continue;
        }
        if used + 2 + width > WIDEST && used > names {
            parts.push(std::mem::replace(&mut part, empty()));
            used = names;
        }
        used += 2 + width;
        part.iter_mut().skip(at).take(1).for_each(|told| *told = true);
    }
    parts.push(part);
    parts
}

/// One of the tables; only the first tells the remarks.
fn part(
    header: &[(&str, Align)],
    lines: &[Line],
    widths: &[usize],
    told: &[bool],
    indent: usize,
    first: bool,
) -> String {
    let titles: Vec<String> = header.iter().map(|(title, _)| (*title).to_owned()).collect();
    let mut text = fields(&titles, header, widths, told, indent);
    for line in lines {
        match line {
            Line::Fields(values) => text += &fields(values, header, widths, told, indent),
            Line::Remark(name, remark) if first => {
                let name =
                    filled(&printable(name), widths.first().copied().unwrap_or(0), Align::Left);
                let hang = indent + name.chars().count() + 2;
                text += &paragraph(&format!("{name}  {remark}"), indent, hang.min(WIDTH / 2));
            }
            Line::Remark(..) => {}
        }
    }
    text
}

/// The first column, the one with the names, is always told.
fn told_columns(columns: usize, lines: &[Line]) -> Vec<bool> {
    let told = |at: usize| {
        lines.iter().any(|line| match line {
            Line::Fields(values) => values.get(at).is_some_and(|value| !value.is_empty()),
            Line::Remark(..) => false,
        })
    };
    (0..columns).map(|at| at == 0 || told(at)).collect()
}

fn width(header: &[(&str, Align)], lines: &[Line], at: usize) -> usize {
    let of_line = |line: &Line| match line {
        Line::Fields(values) => values.get(at).map_or(0, |value| printable(value).chars().count()),
        Line::Remark(name, _) if at == 0 => printable(name).chars().count(),
        Line::Remark(..) => 0,
    };
    let title = header.get(at).map_or(0, |(title, _)| printable(title).chars().count());
    let widest = lines
        .iter()
        .map(of_line)
        .filter(|width| at > 0 || *width <= WIDEST_NAME)
        .fold(title, usize::max);
    if at == 0 { widest.min(WIDEST_NAME) } else { widest }
}

fn fields(
    values: &[String],
    header: &[(&str, Align)],
    widths: &[usize],
    told: &[bool],
    indent: usize,
) -> String {
    let mut line = " ".repeat(indent);
    let columns = values.iter().zip(header).zip(widths).zip(told).enumerate();
    for (at, (((value, (_, align)), width), told)) in columns {
        let value = printable(value);
        if at == 0 && value.chars().count() > *width {
            line += &format!("{value}\n{}", " ".repeat(indent + width + 2));
        } else if *told {
            line += &format!("{}  ", filled(&value, *width, *align));
        }
    }
    format!("{}\n", line.trim_end())
}

fn filled(text: &str, width: usize, align: Align) -> String {
    match align {
        Align::Left => format!("{text:<width$}"),
        Align::Right => format!("{text:>width$}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: [(&str, Align); 3] =
        [("cell", Align::Left), ("time", Align::Right), ("wait", Align::Right)];

    fn line(name: &str, time: &str, wait: &str) -> Line {
        Line::Fields(vec![name.into(), time.into(), wait.into()])
    }

    #[test]
    fn columns_line_up_and_empty_ones_are_left_out() {
        let lines = [
            line("a", "12 s", ""),
            line("ü", "1 s", ""),
            Line::Remark("b".into(), "refused".into()),
        ];
        assert_eq!(
            table(&HEADER, &lines, 1),
            " cell  time\n a     12 s\n ü      1 s\n b     refused\n"
        );
    }

    #[test]
    fn a_long_name_stands_on_a_line_of_its_own() {
        let text = table(&HEADER, &[line(&"n".repeat(31), "1 s", ""), line("m", "2 s", "")], 0);
        assert_eq!(text, format!("cell  time\n{}\n       1 s\nm      2 s\n", "n".repeat(31)));
    }

    #[test]
    fn columns_that_do_not_fit_follow_below_with_the_names() {
        let wide = "w".repeat(70);
        let lines = [line("a", &wide, &wide), Line::Remark("b".into(), "refused".into())];
        let gap = " ".repeat(66);
        let expected = format!(
            "cell  {gap}time\na     {wide}\nb     refused\ncell  {gap}wait\na     {wide}\n"
        );
        assert_eq!(table(&HEADER, &lines, 0), expected);
    }

    #[test]
    fn paragraphs_break_between_words_and_hang() {
        let text = paragraph(&"word ".repeat(30), 2, 4);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(lines[0].starts_with("  word") && lines[1].starts_with("    word"), "{text}");
    }

    #[test]
    fn nothing_moves_the_cursor() {
        assert_eq!(printable("a\nb\x1b[2J\u{202e}"), "a\\nb\\u{1b}[2J\\u{202e}");
        assert_eq!(paragraph("a\nb", 0, 0), "a\\nb\n");
    }
}
