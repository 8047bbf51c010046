//! Who may come in over TCP: the cluster's roles, by the passwords that it keeps verifiers of.
//!
//! Invariant: a client that has no right password is told the same, after the same exchange, whatever the reason is; the reason is for the
//! program's own log.
//!
//! Source: `get_role_password` in `src/backend/libpq/crypt.c`, and `InitializeSessionUserId`, PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use pagemill_cluster::Cluster;
use pagemill_sql::catalog::Catalog;
use pagemill_sql::roles::Role;
use pagemill_sql::{Result, SqlState, StatementError};

use crate::scram::Verifier;

/// Microseconds between 1970-01-01 and 2000-01-01.
const EPOCH: i64 = 946_684_800_000_000;

/// Why a role has no password by which it could come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// There is no such role.
    NoRole,
    /// It may not log in.
    NoLogin,
    /// It has no password.
    NoPassword,
    /// Its password is kept in a form that proves nothing safely: an MD5 hash.
    OtherForm,
    /// Its password is no longer valid.
    Expired,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRole => "there is no such role",
            Self::NoLogin => "the role may not log in",
            Self::NoPassword => "the role has no password",
            Self::OtherForm => "the role's password is not kept for SCRAM-SHA-256",
            Self::Expired => "the role's password is no longer valid",
        })
    }
}

/// The roles of a cluster, as they are when the server starts.
pub struct Access {
    roles: HashMap<String, Role>,
    /// `mock_authentication_nonce`: what stand-ins are made with.
    secret: [u8; 32],
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("roles", &self.roles.len()).finish_non_exhaustive()
    }
}

impl Access {
    /// Reads the roles of a cluster, through any of its databases.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn read(cluster: &Cluster) -> Result<Self> {
        let rows = cluster.databases()?;
        let row = rows.iter().find(|row| row.allows_connections && !row.is_invalid());
        let row = row.ok_or_else(|| {
            StatementError::new(SqlState("55000"), "no database allows connections")
        })?;
        let database = cluster.database(&String::from_utf8_lossy(&row.name))?;
        let roles = Catalog::read(&database)?.roles()?;
        let roles = roles.into_iter().map(|role| (role.name.clone(), role)).collect();
        Ok(Self { roles, secret: cluster.control().mock_authentication_nonce })
    }

    /// What a role's proof is checked by, and why none will do where that is so.
    pub fn verifier(&self, name: &str, now: i64) -> (Verifier, Option<Denial>) {
        match self.found(name, now) {
            Ok(verifier) => (verifier, None),
            Err(denial) => (Verifier::stand_in(name, &self.secret), Some(denial)),
        }
    }

    fn found(&self, name: &str, now: i64) -> std::result::Result<Verifier, Denial> {
        let role = self.roles.get(name).ok_or(Denial::NoRole)?;
        let stored = role.password.as_deref().ok_or(Denial::NoPassword)?;
        if role.valid_until.is_some_and(|until| until < now) {
            return Err(Denial::Expired);
        }
        if !role.can_login {
            return Err(Denial::NoLogin);
        }
        Verifier::parse(stored).ok_or(Denial::OtherForm)
    }
}

/// The present moment as PostgreSQL counts it: in microseconds since 2000.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX) - EPOCH
}

#[cfg(test)]
mod tests {
    use pagemill_sql::roles::BOOTSTRAP_ROLE;

    use super::*;

    const KEPT: &str = "SCRAM-SHA-256$4096:c2FsdA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

    fn denial(change: impl FnOnce(&mut Role)) -> Option<Denial> {
        let mut role = Role {
            oid: BOOTSTRAP_ROLE,
            name: "ada".into(),
            is_superuser: true,
            can_login: true,
            password: Some(KEPT.into()),
            valid_until: None,
            connection_limit: -1,
        };
        change(&mut role);
        let access = Access { roles: HashMap::from([(role.name.clone(), role)]), secret: [1; 32] };
        access.verifier("ada", 1000).1
    }

    #[test]
    fn only_a_role_with_a_valid_password_has_a_verifier() {
        assert_eq!(denial(|_| {}), None);
        assert_eq!(denial(|role| role.name = "bob".into()), Some(Denial::NoRole));
        assert_eq!(denial(|role| role.can_login = false), Some(Denial::NoLogin));
        assert_eq!(denial(|role| role.password = None), Some(Denial::NoPassword));
        let md5 = "md5ab8c1d1ed8c8f1a9b2ffb4d0a1e3e5f7";
        assert_eq!(denial(|role| role.password = Some(md5.into())), Some(Denial::OtherForm));
        assert_eq!(denial(|role| role.valid_until = Some(999)), Some(Denial::Expired));
        assert_eq!(denial(|role| role.valid_until = Some(1000)), None);
        assert_eq!(denial(|role| role.valid_until = Some(i64::MAX)), None);
        assert_eq!(denial(|role| role.valid_until = Some(i64::MIN)), Some(Denial::Expired));
    }
}
