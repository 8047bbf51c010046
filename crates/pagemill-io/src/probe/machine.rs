//! What the kernel tells in files: `/proc` and `/sys`, read whole.
//!
//! Why not through `Storage`: these are no files of blocks, their sizes say nothing, and asking them
//! is not work that belongs into the counters of a command.
//!
//! Invariant: a file that is absent or unreadable is None. A tree elsewhere can stand in for the real
//! one, so that devices no test machine has can be described.

use std::path::{Path, PathBuf};

/// The roots of `/proc` and `/sys`.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    root: PathBuf,
}

impl Machine {
    /// The machine this runs on.
    pub(super) fn this() -> Self {
        Self { root: PathBuf::from("/") }
    }

    /// A path below `/proc`.
    pub(super) fn proc(&self, path: &str) -> PathBuf {
        self.root.join("proc").join(path)
    }

    /// A path below `/sys`.
    pub(super) fn sys(&self, path: &str) -> PathBuf {
        self.root.join("sys").join(path)
    }

    /// The contents of a file, bytes that are no UTF-8 replaced.
    pub(super) fn text(&self, path: &Path) -> Option<String> {
        let bytes = std::fs::read(path).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The contents of a file of one line, without the line's end.
    pub(super) fn word(&self, path: &Path) -> Option<String> {
        Some(self.text(path)?.trim().to_owned())
    }

    /// The number that a file holds.
    pub(super) fn number(&self, path: &Path) -> Option<u64> {
        self.word(path)?.parse().ok()
    }

    /// What a directory holds, as paths, in the order of their names.
    pub(super) fn list(&self, path: &Path) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths
    }

    /// The path without symbolic links, if it exists.
    pub(super) fn resolved(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok()
    }
}

/// A tree of files that stands in for a machine's.
#[cfg(test)]
pub(super) struct PretendedMachine {
    dir: tempfile::TempDir,
}

#[cfg(test)]
impl PretendedMachine {
    pub(super) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(super) fn machine(&self) -> Machine {
        Machine { root: self.dir.path().to_path_buf() }
    }

    pub(super) fn write(&self, path: &str, contents: &str) {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{contents}\n")).unwrap();
    }

    pub(super) fn link(&self, path: &str, to: &str) {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(self.dir.path().join(to), path).unwrap();
    }

    /// A block device with these files in its directory.
    pub(super) fn block(&self, name: &str, number: &str, files: &[(&str, &str)]) {
        let directory = format!("sys/devices/{name}");
        self.write(&format!("{directory}/dev"), number);
        for (file, contents) in files {
            self.write(&format!("{directory}/{file}"), contents);
        }
        self.link(&format!("sys/dev/block/{number}"), &directory);
        self.link(&format!("sys/class/block/{name}"), &directory);
    }
}
