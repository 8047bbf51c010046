//! The states in which entities, tags, hosts, paths and addresses are read.
//!
//! Invariant: the last rule of a state holds for every character.
//!
//! Source: the tables `actionTPS_…` in `src/backend/tsearch/wparser_def.c`, PostgreSQL 14 to 18.

use super::Kind::{Email, Entity, File, Host, Protocol, Tag, Url, UrlPath};
use super::rules::On::{self, Anything, Digit, End, Is, LetterOrDigit, Space};
use super::rules::{
    Aside, LETTER, Rule, attempt, back, end, end_all, end_one, go, merge, settle, stay, with,
};
use super::states::State as S;

pub(super) fn rules_of(state: S) -> &'static [Rule] {
    of_entities(state)
        .or_else(|| of_tags(state))
        .or_else(|| of_comments(state))
        .or_else(|| of_hosts(state))
        .or_else(|| of_files(state))
        // default: a state that has no rules gives up
        .unwrap_or(const { &[back(Anything)] })
}

fn of_entities(state: S) -> Option<&'static [Rule]> {
    Some(match state {
        S::EntityFirst => {
            const {
                &[
                    go(Is(b'#'), S::EntityNumberFirst),
                    go(LETTER, S::Entity),
                    go(Is(b':'), S::Entity),
                    go(Is(b'_'), S::Entity),
                    back(Anything),
                ]
            }
        }
        S::Entity => {
            const {
                &[
                    back(End),
                    stay(LetterOrDigit),
                    stay(Is(b':')),
                    stay(Is(b'_')),
                    stay(Is(b'.')),
                    stay(Is(b'-')),
                    go(Is(b';'), S::EntityEnd),
                    back(Anything),
                ]
            }
        }
        S::EntityNumberFirst => {
            const {
                &[
                    go(Is(b'x'), S::EntityHexFirst),
                    go(Is(b'X'), S::EntityHexFirst),
                    go(Digit, S::EntityNumber),
                    back(Anything),
                ]
            }
        }
        S::EntityHexFirst => const { &[go(On::HexDigit, S::EntityHex), back(Anything)] },
        S::EntityNumber => const { &[stay(Digit), go(Is(b';'), S::EntityEnd), back(Anything)] },
        S::EntityHex => const { &[stay(On::HexDigit), go(Is(b';'), S::EntityEnd), back(Anything)] },
        S::EntityEnd => const { &[end_one(Anything, Entity, S::Base)] },
        _ => return None,
    })
}

fn of_tags(state: S) -> Option<&'static [Rule]> {
    Some(match state {
        S::TagFirst => {
            const {
                &[
                    attempt(Is(b'/'), S::TagCloseFirst),
                    attempt(Is(b'!'), S::CommentFirst),
                    attempt(Is(b'?'), S::XmlBegin),
                    attempt(LETTER, S::TagName),
                    attempt(Is(b':'), S::TagName),
                    attempt(Is(b'_'), S::TagName),
                    back(Anything),
                ]
            }
        }
        S::XmlBegin => const { &[go(Is(b'x'), S::Tag), back(Anything)] },
        S::TagCloseFirst => const { &[go(LETTER, S::TagName), back(Anything)] },
        S::TagName => {
            const {
                &[
                    back(End),
                    go(Is(b'/'), S::TagBeginEnd),
                    with(Aside::Tag, go(Is(b'>'), S::TagEnd)),
                    with(Aside::Tag, go(Space, S::Tag)),
                    stay(LetterOrDigit),
                    stay(Is(b':')),
                    stay(Is(b'_')),
                    stay(Is(b'.')),
                    stay(Is(b'-')),
                    back(Anything),
                ]
            }
        }
        S::TagBeginEnd => const { &[go(Is(b'>'), S::TagEnd), back(Anything)] },
        S::Tag => {
            const {
                &[
                    back(End),
                    with(Aside::Tag, go(Is(b'>'), S::TagEnd)),
                    go(Is(b'\''), S::TagQuoted),
                    go(Is(b'"'), S::TagDoublyQuoted),
                    stay(LETTER),
                    stay(Digit),
                    stay(Is(b'=')),
                    stay(Is(b'-')),
                    stay(Is(b'_')),
                    stay(Is(b'#')),
                    stay(Is(b'/')),
                    stay(Is(b':')),
                    stay(Is(b'.')),
                    stay(Is(b'&')),
                    stay(Is(b'?')),
                    stay(Is(b'%')),
                    stay(Is(b'~')),
                    with(Aside::Tag, stay(Space)),
                    back(Anything),
                ]
            }
        }
        S::TagQuoted => const { &quoted(b'\'') },
        S::TagDoublyQuoted => const { &quoted(b'"') },
        S::TagEscape => const { &[back(End), merge(Anything)] },
        S::TagEnd => const { &[end_all(Anything, Tag, S::Base)] },
        _ => return None,
    })
}

/// Within quotes of a tag.
const fn quoted(quote: u8) -> [Rule; 4] {
    [back(End), attempt(Is(b'\\'), S::TagEscape), go(Is(quote), S::Tag), stay(Anything)]
}

fn of_comments(state: S) -> Option<&'static [Rule]> {
    Some(match state {
        S::CommentFirst => {
            const {
                &[
                    go(Is(b'-'), S::CommentLast),
                    go(Is(b'D'), S::Tag),
                    go(Is(b'd'), S::Tag),
                    back(Anything),
                ]
            }
        }
        S::CommentLast => const { &[go(Is(b'-'), S::Comment), back(Anything)] },
        S::Comment => const { &[back(End), go(Is(b'-'), S::CommentCloseFirst), stay(Anything)] },
        S::CommentCloseFirst => {
            const { &[back(End), go(Is(b'-'), S::CommentCloseLast), go(Anything, S::Comment)] }
        }
        S::CommentCloseLast => {
            const { &[back(End), stay(Is(b'-')), go(Is(b'>'), S::CommentEnd), go(Anything, S::Comment)] }
        }
        S::CommentEnd => const { &[end_all(Anything, Tag, S::Base)] },
        _ => return None,
    })
}

