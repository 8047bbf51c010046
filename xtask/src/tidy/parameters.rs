//! The rule of parameters: a function takes four at most, besides `self`.
//!
//! What a fifth would be is mostly a part of something that has a name: a struct that several functions pass on, or the
//! type that the function should be a method of. A tuple as one parameter hides the fifth, and is no remedy.
//!
//! Tests are free, as are functions that say why by `#[expect(clippy::too_many_arguments, reason = "…")]`.
//! Invariant: only parameters of functions count, not those of closures or of function types.

use super::source::Source;
use super::{Finding, Tree};

const RULE: &str = "parameters";

/// Parameters a function may have, besides `self`.
const MOST: usize = 4;

/// What the rule was not brought to, and why.
const EXEMPT: [(&str, &str); 4] = [
    ("crates/pagemill-sql/", "functions of SQL, which have the parameters that PostgreSQL's have"),
    ("crates/pagemill-serve/", "is of the same workspace, and built with it"),
    ("crates/pagemill-lab/", "drawings, whose parts are told by places and lengths"),
    ("xtask/src/bench/", "contestants of races, each of which is told once"),
];

/// States the reason for an exception where it is.
const EXPECTED: &str = "clippy::too_many_arguments";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let is_exempt = |path: &str| EXEMPT.iter().any(|(prefix, _)| path.starts_with(prefix));
    let sources = tree.sources.iter().filter(|source| !is_exempt(&source.path));
    sources.flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in source.numbered().filter(|(_, line)| !line.in_test) {
        for (at, name) in functions(&line.code) {
            let count = parameters(source, number, at);
            if count > MOST && !is_expected(source, number) {
                let message = format!(
                    "`{name}` has {count} parameters, {MOST} are allowed besides `self`; make those that belong \
                     together a struct, or the function a method of what has them"
                );
                findings.push(Finding::new(&source.path, number, RULE, message));
            }
        }
    }
    findings
}

/// The functions that are declared on a line: where their names end, and their names.
fn functions(code: &str) -> Vec<(usize, &str)> {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let declared = |(at, _): (usize, &str)| {
        let before = code.get(..at)?.chars().next_back();
        let name = code.get(at + 3..)?;
        let end = name.find(|c| !part_of_name(c)).unwrap_or(name.len());
        let is_one = end > 0 && !before.is_some_and(part_of_name);
        is_one.then(|| (at + 3 + end, name.get(..end).unwrap_or_default()))
    };
    code.match_indices("fn ").filter_map(declared).collect()
}

/// How many parameters stand in the parentheses behind a name, which may span lines, `self` left out.
fn parameters(source: &Source, number: usize, name_end: usize) -> usize {
    let lines = source.lines.get(number - 1..).unwrap_or_default();
    let first = lines.first().and_then(|line| line.code.get(name_end..)).unwrap_or_default();
    let rest = lines.iter().skip(1).map(|line| line.code.as_str());
    let code: String = std::iter::once(first).chain(rest).flat_map(|line| [line, " "]).collect();
    let list = behind_generics(&code).and_then(|code| code.strip_prefix('('));
    let list = list.map(top_level_parts).unwrap_or_default();
    list.iter().filter(|part| !is_self(part)).count()
}

/// The code behind `<…>`, if it begins with that.
fn behind_generics(code: &str) -> Option<&str> {
    let code = code.trim_start();
    if !code.starts_with('<') {
        return Some(code);
    }
    let mut nesting = Nesting::default();
    let end = code.char_indices().find(|(_, c)| nesting.step(*c) && nesting.depth == 0)?.0;
    code.get(end + 1..).map(str::trim_start)
}

/// What stands between commas, up to the parenthesis that closes the list.
fn top_level_parts(list: &str) -> Vec<&str> {
    let (mut nesting, mut parts, mut start) = (Nesting { depth: 1, last: '(' }, Vec::new(), 0);
    for (at, character) in list.char_indices() {
        nesting.step(character);
        if nesting.depth == 0 || (nesting.depth == 1 && character == ',') {
            parts.extend(list.get(start..at).map(str::trim).filter(|part| !part.is_empty()));
            start = at + 1;
        }
        if nesting.depth == 0 {
            break;
        }
    }
    parts
}

/// How deep in brackets of any kind a place is.
#[derive(Default)]
struct Nesting {
    depth: usize,
    /// The character before: `->` and `=>` close nothing.
    last: char,
}

