//! The workspace as the chores see it: its root, its packages and its tracked files.
//!
//! Packages come from `cargo metadata --no-deps`, which needs no network and understands every
//! spelling of a dependency. Files come from `git ls-files`, so build output never counts; without
//! git the tree is walked, leaving `target` and dot-directories out.
//! Invariant: every path kept here is relative to the root, with `/` between its parts.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// One package of the workspace.
#[derive(Debug, Clone)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Directory of the package, relative to the root.
    pub(crate) directory: String,
    pub(crate) dependencies: Vec<Dependency>,
    /// Root files of its library, binaries and build script, relative to the root.
    pub(crate) roots: Vec<String>,
}

/// One entry of a package's dependency tables.
#[derive(Debug, Clone)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) dev_only: bool,
}

/// The root of the checkout that cargo runs this program in.
pub(crate) fn root() -> PathBuf {
    pagemill_testkit::in_checkout("")
}

/// The cargo that runs this program, without what it told about this package. There are build scripts that have all that depends on them
/// built anew when that changes, as it does from one checkout to the next and from this program to a shell.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        if is_of_package(&name) {
            command.env_remove(name);
        }
    }
    command
}

/// Whether cargo sets a variable for the package whose program it runs.
fn is_of_package(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b"CARGO_MANIFEST_") || name.starts_with(b"CARGO_PKG_")
}

/// Where cargo puts what it builds.
pub(crate) fn target_directory(root: &Path) -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => root.join(directory),
        None => root.join("target"),
    }
}

/// Every package of the workspace.
pub(crate) fn packages(root: &Path) -> Result<Vec<Package>> {
    let output = cargo()
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()
        .context("could not start cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    let base = metadata["workspace_root"].as_str().context("no workspace_root")?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    packages.iter().map(|package| read_package(package, Path::new(base))).collect()
}

fn read_package(package: &Value, base: &Path) -> Result<Package> {
    let manifest = package["manifest_path"].as_str().context("no manifest_path")?;
    let directory = Path::new(manifest).parent().unwrap_or(base);
    let targets = package["targets"].as_array().into_iter().flatten();
    Ok(Package {
        name: package["name"].as_str().context("a package without a name")?.to_owned(),
        directory: relative(directory, base),
        dependencies: package["dependencies"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(read_dependency)
            .collect(),
        roots: targets
            .filter(|target| is_product(target))
            .filter_map(|target| target["src_path"].as_str())
            .map(|path| relative(Path::new(path), base))
            .collect(),
    })
}

fn read_dependency(value: &Value) -> Option<Dependency> {
    let name = value["name"].as_str()?.to_owned();
    Some(Dependency { name, dev_only: value["kind"].as_str() == Some("dev") })
}

/// Whether a target is shipped code, and not a test, an example or a benchmark.
fn is_product(target: &Value) -> bool {
    let kinds = target["kind"].as_array().into_iter().flatten().filter_map(Value::as_str);
    !kinds.into_iter().any(|kind| matches!(kind, "test" | "example" | "bench"))
}

fn relative(path: &Path, base: &Path) -> String {
    path.strip_prefix(base).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

/// Every file of the project that is tracked, or would be with the next `git add`.
pub(crate) fn files(root: &Path) -> Result<Vec<String>> {
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output();
    let mut names: Vec<String> = match listing {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout)
            .split('\0')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect(),
        _ => walk(root)?,
    };
    names.retain(|name| root.join(name).is_file());
    names.sort();
    names.dedup();
    Ok(names)
}

fn walk(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut waiting = vec![root.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "target" && (!name.starts_with('.') || name == ".ci") {
                    waiting.push(path);
                }
            } else {
                found.push(relative(&path, root));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_is_not_told_of_the_package_that_starts_it() {
        let command = cargo();
        let mut removed = command.get_envs().filter(|(_, value)| value.is_none());
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
        assert!(removed.any(|(name, _)| name == "CARGO_MANIFEST_DIR"));
        assert!(!is_of_package(OsStr::new("CARGO_TARGET_DIR")));
    }

    #[test]
    fn the_workspace_lists_this_package_and_its_root() {
        let packages = packages(&root()).unwrap();
        let own = packages.iter().find(|package| package.name == "xtask").unwrap();
        assert_eq!(own.directory, "xtask");
        assert_eq!(own.roots, ["xtask/src/main.rs"]);
        assert!(own.dependencies.iter().any(|found| found.name == "anyhow" && !found.dev_only));
        let stream = packages.iter().find(|package| package.name == "pagemill-stream").unwrap();
        assert!(stream.dependencies.iter().any(|found| found.name == "tempfile" && found.dev_only));
    }

    #[test]
    fn the_walk_finds_files_and_leaves_build_output_out() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["target/x.rs", "src/a.rs", ".git/config", ".ci/run"] {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let mut found = walk(directory.path()).unwrap();
        found.sort();
        assert_eq!(found, [".ci/run", "src/a.rs"]);
    }
}
