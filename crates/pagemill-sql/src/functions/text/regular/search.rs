//! A pattern made ready, and where it matches.
//!
//! Invariant: the library is asked whether there is a match and where one begins, in which it has no choice. Where it ends, and what its
//! groups take, is told as the server does.

use std::fmt::Write as _;
use std::ops::Range;

use regex_automata::Input;
use regex_automata::meta::Regex;

use super::super::super::characters::Characters;
use super::super::super::rows::Outcome;
use super::super::cases::Letters;
use super::alphabet::Alphabet;
use super::dissected::Dissector;
use super::ends::Ends;
use super::options::Options;
use super::parts::{Amount, Part};
use super::syntax::{HowMuch, Known, Node, Tree, read};
use super::walk::{can_be_walked, walked};
use super::words::other_word_character;
use crate::error::StatementError;

/// What the library may make of a pattern. A class of a locale has hundreds of ranges.
pub(super) const MOST_BYTES: usize = 16 << 20;

/// How many characters a pattern may speak of once its repetitions are written out.
const MOST_PARTS: u64 = 1000;

/// A pattern made ready.
pub(crate) struct Pattern<'c> {
    text: String,
    options: Options,
    alphabet: Alphabet<'c>,
    /// Whose letters the tree speaks of, once there was a text beyond ASCII.
    locale: Option<Characters>,
    tree: Tree,
    /// None of a pattern that is walked.
    any: Option<Regex>,
    /// Whether it takes as little as it can; `None` where that is not followed.
    is_shortest: Option<bool>,
    ends: Option<Ends>,
    dissector: Option<Dissector>,
}

/// Where a pattern and its groups matched.
pub(super) type Places = Vec<Option<Range<usize>>>;

impl<'c> Pattern<'c> {
    pub(super) fn new(text: &str, alphabet: Alphabet<'c>) -> Outcome<Self> {
        Self::with(text, Options::default(), alphabet)
    }

    /// Made ready for texts in which these are letters.
    ///
    /// # Errors
    /// Where its meaning is not known here.
    pub(crate) fn with(text: &str, options: Options, alphabet: Alphabet<'c>) -> Outcome<Self> {
        let of_ascii = Self::made(text, options, alphabet, None);
        let is_beyond = !text.is_ascii() && alphabet.letters != Letters::Ascii;
        match (of_ascii, is_beyond) {
            // It may speak of letters that a locale knows.
            (Err(error), true) => match alphabet.locale() {
                Ok(locale) => Self::made(text, options, alphabet, Some(locale)),
                Err(_) => Err(error),
            },
            (made, _) => made,
        }
    }

    fn made(
        text: &str,
        options: Options,
        alphabet: Alphabet<'c>,
        locale: Option<Characters>,
    ) -> Outcome<Self> {
        let refused = || {
            let error = StatementError::unsupported(format!("the regular expression \"{text}\""));
            error.with_hint("It may be wrong, or mean something that is not known here.")
        };
        let known = Known { letters: alphabet.letters, locale: locale.as_ref() };
        let tree = read(text, options, known).ok_or_else(refused)?;
        // The server gives up on patterns of too many states, and how many it makes is not followed here.
        if size(&tree.root) > MOST_PARTS {
            return Err(refused());
        }
        let any = match tree.is_walked {
            true if can_be_walked(&tree.root) => None,
            true => return Err(refused()),
            false => Some(meta(&written(&tree.root)).ok_or_else(refused)?),
        };
        let is_shortest = match tree.is_lazy {
            false => Some(false),
            true => Part::of(&tree.root).map(|part| part.flags.prefers == Some(Amount::Least)),
        };
        Ok(Self {
            text: text.to_owned(),
            options,
            alphabet,
            locale,
            tree,
            any,
            is_shortest,
            ends: None,
            dissector: None,
        })
    }

    /// As it was given, and what letters are.
    pub(super) fn given(&self) -> (&str, Alphabet<'c>) {
        (&self.text, self.alphabet)
    }

    /// The groups that are remembered.
    pub(super) fn groups(&self) -> usize {
        self.tree.groups
    }

    /// True when some part of the text matches.
    pub(crate) fn is_match(&mut self, text: &str) -> Outcome<bool> {
        self.know(text)?;
        match &self.any {
            Some(any) => Ok(any.is_match(text)),
            None => {
                let found = walked(&self.tree, text, 0, false);
                Ok(found.ok_or_else(|| self.too_long())?.is_some())
            }
        }
    }

