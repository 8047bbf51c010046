//! What roles are members of: whose rights a role has, what it can become, and what it can make others members of.
//!
//! ```text
//! USAGE   the roles whose rights it has, by memberships that inherit
//! MEMBER  all that it is a member of, in however many steps
//! SET     those that it can become, by memberships that say so (from 16 on)
//! ADMIN   those of which it, or a role that it is a member of, can make others members
//! ```
//!
//! Up to 15 a role inherits from all that it is a member of, or from none (`rolinherit`); from 16 on each grant says so. The owner of the
//! database is a member of `pg_database_owner` without being told.
//!
//! Invariant: a role that there is not is a member of itself alone.
//!
//! Source: `roles_is_member_of`, `has_rolinherit`, `is_admin_of_role` and `member_can_set_role` in `src/backend/utils/adt/acl.c`,
//! `pg_auth_members.h`, `pg_authid.dat`, PostgreSQL 14 to 18.

use std::collections::{HashMap, HashSet};

use pagemill_format::Oid;

use crate::catalog::Catalog;
use crate::error::Result;
use crate::system_rows::for_each_row;

/// Roles that are there in every cluster.
const DATABASE_OWNER: Oid = Oid(6171);
const READ_ALL_DATA: Oid = Oid(6181);
const WRITE_ALL_DATA: Oid = Oid(6182);
const MAINTAIN: Oid = Oid(6337);

struct RoleRow {
    name: String,
    is_superuser: bool,
    inherits: bool,
    bypasses_row_security: bool,
}

/// Which memberships are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// Those that are inherited.
    Usage,
    /// All.
    Member,
    /// Those that let a role become another.
    Set,
}

/// A role that another one is a member of.
#[derive(Debug, Clone, Copy)]
struct Grant {
    role: Oid,
    inherits: bool,
    sets: bool,
    administers: bool,
}

impl Grant {
    fn is_by(self, by: By) -> bool {
        match by {
            By::Usage => self.inherits,
            By::Member => true,
            By::Set => self.sets,
        }
    }
}

/// By the member.
type Grants = HashMap<Oid, Vec<Grant>>;

/// The roles of a cluster, and what they are members of.
pub(crate) struct Members {
    roles: HashMap<Oid, RoleRow>,
    grants: Grants,
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
        let mut grants = Grants::new();
        let says_itself = catalog.database().cluster().version().major() >= 16;
        let by_role = |member: Oid| {
            let role = roles.get(&member);
            role.is_some_and(|role: &RoleRow| role.inherits)
        };
        let columns = ["roleid", "member", "admin_option", "inherit_option", "set_option"];
        let columns = if says_itself { &columns[..] } else { &columns[..3] };
        for_each_row(catalog.values(), "pg_auth_members", columns, |row| {
            let (role, member, administers) = (row.oid(0), row.oid(1), row.bool(2));
            let inherits = if says_itself { row.bool(3) } else { by_role(member) };
            let sets = !says_itself || row.bool(4);
            grants.entry(member).or_default().push(Grant { role, inherits, sets, administers });
            Ok(())
        })?;
        let inherits = says_itself || by_role(database_owner);
        let of_owner = Grant { role: DATABASE_OWNER, inherits, sets: true, administers: false };
        grants.entry(database_owner).or_default().push(of_owner);
        let inherited = |role: &Oid| (*role, closure(*role, &grants, By::Usage));
        let inherited = roles.keys().map(inherited).collect();
        Ok(Self { roles, grants, inherited })
    }

    pub(crate) fn named(&self, name: &[u8]) -> Option<Oid> {
        let found = self.roles.iter().find(|(_, role)| role.name.as_bytes() == name);
        found.map(|(oid, _)| *oid)
    }

    pub(crate) fn is_superuser(&self, role: Oid) -> bool {
        self.roles.get(&role).is_some_and(|role| role.is_superuser)
    }

    pub(super) fn bypasses_row_security(&self, role: Oid) -> bool {
        self.roles.get(&role).is_some_and(|role| role.is_superuser || role.bypasses_row_security)
    }

    pub(crate) fn has_rights_of(&self, role: Oid, of: Oid) -> bool {
        let inherited = self.inherited.get(&role);
        role == of
            || self.is_superuser(role)
            || inherited.is_some_and(|inherited| inherited.contains(&of))
    }

    /// Whether a role is a member of another one in this way; a superuser is one of all.
    pub(crate) fn is_member(&self, role: Oid, of: Oid, by: By) -> bool {
        let is_one = || closure(role, &self.grants, by).contains(&of);
        role == of || self.is_superuser(role) || is_one()
    }

    /// Whether a role can make others members of another one.
    pub(crate) fn is_admin(&self, role: Oid, of: Oid) -> bool {
        let administers = |member: &Oid| {
            let mut grants = self.grants.get(member).into_iter().flatten();
            grants.any(|grant| grant.administers && grant.role == of)
        };
        let is_one = || closure(role, &self.grants, By::Member).iter().any(administers);
        self.is_superuser(role) || role != of && is_one()
    }

    pub(super) fn reads_all(&self, role: Oid) -> bool {
        self.has_rights_of(role, READ_ALL_DATA)
    }

    pub(super) fn writes_all(&self, role: Oid) -> bool {
        self.has_rights_of(role, WRITE_ALL_DATA)
    }

    pub(super) fn maintains_all(&self, role: Oid) -> bool {
        self.has_rights_of(role, MAINTAIN)
    }
}

fn closure(role: Oid, grants: &Grants, by: By) -> HashSet<Oid> {
    let (mut found, mut next) = (HashSet::from([role]), vec![role]);
    while let Some(role) = next.pop() {
        let more = grants.get(&role).into_iter().flatten().filter(|grant| grant.is_by(by));
        next.extend(more.map(|grant| grant.role).filter(|granted| found.insert(*granted)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(role: u32, inherits: bool) -> Grant {
        Grant { role: Oid(role), inherits, sets: !inherits, administers: role == 4 }
    }

    fn all(role: u32, by: By) -> Vec<u32> {
        let grants = HashMap::from([
            (Oid(1), vec![grant(2, true), grant(3, true)]),
            (Oid(2), vec![grant(1, true)]),
            (Oid(3), vec![grant(4, false)]),
        ]);
        let found = closure(Oid(role), &grants, by);
        let mut all: Vec<u32> = found.iter().map(|oid| oid.0).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn a_circle_of_grants_has_an_end() {
        assert_eq!(all(1, By::Usage), [1, 2, 3]);
        assert_eq!(all(1, By::Member), [1, 2, 3, 4]);
        assert_eq!(all(3, By::Set), [3, 4]);
        assert_eq!(all(5, By::Member), [5]);
    }

    #[test]
    fn who_administers_a_role_need_not_have_its_rights() {
        let role = |is_superuser| RoleRow {
            name: String::new(),
            is_superuser,
            inherits: true,
            bypasses_row_security: false,
        };
        let roles = HashMap::from([(Oid(1), role(false)), (Oid(9), role(true))]);
        let grants =
            HashMap::from([(Oid(1), vec![grant(3, true)]), (Oid(3), vec![grant(4, false)])]);
        let members = Members { roles, grants, inherited: HashMap::new() };
        assert!(members.is_admin(Oid(1), Oid(4)) && members.is_admin(Oid(9), Oid(9)));
        assert!(!members.is_admin(Oid(4), Oid(4)) && !members.is_admin(Oid(1), Oid(3)));
        assert!(members.is_member(Oid(9), Oid(1), By::Set));
    }
}
