//! How alike two texts are: the share of trigrams that they have in common, of whole texts or of the part of one that fits the other best.
//!
//! The best part is looked for in one walk over the text, whose window grows at its end and is cut at its begin wherever that makes it more
//! alike. That does not always find the best of all parts; what it finds is what the server finds.
//!
//! Invariant: the walk's states are those of the server's, so that every number is the same.
//! Source: `cnt_sml`, `calc_word_similarity` and `iterate_word_similarity` in `contrib/pg_trgm/trgm_op.c`, PostgreSQL 14 to 18.

use super::extract::{Place, distinct, places};
use crate::extension::call::Letters;

/// Where the part of a text that is compared may begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// At any trigram: `word_similarity`.
    AnyTrigrams,
    /// Where words do: `strict_word_similarity`.
    WholeWords,
}

/// `similarity`: from 0 to 1.
pub fn similarity(letters: &dyn Letters, first: &str, second: &str) -> f32 {
    let (first, second) = (distinct(letters, first), distinct(letters, second));
    if first.is_empty() || second.is_empty() {
        return 0.0;
    }
    let shared = first.iter().filter(|trigram| second.binary_search(trigram).is_ok()).count();
    ratio(shared as i64, first.len() as i64, second.len() as i64)
}

fn ratio(shared: i64, first: i64, second: i64) -> f32 {
    shared as f32 / (first + second - shared) as f32
}

/// `word_similarity` and `strict_word_similarity`: how alike the pattern and the best part of the text are. Once `enough` is reached
/// nothing better is looked for.
pub fn word_similarity(
    letters: &dyn Letters,
    (pattern, text): (&str, &str),
    extent: Extent,
    enough: Option<f64>,
) -> f32 {
    let pattern = distinct(letters, pattern);
    let text = places(letters, text);
    let mut kinds: Vec<_> = text.iter().map(|place| place.trigram).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let kind = |place: &Place| kinds.binary_search(&place.trigram).unwrap_or_default();
    let steps: Vec<_> = text
        .iter()
        .map(|place| Step {
            kind: kind(place),
            is_wanted: pattern.binary_search(&place.trigram).is_ok(),
            may_begin: extent == Extent::AnyTrigrams || place.is_first,
            may_end: extent == Extent::WholeWords && place.is_last,
        })
        .collect();
    let mut window = Window {
        last: vec![None; kinds.len()],
        begin: (extent == Extent::WholeWords).then_some(0),
        steps,
        wanted: pattern.len() as i64,
        kinds: 0,
        shared: 0,
    };
    window.best(extent, enough)
}

/// A trigram of the text.
struct Step {
    /// Its number among the different trigrams of the text.
    kind: usize,
    /// True where the pattern has it.
    is_wanted: bool,
    may_begin: bool,
    may_end: bool,
}

/// The part of the text that is looked at.
struct Window {
    steps: Vec<Step>,
    /// How many different trigrams the pattern has.
    wanted: i64,
    /// Where each trigram was last seen.
    last: Vec<Option<usize>>,
    begin: Option<usize>,
    /// How many different trigrams are in the window.
    kinds: i64,
    /// How many of these the pattern has.
    shared: i64,
}

impl Window {
    fn best(&mut self, extent: Extent, enough: Option<f64>) -> f32 {
        let mut best = 0.0;
        for at in 0..self.steps.len() {
            let Some(step) = self.steps.get(at) else { break };
            let (is_wanted, may_end) = (step.is_wanted, step.may_end);
            if self.begin.is_some() || is_wanted {
                self.see(at);
            }
            if !(may_end || extent == Extent::AnyTrigrams && is_wanted) {
                continue;
            }
            let here = self.cut(at);
            best = if best > here { best } else { here };
            if enough.is_some_and(|enough| f64::from(best) >= enough) {
                break;
            }
        }
        best
    }

    /// Takes the trigram of this place into the window.
    fn see(&mut self, at: usize) {
        let Some(step) = self.steps.get(at) else { return };
        let Some(last) = self.last.get_mut(step.kind) else { return };
        if last.is_none() {
            self.kinds += 1;
            self.shared += i64::from(step.is_wanted);
        }
        *last = Some(at);
    }

    /// Moves the begin to where the window up to `end` is most alike to the pattern. How alike that is.
    fn cut(&mut self, end: usize) -> f32 {
        let begin = match self.begin {
            Some(begin) => begin,
            None => {
                self.kinds = 1;
                *self.begin.insert(end)
            }
        };
        let mut best = ratio(self.shared, self.wanted, self.kinds);
        let (mut kinds, mut shared, mut moved) = (self.kinds, self.shared, begin);
        for (at, step) in self.steps.iter().enumerate().take(end + 1).skip(begin) {
            let here = ratio(shared, self.wanted, kinds);
            if step.may_begin && here > best {
                (best, self.kinds, self.shared, moved) = (here, kinds, shared, at);
            }
            if self.last.get(step.kind) == Some(&Some(at)) {
                kinds -= 1;
                shared -= i64::from(step.is_wanted);
            }
        }
        self.begin = Some(moved);
        self.forget(begin, moved);
        best
    }

    /// Forgets what was last seen before the begin.
    fn forget(&mut self, from: usize, to: usize) {
        for (at, step) in self.steps.iter().enumerate().take(to).skip(from) {
            if let Some(last) = self.last.get_mut(step.kind).filter(|last| **last == Some(at)) {
                *last = None;
            }
        }
    }
}
