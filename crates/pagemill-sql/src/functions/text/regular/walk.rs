//! Patterns that look around or refer back to their groups, tried one way after the other.
//!
//! Which way is tried first does not matter: whether there is a match, and the longest from the first place that has any, are the
//! same for all. A group that is repeated has what its last repetition took; each begins with nothing taken. A reference to
//! a group that took nothing matches nothing, not even repeated zero times.
//!
//! Invariant: a search of too many steps is given up. References are refused where a repeated part could take nothing, or where what
//! they refer to is repeated or one of several: the server has rules of its own for what such groups have taken.
//!
//! Source: `src/backend/regex/regexec.c` (`cfindloop`, `citerdissect`, `cbrdissect`), PostgreSQL 14 to 18.

use std::ops::Range;

use super::syntax::{Look, Node, Tree};
use super::words::is_word_character;

/// A search of more is given up.
const MOST_STEPS: usize = 200_000;
/// Steps within one another.
const MOST_DEPTH: usize = 1500;

/// True for a pattern whose references have one meaning: what they refer to is there once, whatever else is chosen.
pub(super) fn can_be_walked(root: &Node) -> bool {
    let mut referred = Vec::new();
    references(root, &mut referred);
    referred.is_empty() || is_certain(root, &referred)
}

/// The groups that a part refers to.
fn references(node: &Node, found: &mut Vec<usize>) {
    match node {
        Node::Same(number) => found.push(*number),
        Node::Empty | Node::One(_) | Node::Condition(_) | Node::Look(..) => {}
        Node::Group(_, inner) | Node::Repeat { of: inner, .. } => references(inner, found),
        Node::Row(parts) | Node::Either(parts) => {
            parts.iter().for_each(|part| references(part, found));
        }
    }
}

/// True if some group of these is in a part.
fn has_any(node: &Node, groups: &[usize]) -> bool {
    match node {
        Node::Group(number, inner) => {
            number.is_some_and(|number| groups.contains(&number)) || has_any(inner, groups)
        }
        Node::Repeat { of, .. } => has_any(of, groups),
        Node::Row(parts) | Node::Either(parts) => parts.iter().any(|part| has_any(part, groups)),
        Node::Empty | Node::One(_) | Node::Condition(_) | Node::Look(..) | Node::Same(_) => false,
    }
}

/// No group that is referred to may be repeated or one of several, no reference one of several, and no repeated part empty.
fn is_certain(node: &Node, referred: &[usize]) -> bool {
    match node {
        Node::Empty | Node::One(_) | Node::Condition(_) | Node::Look(..) | Node::Same(_) => true,
        Node::Group(_, inner) => is_certain(inner, referred),
        Node::Row(parts) => parts.iter().all(|part| is_certain(part, referred)),
        Node::Either(parts) => {
            let mut within = Vec::new();
            references(node, &mut within);
            within.is_empty()
                && !has_any(node, referred)
                && parts.iter().all(|part| is_certain(part, referred))
        }
        Node::Repeat { of, most, .. } => {
            let is_something = matches!(**of, Node::Same(_)) || !may_be_empty(of);
            *most != Some(0) && is_something && !has_any(of, referred) && is_certain(of, referred)
        }
    }
}

fn may_be_empty(node: &Node) -> bool {
    match node {
        Node::Empty | Node::Condition(_) | Node::Look(..) | Node::Same(_) => true,
        Node::One(_) => false,
        Node::Row(parts) => parts.iter().all(may_be_empty),
        Node::Either(parts) => parts.iter().any(may_be_empty),
        Node::Group(_, inner) => may_be_empty(inner),
        Node::Repeat { of, least, .. } => *least == 0 || may_be_empty(of),
    }
}

/// The first place from a byte on where a pattern matches, and the longest there, or the shortest; nothing if the search is given up.
pub(super) fn walked(
    tree: &Tree,
    text: &str,
    from: usize,
    is_shortest: bool,
) -> Option<Option<Range<usize>>> {
    let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let groups = vec![None; tree.groups + 1];
    let letters: Vec<char> = text.chars().collect();
    let mut walk = Walk { letters: &letters, groups, steps: 0, depth: 0 };
    for start in places.partition_point(|at| *at < from)..places.len() {
        let mut best: Option<usize> = None;
        let last = if is_shortest { start } else { letters.len() };
        walk.node(&tree.root, start, &mut |_, end| {
            let is_better = best.is_none_or(|best| (end < best) == is_shortest);
            best = if is_better { Some(end) } else { best };
            end == last
        });
        if walk.steps > MOST_STEPS {
            return None;
        }
        if let Some(end) = best {
            return Some(Some(places[start]..places[end]));
        }
    }
    Some(None)
}

