//! Text search: what a `tsvector` and a `tsquery` are asked, what is made of them, and both made of texts where dictionaries
//! of the templates `simple` and `snowball` do it.
//!
//! `vector.rs` and `query.rs` take the two types apart and make them; `vector_changes.rs` and `query_changes.rs` are their
//! operators, `rewrite.rs` is `ts_rewrite`, `sorting.rs` the server's sort; `matching.rs` and `searches.rs` hold one against
//! the other; `rank.rs` and `cover_rank.rs` say how well it fits; `order.rs` has their keys. `parser/` cuts texts into tokens, `documents.rs` makes
//! vectors of those, `phrases.rs` and `web.rs` queries, as `configurations.rs` finds it in the catalogs; `dictionaries.rs`,
//! `stop_words.rs` and `snowball/` make lexemes of words, `json_texts.rs` finds texts in documents, `calls.rs` are the functions;
//! `headline/` and `headlines.rs` show the parts of texts that a query found.
//!
//! Invariant: texts meet lexemes as bytes of the database's encoding, so that in an encoding other than UTF-8 only ASCII is
//! answered.
//!
//! Source: `src/include/catalog/pg_proc.dat`, `src/backend/utils/adt/tsvector_op.c`, `tsquery_op.c`, `tsquery_rewrite.c`,
//! `tsrank.c`, PostgreSQL 14 to 18.

mod calls;
pub(crate) mod configurations;
mod cover_rank;
mod dictionaries;
mod documents;
mod headline;
mod headlines;
mod json_texts;
mod letters;
mod matching;
mod options;
mod order;
mod parser;
mod phrases;
mod query;
mod query_changes;
mod rank;
mod rewrite;
mod searches;
mod snowball;
mod sorting;
mod stop_words;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod text_tests;
mod vector;
mod vector_changes;
mod web;

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder};
use pagemill_format::tuple::AttributeLayout;
use pagemill_types::array::element_payloads;

use super::keys::payloads;
use super::logic::arrays::{dimensions, texts_payload};
use super::rows::{Outcome, four, one, three, two};
use super::sets::{Series, SetCall, made};
use super::{Implementation, Kernel, KernelCall};
use crate::catalog::Catalog;
use crate::error::{SqlState, StatementError};
use query::{Kind, Query};
use rank::{WEIGHTS, Weights};
use vector::{Entry, Vector, place, weight};

/// `pg_enc` of UTF-8.
const UTF8: i32 = 6;

/// How elements of `text[]`, `"char"[]` and `real[]` lie.
const TEXTS: AttributeLayout = AttributeLayout { len: -1, align: 4 };
const LETTERS: AttributeLayout = AttributeLayout { len: 1, align: 1 };
const REALS: AttributeLayout = AttributeLayout { len: 4, align: 4 };

pub(crate) fn find(key: &str) -> Option<Implementation> {
    if key == "get_current_ts_config" {
        return Some(Implementation::Build(calls::current));
    }
    let found = of_vectors(key).or_else(|| of_queries(key)).or_else(|| of_both(key));
    let found = found.or_else(|| calls::find(key));
    found.map(Implementation::Kernel)
}

fn of_vectors(key: &str) -> Option<Kernel> {
    Some(match key {
        "tsvector_concat" => |_, a| {
            two(a, |a: &[u8], b: &[u8]| {
                vector_changes::concatenated(Vector::read(a)?, Vector::read(b)?)
            })
        },
        "tsvector_strip" => {
            |_, a| one(a, |vector: &[u8]| vector_changes::stripped(Vector::read(vector)?))
        }
        "tsvector_length" => |_, a| one(a, |vector: &[u8]| Ok(Vector::read(vector)?.len() as i32)),
        "tsvector_setweight" => |_, a| {
            two(a, |vector: &[u8], letter: &[u8]| {
                vector_changes::weighted(vector, letter_of(letter), None)
            })
        },
        "tsvector_setweight_by_filter" => |call, a| {
            three(a, |vector: &[u8], letter: &[u8], lexemes: &[u8]| {
                let letter = letter_of(letter);
                vector_changes::weight_of(letter)?;
                let lexemes = lexemes_of(&call.catalog, lexemes)?;
                vector_changes::weighted(vector, letter, Some(&lexemes))
            })
        },
        "tsvector_delete_str" => without_lexeme,
        "tsvector_delete_arr" => |call, a| {
            two(a, |vector: &[u8], lexemes: &[u8]| {
                let lexemes = lexemes_of(&call.catalog, lexemes)?;
                let lexemes = lexemes.iter().flatten().map(Vec::as_slice);
                vector_changes::without(Vector::read(vector)?, lexemes)
            })
        },
        "tsvector_filter" => |_, a| {
            two(a, |vector: &[u8], letters: &[u8]| {
                vector_changes::filtered(Vector::read(vector)?, &elements(letters, LETTERS)?)
            })
        },
        "tsvector_to_array" => |call, a| {
            one(a, |vector: &[u8]| {
                let texts = Vector::read(vector)?.entries();
                let texts = texts.map(|entry| text(&call.catalog, entry?.text).map(Some));
                Ok(texts_payload(&texts.collect::<Outcome<Vec<_>>>()?))
            })
        },
        "array_to_tsvector" => |call, a| {
            one(a, |lexemes: &[u8]| {
                vector_changes::of_lexemes(&elements(lexemes, TEXTS)?, is_14(&call.catalog))
            })
        },
        _ => return None,
    })
}

