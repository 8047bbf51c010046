//! Paths whose answers real servers gave, and documents and paths that are damaged or too deep.
//!
//! Each line of the table: major version, function, whether it is silent, time zone, path, document, variables, answer: `R`
//! and what is found, or `E` with SQLSTATE, message and hint.

use std::sync::Arc;

use pagemill_format::ids::PgVersion;
use pagemill_types::input::datetime::{DateOrder, DateTimeContext, IntervalStyle, ZoneLookup};
use pagemill_types::input::jsonb::read_jsonb;
use pagemill_types::input::jsonpath::read_jsonpath;
use pagemill_types::input::tree::InputContext;
use pagemill_types::jsonb::write_jsonb;
use pagemill_types::time_zone::Zone;

use super::run::MAX_DEPTH;
use super::{LikeRegex, Path, PatternFlags, Query, Settings};
use crate::error::StatementError;
use crate::functions::rows::Outcome;

const ANSWERS: &str = include_str!("server_answers.tsv");

struct NoZones;

impl ZoneLookup for NoZones {
    fn zone(&self, _: &str) -> Option<Arc<Zone>> {
        None
    }
}

/// Matches what contains the pattern, and tells the flags by the pattern `flags`.
pub(super) struct Contains;

impl LikeRegex for Contains {
    fn is_match(&self, pattern: &str, flags: PatternFlags, text: &str) -> Outcome<bool> {
        let letters = [
            (flags.ignores_case, 'i'),
            (flags.stops_at_lines, 'n'),
            (flags.anchors_at_lines, 'a'),
            (flags.is_quoted, 'q'),
        ];
        let shown: String = letters.into_iter().filter(|(is, _)| *is).map(|(_, l)| l).collect();
        Ok(if pattern == "flags" { text == shown } else { text.contains(pattern) })
    }
}

fn context(version: PgVersion) -> InputContext {
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

pub(super) fn path(text: &str) -> Vec<u8> {
    let mut payload = Vec::new();
    read_jsonpath(text.as_bytes(), &context(PgVersion::V18), &mut payload).unwrap();
    payload
}

pub(super) fn jsonb(text: &str) -> Vec<u8> {
    let mut payload = Vec::new();
    read_jsonb(text.as_bytes(), &context(PgVersion::V18), &mut payload).unwrap();
    payload
}

pub(super) fn shown(payload: &[u8]) -> String {
    let mut out = Vec::new();
    write_jsonb(payload, &mut out).unwrap();
    // What is put together here is what the server's own functions would have made of the text.
    assert_eq!(jsonb(std::str::from_utf8(&out).unwrap()), payload);
    String::from_utf8(out).unwrap()
}

/// One line's call.
struct Call<'c> {
    function: &'c str,
    path: &'c [u8],
    document: &'c [u8],
    variables: Option<&'c [u8]>,
    is_silent: bool,
    major: u32,
    zone: Zone,
}

impl<'c> Call<'c> {
    fn all(path: &'c [u8], document: &'c [u8]) -> Self {
        let zone = Zone::gmt();
        Self {
            function: "query",
            path,
            document,
            variables: None,
            is_silent: false,
            major: 18,
            zone,
        }
    }

    fn answer(&self) -> Outcome<Vec<String>> {
        let (function, uses_zone) = match self.function.strip_suffix("_tz") {
            Some(function) => (function, true),
            None => (self.function, false),
        };
        let (zone, major) = (&self.zone, self.major);
        let settings = Settings { major, uses_zone, zone, regex: &Contains };
        let query = Query {
            path: &Path::new(self.path)?,
            document: self.document,
            variables: self.variables,
            passed: None,
            is_silent: self.is_silent,
            settings: &settings,
        };
        let truth = |truth: Option<bool>| truth.iter().map(bool::to_string).collect();
        Ok(match function {
            "exists" => truth(query.finds_any()?),
            "match" => truth(query.matches()?),
            "query_array" => vec![shown(&query.array()?)],
            "query_first" => query.first()?.iter().map(|first| shown(first)).collect(),
            _ => query.all()?.iter().map(|one| shown(one)).collect(),
        })
    }
}

fn told(answer: Outcome<Vec<String>>) -> String {
    match answer {
        Ok(found) => ["R".to_owned()].into_iter().chain(found).collect::<Vec<_>>().join("\t"),
        Err(StatementError { state, message, hint, .. }) => {
            format!("E\t{}\t{message}\t{}", state.0, hint.unwrap_or_default())
        }
    }
}

fn all(path_text: &str, document: &str) -> String {
    told(Call::all(&path(path_text), &jsonb(document)).answer())
}

