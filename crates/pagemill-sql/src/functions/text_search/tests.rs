//! Functions of text search against what a server gave, and values that are damaged or deep.
//!
//! Each line of the table: the name of the C function, its arguments and its result as texts; ranks in hexadecimal, arrays as
//! their elements.

use std::sync::Arc;

use pagemill_format::ids::PgVersion;
use pagemill_types::input::datetime::{DateOrder, DateTimeContext, IntervalStyle, ZoneLookup};
use pagemill_types::input::tree::InputContext;
use pagemill_types::input::tsquery::read_tsquery;
use pagemill_types::input::tsvector::read_tsvector;
use pagemill_types::time_zone::Zone;
use pagemill_types::tsquery::write_tsquery;
use pagemill_types::tsvector::write_tsvector;

use super::query::{Kind, Query};
use super::rank::{WEIGHTS, Weights, weights};
use super::vector::Vector;
use super::{cover_rank, order, query_changes, rank, rewrite, searches, vector_changes as changes};
use crate::functions::rows::Outcome;

const ANSWERS: &str = include_str!("server_answers.tsv");

struct NoZones;

impl ZoneLookup for NoZones {
    fn zone(&self, _: &str) -> Option<Arc<Zone>> {
        None
    }
}

fn context() -> InputContext {
    let version = PgVersion::V18;
    let date_time = DateTimeContext {
        version,
        date_order: DateOrder::Mdy,
        interval_style: IntervalStyle::Postgres,
        session_zone: Arc::new(Zone::gmt()),
        zones: Arc::new(NoZones),
        transaction_start: 0,
    };
    InputContext { version, encoding: 6, unicode_spaces: true, date_time }
}

fn vector(text: &str) -> Vec<u8> {
    let mut payload = Vec::new();
    read_tsvector(text.as_bytes(), &context(), &mut payload).unwrap();
    payload
}

pub(super) fn query(text: &str) -> Vec<u8> {
    let mut payload = Vec::new();
    read_tsquery(text.as_bytes(), &context(), &mut payload).unwrap();
    payload
}

