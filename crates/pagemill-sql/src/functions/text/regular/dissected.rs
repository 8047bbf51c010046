//! What the groups of a match have taken: a match taken apart, from the outside to the inside.
//!
//! ```text
//! one behind the other ─► the first as long as it can be, or as short, so that the second matches the rest; then each
//! one of several       ─► the first that matches it
//! repeated             ─► texts that each match, as long as they can be or as short, up to the end; then the last
//! ```
//!
//! Invariant: what is taken apart matches as a whole. Where a part could not be looked up, or all of it takes too long, nothing is told:
//! whether it would have matched is not known.
//!
//! Source: `cdissect`, `ccondissect`, `crevcondissect`, `caltdissect`, `citerdissect` and `creviterdissect` in
//! `src/backend/regex/regexec.c`, PostgreSQL 14 to 18.

use std::ops::Range;

use super::ends::Ends;
use super::parts::{Amount, Content, Part};
use super::search::Places;
use super::syntax::Node;

/// Bytes that may be looked at for one match.
const MOST_LOOKED_AT: usize = 20_000_000;

/// A pattern made ready to be taken apart.
pub(super) struct Dissector(Piece);

/// A part, with the ends of its matches.
struct Piece {
    ends: Ends,
    is_shortest: bool,
    groups: Vec<usize>,
    within: Within,
}

enum Within {
    Plain,
    Pair(Box<[Piece; 2]>),
    Either(Vec<Piece>),
    Repeat(Box<Piece>, Times),
}

/// How often a part is there.
#[derive(Clone, Copy)]
struct Times {
    least: u32,
    most: Option<u32>,
}

impl Dissector {
    /// Nothing for a pattern that is too large. The ends of each part are those that `ends` makes of it.
    pub(super) fn new(part: &Part, ends: &impl Fn(Node) -> Option<Ends>) -> Option<Self> {
        Piece::new(part, ends).map(Self)
    }

    /// What the groups of a match have taken; nothing where that takes too long.
    pub(super) fn places(
        &mut self,
        text: &str,
        whole: Range<usize>,
        groups: usize,
    ) -> Option<Places> {
        let starts = text[whole.clone()].char_indices().map(|(at, _)| whole.start + at);
        let bytes: Vec<usize> = starts.chain([whole.end]).collect();
        let end = bytes.len() - 1;
        let mut found = vec![None; groups + 1];
        found[0] = Some(whole);
        let mut dissection = Dissection { text, bytes, found, looked_at: 0 };
        dissection.piece(&mut self.0, 0..end)?;
        (dissection.looked_at <= MOST_LOOKED_AT).then_some(dissection.found)
    }
}

impl Piece {
    fn new(part: &Part, ends: &impl Fn(Node) -> Option<Ends>) -> Option<Self> {
        let made = |part: &Part| Self::new(part, ends);
        let within = match &part.content {
            Content::Plain(_) => Within::Plain,
            Content::Pair(pair) => Within::Pair(Box::new([made(&pair[0])?, made(&pair[1])?])),
            Content::Either(parts) => {
                Within::Either(parts.iter().map(made).collect::<Option<_>>()?)
            }
            Content::Repeat { of, least, most } => {
                Within::Repeat(Box::new(made(of)?), Times { least: *least, most: *most })
            }
        };
        Some(Self {
            ends: ends(part.node())?,
            is_shortest: part.flags.prefers == Some(Amount::Least),
            groups: part.groups.clone(),
            within,
        })
    }
}

/// A match that is taken apart. Places in it are numbers of characters.
struct Dissection<'t> {
    text: &'t str,
    /// Where each character begins, and where the match ends.
    bytes: Vec<usize>,
    found: Places,
    /// Bytes; beyond the limit, too, once a search was given up.
    looked_at: usize,
}

