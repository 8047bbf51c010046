//! Time lines of a turn: what the device moved and what the processors did meanwhile.
//!
//! Of each cell the turn nearest to its median is drawn. Invariants: all pictures of a group share their scales, so
//! that they can be held against each other; what is drawn in areas differs in pattern as well as in colour.

use crate::report::units::{Scale, digits};
use crate::results::{Cell, Group, Moment, Sample};

use super::axis::Axis;
use super::markup::{Markup, number};
use super::tables::{self, Field};

/// Height of one picture in pixels of CSS.
const HEIGHT: f64 = 64.0;
/// Points that a picture can show; more are averaged.
const MOST_POINTS: usize = 240;

/// The scales that the pictures of a group share.
struct Scales {
    time: Axis,
    rate: Axis,
    processor: Axis,
    longest: f64,
    fastest: f64,
    busiest: f64,
}

/// Writes the time lines of a group, if there are any.
pub(super) fn write(group: &Group, page: &mut Markup) {
    let followed: Vec<(&Cell, Vec<Moment>)> =
        group.cells.iter().filter_map(|cell| Some((cell, typical(group, cell)?))).collect();
    if followed.is_empty() {
        return;
    }
    let scales = scales(&followed);
    super::page::fold(page, "Device and processors over one turn", |page| {
        key(page);
        page.tag("div", &[("class", "timelines")], |page| {
            for (cell, moments) in &followed {
                picture(&cell.name, moments, &scales, page);
            }
        });
    });
    let rows: Vec<Vec<Field>> = followed.iter().map(|(cell, moments)| row(cell, moments)).collect();
    let header = [
        "cell",
        "read, mean",
        "read, most",
        "written, mean",
        "written, most",
        "user, mean",
        "system, mean",
    ];
    super::page::fold(page, "Time lines as a table", |page| {
        tables::write("The turn nearest to the median of each cell", &header, &rows, page)
    });
}

/// The moments of the followed turn whose figure is nearest to the median.
fn typical(group: &Group, cell: &Cell) -> Option<Vec<Moment>> {
    let median = group.summary(cell)?.median;
    let figures = group.figures(cell);
    let followed = cell.samples.iter().zip(figures).filter(|(sample, _)| sample.timeline.len() > 1);
    let distance = |figure: f64| (figure - median).abs();
    let (sample, _) = followed.min_by(|(_, a), (_, b)| distance(*a).total_cmp(&distance(*b)))?;
    Some(thinned(sample))
}

/// At most [`MOST_POINTS`], each the mean of its neighbours, in the order of time.
fn thinned(sample: &Sample) -> Vec<Moment> {
    let mut moments = sample.timeline.clone();
    moments.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    let size = moments.len().div_ceil(MOST_POINTS).max(1);
    moments.chunks(size).filter_map(mean).collect()
}

fn mean(chunk: &[Moment]) -> Option<Moment> {
    let count = chunk.len() as f64;
    let of = |value: fn(&Moment) -> f64| chunk.iter().map(value).sum::<f64>() / count;
    Some(Moment {
        at_s: chunk.last()?.at_s,
        read_rate: of(|moment| moment.read_rate),
        write_rate: of(|moment| moment.write_rate),
        user: of(|moment| moment.user),
        system: of(|moment| moment.system),
    })
}

fn scales(followed: &[(&Cell, Vec<Moment>)]) -> Scales {
    let most = |value: fn(&Moment) -> f64| {
        let values = followed.iter().flat_map(|(_, moments)| moments).map(value);
        values.filter(|value| value.is_finite()).fold(0.0, f64::max)
    };
    let (longest, fastest) = (most(|m| m.at_s), most(|m| m.read_rate.max(m.write_rate)));
    let busiest = most(|m| m.user + m.system);
    Scales {
        time: Axis::from_zero([longest]),
        rate: Axis::from_zero([fastest]),
        processor: Axis::from_zero([busiest]),
        longest,
        fastest,
        busiest,
    }
}

fn key(page: &mut Markup) {
    page.tag("ul", &[("class", "key")], |page| {
        for (class, text) in
            [("read", "read"), ("write", "written"), ("user", "user"), ("system", "system")]
        {
            page.tag("li", &[], |page| {
                page.tag(
                    "svg",
                    &[
                        ("width", "22"),
                        ("height", "12"),
                        ("aria-hidden", "true"),
                        ("class", "timeline"),
                    ],
                    |page| match class {
                        "read" | "write" => page.empty(
                            "line",
                            &[("class", class), ("x2", "22"), ("y1", "6"), ("y2", "6")],
                        ),
                        _ => page
                            .empty("rect", &[("class", class), ("width", "22"), ("height", "12")]),
                    },
                );
                page.text(text);
            });
        }
    });
}

