//! Samples of servers that no registry has, kept in `../samples`: their WAL, and their files before and after it. The
//! script `make.sh` beside them makes them, and says what each directory is.
//!
//! Must hold: a sample is unpacked for each test that asks for it, and holes in its files stay holes: one of its tables
//! has pages that lie 255 MB apart.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::checkout::in_checkout;

/// What the names of samples end with, after the version.
const SUFFIX: &str = ".tar.zst";

/// An unpacked sample.
#[derive(Debug)]
pub struct Sample {
    /// The server's version, minor number and all.
    pub version: String,
    directory: TempDir,
}

impl Sample {
    /// Unpacks every sample that there is.
    ///
    /// # Errors
    /// When there is none, or `tar` is not there.
    pub fn all() -> Result<Vec<Self>> {
        let kept = in_checkout("crates/pagemill-testkit/samples");
        let mut found = Vec::new();
        for entry in kept.read_dir()? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if let Some(version) = name.strip_suffix(SUFFIX) {
                let directory = unpacked(&kept.join(&name)).with_context(|| name.clone())?;
                found.push(Self { version: version.to_owned(), directory });
            }
        }
        ensure!(!found.is_empty(), "no samples in {}", kept.display());
        Ok(found)
    }

    /// The files of relations that the work changes, as they were before, and the control file.
    pub fn before(&self) -> PathBuf {
        self.directory.path().join("before")
    }

    /// The same files, and all WAL, after the server had recovered and was stopped.
    pub fn after(&self) -> PathBuf {
        self.directory.path().join("after")
    }

    /// A data directory as it was when the server went down, with what is needed to read tables.
    pub fn killed(&self) -> PathBuf {
        self.directory.path().join("killed")
    }

    /// The tables of the killed cluster, each with what the recovered server printed by `COPY`.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn expected(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let mut found = Vec::new();
        for entry in self.directory.path().join("expected").read_dir()? {
            let path = entry?.path();
            let table = path.file_stem().context("a table without a name")?;
            found.push((table.to_string_lossy().into_owned(), std::fs::read(&path)?));
        }
        found.sort();
        Ok(found)
    }
}

fn unpacked(archive: &Path) -> Result<TempDir> {
    let directory = tempfile::tempdir()?;
    let plain = zstd::decode_all(File::open(archive)?)?;
    let mut tar = Command::new("tar")
        .args(["-x", "-S", "-f", "-", "--no-same-owner", "-C"])
        .arg(directory.path())
        .stdin(Stdio::piped())
        .spawn()
        .context("starting tar")?;
    // Closed before it is waited for.
    tar.stdin.take().context("the input of tar")?.write_all(&plain)?;
    let status = tar.wait()?;
    ensure!(status.success(), "tar ended with {status}");
    Ok(directory)
}
