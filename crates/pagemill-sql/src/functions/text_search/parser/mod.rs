//! A text cut into tokens, as the parser `default` cuts it: words, numbers, addresses, tags and what is between them.
//!
//! The parser is a machine of states. What may become something longer is tried: the machine saves where it is, goes on, and
//! comes back where that led nowhere, to the next rule behind the one that saved. `rules.rs` has the states of words and
//! numbers, `hyphens.rs` those of words with hyphens, `addresses.rs` those of tags, hosts and paths.
//!
//! Invariant: texts come here only where it is known what their letters are.
//!
//! Source: `TParserGet` and what it calls in `src/backend/tsearch/wparser_def.c`, PostgreSQL 14 to 18.

mod addresses;
mod hyphens;
mod rules;
mod states;

use super::super::rows::Outcome;
use super::letters::Letters;
use crate::error::StatementError;
use rules::{Aside, Behind, On, Rule, rules_of};
use states::State;

/// Hosts within addresses within hosts: more take the stack.
const MOST_INNER: usize = 50;

/// What a token is, by its number from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    AsciiWord = 1,
    Word,
    NumberWord,
    Email,
    Url,
    Host,
    Scientific,
    Version,
    HyphenNumberPart,
    HyphenPart,
    HyphenAsciiPart,
    Blank,
    Tag,
    Protocol,
    HyphenNumberWord,
    HyphenAsciiWord,
    HyphenWord,
    UrlPath,
    File,
    Decimal,
    Signed,
    Unsigned,
    Entity,
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'t> {
    pub(crate) kind: Kind,
    pub(crate) text: &'t str,
}

/// All tokens of a text.
///
/// # Errors
/// When it is too intricate.
pub(crate) fn tokens<'t>(text: &'t str, letters: &Letters) -> Outcome<Vec<Token<'t>>> {
    let mut machine = Machine::new((text, letters), State::Base, 0);
    let mut found = Vec::new();
    while let Some(end) = machine.next()? {
        let start = machine.start;
        let text = text.get(start..start + end.bytes).unwrap_or_default();
        found.push(Token { kind: end.kind, text });
    }
    Ok(found)
}

/// Where the machine is, or was.
#[derive(Debug, Clone, Copy)]
struct Place {
    state: State,
    at: usize,
    /// Bytes of the character there, 0 at the end.
    width: usize,
    /// What the token has so far.
    bytes: usize,
    characters: usize,
    /// The rule of the state that saved this place.
    saved_by: Option<usize>,
}

/// A token that was found.
struct Ended {
    kind: Kind,
    bytes: usize,
    characters: usize,
}

struct Machine<'t, 'l> {
    text: &'t str,
    letters: &'l Letters,
    /// Where it is, last, and where it was when it saved that.
    places: Vec<Place>,
    /// Where the token begins.
    start: usize,
    /// True within a script or a style, whose words are none.
    ignores: bool,
    /// True where a host ends before its path.
    wants_host: bool,
    /// How many machines this one works for.
    inner: usize,
}

impl<'t, 'l> Machine<'t, 'l> {
    fn new((text, letters): (&'t str, &'l Letters), state: State, inner: usize) -> Self {
        let place = Place { state, at: 0, width: 0, bytes: 0, characters: 0, saved_by: None };
        let places = match state {
            State::Base => vec![place],
            // It comes back from there if that leads nowhere.
            _ => vec![Place { state: State::Base, ..place }, place],
        };
        Self { text, letters, places, start: 0, ignores: false, wants_host: false, inner }
    }

    fn place(&mut self) -> &mut Place {
        let last = self.places.len() - 1;
        &mut self.places[last]
    }

    fn next(&mut self) -> Outcome<Option<Ended>> {
        self.start = self.place().at;
        if self.start >= self.text.len() {
            return Ok(None);
        }
        self.place().saved_by = None;
        loop {
            let at = self.place().at;
            self.place().width = self.text[at..].chars().next().map_or(0, char::len_utf8);
            let (number, rule) = self.rule()?;
            self.aside(rule.aside);
            let ended = rule.found.map(|kind| {
                let place = self.place();
                let ended = Ended { kind, bytes: place.bytes, characters: place.characters };
                (place.bytes, place.characters) = (0, 0);
                ended
            });
            self.behind(rule.behind, number);
            if let Some(state) = rule.to {
                self.place().state = state;
            }
            if ended.is_some() {
                return Ok(ended);
            }
            let is_again = rule.behind == Behind::Again;
            if self.place().at >= self.text.len() && !is_again {
                return Ok(None);
            }
            if !is_again && rule.behind != Behind::Return {
                self.step();
            }
        }
    }

