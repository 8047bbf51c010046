//! Where a match ends that begins at a given place: of all its ends the last, or the first.
//!
//! Source: `longest` and `shortest` in `src/backend/regex/rege_dfa.c`, PostgreSQL 14 to 18.

use std::ops::Range;

use regex_automata::hybrid::dfa::{self, DFA};
use regex_automata::nfa::thompson;
use regex_automata::nfa::thompson::pikevm::{self, PikeVM};
use regex_automata::{Anchored, Input, MatchKind};

use super::search::MOST_BYTES;
use super::syntax::Node;
use super::walk::end_of;

/// Bytes of the longest text whose groups are told of a pattern that looks around.
const LONGEST_WALKED: usize = 10_000;

/// An automaton of all matches.
pub(super) enum Ends {
    Automaton(Box<(DFA, dfa::Cache)>),
    /// Slower, and the only one that knows words beyond ASCII.
    Machine(Box<(PikeVM, pikevm::Cache)>),
    /// Of what looks around, which the library does not know.
    Walked(Node),
}

impl Ends {
    /// That of a pattern, in the library's syntax; nothing for one that is too large.
    pub(super) fn new(pattern: &str, looks_at_words: bool) -> Option<Self> {
        let nfa = thompson::Config::new().nfa_size_limit(Some(MOST_BYTES));
        if looks_at_words {
            let configuration = PikeVM::config().match_kind(MatchKind::All);
            let builder = &mut PikeVM::builder();
            let machine = builder.configure(configuration).thompson(nfa).build(pattern).ok()?;
            let cache = machine.create_cache();
            return Some(Self::Machine(Box::new((machine, cache))));
        }
        let configuration =
            DFA::config().match_kind(MatchKind::All).skip_cache_capacity_check(true);
        let builder = &mut DFA::builder();
        let automaton = builder.configure(configuration).thompson(nfa).build(pattern).ok()?;
        let cache = automaton.create_cache();
        Some(Self::Automaton(Box::new((automaton, cache))))
    }

    /// The first or the last end of matches that begin where a range does, within it, if there is one; nothing if the search is given
    /// up, which says neither.
    pub(super) fn end(
        &mut self,
        text: &str,
        within: Range<usize>,
        is_first: bool,
    ) -> Option<Option<usize>> {
        let input = Input::new(text).span(within).anchored(Anchored::Yes).earliest(is_first);
        match self {
            // Each character is looked at again for each part.
            Self::Walked(_) if text.len() > LONGEST_WALKED => None,
            Self::Walked(node) => {
                let letters: Vec<char> = text.chars().collect();
                let places: Vec<usize> =
                    text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
                let number = |byte: usize| places.partition_point(|at| *at < byte);
                let within = number(input.start())..number(input.end());
                Some(end_of(node, &letters, within, is_first)?.map(|end| places[end]))
            }
            Self::Automaton(made) => {
                let (automaton, cache) = &mut **made;
                let found = automaton.try_search_fwd(cache, &input).ok()?;
                Some(found.map(|end| end.offset()))
            }
            Self::Machine(made) => {
                let (machine, cache) = &mut **made;
                let mut slots = [None; 2];
                machine.search_slots(cache, &input, &mut slots);
                Some(slots[1].map(|end| end.get()))
            }
        }
    }
}
