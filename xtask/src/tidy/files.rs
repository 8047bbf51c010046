//! The rules of a file: it opens by saying what it is, is short enough to be read, and has a name
//! that says its role.
//!
//! Length counts lines that hold code, outside tests: a long comment is no reason to split a file.

use super::source::Source;
use super::{Finding, Tree};

/// Code lines a file may have, tests left out.
const LONGEST: usize = 600;

/// Files that are one declarative table, and why that is so; they may be longer.
const DECLARATIVE_TABLES: &[(&str, &str)] = &[];

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 8] =
    ["util", "utils", "helper", "helpers", "common", "misc", "tools", "stuff"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = stale_tables(tree, DECLARATIVE_TABLES);
    for source in &tree.sources {
        findings.extend(header(source));
        findings.extend(length(source, DECLARATIVE_TABLES));
        findings.extend(name(source));
    }
    findings
}

fn header(source: &Source) -> Option<Finding> {
    let opening = || source.lines.iter().map(|line| line.text.trim()).skip_while(|l| l.is_empty());
    if opening().next().is_some_and(|line| line.starts_with("#![doc = include_str!(")) {
        return None;
    }
    let text = |line: &&str| line.trim_start_matches("//!").chars().any(char::is_alphanumeric);
    let lines = opening().take_while(|line| line.starts_with("//!")).filter(text).count();
    (lines < 2).then(|| {
        let message = "no `//!` header of two lines or more at the top; \
                       say what the file is, why, and what must hold";
        Finding::new(&source.path, 1, "header", message)
    })
}

fn length(source: &Source, tables: &[(&str, &str)]) -> Option<Finding> {
    let mut code = source.numbered().filter(|(_, line)| !line.in_test && has_code(&line.code));
    let (first_over, _) = code.nth(LONGEST)?;
    if tables.iter().any(|(path, _)| *path == source.path) {
        return None;
    }
    let total = LONGEST + 1 + code.count();
    let message = format!(
        "{total} code lines, {LONGEST} are allowed; split it by role, \
         or name it in DECLARATIVE_TABLES if it is one table"
    );
    Some(Finding::new(&source.path, first_over, "length", message))
}

fn has_code(code: &str) -> bool {
    !code.trim().is_empty()
}

fn stale_tables(tree: &Tree, tables: &[(&str, &str)]) -> Vec<Finding> {
    let gone = |path: &str| !tree.sources.iter().any(|source| source.path == path);
    tables
        .iter()
        .filter(|(path, _)| gone(path))
        .map(|(path, _)| {
            Finding::new(path, 1, "length", "listed in DECLARATIVE_TABLES but gone; take it out")
        })
        .collect()
}

fn name(source: &Source) -> Option<Finding> {
    let bad = source
        .path
        .split('/')
        .map(|part| part.trim_end_matches(".rs"))
        .find(|part| EMPTY_NAMES.contains(part))?;
    let message = format!("`{bad}` says nothing; name the file after what is in it, as a noun");
    Some(Finding::new(&source.path, 1, "name", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "//! One.\n//! Two.\n";

    #[test]
    fn a_header_needs_two_lines_of_text() {
        assert!(header(&Source::new("a.rs", HEADER)).is_none());
        assert!(header(&Source::new("a.rs", "//! One.\n//!\n")).is_some());
        assert!(header(&Source::new("a.rs", "use x;\n//! One.\n//! Two.\n")).is_some());
        assert!(header(&Source::new("a.rs", "")).is_some());
    }

    #[test]
    fn a_readme_included_as_documentation_is_a_header() {
        let text = "#![doc = include_str!(\"../README.md\")]\n";
        assert!(header(&Source::new("src/lib.rs", text)).is_none());
    }

    #[test]
    fn length_counts_code_outside_tests_only() {
        let code = "let a = 1;\n".repeat(LONGEST);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{code}}}\n");
        let comments = "// why\n\n".repeat(100);
        let fits = Source::new("a.rs", &format!("{code}{comments}{tests}"));
        assert!(length(&fits, &[]).is_none());
        let over = Source::new("a.rs", &format!("{comments}{code}b();\n"));
        assert_eq!(length(&over, &[]).unwrap().line, 200 + LONGEST + 1);
        assert!(length(&over, &[("a.rs", "a table")]).is_none());
    }

    #[test]
    fn a_table_that_is_gone_leaves_the_list() {
        assert_eq!(stale_tables(&Tree::of(&[]), &[("a.rs", "a table")]).len(), 1);
        assert!(stale_tables(&Tree::of(&[("a.rs", "")]), &[("a.rs", "a table")]).is_empty());
    }

    #[test]
    fn names_that_say_nothing_are_refused() {
        assert!(name(&Source::new("src/utils.rs", HEADER)).is_some());
        assert!(name(&Source::new("src/common/mod.rs", HEADER)).is_some());
        assert!(name(&Source::new("src/commonest.rs", HEADER)).is_none());
    }
}