fn of_queries(key: &str) -> Option<Kernel> {
    use query_changes::{contains, joined, negated, phrase, searchable};
    Some(match key {
        "tsquery_and" => |_, a| two(a, |a: &[u8], b: &[u8]| joined(a, b, Kind::And, 0)),
        "tsquery_or" => |_, a| two(a, |a: &[u8], b: &[u8]| joined(a, b, Kind::Or, 0)),
        "tsquery_phrase" => |_, a| two(a, |a: &[u8], b: &[u8]| phrase(a, b, 1)),
        "tsquery_phrase_distance" => {
            |_, a| three(a, |a: &[u8], b: &[u8], distance: i32| phrase(a, b, distance))
        }
        "tsquery_not" => |_, a| one(a, |query: &[u8]| negated(query)),
        "tsq_mcontains" => |_, a| two(a, |a: &[u8], b: &[u8]| contains(a, b)),
        "tsq_mcontained" => |_, a| two(a, |a: &[u8], b: &[u8]| contains(b, a)),
        "tsquery_numnode" => {
            |_, a| one(a, |query: &[u8]| Ok(Query::read(query)?.nodes.len() as i32))
        }
        "tsquerytree" => |call, a| one(a, |query: &[u8]| text(&call.catalog, &searchable(query)?)),
        "tsquery_rewrite" => |_, a| {
            three(a, |query: &[u8], part: &[u8], by: &[u8]| rewrite::rewritten(query, part, by))
        },
        _ => return None,
    })
}

fn of_both(key: &str) -> Option<Kernel> {
    Some(match key {
        "ts_match_vq" => |_, a| two(a, matched),
        "ts_match_qv" => |_, a| two(a, |query: &[u8], vector: &[u8]| matched(vector, query)),
        "ts_rank_tt" => |_, a| two(a, |v: &[u8], q: &[u8]| ranked(RANK, &WEIGHTS, (v, q), 0)),
        "ts_rank_ttf" => {
            |_, a| three(a, |v: &[u8], q: &[u8], by: i32| ranked(RANK, &WEIGHTS, (v, q), by))
        }
        "ts_rank_wtt" => {
            |_, a| three(a, |w: &[u8], v: &[u8], q: &[u8]| ranked(RANK, &weights(w)?, (v, q), 0))
        }
        "ts_rank_wttf" => |_, a| {
            four(a, |w: &[u8], v: &[u8], q: &[u8], by: i32| ranked(RANK, &weights(w)?, (v, q), by))
        },
        "ts_rankcd_tt" => |_, a| two(a, |v: &[u8], q: &[u8]| ranked(COVERS, &WEIGHTS, (v, q), 0)),
        "ts_rankcd_ttf" => {
            |_, a| three(a, |v: &[u8], q: &[u8], by: i32| ranked(COVERS, &WEIGHTS, (v, q), by))
        }
        "ts_rankcd_wtt" => {
            |_, a| three(a, |w: &[u8], v: &[u8], q: &[u8]| ranked(COVERS, &weights(w)?, (v, q), 0))
        }
        "ts_rankcd_wttf" => |_, a| {
            four(a, |w: &[u8], v: &[u8], q: &[u8], by: i32| {
                ranked(COVERS, &weights(w)?, (v, q), by)
            })
        },
        _ => return None,
    })
}

fn matched(vector: &[u8], query: &[u8]) -> Outcome<bool> {
    searches::matches(Vector::read(vector)?, &Query::read(query)?)
}

/// A way to rank.
type Rank = fn(&Weights, Vector<'_>, &Query<'_>, i32) -> Outcome<f32>;

const RANK: Rank = rank::rank;
const COVERS: Rank = cover_rank::cover_rank;

fn ranked(
    way: Rank,
    weights: &Weights,
    (vector, query): (&[u8], &[u8]),
    divided: i32,
) -> Outcome<f32> {
    way(weights, Vector::read(vector)?, &Query::read(query)?, divided)
}

