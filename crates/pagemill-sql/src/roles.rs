//! Roles of the cluster, for a server to know who connects.
//!
//! Source: `src/include/catalog/pg_authid.h`, PostgreSQL 14 to 18.

use pagemill_format::Oid;

use crate::catalog::Catalog;
use crate::error::Result;
use crate::system_rows::for_each_row;

/// A row of `pg_authid`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    /// Its OID; that of the role which initdb made is [`BOOTSTRAP_ROLE`].
    pub oid: Oid,
    /// Its name.
    pub name: String,
    /// Whether every right is its own.
    pub is_superuser: bool,
    /// Whether it may connect.
    pub can_login: bool,
    /// Its password, or what is kept to verify it; `None` where it has none.
    pub password: Option<String>,
    /// Until when its password is valid, in microseconds since 2000; `None` for ever.
    pub valid_until: Option<i64>,
    /// How many connections it may have at a time; negative for any number.
    pub connection_limit: i32,
}

/// The role that initdb made.
///
/// Source: `BOOTSTRAP_SUPERUSERID` in `src/include/catalog/pg_authid.dat`, PostgreSQL 18.
pub const BOOTSTRAP_ROLE: Oid = Oid(10);

impl Catalog {
    /// All roles of the cluster.
    ///
    /// # Errors
    /// When the catalog is damaged.
    pub fn roles(&self) -> Result<Vec<Role>> {
        let columns = [
            "oid",
            "rolname",
            "rolsuper",
            "rolcanlogin",
            "rolpassword",
            "rolvaliduntil",
            "rolconnlimit",
        ];
        let mut roles = Vec::new();
        for_each_row(self.values(), "pg_authid", &columns, |row| {
            roles.push(Role {
                oid: row.oid(0),
                name: row.name(1),
                is_superuser: row.bool(2),
                can_login: row.bool(3),
                password: row.text(4)?,
                valid_until: (!row.is_null(5)).then(|| row.int8(5)),
                connection_limit: row.int4(6),
            });
            Ok(())
        })?;
        Ok(roles)
    }
}
