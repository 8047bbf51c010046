//! Line charts over a numeric parameter: blocks, block sizes, depth, descriptors.
//!
//! The lines stretch with the page, text and marks do not: lines are drawn in an inner picture that is scaled in both
//! directions, everything else by percentages. Invariant: lines differ in mark and dashes as well as in colour.

use crate::report::rows::scale;
use crate::report::units::short;
use crate::report::wording;
use crate::results::Group;

use super::axis::Axis;
use super::markup::{Markup, number, percent};
use super::series::{Chart, Point, Series};

/// Height of the plot in pixels of CSS.
const HEIGHT: f64 = 220.0;
/// Width of the plot on a small phone, and of a character below it, in the same pixels: labels that would touch there
/// are left out.
const NARROWEST: f64 = 230.0;
const CHARACTER: f64 = 6.6;

/// A chart made ready: its axes, and the unit in which its figures are drawn.
struct Plot<'a> {
    group: &'a Group,
    chart: &'a Chart<'a>,
    x: Axis,
    y: Axis,
    unit: (&'static str, f64),
    title: String,
}

/// Writes the charts of a group, all of them with the same upward axis.
pub(super) fn write(group: &Group, charts: &[Chart<'_>], page: &mut Markup) {
    let (unit, y) = upward(group, charts);
    for chart in charts {
        let points = chart.series.iter().flat_map(|series| &series.points);
        let x = Axis::of_parameter(&points.map(|point| point.at).collect::<Vec<f64>>());
        let title = title(group, chart, unit.0, y.is_log());
        write_chart(&Plot { group, chart, x, y, unit, title }, page);
    }
}

/// The unit of the figures, and their axis.
fn upward(group: &Group, charts: &[Chart<'_>]) -> ((&'static str, f64), Axis) {
    let series = || charts.iter().flat_map(|chart| &chart.series);
    let points = || series().flat_map(|series| &series.points);
    let lows = points().map(|point| point.found.low).filter(|low| *low > 0.0);
    let unit = scale(group).of_chart(lows.fold(f64::MAX, f64::min));
    let ends = points().flat_map(|point| [point.found.low, point.found.median, point.found.high]);
    (unit, Axis::fitting(&ends.map(|end| end / unit.1).collect::<Vec<f64>>()))
}

fn write_chart(plot: &Plot<'_>, page: &mut Markup) {
    let chart = plot.chart;
    page.tag("figure", &[("class", "lines")], |page| {
        page.leaf("figcaption", &[], &plot.title);
        key(chart, page);
        draw(plot, page);
        page.leaf("p", &[("class", "axis")], &format!("{} →", wording::name(chart.parameter)));
    });
}

impl Plot<'_> {
    /// How far from the top a figure lies.
    fn height(&self, figure: f64) -> f64 {
        down(self.y.place(figure / self.unit.1))
    }
}

fn title(group: &Group, chart: &Chart<'_>, unit: &str, log: bool) -> String {
    let (what, way) = (wording::figure(group.figure), wording::direction(group.figure));
    let over = wording::name(chart.parameter);
    let which = if chart.title.is_empty() { String::new() } else { format!("{}: ", chart.title) };
    let rest = if chart.left_out > 0 {
        format!("; {} more in the table", chart.left_out)
    } else {
        String::new()
    };
    let log = if log { ", logarithmic" } else { "" };
    let unit = if unit.is_empty() { String::new() } else { format!(" in {unit}") };
    format!("{which}{what}{unit} over {over} ({way}{log}{rest})")
}

fn key(chart: &Chart<'_>, page: &mut Markup) {
    if chart.series.len() < 2 {
        return;
    }
    page.tag("ul", &[("class", "key")], |page| {
        for (at, series) in chart.series.iter().enumerate() {
            page.tag("li", &[], |page| {
                let class = format!("s{at}");
                page.tag(
                    "svg",
                    &[
                        ("width", "34"),
                        ("height", "12"),
                        ("class", &class),
                        ("aria-hidden", "true"),
                    ],
                    |page| {
                        page.empty(
                            "line",
                            &[
                                ("class", "line"),
                                ("x1", "0"),
                                ("x2", "34"),
                                ("y1", "6"),
                                ("y2", "6"),
                            ],
                        );
                        page.empty("use", &[("href", &format!("#m{at}")), ("x", "17"), ("y", "6")]);
                    },
                );
                page.text(&series.name);
            });
        }
    });
}

