//! COLLATE behind a cast, `x::text COLLATE "C"`, or behind a name with a point in it, `t.a COLLATE "C"`, with the parentheses that the
//! parser wants: `(x::text) COLLATE "C"`.
//!
//! Invariant: a cast and COLLATE bind more tightly than all else that may stand before them, so that the parentheses change
//! nothing. What is before COLLATE in another form is left as it is.
//!
//! Source: the precedences in `src/backend/parser/gram.y`, PostgreSQL 14 to 18.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::lexical::is_word;

/// The tokens with such parentheses.
pub(crate) fn in_parentheses(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_seen = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let places: Vec<usize> = (0..tokens.len()).filter(is_seen).collect();
    let seen: Vec<&Token> = places.iter().map(|at| &tokens[*at].token).collect();
    let mut around: Vec<(usize, usize)> = Vec::new();
    for at in 1..seen.len() {
        if is_word(Some(seen[at]), "collate")
            && let Some(begin) = cast_before(&seen, at).or_else(|| name_before(&seen, at))
        {
            around.push((places[begin], places[at]));
        }
    }
    if around.is_empty() {
        return tokens;
    }
    let mut all = Vec::with_capacity(tokens.len() + 2 * around.len());
    for (at, token) in tokens.into_iter().enumerate() {
        let like = |paren: Token| TokenWithSpan { token: paren, span: token.span };
        let ends = around.iter().filter(|(_, end)| *end == at).count();
        let begins = around.iter().filter(|(begin, _)| *begin == at).count();
        all.extend(std::iter::repeat_n(like(Token::RParen), ends));
        all.extend(std::iter::repeat_n(like(Token::LParen), begins));
        all.push(token);
    }
    all
}

/// Where a name begins that ends before a place, of those that the parser takes otherwise: COLLATE behind `t.a` for a part of `a`, and
/// a name that is that of a type for the beginning of a constant.
fn name_before(seen: &[&Token], end: usize) -> Option<usize> {
    const TYPES: [&str; 7] = ["box", "circle", "line", "lseg", "path", "point", "polygon"];
    let last = end.checked_sub(1)?;
    let Token::Word(word) = seen[last] else { return None };
    let begin = path(seen, last);
    let is_type = word.quote_style.is_none() && TYPES.contains(&&*word.value.to_lowercase());
    (begin < last || is_type).then_some(begin)
}

/// Where a cast begins that ends before a place.
fn cast_before(seen: &[&Token], end: usize) -> Option<usize> {
    let mut begin = cast(seen, end)?;
    // One cast behind the other.
    while let Some(before) = cast(seen, begin) {
        begin = before;
    }
    operand(seen, begin)
}

/// Where `::` stands before a type that ends here.
fn cast(seen: &[&Token], end: usize) -> Option<usize> {
    let mut at = end.checked_sub(1)?;
    while *seen[at] == Token::RBracket || *seen[at] == Token::RParen {
        at = opening(seen, at)?.checked_sub(1)?;
    }
    let words = match seen[at] {
        Token::Word(word) if word.quote_style.is_some() => 0,
        Token::Word(word) if ["varying", "precision"].contains(&&*word.value.to_lowercase()) => 1,
        // Of a CASE, or of a type with a zone.
        Token::Word(word) if ["end", "zone"].contains(&&*word.value.to_lowercase()) => return None,
        Token::Word(_) => 0,
        _ => return None,
    };
    at = path(seen, at.checked_sub(words)?).checked_sub(1)?;
    (*seen[at] == Token::DoubleColon).then_some(at)
}

/// Where the operand begins that ends before a place.
fn operand(seen: &[&Token], end: usize) -> Option<usize> {
    let mut at = end.checked_sub(1)?;
    while *seen[at] == Token::RBracket {
        at = opening(seen, at)?.checked_sub(1)?;
    }
    match seen[at] {
        Token::RParen => {
            let open = opening(seen, at)?;
            let is_called = |at: &usize| {
                matches!(seen[*at], Token::Word(word) if word.quote_style.is_some()
                    || !BEFORE_OPERAND.iter().any(|other| word.value.eq_ignore_ascii_case(other)))
            };
            match open.checked_sub(1).filter(is_called) {
                Some(name) => Some(path(seen, name)),
                None => Some(open),
            }
        }
        Token::Word(word) => match word.value.eq_ignore_ascii_case("end") {
            true => None,
            false => Some(path(seen, at)),
        },
        Token::SingleQuotedString(_)
        | Token::EscapedStringLiteral(_)
        | Token::UnicodeStringLiteral(_)
        | Token::DollarQuotedString(_)
        | Token::Number(..)
        | Token::Placeholder(_) => Some(at),
        _ => None,
    }
}

/// Words before a parenthesis that no function has for its name.
const BEFORE_OPERAND: [&str; 22] = [
    "all", "and", "any", "as", "between", "by", "case", "distinct", "else", "having", "ilike",
    "in", "like", "limit", "not", "on", "or", "select", "then", "to", "when", "where",
];

/// Where a name begins with all before its last point.
fn path(seen: &[&Token], last: usize) -> usize {
    let mut at = last;
    while at >= 2 && *seen[at - 1] == Token::Period && matches!(seen[at - 2], Token::Word(_)) {
        at -= 2;
    }
    at
}

/// Where what closes here opens.
fn opening(seen: &[&Token], close: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for at in (0..=close).rev() {
        match seen[at] {
            Token::RParen | Token::RBracket => depth += 1,
            Token::LParen | Token::LBracket => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    use super::*;

    #[test]
    fn parentheses_are_around_casts_before_collate() {
        for (text, expected) in [
            ("a||b::text collate c", "a||(b::text )collate c"),
            ("s.a::regclass::text collate c", "(s.a::regclass::text )collate c"),
            ("where (a||b)::text[] collate c", "where ((a||b)::text[] )collate c"),
            ("f.g(a)::varchar(3) collate c", "(f.g(a)::varchar(3) )collate c"),
            ("a[1]::text collate c", "(a[1]::text )collate c"),
            ("a collate c", "a collate c"),
            ("where t.a collate c < s.t.b collate c", "where (t.a )collate c < (s.t.b )collate c"),
            ("order by path collate c", "order by (path )collate c"),
            ("a::character varying collate c", "(a::character varying )collate c"),
            ("case when a then b::text end collate c", "case when a then b::text end collate c"),
            ("('a'::text) collate c", "('a'::text) collate c"),
        ] {
            let dialect = PostgreSqlDialect {};
            let tokens = Tokenizer::new(&dialect, text).tokenize_with_location().unwrap();
            let found: String =
                in_parentheses(tokens).iter().map(|token| token.token.to_string()).collect();
            assert_eq!(found, expected);
        }
    }
}
