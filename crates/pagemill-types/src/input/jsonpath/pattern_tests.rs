//! What servers said of patterns: taken from PostgreSQL 14 to 18, which agree.
//!
//! Each pattern is accepted or refused here as there, in the same words.

use pagemill_format::ids::PgVersion;
use proptest::prelude::*;

use super::super::super::tree::InputContext;
use super::*;
use crate::input::tree_tests::context;

fn of(encoding: i32) -> InputContext {
    InputContext { encoding, ..context(PgVersion::V15) }
}

fn said(pattern: &str) -> Result<(), String> {
    check(pattern.as_bytes(), 0, &of(6)).map_err(|error| error.message)
}

#[test]
fn patterns_that_servers_take_are_taken() {
    for pattern in [
        "",
        "a|",
        "()",
        "(a)\\1",
        "a{0}",
        "a{2,}?",
        "{",
        "a{x",
        "[]a]",
        "[^]]",
        "[a-]",
        "[[:alpha:]-]",
        "[[.hyphen.]-z]",
        "[[=a=]b]",
        "\\x41\\u00e9\\U0001F600",
        "\\10",
        "(?:a)+?",
        "(?=a(b))c",
        "(?<!a)b",
        "(?#)a",
        "(?i)A",
        "(?e)a)\\d",
        "(?q)((",
        "***=((",
        "***:a",
        "(?x)a # (\n b",
        "[[:<:]]a",
        "a**?",
        "\\B",
        "x{255}",
        "((((((((((a))))))))))\\10",
        "[\\w\\-]",
        "]}",
        "a\\{1",
        "é{2}",
    ] {
        let expected = if pattern == "a**?" { Err(BAD_OPERAND) } else { Ok(()) };
        let expected = expected.map_err(|why| format!("invalid regular expression: {why}"));
        assert_eq!(said(pattern), expected, "{pattern:?}");
    }
}

/// A path with such a pattern was loaded, and the server complained when it was used.
#[test]
fn patterns_that_servers_refuse_are_refused_in_their_words() {
    for (pattern, why) in [
        ("(a", "parentheses () not balanced"),
        ("a)", "parentheses () not balanced"),
        ("[a", "brackets [] not balanced"),
        ("[[:alpha:", "brackets [] not balanced"),
        ("a{1", "braces {} not balanced"),
        ("a{2,1}", "invalid repetition count(s)"),
        ("a{256}", "invalid repetition count(s)"),
        ("a{1x}", "invalid repetition count(s)"),
        ("*a", "quantifier operand invalid"),
        ("^*", "quantifier operand invalid"),
        ("(?<a)", "quantifier operand invalid"),
        ("[b-a]", "invalid character range"),
        ("[a-c-e]", "invalid character range"),
        ("[a-[:digit:]]", "invalid character range"),
        ("[[:nope:]]", "invalid character class"),
        ("[[.nope.]]", "invalid collating element"),
        ("[[==]]", "invalid collating element"),
        ("\\", "invalid escape \\ sequence"),
        ("\\q", "invalid escape \\ sequence"),
        ("\\u12", "invalid escape \\ sequence"),
        ("[\\A]", "invalid escape \\ sequence"),
        ("(a\\1)", "invalid backreference number"),
        ("\\1", "invalid backreference number"),
        ("(a)(?=\\1)", "invalid backreference number"),
        ("(?z)a", "invalid embedded option"),
        ("***a", "quantifier operand invalid"),
        ("***?", "invalid regexp (reg version 0.8)"),
    ] {
        assert_eq!(said(pattern), Err(format!("invalid regular expression: {why}")), "{pattern:?}");
    }
    assert!(check(b"((", QUOTE, &of(6)).is_ok());
}

#[test]
fn what_only_a_server_can_judge_is_refused_by_name() {
    for pattern in ["(?b)a\\{1\\}", "((a{0,100}){0,100}){0,100}", "(?x)\u{2003}*", "{\u{663}}"] {
        assert!(said(pattern).unwrap_err().ends_with("only a server can tell"), "{pattern:?}");
    }
    assert!(check(&[0x81, 0xA1, b'*'], 0, &of(7)).is_err());
}

#[test]
fn the_characters_of_other_encodings_are_in_the_order_of_their_bytes() {
    assert!(check(&[b'[', 0xE0, b'-', 0xE9, b']'], 0, &of(8)).is_ok());
    assert!(check(&[b'[', 0xE9, b'-', 0xE0, b']'], 0, &of(8)).is_err());
    assert!(check(&[b'[', 0xB0, 0xA1, b'-', 0xB0, 0xA2, b']'], 0, &of(3)).is_ok());
    assert!(check(&[b'[', 0xB0, 0xA2, b'-', 0xB0, 0xA1, b']'], 0, &of(3)).is_err());
}

proptest! {
    #[test]
    fn arbitrary_patterns_never_panic(pattern in "[-a(){}\\[\\]|?*+.:=^$\\\\0-9,x é]{0,40}", flags in 0u32..32) {
        for encoding in [3, 6, 7, 8] {
            let _ = check(pattern.as_bytes(), flags, &of(encoding));
        }
    }
}
