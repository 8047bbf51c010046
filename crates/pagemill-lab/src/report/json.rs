//! Results as JSON: what is kept of a run, and read again for advice and comparison.
//!
//! Invariant: what [`json`] wrote, [`read_json`] reads back equal; a file of another format is refused by its number
//! before anything else in it is looked at.

use std::io::Write;

use serde_json::Value;

use super::error::{Error, Result};
use crate::results::{FORMAT, Results};

/// Writes the results as indented JSON with a line feed at its end.
pub fn json(results: &Results, out: &mut dyn Write) -> Result<()> {
    serde_json::to_writer_pretty(&mut *out, results).map_err(std::io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

/// Reads what [`json`] wrote. Other formats, other JSON and damage are errors that say which.
pub fn read_json(bytes: &[u8]) -> Result<Results> {
    let any: Value = serde_json::from_slice(bytes).map_err(syntax)?;
    match any.get("format").and_then(Value::as_u64) {
        None => Err(Error::NotResults),
        Some(found) if found != u64::from(FORMAT) => Err(Error::OtherFormat { found }),
        Some(_) => serde_json::from_slice(bytes).map_err(damage),
    }
}

fn syntax(error: serde_json::Error) -> Error {
    Error::NotJson { line: error.line(), column: error.column(), reason: reason(&error) }
}

fn damage(error: serde_json::Error) -> Error {
    Error::Damaged { line: error.line(), column: error.column(), reason: reason(&error) }
}

/// The parser's words without the place, which stands in the error already.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(reason, _)| reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(results: &Results) -> Vec<u8> {
        let mut bytes = Vec::new();
        json(results, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_was_written_is_read_back_equal() {
        let results =
            Results { format: FORMAT, pagemill: "1 <&>\n\"".into(), ..Results::default() };
        assert_eq!(read_json(&written(&results)).unwrap(), results);
    }

    #[test]
    fn another_format_is_refused_by_its_number() {
        let other = Results { format: FORMAT + 1, ..Results::default() };
        let error = read_json(&written(&other)).unwrap_err();
        assert!(matches!(error, Error::OtherFormat { found: 2 }), "{error}");
        let future = read_json(br#"{"format": 7, "experiments": "a map by then"}"#).unwrap_err();
        assert!(matches!(future, Error::OtherFormat { found: 7 }), "{future}");
    }

    #[test]
    fn other_json_and_no_json_are_told_apart() {
        for foreign in [&b"{}"[..], b"[1, 2]", b"\"text\"", br#"{"format": "one"}"#] {
            assert!(matches!(read_json(foreign), Err(Error::NotResults)));
        }
        let error = read_json(b"{\n  nonsense").unwrap_err();
        assert!(matches!(error, Error::NotJson { line: 2, column: 3, .. }), "{error}");
        assert!(matches!(read_json(b""), Err(Error::NotJson { .. })));
    }

    #[test]
    fn damage_names_its_place() {
        let error = read_json(b"{\"format\": 1,\n\"pagemill\": 3}").unwrap_err();
        assert!(matches!(error, Error::Damaged { line: 2, .. }), "{error}");
    }
}
