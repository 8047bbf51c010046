//! A pattern made ready, and where it matches.
//!
//! Invariant: where leftmost-longest and leftmost-first could differ, the pattern is refused.

use std::fmt::Write as _;
use std::ops::Range;

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::meta::Regex;
use regex_automata::nfa::thompson;
use regex_automata::{Anchored, Input, MatchKind};

use super::super::super::rows::Outcome;
use super::super::cases::Letters;
use super::groups::{are_told, looks_ahead};
use super::options::Options;
use super::syntax::{Node, Tree, read};
use super::walk::{can_be_walked, walked};
use crate::error::StatementError;

/// What the library may make of a pattern.
const MOST_BYTES: usize = 4 << 20;

/// How many characters a pattern may speak of once its repetitions are written out.
const MOST_PARTS: u64 = 1000;

/// A pattern made ready.
pub(crate) struct Pattern {
    text: String,
    tree: Tree,
    letters: Letters,
    /// None of a pattern that is walked.
    any: Option<Regex>,
    longest: Option<(DFA, Cache)>,
    grouped: Option<Regex>,
}

/// Where a pattern and its groups matched.
pub(super) type Places = Vec<Option<Range<usize>>>;

impl Pattern {
    pub(super) fn new(text: &str, ignores_case: bool, letters: Letters) -> Outcome<Self> {
        Self::with(text, Options { ignores_case, ..Options::default() }, letters)
    }

    /// Made ready for texts in which these are letters.
    ///
    /// # Errors
    /// Where its meaning is not known here.
    pub(crate) fn with(text: &str, options: Options, letters: Letters) -> Outcome<Self> {
        let refused = || {
            let error = StatementError::unsupported(format!("the regular expression \"{text}\""));
            error.with_hint("It may be wrong, or mean something that is not known here.")
        };
        let tree = read(text, options, letters).ok_or_else(refused)?;
        // The server gives up on patterns of too many states, and how many it makes is not followed here.
        if size(&tree.root) > MOST_PARTS {
            return Err(refused());
        }
        let any = match tree.is_walked {
            true if can_be_walked(&tree.root) => None,
            true => return Err(refused()),
            false => Some(meta(&written(&tree.root)).ok_or_else(refused)?),
        };
        Ok(Self { text: text.to_owned(), tree, letters, any, longest: None, grouped: None })
    }

    /// As it was given, and what letters are.
    pub(super) fn given(&self) -> (&str, Letters) {
        (&self.text, self.letters)
    }

    /// The groups that are remembered.
    pub(super) fn groups(&self) -> usize {
        self.tree.groups
    }

    /// True when some part of the text matches.
    pub(crate) fn is_match(&self, text: &str) -> Outcome<bool> {
        self.require_known(text)?;
        match &self.any {
            Some(any) => Ok(any.is_match(text)),
            None => Ok(walked(&self.tree, text, 0).ok_or_else(|| self.too_long())?.is_some()),
        }
    }

    fn require_known(&self, text: &str) -> Outcome<()> {
        let tree = &self.tree;
        let is_about_letters = tree.has_classes || tree.ignores_case;
        let Letters::More { is_icu } = self.letters else { return Ok(()) };
        let is_known = text.is_ascii()
            && !(is_icu && tree.has_spaces && text.bytes().any(|b| (0x1C..0x20).contains(&b)));
        if !is_about_letters || is_known {
            return Ok(());
        }
        let what =
            format!("the regular expression \"{}\" on text beyond ASCII in this locale", self.text);
        Err(StatementError::unsupported(what))
    }

    /// The first place from a byte on, and the longest there.
    pub(super) fn find(&mut self, text: &str, from: usize) -> Outcome<Option<Range<usize>>> {
        self.require_known(text)?;
        if self.tree.is_lazy {
            return Err(self.refused("where a regular expression matches that asks for little,"));
        }
        let Some(any) = &self.any else {
            return walked(&self.tree, text, from).ok_or_else(|| self.too_long());
        };
        let Some(found) = any.find(Input::new(text).span(from..text.len())) else {
            return Ok(None);
        };
        let start = found.start();
        if self.longest.is_none() {
            let made = longest(&written(&self.tree.root));
            self.longest = Some(made.ok_or_else(|| self.refused("so large a regular expression"))?);
        }
        let (automaton, cache) = self.longest.as_mut().expect("made above"); // infallible: made above
        let input = Input::new(text).span(start..text.len()).anchored(Anchored::Yes);
        match automaton.try_search_fwd(cache, &input) {
            Ok(Some(end)) => Ok(Some(start..end.offset())),
            _ => Err(self.refused("so large a regular expression")),
        }
    }

