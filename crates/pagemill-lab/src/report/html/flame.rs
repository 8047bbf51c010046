//! Flame graphs out of folded stacks: `main;scan;pread 812`, one stack and its weight per line.
//!
//! Callers stand above what they call. Each frame is a small picture of its own, placed by percentages, which cuts its
//! label off by itself. Invariants: the depth is bounded, so that no input exhausts the stack or the page; lines that
//! are no stacks are counted and told; the heaviest functions stand in a table beside the picture.
//!
//! Why not the crate inferno: it is licensed CDDL-1.0, which `deny.toml` refuses, and each of its pictures brings a script
//! and fixed ids (`frames`, `search`, `details`), of which a page can hold one. Our report has a picture per contestant.

use std::collections::BTreeMap;

use crate::report::units::digits;
use crate::report::wording::number_of;

use super::markup::{Markup, number, percent};
use super::tables::{self, Field};

/// Frames of a stack that are kept; what lies deeper counts as the last of them.
const DEEPEST: usize = 60;
/// Frames narrower than this share are left out of the picture.
const NARROWEST: f64 = 0.002;
/// Functions in the table.
const MOST_FUNCTIONS: usize = 20;
/// Height of a frame in pixels of CSS.
const ROW: f64 = 18.0;

/// A frame: its name, the weight of the stacks through it and of those that end in it.
#[derive(Debug, Default)]
struct Frame<'a> {
    name: &'a str,
    total: f64,
    own: f64,
    depth: usize,
    callees: BTreeMap<&'a str, usize>,
}

/// All stacks as a tree; the first frame holds the others.
#[derive(Debug)]
struct Tree<'a> {
    frames: Vec<Frame<'a>>,
    strange: usize,
}

/// Writes the flame graph of a cell.
pub(super) fn write(cell: &str, folded: &str, page: &mut Markup) {
    let tree = read(folded);
    let total = tree.frames.first().map_or(0.0, |root| root.total);
    if total <= 0.0 {
        page.leaf("p", &[("class", "note")], &format!("{cell}: the profile holds no stacks."));
        return;
    }
    page.tag("figure", &[("class", "flame")], |page| {
        page.leaf("figcaption", &[], &format!("{cell}: where the processor's time went"));
        picture(cell, &tree, total, page);
    });
    let caption = format!("{cell}: the heaviest functions");
    let header = ["function", "itself", "with what it calls"];
    tables::write(&caption, &header, &functions(&tree, total), page);
    if tree.strange > 0 {
        page.leaf(
            "p",
            &[("class", "note")],
            &format!("{} of the profile could not be read.", number_of(tree.strange, "line")),
        );
    }
}

fn read(folded: &str) -> Tree<'_> {
    let mut tree = Tree { frames: vec![Frame { name: "all", ..Frame::default() }], strange: 0 };
    for line in folded.lines().filter(|line| !line.trim().is_empty()) {
        let stack = line.trim().rsplit_once(' ');
        let weighed = stack.and_then(|(stack, weight)| Some((stack, weight.parse::<f64>().ok()?)));
        match weighed.filter(|(_, weight)| weight.is_finite() && *weight > 0.0) {
            Some((stack, weight)) => add(&mut tree, stack, weight),
            None => tree.strange += 1,
        }
    }
    tree
}

fn add<'a>(tree: &mut Tree<'a>, stack: &'a str, weight: f64) {
    let mut at = 0;
    weigh(tree, at, weight);
    for (depth, name) in stack.split(';').take(DEEPEST).enumerate() {
        at = callee(tree, at, name, depth + 1);
        weigh(tree, at, weight);
    }
    if let Some(last) = tree.frames.get_mut(at) {
        last.own += weight;
    }
}

fn weigh(tree: &mut Tree<'_>, at: usize, weight: f64) {
    if let Some(frame) = tree.frames.get_mut(at) {
        frame.total += weight;
    }
}

fn callee<'a>(tree: &mut Tree<'a>, at: usize, name: &'a str, depth: usize) -> usize {
    let new = tree.frames.len();
    let found =
        tree.frames.get_mut(at).map_or(new, |frame| *frame.callees.entry(name).or_insert(new));
    if found == new {
        tree.frames.push(Frame { name, depth, ..Frame::default() });
    }
    found
}

