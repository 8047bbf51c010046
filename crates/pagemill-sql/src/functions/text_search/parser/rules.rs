//! What leads from one state to another, and the states in which words and numbers are read.
//!
//! Invariant: the last rule of a state holds for every character.
//!
//! Source: the tables `actionTPS_…` in `src/backend/tsearch/wparser_def.c`, PostgreSQL 14 to 18. Rules for marks that are part
//! of a word (`p_isspecial`) are left out: under the C locale all that is beyond ASCII is a letter.

use super::Kind::{
    self, AsciiWord, Blank, Decimal, NumberWord, Scientific, Signed, Unsigned, Version, Word,
};
use super::addresses;
use super::hyphens::of_hyphens;
use super::states::State as S;
use On::{Anything, Digit, End, Ignored, Is, Letter, LetterOrDigit, NoLetterOrDigit};

/// When a rule holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum On {
    Anything,
    End,
    Is(u8),
    AsciiLetter,
    Letter,
    Digit,
    LetterOrDigit,
    NoLetterOrDigit,
    HexDigit,
    Space,
    UrlCharacter,
    /// Words are no words here.
    Ignored,
    /// A host that is looked for ends here. It is so once.
    EndOfHost,
    /// A host begins here; it is taken.
    Host,
    /// The path of an URL begins here; it is taken.
    Path,
}

/// What a rule does with saved places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behind {
    Stay,
    /// Stays at the character, too.
    Again,
    Save,
    /// Comes back to the last one.
    Return,
    ForgetOne,
    ForgetAll,
    /// The last one comes to where the machine is.
    Merge,
}

/// What else a rule does, before all other things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aside {
    Nothing,
    /// Looks whether a tag begins or ends what is ignored.
    Tag,
    /// Goes back to where the token began, whose first part is a host.
    HostAgain,
    /// Goes back to where the token began, to read its parts.
    Again,
    /// Goes back as if nothing had been read.
    Afresh,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    pub(super) on: On,
    pub(super) behind: Behind,
    /// None where the state stays.
    pub(super) to: Option<S>,
    pub(super) found: Option<Kind>,
    pub(super) aside: Aside,
}

const fn rule(on: On, behind: Behind, to: Option<S>, found: Option<Kind>) -> Rule {
    Rule { on, behind, to, found, aside: Aside::Nothing }
}

/// Takes the character.
pub(super) const fn go(on: On, to: S) -> Rule {
    rule(on, Behind::Stay, Some(to), None)
}

/// Takes the character and stays in the state.
pub(super) const fn stay(on: On) -> Rule {
    rule(on, Behind::Stay, None, None)
}

/// Tries what follows.
pub(super) const fn attempt(on: On, to: S) -> Rule {
    rule(on, Behind::Save, Some(to), None)
}

/// Gives up.
pub(super) const fn back(on: On) -> Rule {
    rule(on, Behind::Return, None, None)
}

/// Takes the character; what was tried holds.
pub(super) const fn settle(on: On, to: S) -> Rule {
    rule(on, Behind::ForgetOne, Some(to), None)
}

/// Looks at the character again.
pub(super) const fn again(on: On, to: S) -> Rule {
    rule(on, Behind::Again, Some(to), None)
}

/// The token ends before the character.
pub(super) const fn end(on: On, found: Kind, to: S) -> Rule {
    rule(on, Behind::Stay, Some(to), Some(found))
}

/// The same; what was tried last holds.
pub(super) const fn end_one(on: On, found: Kind, to: S) -> Rule {
    rule(on, Behind::ForgetOne, Some(to), Some(found))
}

/// The same; all that was tried holds.
pub(super) const fn end_all(on: On, found: Kind, to: S) -> Rule {
    rule(on, Behind::ForgetAll, Some(to), Some(found))
}

/// Takes the character, and comes back behind it.
pub(super) const fn merge(on: On) -> Rule {
    rule(on, Behind::Merge, None, None)
}

pub(super) const fn with(aside: Aside, rule: Rule) -> Rule {
    Rule { aside, ..rule }
}

pub(super) const LETTER: On = On::AsciiLetter;

pub(super) fn rules_of(state: S) -> &'static [Rule] {
    of_words(state).or_else(|| of_numbers(state)).or_else(|| of_hyphens(state)).unwrap_or_else(
        // default: every other state
        || addresses::rules_of(state),
    )
}