impl Nesting {
    /// Goes on by a character; true for one that closes a bracket.
    fn step(&mut self, character: char) -> bool {
        let is_arrow = character == '>' && matches!(self.last, '-' | '=');
        let closes = matches!(character, ')' | ']' | '}' | '>') && !is_arrow;
        match character {
            '(' | '[' | '{' | '<' => self.depth += 1,
            _ if closes => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.last = character;
        closes
    }
}

/// `self`, `&self`, `&'a mut self`, `self: Arc<Self>`.
fn is_self(parameter: &str) -> bool {
    let name = parameter.split(':').next().unwrap_or_default();
    name.split_whitespace().next_back().is_some_and(|word| word.trim_start_matches('&') == "self")
}

/// True when the attributes of the function say that, and why, it has so many.
fn is_expected(source: &Source, number: usize) -> bool {
    let above = source.lines.get(..number - 1).unwrap_or_default();
    let attributes = above.iter().rev().take_while(|line| line.code.trim().starts_with("#["));
    attributes.into_iter().any(|line| line.code.contains(EXPECTED) && line.code.contains("reason"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/pagemill-io/src/a.rs";
    const NONE: [usize; 0] = [];

    fn found(path: &str, text: &str) -> Vec<usize> {
        let findings = check(&Tree::of(&[(path, text)]));
        findings.into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_fifth_parameter_is_refused_with_the_remedy() {
        let findings =
            check(&Tree::of(&[(PATH, "a();\nfn read(a: A, b: B, c: C, d: D, e: E) -> F {\n")]));
        assert_eq!(findings[0].line, 2);
        assert!(findings[0].message.starts_with("`read` has 5 parameters, 4 are allowed"));
        assert!(findings[0].message.contains("; make those that belong together a struct"));
    }

    #[test]
    fn four_are_accepted_and_self_is_none_of_them() {
        for own in ["self", "mut self", "&self", "&mut self", "&'a self", "self: Arc<Self>"] {
            assert_eq!(found(PATH, &format!("fn f({own}, a: A, b: B, c: C, d: D) {{\n")), NONE);
            assert_eq!(found(PATH, &format!("fn f({own}, a: A, b: B, c: C, d: D, e: E)\n")), [1]);
        }
        assert_eq!(found(PATH, "fn f(a: A, b: B, c: C, d: D,) {}\nfn g() {}\n"), NONE);
    }

    #[test]
    fn commas_within_a_parameter_count_for_nothing() {
        let types = "a: (A, B), b: Map<K, V>, c: impl Fn(A, B) -> C, d: [[u8; 2]; 3]";
        assert_eq!(found(PATH, &format!("fn f<T: Fn(A, B) -> C, U>({types}) {{\n")), NONE);
        assert_eq!(found(PATH, &format!("fn f<T: Fn(A, B) -> C, U>({types}, e: E) {{\n")), [1]);
    }

    #[test]
    fn parameters_on_lines_of_their_own_are_counted_from_the_name_on() {
        let text = "impl A {\n    pub fn f(\n        a: A, // one, two\n        b: B,\n        c: C,\n        \
                    d: D,\n        e: E,\n    ) {\n";
        assert_eq!(found(PATH, text), [2]);
        assert_eq!(found(PATH, &text.replace("        e: E,\n", "")), NONE);
    }

    #[test]
    fn function_types_and_closures_are_free() {
        assert_eq!(found(PATH, "type F = fn(A, B, C, D, E);\nlet f = |a, b, c, d, e| 0;\n"), NONE);
        assert_eq!(found(PATH, "let a = r#\"fn f(a, b, c, d, e)\"#;\n"), NONE);
    }

    #[test]
    fn tests_exempt_places_and_stated_reasons_are_passed() {
        let many = "fn f(a: A, b: B, c: C, d: D, e: E) {}\n";
        assert_eq!(found("crates/pagemill-io/tests/a.rs", many), NONE);
        assert_eq!(found(PATH, &format!("#[cfg(test)]\nmod tests {{\n{many}}}\n")), NONE);
        assert_eq!(found("crates/pagemill-sql/src/a.rs", many), NONE);
        let expected = "#[inline]\n#[expect(clippy::too_many_arguments, reason = \"a row\")]\n";
        assert_eq!(found(PATH, &format!("{expected}{many}")), NONE);
        let bare = "#[expect(clippy::too_many_arguments)]\n";
        assert_eq!(found(PATH, &format!("{bare}{many}")), [2]);
    }
}
