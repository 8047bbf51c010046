//! `cargo xtask torture`: loads, and databases being made and dropped, cut short, killed and failed at every call,
//! judged by the reader and by servers.
//!
//! The work is that of the crate `pagemill-torture`, which is built here with the program that it kills; here the account
//! becomes an artefact with its environment.
//! Invariant: a kept account is never overwritten, and one case (`--call`) keeps none.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::bench::environment;
use crate::workspace;

/// Where clusters are copied to.
const MEMORY: &str = "/dev/shm";

/// Builds, runs, and keeps the account; false when a case failed.
pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    let root = workspace::root();
    build(&root)?;
    let built = workspace::target_directory(&root).join("debug");
    let mut torture = Command::new(built.join("pagemill-torture"));
    torture.arg("--program").arg(built.join("pagemill")).args(arguments);
    let given = |option: &str| {
        let mut words = arguments.iter().map(|argument| argument.split('=').next());
        words.any(|word| word == Some(option))
    };
    if ["--call", "--out", "--help", "-h"].into_iter().any(given) {
        return Ok(torture.status()?.success());
    }
    let account = tempfile::NamedTempFile::new()?;
    let done = torture.arg("--out").arg(account.path()).status()?.success();
    let text = std::fs::read_to_string(account.path())?;
    if text.is_empty() {
        return Ok(false);
    }
    println!("kept: {}", keep(&root, arguments, &text)?.display());
    Ok(done)
}

/// With the profile of tests, whose checks for overflow are on.
fn build(root: &Path) -> Result<()> {
    let mut command = workspace::cargo();
    command.args([
        "build",
        "--profile",
        "test",
        "--quiet",
        "-p",
        "pagemill",
        "-p",
        "pagemill-torture",
    ]);
    let status = command.current_dir(root).status().context("starting cargo")?;
    if !status.success() {
        bail!("the build failed");
    }
    Ok(())
}

fn keep(root: &Path, arguments: &[String], account: &str) -> Result<PathBuf> {
    let environment = environment::of_directory(Path::new(MEMORY), None, None, root);
    let date = environment.iter().find(|(name, _)| *name == "date");
    let day = date.and_then(|(_, date)| date.get(..10)).unwrap_or("undated");
    let path = free_path(&root.join("runs"), day);
    let mut page = format!(
        "# Torture of `load`, `clone` and `drop`\n\n`cargo xtask torture {}`. A row counts cases and what was found in \
         them: `Old` means that all is as before the change, `New` that it has taken place, `InProduction` that a \
         server's recovery decides; \"reader\" is Pagemill's own, \"server\" PostgreSQL with amcheck, data checksums, a \
         crash of its own, and the next change.\n\n{account}\n## Environment\n\n",
        arguments.join(" ")
    );
    for (name, value) in &environment {
        page += &format!("- {name}: {value}\n");
    }
    std::fs::write(&path, page).with_context(|| path.display().to_string())?;
    Ok(path)
}

fn free_path(directory: &Path, day: &str) -> PathBuf {
    let mut path = directory.join(format!("{day}-torture.md"));
    let mut number = 2;
    while path.exists() {
        path = directory.join(format!("{day}-torture-{number}.md"));
        number += 1;
    }
    path
}