/// The last end of a part's matches that begin at one character, up to another, or the first, if there is one; nothing if the search is
/// given up.
pub(super) fn end_of(
    node: &Node,
    letters: &[char],
    within: Range<usize>,
    is_first: bool,
) -> Option<Option<usize>> {
    let mut walk = Walk { letters, groups: Vec::new(), steps: 0, depth: 0 };
    let (mut best, last): (Option<usize>, _) =
        (None, if is_first { within.start } else { within.end });
    walk.node(node, within.start, &mut |_, end| {
        let is_better = best.is_none_or(|best| (end < best) == is_first);
        if end <= within.end && is_better {
            best = Some(end);
        }
        best == Some(last)
    });
    (walk.steps <= MOST_STEPS).then_some(best)
}

struct Walk<'t> {
    letters: &'t [char],
    /// What each group has taken, by its number.
    groups: Vec<Option<(usize, usize)>>,
    steps: usize,
    depth: usize,
}

/// What follows: true ends the search.
type Next<'n> = dyn FnMut(&mut Walk<'_>, usize) -> bool + 'n;

/// A repeated part, and how often.
#[derive(Clone, Copy)]
struct Repeated<'n> {
    of: &'n Node,
    least: u32,
    most: Option<u32>,
}

impl Walk<'_> {
    /// Gives up where a search takes too long, as if it had ended.
    fn node(&mut self, node: &Node, at: usize, next: &mut Next<'_>) -> bool {
        self.steps += 1;
        if self.depth >= MOST_DEPTH {
            self.steps = MOST_STEPS + 1;
        }
        if self.steps > MOST_STEPS {
            return true;
        }
        self.depth += 1;
        let is_done = self.tried(node, at, next);
        self.depth -= 1;
        is_done
    }

    fn tried(&mut self, node: &Node, at: usize, next: &mut Next<'_>) -> bool {
        match node {
            Node::Empty => next(self, at),
            Node::One(set) => {
                let is_it = self.letters.get(at).is_some_and(|letter| set.has(*letter));
                is_it && next(self, at + 1)
            }
            Node::Condition(condition) => self.holds(condition, at) && next(self, at),
            Node::Look(look, inner) => self.looks(*look, inner, at) && next(self, at),
            Node::Same(number) => match self.end_of_same(*number, at) {
                Some(end) => next(self, end),
                None => false,
            },
            Node::Group(None, inner) => self.node(inner, at, next),
            Node::Group(Some(number), inner) => self.group((*number, inner), at, next),
            Node::Row(parts) => self.row(parts, at, next),
            Node::Either(branches) => branches.iter().any(|branch| self.node(branch, at, next)),
            Node::Repeat { of, least, most, .. } => {
                // A reference to nothing is none, however often.
                if let Node::Same(number) = **of
                    && self.groups.get(number).is_none_or(Option::is_none)
                {
                    return false;
                }
                let repeated = Repeated { of, least: *least, most: *most };
                self.repeated(repeated, (0, at), next)
            }
        }
    }

    fn row(&mut self, parts: &[Node], at: usize, next: &mut Next<'_>) -> bool {
        match parts {
            [] => next(self, at),
            [first, rest @ ..] => {
                self.node(first, at, &mut |walk, end| walk.row(rest, end, &mut *next))
            }
        }
    }

    /// What a group has taken from now on; gives what it had before.
    fn taken(&mut self, number: usize, taken: Option<(usize, usize)>) -> Option<(usize, usize)> {
        self.groups.get_mut(number).and_then(|group| std::mem::replace(group, taken))
    }

    fn group(&mut self, (number, inner): (usize, &Node), at: usize, next: &mut Next<'_>) -> bool {
        self.node(inner, at, &mut |walk, end| {
            let before = walk.taken(number, Some((at, end)));
            let is_done = next(walk, end);
            walk.taken(number, before);
            is_done
        })
    }

    /// Once more, and as it is. One that takes nothing is enough for all that are still wanted.
    fn repeated(
        &mut self,
        part: Repeated<'_>,
        (met, at): (u32, usize),
        next: &mut Next<'_>,
    ) -> bool {
        if part.most.is_none_or(|most| met < most) {
            let before = self.groups.clone();
            forget(part.of, &mut self.groups);
            let is_done = self.node(part.of, at, &mut |walk, end| match end == at {
                true => met < part.least && next(walk, end),
                false => walk.repeated(part, (met + 1, end), &mut *next),
            });
            self.groups = before;
            if is_done {
                return true;
            }
        }
        met >= part.least && next(self, at)
    }

    /// Whether something is here, or ends here; what is remembered is not touched.
    fn looks(&mut self, look: Look, inner: &Node, at: usize) -> bool {
        let is_there = match look.is_ahead {
            true => self.node(inner, at, &mut |_, _| true),
            false => {
                let mut starts = (0..=at).rev();
                starts.any(|start| self.node(inner, start, &mut |_, end| end == at))
            }
        };
        is_there != look.is_negated
    }

    fn end_of_same(&self, number: usize, at: usize) -> Option<usize> {
        let (start, end) = (*self.groups.get(number)?)?;
        let taken = self.letters.get(start..end)?;
        self.letters.get(at..)?.starts_with(taken).then_some(at + taken.len())
    }

    /// A condition in the library's syntax.
    fn holds(&self, condition: &str, at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|at| self.letters.get(at)).copied();
        let behind = self.letters.get(at).copied();
        let is_of_ascii = condition.starts_with("(?-u:");
        let is_word = |letter: Option<char>| {
            letter.is_some_and(|letter| match is_of_ascii {
                true => letter.is_ascii_alphanumeric() || letter == '_',
                false => is_word_character(letter),
            })
        };
        match condition {
            "\\A" => before.is_none(),
            "\\z" => behind.is_none(),
            "(?m:^)" => before.is_none_or(|letter| letter == '\n'),
            "(?m:$)" => behind.is_none_or(|letter| letter == '\n'),
            "(?-u:\\b{start})" | "\\b{start}" => !is_word(before) && is_word(behind),
            "(?-u:\\b{end})" | "\\b{end}" => is_word(before) && !is_word(behind),
            "(?-u:\\b)" | "\\b" => is_word(before) != is_word(behind),
            _ => is_word(before) == is_word(behind),
        }
    }
}

