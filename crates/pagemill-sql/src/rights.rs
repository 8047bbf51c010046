//! What a role may read that is no superuser: relations by GRANTs, ownership and membership, and those behind views by their owners' rights.
//!
//! ```text
//!   statement ── role ──► schema: USAGE ──► relation: SELECT, or of those ─┬─ table: its rows, and those of what inherits from it
//!                                           columns that are named         └─ view: its query, as its owner (or the role: security_invoker)
//! ```
//!
//! Invariant: a role reads nothing that the server would not let it read. What depends on rights in a way that is not followed here is
//! refused: row-level security, views with a security barrier, functions that tell of rights.
//!
//! Source: `pg_class_aclmask_ext`, `object_aclmask` and `roles_is_member_of` in `src/backend/catalog/aclchk.c` and
//! `src/backend/utils/adt/acl.c`, `check_enable_rls` in `src/backend/utils/misc/rls.c`, `src/include/utils/acl.h` and
//! `src/include/nodes/parsenodes.h`, PostgreSQL 14 to 18.

mod members;
mod objects;

use std::collections::{HashMap, HashSet};

use pagemill_cluster::RelationKind;
use pagemill_format::Oid;

use crate::catalog::{Catalog, FunctionRow};
use crate::error::{Result, SqlState, fail, unsupported};
use members::Members;
use objects::{AclItem, Owned, RelationRights};

/// Bits of `AclMode`.
const SELECT: u32 = 1 << 1;
const USAGE: u32 = 1 << 8;
const CONNECT: u32 = 1 << 11;

/// Which columns of a relation a role may read.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a column that is not among them must not be read"]
pub(crate) enum ReadableColumns {
    All,
    /// By their names; at least one.
    Named(HashSet<String>),
}

/// The rights of a role in one database.
pub(crate) struct Rights {
    role: Oid,
    members: Members,
    relations: HashMap<Oid, RelationRights>,
    schemas: HashMap<Oid, Owned>,
    database: Owned,
}

impl Rights {
    /// The rights of a role; `None` for a superuser, who has all.
    ///
    /// # Errors
    /// When there is no such role, or a catalog cannot be read.
    pub(crate) fn read(catalog: &Catalog, user: &[u8]) -> Result<Option<Self>> {
        let database = objects::database(catalog)?;
        let members = Members::read(catalog, database.owner)?;
        let Some(role) = members.named(user) else {
            let message = format!("role \"{}\" does not exist", String::from_utf8_lossy(user));
            return fail(SqlState("28000"), message);
        };
        if members.is_superuser(role) {
            return Ok(None);
        }
        let (relations, schemas) = (objects::relations(catalog)?, objects::schemas(catalog)?);
        Ok(Some(Self { role, members, relations, schemas, database }))
    }

    /// The session's role.
    pub(crate) fn role(&self) -> Oid {
        self.role
    }

    /// Whether the session's role may connect to the database. By default everybody may.
    pub(crate) fn may_connect(&self) -> bool {
        self.database.acl.is_none() || self.has(self.role, &self.database, CONNECT)
    }

    /// Whether names of a schema can be used.
    pub(crate) fn uses(&self, schema: Oid) -> bool {
        let owned = self.schemas.get(&schema);
        self.members.reads_all(self.role)
            || owned.is_some_and(|owned| self.has(self.role, owned, USAGE))
    }

    /// Whether a role, or one whose rights it has, is given a right. Without a list, the owner has all.
    fn has(&self, role: Oid, object: &Owned, right: u32) -> bool {
        if self.members.is_superuser(role) {
            return true;
        }
        match &object.acl {
            None => self.members.has_rights_of(role, object.owner),
            Some(items) => self.is_granted(role, items, right),
        }
    }

    fn is_granted(&self, role: Oid, items: &[AclItem], right: u32) -> bool {
        items.iter().any(|item| {
            let is_ours = item.grantee == Oid(0) || self.members.has_rights_of(role, item.grantee);
            item.rights & right != 0 && is_ours
        })
    }

    /// Refuses a relation of which a role may read nothing, or not so that it could be told here what of it; else the columns that
    /// it may read.
    ///
    /// # Errors
    /// When it is one.
    pub(crate) fn check(
        &self,
        role: Oid,
        relation: Oid,
        kind: RelationKind,
    ) -> Result<ReadableColumns> {
        let Some(rights) = self.relations.get(&relation) else {
            return fail(SqlState::DATA_CORRUPTED, format!("relation {} is missing", relation.0));
        };
        let name = &rights.name;
        let readable = self.readable(role, rights);
        if readable == ReadableColumns::Named(HashSet::new()) {
            return fail(SqlState::DENIED, denied(kind, name));
        }
        if rights.has_row_security && !self.passes_row_security(role, rights) {
            return unsupported(format!("row-level security, which \"{name}\" has,"));
        }
        // Whoever the view runs as, it is the session's conditions that could see more than they should.
        if rights.is_barrier && !self.members.reads_all(self.role) {
            return unsupported(format!("a security barrier, which \"{name}\" is,"));
        }
        Ok(readable)
    }

    fn readable(&self, role: Oid, rights: &RelationRights) -> ReadableColumns {
        if self.members.reads_all(role) || self.has(role, &rights.owned, SELECT) {
            return ReadableColumns::All;
        }
        let granted =
            rights.columns.iter().filter(|(_, items)| self.is_granted(role, items, SELECT));
        ReadableColumns::Named(granted.map(|(name, _)| name.clone()).collect())
    }

    fn passes_row_security(&self, role: Oid, rights: &RelationRights) -> bool {
        let is_owner = self.members.has_rights_of(role, rights.owned.owner);
        self.members.bypasses_row_security(role) || is_owner && !rights.forces_row_security
    }

    /// Who the query of a view runs as that a role reads.
    pub(crate) fn reader_of(&self, view: Oid, role: Oid) -> Oid {
        match self.relations.get(&view) {
            Some(rights) if !rights.is_invoker => rights.owned.owner,
            _ => role,
        }
    }

    /// Whether what a function gives depends on rights that are not followed here.
    pub(crate) fn concerns(function: &FunctionRow) -> bool {
        const NAMES: [&str; 7] = [
            "pg_has_role",
            "row_security_active",
            "pg_database_size",
            "pg_tablespace_size",
            "pg_sequence_last_value",
            "pg_get_sequence_data",
            "lo_get",
        ];
        let name = function.name.as_str();
        NAMES.contains(&name) || name.starts_with("has_") && name.ends_with("_privilege")
    }
}

/// What is said of a relation, or a column of it, that may not be read.
pub(crate) fn denied(kind: RelationKind, name: &str) -> String {
    format!("permission denied for {} {name}", word(kind))
}

/// What messages call a relation; `get_relkind_objtype` in `src/backend/catalog/objectaddress.c`.
fn word(kind: RelationKind) -> &'static str {
    match kind {
        RelationKind::View => "view",
        RelationKind::MaterializedView => "materialized view",
        RelationKind::Sequence => "sequence",
        RelationKind::ForeignTable => "foreign table",
        RelationKind::Index | RelationKind::PartitionedIndex => "index",
        _ => "table",
    }
}
