//! `cargo xtask tidy`: the house rules as a program.
//!
//! Each rule lives in a file of its own and returns findings; a finding names the place, the rule
//! and the remedy, so nobody has to look a rule up. Rules are pure functions of the sources they are
//! given, which is what makes them testable; only this file reads the tree.

mod files;
mod layers;
mod machines;
mod manifests;
mod parameters;
mod readmes;
mod source;
mod unsafety;
mod words;

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};

use crate::workspace::{self, Package};
use source::Source;

/// A broken rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) rule: &'static str,
    /// What is wrong, and after a semicolon what to do about it.
    pub(crate) message: String,
}

impl Finding {
    fn new(path: &str, line: usize, rule: &'static str, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, rule, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}: {}", self.path, self.line, self.rule, self.message)
    }
}

/// A text file of the project that is not Rust.
pub(crate) struct Text {
    pub(crate) path: String,
    pub(crate) content: String,
}

/// Everything the rules look at.
pub(crate) struct Tree {
    pub(crate) packages: Vec<Package>,
    pub(crate) sources: Vec<Source>,
    pub(crate) texts: Vec<Text>,
}

/// Checks the tree, prints the findings, and says whether there were none.
pub(crate) fn run() -> Result<bool> {
    let tree = read(&workspace::root())?;
    let findings = check(&tree);
    for finding in &findings {
        println!("{finding}");
    }
    let (files, broken) = (tree.sources.len() + tree.texts.len(), findings.len());
    println!("tidy: {files} files looked at, {broken} findings");
    Ok(findings.is_empty())
}

fn check(tree: &Tree) -> Vec<Finding> {
    let rules: [fn(&Tree) -> Vec<Finding>; 8] = [
        layers::check,
        files::check,
        unsafety::check,
        words::check,
        readmes::check,
        machines::check,
        manifests::check,
        parameters::check,
    ];
    let mut findings: Vec<Finding> = rules.iter().flat_map(|rule| rule(tree)).collect();
    findings.sort();
    findings
}

fn read(root: &Path) -> Result<Tree> {
    let mut tree =
        Tree { packages: workspace::packages(root)?, sources: Vec::new(), texts: Vec::new() };
    for path in workspace::files(root)? {
        let bytes = std::fs::read(root.join(&path)).with_context(|| path.clone())?;
        let Ok(content) = String::from_utf8(bytes) else { continue };
        if path.ends_with(".rs") {
            tree.sources.push(Source::new(&path, &content));
        } else {
            tree.texts.push(Text { path, content });
        }
    }
    Ok(tree)
}

#[cfg(test)]
impl Tree {
    /// A tree of Rust files alone, for the rules' tests.
    fn of(files: &[(&str, &str)]) -> Self {
        let sources = files.iter().map(|(path, text)| Source::new(path, text)).collect();
        Self { packages: Vec::new(), sources, texts: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_prints_as_place_rule_and_remedy() {
        let finding = Finding::new("a.rs", 3, "words", "this is wrong; do that");
        assert_eq!(finding.to_string(), "a.rs:3: words: this is wrong; do that");
    }

    #[test]
    fn the_tasks_own_sources_keep_the_rules() {
        let mut tree = read(&workspace::root()).unwrap();
        tree.packages.retain(|package| package.name == "xtask");
        tree.sources.retain(|source| source.path.starts_with("xtask/"));
        tree.texts.retain(|text| text.path.starts_with("xtask/"));
        let findings = check(&tree);
        assert!(findings.is_empty(), "{findings:#?}");
    }
}