/// Weights from an array of them.
fn weights(array: &[u8]) -> Outcome<Weights> {
    let given = elements(array, REALS)?;
    let number = |bytes: Vec<u8>| bytes.first_chunk().map(|bytes| f32::from_le_bytes(*bytes));
    let given: Vec<Option<f32>> = given.into_iter().map(|bytes| bytes.and_then(number)).collect();
    rank::weights(dimensions(array), &given)
}

fn elements(array: &[u8], layout: AttributeLayout) -> Outcome<Vec<Option<Vec<u8>>>> {
    element_payloads(array, layout)
        .map_err(|error| StatementError::new(SqlState::DATA_CORRUPTED, error.to_string()))
}

fn is_14(catalog: &Catalog) -> bool {
    catalog.database().cluster().version().major() == 14
}

/// Lexemes that a vector may have or not. NULL is none of them, and an error in version 14.
fn lexemes_of(catalog: &Catalog, array: &[u8]) -> Outcome<Vec<Option<Vec<u8>>>> {
    let found = elements(array, TEXTS)?;
    match found.contains(&None) && is_14(catalog) {
        true => Err(vector_changes::null_lexeme()),
        false => Ok(found),
    }
}

/// A value of the type `"char"`, which is 0 where its text is empty.
fn letter_of(letter: &[u8]) -> u8 {
    letter.first().copied().unwrap_or(0)
}

/// `ts_delete` of one lexeme.
fn without_lexeme(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    two(arguments, |payload: &[u8], lexeme: &str| {
        check_text(&call.catalog, lexeme.is_ascii())?;
        let vector = Vector::read(payload)?;
        match vector.number_of(lexeme.as_bytes())? {
            Some(_) => vector_changes::without(vector, std::iter::once(lexeme.as_bytes())),
            None => Ok(payload.to_vec()),
        }
    })
}

/// Refuses what is not the same in UTF-8 and in the database's encoding.
fn check_text(catalog: &Catalog, is_ascii: bool) -> Outcome<()> {
    match is_ascii || catalog.database().row().encoding == UTF8 {
        true => Ok(()),
        false => Err(StatementError::unsupported(
            "a lexeme beyond ASCII in a database whose encoding is not UTF8",
        )),
    }
}

/// &[u8] of the database as a text.
fn text(catalog: &Catalog, bytes: &[u8]) -> Outcome<String> {
    check_text(catalog, bytes.is_ascii())?;
    let text = std::str::from_utf8(bytes).map_err(|_| vector::damaged())?;
    Ok(text.to_owned())
}

/// `unnest` of a vector: lexemes with their positions and weights.
pub(crate) fn lexemes(
    call: &SetCall,
    arguments: &[ArrayRef],
    row: usize,
) -> Outcome<Box<dyn Series>> {
    let vector = Vector::read(payloads(&arguments[0]).value(row))?;
    let row = |entry: Outcome<Entry<'_>>| {
        let entry = entry?;
        let lexeme = text(&call.catalog, entry.text)?;
        let letter = |position: u16| Some(char::from(b'D' - weight(position)).to_string());
        let lists = entry.positions.map(|positions| {
            let places: Vec<u16> = positions.iter().map(place).collect();
            let letters: Vec<Option<String>> = positions.iter().map(letter).collect();
            (numbers_payload(&places), texts_payload(&letters))
        });
        Ok((lexeme, lists))
    };
    let rows = vector.entries().map(row).collect::<Outcome<Vec<_>>>()?;
    Ok(made(rows, |(lexeme, lists), out| {
        out[0].text(&lexeme)?;
        match lists {
            Some((places, letters)) => {
                out[1].bytes(&places)?;
                out[2].bytes(&letters)
            }
            None => {
                out[1].null()?;
                out[2].null()
            }
        }
    }))
}

/// A `smallint[]` of one dimension.
fn numbers_payload(numbers: &[u16]) -> Vec<u8> {
    let bounds = [numbers.len() as u32, 1];
    let dimensions = u32::from(!numbers.is_empty());
    let words = [dimensions, 0, pagemill_types::builtin::oid::INT2.0];
    let bounds = bounds.iter().filter(|_| dimensions > 0);
    let mut payload: Vec<u8> = words.iter().chain(bounds).flat_map(|n| n.to_le_bytes()).collect();
    payload.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    payload
}

/// What vectors and queries are sorted and compared by.
pub(crate) fn order_keys(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let key = match &*call.key {
        VECTOR_KEY => order::vector_key,
        _ => order::query_key,
    };
    let mut keys = BinaryBuilder::new();
    for value in payloads(&arguments[0]) {
        keys.append_option(value.map(key).transpose()?);
    }
    Ok(Arc::new(keys.finish()))
}

/// The names under which [`order_keys`] is called.
pub(crate) const VECTOR_KEY: &str = "tsvector_key";
pub(crate) const QUERY_KEY: &str = "tsquery_key";
