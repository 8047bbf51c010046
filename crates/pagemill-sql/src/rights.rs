//! What a role may read that is no superuser: relations by GRANTs, ownership and membership, and those behind views by their owners' rights.
//!
//! ```text
//!   statement ── role ──► schema: USAGE ──► relation: SELECT, or of those ─┬─ table: its rows, and those of what inherits from it
//!                                           columns that are named         └─ view: its query, as its owner (or the role: security_invoker)
//!   of a table with row-level security only the rows that its policies show to whom it is read as: `policies.rs`
//! ```
//!
//! Invariant: a role reads nothing that the server would not let it read. What depends on rights in a way that is not followed here is
//! refused: sizes of databases.
//!
//! Source: `pg_class_aclmask_ext`, `object_aclmask` and `roles_is_member_of` in `src/backend/catalog/aclchk.c` and
//! `src/backend/utils/adt/acl.c`, `check_enable_rls` in `src/backend/utils/misc/rls.c`, `src/include/utils/acl.h` and
//! `src/include/nodes/parsenodes.h`, PostgreSQL 14 to 18.

mod acl;
mod granted;
mod members;
mod objects;
mod policies;
mod written_names;

use std::collections::HashSet;

use pagemill_cluster::RelationKind;
use pagemill_format::Oid;

use crate::catalog::{Catalog, FunctionRow};
use crate::error::{Result, SqlState, fail};
pub(crate) use acl::{EVERYBODY, Wanted, bits, default_rights};
pub(crate) use granted::Granted;
pub(crate) use members::By;
pub(crate) use objects::{
    DATABASES, FUNCTIONS, Kind, LANGUAGES, LARGE_OBJECTS, PARAMETERS, RelationRights, SCHEMAS,
    SERVERS, TABLESPACES, TYPES, WRAPPERS,
};
pub(crate) use policies::Policy;
pub(crate) use written_names::schema_in;

/// Which columns of a relation a role may read.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a column that is not among them must not be read"]
pub(crate) enum ReadableColumns {
    All,
    /// By their names; at least one.
    Named(HashSet<String>),
}

impl Catalog {
    /// The role of this name, if it is no superuser's, who has all rights.
    ///
    /// # Errors
    /// When there is no such role, or a catalog cannot be read.
    pub(crate) fn restricted_role(&self, user: &[u8]) -> Result<Option<Oid>> {
        let members = self.members()?;
        match members.named(user) {
            Some(role) => Ok(Some(role).filter(|role| !members.is_superuser(*role))),
            None => {
                let message = format!("role \"{}\" does not exist", String::from_utf8_lossy(user));
                fail(SqlState("28000"), message)
            }
        }
    }

    /// Whether the session's role may connect to the database.
    pub(crate) fn may_connect(&self) -> Result<bool> {
        let own = self.database().row().oid;
        match self.role() {
            None => Ok(true),
            Some(role) => {
                let may = self.may(role, (&DATABASES, own), Wanted::to(bits("c")))?;
                Ok(may.unwrap_or(false))
            }
        }
    }

    /// Whether the session's role can use names of a schema.
    pub(crate) fn uses(&self, schema: Oid) -> Result<bool> {
        let Some(role) = self.role() else { return Ok(true) };
        Ok(self.may(role, (&SCHEMAS, schema), Wanted::to(bits("U")))?.unwrap_or(false))
    }

    /// Refuses a schema that the session's role cannot use names of.
    ///
    /// # Errors
    /// When it is one.
    pub(crate) fn check_schema(&self, schema: Oid) -> Result<()> {
        if self.uses(schema)? {
            return Ok(());
        }
        let schemas = self.database().namespaces()?;
        let name = schemas.get(&schema).map(|name| String::from_utf8_lossy(name).into_owned());
        let message = format!("permission denied for schema {}", name.unwrap_or_default());
        fail(SqlState::DENIED, message)
    }

    /// Refuses a function that the session's role may not call, wherever it stands: in a view, too, functions run as whoever asks.
    ///
    /// The server looks when it makes a call ready to run; one that it has computed away by then, as `f(NULL)` of a STRICT function, is
    /// refused here all the same.
    ///
    /// # Errors
    /// When it is one.
    ///
    /// Source: `ExecInitFunc` in `src/backend/executor/execExpr.c`, `ExecInitAgg` in `nodeAgg.c`, `init_sexpr` in `execSRF.c`,
    /// `ExecBuildGroupingEqual`, PostgreSQL 14 to 18.
    pub(crate) fn check_function(&self, function: &FunctionRow) -> Result<()> {
        self.check_call(function, if function.kind == b'a' { "aggregate" } else { "function" })
    }

    /// The same, with a word for what it is called as.
    pub(crate) fn check_call(&self, function: &FunctionRow, word: &str) -> Result<()> {
        let Some(role) = self.role() else { return Ok(()) };
        let may = self.may(role, (&FUNCTIONS, function.oid), Wanted::to(bits("X")))?;
        if may.unwrap_or(false) {
            return Ok(());
        }
        fail(SqlState::DENIED, format!("permission denied for {word} {}", function.name))
    }

    /// Refuses a relation of which a role may read nothing; else the columns that it may read.
    ///
    /// # Errors
    /// When it is one.
    pub(crate) fn check_readable(
        &self,
        role: Oid,
        relation: Oid,
        kind: RelationKind,
    ) -> Result<ReadableColumns> {
        let Some(rights) = self.relation_rights(relation)? else {
            return fail(SqlState::DATA_CORRUPTED, format!("relation {} is missing", relation.0));
        };
        let name = &rights.name;
        let readable = self.readable(role, rights)?;
        if readable == ReadableColumns::Named(HashSet::new()) {
            return fail(SqlState::DENIED, denied(kind, name));
        }
        Ok(readable)
    }

    fn readable(&self, role: Oid, rights: &RelationRights) -> Result<ReadableColumns> {
        let (members, wanted) = (self.members()?, Wanted::to(bits("r")));
        if rights.gives(members, role, wanted) {
            return Ok(ReadableColumns::All);
        }
        let columns = rights.columns.iter();
        let granted = columns.filter(|column| acl::gives(&column.items, members, role, wanted));
        Ok(ReadableColumns::Named(granted.map(|column| column.name.clone()).collect()))
    }

    /// Whether a view is a barrier: no condition from outside may see rows that it leaves out.
    ///
    /// # Errors
    /// When a catalog cannot be read.
    pub(crate) fn is_barrier(&self, view: Oid) -> Result<bool> {
        Ok(self.relation_rights(view)?.is_some_and(|rights| rights.is_barrier))
    }

    /// Who the query of a view runs as that a role reads; `None` for the session's.
    ///
    /// # Errors
    /// When a catalog cannot be read.
    pub(crate) fn reader_of(&self, view: Oid, reader: Option<Oid>) -> Result<Option<Oid>> {
        Ok(match self.relation_rights(view)? {
            Some(rights) if !rights.is_invoker => Some(rights.owned.owner),
            _ => reader,
        })
    }
}

/// Whether what a function gives depends on rights that are not followed here.
pub(crate) fn concerns_rights(function: &FunctionRow) -> bool {
    const NAMES: [&str; 4] = [
        "pg_database_size",
        "pg_tablespace_size",
        "pg_sequence_last_value",
        "pg_get_sequence_data",
    ];
    NAMES.contains(&function.name.as_str())
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
