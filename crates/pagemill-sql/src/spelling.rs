//! Texts as the parser knows them: what PostgreSQL's grammar has and the parser has not, in words that mean the same.
//!
//! Invariant: only what the parser takes for nothing, or for something else, is spelled otherwise; places stay those of the text.
//!
//! Source: `src/backend/parser/gram.y`, PostgreSQL 18.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::lexical::is_word;

/// The name that [`spelled`] gives a list of functions.
pub(crate) const ROWS_FROM: &str = "rows from";

/// The name that [`spelled`] gives ONLY, whose table is then its argument.
pub(crate) const ONLY: &str = "only rows";

/// The tokens as the parser knows them: `ROWS FROM (…)` and `ONLY t` as functions, no LATERAL before a function, which is
/// so in any case, and `TABLE t` as `SELECT * FROM t`.
pub(crate) fn spelled(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let seen: Vec<usize> =
        (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let (mut left_out, mut lists, mut tables) = (Vec::new(), Vec::new(), Vec::new());
    let mut named = Vec::new();
    for (number, at) in seen.iter().enumerate() {
        let next = |count: usize| seen.get(number + count).map(|at| &tokens[*at].token);
        if is_word(next(0), "lateral") && next(1) != Some(&Token::LParen) {
            left_out.push(*at);
        }
        let starts_with = |words: &[&str]| {
            words.iter().enumerate().all(|(count, word)| is_word(next(count), word))
        };
        // What a frame leaves out where nothing is said.
        if starts_with(&["exclude", "no", "others"]) {
            left_out.extend(&seen[number..number + 3]);
        }
        // The parser knows plain operators only before ANY and ALL.
        let is_plain = is_word(next(0), "operator")
            && is_word(next(2), "pg_catalog")
            && next(3) == Some(&Token::Period)
            && next(5) == Some(&Token::RParen);
        if is_plain && ["any", "all", "some"].iter().any(|word| is_word(next(6), word)) {
            let around = (number..number + 6).filter(|place| *place != number + 4);
            left_out.extend(around.map(|place| seen[place]));
        }
        if is_call_in_catalog(&next) {
            named.push(seen[number + 2]);
        }
        let before = number.checked_sub(1).map(|before| &tokens[seen[before]].token);
        let starts_query = matches!(before, None | Some(Token::SemiColon | Token::LParen))
            || ["union", "all", "distinct", "except", "intersect"]
                .iter()
                .any(|w| is_word(before, w));
        if starts_query && is_word(next(0), "table") && matches!(next(1), Some(Token::Word(_))) {
            tables.push(*at);
        }
        let starts_item = before == Some(&Token::Comma)
            || ["from", "join", "lateral"].iter().any(|word| is_word(before, word));
        let is_list = is_word(next(0), "rows")
            && is_word(next(1), "from")
            && next(2) == Some(&Token::LParen)
            && matches!(next(3), Some(Token::Word(_)))
            && next(4) == Some(&Token::LParen);
        if starts_item && is_list {
            lists.push(*at);
            left_out.push(seen[number + 1]);
        }
    }
    let commas = words_of_substrings(&tokens, &seen);
    let (mut opened, mut closed) = bare_sets(&tokens, &seen);
    let (own, own_opened, own_closed) = bare_tables(&tokens, &seen);
    opened.extend(own_opened);
    closed.extend(own_closed);
    let nameless = nameless_definitions(&tokens, &seen);
    let mut spelled = Vec::with_capacity(tokens.len());
    for (at, mut token) in tokens.into_iter().enumerate() {
        if left_out.contains(&at) {
            continue;
        }
        if tables.contains(&at) {
            let words = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")];
            spelled.extend(words.map(|word| TokenWithSpan { token: word, ..token.clone() }));
            continue;
        }
        if lists.contains(&at) {
            token.token = Token::make_word(ROWS_FROM, Some('"'));
        }
        if own.contains(&at) {
            token.token = Token::make_word(ONLY, Some('"'));
        }
        if let (true, Token::Word(word)) = (named.contains(&at), &token.token) {
            token.token = Token::make_word(&word.value.to_lowercase(), Some('"'));
        }
        if commas.contains(&at) {
            token.token = Token::Comma;
        }
        let name = nameless.iter().find(|(place, _)| *place == at).map(|(_, name)| name);
        let name = name.map(|name| Token::make_word(name, Some('"')));
        let name = name.map(|word| TokenWithSpan { token: word, ..token.clone() });
        let like = |paren: Token| TokenWithSpan { token: paren, ..token.clone() };
        let (before, behind) = (like(Token::LParen), like(Token::RParen));
        spelled.extend(opened.contains(&at).then_some(before));
        spelled.push(token);
        spelled.extend(closed.contains(&at).then_some(behind));
        spelled.extend(name);
    }
    spelled
}

/// Whether `pg_catalog.substring(` begins here, or another function whose calls without a schema have a syntax of their own, which
/// the parser looks for behind a schema, too.
fn is_call_in_catalog<'t>(next: &impl Fn(usize) -> Option<&'t Token>) -> bool {
    const OF_SYNTAX: [&str; 9] = [
        "substring",
        "substr",
        "ceil",
        "floor",
        "interval",
        "position",
        "overlay",
        "trim",
        "extract",
    ];
    is_word(next(0), "pg_catalog")
        && next(1) == Some(&Token::Period)
        && next(3) == Some(&Token::LParen)
        && OF_SYNTAX.iter().any(|word| is_word(next(2), word))
}

