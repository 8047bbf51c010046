//! The states in which words with hyphens are read: first the whole, then its parts.
//!
//! Invariant: the last rule of a state holds for every character.
//!
//! Source: the tables `actionTPS_…` in `src/backend/tsearch/wparser_def.c`, PostgreSQL 14 to 18.

use super::Kind::{
    self, Blank, HyphenAsciiPart, HyphenAsciiWord, HyphenNumberPart, HyphenNumberWord, HyphenPart,
    HyphenWord,
};
use super::rules::On::{self, Anything, Digit, End, Is, Letter, LetterOrDigit};
use super::rules::{
    Aside, LETTER, Rule, again, attempt, back, end, end_all, end_one, go, settle, stay, with,
};
use super::states::State as S;

/// A word with hyphens ends, and its parts are read.
const fn whole(on: On, found: Kind) -> Rule {
    with(Aside::Again, end_all(on, found, S::Parts))
}

pub(super) fn of_hyphens(state: S) -> Option<&'static [Rule]> {
    Some(match state {
        S::HyphenAsciiFirst => {
            const {
                &[
                    go(LETTER, S::HyphenAscii),
                    go(Letter, S::Hyphen),
                    go(Digit, S::HyphenDigit),
                    back(Anything),
                ]
            }
        }
        S::HyphenAscii => {
            const {
                &[
                    whole(End, HyphenAsciiWord),
                    stay(LETTER),
                    go(Letter, S::Hyphen),
                    go(Digit, S::HyphenNumber),
                    attempt(Is(b'-'), S::HyphenAsciiFirst),
                    whole(Anything, HyphenAsciiWord),
                ]
            }
        }
        S::HyphenFirst => {
            const { &[go(Letter, S::Hyphen), go(Digit, S::HyphenDigit), back(Anything)] }
        }
        S::Hyphen => {
            const {
                &[
                    whole(End, HyphenWord),
                    stay(Letter),
                    go(Digit, S::HyphenNumber),
                    attempt(Is(b'-'), S::HyphenFirst),
                    whole(Anything, HyphenWord),
                ]
            }
        }
        S::HyphenNumberFirst => {
            const { &[go(Letter, S::HyphenNumber), go(Digit, S::HyphenDigit), back(Anything)] }
        }
        S::HyphenNumber => {
            const {
                &[
                    whole(End, HyphenNumberWord),
                    stay(LetterOrDigit),
                    attempt(Is(b'-'), S::HyphenNumberFirst),
                    whole(Anything, HyphenNumberWord),
                ]
            }
        }
        S::HyphenDigit => const { &[stay(Digit), go(Letter, S::HyphenNumber), back(Anything)] },
        S::Parts => {
            const {
                &[
                    again(End, S::Base),
                    go(LETTER, S::AsciiPart),
                    go(Letter, S::Part),
                    attempt(Digit, S::PartDigit),
                    attempt(Is(b'-'), S::PartsHyphen),
                    again(Anything, S::Base),
                ]
            }
        }
        S::PartsHyphen => const { &[end_one(LetterOrDigit, Blank, S::Parts), back(Anything)] },
        S::Part => {
            const {
                &[
                    end(End, HyphenPart, S::Base),
                    stay(Letter),
                    go(Digit, S::NumberPart),
                    end(Anything, HyphenPart, S::Parts),
                ]
            }
        }
        S::AsciiPart => {
            const {
                &[
                    end(End, HyphenAsciiPart, S::Base),
                    stay(LETTER),
                    go(Letter, S::Part),
                    go(Digit, S::NumberPart),
                    end(Anything, HyphenAsciiPart, S::Parts),
                ]
            }
        }
        S::NumberPart => {
            const {
                &[
                    end(End, HyphenNumberPart, S::Base),
                    stay(LetterOrDigit),
                    end(Anything, HyphenNumberPart, S::Parts),
                ]
            }
        }
        S::PartDigit => const { &[stay(Digit), settle(Letter, S::NumberPart), back(Anything)] },
        _ => return None,
    })
}
