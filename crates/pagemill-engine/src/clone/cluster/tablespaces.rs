//! The tablespaces of the source, each with its place in the copy.
//!
//! `pg_tblspc/OID` is a symbolic link to the directory that CREATE TABLESPACE named, in which each version of PostgreSQL
//! has a directory of its own. Where it is a directory (`allow_in_place_tablespaces`), it belongs to the data directory
//! and is copied with it.
//!
//! Invariant: every tablespace has a directory in the copy that no other has, and no mapping is left without a use.

use std::path::{Path, PathBuf};

use pagemill_cluster::Cluster;
use pagemill_format::Oid;
use pagemill_io::{Node, Storage};

use super::error::{CopyError as Error, CopyResult as Result};
use super::mapping::{TablespaceMapping, plain};
use crate::refusal::{CopyRefusal, MappingCause};

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
    check_uses(cluster.storage(), &found, mappings)?;
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

/// True for two names of one directory.
fn is_same(storage: &Storage, one: &Path, other: &Path) -> bool {
    one == other || storage.is_same(one, other)
}

fn not_mapped(cluster: &Cluster, oid: Oid, old: &Path) -> Error {
    // Without names the message still has the number.
    let names = cluster.tablespaces().unwrap_or_default();
    let name = names.get(&oid).map(|name| String::from_utf8_lossy(name).into_owned());
    CopyRefusal::NotMapped { name, oid, directory: old.to_owned() }.into()
}

fn check_uses(
    storage: &Storage,
    found: &[Tablespace],
    mappings: &[TablespaceMapping],
) -> Result<()> {
    for mapping in mappings {
        let is_of = |old: &Path| is_same(storage, old, &mapping.old);
        let mut uses = found.iter().filter(|tablespace| is_of(&tablespace.old));
        if uses.next().is_none() {
            return Err(no_such_tablespace(found, mapping));
        }
        if mappings.iter().filter(|other| is_of(&other.old)).count() > 1 {
            return Err(MappingCause::Twice(mapping.old.clone()).into());
        }
        if mappings.iter().filter(|other| other.new == mapping.new).count() > 1 {
            return Err(MappingCause::SharedTarget(mapping.new.clone()).into());
        }
    }
    Ok(())
}

fn no_such_tablespace(found: &[Tablespace], mapping: &TablespaceMapping) -> Error {
    let there = found.iter().map(|tablespace| tablespace.old.clone()).collect();
    MappingCause::NoTablespace { old: mapping.old.clone(), there }.into()
}
