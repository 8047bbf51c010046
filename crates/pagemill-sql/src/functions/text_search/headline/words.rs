//! The tokens of a text for a headline: each with the operand of the query that it is.
//!
//! A token that is several operands stands there once for each of them; all but the first are repetitions.
//!
//! Source: `hlparsetext`, `addHLParsedLex` and `hlfinditem` in `src/backend/tsearch/ts_parse.c`, `checkcondition_HL` in
//! `wparser_def.c`, PostgreSQL 14 to 18.

use super::super::super::rows::Outcome;
use super::super::dictionaries::Made;
use super::super::documents::Configuration;
use super::super::matching::{Answer, Found, Words};
use super::super::parser::{Kind, tokens};
use super::super::query::{Operand, Query};
use super::super::vector::{LAST_POSITION, LONGEST_LEXEME};

#[derive(Debug, Clone)]
pub(super) struct Word<'t> {
    pub(super) kind: Kind,
    pub(super) text: &'t str,
    /// Its place among lexemes, where it is one.
    pub(super) place: u16,
    /// The node of the query that it is.
    pub(super) node: Option<usize>,
    pub(super) is_repeated: bool,
    /// What becomes of it in the headline.
    pub(super) is_inside: bool,
    pub(super) is_selected: bool,
    pub(super) is_replaced: bool,
    pub(super) is_skipped: bool,
}

impl<'t> Word<'t> {
    fn new(kind: Kind, text: &'t str) -> Self {
        Self {
            kind,
            text,
            place: 0,
            node: None,
            is_repeated: false,
            is_inside: false,
            is_selected: false,
            is_replaced: false,
            is_skipped: false,
        }
    }

    /// True for one that the query looks for.
    pub(super) fn is_wanted(&self) -> bool {
        self.node.is_some() && !self.is_repeated
    }

    /// True for whole words with hyphens and addresses, whose parts follow.
    pub(super) fn has_parts(&self) -> bool {
        use Kind::{HyphenAsciiWord, HyphenNumberWord, HyphenWord, Url};
        matches!(self.kind, Url | HyphenNumberWord | HyphenAsciiWord | HyphenWord)
    }

    /// True for one that does not count.
    pub(super) fn counts_not(&self) -> bool {
        matches!(self.kind, Kind::Blank | Kind::Tag) || self.has_parts()
    }

    /// True for one with which a headline does not end well.
    pub(super) fn is_bad_end(&self, longest_short: i32) -> bool {
        use Kind::{Decimal, Entity, Protocol, Scientific, Signed, Unsigned, Version};
        let is_none = self.counts_not()
            || matches!(
                self.kind,
                Scientific | Version | Decimal | Signed | Unsigned | Protocol | Entity
            );
        let is_short = i64::try_from(self.text.len()).is_ok_and(|len| len <= longest_short.into());
        (is_none || is_short) && !self.is_wanted()
    }
}

/// The words of a text.
pub(super) fn words<'t>(
    text: &'t str,
    query: &Query<'_>,
    configuration: &Configuration,
) -> Outcome<Vec<Word<'t>>> {
    let mut found = Vec::new();
    let mut place = 0usize;
    configuration.letters.check(text)?;
    for token in tokens(text, &configuration.letters)? {
        if token.text.len() > LONGEST_LEXEME {
            continue;
        }
        let word = Word::new(token.kind, token.text);
        match configuration.lexized(&token)? {
            Made::Nothing => found.push(word),
            Made::LeftOut => {
                place += 1;
                found.push(word);
            }
            Made::Lexeme(lexeme) => {
                place += 1;
                let place = place.min(usize::from(LAST_POSITION)) as u16;
                add(&mut found, Word { place, ..word }, (query, &lexeme));
            }
        }
    }
    Ok(found)
}

/// Adds a word, again for each operand that it is beside the first.
fn add<'t>(found: &mut Vec<Word<'t>>, word: Word<'t>, (query, lexeme): (&Query<'_>, &str)) {
    let is_it = |operand: &Operand<'_>| match operand.prefix {
        true => lexeme.as_bytes().starts_with(operand.text),
        false => lexeme.as_bytes() == operand.text,
    };
    let mut is_repeated = false;
    for (node, operand) in query.operands() {
        if is_it(&operand) {
            found.push(Word { node: Some(node), is_repeated, ..word.clone() });
            is_repeated = true;
        }
    }
    if !is_repeated {
        found.push(word);
    }
}

impl Words for [Word<'_>] {
    fn find(&self, number: usize, _: &Operand<'_>, wants_places: bool) -> Outcome<Found> {
        let mut own = self.iter().filter(|word| word.node == Some(number)).map(|word| word.place);
        if !wants_places {
            let is_there = own.next().is_some();
            return Ok(Found::new(if is_there { Answer::Yes } else { Answer::No }));
        }
        let mut places: Vec<u16> = Vec::new();
        for place in own {
            if places.last().is_none_or(|last| *last < place) {
                places.push(place);
            }
        }
        Ok(Found::at(places))
    }
}
