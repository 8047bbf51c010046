//! Whose rights a role has: its own, and those of the roles that it is a member of and inherits from.
//!
//! Up to 15 a role inherits from all that it is a member of, or from none (`rolinherit`); from 16 on each grant says so. The owner of the
//! database is a member of `pg_database_owner` without being told.
//!
//! Source: `roles_is_member_of` and `has_rolinherit` in `src/backend/utils/adt/acl.c`, `pg_auth_members.h`, `pg_authid.dat`, PostgreSQL 14
//! to 18.

use std::collections::{HashMap, HashSet};

use pagemill_format::Oid;

use crate::catalog::Catalog;
use crate::error::Result;
use crate::system_rows::for_each_row;

/// `pg_database_owner` and `pg_read_all_data`.
const DATABASE_OWNER: Oid = Oid(6171);
const READ_ALL_DATA: Oid = Oid(6181);

struct RoleRow {
    name: String,
    is_superuser: bool,
    inherits: bool,
    bypasses_row_security: bool,
}

/// The roles of a cluster, and what they are members of.
pub(super) struct Members {
    roles: HashMap<Oid, RoleRow>,
    /// For each role those whose rights it has, itself among them.
    inherited: HashMap<Oid, HashSet<Oid>>,
}

impl Members {
    pub(super) fn read(catalog: &Catalog, database_owner: Oid) -> Result<Self> {
        let mut roles = HashMap::new();
        let columns = ["oid", "rolname", "rolsuper", "rolinherit", "rolbypassrls"];
        for_each_row(catalog.values(), "pg_authid", &columns, |row| {
            let role = RoleRow {
                name: row.name(1),
                is_superuser: row.bool(2),
                inherits: row.bool(3),
                bypasses_row_security: row.bool(4),
            };
            roles.insert(row.oid(0), role);
            Ok(())
        })?;
        let mut grants: HashMap<Oid, Vec<Oid>> = HashMap::new();
        grants.entry(database_owner).or_default().push(DATABASE_OWNER);
        let says_itself = catalog.database().cluster().version().major() >= 16;
        let columns = ["roleid", "member", "inherit_option"];
        let columns = if says_itself { &columns[..] } else { &columns[..2] };
        for_each_row(catalog.values(), "pg_auth_members", columns, |row| {
            let member = row.oid(1);
            let inherits = match says_itself {
                true => row.bool(2),
                false => roles.get(&member).is_some_and(|role| role.inherits),
            };
            if inherits {
                grants.entry(member).or_default().push(row.oid(0));
            }
            Ok(())
        })?;
        let inherited = roles.keys().map(|role| (*role, closure(*role, &grants))).collect();
        Ok(Self { roles, inherited })
    }

    pub(super) fn named(&self, name: &[u8]) -> Option<Oid> {
        let found = self.roles.iter().find(|(_, role)| role.name.as_bytes() == name);
        found.map(|(oid, _)| *oid)
    }

    pub(super) fn is_superuser(&self, role: Oid) -> bool {
        self.roles.get(&role).is_some_and(|role| role.is_superuser)
    }

    pub(super) fn bypasses_row_security(&self, role: Oid) -> bool {
        self.roles.get(&role).is_some_and(|role| role.is_superuser || role.bypasses_row_security)
    }

    pub(super) fn has_rights_of(&self, role: Oid, of: Oid) -> bool {
        let inherited = self.inherited.get(&role);
        self.is_superuser(role) || inherited.is_some_and(|inherited| inherited.contains(&of))
    }

    pub(super) fn reads_all(&self, role: Oid) -> bool {
        self.has_rights_of(role, READ_ALL_DATA)
    }
}

fn closure(role: Oid, grants: &HashMap<Oid, Vec<Oid>>) -> HashSet<Oid> {
    let (mut found, mut next) = (HashSet::from([role]), vec![role]);
    while let Some(role) = next.pop() {
        let more = grants.get(&role).into_iter().flatten();
        next.extend(more.filter(|granted| found.insert(**granted)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_of_grants_has_an_end() {
        let grants = HashMap::from([
            (Oid(1), vec![Oid(2), Oid(3)]),
            (Oid(2), vec![Oid(1)]),
            (Oid(3), vec![Oid(4)]),
        ]);
        let all = |role| {
            let mut all: Vec<u32> = closure(Oid(role), &grants).iter().map(|oid| oid.0).collect();
            all.sort_unstable();
            all
        };
        assert_eq!(
            (all(1), all(2), all(3), all(5)),
            (vec![1, 2, 3, 4], vec![1, 2, 3, 4], vec![3, 4], vec![5])
        );
    }
}
