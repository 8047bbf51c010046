//! `ts_headline`: the part of a text that shows best what a query found, with its words marked.
//!
//! `words.rs` are the tokens of the text with what of the query they are, `covers.rs` finds the parts that meet the query,
//! `choice.rs` takes one or several of them, `options.rs` reads what is asked for.
//!
//! Source: `hlparsetext` and `generateHeadline` in `src/backend/tsearch/ts_parse.c`, `prsd_headline` in `wparser_def.c`,
//! PostgreSQL 14 to 18.

mod choice;
mod covers;
mod options;
mod words;

use super::super::rows::Outcome;
use super::documents::Configuration;
use super::query::Query;
use choice::Choice;
use covers::Covers;
pub(super) use options::Options;
use words::{Word, words};

/// A text as its headline.
///
/// # Errors
/// When a word is for a dictionary that is not known here, or the query has too many alternatives.
pub(super) fn headline(
    text: &str,
    query: &Query<'_>,
    configuration: &Configuration,
    options: &Options,
) -> Outcome<String> {
    let words = words(text, query, configuration)?;
    let covers = Covers::new(query, &words, options)?;
    let mut choice = Choice { words, options };
    match options.most_fragments {
        0 => choice.mark_best(covers)?,
        _ => choice.mark_fragments(covers)?,
    }
    Ok(written(&choice.words, options))
}

/// The marked words as a text, with what separates fragments between them.
fn written(words: &[Word<'_>], options: &Options) -> String {
    let mut text = String::new();
    let (mut is_inside, mut is_first) = (false, true);
    for word in words.iter().filter(|word| !word.is_repeated) {
        if !word.is_inside {
            is_inside = false;
            continue;
        }
        if !is_inside && !is_first {
            text.push_str(&options.between);
        }
        (is_inside, is_first) = (true, false);
        if word.is_replaced {
            text.push(' ');
        } else if !word.is_skipped {
            let marks = if word.is_selected { (&*options.start, &*options.stop) } else { ("", "") };
            text.extend([marks.0, word.text, marks.1]);
        }
    }
    text
}