fn picture(cell: &str, tree: &Tree<'_>, total: f64, page: &mut Markup) {
    let drawn: Vec<(&Frame<'_>, f64)> =
        places(tree).into_iter().filter(|(frame, _)| frame.total / total >= NARROWEST).collect();
    let deepest = drawn.iter().map(|(frame, _)| frame.depth).max().unwrap_or(0);
    let height = number(ROW * (deepest + 1) as f64);
    let label = format!("Flame graph of {cell}. The heaviest functions are in the table below.");
    page.tag("svg", &[("role", "img"), ("aria-label", &label), ("height", &height)], |page| {
        for (frame, start) in drawn {
            draw(frame, start / total, total, page);
        }
    });
}

/// Every frame with the weight that lies left of it.
fn places<'t, 'a>(tree: &'t Tree<'a>) -> Vec<(&'t Frame<'a>, f64)> {
    let mut places = Vec::new();
    let mut waiting = vec![(0, 0.0)];
    while let Some((at, start)) = waiting.pop() {
        let Some(frame) = tree.frames.get(at) else { continue };
        places.push((frame, start));
        let mut next = start;
        for callee in frame.callees.values() {
            waiting.push((*callee, next));
            next += tree.frames.get(*callee).map_or(0.0, |callee| callee.total);
        }
    }
    places
}

fn draw(frame: &Frame<'_>, start: f64, total: f64, page: &mut Markup) {
    let share = frame.total / total;
    let (x, y, width) = (percent(start), number(ROW * frame.depth as f64), percent(share));
    let class = format!("f{}", hue(frame.name));
    let place =
        [("x", x.as_str()), ("y", &y), ("width", &width), ("height", "17"), ("class", &class)];
    page.tag("svg", &place, |page| {
        page.leaf("title", &[], &format!("{}: {} %", frame.name, digits(share * 100.0)));
        page.empty("rect", &[("width", "100%"), ("height", "17")]);
        if share > 0.03 {
            page.leaf("text", &[("x", "4"), ("y", "12.5")], frame.name);
        }
    });
}

/// One of five tones, the same for a function wherever it stands.
fn hue(name: &str) -> u32 {
    name.bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(u32::from(byte))) % 5
}

/// The functions with the most weight of their own. One that calls itself counts once per stack in `own`; with what it
/// calls it counts where it stands first.
fn functions(tree: &Tree<'_>, total: f64) -> Vec<Vec<Field>> {
    let mut weights: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    collect(tree, &mut weights);
    let mut sorted: Vec<(&str, (f64, f64))> =
        weights.into_iter().filter(|(_, (own, _))| *own > 0.0).collect();
    sorted.sort_by(|(_, (a, _)), (_, (b, _))| b.total_cmp(a));
    let share = |weight: f64| {
        Field::number(Some(weight / total), |share| format!("{} %", digits(share * 100.0)))
    };
    let row =
        |(name, (own, all)): (&str, (f64, f64))| vec![Field::text(name), share(own), share(all)];
    sorted.into_iter().take(MOST_FUNCTIONS).map(row).collect()
}

fn collect<'a>(tree: &Tree<'a>, weights: &mut BTreeMap<&'a str, (f64, f64)>) {
    // Each waiting frame brings the names above it, at most DEEPEST of them.
    let mut waiting: Vec<(usize, Vec<&'a str>)> = vec![(0, Vec::new())];
    while let Some((at, above)) = waiting.pop() {
        let Some(frame) = tree.frames.get(at) else { continue };
        if at > 0 {
            let weight = weights.entry(frame.name).or_default();
            weight.0 += frame.own;
            weight.1 += if above.contains(&frame.name) { 0.0 } else { frame.total };
        }
        let below: Vec<&str> =
            above.iter().copied().chain([frame.name].into_iter().filter(|_| at > 0)).collect();
        waiting.extend(frame.callees.values().map(|callee| (*callee, below.clone())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_add_up_and_strange_lines_are_counted() {
        let tree = read("main;scan;pread 6\nmain;scan 3\nmain;print 1\nnonsense\nmain -4\n\n");
        let of = |name: &str| {
            tree.frames
                .iter()
                .find(|frame| frame.name == name)
                .map(|frame| (frame.total, frame.own, frame.depth))
        };
        assert_eq!(
            (of("main"), of("scan"), of("pread")),
            (Some((10.0, 0.0, 1)), Some((9.0, 3.0, 2)), Some((6.0, 6.0, 3)))
        );
        assert_eq!(tree.strange, 2);
    }

    #[test]
    fn a_function_that_calls_itself_is_not_counted_twice() {
        let tree = read("f;f;g 4");
        let mut weights = BTreeMap::new();
        collect(&tree, &mut weights);
        assert_eq!(weights, BTreeMap::from([("f", (0.0, 4.0)), ("g", (4.0, 4.0))]));
    }

    #[test]
    fn deep_stacks_are_cut() {
        let deep = format!("{} 1", vec!["f"; 10_000].join(";"));
        let mut page = Markup::default();
        write("cell", &deep, &mut page);
        assert_eq!(read(&deep).frames.len(), DEEPEST + 1);
        assert!(page.finish().len() < 40_000);
    }

    #[test]
    fn callees_lie_beside_each_other_under_their_caller() {
        let tree = read("m;a 1\nm;b 3");
        let start = |name: &str| {
            places(&tree).iter().find(|(frame, _)| frame.name == name).map(|(_, start)| *start)
        };
        assert_eq!((start("m"), start("a"), start("b")), (Some(0.0), Some(0.0), Some(1.0)));
    }
}
