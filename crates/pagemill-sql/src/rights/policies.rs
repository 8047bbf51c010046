//! Row-level security: on which tables it counts for a role, and by which policies.
//!
//! Invariant: it counts for everybody but superusers, roles with BYPASSRLS, and owners of tables that do not force it.
//!
//! Source: `check_enable_rls` in `src/backend/utils/misc/rls.c`, `get_policies_for_relation` and `check_role_for_policy` in
//! `src/backend/rewrite/rowsecurity.c`, `src/include/catalog/pg_policy.h`, PostgreSQL 14 to 18.

use std::collections::HashMap;

use pagemill_format::Oid;

use super::acl::EVERYBODY;
use super::granted::read_once;
use crate::catalog::Catalog;
use crate::error::Result;
use crate::system_rows::for_each_row;

/// A row of `pg_policy`.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    name: String,
    /// r, a, w, d, or * for all commands.
    command: u8,
    pub(crate) is_permissive: bool,
    roles: Vec<Oid>,
    /// The tree of USING.
    pub(crate) condition: Option<String>,
}

impl Policy {
    /// Whether there are queries in it.
    pub(crate) fn has_queries(&self) -> bool {
        self.condition.as_ref().is_some_and(|tree| tree.contains("{SUBLINK "))
    }
}

/// By the table.
pub(super) type Policies = HashMap<Oid, Vec<Policy>>;

impl Catalog {
    /// Whether a relation has policies that count for a role.
    ///
    /// # Errors
    /// When a catalog cannot be read.
    pub(crate) fn is_row_security_active(&self, role: Oid, relation: Oid) -> Result<bool> {
        /// The first OID of what is not made by initdb.
        const FIRST_OF_USERS: u32 = 16384;
        let rights = self.relation_rights(relation)?.filter(|_| relation.0 >= FIRST_OF_USERS);
        let Some(rights) = rights.filter(|rights| rights.has_row_security) else {
            return Ok(false);
        };
        let members = self.members()?;
        let passes = members.has_rights_of(role, rights.owned.owner) && !rights.forces_row_security;
        Ok(!members.bypasses_row_security(role) && !passes)
    }

    /// Whether a role has the rights of a relation's owner.
    ///
    /// # Errors
    /// When a catalog cannot be read.
    pub(crate) fn owns_relation(&self, role: Oid, relation: Oid) -> Result<bool> {
        let (members, rights) = (self.members()?, self.relation_rights(relation)?);
        Ok(rights.is_some_and(|rights| members.has_rights_of(role, rights.owned.owner)))
    }

    /// The policies of a table by which a role reads it, in the order of their names.
    ///
    /// # Errors
    /// When a catalog cannot be read.
    pub(crate) fn policies_for(&self, role: Oid, table: Oid) -> Result<Vec<Policy>> {
        let policies = read_once(&self.granted().policies, || policies(self))?;
        let members = self.members()?;
        let is_for = |of: &Oid| *of == EVERYBODY || members.has_rights_of(role, *of);
        let counts = |policy: &&Policy| {
            matches!(policy.command, b'r' | b'*') && policy.roles.iter().any(is_for)
        };
        let of_table = policies.get(&table).into_iter().flatten();
        Ok(of_table.filter(counts).cloned().collect())
    }
}

fn policies(catalog: &Catalog) -> Result<Policies> {
    let columns = ["polrelid", "polname", "polcmd", "polpermissive", "polroles", "polqual"];
    let mut found = Policies::new();
    for_each_row(catalog.values(), "pg_policy", &columns, |row| {
        let policy = Policy {
            name: row.name(1),
            command: row.byte(2),
            is_permissive: row.bool(3),
            roles: row.oids(4)?,
            condition: row.text(5)?,
        };
        found.entry(row.oid(0)).or_default().push(policy);
        Ok(())
    })?;
    for policies in found.values_mut() {
        policies.sort_by(|a, b| a.name.cmp(&b.name));
    }
    Ok(found)
}