impl Dissection<'_> {
    fn piece(&mut self, piece: &mut Piece, whole: Range<usize>) -> Option<()> {
        for group in &piece.groups {
            self.found[*group] = Some(self.bytes[whole.start]..self.bytes[whole.end]);
        }
        match &mut piece.within {
            Within::Plain => Some(()),
            Within::Pair(pair) => self.pair(pair, whole),
            Within::Either(pieces) => {
                let is_it = |piece: &mut Piece| self.matches(piece, whole.clone());
                let which = pieces.iter_mut().position(is_it)?;
                self.piece(&mut pieces[which], whole)
            }
            Within::Repeat(piece, times) => {
                let last = match piece.is_shortest {
                    true if times.least == 0 && whole.is_empty() => None,
                    true => self.last_of_shortest(piece, *times, whole.clone()),
                    false => self.last_of_longest(piece, *times, whole.clone()),
                };
                match last {
                    Some(last) => self.piece(piece, last),
                    // Not even once.
                    None => (times.least == 0 && whole.is_empty()).then_some(()),
                }
            }
        }
    }

    fn pair(&mut self, [first, second]: &mut [Piece; 2], whole: Range<usize>) -> Option<()> {
        let mut bound = if first.is_shortest { whole.start } else { whole.end };
        loop {
            let middle = match first.is_shortest {
                true => self.first_end(first, whole.start, bound..whole.end)?,
                false => self.last_end(first, whole.start..bound)?,
            };
            if self.matches(second, middle..whole.end) {
                self.piece(first, whole.start..middle)?;
                return self.piece(second, middle..whole.end);
            }
            bound = match first.is_shortest {
                true => (middle < whole.end).then_some(middle + 1)?,
                false => (middle > whole.start).then(|| middle - 1)?,
            };
        }
    }

    /// The last end of a piece that begins at the start of a range, within it.
    fn last_end(&mut self, piece: &mut Piece, within: Range<usize>) -> Option<usize> {
        let end = self.looked_up(piece, within, false)?;
        self.bytes.binary_search(&end).ok()
    }

    /// The first end of a piece that begins at a place, among some.
    fn first_end(
        &mut self,
        piece: &mut Piece,
        start: usize,
        mut among: Range<usize>,
    ) -> Option<usize> {
        let first = self.looked_up(piece, start..among.end, true)?;
        let first = self.bytes.binary_search(&first).ok()?;
        match first >= among.start {
            true => Some(first),
            false => {
                among.end += 1;
                among.find(|end| self.matches(piece, start..*end))
            }
        }
    }

    fn matches(&mut self, piece: &mut Piece, whole: Range<usize>) -> bool {
        let end = whole.end;
        self.last_end(piece, whole) == Some(end)
    }

    fn looked_up(
        &mut self,
        piece: &mut Piece,
        within: Range<usize>,
        is_first: bool,
    ) -> Option<usize> {
        let bytes = self.bytes[within.start]..self.bytes[within.end];
        self.looked_at = self.looked_at.saturating_add(bytes.len() + 1);
        if self.looked_at > MOST_LOOKED_AT {
            return None;
        }
        let found = piece.ends.end(self.text, bytes, is_first);
        if found.is_none() {
            self.looked_at = usize::MAX;
        }
        found.flatten()
    }

    /// The last of the texts that a repeated piece is divided into, each as long as it can be, and none of them empty unless there
    /// would be too few.
    fn last_of_longest(
        &mut self,
        piece: &mut Piece,
        times: Times,
        whole: Range<usize>,
    ) -> Option<Range<usize>> {
        let (least, most) = times.within(&whole);
        let (mut ends, mut bound) = (vec![whole.start], whole.end);
        loop {
            let (count, start) = (ends.len(), ends[ends.len() - 1]);
            match self.last_end(piece, start..bound) {
                Some(end) if end == whole.end && count >= least => return Some(start..end),
                Some(end) if end == whole.end => ends.push(end),
                Some(end) if count < most => {
                    ends.push(end);
                    let is_needed = count < least && least - count >= whole.end - end;
                    if end > start || is_needed {
                        bound = whole.end;
                        continue;
                    }
                }
                _ => {}
            }
            // Another end of the one before, which is less.
            bound = loop {
                let (count, end) = (ends.len() - 1, ends[ends.len() - 1]);
                ends.pop();
                let start = *ends.last()?;
                let is_needed = count < least && least - count >= whole.end - start;
                if end > start && (end - 1 > start || is_needed) {
                    break end - 1;
                }
            };
        }
    }

    /// The same with each as short as it can be.
    fn last_of_shortest(
        &mut self,
        piece: &mut Piece,
        times: Times,
        whole: Range<usize>,
    ) -> Option<Range<usize>> {
        let (least, most) = times.within(&whole);
        let (mut ends, mut bound) = (vec![whole.start], whole.start);
        loop {
            let (count, start) = (ends.len(), ends[ends.len() - 1]);
            let is_needed = count < least && least - count >= whole.end - bound;
            if bound == start && bound != whole.end && !is_needed {
                bound += 1;
            }
            bound = if count >= most { whole.end } else { bound };
            match self.first_end(piece, start, bound..whole.end) {
                Some(end) if end == whole.end && count >= least => return Some(start..end),
                Some(end) if end != whole.end && count < most => {
                    ends.push(end);
                    bound = end;
                    continue;
                }
                _ => {}
            }
            // Another end of the one before, which is more.
            bound = loop {
                let end = ends.pop()?;
                if ends.is_empty() {
                    return None;
                }
                if end < whole.end {
                    break end + 1;
                }
            };
        }
    }
}

impl Times {
    /// How often a part may be there within a text: at least once, and where it is never empty at most as often as there are characters.
    fn within(self, whole: &Range<usize>) -> (usize, usize) {
        let least = self.least.max(1) as usize;
        let most = self.most.map_or(usize::MAX, |most| most as usize);
        (least, whole.len().min(most).max(least))
    }
}

#[cfg(test)]
mod tests {
    use super::super::alphabet::Alphabet;
    use super::super::search::Pattern;

    #[test]
    fn of_a_search_that_is_given_up_nothing_is_told() {
        let mut pattern = Pattern::new("(x|a)(?=b)", Alphabet::ascii()).unwrap();
        let text = |length: usize| format!("{}ab", "c".repeat(length));
        let told = pattern.find_groups(&text(100), 0).unwrap().unwrap();
        assert_eq!(told, [Some(100..101), Some(100..101)]);
        let error = pattern.find_groups(&text(20_000), 0).unwrap_err();
        assert!(error.message.contains("in so long a text"), "{}", error.message);
        assert!(pattern.find(&text(20_000), 0).unwrap().is_some());
    }
}
