//! The rule of `unsafe`: one crate has it, each use proves itself, every other crate forbids it.
//!
//! The compiler enforces `#![forbid(unsafe_code)]`; this rule makes sure the attribute is there, in
//! the root of each library, binary and build script. Roots of tests need no attribute: the keyword
//! itself is looked for in every file.

use super::source::{Line, Source};
use super::{Finding, Tree};

const RULE: &str = "unsafe";

/// The only crate that may hold `unsafe`.
const UNSAFE_CRATE: &str = "pagemill-sys";

const FORBID: &str = "#![forbid(unsafe_code)]";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let exempt = format!("crates/{UNSAFE_CRATE}/");
    let mut findings: Vec<Finding> = Vec::new();
    for package in tree.packages.iter().filter(|package| package.name != UNSAFE_CRATE) {
        findings.extend(package.roots.iter().filter_map(|path| missing_forbid(tree, path)));
    }
    for source in &tree.sources {
        let allowed = source.path.starts_with(&exempt);
        findings.extend(if allowed { unproven(source) } else { misplaced(source) });
    }
    findings
}

fn missing_forbid(tree: &Tree, path: &str) -> Option<Finding> {
    let source = tree.sources.iter().find(|source| source.path == path)?;
    let present = source.lines.iter().any(|line| line.code.trim() == FORBID);
    (!present).then(|| {
        Finding::new(path, 1, RULE, format!("a crate root without `{FORBID}`; add it at the top"))
    })
}

/// Whether the line uses the keyword, and not the name of the lint.
fn uses_unsafe(line: &Line) -> bool {
    line.code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe")
}

fn misplaced(source: &Source) -> Vec<Finding> {
    let message = format!("`unsafe` outside {UNSAFE_CRATE}; put a safe function there and call it");
    source
        .numbered()
        .filter(|(_, line)| uses_unsafe(line))
        .map(|(number, _)| Finding::new(&source.path, number, RULE, message.clone()))
        .collect()
}

fn unproven(source: &Source) -> Vec<Finding> {
    let message = "`unsafe` without a proof; write `// SAFETY:` with the reason right above it";
    let opens = |line: &Line| uses_unsafe(line) && !line.code.contains("unsafe fn");
    source
        .numbered()
        .filter(|(number, line)| opens(line) && !is_proven(source, *number))
        .map(|(number, _)| Finding::new(&source.path, number, RULE, message))
        .collect()
}

/// A proof stands on the line, or in the comment above it. An expression may begin a few lines before its
/// `unsafe`, as in a `let` that wraps, so lines without a statement's end are looked through.
fn is_proven(source: &Source, number: usize) -> bool {
    let proof = |line: &Line| line.comment.contains("SAFETY:");
    let Some((own, above)) = source.lines.get(..number).and_then(|lines| lines.split_last()) else {
        return false;
    };
    let ends = |line: &Line| line.code.trim_end().ends_with([';', '{', '}']);
    proof(own) || above.iter().rev().take_while(|line| !ends(line)).any(proof)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Package;

    #[test]
    fn unsafe_outside_its_crate_is_found_in_code_only() {
        let text = "// unsafe\nlet a = \"unsafe\";\n#![deny(unsafe_code)]\nunsafe { f() }\n";
        let found = check(&Tree::of(&[("crates/pagemill-io/src/a.rs", text)]));
        assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn unsafe_in_its_crate_needs_a_proof_above_it() {
        let path = "crates/pagemill-sys/src/a.rs";
        let proven = "// SAFETY: the pointer\n// is ours.\nlet a =\n    unsafe { f() };\n";
        assert_eq!(check(&Tree::of(&[(path, proven)])), []);
        let bare = "// SAFETY: of another.\nlet a = 1;\nlet b = unsafe { f() };\n";
        assert_eq!(check(&Tree::of(&[(path, bare)])).len(), 1);
    }

    #[test]
    fn a_crate_root_without_forbid_is_named() {
        let mut tree = Tree::of(&[("c/src/lib.rs", "//! x\n")]);
        tree.packages.push(Package {
            name: "pagemill-io".into(),
            directory: "c".into(),
            dependencies: vec![],
            roots: vec!["c/src/lib.rs".into()],
        });
        assert_eq!(check(&tree).len(), 1);
        tree.sources = Tree::of(&[("c/src/lib.rs", "//! x\n#![forbid(unsafe_code)]\n")]).sources;
        assert_eq!(check(&tree), []);
    }
}
