//! Where files of results may be written: not into a cluster, and not over what is being read.
//!
//! Names say little: a symbolic link, a hard link or a second mount leads to the same file by another one. So
//! directories are compared by device and inode, from the place of the file up to the root, and files too.
//!
//! Invariant: nothing is made or changed here.

use std::path::{Path, PathBuf};

use anyhow::Result;
use pagemill_cluster::Cluster;
use pagemill_io::{HostFiles, Identity, Node, Storage, is_url};

use crate::failure::UsageError;

/// Refuses a place that lies in this cluster, its tablespaces included.
///
/// # Errors
/// Names the flag and the directory.
pub fn refuse_in_cluster(flag: &str, path: &Path, cluster: &Cluster) -> Result<()> {
    let (data_directory, storage) = (cluster.path(), cluster.storage());
    let entries = |directory: &Path| {
        let found = storage.read_dir(directory).unwrap_or_default();
        found.into_iter().map(|entry| directory.join(entry.name)).collect::<Vec<_>>()
    };
    // What is moved elsewhere and linked, as pg_wal, belongs to the cluster as well.
    let links = entries(data_directory).into_iter().filter(|path| is_link(storage, path));
    let spaces = entries(&data_directory.join("pg_tblspc")).into_iter().flat_map(|s| entries(&s));
    let all = std::iter::once(data_directory.to_owned()).chain(links).chain(spaces);
    let is_dir = |path: &PathBuf| storage.metadata(path).is_ok_and(|found| found.is_dir);
    let directories = all.filter(is_dir);
    let of_version = |path: &PathBuf| {
        // Beside the directories of servers there may be anything in the place of a tablespace.
        !path.starts_with(data_directory.join("pg_tblspc")) || is_of_tablespace(path)
    };
    for directory in directories.filter(of_version) {
        // A cluster that is not of this machine holds no place where results could go.
        let Ok(own) = storage.identity(&directory) else { continue };
        if directories_above(path).any(|(_, above)| above == own) {
            return Err(within(flag, path, &directory));
        }
    }
    refuse_in_any_cluster(flag, path)
}

/// Refuses a place that looks like part of any cluster: below a directory with `PG_VERSION` and `global` in it, or below
/// that of a tablespace; and one on an object store, where nothing is written.
///
/// # Errors
/// As [`refuse_in_cluster`].
pub fn refuse_in_any_cluster(flag: &str, path: &Path) -> Result<()> {
    if is_url(path) {
        let reason = "object stores are only read: name a place on this machine";
        return Err(UsageError(format!("{flag} {}: {reason}", path.display())).into());
    }
    let host = HostFiles::real();
    let is_cluster = |directory: &Path| {
        let is_there = |name: &str| host.is_there(&directory.join(name));
        is_there("PG_VERSION") && is_there("global/pg_control")
    };
    match directories_above(path).find(|(path, _)| is_cluster(path) || is_of_tablespace(path)) {
        Some((directory, _)) => Err(within(flag, path, &directory)),
        None => Ok(()),
    }
}

fn is_link(storage: &Storage, path: &Path) -> bool {
    matches!(storage.node(path), Ok(Node::Link { .. }))
}

fn within(flag: &str, path: &Path, directory: &Path) -> anyhow::Error {
    UsageError(format!(
        "{flag} {} lies within {}, where only the server may write: name another place",
        path.display(),
        directory.display()
    ))
    .into()
}

/// True for `PG_15_202209061`, as each version calls its directory in a tablespace.
fn is_of_tablespace(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let mut parts = name.split('_');
    let mut numbers = |least: usize| {
        let part = parts.next().unwrap_or_default();
        part.len() >= least && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    name.starts_with("PG_") && !numbers(2) && numbers(2) && numbers(9)
}

/// What there is of a path, links followed, and the directories above it, with their identities.
fn directories_above(path: &Path) -> impl Iterator<Item = (PathBuf, Identity)> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let host = HostFiles::real();
    let real = absolute.ancestors().find_map(|part| host.resolve(part).ok()).unwrap_or_default();
    let above: Vec<_> = real.ancestors().map(Path::to_owned).collect();
    above.into_iter().filter_map(move |path| {
        let found = host.identity(&path).ok()?;
        Some((path, found))
    })
}

/// Refuses a file that is read, by whatever name.
///
/// # Errors
/// Names both.
pub fn refuse_input(flag: &str, path: &Path, inputs: &[PathBuf]) -> Result<()> {
    let host = HostFiles::real();
    let own = host.identity(path).ok();
    let is_same = |input: &&PathBuf| {
        let input = match input.as_os_str() == "-" {
            true => Path::new("/proc/self/fd/0"),
            false => input,
        };
        own.is_some() && host.identity(input).ok() == own && is_file(&host, path)
    };
    match inputs.iter().find(is_same) {
        None => Ok(()),
        Some(input) => {
            let input = if input.as_os_str() == "-" {
                "standard input".into()
            } else {
                input.display().to_string()
            };
            let reason =
                format!("{flag} {} is {input}, which is read: name another file", path.display());
            Err(UsageError(reason).into())
        }
    }
}

fn is_file(host: &HostFiles, path: &Path) -> bool {
    matches!(host.node(path), Ok(Node::File { .. }))
}

/// Refuses a file that is there, unless `force`; a device or a pipe takes what it is given.
///
/// # Errors
/// Names the flags.
pub fn refuse_existing(flag: &str, path: &Path, force: bool) -> Result<()> {
    let found = HostFiles::real().node(path);
    let is_file = matches!(found, Ok(Node::File { .. }));
    match found {
        Ok(found) if found != Node::Stream && !(force && is_file) => {
            let remedy =
                if is_file { "name another, or replace it with --force" } else { "name a file" };
            Err(UsageError(format!("{flag} {}: it is there already: {remedy}", path.display()))
                .into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_tablespaces_are_known_by_their_names() {
        for name in ["PG_15_202209061", "/x/PG_18_202506291"] {
            assert!(is_of_tablespace(Path::new(name)), "{name}");
        }
        for name in ["PG_VERSION", "PG_15", "PG_15_x", "pg_wal", "PG_15_12"] {
            assert!(!is_of_tablespace(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn a_file_below_a_cluster_is_refused_by_any_name() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        std::fs::create_dir_all(data.join("global")).unwrap();
        for name in ["PG_VERSION", "global/pg_control"] {
            std::fs::write(data.join(name), "").unwrap();
        }
        std::os::unix::fs::symlink(&data, dir.path().join("link")).unwrap();
        for place in
            ["data/x", "link/x", "link/base/deep/x", "data/../data/global/x", "link/PG_VERSION"]
        {
            assert!(refuse_in_any_cluster("-o", &dir.path().join(place)).is_err(), "{place}");
        }
        refuse_in_any_cluster("-o", &dir.path().join("x")).unwrap();
    }

    #[test]
    fn nothing_is_written_to_an_object_store() {
        let refused = refuse_in_any_cluster("-o", Path::new("s3://bucket/out")).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "-o s3://bucket/out: object stores are only read: name a place on this machine"
        );
        refuse_in_any_cluster("-o", Path::new("./s3:")).unwrap();
    }
}
