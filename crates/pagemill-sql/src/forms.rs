//! Forms of expressions and of FROM that the parser does not know, as ones that it does.
//!
//! ```text
//! order by x using >          order by x desc             f(variadic a)         f("variadic" => a)
//! from t*                     from t                      x @@ any (a)          x @@ "any of" (a)
//! between symmetric a and b   between "symmetric"(a) and b
//! x at local                  x at time zone "at local"   collation for (x)     pg_collation_for (x)
//! ```
//!
//! Invariant: each form that is changed is none that the parser takes for something else and PostgreSQL for the same.
//! Operators that sort are those of a type's own order, whose classes have `<` and `>`.
//!
//! Source: `src/backend/parser/gram.y`, PostgreSQL 14 to 18.

mod brief;
mod frames;
mod parentheses;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::lexical::is_word;
pub(crate) use brief::{DISTINCT_SETS, FIELDS, NO_COLUMN};

use frames::frame;

pub(crate) use frames::{CURRENT_BOUND, UNBOUNDED, excluded};

/// The name that an argument behind VARIADIC has.
pub(crate) const VARIADIC: &str = "variadic";

/// What stands around the first bound of BETWEEN SYMMETRIC.
pub(crate) const SYMMETRIC: &str = "symmetric";

/// The zone of AT LOCAL.
pub(crate) const LOCAL: &str = "at local";

/// ANY and ALL behind an operator that the parser does not know before them.
pub(crate) const ANY_OF: &str = "any of";
pub(crate) const ALL_OF: &str = "all of";

/// What becomes of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    /// These stand in its place.
    To(Vec<Token>),
    /// This stands before it.
    Before(Token),
}

/// The tokens of a text without its blanks.
struct Seen<'t> {
    tokens: &'t [TokenWithSpan],
    places: Vec<usize>,
}

impl Seen<'_> {
    fn token(&self, number: usize) -> Option<&Token> {
        self.places.get(number).map(|at| &self.tokens[*at].token)
    }

    fn before(&self, number: usize) -> Option<&Token> {
        self.token(number.checked_sub(1)?)
    }

    /// The places from one on that are in no parentheses and no CASE of their own, up to the end of those around.
    fn beside(&self, begin: usize) -> impl Iterator<Item = usize> {
        let (mut depth, mut cases) = (0_usize, 0_usize);
        let step = move |at: usize| {
            match self.token(at) {
                Some(Token::LParen | Token::LBracket) => depth += 1,
                Some(Token::RParen | Token::RBracket) => depth = depth.checked_sub(1)?,
                _ if depth > 0 => {}
                _ if self.is(at, "case") => cases += 1,
                _ if self.is(at, "end") => cases = cases.checked_sub(1)?,
                _ if cases == 0 => return Some(Some(at)),
                _ => {}
            }
            Some(None)
        };
        (begin..self.places.len()).map_while(step).flatten()
    }

    fn is(&self, number: usize, word: &str) -> bool {
        is_word(self.token(number), word)
    }

    fn is_any(&self, number: usize, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(number, word))
    }
}

/// The tokens with forms that the parser knows.
pub(crate) fn known_forms(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_seen = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let seen = Seen { tokens: &tokens, places: (0..tokens.len()).filter(is_seen).collect() };
    let mut changes: Vec<(usize, Change)> = Vec::new();
    for number in 0..seen.places.len() {
        let found =
            [ordered, inherited, symmetric, variadic, local, quantified, collation, column, frame];
        found.iter().for_each(|find| changes.extend(find(&seen, number)));
        BRIEF.iter().for_each(|find| changes.extend(find(&seen, number)));
    }
    changes.extend(parentheses::nested_joins(&seen));
    if changes.is_empty() {
        return tokens;
    }
    let places: Vec<(usize, Change)> =
        changes.into_iter().map(|(number, change)| (seen.places[number], change)).collect();
    let mut all = Vec::with_capacity(tokens.len() + places.len());
    for (at, token) in tokens.into_iter().enumerate() {
        let like = |other: &Token| TokenWithSpan { token: other.clone(), span: token.span };
        let mut own = vec![token.clone()];
        for (_, change) in places.iter().filter(|(place, _)| *place == at) {
            match change {
                Change::To(others) => own = others.iter().map(like).collect(),
                Change::Before(other) => all.push(like(other)),
            }
        }
        all.extend(own);
    }
    all
}

type Changes = Vec<(usize, Change)>;

