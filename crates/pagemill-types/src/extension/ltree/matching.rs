//! Whether labels are what a query says: one label by one variant, a path by an `lquery`.
//!
//! The items of a query are gone through once. For each it is known after how many labels it may begin, and of these and of the labels
//! that are as it says follows where the next one may begin; so a match takes no more steps than items times labels, and no recursion.
//!
//! Invariant: the answer is the server's, which tries one way after the other.
//!
//! Source: `contrib/ltree/lquery_op.c`, PostgreSQL 14 to 18. Older minor versions fold as many bytes of the label as the pattern has, so
//! they differ where folding changes a letter's length; this follows the newest ones.

use pagemill_format::error::Result;

use crate::extension::call::Letters;

use super::labels::folded;
use super::path::Path;
use super::query::{ANY_CASE, Item, Items, PREFIX, Variant, WORDS};

/// True where a path is what an `lquery` says.
///
/// # Errors
/// When the query is damaged.
pub(super) fn matches(letters: &dyn Letters, path: &Path<'_>, query: &[u8]) -> Result<bool> {
    let labels = &path.labels;
    let mut starts = vec![false; labels.len() + 1];
    if let Some(first) = starts.first_mut() {
        *first = true;
    }
    for item in Items::open(query)? {
        starts = item_ends(letters, &item?, labels, &starts);
        if !starts.contains(&true) {
            return Ok(false);
        }
    }
    Ok(starts.last().is_some_and(|end| *end))
}

/// After how many labels an item may end that may begin after those.
fn item_ends(
    letters: &dyn Letters,
    item: &Item<'_>,
    labels: &[&[u8]],
    starts: &[bool],
) -> Vec<bool> {
    let (low, high) = item.repetitions();
    let (low, high) = (usize::from(low), usize::from(high));
    let runs = runs(letters, item, labels, &Reach { starts, high });
    // Where ranges of ends begin and stop.
    let mut steps = vec![0i64; labels.len() + 2];
    for (start, run) in starts.iter().zip(&runs).enumerate().filter_map(started) {
        let most = high.min(run);
        if low <= most {
            change(&mut steps, start + low, 1);
            change(&mut steps, start + most + 1, -1);
        }
    }
    let add = |open: &mut i64, step: &i64| {
        *open += step;
        Some(*open > 0)
    };
    steps.iter().take(labels.len() + 1).scan(0, add).collect()
}

fn started((at, (may, run)): (usize, (&bool, &usize))) -> Option<(usize, usize)> {
    may.then_some((at, *run))
}

fn change(steps: &mut [i64], at: usize, by: i64) {
    if let Some(step) = steps.get_mut(at) {
        *step += by;
    }
}

/// What labels an item may see at all.
struct Reach<'a> {
    starts: &'a [bool],
    high: usize,
}

/// For each place, how many labels from there on are as an item says; labels out of its reach are not asked about.
fn runs(letters: &dyn Letters, item: &Item<'_>, labels: &[&[u8]], reach: &Reach<'_>) -> Vec<usize> {
    let mut last_start = None;
    let mut runs = vec![0; labels.len() + 1];
    for (at, ((label, may_start), run)) in
        labels.iter().zip(reach.starts).zip(&mut runs).enumerate()
    {
        if *may_start {
            last_start = Some(at);
        }
        let is_near = last_start.is_some_and(|start| at - start < reach.high);
        *run = usize::from(is_near && item_allows(letters, item, label));
    }
    let mut length = 0;
    for run in runs.iter_mut().rev() {
        length = if *run == 0 { 0 } else { length + 1 };
        *run = length;
    }
    runs
}

/// True where a label is as an item says, however often.
fn item_allows(letters: &dyn Letters, item: &Item<'_>, label: &[u8]) -> bool {
    let is_any = |variant: &Variant<'_>| variant_allows(letters, variant, label);
    (item.variants.is_empty() || item.variants.iter().any(is_any)) != item.is_negated()
}

/// True where a label is as a variant says.
pub(super) fn variant_allows(letters: &dyn Letters, variant: &Variant<'_>, label: &[u8]) -> bool {
    let is_like = |wanted, found| is_like(letters, Variant { text: wanted, ..*variant }, found);
    if !variant.has(WORDS) {
        return is_like(variant.text, label);
    }
    // A variant without a word is like every label.
    words(variant.text).all(|wanted| words(label).any(|found| is_like(wanted, found)))
}

fn words(label: &[u8]) -> impl Iterator<Item = &[u8]> {
    label.split(|byte| *byte == b'_').filter(|word| !word.is_empty())
}

fn is_like(letters: &dyn Letters, wanted: Variant<'_>, found: &[u8]) -> bool {
    let is_same = |wanted: &[u8], found: &[u8], is_prefix: bool| {
        if is_prefix { found.starts_with(wanted) } else { found == wanted }
    };
    let is_prefix = wanted.has(PREFIX);
    is_same(wanted.text, found, is_prefix)
        || wanted.has(ANY_CASE)
            && is_same(&folded(letters, wanted.text), &folded(letters, found), is_prefix)
}
