//! The parts of a text that meet a query, each as short as it can be.
//!
//! PostgreSQL 16 and newer look where the words and phrases of the query are, and take what spans one of each; those before
//! try all parts that begin and end with words of the query, up to a length.
//!
//! Source: `hlCover` in `src/backend/tsearch/wparser_def.c`, PostgreSQL 14 to 18.

use super::super::super::rows::Outcome;
use super::super::matching::{Found, is_met, located};
use super::super::query::Query;
use super::options::Options;
use super::words::Word;

/// Finds one part after the other.
pub(super) struct Covers<'q> {
    query: &'q Query<'q>,
    /// What has to be spanned; none in versions that do not look for it.
    spans: Option<Vec<Found>>,
    /// The place or, without spans, the word where it goes on.
    next: usize,
    longest: usize,
}

impl<'q> Covers<'q> {
    pub(super) fn new(
        query: &'q Query<'q>,
        words: &[Word<'_>],
        options: &Options,
    ) -> Outcome<Self> {
        let spans = match options.major >= 16 {
            true if query.nodes.is_empty() => Some(Vec::new()),
            true => Some(located(query, words)?),
            false => None,
        };
        let fragments = i64::from(options.most_fragments.max(1));
        let longest = (i64::from(options.most_words) * 10).max(100).saturating_mul(fragments);
        let longest = usize::try_from(longest).unwrap_or(usize::MAX);
        Ok(Self { query, spans, next: 0, longest })
    }

    /// The first and the last word of the next part.
    pub(super) fn next(&mut self, words: &[Word<'_>]) -> Outcome<Option<(usize, usize)>> {
        match &self.spans {
            _ if self.query.nodes.is_empty() => Ok(None),
            Some(spans) => {
                let (mut from, query) = (self.next as i64, self.query);
                while let Some((first, last)) = span(spans, from) {
                    let first = first.max(from);
                    from = first + 1;
                    let Some(found) = words_within(words, (first, last)) else { continue };
                    if is_met(query, &words[found.0..=found.1])? {
                        self.next = usize::try_from(from).unwrap_or(usize::MAX);
                        return Ok(Some(found));
                    }
                }
                Ok(None)
            }
            None => self.next_tried(words),
        }
    }

    fn next_tried(&mut self, words: &[Word<'_>]) -> Outcome<Option<(usize, usize)>> {
        let wanted_from = |from: usize| (from..words.len()).find(|at| words[*at].node.is_some());
        let mut start = wanted_from(self.next);
        while let Some(first) = start {
            let mut end = Some(first);
            while let Some(last) = end.filter(|last| *last == first || last - first < self.longest)
            {
                if is_met(self.query, &words[first..=last])? {
                    self.next = first + 1;
                    return Ok(Some((first, last)));
                }
                end = wanted_from(last + 1);
            }
            start = wanted_from(first + 1);
        }
        Ok(None)
    }
}

/// The shortest range of places from there on in which one of each is.
fn span(spans: &[Found], from: i64) -> Option<(i64, i64)> {
    let mut last = -1;
    for one in spans {
        let end = one.places.iter().map(|at| i64::from(*at)).find(|at| *at >= from)?;
        last = last.max(end);
    }
    if last < 0 {
        return None;
    }
    let mut first = i64::from(i32::MAX) - 1;
    for one in spans {
        let starts = one.places.iter().rev().map(|at| i64::from(*at) - i64::from(one.width));
        first = first.min({ starts }.find(|at| *at <= last).unwrap_or(-1));
    }
    Some((first, last))
}

/// The words of the query in a range of places.
fn words_within(words: &[Word<'_>], (first, last): (i64, i64)) -> Option<(usize, usize)> {
    if first > last {
        return None;
    }
    let (mut start, mut end) = (None, None);
    for (at, word) in words.iter().enumerate().filter(|(_, word)| word.node.is_some()) {
        let place = i64::from(word.place);
        if start.is_none() && place >= first {
            start = Some(at);
        }
        if place > last {
            break;
        }
        end = Some(at);
    }
    start.zip(end).filter(|(start, end)| start <= end)
}
