//! A pattern as the server takes it apart to tell what its groups match: into parts that have groups in them, or take other amounts than
//! what is before them, and into those that do not matter.
//!
//! Invariant: a part that is plain has no group; which of the ways in which it matches a text is taken cannot be seen from outside.
//!
//! Source: `parse`, `parsebranch` and `parseqatom` in `src/backend/regex/regcomp.c`, PostgreSQL 14 to 18.

use super::syntax::{HowMuch, Node};

/// What the server notes of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flags {
    /// Which amount is preferred: that of the first quantifier in it.
    pub(super) prefers: Option<Amount>,
    /// Some of it prefers most, and some least.
    is_mixed: bool,
    has_groups: bool,
}

/// What is taken of what could be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Amount {
    Most,
    Least,
}

impl Flags {
    const NONE: Self = Self { prefers: None, is_mixed: false, has_groups: false };

    fn preferring(prefers: Option<Amount>) -> Self {
        Self { prefers, ..Self::NONE }
    }

    /// Of two parts, one behind the other or around the other: the first has its preference.
    fn and(self, other: Self) -> Self {
        Self { prefers: self.prefers.or(other.prefers), ..self.noted(other) }
    }

    /// What both have in them, without a preference.
    fn noted(self, other: Self) -> Self {
        let differ = self.prefers.zip(other.prefers).is_some_and(|(one, other)| one != other);
        Self {
            prefers: None,
            is_mixed: self.is_mixed || other.is_mixed || differ,
            has_groups: self.has_groups || other.has_groups,
        }
    }

    /// True for a part that is looked into.
    fn matters(self) -> bool {
        self.is_mixed || self.has_groups
    }
}

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) flags: Flags,
    pub(super) content: Content,
    /// The groups whose text it is, the inner one first.
    pub(super) groups: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// What it matches.
    Plain(Node),
    /// One behind the other.
    Pair(Box<[Part; 2]>),
    Either(Vec<Part>),
    /// With groups in it, and possibly none of it.
    Repeat {
        of: Box<Part>,
        least: u32,
        most: Option<u32>,
    },
}

impl Part {
    /// A pattern taken apart; nothing for one that refers to its groups.
    pub(super) fn of(node: &Node) -> Option<Self> {
        let branches = match node {
            Node::Either(branches) => branches.as_slice(),
            _ => return branch(row_of(node)),
        };
        let parts: Vec<Self> =
            branches.iter().map(|part| branch(row_of(part))).collect::<Option<_>>()?;
        let most = Flags::preferring(Some(Amount::Most));
        let within = parts
            .iter()
            .fold(most, |all, part| Flags { prefers: most.prefers, ..all.noted(part.flags) });
        Some(match within.matters() {
            true => Self::new(within, Content::Either(parts)),
            false => Self::plain(within, node.clone()),
        })
    }

    fn new(flags: Flags, content: Content) -> Self {
        Self { flags, content, groups: Vec::new() }
    }

    fn plain(flags: Flags, node: Node) -> Self {
        Self::new(flags, Content::Plain(node))
    }

    fn pair(flags: Flags, first: Self, second: Self) -> Self {
        Self::new(flags, Content::Pair(Box::new([first, second])))
    }

    /// What it matches as a whole.
    pub(super) fn node(&self) -> Node {
        match &self.content {
            Content::Plain(node) => node.clone(),
            Content::Pair(pair) => Node::Row(pair.iter().map(within).collect()),
            Content::Either(parts) => Node::Either(parts.iter().map(within).collect()),
            Content::Repeat { of, least, most } => repeat(within(of), (*least, *most)),
        }
    }
}

/// A part within another, where nothing is remembered.
fn within(part: &Part) -> Node {
    Node::Group(None, Box::new(part.node()))
}

fn repeat(of: Node, (least, most): (u32, Option<u32>)) -> Node {
    Node::Repeat { of: Box::new(of), least, most, how_much: HowMuch::Most }
}

fn row_of(node: &Node) -> &[Node] {
    match node {
        Node::Empty => &[],
        Node::Row(parts) => parts,
        other => std::slice::from_ref(other),
    }
}

/// A quantified atom.
struct Quantified<'n> {
    atom: &'n Node,
    least: u32,
    most: Option<u32>,
    prefers: Option<Amount>,
}

impl<'n> Quantified<'n> {
    fn of(node: &'n Node) -> Self {
        match node {
            Node::Repeat { of, least, most, how_much } => {
                let prefers = match how_much {
                    HowMuch::Most => Some(Amount::Most),
                    HowMuch::Least => Some(Amount::Least),
                    HowMuch::AsWithin => None,
                };
                Self { atom: of, least: *least, most: *most, prefers }
            }
            atom => Self { atom, least: 1, most: Some(1), prefers: None },
        }
    }

    /// The atom by itself, and whether it is a group that is remembered.
    fn part(&self) -> Option<(Part, bool)> {
        match self.atom {
            Node::Group(None, inner) => Some((Part::of(inner)?, false)),
            Node::Group(Some(number), inner) => {
                let mut part = Part::of(inner)?;
                part.groups.push(*number);
                part.flags.has_groups = true;
                Some((part, true))
            }
            Node::Same(_) => None,
            one => Some((Part::plain(Flags::NONE, one.clone()), false)),
        }
    }