fn of_words(state: S) -> Option<&'static [Rule]> {
    Some(match state {
        S::Base => {
            const {
                &[
                    stay(End),
                    attempt(Is(b'<'), S::TagFirst),
                    go(Ignored, S::Blank),
                    go(LETTER, S::AsciiWord),
                    go(Letter, S::Word),
                    go(Digit, S::Unsigned),
                    attempt(Is(b'-'), S::SignedFirst),
                    attempt(Is(b'+'), S::SignedFirst),
                    attempt(Is(b'&'), S::EntityFirst),
                    attempt(Is(b'~'), S::FileTilde),
                    attempt(Is(b'/'), S::FileFirst),
                    attempt(Is(b'.'), S::PathFirstDot),
                    go(Anything, S::Blank),
                ]
            }
        }
        S::NumberWord => {
            const {
                &[
                    end(End, NumberWord, S::Base),
                    stay(LetterOrDigit),
                    attempt(Is(b'@'), S::Email),
                    attempt(Is(b'/'), S::FileFirst),
                    attempt(Is(b'.'), S::FileNext),
                    attempt(Is(b'-'), S::HyphenNumberFirst),
                    end(Anything, NumberWord, S::Base),
                ]
            }
        }
        S::AsciiWord => {
            const {
                &[
                    end(End, AsciiWord, S::Base),
                    stay(LETTER),
                    attempt(Is(b'.'), S::HostFirstDomain),
                    attempt(Is(b'.'), S::FileNext),
                    attempt(Is(b'-'), S::HostFirst),
                    attempt(Is(b'-'), S::HyphenAsciiFirst),
                    attempt(Is(b'_'), S::HostFirst),
                    attempt(Is(b'@'), S::Email),
                    attempt(Is(b':'), S::ProtocolFirst),
                    attempt(Is(b'/'), S::FileFirst),
                    attempt(Digit, S::Host),
                    go(Digit, S::NumberWord),
                    go(Letter, S::Word),
                    end(Anything, AsciiWord, S::Base),
                ]
            }
        }
        S::Word => {
            const {
                &[
                    end(End, Word, S::Base),
                    stay(Letter),
                    go(Digit, S::NumberWord),
                    attempt(Is(b'-'), S::HyphenFirst),
                    end(Anything, Word, S::Base),
                ]
            }
        }
        S::Blank => {
            const {
                &[
                    end(End, Blank, S::Base),
                    end(Is(b'<'), Blank, S::Base),
                    stay(Ignored),
                    end(Is(b'-'), Blank, S::Base),
                    end(Is(b'+'), Blank, S::Base),
                    end(Is(b'&'), Blank, S::Base),
                    end(Is(b'/'), Blank, S::Base),
                    stay(NoLetterOrDigit),
                    end(Anything, Blank, S::Base),
                ]
            }
        }
        _ => return None,
    })
}

/// A digit that must follow.
const fn digit_first(settled: S) -> [Rule; 2] {
    [settle(Digit, settled), back(Anything)]
}

fn of_numbers(state: S) -> Option<&'static [Rule]> {
    Some(match state {
        S::Unsigned => {
            const {
                &[
                    end(End, Unsigned, S::Base),
                    stay(Digit),
                    attempt(Is(b'.'), S::HostFirstDomain),
                    attempt(Is(b'.'), S::UnsignedDecimalFirst),
                    attempt(Is(b'e'), S::ExponentFirst),
                    attempt(Is(b'E'), S::ExponentFirst),
                    attempt(Is(b'-'), S::HostFirst),
                    attempt(Is(b'_'), S::HostFirst),
                    attempt(Is(b'@'), S::Email),
                    attempt(LETTER, S::Host),
                    go(Letter, S::NumberWord),
                    attempt(Is(b'/'), S::FileFirst),
                    end(Anything, Unsigned, S::Base),
                ]
            }
        }
        S::SignedFirst => const { &digit_first(S::Signed) },
        S::Signed => {
            const {
                &[
                    end(End, Signed, S::Base),
                    stay(Digit),
                    attempt(Is(b'.'), S::DecimalFirst),
                    attempt(Is(b'e'), S::ExponentFirst),
                    attempt(Is(b'E'), S::ExponentFirst),
                    end(Anything, Signed, S::Base),
                ]
            }
        }
        S::UnsignedDecimalFirst => const { &digit_first(S::UnsignedDecimal) },
        S::UnsignedDecimal => const { &decimal(S::VersionFirst) },
        S::DecimalFirst => const { &digit_first(S::Decimal) },
        S::Decimal => const { &decimal(S::VersionBehindSign) },
        S::VersionBehindSign => {
            const { &[back(End), with(Aside::Afresh, again(Digit, S::VersionFromSign)), back(Anything)] }
        }
        S::VersionFromSign => {
            const { &[back(End), end_all(Digit, Blank, S::Unsigned), stay(Anything)] }
        }
        S::VersionFirst => const { &digit_first(S::Version) },
        S::Version => {
            const {
                &[
                    end(End, Version, S::Base),
                    stay(Digit),
                    attempt(Is(b'.'), S::VersionFirst),
                    end(Anything, Version, S::Base),
                ]
            }
        }
        S::ExponentFirst => {
            const {
                &[
                    back(End),
                    settle(Digit, S::Exponent),
                    go(Is(b'+'), S::ExponentSign),
                    go(Is(b'-'), S::ExponentSign),
                    back(Anything),
                ]
            }
        }
        S::ExponentSign => const { &digit_first(S::Exponent) },
        S::Exponent => const { &[stay(Digit), end(Anything, Scientific, S::Base)] },
        _ => return None,
    })
}

/// Digits behind a point, and what another point may make of them.
const fn decimal(version: S) -> [Rule; 6] {
    [
        end(End, Decimal, S::Base),
        stay(Digit),
        attempt(Is(b'.'), version),
        attempt(Is(b'e'), S::ExponentFirst),
        attempt(Is(b'E'), S::ExponentFirst),
        end(Anything, Decimal, S::Base),
    ]
}
