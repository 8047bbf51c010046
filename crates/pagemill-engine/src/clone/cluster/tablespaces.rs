//! The tablespaces of the source, each with its place in the copy.
//!
//! `pg_tblspc/OID` is a symbolic link to the directory that CREATE TABLESPACE named, in which each version of PostgreSQL
//! has a directory of its own. Where it is a directory (`allow_in_place_tablespaces`), it belongs to the data directory
//! and is copied with it.
//!
//! Invariant: every tablespace has a directory in the copy that no other has, and no mapping is left without a use.

use std::path::{Path, PathBuf};

use pagemill_cluster::Cluster;
use pagemill_cluster::tablespace_mapping::{TablespaceMapping, check_uses, is_same, plain};
use pagemill_format::Oid;
use pagemill_io::{Node, Storage};

use super::error::{CopyError as Error, CopyResult as Result};
use crate::refusal::CopyRefusal;

/// A tablespace outside of the data directory.
#[derive(Debug, Clone)]
pub(super) struct Tablespace {
    pub(super) oid: Oid,
    /// The name of its link.
    pub(super) link: String,
    /// The directory of the source.
    pub(super) old: PathBuf,
    /// That of the copy.
    pub(super) new: PathBuf,
}

/// The directory of the cluster's version in each tablespace (`TABLESPACE_VERSION_DIRECTORY`).
pub(super) fn version_directory(cluster: &Cluster) -> String {
    format!("PG_{}_{}", cluster.version(), cluster.control().catalog_version)
}

/// Finds the tablespaces and what they are mapped to.
///
/// # Errors
/// When one has no mapping or cannot be found, and when a mapping is of none, or of the directory of another.
pub(super) fn find(cluster: &Cluster, mappings: &[TablespaceMapping]) -> Result<Vec<Tablespace>> {
    let directory = cluster.path().join("pg_tblspc");
    let mut found = Vec::new();
    for entry in cluster.storage().read_dir(&directory)? {
        let Some(name) = entry.name.to_str() else { continue };
        let Ok(oid) = name.parse().map(Oid) else { continue };
        let link = directory.join(name);
        let Node::Link { target } = cluster.storage().node(&link)? else { continue };
        let old = plain(&directory.join(&target));
        check_there(cluster, &link, &old)?;
        let new = mapped(cluster.storage(), &old, mappings)
            .ok_or_else(|| not_mapped(cluster, oid, &old))?;
        found.push(Tablespace { oid, link: name.to_owned(), old, new });
    }
    found.sort_by_key(|tablespace| tablespace.oid.0);
    let there: Vec<&Path> = found.iter().map(|tablespace| &*tablespace.old).collect();
    check_uses(cluster.storage(), &there, mappings)?;
    Ok(found)
}

fn check_there(cluster: &Cluster, link: &Path, old: &Path) -> Result<()> {
    let version = version_directory(cluster);
    if cluster.storage().exists(&old.join(&version))? {
        return Ok(());
    }
    let (link, directory) = (link.to_owned(), old.to_owned());
    Err(CopyRefusal::EmptyTablespace { link, directory, version }.into())
}

fn mapped(storage: &Storage, old: &Path, mappings: &[TablespaceMapping]) -> Option<PathBuf> {
    let found = mappings.iter().find(|mapping| is_same(storage, &mapping.old, old));
    found.map(|mapping| mapping.new.clone())
}

fn not_mapped(cluster: &Cluster, oid: Oid, old: &Path) -> Error {
    let names = cluster.tablespaces().unwrap_or_default(); // default: the message still has the number
    let name = names.get(&oid).map(|name| String::from_utf8_lossy(name).into_owned());
    CopyRefusal::NotMapped { name, oid, directory: old.to_owned() }.into()
}
