//! The floor under a count: mapping the same files and touching each page, by a program of `pagemill-sys`.
//!
//! Its own start is left out, which is to its advantage. Invariant: it runs in the same turns, on the same core and over
//! the same files as the count that is held against it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{output_of, shown};
use crate::workspace;

/// The program, built.
pub(super) struct Floor(PathBuf);

impl Floor {
    /// A release build of the program.
    pub(super) fn build(root: &Path) -> Result<Self> {
        eprintln!("building map_floor, release ...");
        let mut command = workspace::cargo();
        command.args(["build", "--release", "--quiet", "-p", "pagemill-sys"]);
        command.args(["--example", "map_floor"]).current_dir(root);
        if !command.status()?.success() {
            bail!("failed: {}", shown(&command));
        }
        Ok(Self(workspace::target_directory(root).join("release/examples/map_floor")))
    }

    /// Milliseconds over these files; on this core, or on those of this process.
    pub(super) fn milliseconds(&self, files: &[PathBuf], core: Option<&str>) -> Result<f64> {
        let mut command = match core {
            Some(_) => Command::new("taskset"),
            None => Command::new(&self.0),
        };
        if let Some(core) = core {
            command.args(["-c", core]).arg(&self.0);
        }
        let printed = output_of(command.args(files))?;
        printed.trim().parse().with_context(|| format!("map_floor printed {printed}"))
    }
}

/// The segments of a fork, from the name of its first.
pub(super) fn segments(first: &Path) -> Vec<PathBuf> {
    let further = (1..).map(|number| PathBuf::from(format!("{}.{number}", first.display())));
    std::iter::once(first.to_owned()).chain(further).take_while(|path| path.exists()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_end_where_one_is_missing() {
        let directory = tempfile::tempdir().unwrap();
        let first = directory.path().join("16384");
        for name in ["16384", "16384.1", "16384.3", "16384_vm"] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        assert_eq!(segments(&first), [first.clone(), directory.path().join("16384.1")]);
        assert!(segments(&directory.path().join("1")).is_empty());
    }
}
