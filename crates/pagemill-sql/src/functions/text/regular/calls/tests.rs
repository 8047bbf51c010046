//! Patterns against what a server of PostgreSQL 15 found with them, under C.
//!
//! Each line has a pattern and a text, and whether it matches, `regexp_substr`, `regexp_match` and `regexp_replace` of all
//! by `<\&|\1>`, in hexadecimal; or the server's error.

use std::sync::Arc;

use super::*;

fn text(hexadecimal: &str) -> String {
    let digits = hexadecimal.trim_matches('-').as_bytes().as_chunks::<2>().0;
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    String::from_utf8(digits.iter().map(byte).collect()).unwrap()
}

fn optional(field: &str) -> Option<String> {
    field.strip_prefix('=').map(text)
}

fn shown(answer: Outcome<Answer>) -> Result<String, ()> {
    match answer.map_err(|_| ())? {
        Answer::Null => Ok("None".to_owned()),
        Answer::Truth(truth) => Ok(truth.to_string()),
        Answer::Number(number) => Ok(number.to_string()),
        Answer::Text(text) => Ok(format!("{:?}", Some(text))),
        Answer::Texts(texts) => Ok(format!("{texts:?}")),
        Answer::Several(texts) => Ok(format!("{texts:?}")),
    }
}

#[test]
fn patterns_find_what_a_server_finds() {
    let (mut lines, mut whole, mut grouped, mut wrong) = (0, 0, 0, Vec::new());
    for line in include_str!("../../../server_results/regular.tsv").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let (pattern, searched) = (text(fields[0]), text(fields[1]));
        let made = Pattern::new(&pattern, Alphabet::ascii());
        lines += 1;
        if fields[2].starts_with("E:") {
            assert!(made.is_err(), "{pattern} is wrong for the server: {}", fields[2]);
            continue;
        }
        let Ok(mut pattern) = made else { continue };
        let texts: Vec<&str> = fields[4].split(',').collect();
        let groups = match fields[2] {
            "f" => "None".to_owned(),
            _ => format!("{:?}", texts.iter().map(|field| optional(field)).collect::<Vec<_>>()),
        };
        let replacement: ArrayRef = Arc::new(StringArray::from(vec![r"<\&|\1>"]));
        let arguments = [replacement.clone(), replacement.clone(), replacement];
        let mut run = |work: fn(&mut Search<'_, '_>) -> Outcome<Answer>, given: usize| {
            let arguments = &arguments[..given];
            let (pattern, text) = (&mut pattern, searched.as_str());
            shown(work(&mut Search { pattern, text, arguments, row: 0, is_global: true }))
        };
        let found = [
            (
                run(matches, 2),
                if fields[2] == "t" { "true".to_owned() } else { "false".to_owned() },
            ),
            (run(nth, 2), format!("{:?}", optional(fields[3]))),
            (run(super::groups, 2), groups),
            (run(replace, 3), format!("{:?}", optional(fields[5]))),
        ];
        whole += usize::from(found[1].0.is_ok());
        grouped += usize::from(found[2].0.is_ok());
        for (what, (found, expected)) in found.into_iter().enumerate() {
            if let Ok(found) = found
                && found != expected
            {
                wrong.push(format!(
                    "{} on {searched:?}, {what}: {found}, not {expected}",
                    text(fields[0])
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {lines}: {}",
        wrong.len(),
        wrong[..wrong.len().min(30)].join("\n")
    );
    let most = lines * 98 / 100;
    assert!(whole > most && grouped > most, "{whole} and {grouped} of {lines} are told");
}
