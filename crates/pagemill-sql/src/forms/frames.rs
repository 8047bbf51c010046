//! Frames of windows as the parser knows them.
//!
//! ```text
//! rows between 2 preceding and … exclude ties   rows between "exclude ties"(2) preceding and …
//! range between '1 day'::interval preceding …   range between ('1 day'::interval) preceding …
//! ```
//!
//! Invariant: a frame is one only if its bounds are whole and a parenthesis or EXCLUDE is behind them.
//!
//! Source: `opt_frame_clause` in `src/backend/parser/gram.y`, PostgreSQL 14 to 18.

use sqlparser::ast::{ObjectName, ObjectNamePart};
use sqlparser::tokenizer::Token;

use super::{Change, Changes, Seen, keyword, nothing};
use crate::functions::windows::Exclusion;

/// What stands for CURRENT ROW and UNBOUNDED within the start of a frame with EXCLUDE.
pub(crate) const CURRENT_BOUND: &str = "current row";
pub(crate) const UNBOUNDED: &str = "unbounded bound";

/// What EXCLUDE leaves out, by the name of what stands around the start of a frame.
pub(crate) fn excluded(name: &ObjectName) -> Option<Exclusion> {
    let [ObjectNamePart::Identifier(name)] = &name.0[..] else { return None };
    let known =
        EXCLUSIONS.iter().find(|(known, ..)| *known == name.value && name.quote_style.is_some());
    known.map(|(_, _, exclusion)| *exclusion)
}

static EXCLUSIONS: [(&str, &[&str], Exclusion); 3] = [
    ("exclude current row", &["current", "row"], Exclusion::CurrentRow),
    ("exclude group", &["group"], Exclusion::Group),
    ("exclude ties", &["ties"], Exclusion::Ties),
];

/// A bound of a frame.
struct Bound {
    begin: usize,
    /// Where PRECEDING or FOLLOWING stands behind an offset.
    direction: Option<usize>,
    end: usize,
}

fn bound(seen: &Seen<'_>, begin: usize) -> Option<Bound> {
    let directions = ["preceding", "following"];
    let is_current = seen.is(begin, "current") && seen.is(begin + 1, "row");
    let is_unbounded = seen.is(begin, "unbounded") && seen.is_any(begin + 1, &directions);
    if is_current || is_unbounded {
        return Some(Bound { begin, direction: None, end: begin + 2 });
    }
    let mut depth = 0_usize;
    for at in begin..seen.places.len() {
        match seen.token(at)? {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.checked_sub(1)?,
            Token::SemiColon | Token::Comma if depth == 0 => return None,
            _ if depth == 0 && at > begin && seen.is_any(at, &directions) => {
                return Some(Bound { begin, direction: Some(at), end: at + 1 });
            }
            _ => {}
        }
    }
    None
}

/// A frame behind ROWS, RANGE or GROUPS.
pub(super) fn frame(seen: &Seen<'_>, number: usize) -> Changes {
    if !seen.is_any(number, &["rows", "range", "groups"]) {
        return Changes::new();
    }
    found(seen, number).unwrap_or_default() // default: no frame, nothing changes
}

fn found(seen: &Seen<'_>, number: usize) -> Option<Changes> {
    let is_pair = seen.is(number + 1, "between");
    let start = bound(seen, number + 1 + usize::from(is_pair))?;
    let second = match is_pair && seen.is(start.end, "and") {
        true => Some(bound(seen, start.end + 1)?),
        false if is_pair => return None,
        false => None,
    };
    let end = second.as_ref().unwrap_or(&start).end;
    let exclusion = exclusion(seen, end);
    if exclusion.is_none() && seen.token(end) != Some(&Token::RParen) {
        return None;
    }
    let mut changes = Changes::new();
    let open = Change::Before(Token::LParen);
    let close = |at: usize| (at, Change::Before(Token::RParen));
    if let Some((name, words)) = exclusion {
        let name = Token::make_word(name, Some('"'));
        changes.extend((end..=end + words).map(nothing));
        match start.direction {
            Some(direction) => {
                let before = [Change::Before(name), open.clone()];
                changes.extend(before.map(|change| (start.begin, change)));
                changes.push(close(direction));
            }
            None => {
                let is_current = seen.is(start.begin, "current");
                let inner = if is_current { CURRENT_BOUND } else { UNBOUNDED };
                let inner = Token::make_word(inner, Some('"'));
                let call = vec![name, Token::LParen, inner, Token::RParen];
                changes.push((start.begin, Change::To(call)));
                changes.extend(is_current.then(|| keyword(start.begin + 1, "PRECEDING")));
            }
        }
    }
    let plain = second.iter().chain(exclusion.is_none().then_some(&start));
    for Bound { begin, direction, .. } in plain {
        if let Some(direction) = direction.filter(|_| is_other(seen, *begin)) {
            changes.extend([(*begin, open.clone()), close(direction)]);
        }
    }
    Some(changes)
}

/// The name that stands for EXCLUDE, and how many words it has behind it.
fn exclusion(seen: &Seen<'_>, at: usize) -> Option<(&'static str, usize)> {
    let is_it = |words: &&[&str]| {
        words.iter().enumerate().all(|(count, word)| seen.is(at + 1 + count, word))
            && seen.token(at + 1 + words.len()) == Some(&Token::RParen)
    };
    let known = EXCLUSIONS.iter().find(|(_, words, _)| is_it(words));
    known.filter(|_| seen.is(at, "exclude")).map(|(name, words, _)| (*name, words.len()))
}

/// True where the parser takes the begin of an offset for something else.
fn is_other(seen: &Seen<'_>, begin: usize) -> bool {
    matches!(seen.token(begin), Some(Token::SingleQuotedString(_))) || seen.is(begin, "unbounded")
}
