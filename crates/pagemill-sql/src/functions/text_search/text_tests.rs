//! Texts cut into tokens, made vectors and queries, against what a server gave in a database of the C locale.
//!
//! Each line of the table: the name of the function, the text and its result. Tabs and backslashes are written as `\t` and
//! `\\`. Tokens are `KIND:TEXT`, with `~~` between them; the configuration is `simple`.

use std::sync::Arc;

use super::dictionaries::{Dictionary, Made, Server, Template};
use super::documents::{Configuration, KINDS, Treatment, vector};
use super::letters::Letters;
use super::parser::{Kind as Token, tokens};
use super::phrases::Reading;
use super::query::Kind;
use super::tests::{query, query_text, vector_text};
use super::web;
use crate::functions::rows::Outcome;

const ANSWERS: &str = include_str!("server_texts.tsv");

fn dictionary(template: Template, options: &str, major: u32) -> Arc<Dictionary> {
    let server = Server { major, is_utf8: true };
    Arc::new(Dictionary::new(template, options, server).unwrap())
}

fn simple() -> Configuration {
    let simple = dictionary(Template::Simple, "", 18);
    let mut all: [Treatment; KINDS] = std::array::from_fn(|_| vec![simple.clone()]);
    for kind in [Token::Blank, Token::Tag, Token::Protocol, Token::Entity] {
        all[kind as usize] = Treatment::new();
    }
    all[0] = Treatment::new();
    Configuration { treatments: all, letters: Letters::C }
}

/// The configuration of a language whose words of ASCII are its own.
fn stemming(language: &str, major: u32) -> Configuration {
    let options = format!("language = '{language}', stopwords = '{language}'");
    let stems = dictionary(Template::Snowball, &options, major);
    let mut all = simple();
    for kind in [Token::AsciiWord, Token::Word, Token::HyphenPart, Token::HyphenAsciiPart] {
        all.treatments[kind as usize] = vec![stems.clone()];
    }
    for kind in [Token::HyphenAsciiWord, Token::HyphenWord] {
        all.treatments[kind as usize] = vec![stems.clone()];
    }
    all
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
            let shown = tokens(text, &Letters::C)?
                .into_iter()
                .map(|t| format!("{}:{}", t.kind as u8, t.text));
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
    assert!(tokens(&"a@".repeat(2000), &Letters::C).is_ok());
}

#[test]
fn a_dictionary_that_is_not_known_is_refused_where_a_text_has_words_for_it() {
    let mut known = simple();
    known.treatments[Token::AsciiWord as usize] =
        vec![Arc::new(Dictionary::Unknown("my_words".to_owned()))];
    assert_eq!(vector_text(vector("12 3.5", &known).unwrap()), "'12':1 '3.5':2");
    let message = vector("12 words", &known).unwrap_err().message;
    assert_eq!(message, "the text search dictionary my_words is not supported here");
}

#[test]
fn words_are_stemmed_as_a_server_of_the_version_does() {
    let english = stemming("english", 18);
    let made =
        vector_text(vector("The stars were shining on the well-known skies", &english).unwrap());
    assert_eq!(made, "'known':9 'shine':4 'sky':10 'star':2 'well':8 'well-known':7");
    let read = |between, text: &str| {
        query_text(Reading { configuration: &english, between }.plain(text).unwrap())
    };
    assert_eq!(read(Kind::And, "the cats and dogs"), "'cat' & 'dog'");
    assert_eq!(read(Kind::Phrase, "the cats and the dogs"), "'cat' <3> 'dog'");
    assert_eq!(read(Kind::And, "the and"), "");
    let of = |major| vector_text(vector("époux", &stemming("french", major)).unwrap());
    assert_eq!((of(17), of(18)), ("'époux':1".to_owned(), "'époux':1".to_owned()));
}

#[test]
fn options_of_dictionaries_are_read() {
    let server = Server { major: 18, is_utf8: true };
    let of = |template, options| Dictionary::new(template, options, server);
    let made =
        |options, word| of(Template::Simple, options).unwrap().made(word, &Letters::C).unwrap();
    assert_eq!(made("", "The"), Made::Lexeme("the".to_owned()));
    assert_eq!(made("stopwords = 'english'", "The"), Made::LeftOut);
    assert_eq!(made("stopwords = 'english', accept = 'false'", "cat"), Made::Nothing);
    assert_eq!(made("accept = false", "cat"), Made::Nothing);
    assert!(of(Template::Simple, "stopwords = 'mine'").is_none());
    assert!(of(Template::Simple, "stopwords = 'english").is_none());
    assert!(of(Template::Snowball, "language = 'klingon'").is_none());
    assert!(of(Template::Snowball, "stopwords = 'english'").is_none());
    assert!(of(Template::Snowball, "language = 'English', more = 'x'").is_none());
    let others = Server { major: 18, is_utf8: false };
    let german = "language = 'german', stopwords = 'german'";
    assert!(Dictionary::new(Template::Snowball, german, others).is_none());
    let long = "x".repeat(1001);
    let english = of(Template::Snowball, "language = 'english'").unwrap();
    assert_eq!(english.made(&long, &Letters::C).unwrap(), Made::Lexeme(long.clone()));
}
