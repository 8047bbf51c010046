//! `pg_trgm`: how alike texts are, by the trigrams of their words.
//!
//! `trigrams/extract.rs` cuts texts into trigrams, `trigrams/likeness.rs` compares those. Here are the functions as SQL calls them, and the
//! limits of the operators `%`, `<%` and `<<%`, which a session may set. `set_limit`, which sets one, is not here.
//!
//! Invariant: numbers are those of a server of the same architecture, computed in single precision in the same order; letters, digits and
//! lower case are those of the database's locale.
//! Source: `contrib/pg_trgm/trgm_op.c` and `contrib/pg_trgm/trgm.h`, PostgreSQL 14 to 18.

pub mod extract;
pub mod likeness;

use super::arrays::Array;
use super::call::{Argument, CallError, ExtensionFunction, Letters, Value, strict};
use extract::{CharSign, distinct, shown};
use likeness::{Extent, similarity, word_similarity};

/// The least likeness that the operators take for alike; settings of a session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// `pg_trgm.similarity_threshold`, of `%`.
    pub similarity: f64,
    /// `pg_trgm.word_similarity_threshold`, of `<%` and `%>`.
    pub word_similarity: f64,
    /// `pg_trgm.strict_word_similarity_threshold`, of `<<%` and `%>>`.
    pub strict_word_similarity: f64,
}

/// What a session has that sets none of them.
pub const DEFAULT_LIMITS: Limits =
    Limits { similarity: 0.3, word_similarity: 0.6, strict_word_similarity: 0.5 };

/// Two texts as an operator gets them.
type Texts<'a> = (&'a str, &'a str);

/// `show_trgm`: the trigrams of a text as the payload of a `text[]`, in the server's order.
pub fn show_trgm(letters: &dyn Letters, text: &str, sign: CharSign) -> Vec<u8> {
    let mut trigrams = distinct(letters, text);
    sign.sort(&mut trigrams);
    let texts = trigrams.iter().map(|trigram| Some(shown(trigram))).collect();
    Array::of_one_dimension(texts).texts_payload()
}

/// `%`: true where two texts are at least as alike as the limit says.
pub fn is_similar(letters: &dyn Letters, (first, second): Texts<'_>, limit: f64) -> bool {
    f64::from(similarity(letters, first, second)) >= limit
}

/// `<%` and `<<%`: true where a part of the text is at least as alike to the pattern as the limit says.
pub fn has_similar_part(
    letters: &dyn Letters,
    (pattern, text): Texts<'_>,
    extent: Extent,
    limit: f64,
) -> bool {
    f64::from(word_similarity(letters, (pattern, text), extent, Some(limit))) >= limit
}

/// A distance: what a likeness lacks of 1.
fn distance(likeness: f32) -> Value {
    Value::Float4((1.0 - f64::from(likeness)) as f32)
}

fn texts<'a>(arguments: &[Argument<'a>]) -> Result<Texts<'a>, CallError> {
    match arguments {
        [Argument::Text(first), Argument::Text(second), ..] => Ok((first, second)),
        _ => Err(CallError::other_arguments()),
    }
}

/// The same, the other way round: what the commutators of the operators take.
fn swapped<'a>(arguments: &[Argument<'a>]) -> Result<Texts<'a>, CallError> {
    texts(arguments).map(|(first, second)| (second, first))
}

fn likeness(letters: &dyn Letters, texts: Texts<'_>, extent: Extent) -> f32 {
    word_similarity(letters, texts, extent, None)
}

