//! The rule of layers: a crate depends only on crates in rows above its own.
//!
//! The rows are those of `docs/ARCHITECTURE.md`. Crates of tests and chores stand outside the rows:
//! they may look at everything, and nothing that ships may look at them.

use super::{Finding, Tree};
use crate::workspace::{Dependency, Package};

const RULE: &str = "layers";

/// From the bytes down to the command line; a crate imports from the rows above its own.
const ROWS: [&str; 17] = [
    "pagemill-statistics",
    "pagemill-format",
    "pagemill-protocol",
    "pagemill-types",
    "pagemill-redo",
    "pagemill-sys",
    "pagemill-server",
    "pagemill-io",
    "pagemill-remote",
    "pagemill-stream",
    "pagemill-wal",
    "pagemill-cluster",
    "pagemill-engine",
    "pagemill-arrow",
    "pagemill-cli",
    "pagemill-lab",
    "pagemill",
];

/// The simulated disk stands beside this row: what it is built from lies in the rows above it. Its tests
/// may look at everything.
const BESIDE: (&str, &str) = ("pagemill-sim", "pagemill-wal");

/// Of what ships, only a dev-dependency.
const DEV_ONLY: [&str; 5] =
    ["pagemill-testkit", "pagemill-testbucket", "pagemill-sim", "pagemill-torture", "xtask"];

/// The lab shows what the simulated disk makes of an experiment where no real one is available.
const SHOWN: (&str, &str) = ("pagemill-lab", "pagemill-sim");

/// What tests compare with knows no crate that knows PostgreSQL's formats, so that no mistake can be on both sides.
const ORACLE: (&str, &str) = ("pagemill-testkit", "pagemill-server");

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.packages.iter().flat_map(|package| check_package(package, tree)).collect()
}

fn check_package(package: &Package, tree: &Tree) -> Vec<Finding> {
    let manifest = format!("{}/Cargo.toml", package.directory);
    let row = row_of(&package.name);
    if row.is_none() && !DEV_ONLY.contains(&package.name.as_str()) {
        let message =
            format!("crate `{}` has no row; give it one in ROWS, or in DEV_ONLY", package.name);
        return vec![Finding::new(&manifest, 1, RULE, message)];
    }
    let mut findings = Vec::new();
    for dependency in &package.dependencies {
        if let Some(message) = fault(package, row, dependency) {
            let line = line_of(tree, &manifest, &dependency.name);
            findings.push(Finding::new(&manifest, line, RULE, message));
        }
    }
    findings
}

fn row_of(name: &str) -> Option<usize> {
    ROWS.iter().position(|row| *row == name)
}

fn fault(package: &Package, row: Option<usize>, dependency: &Dependency) -> Option<String> {
    let (own, other) = (&package.name, &dependency.name);
    let tests_or_chores = DEV_ONLY.contains(&own.as_str());
    if (own.as_str(), other.as_str()) == SHOWN {
        return None;
    }
    let (oracle, its_only) = ORACLE;
    if own == oracle && other != its_only && row_of(other).is_some() {
        return Some(format!(
            "`{own}` is the oracle and may know `{its_only}` alone; drop `{other}`"
        ));
    }
    if DEV_ONLY.contains(&other.as_str()) {
        return (!dependency.dev_only && !tests_or_chores)
            .then(|| format!("`{own}` ships `{other}`; move it to [dev-dependencies]"));
    }
    let (simulated, beside) = BESIDE;
    let row = if own == simulated && !dependency.dev_only { row_of(beside) } else { row };
    let below = row_of(other)? >= row?;
    below.then(|| {
        format!(
            "`{own}` depends on `{other}`, not in a row above it; move the code up or pass it in"
        )
    })
}

fn line_of(tree: &Tree, manifest: &str, dependency: &str) -> usize {
    let Some(text) = tree.texts.iter().find(|text| text.path == manifest) else { return 1 };
    let is_entry = |line: &str| {
        line.strip_prefix(dependency).is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
    };
    text.content.lines().position(is_entry).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Text;

    fn tree(name: &str, dependencies: &[(&str, bool)]) -> Tree {
        let dependencies = dependencies
            .iter()
            .map(|(name, dev_only)| Dependency { name: (*name).into(), dev_only: *dev_only })
            .collect();
        let package =
            Package { name: name.into(), directory: "c".into(), dependencies, roots: vec![] };
        Tree { packages: vec![package], sources: vec![], texts: vec![] }
    }

    #[test]
    fn a_crate_may_depend_on_rows_above_and_on_strangers() {
        let fine = tree("pagemill-io", &[("pagemill-format", false), ("rustix", false)]);
        assert_eq!(check(&fine), []);
    }

    #[test]
    fn a_dependency_downwards_is_named_with_its_line() {
        let mut bad = tree("pagemill-io", &[("pagemill-engine", false)]);
        let content = "[dependencies]\nrustix = \"1\"\npagemill-engine.workspace = true\n";
        bad.texts.push(Text { path: "c/Cargo.toml".into(), content: content.into() });
        let found = check(&bad);
        assert_eq!((found[0].line, found.len()), (3, 1));
        assert!(found[0].message.contains("not in a row above"));
    }

    #[test]
    fn tests_may_not_reach_down_either() {
        assert_eq!(check(&tree("pagemill-format", &[("pagemill-io", true)])).len(), 1);
    }

    #[test]
    fn the_testkit_is_a_dev_dependency_only() {
        assert_eq!(check(&tree("pagemill", &[("pagemill-testkit", true)])), []);
        assert_eq!(check(&tree("pagemill", &[("pagemill-testkit", false)])).len(), 1);
        assert_eq!(check(&tree("pagemill-torture", &[("pagemill-engine", false)])), []);
    }

    #[test]
    fn the_oracle_shares_no_code_with_what_it_judges() {
        assert_eq!(check(&tree("pagemill-testkit", &[("pagemill-server", false)])), []);
        let found = check(&tree("pagemill-testkit", &[("pagemill-format", true)]));
        assert!(found[0].message.contains("is the oracle"), "{found:?}");
    }

    #[test]
    fn the_simulated_disk_is_built_from_the_stream_and_below_and_tested_with_anything() {
        assert_eq!(check(&tree("pagemill-sim", &[("pagemill-stream", false)])), []);
        assert_eq!(check(&tree("pagemill-sim", &[("pagemill-engine", true)])), []);
        assert_eq!(check(&tree("pagemill-sim", &[("pagemill-engine", false)])).len(), 1);
        assert_eq!(check(&tree("pagemill-engine", &[("pagemill-sim", false)])).len(), 1);
        assert_eq!(check(&tree("pagemill-lab", &[("pagemill-sim", false)])), []);
    }

    #[test]
    fn a_crate_without_a_row_is_refused() {
        assert!(check(&tree("pagemill-new", &[]))[0].message.contains("has no row"));
    }
}
