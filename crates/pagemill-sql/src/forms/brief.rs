//! Forms that leave out what the parser wants, or have what it does not want: no columns, no text to be trimmed away.
//!
//! ```text
//! select      select "\0none"       trim(leading from x)    pg_catalog.ltrim(x)
//! x isnull    x is null             group by distinct x     group by "\0distinct", x
//! (row).*     "\0fields"(row)       interval(2) 'x'         cast('x' as interval(2))
//! ```
//!
//! Invariant: names with a zero in them are of no statement, so that whoever does not know them can refuse them.
//!
//! Source: `simple_select`, `trim_list`, `group_clause`, `target_el` in `src/backend/parser/gram.y`, PostgreSQL 14 to 18.

use sqlparser::tokenizer::Token;

use super::{Change, Changes, Seen, nothing};

/// The column of a select list that has none.
pub(crate) const NO_COLUMN: &str = "\0none";

/// What is called with a row whose fields are columns.
pub(crate) const FIELDS: &str = "\0fields";

/// What comes first in GROUP BY DISTINCT.
pub(crate) const DISTINCT_SETS: &str = "\0distinct";

/// What stands behind a select list.
const BEHIND_LIST: [&str; 13] = [
    "where",
    "group",
    "having",
    "window",
    "union",
    "intersect",
    "except",
    "order",
    "limit",
    "offset",
    "fetch",
    "for",
    "into",
];

/// Words behind which an operand begins.
pub(super) const BEFORE_OPERAND: [&str; 24] = [
    "all", "and", "as", "between", "by", "case", "distinct", "else", "from", "having", "ilike",
    "in", "is", "like", "limit", "not", "offset", "on", "or", "return", "select", "then", "when",
    "where",
];

impl Seen<'_> {
    fn is_end(&self, number: usize) -> bool {
        match self.token(number) {
            None | Some(Token::EOF | Token::SemiColon | Token::RParen) => true,
            _ => self.is_any(number, &BEHIND_LIST),
        }
    }

    /// The parenthesis that closes, or opens, what this one opens, or closes.
    pub(super) fn other_end(&self, number: usize) -> Option<usize> {
        let mut depth = 0_i64;
        let is_it = |at: &usize| {
            depth += match self.token(*at) {
                Some(Token::LParen) => 1,
                Some(Token::RParen) => -1,
                _ => 0,
            };
            depth == 0
        };
        match self.token(number)? {
            Token::LParen => (number..self.places.len()).find(is_it),
            _ => (0..=number).rev().find(is_it),
        }
    }
}

/// A select list without columns.
pub(super) fn without_columns(seen: &Seen<'_>, number: usize) -> Changes {
    let is_name =
        |before: usize| seen.is(before, "as") || seen.token(before) == Some(&Token::Period);
    if !seen.is(number, "select") || number.checked_sub(1).is_some_and(is_name) {
        return Changes::new();
    }
    let last = number + usize::from(seen.is(number + 1, "all"));
    match (seen.is_end(last + 1), seen.token(last)) {
        (true, Some(word)) => {
            vec![(last, Change::To(vec![word.clone(), named(NO_COLUMN)]))]
        }
        _ => Changes::new(),
    }
}

pub(super) fn named(name: &str) -> Token {
    Token::make_word(name, Some('"'))
}

/// `TRIM(LEADING FROM x)`, `TRIM(FROM x)`, `TRIM(LEADING x)` and `TRIM(x, y)`.
pub(super) fn trimmed(seen: &Seen<'_>, number: usize) -> Changes {
    let is_call = seen.is(number, "trim") && seen.token(number + 1) == Some(&Token::LParen);
    if !is_call || seen.before(number) == Some(&Token::Period) {
        return Changes::new();
    }
    let (name, first) = match () {
        () if seen.is(number + 2, "both") => ("btrim", number + 3),
        () if seen.is(number + 2, "leading") => ("ltrim", number + 3),
        () if seen.is(number + 2, "trailing") => ("rtrim", number + 3),
        () => ("btrim", number + 2),
    };
    let Some(close) = seen.other_end(number + 1) else { return Changes::new() };
    let has_from = outside(seen, first..close).any(|at| seen.is(at, "from"));
    let has_comma = outside(seen, first..close).any(|at| seen.token(at) == Some(&Token::Comma));
    let is_whole = seen.is(first, "from");
    if first == close || !is_whole && (has_from || first == number + 2 && !has_comma) {
        return Changes::new();
    }
    let words = ["pg_catalog", name].map(|word| Token::make_word(word, None));
    let [schema, name] = words;
    let mut changes = vec![(number, Change::To(vec![schema, Token::Period, name]))];
    changes.extend((number + 2..first).map(nothing));
    changes.extend(is_whole.then(|| nothing(first)));
    changes
}