fn of_hosts(state: S) -> Option<&'static [Rule]> {
    Some(match state {
        S::HostFirstDomain => {
            const { &[go(LETTER, S::HostDomainSecond), go(Digit, S::Host), back(Anything)] }
        }
        S::HostDomainSecond => {
            const {
                &[
                    back(End),
                    go(LETTER, S::HostDomain),
                    attempt(Digit, S::Host),
                    attempt(Is(b'-'), S::HostFirst),
                    attempt(Is(b'_'), S::HostFirst),
                    attempt(Is(b'.'), S::HostFirstDomain),
                    attempt(Is(b'@'), S::Email),
                    back(Anything),
                ]
            }
        }
        S::HostDomain => {
            const {
                &[
                    end_all(End, Host, S::Base),
                    stay(LETTER),
                    attempt(Digit, S::Host),
                    attempt(Is(b':'), S::PortFirst),
                    attempt(Is(b'-'), S::HostFirst),
                    attempt(Is(b'_'), S::HostFirst),
                    attempt(Is(b'.'), S::HostFirstDomain),
                    attempt(Is(b'@'), S::Email),
                    back(Digit),
                    end_all(On::EndOfHost, Host, S::UrlPathStart),
                    attempt(Is(b'/'), S::Url),
                    end_all(Anything, Host, S::Base),
                ]
            }
        }
        S::PortFirst => const { &[go(Digit, S::Port), back(Anything)] },
        S::Port => {
            const {
                &[
                    end_all(End, Host, S::Base),
                    stay(Digit),
                    end_all(On::EndOfHost, Host, S::UrlPathStart),
                    attempt(Is(b'/'), S::Url),
                    end_all(Anything, Host, S::Base),
                ]
            }
        }
        S::HostFirst => const { &[go(Digit, S::Host), go(LETTER, S::Host), back(Anything)] },
        S::Host => {
            const {
                &[
                    back(End),
                    stay(Digit),
                    stay(LETTER),
                    attempt(Is(b'@'), S::Email),
                    attempt(Is(b'.'), S::HostFirstDomain),
                    attempt(Is(b'-'), S::HostFirst),
                    attempt(Is(b'_'), S::HostFirst),
                    back(Anything),
                ]
            }
        }
        S::Email => {
            const { &[back(On::EndOfHost), end_all(On::Host, Email, S::Base), back(Anything)] }
        }
        S::ProtocolFirst => const { &[go(Is(b'/'), S::ProtocolSecond), back(Anything)] },
        S::ProtocolSecond => const { &[go(Is(b'/'), S::ProtocolEnd), back(Anything)] },
        S::ProtocolEnd => const { &[end_all(Anything, Protocol, S::Base)] },
        _ => return None,
    })
}

/// What the name of a file begins with.
const LETTERS: Rule = go(LETTER, S::File);
const DIGITS: Rule = go(Digit, S::File);
const LINES: Rule = go(Is(b'_'), S::File);

fn of_files(state: S) -> Option<&'static [Rule]> {
    Some(match state {
        S::FileFirst => {
            const {
                &[
                    LETTERS,
                    DIGITS,
                    go(Is(b'.'), S::PathFirst),
                    LINES,
                    attempt(Is(b'~'), S::FileTilde),
                    back(Anything),
                ]
            }
        }
        S::FileTilde => {
            const { &[LETTERS, DIGITS, LINES, go(Is(b'/'), S::FileFirst), back(Anything)] }
        }
        S::PathFirst => {
            const {
                &[
                    LETTERS,
                    DIGITS,
                    LINES,
                    go(Is(b'.'), S::PathSecond),
                    go(Is(b'/'), S::FileFirst),
                    back(Anything),
                ]
            }
        }
        S::PathFirstDot => {
            const { &[go(Is(b'.'), S::PathSecond), go(Is(b'/'), S::FileFirst), back(Anything)] }
        }
        S::PathSecond => {
            const {
                &[
                    end_one(End, File, S::Base),
                    attempt(Is(b'/'), S::FileFirst),
                    end_one(Is(b'/'), File, S::Base),
                    end_one(Space, File, S::Base),
                    back(Anything),
                ]
            }
        }
        S::File => {
            const {
                &[
                    end(End, File, S::Base),
                    stay(LETTER),
                    stay(Digit),
                    attempt(Is(b'.'), S::FileNext),
                    stay(Is(b'_')),
                    stay(Is(b'-')),
                    attempt(Is(b'/'), S::FileFirst),
                    end(Anything, File, S::Base),
                ]
            }
        }
        S::FileNext => {
            const {
                &[
                    settle(LETTER, S::File),
                    settle(Digit, S::File),
                    settle(Is(b'_'), S::File),
                    back(Anything),
                ]
            }
        }
        S::UrlPathFirst => const { &[go(On::UrlCharacter, S::UrlPath), back(Anything)] },
        S::UrlPathStart => const { &[go(Anything, S::UrlPath)] },
        S::UrlPath => const { &[stay(On::UrlCharacter), end(Anything, UrlPath, S::Base)] },
        S::Url => {
            const {
                &[
                    back(End),
                    with(Aside::HostAgain, end_all(On::Path, Url, S::Base)),
                    back(Anything),
                ]
            }
        }
        _ => return None,
    })
}