fn picture(name: &str, moments: &[Moment], scales: &Scales, page: &mut Markup) {
    page.tag("figure", &[("class", "timeline")], |page| {
        page.leaf("figcaption", &[], name);
        let most = format!("up to {}", Scale::bytes_per_second().show(scales.fastest));
        panel(&format!("{name}: device over time, {most}"), &most, page, |page| {
            line("read", moments, &scales.time, &scales.rate, |moment| moment.read_rate, page);
            line("write", moments, &scales.time, &scales.rate, |moment| moment.write_rate, page);
        });
        let most = format!("up to {} processors", digits(scales.busiest));
        panel(&format!("{name}: processors over time, {most}"), &most, page, |page| {
            let user = Area { class: "user", from: |_| 0.0, to: |moment| moment.user };
            area(&user, moments, scales, page);
            let system = Area {
                class: "system",
                from: |moment| moment.user,
                to: |moment| moment.user + moment.system,
            };
            area(&system, moments, scales, page);
        });
        page.tag("p", &[("class", "span")], |page| {
            page.leaf("span", &[], "0");
            page.leaf("span", &[], &Scale::seconds().show(scales.longest));
        });
    });
}

fn panel(label: &str, most: &str, page: &mut Markup, inside: impl FnOnce(&mut Markup)) {
    page.leaf("p", &[("class", "most")], most);
    let view = format!("0 0 1000 {}", number(HEIGHT));
    let attributes = [
        ("role", "img"),
        ("aria-label", label),
        ("viewBox", view.as_str()),
        ("preserveAspectRatio", "none"),
        ("height", &number(HEIGHT)),
    ];
    page.tag("svg", &attributes, |page| {
        page.leaf("title", &[], label);
        inside(page);
    });
}

fn line(
    class: &str,
    moments: &[Moment],
    time: &Axis,
    axis: &Axis,
    value: fn(&Moment) -> f64,
    page: &mut Markup,
) {
    let points: Vec<String> =
        moments.iter().map(|moment| place(moment, time, axis, value(moment))).collect();
    page.empty("polyline", &[("class", class), ("points", &points.join(" "))]);
}

/// The area between two values of each moment.
struct Area {
    /// A class for its look.
    class: &'static str,
    /// Its lower edge, in processors.
    from: fn(&Moment) -> f64,
    /// Its upper edge, in processors.
    to: fn(&Moment) -> f64,
}

fn area(area: &Area, moments: &[Moment], scales: &Scales, page: &mut Markup) {
    let Area { class, from, to } = *area;
    let at = |moment: &Moment, value: f64| place(moment, &scales.time, &scales.processor, value);
    let there = moments.iter().map(|moment| at(moment, to(moment)));
    let back = moments.iter().rev().map(|moment| at(moment, from(moment)));
    let points: Vec<String> = there.chain(back).collect();
    page.empty("polygon", &[("class", class), ("points", &points.join(" "))]);
}

fn place(moment: &Moment, time: &Axis, axis: &Axis, value: f64) -> String {
    let height = HEIGHT - 1.0 - (HEIGHT - 2.0) * axis.place(value);
    format!("{},{}", number(time.place(moment.at_s) * 1000.0), number(height))
}

fn row(cell: &Cell, moments: &[Moment]) -> Vec<Field> {
    let values = |value: fn(&Moment) -> f64| {
        moments.iter().map(value).filter(|value| value.is_finite()).collect::<Vec<f64>>()
    };
    let mean = |value: fn(&Moment) -> f64| {
        let values = values(value);
        Some(values.iter().sum::<f64>() / values.len().max(1) as f64)
    };
    let most = |value: fn(&Moment) -> f64| values(value).into_iter().reduce(f64::max);
    let rate = |value: f64| Scale::bytes_per_second().show(value);
    vec![
        Field::text(&cell.name),
        Field::number(mean(|m| m.read_rate), rate),
        Field::number(most(|m| m.read_rate), rate),
        Field::number(mean(|m| m.write_rate), rate),
        Field::number(most(|m| m.write_rate), rate),
        Field::number(mean(|m| m.user), digits),
        Field::number(mean(|m| m.system), digits),
    ]
}