/// The groups of a part have taken nothing.
fn forget(part: &Node, groups: &mut [Option<(usize, usize)>]) {
    match part {
        Node::Group(number, inner) => {
            if let Some(group) = number.and_then(|number| groups.get_mut(number)) {
                *group = None;
            }
            forget(inner, groups);
        }
        Node::Repeat { of, .. } => forget(of, groups),
        Node::Row(parts) | Node::Either(parts) => {
            parts.iter().for_each(|part| forget(part, groups));
        }
        Node::Empty | Node::One(_) | Node::Condition(_) | Node::Look(..) | Node::Same(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::cases::Letters;
    use super::super::options::Options;
    use super::super::syntax::{Known, read};
    use super::*;

    const ASCII: Known<'_> = Known { letters: Letters::Ascii, locale: None };

    /// The match, if there is one; nothing of a pattern that is refused.
    fn found<'t>(pattern: &str, text: &'t str) -> Option<Option<&'t str>> {
        let tree = read(pattern, Options::default(), ASCII)?;
        if !can_be_walked(&tree.root) {
            return None;
        }
        walked(&tree, text, 0, false).map(|place| place.map(|place| &text[place]))
    }

    /// As servers of PostgreSQL 15 and 18 answer.
    #[test]
    fn what_is_around_and_what_was_taken_decide() {
        for (pattern, text, wanted) in [
            (r"^([bc])\1*$", "bbbbb", Some("bbbbb")),
            (r"^([bc])\1*$", "bbc", None),
            (r"^(\w+)( \1)+$", "abc abc abc", Some("abc abc abc")),
            (r"^(\w+)( \1)+$", "abc abd abc", None),
            (r"^(.+)( \1)+$", "abc abc abd", None),
            (r"(.)\1", "Programmer", Some("mm")),
            ("a(?=b)b*(?=c)c*", "abc", Some("abc")),
            ("a(?!b)b*", "ab", None),
            ("(?<=a)b*", "abb", Some("bb")),
            ("a*(?<!a)b*", "ab", Some("")),
            ("a*(?<!a)b+", "ab", None),
            ("(?<=foo)b+", "foobar", Some("b")),
            ("(?<=f)b+", "foobar", None),
            (r"(^(?!aa)(?!bb)(?!cc))+", "dd x", Some("")),
            (r"(^(?!aa)(?!bb)(?!cc))+", "cc x", None),
            (r"xyz(\Y\Y)+", "x", None),
            (r"a\Yb", "ab", Some("ab")),
        ] {
            assert_eq!(found(pattern, text), Some(wanted), "{pattern} on {text}");
        }
    }

    #[test]
    fn what_a_server_tells_by_rules_of_its_own_is_refused() {
        for pattern in [r"(?:(a)|(b))\1", r"(a+)*\1", r"((a)|b)?(?:a\2)+", r"(a)(\1|b)", r"(a*)*\1"]
        {
            assert_eq!(found(pattern, "aa"), None, "{pattern}");
        }
        for pattern in [r"\1(a)", r"(a\1)", r"(a)(?=\1)", "(?=a)*"] {
            assert!(read(pattern, Options::default(), ASCII).is_none(), "{pattern}");
        }
        let ways = "a".repeat(60);
        assert_eq!(found(r"(a+)(a+)(a+)(a+)(a+)\1\2\3\4\5b", &ways), None);
    }
}
