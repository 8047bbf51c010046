//! Line charts over a numeric parameter: blocks, block sizes, depth, descriptors.
//!
//! The lines stretch with the page, text and marks do not: lines are drawn in an inner picture that is scaled in both
//! directions, everything else by percentages. Invariant: lines differ in mark and dashes as well as in colour.

use crate::report::rows::scale;
use crate::report::units::Scale;
use crate::report::wording;
use crate::results::{Figure, Group};

use super::axis::Axis;
use super::markup::{Markup, number, percent};
use super::series::{Chart, Point, Series};

/// Height of the plot in pixels of CSS.
const HEIGHT: f64 = 220.0;
/// Labels below the plot that fit on a phone.
const MOST_LABELS: usize = 8;

/// Writes one chart with its key.
pub(super) fn write(group: &Group, chart: &Chart<'_>, page: &mut Markup) {
    let title = title(group, chart);
    page.tag("figure", &[("class", "lines")], |page| {
        page.leaf("figcaption", &[], &title);
        key(chart, page);
        plot(group, chart, &title, page);
        page.leaf("p", &[("class", "axis")], &format!("{} →", wording::name(chart.parameter)));
    });
}

fn title(group: &Group, chart: &Chart<'_>) -> String {
    let (what, way) = (wording::figure(group.figure), wording::direction(group.figure));
    let over = wording::name(chart.parameter);
    let which = if chart.title.is_empty() { String::new() } else { format!("{}: ", chart.title) };
    let rest = if chart.left_out > 0 { format!("; {} more in the table", chart.left_out) } else { String::new() };
    let log = if y_axis(chart).is_log() { ", logarithmic" } else { "" };
    format!("{which}{what} over {over} ({way}{log}{rest})")
}

fn key(chart: &Chart<'_>, page: &mut Markup) {
    if chart.series.len() < 2 {
        return;
    }
    page.tag("ul", &[("class", "key")], |page| {
        for (at, series) in chart.series.iter().enumerate() {
            page.tag("li", &[], |page| {
                let class = format!("s{at}");
                page.tag("svg", &[("width", "34"), ("height", "12"), ("class", &class), ("aria-hidden", "true")], |page| {
                    page.empty("line", &[("class", "line"), ("x1", "0"), ("x2", "34"), ("y1", "6"), ("y2", "6")]);
                    page.empty("use", &[("href", &format!("#m{at}")), ("x", "17"), ("y", "6")]);
                });
                page.text(&series.name);
            });
        }
    });
}

fn plot(group: &Group, chart: &Chart<'_>, title: &str, page: &mut Markup) {
    let (x, y) = (x_axis(chart), y_axis(chart));
    page.tag("div", &[("class", "plot")], |page| {
        let label = format!("Line chart: {title}. The figures are in the table below.");
        page.tag("svg", &[("role", "img"), ("aria-label", &label), ("height", &number(HEIGHT))], |page| {
            page.leaf("title", &[], title);
            grid(group.figure, &y, page);
            labels(chart, &x, page);
            for (at, series) in chart.series.iter().enumerate() {
                page.tag("g", &[("class", &format!("s{at}"))], |page| line(series, at, &x, &y, &scale(group), page));
            }
        });
    });
}

fn grid(figure: Figure, y: &Axis, page: &mut Markup) {
    let ticks = y.ticks();
    let units = Scale::fitting(figure, ticks.iter().copied());
    for tick in ticks {
        let at = number(down(y.place(tick)));
        page.empty("line", &[("class", "grid"), ("x1", "0"), ("x2", "100%"), ("y1", &at), ("y2", &at)]);
        page.leaf("text", &[("class", "y"), ("x", "-8"), ("y", &at), ("dy", "0.35em")], &units.show_short(tick));
    }
}

/// The values of the parameter as they were written, thinned until they fit.
fn labels(chart: &Chart<'_>, x: &Axis, page: &mut Markup) {
    let mut marks: Vec<(f64, &str)> = points(chart).map(|point| (point.at, point.label)).collect();
    marks.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    marks.dedup_by(|(a, _), (b, _)| a == b);
    let every = marks.len().div_ceil(MOST_LABELS).max(1);
    for (at, (value, label)) in marks.iter().enumerate() {
        let place = percent(x.place(*value));
        let bottom = number(HEIGHT);
        let below = number(HEIGHT + 4.0);
        page.empty("line", &[("class", "tick"), ("x1", &place), ("x2", &place), ("y1", &bottom), ("y2", &below)]);
        if at % every == 0 {
            page.leaf("text", &[("class", "x"), ("x", &place), ("y", &number(HEIGHT + 18.0))], label);
        }
    }
}

fn line(series: &Series<'_>, mark: usize, x: &Axis, y: &Axis, scale: &Scale, page: &mut Markup) {
    let place = |point: &Point<'_>| format!("{},{}", number(x.place(point.at) * 1000.0), number(down(y.place(point.found.median))));
    let path: Vec<String> = series.points.iter().map(place).collect();
    let view = format!("0 0 1000 {}", number(HEIGHT));
    let inner = [("viewBox", view.as_str()), ("preserveAspectRatio", "none"), ("width", "100%"), ("height", &number(HEIGHT))];
    page.tag("svg", &inner, |page| page.empty("polyline", &[("class", "line"), ("points", &path.join(" "))]));
    for point in &series.points {
        let at = percent(x.place(point.at));
        let (low, high) = (number(down(y.place(point.found.low))), number(down(y.place(point.found.high))));
        page.empty("line", &[("class", "interval"), ("x1", &at), ("x2", &at), ("y1", &low), ("y2", &high)]);
        let height = number(down(y.place(point.found.median)));
        page.tag("use", &[("href", &format!("#m{mark}")), ("x", &at), ("y", &height)], |page| {
            let span = scale.show_range(point.found.low, point.found.high);
            let figure = scale.show(point.found.median);
            page.leaf("title", &[], &format!("{}, {}: {figure} ({span})", series.name, point.label));
        });
    }
}

fn down(place: f64) -> f64 {
    HEIGHT * (1.0 - place)
}

fn x_axis(chart: &Chart<'_>) -> Axis {
    Axis::of_parameter(&points(chart).map(|point| point.at).collect::<Vec<f64>>())
}

fn y_axis(chart: &Chart<'_>) -> Axis {
    let ends = points(chart).flat_map(|point| [point.found.low, point.found.median, point.found.high]);
    Axis::fitting(&ends.collect::<Vec<f64>>())
}

fn points<'a>(chart: &'a Chart<'_>) -> impl Iterator<Item = &'a Point<'a>> {
    chart.series.iter().flat_map(|series| &series.points)
}