/// What the session set, which is the last argument then.
fn limit(arguments: &[Argument<'_>], default: f64) -> f64 {
    match arguments.last() {
        Some(Argument::Float8(limit)) => *limit,
        _ => default,
    }
}

fn is_part(
    letters: &dyn Letters,
    arguments: &[Argument<'_>],
    texts: Texts<'_>,
    extent: Extent,
) -> Value {
    let default = match extent {
        Extent::AnyTrigrams => DEFAULT_LIMITS.word_similarity,
        Extent::WholeWords => DEFAULT_LIMITS.strict_word_similarity,
    };
    Value::Bool(has_similar_part(letters, texts, extent, limit(arguments, default)))
}

/// The functions of the library. Those with a limit take one that the session set as an argument more.
pub const FUNCTIONS: &[ExtensionFunction] = &[
    strict("show_limit", |_, arguments| {
        Ok(Value::Float4(limit(arguments, DEFAULT_LIMITS.similarity) as f32))
    }),
    strict("show_trgm", |letters, arguments| match arguments {
        [Argument::Text(text)] => Ok(Value::Payload(show_trgm(letters, text, CharSign::Signed))),
        _ => Err(CallError::other_arguments()),
    }),
    strict("similarity", |letters, arguments| {
        let (first, second) = texts(arguments)?;
        Ok(Value::Float4(similarity(letters, first, second)))
    }),
    strict("similarity_dist", |letters, arguments| {
        let (first, second) = texts(arguments)?;
        Ok(distance(similarity(letters, first, second)))
    }),
    strict("similarity_op", |letters, arguments| {
        let limit = limit(arguments, DEFAULT_LIMITS.similarity);
        Ok(Value::Bool(is_similar(letters, texts(arguments)?, limit)))
    }),
    strict("word_similarity", |letters, arguments| {
        Ok(Value::Float4(likeness(letters, texts(arguments)?, Extent::AnyTrigrams)))
    }),
    strict("word_similarity_op", |letters, arguments| {
        Ok(is_part(letters, arguments, texts(arguments)?, Extent::AnyTrigrams))
    }),
    strict("word_similarity_commutator_op", |letters, arguments| {
        Ok(is_part(letters, arguments, swapped(arguments)?, Extent::AnyTrigrams))
    }),
    strict("word_similarity_dist_op", |letters, arguments| {
        Ok(distance(likeness(letters, texts(arguments)?, Extent::AnyTrigrams)))
    }),
    strict("word_similarity_dist_commutator_op", |letters, arguments| {
        Ok(distance(likeness(letters, swapped(arguments)?, Extent::AnyTrigrams)))
    }),
    strict("strict_word_similarity", |letters, arguments| {
        Ok(Value::Float4(likeness(letters, texts(arguments)?, Extent::WholeWords)))
    }),
    strict("strict_word_similarity_op", |letters, arguments| {
        Ok(is_part(letters, arguments, texts(arguments)?, Extent::WholeWords))
    }),
    strict("strict_word_similarity_commutator_op", |letters, arguments| {
        Ok(is_part(letters, arguments, swapped(arguments)?, Extent::WholeWords))
    }),
    strict("strict_word_similarity_dist_op", |letters, arguments| {
        Ok(distance(likeness(letters, texts(arguments)?, Extent::WholeWords)))
    }),
    strict("strict_word_similarity_dist_commutator_op", |letters, arguments| {
        Ok(distance(likeness(letters, swapped(arguments)?, Extent::WholeWords)))
    }),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::extension::arrays;
    use crate::extension::extension_tests::{UnicodeLetters, called};

    fn call(symbol: &str, texts: &[&str]) -> Value {
        let arguments: Vec<_> = texts.iter().map(|text| Argument::Text(text)).collect();
        called(FUNCTIONS, symbol, &arguments).unwrap()
    }

    fn trigrams(text: &str) -> Vec<String> {
        let Value::Payload(payload) = call("show_trgm", &[text]) else { panic!("no array") };
        let texts = arrays::texts(&payload).unwrap().present();
        texts.into_iter().map(|text| String::from_utf8(text).unwrap()).collect()
    }

    /// What a PostgreSQL 15 server gives in UTF-8.
    #[test]
    fn trigrams_are_shown_in_the_servers_order() {
        assert_eq!(trigrams("Cat, dog"), ["  c", "  d", " ca", " do", "at ", "cat", "dog", "og "]);
        let umlauts = ["0xef7d97", "  m", "0La", "0x366410", "er ", "ler", "lle"];
        assert_eq!(trigrams("M\u{fc}ller"), umlauts);
        assert_eq!(trigrams("..."), Vec::<String>::new());
        assert_eq!(trigrams(""), Vec::<String>::new());
    }

    #[test]
    fn likeness_is_a_number_of_single_precision() {
        assert_eq!(call("similarity", &["word", "two words"]), Value::Float4(0.363_636_37));
        assert_eq!(call("similarity_dist", &["word", "two words"]), Value::Float4(0.636_363_6));
        assert_eq!(call("word_similarity", &["word", "two words"]), Value::Float4(0.8));
        let strict = call("strict_word_similarity", &["word", "two words"]);
        assert_eq!(strict, Value::Float4(0.571_428_6));
        assert_eq!(call("similarity", &["", ""]), Value::Float4(0.0));
        assert_eq!(call("show_limit", &[]), Value::Float4(0.3));
    }

    #[test]
    fn commutators_swap_pattern_and_text() {
        assert_eq!(call("word_similarity_op", &["word", "two words"]), Value::Bool(true));
        let swapped = call("word_similarity_commutator_op", &["two words", "word"]);
        assert_eq!(swapped, Value::Bool(true));
        let dist = call("word_similarity_dist_commutator_op", &["two words", "word"]);
        assert_eq!(dist, call("word_similarity_dist_op", &["word", "two words"]));
    }

    proptest! {
        #[test]
        fn any_texts_have_a_likeness(first in "\\PC{0,30}", second in "[ a-cäß.]{0,40}") {
            for one in FUNCTIONS {
                let count = match one.symbol { "show_limit" => 0, "show_trgm" => 1, _ => 2 };
                let arguments = [Argument::Text(&first), Argument::Text(&second)];
                prop_assert!((one.call)(&UnicodeLetters, &arguments[..count]).is_ok());
                prop_assert!((one.call)(&UnicodeLetters, &[Argument::Int4(1)]).is_err() || count == 0);
            }
        }

        /// A limit that is passed early gives the same answer as the whole search.
        #[test]
        fn limits_are_passed_or_not(pattern in "[ab ]{0,9}", text in "[ab ]{0,20}", limit in 0.0..1.0) {
            for extent in [Extent::AnyTrigrams, Extent::WholeWords] {
                let whole = word_similarity(&UnicodeLetters, (&pattern, &text), extent, None);
                let passed = has_similar_part(&UnicodeLetters, (&pattern, &text), extent, limit);
                prop_assert_eq!(passed, f64::from(whole) >= limit);
            }
        }
    }
}
