//! The tablespaces of the source, each with its place in the copy.
//!
//! `pg_tblspc/OID` is a symbolic link to the directory that CREATE TABLESPACE named, in which each version of PostgreSQL
//! has a directory of its own. Where it is a directory (`allow_in_place_tablespaces`), it belongs to the data directory
//! and is copied with it.
//!
//! Invariant: every tablespace has a directory in the copy that no other has, and no mapping is left without a use.

use std::path::{Path, PathBuf};

use pagemill_cluster::{Cluster, Error, Result};
use pagemill_format::Oid;
use pagemill_io::Node;

use super::mapping::{TablespaceMapping, escaped, plain};

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
        let new = mapped(&old, mappings).ok_or_else(|| not_mapped(cluster, oid, &old))?;
        found.push(Tablespace { oid, link: name.to_owned(), old, new });
    }
    found.sort_by_key(|tablespace| tablespace.oid.0);
    check_uses(&found, mappings)?;
    Ok(found)
}

fn check_there(cluster: &Cluster, link: &Path, old: &Path) -> Result<()> {
    let version = version_directory(cluster);
    if cluster.storage().exists(&old.join(&version))? {
        return Ok(());
    }
    Err(Error::refused(format!(
        "{}: leads to {}, where there is no {version}: mount or restore it, or correct the link",
        link.display(),
        old.display()
    )))
}

fn mapped(old: &Path, mappings: &[TablespaceMapping]) -> Option<PathBuf> {
    let found = mappings.iter().find(|mapping| is_same(&mapping.old, old));
    found.map(|mapping| mapping.new.clone())
}

/// True for two names of one directory.
fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    one == other || real(one).is_some_and(|one| Some(one) == real(other))
}

fn not_mapped(cluster: &Cluster, oid: Oid, old: &Path) -> Error {
    // Without names the message still has the number.
    let names = cluster.tablespaces().unwrap_or_default();
    let name = names.get(&oid).map(|name| format!("\"{}\" ", String::from_utf8_lossy(name)));
    Error::refused(format!(
        "tablespace {}(OID {oid}) lies in {}: name a directory for its copy with --tablespace-mapping {}=NEWDIR",
        name.unwrap_or_default(),
        old.display(),
        escaped(old)
    ))
}

fn check_uses(found: &[Tablespace], mappings: &[TablespaceMapping]) -> Result<()> {
    for mapping in mappings {
        let mut uses = found.iter().filter(|tablespace| is_same(&tablespace.old, &mapping.old));
        if uses.next().is_none() {
            return Err(no_such_tablespace(found, mapping));
        }
        if mappings.iter().filter(|other| is_same(&other.old, &mapping.old)).count() > 1 {
            let old = mapping.old.display();
            return Err(Error::refused(format!("--tablespace-mapping: {old} is mapped twice")));
        }
        if mappings.iter().filter(|other| other.new == mapping.new).count() > 1 {
            let new = mapping.new.display();
            return Err(Error::refused(format!(
                "--tablespace-mapping: {new} is named for two tablespaces: each needs a directory of its own"
            )));
        }
    }
    Ok(())
}

fn no_such_tablespace(found: &[Tablespace], mapping: &TablespaceMapping) -> Error {
    let there: Vec<_> =
        found.iter().map(|tablespace| tablespace.old.display().to_string()).collect();
    let there = match there.as_slice() {
        [] => "which has none outside of its data directory".to_owned(),
        there => format!("which has {}", there.join(", ")),
    };
    let old = mapping.old.display();
    Error::refused(format!("--tablespace-mapping: {old} is no tablespace of this cluster, {there}"))
}
