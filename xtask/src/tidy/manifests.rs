//! The rule of manifests: a crate that ships can be published as it lies there.
//!
//! Cargo refuses a crate without a description, a dependency without a version and one that is published nowhere; a
//! registry shows keywords, categories and the README, and the licenses ask to be passed on with the code. What does not
//! ship says `publish = false`.

use super::{Finding, Text, Tree};
use crate::workspace::Package;

const RULE: &str = "manifests";

const FIELDS: [&str; 5] = ["description", "license", "keywords", "categories", "readme"];
const LICENSES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];
const WORKSPACE: &str = "Cargo.toml";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        tree.packages.iter().flat_map(|package| check_package(package, tree)).collect();
    let manifests = tree.texts.iter().filter(|text| text.path.ends_with(WORKSPACE) && ships(text));
    findings.extend(manifests.flat_map(check_versions));
    findings
}

fn check_package(package: &Package, tree: &Tree) -> Vec<Finding> {
    let path = manifest_of(package);
    let Some(manifest) = text(tree, &path).filter(|manifest| ships(manifest)) else {
        return Vec::new();
    };
    let has_field = |field: &str| {
        let is_it = |line: &str| {
            line.strip_prefix(field).is_some_and(|rest| rest.starts_with([' ', '=', '.']))
        };
        manifest.content.lines().any(is_it)
    };
    let missing = FIELDS.into_iter().filter(|field| !has_field(field));
    let mut messages: Vec<String> =
        missing.map(|field| format!("no {field}; add it, or publish = false")).collect();
    let file = |name: &str| format!("{}/{name}", package.directory);
    let missing = LICENSES.into_iter().filter(|name| text(tree, &file(name)).is_none());
    messages
        .extend(missing.map(|name| format!("no {name} beside it; link it: ln -s ../../{name}")));
    for dependency in package.dependencies.iter().filter(|dependency| !dependency.dev_only) {
        let own = tree.packages.iter().find(|other| other.name == dependency.name);
        if own.is_some_and(|own| text(tree, &manifest_of(own)).is_some_and(|text| !ships(text))) {
            let name = &dependency.name;
            messages.push(format!("it ships and `{name}` does not; publish that, or neither"));
        }
    }
    messages.into_iter().map(|message| Finding::new(&path, 1, RULE, message)).collect()
}

/// Every path has the version beside it that a registry needs; what only tests take is left out there.
fn check_versions(manifest: &Text) -> Vec<Finding> {
    let lines = manifest.content.lines().enumerate();
    let lines = lines.take_while(|(_, line)| line.trim() != "[dev-dependencies]");
    let wrong = lines.filter(|(_, line)| line.contains("{ path =") && !line.contains("version ="));
    let message = "a path without a version cannot be published; add version = \"…\"";
    wrong.map(|(at, _)| Finding::new(&manifest.path, at + 1, RULE, message)).collect()
}

fn manifest_of(package: &Package) -> String {
    format!("{}/Cargo.toml", package.directory)
}

fn ships(manifest: &Text) -> bool {
    !manifest.content.lines().any(|line| line.trim() == "publish = false")
}

fn text<'t>(tree: &'t Tree, path: &str) -> Option<&'t Text> {
    tree.texts.iter().find(|text| text.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    const WHOLE: &str = "description = \"a\"\nlicense.workspace = true\nkeywords = []\n\
                         categories = []\nreadme = \"README.md\"\n";

    fn tree(manifests: &[(&str, &str)]) -> Tree {
        let package = |(name, _): &(&str, &str)| Package {
            name: (*name).into(),
            directory: format!("crates/{name}"),
            dependencies: vec![Dependency { name: "other".into(), dev_only: false }],
            roots: vec![],
        };
        let text = |path: String, content: &str| Text { path, content: content.into() };
        let mut texts = Vec::new();
        for (name, content) in manifests {
            texts.push(text(format!("crates/{name}/Cargo.toml"), content));
            texts.extend(LICENSES.map(|license| text(format!("crates/{name}/{license}"), "MIT")));
        }
        Tree { packages: manifests.iter().map(package).collect(), sources: vec![], texts }
    }

    #[test]
    fn a_crate_that_says_all_a_registry_asks_for_may_ship() {
        assert_eq!(check(&tree(&[("own", WHOLE)])), []);
        assert_eq!(check(&tree(&[("own", "publish = false\n")])), []);
    }

    #[test]
    fn what_is_missing_is_named() {
        let without = WHOLE.replace("keywords = []\n", "");
        let found = check(&tree(&[("own", &without)]));
        assert!(found.len() == 1 && found[0].message.starts_with("no keywords"), "{found:?}");
        let mut bare = tree(&[("own", WHOLE)]);
        bare.texts.retain(|text| !text.path.ends_with("LICENSE-MIT"));
        assert!(check(&bare)[0].message.starts_with("no LICENSE-MIT"));
    }

    #[test]
    fn what_ships_cannot_depend_on_what_does_not() {
        let found = check(&tree(&[("own", WHOLE), ("other", "publish = false\n")]));
        assert!(found.len() == 1 && found[0].message.contains("`other` does not"), "{found:?}");
    }

    #[test]
    fn a_path_without_a_version_is_named_with_its_line() {
        let mut tree = tree(&[]);
        let content = "[workspace.dependencies]\na = { path = \"a\" }\nb = { path = \"b\", version = \"1\" }\n";
        tree.texts.push(Text { path: WORKSPACE.into(), content: content.into() });
        let found = check(&tree);
        assert_eq!((found.len(), found[0].line), (1, 2));
        let own =
            |content: &str| Text { path: "crates/own/Cargo.toml".into(), content: content.into() };
        tree.texts = vec![own("[dependencies]\na = { path = \"../a\" }\n")];
        assert_eq!(check(&tree).len(), 1);
        tree.texts = vec![own("publish = false\n[dependencies]\na = { path = \"../a\" }\n")];
        assert_eq!(check(&tree), []);
        tree.texts = vec![own("[dev-dependencies]\na = { path = \"../a\" }\n")];
        assert_eq!(check(&tree), []);
    }
}
