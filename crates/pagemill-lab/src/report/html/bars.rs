//! Horizontal bars with their intervals, a row per contestant, the figures beside them.
//!
//! Drawn so that text keeps its size on a phone: places are percentages of the width, nothing is scaled. Invariants:
//! bars start at zero and share one scale; the interval and the single turns are drawn over the bar; each row says in
//! words what its bar shows.

use super::axis::Axis;
use super::markup::{Markup, percent};

/// One row: a bar, or the reason why there is none.
#[derive(Debug)]
pub(in crate::report) struct Bar<'a> {
    pub(in crate::report) name: &'a str,
    /// A class for its look: `best`, `baseline`, `second` (of a pair, its name need not be seen again), `row`.
    pub(in crate::report) look: &'static str,
    /// A short word behind the name.
    pub(in crate::report) tag: &'a str,
    pub(in crate::report) shown: Option<Shown>,
    /// What stands behind the figure, or why there is none.
    pub(in crate::report) remark: String,
}

/// What is drawn of a row.
#[derive(Debug)]
pub(in crate::report) struct Shown {
    pub(in crate::report) median: f64,
    pub(in crate::report) low: f64,
    pub(in crate::report) high: f64,
    /// The single turns.
    pub(in crate::report) turns: Vec<f64>,
    /// The figure and its interval as text.
    pub(in crate::report) figure: String,
    pub(in crate::report) interval: String,
}

/// More turns than this would hide the bar.
const MOST_DOTS: usize = 40;

/// Writes the rows; a thin line through all of them marks the baseline.
pub(in crate::report) fn write(
    bars: &[Bar<'_>],
    label: &str,
    baseline: Option<f64>,
    page: &mut Markup,
) {
    let drawn = bars.iter().filter_map(|bar| bar.shown.as_ref());
    let axis = Axis::from_zero(drawn.flat_map(|shown| [shown.high * 1.04, shown.median * 1.04]));
    page.tag("ul", &[("class", "bars"), ("aria-label", label)], |page| {
        for bar in bars {
            row(bar, &axis, baseline, page);
        }
    });
}

fn row(bar: &Bar<'_>, axis: &Axis, baseline: Option<f64>, page: &mut Markup) {
    let absent = if bar.shown.is_some() { "" } else { " absent" };
    page.tag("li", &[("class", &format!("{}{absent}", bar.look))], |page| {
        page.tag("span", &[("class", "who")], |page| {
            page.leaf("span", &[("class", "name")], bar.name);
            if !bar.tag.is_empty() {
                page.text(" ");
                page.leaf("em", &[], bar.tag);
            }
        });
        if let Some(shown) = &bar.shown {
            draw(bar.name, shown, axis, baseline, page);
            page.tag("span", &[("class", "figure")], |page| {
                page.leaf("b", &[], &shown.figure);
                page.text(" ");
                page.leaf("small", &[], &shown.interval);
            });
        }
        page.leaf("span", &[("class", "remark")], &bar.remark);
    });
}

fn draw(name: &str, shown: &Shown, axis: &Axis, baseline: Option<f64>, page: &mut Markup) {
    let label = format!("{name}: {}, interval {}", shown.figure, shown.interval);
    page.tag("svg", &[("class", "bar"), ("role", "img"), ("aria-label", &label)], |page| {
        page.leaf("title", &[], &label);
        let width = percent(axis.place(shown.median));
        page.empty("rect", &[("class", "fill"), ("y", "5"), ("height", "12"), ("width", &width)]);
        if let Some(value) = baseline {
            Mark { class: "base", place: axis.place(value), top: "0", bottom: "22" }.draw(page);
        }
        let turns = shown.turns.iter().filter(|value| value.is_finite()).take(MOST_DOTS);
        for turn in turns {
            page.empty(
                "circle",
                &[
                    ("class", "turn"),
                    ("cx", &percent(axis.place(*turn))),
                    ("cy", "11"),
                    ("r", "1.6"),
                ],
            );
        }
        interval(shown, axis, page);
    });
}

fn interval(shown: &Shown, axis: &Axis, page: &mut Markup) {
    let (low, high) = (axis.place(shown.low), axis.place(shown.high));
    let ends = [
        ("class", "interval"),
        ("x1", &percent(low)),
        ("x2", &percent(high)),
        ("y1", "11"),
        ("y2", "11"),
    ];
    page.empty("line", &ends);
    for place in [low, high] {
        Mark { class: "interval", place, top: "7", bottom: "15" }.draw(page);
    }
}

/// A vertical line across a bar.
#[derive(Debug)]
struct Mark {
    /// A class for its look.
    class: &'static str,
    /// Where it stands, as a share of the width.
    place: f64,
    /// Where it begins, in pixels of CSS below the row's upper edge.
    top: &'static str,
    /// Where it ends, in the same pixels.
    bottom: &'static str,
}

impl Mark {
    fn draw(&self, page: &mut Markup) {
        let Self { class, top, bottom, .. } = *self;
        let at = percent(self.place);
        let ends = [("class", class), ("x1", &at), ("x2", &at), ("y1", top), ("y2", bottom)];
        page.empty("line", &ends);
    }
}
