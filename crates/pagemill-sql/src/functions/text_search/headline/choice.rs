//! Which parts of a text become its headline.
//!
//! Without fragments it is one part: that which has most words of the query, longer or shorter so that it has as many words as
//! asked for and ends well. With fragments they are several, each grown to both sides.
//!
//! Source: `mark_hl_words`, `mark_hl_fragments`, `get_next_fragment` and `mark_fragment` in
//! `src/backend/tsearch/wparser_def.c`, PostgreSQL 14 to 18.

use super::super::super::rows::Outcome;
use super::super::parser::Kind;
use super::covers::Covers;
use super::options::Options;
use super::words::Word;

pub(super) struct Choice<'t, 'o> {
    pub(super) words: Vec<Word<'t>>,
    pub(super) options: &'o Options,
}

/// A part of a text: its first word and the one behind its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    start: usize,
    end: usize,
    /// How many words it has, and how many of the query.
    words: i32,
    wanted: i32,
}

/// A part that may become a fragment.
struct Candidate {
    part: Part,
    is_gone: bool,
}

impl Choice<'_, '_> {
    fn counts(&self, at: usize) -> i32 {
        i32::from(!self.words[at].counts_not())
    }

    fn wanted(&self, at: usize) -> i32 {
        i32::from(self.words[at].is_wanted())
    }

    fn is_bad_end(&self, at: usize) -> bool {
        self.words[at].is_bad_end(self.options.longest_short)
    }

    /// Adds a word to the counts of a part.
    fn count(&self, part: &mut Part, at: usize) {
        part.words += self.counts(at);
        part.wanted += self.wanted(at);
    }

    /// As many words as a headline has at least, from the first on.
    fn beginning(&self) -> Part {
        let mut part = Part { start: 0, end: 0, words: 0, wanted: 0 };
        while part.end < self.words.len() && part.words < self.options.least_words {
            part.words += self.counts(part.end);
            part.end += 1;
        }
        part
    }

    /// Marks the words of a part.
    fn mark(&mut self, part: Part) {
        let is_all = self.options.is_all;
        for word in &mut self.words[part.start..part.end] {
            word.is_selected |= word.node.is_some();
            if !is_all && word.kind == Kind::Tag {
                word.is_replaced = true;
            } else if word.has_parts() {
                word.is_skipped = true;
            }
            word.is_inside = !word.is_repeated;
        }
    }

    /// Marks the best part, or the whole text where that is asked for.
    pub(super) fn mark_best(&mut self, mut covers: Covers<'_>) -> Outcome<()> {
        if self.options.is_all {
            let end = self.words.len();
            self.mark(Part { start: 0, end, words: 0, wanted: 0 });
            return Ok(());
        }
        let mut best: Option<(Part, bool)> = None;
        while let Some(cover) = covers.next(&self.words)? {
            let part = self.fitted(cover);
            let is_whole = part.start <= cover.0 && part.end > cover.1;
            let is_better = best.is_none_or(|(known, known_whole)| {
                let order = (is_whole, part.wanted).cmp(&(known_whole, known.wanted));
                let ends_better = || !self.is_bad_last(part) && self.is_bad_last(known);
                order.is_gt() || order.is_eq() && ends_better()
            });
            if is_better {
                best = Some((part, is_whole));
            }
        }
        let part = best.map_or_else(|| self.beginning(), |(part, _)| part);
        self.mark(part);
        Ok(())
    }

    fn is_bad_last(&self, part: Part) -> bool {
        part.end.checked_sub(1).is_some_and(|last| self.is_bad_end(last))
    }

    /// A cover as a headline of the wanted length.
    fn fitted(&self, (first, last): (usize, usize)) -> Part {
        let mut part = Part { start: first, end: first, words: 0, wanted: 0 };
        while part.end <= last && part.words < self.options.most_words {
            part.end += 1;
            let last = part.end - 1;
            self.count(&mut part, last);
        }
        match part.words < self.options.most_words {
            true => self.lengthened(part, last),
            false => self.shortened(part),
        }
    }

