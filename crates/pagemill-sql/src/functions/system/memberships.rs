//! `pg_has_role`: whether a role has the rights of another one, can become it, or can make others members of it.
//!
//! Invariant: a role that is named has to be there; one that is given by its number need not.
//!
//! Source: `pg_has_role_…`, `convert_role_priv_string` and `pg_role_aclcheck` in `src/backend/utils/adt/acl.c`, PostgreSQL 14 to 18.

use arrow::array::{Array as _, ArrayRef, AsArray};
use arrow::datatypes::UInt32Type;
use pagemill_format::Oid;

use super::super::keys::strings;
use super::super::rows::{Made, Outcome};
use super::super::{Implementation, KernelCall};
use super::privileges::{names, session_role, words};
use super::statement_error;
use crate::catalog::Catalog;
use crate::rights::By;

pub(super) fn find(key: &str) -> Option<Implementation> {
    let forms = key.strip_prefix("pg_has_role_")?;
    let are_known = forms.split('_').all(|form| matches!(form, "name" | "id"));
    are_known.then_some(Implementation::Kernel(of_roles))
}

/// One of the things that are asked of two roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Member(By),
    Admin,
}

/// `SET` is known from 16 on.
fn asked(list: &str, major: u32) -> Outcome<Vec<Asked>> {
    let one = |word: &str| {
        let upper = word.to_ascii_uppercase();
        let options = [" WITH GRANT OPTION", " WITH ADMIN OPTION"];
        let plain = options.iter().find_map(|option| upper.strip_suffix(option));
        let by = match plain.unwrap_or(&upper) {
            "USAGE" => By::Usage,
            "MEMBER" => By::Member,
            "SET" if major >= 16 => By::Set,
            _ => return Err(words::unknown(word)),
        };
        Ok(plain.map_or(Asked::Member(by), |_| Asked::Admin))
    };
    words::split(list).map(one).collect()
}

fn of_roles(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let (words, roles) = arguments.split_last().expect("a call has its arguments"); // infallible: by its name
    let catalog = &call.catalog;
    let members = catalog.members().map_err(statement_error)?;
    let major = catalog.database().cluster().version().major();
    let session = catalog.role();
    let one = |row: usize| {
        if arguments.iter().any(|array| array.is_null(row)) {
            return Ok(None);
        }
        let (member, of) = match roles {
            [of] => (session_role(catalog)?, role(catalog, of, row)?),
            [member, of] => (role(catalog, member, row)?, role(catalog, of, row)?),
            _ => return Ok(None),
        };
        let is_so = |asked: Asked| match asked {
            Asked::Member(by) => members.is_member(member, of, by),
            // Up to 14 whoever logged in as a role administers it.
            Asked::Admin if major <= 14 && member == of && session == Some(member) => true,
            Asked::Admin => members.is_admin(member, of),
        };
        Ok(Some(asked(strings(words).value(row), major)?.into_iter().any(is_so)))
    };
    Made::column((0..words.len()).map(one).collect::<Outcome<Vec<Option<bool>>>>()?)
}

fn role(catalog: &Catalog, array: &ArrayRef, row: usize) -> Outcome<Oid> {
    match array.as_primitive_opt::<UInt32Type>() {
        Some(numbers) => Ok(Oid(numbers.value(row))),
        None => names::role(catalog, strings(array).value(row)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_roles_are_known_by_version() {
        assert_eq!(asked("usage, Member", 14).unwrap(), [By::Usage, By::Member].map(Asked::Member));
        assert_eq!(asked("MEMBER WITH ADMIN OPTION", 14).unwrap(), [Asked::Admin]);
        assert!(asked("set", 15).is_err() && asked("set", 16).is_ok());
        assert!(asked("", 16).is_err());
    }
}
