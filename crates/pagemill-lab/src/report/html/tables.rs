//! Tables of a page: in a frame of their own that scrolls when the screen is narrow, sortable by the script.
//!
//! Invariant: the first column names the row, for eyes and for screen readers.

use super::markup::Markup;

/// A text with more characters than this may be broken into lines.
const LONG: usize = 24;

/// One field: what is read, and the number to sort it by.
#[derive(Debug, Clone, Default)]
pub(in crate::report) struct Field {
    pub(in crate::report) text: String,
    pub(in crate::report) number: Option<f64>,
}

impl Field {
    /// A text.
    pub(in crate::report) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), number: None }
    }

    /// A number with the text that it is read as; a dash where there is none.
    pub(in crate::report) fn number(value: Option<f64>, show: impl Fn(f64) -> String) -> Self {
        Self { text: value.map_or("–".to_owned(), show), number: Some(value.unwrap_or(f64::NAN)) }
    }
}

/// Writes a table; columns in which all fields are dashes are left out.
pub(in crate::report) fn write(
    caption: &str,
    header: &[&str],
    rows: &[Vec<Field>],
    page: &mut Markup,
) {
    let told: Vec<bool> = (0..header.len()).map(|at| at == 0 || is_told(rows, at)).collect();
    let frame =
        [("class", "scroll"), ("role", "region"), ("aria-label", caption), ("tabindex", "0")];
    page.tag("div", &frame, |page| {
        page.tag("table", &[("data-sort", "yes")], |page| {
            page.leaf("caption", &[], caption);
            page.tag("thead", &[], |page| {
                page.tag("tr", &[], |page| {
                    for (at, (title, _)) in
                        header.iter().zip(&told).enumerate().filter(|(_, (_, told))| **told)
                    {
                        page.leaf("th", &[("scope", "col"), ("class", class(rows, at))], title);
                    }
                });
            });
            page.tag("tbody", &[], |page| rows.iter().for_each(|row| write_row(row, &told, page)));
        });
    });
}

fn write_row(row: &[Field], told: &[bool], page: &mut Markup) {
    page.tag("tr", &[], |page| {
        for (at, (field, _)) in row.iter().zip(told).enumerate().filter(|(_, (_, told))| **told) {
            let value =
                field.number.filter(|value| value.is_finite()).map(|value| format!("{value:e}"));
            match (at, field.number) {
                (0, _) => page.leaf("th", &[("scope", "row")], &field.text),
                (_, None) if field.text.chars().count() > LONG => {
                    page.leaf("td", &[("class", "long")], &field.text)
                }
                (_, None) => page.leaf("td", &[], &field.text),
                (_, Some(_)) => {
                    let value = value.unwrap_or_default();
                    page.leaf("td", &[("class", "number"), ("data-value", &value)], &field.text);
                }
            }
        }
    });
}

fn is_told(rows: &[Vec<Field>], at: usize) -> bool {
    rows.iter().filter_map(|row| row.get(at)).any(|field| !matches!(field.text.as_str(), "" | "–"))
}

fn class(rows: &[Vec<Field>], at: usize) -> &'static str {
    let is_number = rows.iter().filter_map(|row| row.get(at)).any(|field| field.number.is_some());
    if is_number { "number" } else { "words" }
}