    /// Makes sure that what letters are in the text is known; from the first text beyond ASCII on the pattern speaks of all of them.
    fn know(&mut self, text: &str) -> Outcome<()> {
        let tree = &self.tree;
        let Letters::More { is_icu } = self.alphabet.letters else { return Ok(()) };
        if !(tree.has_classes || tree.ignores_case) {
            return Ok(());
        }
        if text.is_ascii() {
            let has_separators = text.bytes().any(|byte| (0x1C..0x20).contains(&byte));
            return match is_icu && tree.has_spaces && has_separators {
                true => Err(self.beyond_ascii("ICU has spaces of its own")),
                false => Ok(()),
            };
        }
        if self.locale.is_none() {
            let locale = self.alphabet.locale().map_err(|why| self.beyond_ascii(&why))?;
            *self = Self::made(&self.text, self.options, self.alphabet, Some(locale))?;
        }
        match self.locale.as_ref().filter(|_| self.tree.has_words) {
            Some(locale) if other_word_character(locale, text).is_some() => {
                Err(self.beyond_ascii("its words have other characters"))
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn beyond_ascii(&self, why: &str) -> StatementError {
        let what = format!(
            "the regular expression \"{}\" on text beyond ASCII in this locale ({why})",
            self.text
        );
        StatementError::unsupported(what)
    }

    /// The first place from a byte on, and the longest there, or the shortest.
    pub(super) fn find(&mut self, text: &str, from: usize) -> Outcome<Option<Range<usize>>> {
        self.know(text)?;
        let refused = || self.refused("where a regular expression matches that asks for little,");
        let is_shortest = self.is_shortest.ok_or_else(refused)?;
        let Some(any) = &self.any else {
            let found = walked(&self.tree, text, from, is_shortest);
            return found.ok_or_else(|| self.too_long());
        };
        let Some(found) = any.find(Input::new(text).span(from..text.len())) else {
            return Ok(None);
        };
        let start = found.start();
        if self.ends.is_none() {
            let made = Ends::new(&written(&self.tree.root), self.looks_at_words());
            self.ends = Some(made.ok_or_else(|| self.refused("so large a regular expression"))?);
        }
        let ends = self.ends.as_mut().expect("made above"); // infallible: made above
        match ends.end(text, start..text.len(), is_shortest).flatten() {
            Some(end) => Ok(Some(start..end)),
            None => Err(self.refused("so large a regular expression")),
        }
    }

    /// The first place from a byte on, with those of its groups.
    pub(super) fn find_groups(&mut self, text: &str, from: usize) -> Outcome<Option<Places>> {
        let Some(whole) = self.find(text, from)? else { return Ok(None) };
        if self.tree.groups == 0 {
            return Ok(Some(vec![Some(whole)]));
        }
        if self.dissector.is_none() {
            self.dissector = Some(self.made_to_dissect()?);
        }
        let dissector = self.dissector.as_mut().expect("made above"); // infallible: made above
        match dissector.places(text, whole, self.tree.groups) {
            Some(places) => Ok(Some(places)),
            None => {
                Err(self
                    .refused("what the groups of this regular expression match in so long a text"))
            }
        }
    }

    fn made_to_dissect(&self) -> Outcome<Dissector> {
        let refused = || self.refused("what the groups of this regular expression match");
        let part = Part::of(&self.tree.root).ok_or_else(refused)?;
        let ends = |node: Node| match self.any {
            Some(_) => Ends::new(&written(&node), self.looks_at_words()),
            None => Some(Ends::Walked(node)),
        };
        Dissector::new(&part, &ends).ok_or_else(refused)
    }

    /// True for one that looks at words beyond ASCII.
    fn looks_at_words(&self) -> bool {
        self.tree.has_words && self.locale.is_some()
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

/// The characters that a pattern speaks of, repetitions written out.
fn size(node: &Node) -> u64 {
    match node {
        Node::Empty => 0,
        Node::One(_) | Node::Condition(_) | Node::Same(_) => 1,
        Node::Group(_, inner) | Node::Look(_, inner) => size(inner),
        Node::Row(parts) | Node::Either(parts) => parts.iter().map(size).sum(),
        Node::Repeat { of, least, most, .. } => {
            size(of).saturating_mul(u64::from(most.unwrap_or(*least).max(1)))
        }
    }
}

/// The tree in the library's syntax.
pub(super) fn written(node: &Node) -> String {
    let mut text = String::new();
    write(node, &mut text);
    text
}

fn write(node: &Node, out: &mut String) {
    match node {
        Node::Empty => out.push_str("(?:)"),
        // Of patterns that are walked, which are not written.
        Node::Look(..) | Node::Same(_) => {}
        Node::One(set) => set.write(out),
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
        Node::Repeat { of, least, most, how_much } => {
            write(of, out);
            // Writing to a string does not fail.
            let _ = match most {
                Some(most) => write!(out, "{{{least},{most}}}"),
                None => write!(out, "{{{least},}}"),
            };
            if *how_much == HowMuch::Least {
                out.push('?');
            }
        }
    }
}
