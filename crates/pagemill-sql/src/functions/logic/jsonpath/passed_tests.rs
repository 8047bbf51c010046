//! What a server of PostgreSQL 18 answered to JSON_QUERY with values that PASSING gives.
//!
//! Each line of the table: wrapper, whether errors are suppressed, path, document, answer: `R` and what is found, `N` for NULL, or
//! `E` with SQLSTATE and message. Passed are x, y, d, j and n.

use super::passed::{Answer, Passed, PassedValue, Wrapper};
use super::tests::{Contains, jsonb, path, shown};
use super::{Path, Query, Settings};
use pagemill_types::time_zone::Zone;

const ANSWERS: &str = include_str!("server_queries.tsv");

fn passed() -> Vec<PassedValue> {
    let mut two = Vec::new();
    pagemill_types::input::numeric::read_numeric(b"2", -1, &mut two).unwrap();
    let values = [
        ("x", Passed::Number(two)),
        ("y", Passed::Text(b"k".to_vec())),
        ("d", Passed::Date(7305)),
        ("j", Passed::Document(jsonb("{\"a\": [1, 2]}"))),
        ("n", Passed::Null),
    ];
    values.into_iter().map(|(name, value)| PassedValue { name: name.to_owned(), value }).collect()
}

#[test]
fn values_are_passed_as_servers_pass_them() {
    let (values, zone) = (passed(), Zone::gmt());
    let settings = Settings { major: 18, uses_zone: true, zone: &zone, regex: &Contains };
    for line in ANSWERS.lines() {
        let parts: Vec<&str> = line.splitn(5, '\t').collect();
        let [wrapper, silent, path_text, document, answer] = parts[..] else { panic!("{line}") };
        let wrapper = match wrapper {
            "with" => Wrapper::Always,
            "cond" => Wrapper::OfSeveral,
            _ => Wrapper::Never,
        };
        let query = Query {
            path: &Path::new(&path(path_text)).unwrap(),
            document: &jsonb(document),
            variables: None,
            passed: Some(&values),
            is_silent: silent == "silent",
            settings: &settings,
        };
        let found = match query.queried(wrapper, None) {
            Ok(Answer::Found(payload)) => format!("R\t{}", shown(&payload)),
            Ok(Answer::Empty | Answer::Failed) => "N".to_owned(),
            Err(error) => format!("E\t{}\t{}", error.state.0, error.message),
        };
        assert_eq!(found, answer, "{line}");
    }
}

#[test]
fn a_value_of_an_unknown_type_is_an_error_where_it_is_asked_for() {
    let name = "x".to_owned();
    let values = [PassedValue { name, value: Passed::Unfit("name".to_owned()) }];
    let zone = Zone::gmt();
    let settings = Settings { major: 18, uses_zone: true, zone: &zone, regex: &Contains };
    for (text, is_good) in [("$.a", true), ("$x", false)] {
        let query = Query {
            path: &Path::new(&path(text)).unwrap(),
            document: &jsonb("{}"),
            variables: None,
            passed: Some(&values),
            is_silent: true,
            settings: &settings,
        };
        assert_eq!(query.scalar(None).is_ok(), is_good, "{text}");
    }
}
