//! The rule of READMEs: each crate has one beside its code, with its purpose, its rules, and a list of
//! its files that is complete.
//!
//! A list of files is worth reading only while it is true, so it is compared both ways: every `.rs`
//! file under `src/` is in it, and every `.rs` name in it exists. Names are relative to `src/`.
//!
//! A section opens with `## Rules`, or with the word alone on its line; text right below the title is
//! the purpose.

use super::source::is_test_file;
use super::{Finding, Tree};
use crate::workspace::Package;

const RULE: &str = "readme";

/// The root of a library needs no entry: it names the modules, and the README is its documentation.
const ROOT: &str = "lib.rs";

const SECTIONS: [&str; 3] = ["purpose", "rules", "files"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.packages.iter().flat_map(|package| check_package(package, tree)).collect()
}

fn check_package(package: &Package, tree: &Tree) -> Vec<Finding> {
    let path = format!("{}/README.md", package.directory);
    let Some(readme) = tree.texts.iter().find(|text| text.path == path) else {
        let message = "no README.md beside the code; write one with purpose, rules and files";
        return vec![Finding::new(&path, 1, RULE, message)];
    };
    let sections: Vec<Section<'_>> = sections(&readme.content);
    let mut findings: Vec<Finding> = SECTIONS
        .iter()
        .filter(|name| !sections.iter().any(|section| section.is(name) && section.has_text()))
        .map(|name| {
            let message = format!("no section `{name}` with text in it; write it");
            Finding::new(&path, 1, RULE, message)
        })
        .collect();
    if let Some(list) = sections.iter().find(|section| section.is("files")) {
        findings.extend(compare(list, &path, &sources_of(package, tree)));
    }
    findings
}

struct Section<'a> {
    title: &'a str,
    /// Line number of the title, from 1.
    line: usize,
    body: Vec<&'a str>,
}

impl Section<'_> {
    fn is(&self, name: &str) -> bool {
        self.title.eq_ignore_ascii_case(name)
    }

    fn has_text(&self) -> bool {
        self.body.iter().any(|line| !line.trim().is_empty())
    }
}

fn sections(content: &str) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for (number, line) in (1..).zip(content.lines()) {
        if let Some(title) = title_of(line) {
            sections.push(Section { title, line: number, body: Vec::new() });
        } else if let Some(section) = sections.last_mut() {
            section.body.push(line);
        }
    }
    sections
}

fn title_of(line: &str) -> Option<&str> {
    let is_section = |word: &&str| SECTIONS.iter().any(|name| name.eq_ignore_ascii_case(word));
    match line.strip_prefix("# ") {
        Some(_) => Some("purpose"),
        None => line
            .strip_prefix("## ")
            .map(str::trim)
            .or_else(|| Some(line.trim().trim_end_matches(':')).filter(is_section)),
    }
}

/// The package's files, relative to its `src/`.
fn sources_of<'a>(package: &Package, tree: &'a Tree) -> Vec<&'a str> {
    let prefix = format!("{}/src/", package.directory);
    tree.sources.iter().filter_map(|source| source.path.strip_prefix(prefix.as_str())).collect()
}

fn compare(list: &Section<'_>, path: &str, sources: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let names = || list.body.iter().flat_map(|line| rust_names(line));
    // Files of tests may be listed, and need not be.
    let unlisted = |source: &&&str| {
        **source != ROOT && !is_test_file(source) && !names().any(|name| name == **source)
    };
    for source in sources.iter().filter(unlisted) {
        let message = format!("`{source}` is not in the list of files; add it with its role");
        findings.push(Finding::new(path, list.line, RULE, message));
    }
    for (number, line) in (list.line + 1..).zip(&list.body) {
        for name in rust_names(line).filter(|name| !sources.contains(name)) {
            let message =
                format!("`{name}` is listed but not under src/; take it out or correct it");
            findings.push(Finding::new(path, number, RULE, message));
        }
    }
    findings
}

/// The names of Rust files in a line; `src/` before one may be written or left out.
fn rust_names(line: &str) -> impl Iterator<Item = &str> {
    let in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.');
    line.split(move |c: char| !in_name(c))
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| word.ends_with(".rs"))
        .map(|word| word.strip_prefix("src/").unwrap_or(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Text;

    fn findings(readme: Option<&str>) -> Vec<Finding> {
        let mut tree = Tree::of(&[("c/src/lib.rs", ""), ("c/src/types/mod.rs", "")]);
        tree.packages.push(Package {
            name: "pagemill-io".into(),
            directory: "c".into(),
            dependencies: vec![],
            roots: vec![],
        });
        let text = |content: &str| Text { path: "c/README.md".into(), content: content.into() };
        tree.texts.extend(readme.map(text));
        check(&tree)
    }

    #[test]
    fn a_crate_without_a_readme_is_named() {
        assert!(findings(None)[0].message.contains("no README.md"));
    }

    #[test]
    fn a_complete_readme_is_fine() {
        let readme = "# x\n## Purpose\nTo be.\n## Rules\nNone.\n## Files\n\
                      - `lib.rs`: the root\n| `src/types/mod.rs` | types |\n";
        assert_eq!(findings(Some(readme)), []);
    }

    #[test]
    fn plain_words_open_sections_and_the_first_text_is_the_purpose() {
        let readme = "# x\n\nTo be.\n\nRules\n- None.\n\nFiles\n- `lib.rs`, `types/mod.rs`\n";
        assert_eq!(findings(Some(readme)), []);
        let without =
            findings(Some("# x\n\nRules\n- None.\n\nFiles\n- `lib.rs`, `types/mod.rs`\n"));
        assert!(without[0].message.contains("purpose"), "{without:?}");
    }

    #[test]
    fn missing_sections_and_files_are_named_each() {
        let found = findings(Some("## Purpose\nTo be.\n## Rules\n\n## Files\nnone\n"));
        let messages: Vec<&str> = found.iter().map(|finding| finding.message.as_str()).collect();
        assert!(messages[0].contains("`rules`"), "{messages:?}");
        assert!(messages[1].contains("types/mod.rs"), "{messages:?}");
        assert_eq!(messages.len(), 2);
    }

    #[test]
    fn a_listed_file_that_is_gone_is_named_with_its_line() {
        let readme = "## Purpose\na\n## Rules\nb\n## Files\n`lib.rs` `types/mod.rs`\n`old.rs`\n";
        let found = findings(Some(readme));
        assert_eq!((found.len(), found[0].line), (1, 7));
    }
}
