//! What choosing and listing relations asks of the catalogs: the search path and tablespaces. Each is
//! read when it is asked for and not kept.
//!
//! Source: `src/include/catalog/pg_tablespace.h`, PostgreSQL 14 to 18.

use std::collections::HashMap;

use pagemill_format::Oid;

use crate::data_directory::Cluster;
use crate::database::{Database, catalog};
use crate::error::{Error, Result};
use crate::name_rows::{DatabaseRows, DatabaseSettings};
use crate::names::{NameRows, SearchPath};
use crate::refusal::NewDatabaseCause;

impl Cluster {
    /// The names of the tablespaces.
    ///
    /// # Errors
    /// When no database's catalogs, or `pg_tablespace`, can be read.
    pub fn tablespaces(&self) -> Result<HashMap<Oid, Box<[u8]>>> {
        let mut found = HashMap::new();
        self.scan_shared(catalog::PG_TABLESPACE, &["oid", "spcname"], |row| {
            found.insert(row.oid(0)?, row.name(1)?);
            Ok(())
        })?;
        Ok(found)
    }
}

impl Cluster {
    /// The tablespace of this name.
    ///
    /// # Errors
    /// When there is none, or the catalog cannot be read.
    pub fn tablespace(&self, name: &str) -> Result<Oid> {
        self.shared_object(catalog::PG_TABLESPACE, "spcname", name, "tablespace")
    }

    /// The role of this name.
    ///
    /// # Errors
    /// When there is none, or the catalog cannot be read.
    pub fn role(&self, name: &str) -> Result<Oid> {
        self.shared_object(catalog::PG_AUTHID, "rolname", name, "role")
    }

    /// The superuser with the lowest OID: mostly the one that initdb made.
    ///
    /// # Errors
    /// When there is none, or the catalog cannot be read.
    pub fn first_superuser(&self) -> Result<Oid> {
        let mut first: Option<Oid> = None;
        self.scan_shared(catalog::PG_AUTHID, &["oid", "rolsuper"], |row| {
            if row.byte(1)? != 0 {
                let oid = row.oid(0)?;
                first = Some(first.map_or(oid, |first| first.min(oid)));
            }
            Ok(())
        })?;
        first.ok_or_else(|| Error::refused(NewDatabaseCause::NoOwner))
    }

    fn shared_object(&self, table: Oid, column: &str, name: &str, kind: &str) -> Result<Oid> {
        let (mut found, mut names) = (None, Vec::new());
        self.scan_shared(table, &["oid", column], |row| {
            let stored = row.name(1)?;
            if *stored == *name.as_bytes() {
                found = Some(row.oid(0)?);
            }
            names.push(String::from_utf8_lossy(&stored).into_owned());
            Ok(())
        })?;
        found.ok_or_else(|| {
            let near = crate::names::nearest(name, names.iter().map(String::as_str), 3);
            let near = near.into_iter().map(str::to_owned).collect();
            Error::NotFound { what: format!("{kind} \"{name}\""), near }
        })
    }
}

impl Database {
    /// The setting `search_path` of a new session of the first superuser, as it is written.
    ///
    /// # Errors
    /// When the settings cannot be read.
    pub fn search_path_setting(&self) -> Result<String> {
        let written = self.session_settings()?.get("search_path");
        Ok(written.map_or("\"$user\", public".into(), String::from_utf8_lossy).into_owned())
    }

    /// Whose rights the session has: its user's, or the first superuser's.
    ///
    /// # Errors
    /// When `pg_authid` cannot be read.
    pub fn current_user(&self) -> Result<Box<[u8]>> {
        Ok(DatabaseSettings::read(self)?.names.user)
    }

    /// Who connected.
    ///
    /// # Errors
    /// When `pg_authid` cannot be read.
    pub fn session_user(&self) -> Result<Box<[u8]>> {
        match &self.session().session_user {
            Some(user) => Ok(user.clone()),
            None => self.current_user(),
        }
    }

    /// True where `search_path` names `pg_catalog` and does not leave it to the server to look there first.
    ///
    /// # Errors
    /// When the settings cannot be read.
    pub fn names_pg_catalog(&self) -> Result<bool> {
        let names = DatabaseSettings::read(self)?.names;
        Ok(names.search_path.iter().any(|name| **name == *b"pg_catalog"))
    }

    /// Where a new session of the first superuser looks up names without a schema.
    ///
    /// # Errors
    /// When the settings or `pg_namespace` cannot be read.
    pub fn search_path(&self) -> Result<SearchPath> {
        let names = DatabaseSettings::read(self)?.names;
        let namespaces = DatabaseRows::new(self.clone()).namespaces()?;
        Ok(SearchPath::resolve(&names.search_path, &names.user, &namespaces))
    }
}