    /// Goes on to a good end, and back before the beginning if the text does not suffice.
    fn lengthened(&self, mut part: Part, last: usize) -> Part {
        let mut at = part.end - 1;
        while at < self.words.len() && part.words < self.options.most_words {
            if at > last {
                self.count(&mut part, at);
            }
            part.end = at + 1;
            if !self.is_bad_end(at) && part.words >= self.options.least_words {
                break;
            }
            at += 1;
        }
        if part.words >= self.options.least_words {
            return part;
        }
        let mut start = 0;
        for at in (0..part.start).rev() {
            self.count(&mut part, at);
            let is_full = part.words >= self.options.most_words;
            let is_good = !self.is_bad_end(at) && part.words >= self.options.least_words;
            if is_full || is_good {
                start = at;
                break;
            }
        }
        Part { start, ..part }
    }

    /// Back to a good end.
    fn shortened(&self, mut part: Part) -> Part {
        while part.words > self.options.least_words && part.end > 0 {
            let last = part.end - 1;
            if !self.is_bad_end(last) {
                break;
            }
            part.words -= self.counts(last);
            part.wanted -= self.wanted(last);
            part.end = last;
        }
        part
    }

    /// Marks the best parts.
    pub(super) fn mark_fragments(&mut self, mut covers: Covers<'_>) -> Outcome<()> {
        let mut candidates = Vec::new();
        while let Some((first, last)) = covers.next(&self.words)? {
            let mut start = first;
            while start <= last {
                let part = self.fragment(start, last);
                start = part.end;
                candidates.push(Candidate { part, is_gone: false });
            }
        }
        let mut is_marked = false;
        for _ in 0..self.options.most_fragments {
            let open = candidates.iter().enumerate().filter(|(_, candidate)| !candidate.is_gone);
            let rank = |part: Part| (std::cmp::Reverse(part.wanted), part.words);
            let Some((number, _)) = open.min_by_key(|(_, candidate)| rank(candidate.part)) else {
                break;
            };
            let part = self.grown(candidates[number].part);
            self.mark(part);
            is_marked = true;
            candidates[number].is_gone = true;
            for Candidate { part: other, is_gone } in &mut candidates {
                *is_gone |= other.start < part.end && other.end > part.start;
            }
        }
        if !is_marked {
            let part = self.beginning();
            self.mark(part);
        }
        Ok(())
    }

    /// The next part of a cover that is not too long, with words of the query at both ends.
    fn fragment(&self, from: usize, last: usize) -> Part {
        let start = (from..=last).find(|at| self.words[*at].is_wanted()).unwrap_or(last);
        let mut part = Part { start, end: start, words: 0, wanted: 0 };
        while part.end <= last && part.words < self.options.most_words {
            part.end += 1;
            let last = part.end - 1;
            self.count(&mut part, last);
        }
        if last > part.end {
            // One word more than was counted, as the server has it.
            let mut at = part.end;
            while at > start && !self.words[at].is_wanted() {
                part.words -= self.counts(at);
                at -= 1;
            }
            part.end = at + 1;
        } else {
            part.end = last + 1;
        }
        part
    }

    /// A fragment with words to both sides, but none that are marked.
    fn grown(&self, mut part: Part) -> Part {
        if part.words >= self.options.most_words {
            return part;
        }
        let most = (self.options.most_words - part.words) / 2;
        let (mut start, mut more) = (part.start, 0);
        while start > 0 && more < most && !self.words[start - 1].is_inside {
            start -= 1;
            more += self.counts(start);
        }
        part.words += more;
        while start < part.start && self.is_bad_end(start) {
            part.words -= self.counts(start);
            start += 1;
        }
        part.start = start;
        let mut end = part.end;
        let most_words = self.options.most_words;
        while end < self.words.len() && part.words < most_words && !self.words[end].is_inside {
            part.words += self.counts(end);
            end += 1;
        }
        while end > part.end && self.is_bad_end(end - 1) {
            end -= 1;
            part.words -= self.counts(end);
        }
        Part { end, ..part }
    }
}