    /// The first place from a byte on, with those of its groups.
    pub(super) fn find_groups(&mut self, text: &str, from: usize) -> Outcome<Option<Places>> {
        let Some(whole) = self.find(text, from)? else { return Ok(None) };
        if self.tree.groups == 0 {
            return Ok(Some(vec![Some(whole)]));
        }
        let is_cut = whole.end < text.len() && looks_ahead(&self.tree.root);
        if self.any.is_none() || !are_told(&self.tree.root) || is_cut {
            return Err(self.refused("what the groups of this regular expression match"));
        }
        if self.grouped.is_none() {
            let made = meta(&format!("(?:{})\\z", written(&self.tree.root)));
            self.grouped = Some(made.ok_or_else(|| self.refused("so large a regular expression"))?);
        }
        let grouped = self.grouped.as_ref().expect("made above"); // infallible: made above
        let mut places = grouped.create_captures();
        let text = &text[..whole.end];
        let input = Input::new(text).span(whole.start..whole.end).anchored(Anchored::Yes);
        grouped.search_captures(&input, &mut places);
        match places.is_match() {
            true => {
                let of = |group: usize| places.get_group(group).map(|span| span.range());
                Ok(Some((0..=self.tree.groups).map(of).collect()))
            }
            false => Err(self.refused("what the groups of this regular expression match")),
        }
    }

    #[cold]
    fn too_long(&self) -> StatementError {
        self.refused(
            "a text that takes so long with a regular expression that remembers or looks around",
        )
    }

    fn refused(&self, what: &str) -> StatementError {
        StatementError::unsupported(format!("{what} (\"{}\")", self.text))
    }
}

fn meta(pattern: &str) -> Option<Regex> {
    let configuration = Regex::config().nfa_size_limit(Some(MOST_BYTES));
    Regex::builder().configure(configuration).build(pattern).ok()
}

/// An automaton of all matches: the last that it sees is the longest.
fn longest(pattern: &str) -> Option<(DFA, Cache)> {
    let nfa = thompson::Config::new().nfa_size_limit(Some(MOST_BYTES));
    let configuration = DFA::config().match_kind(MatchKind::All);
    let automaton = DFA::builder().configure(configuration).thompson(nfa).build(pattern).ok()?;
    let cache = automaton.create_cache();
    Some((automaton, cache))
}

/// The characters that a pattern speaks of, repetitions written out.
fn size(node: &Node) -> u64 {
    match node {
        Node::Empty => 0,
        Node::One(_) | Node::Condition(_) | Node::Same(_) => 1,
        Node::Group(_, inner) | Node::Look(_, inner) => size(inner),
        Node::Row(parts) | Node::Either(parts) => parts.iter().map(size).sum(),
        Node::Repeat { of, least, most } => {
            size(of).saturating_mul(u64::from(most.unwrap_or(*least).max(1)))
        }
    }
}

/// The tree in the library's syntax.
fn written(node: &Node) -> String {
    let mut text = String::new();
    write(node, &mut text);
    text
}

fn write(node: &Node, out: &mut String) {
    match node {
        Node::Empty => out.push_str("(?:)"),
        // Of patterns that are walked, which are not written.
        Node::Look(..) | Node::Same(_) => {}
        Node::One(set) => out.push_str(set),
        Node::Condition(condition) => out.push_str(condition),
        Node::Group(number, inner) => {
            out.push_str(if number.is_some() { "(" } else { "(?:" });
            write(inner, out);
            out.push(')');
        }
        Node::Row(parts) => parts.iter().for_each(|part| write(part, out)),
        Node::Either(branches) => {
            for (number, branch) in branches.iter().enumerate() {
                if number > 0 {
                    out.push('|');
                }
                write(branch, out);
            }
        }
        Node::Repeat { of, least, most } => {
            write(of, out);
            // Writing to a string does not fail.
            let _ = match most {
                Some(most) => write!(out, "{{{least},{most}}}"),
                None => write!(out, "{{{least},}}"),
            };
        }
    }
}
