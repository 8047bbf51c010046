//! The rule of machines: nothing in the tree names a place on the machine of whoever wrote it.
//!
//! A path under somebody's home works nowhere else, and a mirror of a package registry is nobody
//! else's to reach. So: no absolute path into a home or a working directory, no URL whose host is an
//! address or a name without a public domain, no package source but the public registry, and no program with the path of its
//! checkout built in.

use super::{Finding, Tree};

const RULE: &str = "machine";

/// Directories that belong to one machine. Put together at compile time, so that this file keeps its
/// own rule.
const OWN_DIRECTORIES: [&str; 6] = [
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/Us", "ers/"),
    concat!("/tmp", "/wt/"),
    concat!("/tmp", "/target-"),
];

/// Ends of host names that mean something only on one network.
const PRIVATE_DOMAINS: [&str; 5] = [".internal", ".local", ".lan", ".corp", ".intranet"];

/// How a cargo setting replaces the public registry.
const REPLACEMENTS: [&str; 3] = ["replace-with", "[registries", "[source."];

/// How a program is given the path of the checkout it is built in.
const BUILT_IN: &str = concat!("env!(\"CARGO_", "MANIFEST_DIR\")");

const PUBLIC_REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let texts = tree.texts.iter().flat_map(|text| check_text(&text.path, text.content.lines()));
    let sources = tree.sources.iter().flat_map(|source| {
        check_text(&source.path, source.lines.iter().map(|line| line.text.as_str()))
    });
    texts.chain(sources).collect()
}

fn check_text<'a>(path: &str, lines: impl Iterator<Item = &'a str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(lines) {
        let faults =
            [own_path(line), built_in_path(line), private_host(line), foreign_source(path, line)];
        let found = faults.into_iter().flatten();
        findings.extend(found.map(|message| Finding::new(path, number, RULE, message)));
    }
    findings
}

fn own_path(line: &str) -> Option<String> {
    let directory = OWN_DIRECTORIES.iter().find(|directory| stands_absolute(line, directory))?;
    Some(format!("a path under `{directory}`; take it from the environment or from an argument"))
}

/// Checkouts may share a target directory: a path built in is that of one that may be gone.
fn built_in_path(line: &str) -> Option<String> {
    let remedy = "ask as the program runs, a test by `pagemill_testkit::in_checkout`";
    line.contains(BUILT_IN).then(|| format!("the checkout's path built in; {remedy}"))
}

/// Whether the directory opens a path, and is not the tail of a longer one.
fn stands_absolute(line: &str, directory: &str) -> bool {
    let continues = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | ')' | '~');
    line.match_indices(directory).any(|(at, _)| {
        let before = line.get(..at).and_then(|head| head.chars().next_back());
        !before.is_some_and(continues)
    })
}

fn private_host(line: &str) -> Option<String> {
    let host = line.match_indices("://").find_map(|(at, mark)| {
        let rest = line.get(at + mark.len()..)?;
        let end = rest.find(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '-'));
        let host = rest.get(..end.unwrap_or(rest.len()))?;
        is_private(host).then_some(host)
    })?;
    Some(format!("a URL on `{host}`, which others cannot reach; name a public host"))
}

fn is_private(host: &str) -> bool {
    let address =
        host.split('.').count() == 4 && host.chars().all(|c| c.is_ascii_digit() || c == '.');
    let private = PRIVATE_DOMAINS.iter().any(|domain| host.ends_with(domain));
    !host.is_empty() && (address || private)
}

fn foreign_source(path: &str, line: &str) -> Option<String> {
    let line = line.trim();
    let in_lock = path.ends_with("Cargo.lock");
    if in_lock && line.starts_with("source = ") && !line.contains(PUBLIC_REGISTRY) {
        return Some("a package from elsewhere than crates.io; use a published version".into());
    }
    let in_setting = path.contains(".cargo/config");
    let replaced = REPLACEMENTS.iter().find(|word| line.starts_with(**word))?;
    in_setting.then(|| format!("`{replaced}` in the project; keep it in your own cargo settings"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, line: &str) -> usize {
        check_text(path, line.lines()).len()
    }

    #[test]
    fn a_path_of_one_machine_is_found_and_a_longer_one_is_not() {
        assert_eq!(count("a.md", concat!("see /ho", "me/me/x")), 1);
        assert_eq!(count("a.sh", concat!("cp \"/ro", "ot/x\" .")), 1);
        assert_eq!(count("a.sh", concat!("cd target/wo", "rk/x; cd $HOME/wo", "rk/x")), 0);
    }

    #[test]
    fn a_path_built_in_is_found_and_one_asked_for_is_not() {
        assert_eq!(count("a.rs", &format!("Path::new({BUILT_IN}).join(\"x.sql\")")), 1);
        assert_eq!(count("a.rs", "std::env::var_os(\"CARGO_MANIFEST_DIR\")"), 0);
    }

    #[test]
    fn a_private_host_is_found_and_a_public_one_is_not() {
        assert_eq!(count("a.sh", concat!("curl https://10.", "0.0.1/x")), 1);
        assert_eq!(count("a.toml", concat!("url = \"http://proxy", ".internal:80\"")), 1);
        assert_eq!(count("a.md", "https://www.postgresql.org/docs/"), 0);
    }

    #[test]
    fn packages_come_from_the_public_registry() {
        assert_eq!(count("Cargo.lock", &format!("source = \"{PUBLIC_REGISTRY}\"")), 0);
        assert_eq!(count("Cargo.lock", "source = \"git+https://example.org/x\""), 1);
        assert_eq!(count(".cargo/config.toml", "replace-with = \"mirror\""), 1);
        assert_eq!(count("deny.toml", "[sources]"), 0);
    }
}
