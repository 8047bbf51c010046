//! Texts cut into tokens, made vectors and queries, against what a server gave in a database of the C locale.
//!
//! Each line of the table: the name of the function, the text and its result. Tabs and backslashes are written as `\t` and
//! `\\`. Tokens are `KIND:TEXT`, with `~~` between them; the configuration is `simple`.

use super::documents::{Configuration, KINDS, Treatment, vector};
use super::parser::{Kind as Token, tokens};
use super::phrases::Reading;
use super::query::Kind;
use super::tests::{query, query_text, vector_text};
use super::web;
use crate::functions::rows::Outcome;

const ANSWERS: &str = include_str!("server_texts.tsv");

fn simple() -> Configuration {
    let mut simple = [const { Treatment::Simple }; KINDS];
    for kind in [Token::Blank, Token::Tag, Token::Protocol, Token::Entity] {
        simple[kind as usize] = Treatment::Skipped;
    }
    simple[0] = Treatment::Skipped;
    simple
}

fn written(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\t', "\\t")
}

fn read(text: &str) -> String {
    let mut letters = text.chars();
    let mut out = String::new();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.next() == Some('t') => out.push('\t'),
            letter => out.push(letter),
        }
    }
    out
}

fn answer(name: &str, text: &str) -> Outcome<String> {
    let configuration = simple();
    let reading = |between| Reading { configuration: &configuration, between };
    Ok(match name {
        "ts_parse" => {
            let shown = tokens(text)?.into_iter().map(|t| format!("{}:{}", t.kind as u8, t.text));
            shown.collect::<Vec<_>>().join("~~")
        }
        "to_tsvector" => vector_text(vector(text, &configuration)?),
        "plainto_tsquery" => query_text(reading(Kind::And).plain(text)?),
        "phraseto_tsquery" => query_text(reading(Kind::Phrase).plain(text)?),
        "websearch_to_tsquery" => query_text(web::query(text, &reading(Kind::Phrase))?),
        "to_tsquery" => query_text(reading(Kind::Phrase).query(&query(text), text)?),
        other => panic!("no function {other}"),
    })
}

#[test]
fn texts_are_read_as_a_server_reads_them() {
    let mut wrong = Vec::new();
    for line in ANSWERS.lines() {
        let mut fields = line.splitn(3, '\t');
        let [name, text, expected] = std::array::from_fn(|_| fields.next().unwrap());
        let found = answer(name, &read(text)).map(|found| written(&found));
        if found.as_deref() != Ok(expected) {
            wrong.push(format!("{line}\n  here: {found:?}"));
        }
    }
    let first: Vec<&str> = wrong.iter().take(30).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), first.join("\n"));
}

#[test]
fn long_texts_are_read() {
    let text = "word ".repeat(20_000);
    let made = vector(&text, &simple()).unwrap();
    assert!(vector_text(made).ends_with(",254,255"));
    let many: Vec<String> = (0..20_000).map(|number| format!("w{number}")).collect();
    let made = vector_text(vector(&many.join(" "), &simple()).unwrap());
    assert!(made.contains("'w19999':16383"));
    assert!(vector(&"x".repeat(3000), &simple()).unwrap() == [0; 4]);
    assert!(tokens(&"a@".repeat(2000)).is_ok());
}

#[test]
fn a_dictionary_that_is_not_known_is_refused_where_a_text_has_words_for_it() {
    let mut known = simple();
    known[Token::AsciiWord as usize] = Treatment::Unknown("english_stem".to_owned());
    assert_eq!(vector_text(vector("12 3.5", &known).unwrap()), "'12':1 '3.5':2");
    let message = vector("12 words", &known).unwrap_err().message;
    assert_eq!(message, "the text search dictionary english_stem is not supported here");
}