/// Each AS behind a call that a list of column definitions follows, `f(…) AS (a int)`, and the function's name, which the item has
/// then; the parser wants one.
fn nameless_definitions(tokens: &[TokenWithSpan], seen: &[usize]) -> Vec<(usize, String)> {
    const QUERIES: [&str; 8] =
        ["select", "with", "values", "table", "insert", "update", "delete", "merge"];
    let token = |number: usize| seen.get(number).map(|at| &tokens[*at].token);
    let mut found = Vec::new();
    for (number, place) in seen.iter().enumerate().skip(1) {
        let is_list = is_word(token(number), "as")
            && token(number - 1) == Some(&Token::RParen)
            && token(number + 1) == Some(&Token::LParen)
            && matches!(token(number + 2), Some(Token::Word(_)))
            && matches!(token(number + 3), Some(Token::Word(_)))
            && !QUERIES.iter().any(|word| is_word(token(number + 2), word));
        let begin = is_list.then(|| opening(&token, number - 1));
        if let Some(Token::Word(word)) = begin.and_then(|at| token(at.checked_sub(1)?)) {
            let name = match word.quote_style {
                Some(_) => word.value.clone(),
                None => word.value.to_lowercase(),
            };
            found.push((*place, name));
        }
    }
    found
}

/// Where the parenthesis opens that closes here; the beginning, where it does not.
fn opening<'t>(token: &impl Fn(usize) -> Option<&'t Token>, close: usize) -> usize {
    let mut depth = 0_usize;
    for at in (0..=close).rev() {
        match token(at) {
            Some(Token::RParen) => depth += 1,
            Some(Token::LParen) => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    0
}

/// SIMILAR and ESCAPE in `SUBSTRING(text SIMILAR pattern ESCAPE letter)`, which stand for commas: it is a call with three arguments.
fn words_of_substrings(tokens: &[TokenWithSpan], seen: &[usize]) -> Vec<usize> {
    let token = |number: usize| seen.get(number).map(|at| &tokens[*at].token);
    let mut found = Vec::new();
    for number in 0..seen.len() {
        if !is_word(token(number), "substring") || token(number + 1) != Some(&Token::LParen) {
            continue;
        }
        let (mut depth, mut words) = (0usize, Vec::new());
        for (at, place) in seen.iter().enumerate().skip(number + 2) {
            match token(at) {
                Some(Token::LParen) => depth += 1,
                Some(Token::RParen) if depth == 0 => break,
                Some(Token::RParen) => depth -= 1,
                word if depth == 0 => {
                    let wanted = if words.is_empty() { "similar" } else { "escape" };
                    let is_operator = is_word(token(at + 1), "to");
                    if is_word(word, wanted) && !is_operator {
                        words.push(*place);
                    }
                }
                _ => {}
            }
        }
        if words.len() == 2 {
            found.extend(words);
        }
    }
    found
}

/// Where ONLY stands before an item of FROM, and where its table begins and ends that has no parentheses around it.
fn bare_tables(tokens: &[TokenWithSpan], seen: &[usize]) -> (Vec<usize>, Vec<usize>, Vec<usize>) {
    let (mut only, mut opened, mut closed) = (Vec::new(), Vec::new(), Vec::new());
    let token = |number: usize| seen.get(number).map(|at| &tokens[*at].token);
    for number in 1..seen.len() {
        let before = token(number - 1);
        let starts_item = before == Some(&Token::Comma)
            || ["from", "join"].iter().any(|word| is_word(before, word));
        if !starts_item || !is_word(token(number), "only") {
            continue;
        }
        match token(number + 1) {
            Some(Token::LParen) => only.push(seen[number]),
            Some(Token::Word(_)) => {
                let mut last = number + 1;
                while token(last + 1) == Some(&Token::Period) && token(last + 2).is_some() {
                    last += 2;
                }
                only.push(seen[number]);
                opened.push(seen[number + 1]);
                closed.push(seen[last]);
            }
            _ => {}
        }
    }
    (only, opened, closed)
}

/// Where the items of GROUPING SETS begin and end that have no parentheses around them.
fn bare_sets(tokens: &[TokenWithSpan], seen: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let (mut opened, mut closed) = (Vec::new(), Vec::new());
    let token = |number: usize| seen.get(number).map(|at| &tokens[*at].token);
    for number in 0..seen.len() {
        let is_list = is_word(token(number), "grouping")
            && is_word(token(number + 1), "sets")
            && token(number + 2) == Some(&Token::LParen);
        if !is_list {
            continue;
        }
        let (mut depth, mut begins, mut is_bare) = (0usize, true, false);
        for at in number + 3..seen.len() {
            let found = &tokens[seen[at]].token;
            if std::mem::take(&mut begins) && *found != Token::LParen {
                opened.push(seen[at]);
                is_bare = true;
            }
            match found {
                Token::LParen => depth += 1,
                Token::RParen | Token::Comma if depth == 0 => {
                    closed.extend(std::mem::take(&mut is_bare).then(|| seen[at - 1]));
                    begins = *found == Token::Comma;
                    if !begins {
                        break;
                    }
                }
                Token::RParen => depth -= 1,
                _ => {}
            }
        }
    }
    (opened, closed)
}
