//! Texts read by templates as real servers read them.
//!
//! Each line of the table: major version, function, text, template, answer: the date or the timestamp as a number, or `E`
//! with SQLSTATE and message. The session's time zone is UTC.

use super::{Fault, Parts, Reading, Scan, Template};

const ANSWERS: &str = include_str!("server_answers.tsv");

fn unescaped(text: &str) -> String {
    text.replace("\\t", "\t").replace("\\\\", "\\")
}

fn read(function: &str, text: &str, template: &str, major: u32) -> Scan<i64> {
    let template = Template::plain(template, major).map_err(Fault::Wrong)?;
    let reading = Reading { major, session: None, is_english: true };
    let parts = Parts::read(&template, text, reading)?;
    match function {
        "to_date" => parts.date(text),
        _ => parts.timestamp(parts.west.unwrap_or(0), "timestamp"),
    }
}

#[test]
fn texts_are_read_as_servers_read_them() {
    let (mut wrong, mut refused) = (Vec::new(), 0);
    for line in ANSWERS.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let &[major, function, text, template, expected] = &fields[..] else {
            panic!("no line of five fields: {line}");
        };
        let (text, template) = (unescaped(text), unescaped(template));
        let found = match read(function, &text, &template, major.parse().unwrap()) {
            Ok(value) => value.to_string(),
            Err(Fault::Wrong(error)) => format!("E {} {}", error.state.0, error.message),
            Err(Fault::Refused(_)) => {
                refused += 1;
                continue;
            }
        };
        if found != unescaped(expected) {
            wrong.push(format!("{line}\n   found {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
    assert!(refused <= 10, "{refused} lines are refused");
}

#[test]
fn in_standard_mode_few_characters_stand_between_fields() {
    assert!(Template::standard("YYYY-MM-DD\"T\"HH24", 18).is_ok());
    let error = Template::standard("YYYY_MM", 18).unwrap_err();
    assert_eq!(error.message, "invalid datetime format separator: \"_\"");
    // What says nothing may stand there, too.
    assert!(Template::standard("DDSP MM", 18).is_ok());
}