/// Forms that leave something out.
const BRIEF: [fn(&Seen<'_>, usize) -> Changes; 8] = [
    brief::without_columns,
    brief::trimmed,
    brief::tested,
    brief::grouped,
    brief::expanded,
    brief::with_places,
    parentheses::distinct,
    parentheses::united,
];

fn nothing(number: usize) -> (usize, Change) {
    (number, Change::To(Vec::new()))
}

fn keyword(number: usize, word: &str) -> (usize, Change) {
    (number, Change::To(vec![Token::make_keyword(word)]))
}

fn quoted(number: usize, name: &str) -> (usize, Change) {
    (number, Change::To(vec![Token::make_word(name, Some('"'))]))
}

/// `USING <` and `USING >` of ORDER BY.
fn ordered(seen: &Seen<'_>, number: usize) -> Changes {
    let word = match seen.token(number + 1) {
        Some(Token::Lt) => "ASC",
        Some(Token::Gt) => "DESC",
        _ => return Changes::new(),
    };
    // Behind it nothing stands that could be an operand.
    let ends = match seen.token(number + 2) {
        None | Some(Token::Comma | Token::RParen | Token::SemiColon | Token::EOF) => true,
        _ => {
            let words = ["nulls", "limit", "offset", "fetch", "for", "rows", "range", "groups"];
            seen.is_any(number + 2, &words) || seen.is_any(number + 2, &["union", "except"])
        }
    };
    match seen.is(number, "using") && ends {
        true => vec![keyword(number, word), nothing(number + 1)],
        false => Changes::new(),
    }
}

/// `FROM t*`, the tables that inherit from one with it, as without the star.
fn inherited(seen: &Seen<'_>, number: usize) -> Changes {
    let is_item = seen.is_any(number, &["from", "join"])
        && !is_word(seen.before(number), "distinct")
        && !is_argument(seen, number);
    if !is_item || !matches!(seen.token(number + 1), Some(Token::Word(_))) {
        return Changes::new();
    }
    let mut last = number + 1;
    while seen.token(last + 1) == Some(&Token::Period) {
        last += 2;
    }
    match seen.token(last + 1) {
        Some(Token::Mul) if last > number => vec![nothing(last + 1)],
        _ => Changes::new(),
    }
}

/// Whether a FROM stands between the arguments of EXTRACT and its kin.
fn is_argument(seen: &Seen<'_>, number: usize) -> bool {
    let mut depth = 0_usize;
    for at in (0..number).rev() {
        match seen.token(at) {
            Some(Token::RParen) => depth += 1,
            Some(Token::LParen) if depth > 0 => depth -= 1,
            Some(Token::LParen) => {
                let calls = ["extract", "substring", "trim", "overlay", "position"];
                return at.checked_sub(1).is_some_and(|name| seen.is_any(name, &calls));
            }
            _ => {}
        }
    }
    false
}

/// `BETWEEN SYMMETRIC a AND b`.
fn symmetric(seen: &Seen<'_>, number: usize) -> Changes {
    let names = seen.is(number, "between") && seen.is(number + 1, "symmetric");
    let end = match names {
        true => bound_end(seen, number + 2),
        false => None,
    };
    match end {
        Some(end) if end > number + 2 => {
            let (mut changes, open) = (vec![quoted(number + 1, SYMMETRIC)], Token::LParen);
            changes.push((number + 2, Change::Before(open)));
            changes.push((end, Change::Before(Token::RParen)));
            changes
        }
        _ => Changes::new(),
    }
}

/// The AND behind the first bound of BETWEEN.
fn bound_end(seen: &Seen<'_>, begin: usize) -> Option<usize> {
    seen.beside(begin).find(|at| seen.is(*at, "and"))
}

/// `f(…, VARIADIC a)`.
fn variadic(seen: &Seen<'_>, number: usize) -> Changes {
    let begins = matches!(seen.before(number), Some(Token::LParen | Token::Comma));
    let has_operand = match seen.token(number + 1) {
        Some(Token::Word(word)) => word.quote_style.is_some() || word.keyword != Keyword::AS,
        Some(Token::Comma | Token::RParen | Token::Period) | None => false,
        _ => true,
    };
    match begins && seen.is(number, "variadic") && has_operand {
        true => {
            let name = Token::make_word(VARIADIC, Some('"'));
            vec![(number, Change::To(vec![name, Token::RArrow]))]
        }
        false => Changes::new(),
    }
}

/// `x AT LOCAL`, since PostgreSQL 17.
fn local(seen: &Seen<'_>, number: usize) -> Changes {
    let is_operator = number > 0
        && !matches!(seen.before(number), Some(Token::Comma | Token::LParen))
        && seen.is(number, "at")
        && seen.is(number + 1, "local");
    match is_operator {
        true => {
            let words = ["TIME", "ZONE"].map(Token::make_keyword);
            let zone = words.into_iter().chain([Token::make_word(LOCAL, Some('"'))]);
            vec![(number + 1, Change::To(zone.collect()))]
        }
        false => Changes::new(),
    }
}

/// `x operator ANY (…)`, of other operators than the parser knows there.
fn quantified(seen: &Seen<'_>, number: usize) -> Changes {
    let is_known = match seen.before(number) {
        Some(Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq) => true,
        Some(Token::Tilde | Token::TildeAsterisk) => true,
        Some(Token::ExclamationMarkTilde | Token::ExclamationMarkTildeAsterisk) => true,
        Some(Token::DoubleTilde | Token::DoubleTildeAsterisk) => true,
        Some(Token::ExclamationMarkDoubleTilde) => true,
        Some(Token::ExclamationMarkDoubleTildeAsterisk) => true,
        Some(before) => !is_operator(before),
        None => true,
    };
    if is_known || seen.token(number + 1) != Some(&Token::LParen) {
        return Changes::new();
    }
    match () {
        () if seen.is_any(number, &["any", "some"]) => vec![quoted(number, ANY_OF)],
        () if seen.is(number, "all") => vec![quoted(number, ALL_OF)],
        () => Changes::new(),
    }
}

fn is_operator(token: &Token) -> bool {
    let text = token.to_string();
    !matches!(token, Token::Whitespace(_) | Token::Word(_) | Token::Placeholder(_))
        && !text.is_empty()
        && text.chars().all(|c| "+-*/<>=~!@#%^&|`?".contains(c))
}

/// `COLLATION FOR (x)`.
fn collation(seen: &Seen<'_>, number: usize) -> Changes {
    let is_it = seen.is(number, "collation")
        && seen.is(number + 1, "for")
        && seen.token(number + 2) == Some(&Token::LParen);
    match is_it {
        true => {
            let name = ["pg_catalog", "pg_collation_for"].map(|word| Token::make_word(word, None));
            let [schema, name] = name;
            vec![(number, Change::To(vec![schema, Token::Period, name])), nothing(number + 1)]
        }
        false => Changes::new(),
    }
}

/// A column that is called interval.
fn column(seen: &Seen<'_>, number: usize) -> Changes {
    if !seen.is(number, "interval") {
        return Changes::new();
    }
    let begins = matches!(seen.before(number), Some(Token::Comma))
        || { number.checked_sub(1).is_some_and(|before| seen.is(before, "select")) }
        || matches!(seen.before(number), Some(Token::LParen));
    let ends = matches!(seen.token(number + 1), Some(Token::Comma | Token::DoubleColon))
        || seen.is(number + 1, "from");
    match begins && ends {
        true => vec![quoted(number, "interval")],
        false => Changes::new(),
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn known(text: &str) -> String {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location().unwrap();
        known_forms(tokens).iter().map(|token| token.token.to_string()).collect()
    }

    #[test]
    fn forms_are_those_that_the_parser_knows() {
        for (text, expected) in [
            ("order by a using >, b using <", "order by a DESC , b ASC "),
            ("a join b using (c)", "a join b using (c)"),
            ("select * from t* where a", "select * from t where a"),
            ("select * from s.t*, u", "select * from s.t, u"),
            ("extract(day from t * 2)", "extract(day from t * 2)"),
            ("a is distinct from b * 2", "a is distinct from b * 2"),
            ("a between symmetric 1 and 2", "a between \"symmetric\" (1 )and 2"),
            (
                "a between symmetric case when b and c then 1 end and 2",
                "a between \"symmetric\" (case when b and c then 1 end )and 2",
            ),
            ("f(1, variadic a)", "f(1, \"variadic\"=> a)"),
            ("variadic, f(variadic)", "variadic, f(variadic)"),
            ("a at local", "a at TIMEZONE\"at local\""),
            ("a @@ any (b)", "a @@ \"any of\" (b)"),
            ("select", "select\"\0none\""),
            ("select all where a", "select all\"\0none\" where a"),
            ("trim(leading from a, b)", "pg_catalog.ltrim(  a, b)"),
            ("trim(a from b), trim(a)", "trim(a from b), trim(a)"),
            ("a isnull or isnull(b)", "a ISNULL or isnull(b)"),
            ("a join b join c on d on e", "a join (b join c on d )on e"),
            ("a cross join b join c on d", "a cross join b join c on d"),
            ("select a, (f(b)).* from c", "select a, \"\0fields\"(f(b)) from c"),
            ("on a is distinct from b + 1 and c", "on (a is distinct from b + 1 )and c"),
            ("a = any (b)", "a = any (b)"),
            ("collation for (a)", "pg_catalog.pg_collation_for  (a)"),
            ("select interval, interval '1'", "select \"interval\", interval '1'"),
            ("group by all rollup(a)", "group by  rollup(a)"),
            ("group by all", "group by all"),
            ("(rows 2 preceding)", "(rows 2 preceding)"),
            (
                "(range between '1'::int preceding and current row)",
                "(range between ('1'::int )preceding and current row)",
            ),
            ("(rows f(1) preceding exclude ties)", "(rows \"exclude ties\"(f(1) )preceding  )"),
            (
                "(groups between current row and '1' following exclude current row)",
                "(groups between \"exclude current row\"(\"current row\") PRECEDING and ('1' )following   )",
            ),
            (
                "(rows unbounded preceding exclude group)",
                "(rows \"exclude group\"(\"unbounded bound\") preceding  )",
            ),
            ("select rows, exclude from range", "select rows, exclude from range"),
        ] {
            assert_eq!(known(text), expected);
        }
    }
}
