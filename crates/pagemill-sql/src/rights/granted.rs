//! What is granted in one database, and whether it gives a role a right: the one door to all lists of grants.
//!
//! Invariant: a catalog is read once, when something of it is first asked for; of an object that there is not, nothing is said.
//!
//! Source: `object_aclmask`, `pg_class_aclmask_ext`, `pg_namespace_aclmask`, `pg_type_aclmask` and `pg_attribute_aclmask_ext` in
//! `src/backend/catalog/aclchk.c`, `IsSystemClass` in `src/backend/catalog/catalog.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pagemill_format::Oid;

use super::acl::{Wanted, bits, gives};
use super::members::Members;
use super::objects::{
    self, DATABASES, Kind, LARGE_OBJECTS, Objects, RelationRights, Relations, SCHEMAS, TYPES,
};
use super::policies::Policies;
use crate::catalog::Catalog;
use crate::error::{Result, SqlState, fail};

/// The version in which superusers are looked at before the object is.
const ALL_OF_NOTHING: u32 = 17;

/// What was read of it.
#[derive(Default)]
pub(crate) struct Granted {
    members: OnceLock<Members>,
    relations: OnceLock<Relations>,
    pub(super) policies: OnceLock<Policies>,
    kinds: Mutex<HashMap<&'static str, Arc<Objects>>>,
}

/// What a cell has, read if it has nothing.
pub(super) fn read_once<T>(cell: &OnceLock<T>, read: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(read) = cell.get() {
        return Ok(read);
    }
    let read = read()?;
    Ok(cell.get_or_init(|| read))
}

impl Catalog {
    /// The roles of the cluster.
    ///
    /// # Errors
    /// When a catalog cannot be read.
    pub(crate) fn members(&self) -> Result<&Members> {
        read_once(&self.granted().members, || {
            let own = self.database().row().oid;
            match self.objects(&DATABASES)?.owned.get(&own) {
                Some(owned) => Members::read(self, owned.owner),
                None => fail(SqlState::DATA_CORRUPTED, format!("database {} is missing", own.0)),
            }
        })
    }

    fn relations(&self) -> Result<&Relations> {
        read_once(&self.granted().relations, || objects::relations(self))
    }

    /// What rights on a relation depend on.
    pub(crate) fn relation_rights(&self, relation: Oid) -> Result<Option<&RelationRights>> {
        Ok(self.relations()?.get(&relation))
    }

    /// The objects of a kind.
    ///
    /// # Errors
    /// When the catalog cannot be read.
    pub(crate) fn objects(&self, kind: &Kind) -> Result<Arc<Objects>> {
        let known = || self.granted().kinds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = known().get(kind.catalog) {
            return Ok(read.clone());
        }
        let read = Arc::new(Objects::read(self, kind)?);
        known().insert(kind.catalog, read.clone());
        Ok(read)
    }

    /// Whether a role has one of these rights on an object; `None` where there is no such object.
    ///
    /// # Errors
    /// When a catalog cannot be read.
    pub(crate) fn may(
        &self,
        role: Oid,
        (kind, oid): (&Kind, Oid),
        wanted: Wanted,
    ) -> Result<Option<bool>> {
        let members = self.members()?;
        let is_superuser = members.is_superuser(role);
        // From then on a superuser has every right on what there is not, but for large objects.
        if is_superuser
            && self.database().cluster().version().major() >= ALL_OF_NOTHING
            && kind.catalog != LARGE_OBJECTS.catalog
        {
            return Ok(Some(!wanted.is_none()));
        }
        let of_type = kind.catalog == TYPES.catalog;
        let shown = if of_type { self.type_with_rights(oid) } else { oid };
        let objects = self.objects(kind)?;
        let Some(owned) = objects.owned.get(&shown).filter(|_| objects.has(oid)) else {
            return Ok(None);
        };
        if is_superuser {
            return Ok(Some(!wanted.is_none()));
        }
        let uses_all = kind.catalog == SCHEMAS.catalog
            && wanted.rights & bits("U") != 0
            && (members.reads_all(role) || members.writes_all(role));
        Ok(Some(uses_all || owned.gives(members, role, wanted)))
    }

    /// Arrays have the rights of their elements.
    fn type_with_rights(&self, oid: Oid) -> Oid {
        let row = self.type_row(oid).filter(|row| row.is_array());
        row.map_or(oid, |row| row.element)
    }

    /// Whether a role has one of these rights on a whole relation; `None` where there is none.
    ///
    /// # Errors
    /// When a catalog cannot be read.
    pub(crate) fn may_relation(
        &self,
        role: Oid,
        relation: Oid,
        wanted: Wanted,
    ) -> Result<Option<bool>> {
        let members = self.members()?;
        let rights = self.relation_rights(relation)?;
        Ok(rights.map(|rights| rights.gives(members, role, wanted)))
    }

    /// Whether a role has one of these rights on a column, or, without a number, on any; not looked at is what it has on the whole.
    ///
    /// # Errors
    /// When a catalog cannot be read.
    pub(crate) fn may_column(
        &self,
        role: Oid,
        (relation, number): (Oid, Option<i16>),
        wanted: Wanted,
    ) -> Result<bool> {
        let members = self.members()?;
        let Some(rights) = self.relation_rights(relation)? else { return Ok(false) };
        let is_it = |column: i16| number.map_or(column > 0, |number| number == column);
        let mut columns = rights.columns.iter().filter(|column| is_it(column.number));
        Ok(columns.any(|column| gives(&column.items, members, role, wanted)))
    }
}

impl RelationRights {
    /// Whether a role has one of the rights on the whole relation.
    pub(super) fn gives(&self, members: &Members, role: Oid, wanted: Wanted) -> bool {
        if members.is_superuser(role) {
            return !wanted.is_none();
        }
        let barred = if self.is_system { bits("awdDU") } else { 0 };
        let wanted = Wanted { rights: wanted.rights & !barred, ..wanted };
        let has = |letters| wanted.rights & bits(letters) != 0;
        self.owned.gives(members, role, wanted)
            || has("r") && members.reads_all(role)
            || has("awd") && members.writes_all(role)
            || has("m") && members.maintains_all(role)
    }
}