fn draw(plot: &Plot<'_>, page: &mut Markup) {
    page.tag("div", &[("class", "plot")], |page| {
        let label = format!("Line chart: {}. The figures are in the table below.", plot.title);
        page.tag(
            "svg",
            &[("role", "img"), ("aria-label", &label), ("height", &number(HEIGHT))],
            |page| {
                page.leaf("title", &[], &plot.title);
                grid(&plot.y, page);
                labels(plot, page);
                for (at, series) in plot.chart.series.iter().enumerate() {
                    page.tag("g", &[("class", &format!("s{at}"))], |page| {
                        line(plot, series, at, page)
                    });
                }
            },
        );
    });
}

fn grid(y: &Axis, page: &mut Markup) {
    for tick in y.ticks() {
        let at = number(down(y.place(tick)));
        page.empty(
            "line",
            &[("class", "grid"), ("x1", "0"), ("x2", "100%"), ("y1", &at), ("y2", &at)],
        );
        page.leaf(
            "text",
            &[("class", "y"), ("x", "-8"), ("y", &at), ("dy", "0.35em")],
            &short(tick),
        );
    }
}

/// The values of the parameter as they were written, as many as fit beside each other.
fn labels(plot: &Plot<'_>, page: &mut Markup) {
    let points = plot.chart.series.iter().flat_map(|series| &series.points);
    let mut marks: Vec<(f64, &str)> = points.map(|point| (point.at, point.label)).collect();
    marks.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    marks.dedup_by(|(a, _), (b, _)| a == b);
    // From the far end, whose label says how far the chart goes.
    let mut free_to = f64::MAX;
    for (value, label) in marks.into_iter().rev() {
        let place = plot.x.place(value);
        let at = percent(place);
        tick(&at, page);
        let half = CHARACTER * label.chars().count() as f64 / 2.0;
        if place * NARROWEST + half <= free_to {
            page.leaf("text", &[("class", "x"), ("x", &at), ("y", &number(HEIGHT + 18.0))], label);
            free_to = place * NARROWEST - half - CHARACTER;
        }
    }
}

fn tick(at: &str, page: &mut Markup) {
    let (from, to) = (number(HEIGHT), number(HEIGHT + 4.0));
    page.empty("line", &[("class", "tick"), ("x1", at), ("x2", at), ("y1", &from), ("y2", &to)]);
}

fn line(plot: &Plot<'_>, series: &Series<'_>, mark: usize, page: &mut Markup) {
    let place = |point: &Point<'_>| {
        format!(
            "{},{}",
            number(plot.x.place(point.at) * 1000.0),
            number(plot.height(point.found.median))
        )
    };
    let path: Vec<String> = series.points.iter().map(place).collect();
    let view = format!("0 0 1000 {}", number(HEIGHT));
    let inner = [
        ("viewBox", view.as_str()),
        ("preserveAspectRatio", "none"),
        ("width", "100%"),
        ("height", &number(HEIGHT)),
    ];
    page.tag("svg", &inner, |page| {
        page.empty("polyline", &[("class", "line"), ("points", &path.join(" "))])
    });
    for point in &series.points {
        mark_point(plot, series, point, mark, page);
    }
}

fn mark_point(
    plot: &Plot<'_>,
    series: &Series<'_>,
    point: &Point<'_>,
    mark: usize,
    page: &mut Markup,
) {
    let at = percent(plot.x.place(point.at));
    let [low, median, high] = [point.found.low, point.found.median, point.found.high]
        .map(|value| number(plot.height(value)));
    page.empty(
        "line",
        &[("class", "interval"), ("x1", &at), ("x2", &at), ("y1", &low), ("y2", &high)],
    );
    page.tag("use", &[("href", &format!("#m{mark}")), ("x", &at), ("y", &median)], |page| {
        let scale = scale(plot.group);
        let (figure, span) =
            (scale.show(point.found.median), scale.show_range(point.found.low, point.found.high));
        page.leaf("title", &[], &format!("{}, {}: {figure} ({span})", series.name, point.label));
    });
}

fn down(place: f64) -> f64 {
    HEIGHT * (1.0 - place)
}