/// The places in no parentheses of their own.
fn outside<'s>(
    seen: &'s Seen<'_>,
    range: std::ops::Range<usize>,
) -> impl Iterator<Item = usize> + 's {
    let mut depth = 0_usize;
    range.filter(move |at| {
        match seen.token(*at) {
            Some(Token::LParen | Token::LBracket) => depth += 1,
            Some(Token::RParen | Token::RBracket) => depth = depth.saturating_sub(1),
            _ => return depth == 0,
        }
        false
    })
}

/// `x ISNULL` and `x NOTNULL`.
pub(super) fn tested(seen: &Seen<'_>, number: usize) -> Changes {
    let is_test = seen.is_any(number, &["isnull", "notnull"]);
    let is_name = matches!(seen.token(number + 1), Some(Token::LParen | Token::Period));
    if !is_test || is_name || !ends_operand(seen, number) {
        return Changes::new();
    }
    let words: &[&str] =
        if seen.is(number, "isnull") { &["IS", "NULL"] } else { &["IS", "NOT", "NULL"] };
    let words = words.iter().map(|word| Token::make_keyword(word)).collect();
    vec![(number, Change::To(words))]
}

/// Whether an operand ends before a place.
fn ends_operand(seen: &Seen<'_>, number: usize) -> bool {
    match seen.before(number) {
        Some(Token::Word(word)) if word.quote_style.is_none() => {
            !BEFORE_OPERAND.contains(&&*word.value.to_lowercase())
        }
        Some(
            Token::Word(_)
            | Token::RParen
            | Token::RBracket
            | Token::Number(..)
            | Token::Placeholder(_)
            | Token::SingleQuotedString(_)
            | Token::DollarQuotedString(_),
        ) => true,
        _ => false,
    }
}

/// `INTERVAL(2) '…'`, whose precision the parser forgets.
pub(super) fn with_places(seen: &Seen<'_>, number: usize) -> Changes {
    let is_form = seen.is(number, "interval")
        && seen.token(number + 1) == Some(&Token::LParen)
        && matches!(seen.token(number + 2), Some(Token::Number(..)))
        && seen.token(number + 3) == Some(&Token::RParen);
    let Some(text @ Token::SingleQuotedString(_)) = seen.token(number + 4).filter(|_| is_form)
    else {
        return Changes::new();
    };
    let mut begin = vec![Token::make_keyword("CAST"), Token::LParen, text.clone()];
    begin.extend(["AS", "INTERVAL"].map(Token::make_keyword));
    let end = Change::To(vec![Token::RParen]);
    vec![(number, Change::To(begin)), (number + 4, end)]
}

/// `GROUP BY ALL x`, which says nothing, and `GROUP BY DISTINCT x`.
pub(super) fn grouped(seen: &Seen<'_>, number: usize) -> Changes {
    let is_clause = seen.is(number, "group") && seen.is(number + 1, "by");
    if !is_clause || seen.is_end(number + 3) {
        return Changes::new();
    }
    match () {
        () if seen.is(number + 2, "all") => vec![nothing(number + 2)],
        () if seen.is(number + 2, "distinct") => {
            let first = vec![named(DISTINCT_SETS), Token::Comma];
            vec![(number + 2, Change::To(first))]
        }
        () => Changes::new(),
    }
}

/// `(row).*` in a select list.
pub(super) fn expanded(seen: &Seen<'_>, number: usize) -> Changes {
    let is_star = seen.token(number) == Some(&Token::Mul)
        && number > 2
        && seen.before(number) == Some(&Token::Period)
        && seen.token(number - 2) == Some(&Token::RParen);
    let ends = seen.is_end(number + 1)
        || seen.is(number + 1, "from")
        || seen.token(number + 1) == Some(&Token::Comma);
    if !is_star || !ends {
        return Changes::new();
    }
    match seen.other_end(number - 2) {
        Some(open) if is_item(seen, open) => {
            let call = Change::To(vec![named(FIELDS), Token::LParen]);
            vec![(open, call), nothing(number - 1), nothing(number)]
        }
        _ => Changes::new(),
    }
}

/// Whether an item of a select list begins here.
fn is_item(seen: &Seen<'_>, number: usize) -> bool {
    let begins = seen.before(number) == Some(&Token::Comma)
        || number.checked_sub(1).is_some_and(|at| seen.is_any(at, &["select", "all", "distinct"]));
    let mut depth = 0_usize;
    for at in (0..number).rev() {
        match seen.token(at) {
            Some(Token::RParen) => depth += 1,
            Some(Token::LParen) if depth == 0 => return false,
            Some(Token::LParen) => depth -= 1,
            _ if depth == 0 && seen.is(at, "select") => return begins,
            _ if depth == 0 && (seen.is(at, "from") || seen.is_any(at, &BEHIND_LIST)) => {
                return false;
            }
            _ => {}
        }
    }
    false
}
