//! Which roles are members of others.
//!
//! ```text
//! USAGE   what is inherited: a superuser has all, the owner of the database has pg_database_owner
//! MEMBER  what SET ROLE leads to, inherited or not
//! ```
//!
//! Invariant: a role that there is not is a member of itself alone.
//!
//! Source: `roles_is_member_of`, `has_privs_of_role`, `is_member_of_role`, `pg_role_aclcheck` in `src/backend/utils/adt/acl.c`,
//! PostgreSQL 14 to 18. Until 15 a role inherits all or nothing, by its own `rolinherit`; from 16 on each membership says it.

use std::collections::{HashMap, HashSet};

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::UInt32Type;
use pagemill_format::Oid;

use super::super::keys::strings;
use super::super::rows::{Made, Outcome};
use super::super::{Implementation, KernelCall};
use super::privileges::unknown;
use super::statement_error;
use crate::catalog::Catalog;
use crate::error::{Result, SqlState, StatementError};
use crate::system_rows::for_each_row;

/// `pg_database_owner`.
///
/// Source: `src/include/catalog/pg_authid.dat`, PostgreSQL 14 to 18.
const DATABASE_OWNER: Oid = Oid(6171);

pub(super) fn find(key: &str) -> Option<Implementation> {
    match key {
        "pg_has_role_id_id" => Some(Implementation::Kernel(of_members)),
        "pg_has_role_name" => Some(Implementation::Kernel(of_session)),
        _ => None,
    }
}

/// A membership.
struct Membership {
    role: Oid,
    is_inherited: bool,
}

struct Roles {
    /// By the member.
    memberships: HashMap<Oid, Vec<Membership>>,
    superusers: HashSet<Oid>,
    owner: Option<Oid>,
}

impl Roles {
    fn read(catalog: &Catalog) -> Result<Self> {
        let by_membership = catalog.database().cluster().version().major() >= 16;
        let (mut superusers, mut inheriting) = (HashSet::new(), HashSet::new());
        for_each_row(catalog.values(), "pg_authid", &["oid", "rolsuper", "rolinherit"], |row| {
            superusers.extend(row.bool(1).then(|| row.oid(0)));
            inheriting.extend(row.bool(2).then(|| row.oid(0)));
            Ok(())
        })?;
        let mut columns = vec!["member", "roleid"];
        columns.extend(by_membership.then_some("inherit_option"));
        let mut memberships: HashMap<Oid, Vec<Membership>> = HashMap::new();
        for_each_row(catalog.values(), "pg_auth_members", &columns, |row| {
            let is_inherited =
                if by_membership { row.bool(2) } else { inheriting.contains(&row.oid(0)) };
            let found = Membership { role: row.oid(1), is_inherited };
            memberships.entry(row.oid(0)).or_default().push(found);
            Ok(())
        })?;
        let (own, mut owner) = (catalog.database().row().oid, None);
        for_each_row(catalog.values(), "pg_database", &["oid", "datdba"], |row| {
            owner = owner.or((row.oid(0) == own).then(|| row.oid(1)));
            Ok(())
        })?;
        Ok(Self { memberships, superusers, owner })
    }

    /// True where a role has what another may, or where it can become it.
    fn is_member(&self, member: Oid, role: Oid, inherits: bool) -> bool {
        if member == role || self.superusers.contains(&member) {
            return true;
        }
        let (mut found, mut at) = (vec![member], 0);
        while let Some(one) = found.get(at).copied() {
            at += 1;
            let of = self.memberships.get(&one).into_iter().flatten();
            let of = of.filter(|of| of.is_inherited || !inherits).map(|of| of.role);
            let owned = (self.owner == Some(one)).then_some(DATABASE_OWNER);
            for next in of.chain(owned) {
                if !found.contains(&next) {
                    found.push(next);
                }
            }
        }
        found.contains(&role)
    }
}

/// The session's role, a superuser's, is a member of every role that there is.
fn of_session(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let mut names = HashSet::new();
    let read = for_each_row(call.catalog.values(), "pg_authid", &["rolname"], |row| {
        names.insert(row.name(0));
        Ok(())
    });
    read.map_err(statement_error)?;
    let one = |(name, words): (Option<&str>, Option<&str>)| {
        let (Some(name), Some(words)) = (name, words) else { return Ok(None) };
        if !names.contains(name) {
            let message = format!("role \"{name}\" does not exist");
            return Err(StatementError::new(SqlState::UNDEFINED_OBJECT, message));
        }
        let mut words = words.split(',').map(str::trim);
        let other =
            words.find(|word| !["USAGE", "MEMBER"].contains(&word.to_ascii_uppercase().as_str()));
        match other {
            None => Ok(Some(true)),
            Some(word) if word.contains(' ') => {
                Err(StatementError::unsupported(format!("the privilege {word} of a role")))
            }
            Some(word) => Err(unknown(word)),
        }
    };
    let rows = strings(&arguments[0]).iter().zip(strings(&arguments[1]).iter()).map(one);
    Made::column(rows.collect::<Outcome<Vec<Option<bool>>>>()?)
}

fn of_members(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let roles = Roles::read(&call.catalog).map_err(statement_error)?;
    let members = arguments[0].as_primitive::<UInt32Type>();
    let others = arguments[1].as_primitive::<UInt32Type>();
    let words = strings(&arguments[2]);
    let one = |((member, role), words): ((Option<u32>, Option<u32>), Option<&str>)| {
        let (Some(member), Some(role), Some(words)) = (member, role, words) else {
            return Ok(None);
        };
        let mut is_one = false;
        for word in words.split(',').map(str::trim) {
            is_one |= match word.to_ascii_uppercase().as_str() {
                "USAGE" => roles.is_member(Oid(member), Oid(role), true),
                "MEMBER" => roles.is_member(Oid(member), Oid(role), false),
                other if other.contains("OPTION") || other == "SET" => {
                    let what = format!("the privilege {other} of a role");
                    return Err(StatementError::unsupported(what));
                }
                _ => return Err(unknown(word)),
            };
        }
        Ok(Some(is_one))
    };
    let rows = members.iter().zip(others.iter()).zip(words.iter()).map(one);
    Made::column(rows.collect::<Outcome<Vec<Option<bool>>>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memberships_are_followed_as_far_as_they_are_inherited() {
        let of = |role: u32, is_inherited| vec![Membership { role: Oid(role), is_inherited }];
        let memberships = HashMap::from([(Oid(1), of(2, true)), (Oid(2), of(3, false))]);
        let owner = Some(Oid(3));
        let roles = Roles { memberships, superusers: HashSet::from([Oid(9)]), owner };
        assert!(roles.is_member(Oid(1), Oid(2), true));
        assert!(!roles.is_member(Oid(1), Oid(3), true));
        assert!(roles.is_member(Oid(1), Oid(3), false));
        assert!(roles.is_member(Oid(1), DATABASE_OWNER, false));
        assert!(roles.is_member(Oid(9), Oid(1), true));
        assert!(!roles.is_member(Oid(0), Oid(1), false));
    }
}