pub(super) fn vector_text(payload: Vec<u8>) -> String {
    let mut text = Vec::new();
    write_tsvector(&payload, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

pub(super) fn query_text(payload: Vec<u8>) -> String {
    let mut text = Vec::new();
    write_tsquery(&payload, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn yes_or_no(is: bool) -> String {
    if is { "t".to_owned() } else { "f".to_owned() }
}

fn texts(list: &str) -> Vec<Option<Vec<u8>>> {
    list.split(' ').map(|text| Some(text.as_bytes().to_vec())).collect()
}

fn given_weights(list: &str) -> Outcome<Weights> {
    let given: Vec<Option<f32>> = list.split(' ').map(|number| number.parse().ok()).collect();
    weights(1, &given)
}

type Rank = fn(&Weights, Vector<'_>, &Query<'_>, i32) -> Outcome<f32>;

fn ranked(way: Rank, weights: &Weights, arguments: &[&str]) -> Outcome<String> {
    let (vector, query) = (vector(arguments[0]), query(arguments[1]));
    let divided = arguments[2].parse().unwrap();
    let rank = way(weights, Vector::read(&vector)?, &Query::read(&query)?, divided)?;
    Ok(rank.to_be_bytes().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn of_vector(name: &str, a: &[&str]) -> Outcome<String> {
    let payload = vector(a[0]);
    let given = Vector::read(&payload)?;
    let changed = match name {
        "tsvector_concat" => changes::concatenated(given, Vector::read(&vector(a[1]))?)?,
        "tsvector_strip" => changes::stripped(given)?,
        "tsvector_setweight" => changes::weighted(&payload, a[1].as_bytes()[0], None)?,
        "tsvector_setweight_by_filter" => {
            changes::weighted(&payload, a[1].as_bytes()[0], Some(&texts(a[2])))?
        }
        "tsvector_delete_str" => changes::without(given, std::iter::once(a[1].as_bytes()))?,
        "tsvector_delete_arr" => {
            let gone = texts(a[1]);
            changes::without(given, gone.iter().flatten().map(Vec::as_slice))?
        }
        "tsvector_filter" => {
            let letters = a[1].bytes().map(|letter| Some(vec![letter]));
            changes::filtered(given, &letters.collect::<Vec<_>>())?
        }
        other => panic!("no function {other}"),
    };
    Ok(vector_text(changed))
}

fn answer(name: &str, a: &[&str]) -> Outcome<String> {
    use query_changes::{contains, joined, negated, phrase, searchable};
    Ok(match name {
        "ts_match_vq" => {
            let (vector, query) = (vector(a[0]), query(a[1]));
            yes_or_no(searches::matches(Vector::read(&vector)?, &Query::read(&query)?)?)
        }
        "ts_rank_ttf" => ranked(rank::rank, &WEIGHTS, a)?,
        "ts_rankcd_ttf" => ranked(cover_rank::cover_rank, &WEIGHTS, a)?,
        "ts_rank_wttf" => ranked(rank::rank, &given_weights(a[0])?, &a[1..])?,
        "ts_rankcd_wttf" => ranked(cover_rank::cover_rank, &given_weights(a[0])?, &a[1..])?,
        "tsquery_and" => query_text(joined(&query(a[0]), &query(a[1]), Kind::And, 0)?),
        "tsquery_or" => query_text(joined(&query(a[0]), &query(a[1]), Kind::Or, 0)?),
        "tsquery_phrase" => query_text(phrase(&query(a[0]), &query(a[1]), 1)?),
        "tsquery_phrase_distance" => {
            query_text(phrase(&query(a[0]), &query(a[1]), a[2].parse().unwrap())?)
        }
        "tsquery_not" => query_text(negated(&query(a[0]))?),
        "tsquerytree" => String::from_utf8(searchable(&query(a[0]))?).unwrap(),
        "tsquery_numnode" => Query::read(&query(a[0]))?.nodes.len().to_string(),
        "tsq_mcontains" => yes_or_no(contains(&query(a[0]), &query(a[1]))?),
        "tsquery_rewrite" => {
            query_text(rewrite::rewritten(&query(a[0]), &query(a[1]), &query(a[2]))?)
        }
        "tsquery_cmp" => {
            let (a, b) = (order::query_key(&query(a[0]))?, order::query_key(&query(a[1]))?);
            (a.cmp(&b) as i32).to_string()
        }
        "tsvector_cmp" => {
            let (a, b) = (order::vector_key(&vector(a[0]))?, order::vector_key(&vector(a[1]))?);
            (a.cmp(&b) as i32).to_string()
        }
        name => of_vector(name, a)?,
    })
}

#[test]
fn answers_are_those_of_a_server() {
    let mut wrong = Vec::new();
    for line in ANSWERS.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, arguments @ .., expected] = fields.as_slice() else { panic!("{line}") };
        match answer(name, arguments) {
            Ok(found) if found == *expected => {}
            Ok(found) => wrong.push(format!("{line}\n  here: {found}")),
            Err(error) => wrong.push(format!("{line}\n  here: {error}")),
        }
    }
    let first: Vec<&str> = wrong.iter().take(30).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), first.join("\n"));
}

#[test]
fn errors_are_in_the_servers_words() {
    let message = |outcome: Outcome<Vec<u8>>| outcome.unwrap_err().message;
    let one = vector("a:1");
    // Only here: servers have other words until minor versions of 2026.
    assert_eq!(message(changes::weighted(&one, b'x', None)), "unrecognized weight: \"x\"");
    assert_eq!(message(changes::weighted(&one, 0, None)), "unrecognized weight: \"\\000\"");
    let null = [None];
    assert_eq!(message(changes::of_lexemes(&null, true)), "lexeme array may not contain nulls");
    let empty = [Some(Vec::new())];
    assert_eq!(
        message(changes::of_lexemes(&empty, false)),
        "lexeme array may not contain empty strings"
    );
    assert_eq!(vector_text(changes::of_lexemes(&empty, true).unwrap()), "''");
    let long = [Some(vec![b'a'; 2047])];
    let expected = "word is too long (2047 bytes, max 2046 bytes)";
    assert_eq!(message(changes::of_lexemes(&long, false)), expected);
    let far = query_changes::phrase(&query("a"), &query("b"), 16385);
    let expected =
        "distance in phrase operator must be an integer value between zero and 16384 inclusive";
    assert_eq!(message(far), expected);
    let weights =
        |dimensions, given: &[Option<f32>]| weights(dimensions, given).unwrap_err().message;
    assert_eq!(weights(0, &[]), "array of weight must be one-dimensional");
    assert_eq!(weights(1, &[Some(0.1)]), "array of weight is too short");
    assert_eq!(weights(1, &[None; 4]), "array of weight must not contain nulls");
    assert_eq!(weights(1, &[Some(1.5); 4]), "weight out of range");
}

#[test]
fn a_lexeme_has_no_more_positions_than_the_server_keeps() {
    let list = |from: usize| (from..from + 200).map(|at| at.to_string()).collect::<Vec<_>>();
    let one = vector(&format!("a:{}", list(1).join(",")));
    let both = changes::concatenated(Vector::read(&one).unwrap(), Vector::read(&one).unwrap());
    let both = both.unwrap();
    let entry = Vector::read(&both).unwrap().entry(0).unwrap();
    assert_eq!(entry.positions().count(), 256);
}

#[test]
fn deep_queries_take_no_stack() {
    let mut deep = query("a");
    for _ in 0..3000 {
        deep = query_changes::negated(&deep).unwrap();
    }
    let work = move || {
        let one = vector("a:1");
        let known = Query::read(&deep).unwrap();
        assert!(searches::matches(Vector::read(&one).unwrap(), &known).unwrap());
        assert_eq!(query_changes::searchable(&deep).unwrap(), b"T");
        order::query_key(&deep).unwrap();
        assert!(rewrite::rewritten(&deep, &query("a"), &query("b")).is_err());
    };
    let thread = std::thread::Builder::new().stack_size(256 * 1024).spawn(work).unwrap();
    thread.join().unwrap();
}

/// Bytes that are no payload, or one that was changed, end in an error and nothing else.
#[test]
fn damaged_values_never_panic() {
    let (one, other) = (vector("a:1,2A b c:3"), query("a & (b:* <-> !c) | d:AB"));
    for at in 0..one.len() {
        for byte in [0, 1, 2, 0x7F, 0x80, 0xFF] {
            let mut changed = one.clone();
            changed[at] = byte;
            all_of(&changed, &other);
            all_of(&changed[..at], &other);
        }
    }
    for at in 0..other.len() {
        for byte in [0, 1, 2, 3, 4, 0x7F, 0xFF] {
            let mut changed = other.clone();
            changed[at] = byte;
            all_of(&one, &changed);
            all_of(&one, &changed[..at]);
        }
    }
}

fn all_of(one: &[u8], other: &[u8]) {
    let _ = order::vector_key(one);
    let _ = order::query_key(other);
    let _ = query_changes::searchable(other);
    let _ = query_changes::joined(other, other, Kind::And, 0);
    let _ = rewrite::rewritten(other, &query("a"), other);
    let _ = changes::weighted(one, b'a', None);
    let (Ok(vector), Ok(query)) = (Vector::read(one), Query::read(other)) else { return };
    let _ = changes::concatenated(vector, vector);
    let _ = changes::without(vector, std::iter::once(b"a".as_slice()));
    let _ = searches::matches(vector, &query);
    let _ = rank::rank(&WEIGHTS, vector, &query, 63);
    let _ = cover_rank::cover_rank(&WEIGHTS, vector, &query, 63);
}
