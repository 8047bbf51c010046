//! What `perf script` prints, as folded stacks: `thread;caller;callee 812`, a stack and how often it was seen per line.
//!
//! ```text
//! pagemill 12345                                     thread and its number
//!             7f10a4 pread64 (/usr/lib/…/libc.so.6)   the innermost frame
//!             55d5a0 scan (/usr/bin/pagemill)         its caller, and so on
//!                                                    an empty line ends the sample
//! ```
//!
//! Callers come first in a folded stack. Invariants: what stands above the turn is cut off, and what is no part of one left
//! out; the rarest stacks of very many
//! are shortened, never dropped, so that the counts add up; no text, however strange, is more than a stack.

use std::collections::BTreeMap;

/// What every turn stands below: where it is seen without a turn, that one has not begun, or is over.
const RUN: &str = "pagemill_lab::lab::run";
/// Stacks that are kept in full.
const MOST_STACKS: usize = 400;
/// Frames that are kept of the others.
const SHORTENED: usize = 8;

/// Folds what was printed. `top` is the function below which a turn begins, and `aside` a part of names that marks samples
/// of those who watch.
pub(crate) fn fold(printed: &str, top: &str, aside: &str) -> String {
    let mut stacks: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for sample in printed.split("\n\n") {
        let Some(mut stack) = stack(sample) else { continue };
        if stack.iter().any(|frame| frame.contains(aside)) {
            continue;
        }
        match stack.iter().rposition(|frame| frame.contains(top)) {
            Some(at) => drop(stack.drain(1.min(at)..=at)),
            None if stack.iter().any(|frame| frame.contains(RUN)) => continue,
            None => {}
        }
        *stacks.entry(stack).or_default() += 1;
    }
    lines(shortened(stacks))
}

/// Thread and frames of a sample, the outermost first; `None` for what is none.
fn stack(sample: &str) -> Option<Vec<String>> {
    let mut lines = sample.lines().filter(|line| !line.trim().is_empty());
    // A thread's name may have spaces, its number has none.
    let thread = lines.next()?.trim().rsplit_once(' ')?.0.trim();
    let mut frames: Vec<String> = lines.filter_map(frame).collect();
    if frames.is_empty() {
        return None;
    }
    frames.push(plain(thread));
    frames.reverse();
    Some(frames)
}

/// The function of a line, or where it is from if it has no name.
fn frame(line: &str) -> Option<String> {
    let (_address, rest) = line.trim().split_once(' ')?;
    let (symbol, file) = rest.rsplit_once(" (").unwrap_or((rest, ""));
    let file = file.trim_end_matches(')').rsplit('/').next().unwrap_or_default();
    Some(match symbol.trim() {
        "" | "[unknown]" if !file.is_empty() => {
            format!("[{}]", plain(file.trim_matches(['[', ']'])))
        }
        symbol => plain(symbol),
    })
}

/// A name that breaks no folded stack.
fn plain(name: &str) -> String {
    let replaced = |ch: char| if ch == ';' || ch.is_control() { '_' } else { ch };
    name.chars().map(replaced).collect()
}

fn shortened(stacks: BTreeMap<Vec<String>, u64>) -> BTreeMap<Vec<String>, u64> {
    let mut by_weight: Vec<(Vec<String>, u64)> = stacks.into_iter().collect();
    by_weight.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut kept = BTreeMap::new();
    for (place, (mut stack, count)) in by_weight.into_iter().enumerate() {
        if place >= MOST_STACKS {
            stack.truncate(SHORTENED);
        }
        *kept.entry(stack).or_default() += count;
    }
    kept
}

fn lines(stacks: BTreeMap<Vec<String>, u64>) -> String {
    stacks.into_iter().map(|(stack, count)| format!("{} {count}\n", stack.join(";"))).collect()
}

#[cfg(test)]
mod tests;