#[test]
fn paths_find_what_they_find_on_real_servers() {
    for line in ANSWERS.lines() {
        let parts: Vec<&str> = line.splitn(8, '\t').collect();
        let [major, function, silent, zone, path_text, document, variables, answer] = parts[..]
        else {
            panic!("{line}")
        };
        let variables = (variables != "-").then(|| jsonb(variables));
        let call = Call {
            function,
            path: &path(path_text),
            document: &jsonb(document),
            variables: variables.as_deref(),
            is_silent: silent == "silent",
            major: major.parse().unwrap(),
            zone: Zone::from_posix(zone.as_bytes()).unwrap(),
        };
        assert_eq!(told(call.answer()), answer, "{line}");
    }
}

#[test]
fn flags_are_the_options_of_expressions() {
    let document = r#"["", "n", "i", "in", "na", "a", "q", "iq"]"#;
    let with =
        |flags: &str| all(&format!("$ ? (@ like_regex \"flags\" flag \"{flags}\")"), document);
    assert_eq!(all("$ ? (@ like_regex \"flags\")", document), "R\t\"n\"");
    assert_eq!(with("s"), "R\t\"\"");
    assert_eq!(with("is"), "R\t\"i\"");
    assert_eq!(with("i"), "R\t\"in\"");
    assert_eq!(with("m"), "R\t\"na\"");
    assert_eq!(with("ms"), "R\t\"a\"");
    assert_eq!(with("qms"), "R\t\"q\"");
    assert_eq!(with("iq"), "R\t\"iq\"");
}

#[test]
fn a_variable_without_variables_is_refused_where_versions_differ() {
    let (path, document) = (path("$x"), jsonb("1"));
    let call = |major| told(Call { major, ..Call::all(&path, &document) }.answer());
    assert!(call(16).starts_with("E\t0A000"));
    assert_eq!(call(17), "E\t42704\tcould not find jsonpath variable \"x\"\t");
}

#[test]
fn long_paths_are_no_deep_ones() {
    assert_eq!(all(&format!("${}", ".a".repeat(10_000)), "{\"a\": 1}"), "R");
    let terms: Vec<String> = (0..1000).map(|n| format!("@ == {n}")).collect();
    assert_eq!(all(&format!("$ ? ({})", terms.join(" || ")), "999"), "R\t999");
    assert_eq!(all(&format!("$ ? ({})", terms.join(" && ")), "0"), "R");
    let deep = format!("{}1{}", "[".repeat(2000), "]".repeat(2000));
    assert_eq!(all("$.**{last}", &deep), "R\t1");
}

#[test]
fn what_is_too_deep_is_an_error() {
    let on_a_small_stack = || {
        let depth = MAX_DEPTH + 1;
        let document = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let error = |path: &str| {
            assert!(all(path, &document).starts_with("E\t54001\tstack depth limit"), "{path}")
        };
        error(&format!("${}", "[*]".repeat(depth)));
        error(&format!("${}", "[0]".repeat(depth)));
        error(&format!("{}1{}", "1+(".repeat(depth), ")".repeat(depth)));
        assert_eq!(all(&format!("${}", "[*]".repeat(MAX_DEPTH - 1)), &document), "R\t[[]]");
    };
    std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(on_a_small_stack)
        .unwrap()
        .join()
        .unwrap();
}

/// Every byte changed in turn: anything may come of it but a panic.
#[test]
fn damage_never_panics() {
    let path = path(
        "strict $.**{1 to last} ? (@.a[0,1 to last] + -2.5 > $x || @ starts with \"a\").keyvalue()",
    );
    let document = jsonb(r#"{"a": [1, 2.5, "b", {"c": null}], "bb": {"a": [true]}, "c": "text"}"#);
    for changed in (0..path.len()).flat_map(|at| [0u8, 1, 4, 0x7F, 0xFF].map(|to| (at, to))) {
        let mut path = path.clone();
        path[changed.0] = changed.1;
        let _ = Call { variables: Some(&document), ..Call::all(&path, &document) }.answer_bytes();
    }
    for changed in
        (0..document.len()).flat_map(|at| [0u8, 1, 4, 0x50, 0x7F, 0xFF].map(|to| (at, to)))
    {
        let mut damaged = document.clone();
        damaged[changed.0] = changed.1;
        let _ = Call { variables: Some(&document), ..Call::all(&path, &damaged) }.answer_bytes();
    }
    for end in 0..document.len() {
        let _ = Call::all(&path, &document[..end]).answer_bytes();
    }
}

impl Call<'_> {
    /// What is found, which may be damaged.
    fn answer_bytes(&self) -> Outcome<Vec<Vec<u8>>> {
        let settings =
            Settings { major: self.major, uses_zone: false, zone: &self.zone, regex: &Contains };
        let path = Path::new(self.path)?;
        let query = Query {
            path: &path,
            document: self.document,
            variables: self.variables,
            passed: None,
            is_silent: self.is_silent,
            settings: &settings,
        };
        query.all()
    }
}