    /// On to the next character.
    fn step(&mut self) {
        let place = self.place();
        if place.width > 0 {
            place.at += place.width;
            place.bytes += place.width;
            place.characters += 1;
        }
    }

    /// The first rule that holds here, behind the one that saved this place if one did.
    fn rule(&mut self) -> Outcome<(usize, &'static Rule)> {
        let rules = rules_of(self.place().state);
        let first = self.place().saved_by.take().map_or(0, |saved| saved + 1);
        for (number, rule) in rules.iter().enumerate().skip(first) {
            if self.holds(rule.on)? {
                return Ok((number, rule));
            }
        }
        unreachable!("the last rule of a state always holds") // infallible: by the tables
    }

    fn holds(&mut self, on: On) -> Outcome<bool> {
        let Place { at, width, .. } = *self.place();
        let letter = self.text[at..].chars().next().unwrap_or('\0'); // default: what the server reads at the end
        let byte = if width == 1 { self.text.as_bytes()[at] } else { 0 };
        let letters = self.letters;
        Ok(match on {
            On::Anything => true,
            On::End => width == 0,
            On::Is(wanted) => width == 1 && byte == wanted,
            On::AsciiLetter => byte.is_ascii_alphabetic(),
            On::Letter => letters.is_letter(letter),
            On::Digit => letters.is_digit(letter),
            On::LetterOrDigit => letters.is_letter_or_digit(letter),
            On::NoLetterOrDigit => !letters.is_letter_or_digit(letter),
            On::HexDigit => byte.is_ascii_hexdigit(),
            On::Space => letters.is_space(letter),
            On::UrlCharacter => width == 1 && is_of_url(byte),
            On::Ignored => self.ignores,
            On::EndOfHost => std::mem::take(&mut self.wants_host),
            On::Host => self.inner_token(State::Base, Kind::Host)?,
            On::Path => self.inner_token(State::UrlPathFirst, Kind::UrlPath)?,
        })
    }

    /// Takes what another machine finds here, if it is a token of this kind.
    fn inner_token(&mut self, state: State, kind: Kind) -> Outcome<bool> {
        if self.inner >= MOST_INNER {
            return Err(StatementError::unsupported("a text with so many @ in a row"));
        }
        let text = &self.text[self.place().at..];
        let mut machine = Machine::new((text, self.letters), state, self.inner + 1);
        machine.wants_host = kind == Kind::Host;
        let Some(ended) = machine.next()?.filter(|ended| ended.kind == kind) else {
            return Ok(false);
        };
        let width = machine.place().width;
        let place = self.place();
        place.at += ended.bytes;
        place.bytes += ended.bytes;
        place.characters += ended.characters;
        place.width = width;
        Ok(true)
    }

    fn aside(&mut self, aside: Aside) {
        let wants_host = aside == Aside::HostAgain;
        match aside {
            Aside::Nothing => {}
            Aside::Tag => self.tag(),
            Aside::HostAgain | Aside::Again => {
                let place = self.place();
                place.at -= place.bytes;
                self.wants_host |= wants_host;
            }
            Aside::Afresh => {
                let place = self.place();
                place.at -= place.bytes;
                (place.bytes, place.characters) = (0, 0);
            }
        }
    }

    /// What a tag that begins says about the words up to its end.
    fn tag(&mut self) {
        let (start, characters) = (self.start, self.place().characters);
        let is = |tag: &str| {
            let text = self.text.as_bytes().get(start..start + tag.len());
            characters == tag.len() && text.is_some_and(|t| t.eq_ignore_ascii_case(tag.as_bytes()))
        };
        if is("</script") || is("</style") {
            self.ignores = false;
        } else if is("<script") || is("<style") {
            self.ignores = true;
        }
    }

    /// What becomes of the places that were saved.
    fn behind(&mut self, behind: Behind, number: usize) {
        match behind {
            Behind::Stay | Behind::Again => {}
            Behind::Return => {
                self.places.pop();
            }
            Behind::Save => {
                self.place().saved_by = Some(number);
                let place = Place { saved_by: None, ..*self.place() };
                self.places.push(place);
            }
            Behind::ForgetOne => {
                let last = self.places.len() - 1;
                self.places.remove(last - 1);
            }
            Behind::ForgetAll => {
                let last = self.places.len() - 1;
                self.places.drain(..last);
            }
            Behind::Merge => {
                if let Some(Place { at, width, bytes, characters, .. }) = self.places.pop() {
                    let place = self.place();
                    *place = Place { at, width, bytes, characters, ..*place };
                }
            }
        }
    }
}

/// Characters of RFC 3986.
fn is_of_url(byte: u8) -> bool {
    byte.is_ascii_graphic()
        && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')
}
