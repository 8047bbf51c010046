//! The databases that one statement can name: those of the session's cluster, and those of clusters that were given names.
//!
//! A column of another database has its type here if that type is the same in both: a built-in one, neither enum nor domain nor row, whose
//! values name no objects. A text has the collation here that is the same as its own. All other types stay in their database:
//! such a column is there and cannot be used ([`OF_ANOTHER_DATABASE`]); and texts of a collation that is not here are compared, but
//! not ordered ([`COLLATION_OF_ANOTHER_DATABASE`]).
//!
//! Invariant: catalogs are read when a statement names their database, once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pagemill_cluster::Cluster;
use pagemill_format::{Oid, PgVersion};
use pagemill_types::builtin::{BuiltinType, Print, oid};
use pagemill_types::encoding::encoding_name;

use crate::catalog::{Catalog, CollationRow, TypeRow};
use crate::error::{Result, SqlState, StatementError, unsupported};
use crate::types::{COLLATION_OF_ANOTHER_DATABASE, DEFAULT_COLLATION, OF_ANOTHER_DATABASE, PgType};

/// OIDs below are assigned by hand and mean the same in all databases and versions.
///
/// Source: `FirstGenbkiObjectId` in `src/include/access/transam.h`, PostgreSQL 18.
const FIRST_GENERATED: Oid = Oid(10_000);
/// `aclitem` and its arrays name roles.
const ACLITEM: Oid = Oid(1033);

/// The name of a cluster, where it has one, and of a database.
type DatabaseKey = (Option<String>, String);

/// Clusters by their names, and the databases that were opened.
pub(crate) struct Databases {
    own: Arc<Catalog>,
    clusters: Arc<[(String, Cluster)]>,
    opened: Mutex<HashMap<DatabaseKey, Arc<Catalog>>>,
}

impl Databases {
    pub(crate) fn new(own: &Arc<Catalog>, clusters: Arc<[(String, Cluster)]>) -> Self {
        Self { own: own.clone(), clusters, opened: Mutex::default() }
    }

    /// The clusters that have names.
    pub(crate) fn clusters(&self) -> &Arc<[(String, Cluster)]> {
        &self.clusters
    }

    /// The catalogs of a database of a cluster; without a name, of the session's.
    pub(crate) fn find(&self, cluster: Option<&str>, name: &str) -> Result<Arc<Catalog>> {
        if cluster.is_none() && *self.own.database().row().name == *name.as_bytes() {
            return Ok(self.own.clone());
        }
        if self.own.role().is_some() {
            return unsupported("another database, for a role that is no superuser,");
        }
        let key = (cluster.map(str::to_owned), name.to_owned());
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = opened.get(&key) {
            return Ok(found.clone());
        }
        let database = self.cluster(cluster)?.database(name)?;
        let (own, other) = (self.own.database().row().encoding, database.row().encoding);
        if own != other {
            let shown = |of| encoding_name(of).unwrap_or("an unknown encoding");
            return unsupported(format!(
                "a database in {} beside one in {}",
                shown(other),
                shown(own)
            ));
        }
        let found = Arc::new(Catalog::read(&database)?.with_text_order(self.own.text_order()));
        opened.insert(key, found.clone());
        Ok(found)
    }

    fn cluster(&self, name: Option<&str>) -> Result<&Cluster> {
        let Some(name) = name else { return Ok(self.own.database().cluster()) };
        let found = self.clusters.iter().find(|(of, _)| of == name);
        found.map(|(_, cluster)| cluster).ok_or_else(|| {
            let message = format!("no cluster is named \"{name}\"");
            let error = StatementError::new(SqlState::UNDEFINED_OBJECT, message);
            error
                .with_hint(format!("--cluster {name}=DIR gives a data directory that name."))
                .into()
        })
    }
}

/// A type of another database as one of this.
pub(crate) fn type_here(own: &Catalog, other: &Catalog, ty: PgType) -> PgType {
    if !is_everywhere(own, other, ty.oid) {
        return PgType { oid: OF_ANOTHER_DATABASE, modifier: -1, collation: Oid(0) };
    }
    let element = own.type_row(ty.oid).map_or(Oid(0), |row| row.element);
    let is_array = matches!(element, oid::TEXT | oid::VARCHAR | oid::BPCHAR);
    // Elements are compared in the database's collation.
    let collation = if is_array { DEFAULT_COLLATION } else { ty.collation };
    if collation == Oid(0) {
        return ty;
    }
    match collation_here(own, other, collation) {
        Some(DEFAULT_COLLATION) if is_array => ty,
        Some(collation) if !is_array => PgType { collation, ..ty },
        _ => PgType { oid: OF_ANOTHER_DATABASE, modifier: -1, collation: Oid(0) },
    }
}

/// True for a type that is the same in all databases.
fn is_everywhere(own: &Catalog, other: &Catalog, of: Oid) -> bool {
    let (Some(here), Some(there)) = (own.type_row(of), other.type_row(of)) else { return false };
    let is_plain =
        |row: &TypeRow| row.oid.0 < FIRST_GENERATED.0 && matches!(row.kind, b'b' | b'r' | b'm');
    let names_objects = |of: Oid| {
        let print = BuiltinType::by_oid(of).map(|found| found.print_in(PgVersion::V18));
        of == ACLITEM || matches!(print, Some(Print::Name(_))) && of != oid::OID
    };
    is_plain(here) && here.name == there.name && !names_objects(of) && !names_objects(here.element)
}

/// The collation here that is another database's; `None` for one that holds different texts for equal and is not here.
fn collation_here(own: &Catalog, other: &Catalog, collation: Oid) -> Option<Oid> {
    let row = other.collation(collation)?;
    let is_same = |here: &&CollationRow| {
        let plain = |row: &CollationRow| CollationRow {
            oid: Oid(0),
            name: String::new(),
            encoding: -1,
            ..row.clone()
        };
        plain(here) == plain(row)
    };
    if own.collation(collation).as_ref().is_some_and(is_same) {
        return Some(collation);
    }
    match own.collations().filter(is_same).map(|row| row.oid.0).min() {
        Some(found) => Some(Oid(found)),
        None => row.is_deterministic.then_some(COLLATION_OF_ANOTHER_DATABASE),
    }
}