    /// The atom, which matters, as often as it may be.
    fn repeated(self, part: Part) -> Part {
        let own = Flags::preferring(self.prefers);
        let flags = own.and(part.flags);
        let is_vacuous = self.prefers.is_none()
            || (part.flags.prefers.is_none() && !part.flags.is_mixed)
            || (self.prefers == part.flags.prefers && !part.flags.is_mixed);
        let once = (self.least, self.most) == (1, Some(1));
        match () {
            () if once && is_vacuous => part,
            () if !part.flags.has_groups => {
                Part::plain(flags, repeat(within(&part), (self.least, self.most)))
            }
            // Only what the last one matches is remembered: those before it are plain.
            () if self.least > 0 => {
                let before = (self.least - 1, self.most.map(|most| most - 1));
                let before =
                    Part::plain(Flags::preferring(flags.prefers), repeat(within(&part), before));
                Part::pair(flags, before, part)
            }
            () => {
                let Self { least, most, .. } = self;
                Part::new(flags, Content::Repeat { of: Box::new(part), least, most })
            }
        }
    }
}

/// A branch: what does not matter is one part, up to the first atom that does.
fn branch(parts: &[Node]) -> Option<Part> {
    let (mut plain, mut flags) = (Vec::new(), Flags::NONE);
    for (number, node) in parts.iter().enumerate() {
        if matches!(node, Node::Empty | Node::Condition(_) | Node::Look(..)) {
            plain.push(node.clone());
            continue;
        }
        let quantified = Quantified::of(node);
        let (part, is_group) = quantified.part()?;
        if quantified.most == Some(0) {
            continue;
        }
        let preferences = [flags.prefers, quantified.prefers, part.flags.prefers];
        if !is_group && !part.flags.matters() && !differ(preferences) {
            plain.push(node.clone());
            flags.prefers = preferences.into_iter().flatten().next();
            continue;
        }
        // That of the quantifier counts for what is around, even where it does not for the atom.
        let around = Flags::preferring(quantified.prefers).and(part.flags);
        let part = quantified.repeated(part);
        let rest = &parts[number + 1..];
        let behind = match rest.is_empty() {
            true => part,
            false => with_rest(part, around, branch(rest)?, plain.is_empty()),
        };
        return Some(match plain.is_empty() {
            true => behind,
            false => {
                let before = Part::plain(flags, Node::Row(plain));
                Part::pair(before.flags.and(behind.flags), before, behind)
            }
        });
    }
    Some(Part::plain(flags, Node::Row(plain)))
}

fn differ(preferences: [Option<Amount>; 3]) -> bool {
    let has = |wanted| preferences.contains(&Some(wanted));
    has(Amount::Most) && has(Amount::Least)
}

/// An atom that matters and the rest of its branch. Where it did so only for what is before it, both may be plain together.
fn with_rest(part: Part, around: Flags, rest: Part, is_first: bool) -> Part {
    let are_plain = [&part, &rest]
        .into_iter()
        .all(|part| part.groups.is_empty() && matches!(part.content, Content::Plain(_)));
    let both = part.flags.and(rest.flags);
    match are_plain && !is_first && !both.matters() {
        true => Part::plain(both, Node::Row(vec![within(&part), within(&rest)])),
        false => Part::pair(around.and(rest.flags), part, rest),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::cases::Letters;
    use super::super::options::Options;
    use super::super::syntax::{Known, read};
    use super::*;

    fn part(pattern: &str) -> Part {
        let known = Known { letters: Letters::Ascii, locale: None };
        Part::of(&read(pattern, Options::default(), known).unwrap().root).unwrap()
    }

    /// As the chapter on pattern matching of the documentation has it.
    #[test]
    fn a_pattern_prefers_what_the_first_of_its_quantifiers_does() {
        for (pattern, wanted) in [
            ("abc", None),
            ("a*b*?", Some(Amount::Most)),
            ("Y*?([0-9]{1,3})", Some(Amount::Least)),
            ("(?:a*?){3}b*", Some(Amount::Least)),
            ("(a*?)+", Some(Amount::Most)),
            ("a*?|b", Some(Amount::Most)),
            ("x(?=a*?)b{2}", None),
            ("a{1,1}?", Some(Amount::Least)),
        ] {
            assert_eq!(part(pattern).flags.prefers, wanted, "{pattern}");
        }
    }

    #[test]
    fn what_has_no_groups_and_one_preference_is_one_part() {
        assert!(matches!(part("^a*(?:b|c+)d$").content, Content::Plain(_)));
        assert!(matches!(part("a*b*?").content, Content::Pair(_)));
        let Content::Pair(pair) = part("a+(b)c*").content else { panic!("no pair") };
        assert!(matches!(pair[0].content, Content::Plain(_)));
        assert!(matches!(&pair[1].content, Content::Pair(behind) if behind[0].groups == [1]));
    }

    #[test]
    fn of_a_group_that_is_repeated_the_last_one_is_remembered() {
        let Content::Pair(pair) = part("(a|b)+").content else { panic!("no pair") };
        assert!(pair[0].groups.is_empty() && pair[1].groups == [1]);
        assert!(matches!(part("(a)*").content, Content::Repeat { least: 0, most: None, .. }));
        assert_eq!(part("((a))").groups, [2, 1]);
    }
}
