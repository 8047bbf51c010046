//! [`FileTree`]: names of files, directories and links that lie on no disk, looked up as the operating system looks them up.
//!
//! What a file is, its owner knows: bytes in memory, a part of an archive.
//!
//! Invariants: paths are absolute, and directories are there because something lies below them or they were put there;
//! links are followed as the operating system follows them, and never lead out of the tree.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

use crate::seam::{DirEntry, Metadata, Node};

/// Links followed in one path at most, as in the kernel.
const MOST_LINKS: usize = 40;

/// Files by absolute path.
#[derive(Debug, Clone)]
pub(crate) struct FileTree<T> {
    entries: BTreeMap<PathBuf, TreeEntry<T>>,
}

/// What a path stands for.
#[derive(Debug, Clone)]
pub(crate) enum TreeEntry<T> {
    File(T),
    Directory,
    Link(PathBuf),
}

impl<T> Default for FileTree<T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new() }
    }
}

impl<T> FileTree<T> {
    /// True when something was put there, links not followed.
    pub(crate) fn contains(&self, path: &Path) -> bool {
        self.entries.contains_key(path)
    }

    /// What was put there, links not followed.
    pub(crate) fn entry(&self, path: &Path) -> Option<&TreeEntry<T>> {
        self.entries.get(path)
    }

    /// Puts something there, in place of what was.
    pub(crate) fn insert(&mut self, path: &Path, entry: TreeEntry<T>) {
        for above in path.ancestors().skip(1) {
            self.entries.entry(above.to_owned()).or_insert(TreeEntry::Directory);
        }
        self.entries.insert(path.to_owned(), entry);
    }

    /// The file that a path leads to.
    pub(crate) fn file(&self, path: &Path) -> io::Result<&T> {
        match self.find(path)?.1 {
            TreeEntry::File(file) => Ok(file),
            TreeEntry::Directory | TreeEntry::Link(_) => Err(Errno::ISDIR.into()),
        }
    }

    /// What a directory holds; `len` tells a file's size in bytes.
    pub(crate) fn read_dir(
        &self,
        path: &Path,
        len: impl Fn(&T) -> u64,
    ) -> io::Result<Vec<DirEntry>> {
        let (directory, TreeEntry::Directory) = self.find(path)? else {
            return Err(Errno::NOTDIR.into());
        };
        let below = self.entries.range(directory.clone()..);
        let below = below.take_while(|(path, _)| path.starts_with(&directory));
        let inside = below.filter(|(path, _)| path.parent() == Some(&directory));
        let entry = |(path, entry): (&PathBuf, &TreeEntry<T>)| {
            let metadata = match entry {
                TreeEntry::Link(_) => None,
                entry => Some(metadata_of(entry, &len)),
            };
            DirEntry { name: path.file_name().unwrap_or_default().to_owned(), metadata }
        };
        Ok(inside.map(entry).collect())
    }

    /// Size and type of what a path leads to.
    pub(crate) fn metadata(&self, path: &Path, len: impl Fn(&T) -> u64) -> io::Result<Metadata> {
        Ok(metadata_of(self.find(path)?.1, &len))
    }

    /// What a path itself stands for.
    pub(crate) fn node(&self, path: &Path, len: impl Fn(&T) -> u64) -> io::Result<Node> {
        let within = match (path.parent(), path.file_name()) {
            (Some(above), Some(name)) => match self.find(above)? {
                (directory, TreeEntry::Directory) => directory.join(name),
                _ => return Err(Errno::NOTDIR.into()),
            },
            _ => self.find(path)?.0,
        };
        Ok(match self.entries.get(&within).ok_or(Errno::NOENT)? {
            TreeEntry::File(file) => Node::File { len: len(file) },
            TreeEntry::Directory => Node::Directory,
            TreeEntry::Link(target) => Node::Link { target: target.clone() },
        })
    }

    /// The path without links, `.` and `..` in it.
    pub(crate) fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(self.find(path)?.0)
    }

    /// What a path leads to, and its name without links.
    fn find(&self, path: &Path) -> io::Result<(PathBuf, &TreeEntry<T>)> {
        let mut real = PathBuf::new();
        let mut left: Vec<OsString> = names(path);
        let mut links = 0;
        let mut found = &TreeEntry::Directory;
        while let Some(name) = left.pop() {
            if !matches!(found, TreeEntry::Directory) {
                return Err(Errno::NOTDIR.into());
            }
            if name == ".." {
                real.pop();
                continue;
            }
            real.push(&name);
            found = self.entries.get(&real).ok_or(Errno::NOENT)?;
            if let TreeEntry::Link(target) = found {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Errno::LOOP.into());
                }
                real.pop();
                if target.is_absolute() {
                    real.clear();
                }
                left.extend(names(target));
                found = &TreeEntry::Directory;
            }
        }
        Ok((real, found))
    }
}

fn metadata_of<T>(entry: &TreeEntry<T>, len: &impl Fn(&T) -> u64) -> Metadata {
    match entry {
        TreeEntry::File(file) => Metadata { len: len(file), is_dir: false },
        TreeEntry::Directory | TreeEntry::Link(_) => Metadata { len: 0, is_dir: true },
    }
}

/// The names in a path, the last one first; `/` is the first name of an absolute one.
fn names(path: &Path) -> Vec<OsString> {
    let named = path.components().filter(|part| *part != Component::CurDir);
    let mut names: Vec<_> = named.map(|part| part.as_os_str().to_owned()).collect();
    names.reverse();
    names
}
