//! The catalogs behind [`crate::names`], and the settings that decide how names and amounts of
//! money are printed.
//!
//! The settings are those a new session of the cluster's first superuser would have: from
//! `postgresql.conf`, `postgresql.auto.conf` and the command line of the server's last start, then
//! from `pg_db_role_setting`, for all databases' and this database's sessions.

use std::io;
use std::path::Path;

use pagemill_format::reader::Reader;
use pagemill_format::{Error as FormatError, Oid};
use pagemill_io::{ErrorKind, Storage};
use pagemill_types::array;
use pagemill_types::value_styles::DateSetting;

use crate::database::{Database, catalog};
use crate::date_settings::{date_setting, date_style_over};
use crate::directory_state::DirectoryState;
use crate::error::{Error, Result};
use crate::names::{
    CollationRow, GlobalRow, NameCatalog, NameRows, NameSettings, NamedRow, OperatorRow, ProcRow,
    TypeRow,
};
use crate::settings::{
    SettingFiles, SettingProblem, Settings, parse_role_setting, parse_search_path,
};
use crate::system_table::Row;
use crate::toast::ToastReader;

/// The superuser that initdb makes.
const BOOTSTRAP_SUPERUSER: Oid = Oid(10);
const CONFIGURATION_LIMIT: u64 = 1 << 22;

/// The names of one database.
pub(crate) type DatabaseNames = NameCatalog<DatabaseRows>;

/// Reads the rows of names from a database.
#[derive(Debug)]
pub(crate) struct DatabaseRows {
    database: Database,
}

impl DatabaseNames {
    pub(crate) fn new_for(database: Database, settings: NameSettings) -> Self {
        NameCatalog::new(DatabaseRows::new(database), settings)
    }
}

impl DatabaseRows {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    fn collect<T>(
        &self,
        oid: Oid,
        wanted: &[&str],
        mut read: impl FnMut(&Row<'_>) -> Result<T, FormatError>,
    ) -> Result<Vec<T>> {
        let mut found = Vec::new();
        self.database.scan(oid, wanted, |row| {
            found.push(read(row)?);
            Ok(())
        })?;
        Ok(found)
    }

    fn named(&self, oid: Oid, wanted: [&str; 3]) -> Result<Vec<NamedRow>> {
        self.collect(oid, &wanted, |row| {
            Ok(NamedRow { oid: row.oid(0)?, name: row.name(1)?, namespace: row.oid(2)? })
        })
    }

    fn global(&self, oid: Oid, name: &str) -> Result<Vec<GlobalRow>> {
        self.collect(oid, &["oid", name], |row| {
            Ok(GlobalRow { oid: row.oid(0)?, name: row.name(1)? })
        })
    }
}

impl NameRows for DatabaseRows {
    type Error = Error;

    fn namespaces(&self) -> Result<Vec<GlobalRow>> {
        self.global(catalog::PG_NAMESPACE, "nspname")
    }

    fn roles(&self) -> Result<Vec<GlobalRow>> {
        self.global(catalog::PG_AUTHID, "rolname")
    }

    fn classes(&self) -> Result<Vec<NamedRow>> {
        let row = |c: &crate::relation::ClassRow| NamedRow {
            oid: c.oid,
            name: c.name.clone(),
            namespace: c.namespace,
        };
        Ok(self.database.classes().iter().map(row).collect())
    }

    fn types(&self) -> Result<Vec<TypeRow>> {
        let row = |t: &crate::value_types::TypeRow| TypeRow {
            oid: t.oid,
            name: t.name.clone(),
            namespace: t.namespace,
            element: t.element,
            subscript: t.subscript,
            storage: t.storage,
        };
        Ok(self.database.types()?.rows().map(row).collect())
    }

    fn procs(&self) -> Result<Vec<ProcRow>> {
        let wanted = ["oid", "proname", "pronamespace", "proargtypes"];
        self.collect(catalog::PG_PROC, &wanted, |row| {
            Ok(ProcRow {
                oid: row.oid(0)?,
                name: row.name(1)?,
                namespace: row.oid(2)?,
                args: oid_vector(&row.payload(3)?.unwrap_or_default())?,
            })
        })
    }

    fn operators(&self) -> Result<Vec<OperatorRow>> {
        let wanted = ["oid", "oprname", "oprnamespace", "oprleft", "oprright"];
        self.collect(catalog::PG_OPERATOR, &wanted, |row| {
            Ok(OperatorRow {
                oid: row.oid(0)?,
                name: row.name(1)?,
                namespace: row.oid(2)?,
                left: row.oid(3)?,
                right: row.oid(4)?,
            })
        })
    }

    fn collations(&self) -> Result<Vec<CollationRow>> {
        let wanted = ["oid", "collname", "collnamespace", "collprovider", "collencoding"];
        self.collect(catalog::PG_COLLATION, &wanted, |row| {
            Ok(CollationRow {
                oid: row.oid(0)?,
                name: row.name(1)?,
                namespace: row.oid(2)?,
                provider: row.byte(3)?,
                encoding: row.i32(4)?,
            })
        })
    }

    fn ts_configs(&self) -> Result<Vec<NamedRow>> {
        self.named(catalog::PG_TS_CONFIG, ["oid", "cfgname", "cfgnamespace"])
    }

    fn ts_dicts(&self) -> Result<Vec<NamedRow>> {
        self.named(catalog::PG_TS_DICT, ["oid", "dictname", "dictnamespace"])
    }
}

/// The values of an `oidvector`, given its payload: an array header of 20 bytes, then the OIDs.
fn oid_vector(payload: &[u8]) -> Result<Box<[Oid]>, FormatError> {
    let mut r = Reader::new("oidvector", payload);
    r.bytes(20)?;
    let mut oids = Vec::with_capacity(r.remaining() / 4);
    while r.remaining() >= 4 {
        oids.push(Oid(r.u32()?));
    }
    Ok(oids.into())
}

/// The settings of a new session that printing depends on.
pub(crate) struct DatabaseSettings {
    pub(crate) names: NameSettings,
    pub(crate) lc_monetary: Option<String>,
    pub(crate) problems: Vec<SettingProblem>,
}

impl DatabaseSettings {
    pub(crate) fn read(database: &Database) -> Result<Self> {
        let (cluster, settings) = (database.cluster(), database.session_settings()?);
        let mut names = NameSettings::new(cluster.version(), database.row().encoding);
        if let Some(user) = user_name(database)? {
            names.user = user;
        }
        let configured = || settings.get("search_path").and_then(parse_search_path);
        match &database.session().search_path {
            Some(path) => names.search_path.clone_from(path),
            None => names.search_path = configured().unwrap_or(names.search_path),
        }
        let lc_monetary =
            settings.get("lc_monetary").map(|value| String::from_utf8_lossy(value).into_owned());
        let lc_monetary = lc_monetary.filter(|value| !value.is_empty());
        Ok(Self { names, lc_monetary, problems: settings.problems().to_vec() })
    }
}

impl DirectoryState {
    /// The settings of the configuration files, as a server that starts reads them.
    pub fn settings(&self) -> Settings {
        let files = StorageFiles(self.storage());
        Settings::of_cluster(self.path(), self.version().major(), &files)
    }
}

/// Reads the settings of a new session.
pub(crate) fn read_session_settings(database: &Database) -> Result<Settings> {
    let cluster = database.cluster();
    let files = StorageFiles(cluster.storage());
    let mut settings = Settings::of_cluster(cluster.path(), cluster.version().major(), &files);
    apply_role_settings(database, BOOTSTRAP_SUPERUSER, &mut settings)?;
    Ok(settings)
}

impl Database {
    /// What the server's files say of `DateStyle`, whatever `ALTER ROLE` and `ALTER DATABASE` say.
    pub fn date_setting_of_files(&self) -> DateSetting {
        let cluster = self.cluster();
        let files = StorageFiles(cluster.storage());
        date_setting(&Settings::of_cluster(cluster.path(), cluster.version().major(), &files))
    }

    /// The settings with which a new session of a role begins, by their names in small letters: what the server's files say, and
    /// `ALTER DATABASE` and `ALTER ROLE`.
    ///
    /// # Errors
    /// When `pg_db_role_setting` cannot be read.
    pub fn settings_of_role(&self, role: Oid) -> Result<Vec<(String, String)>> {
        let cluster = self.cluster();
        let files = StorageFiles(cluster.storage());
        let mut settings = Settings::of_cluster(cluster.path(), cluster.version().major(), &files);
        apply_role_settings(self, role, &mut settings)?;
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let all = settings.iter().map(|(name, value)| (name.to_owned(), text(value)));
        let mut all: Vec<_> = all.collect();
        all.sort_unstable();
        Ok(all)
    }
}

/// Who asks: the session's user, or the first superuser.
fn user_name(database: &Database) -> Result<Option<Box<[u8]>>> {
    if let Some(user) = &database.session().user {
        return Ok(Some(user.clone()));
    }
    let mut found = None;
    database.scan(catalog::PG_AUTHID, &["oid", "rolname"], |row| {
        if row.oid(0)? == BOOTSTRAP_SUPERUSER {
            found = Some(row.name(1)?);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Settings by `ALTER ROLE ALL`, `ALTER DATABASE` and `ALTER ROLE` of this one, the more special
/// ones last, as a new session applies them.
fn apply_role_settings(database: &Database, role: Oid, settings: &mut Settings) -> Result<()> {
    let Some(class) = database.class(catalog::PG_DB_ROLE_SETTING) else { return Ok(()) };
    let file = database.base_path(class)?;
    let mut rows = role_settings(database, role)?;
    rows.sort_by_key(|(rank, _)| *rank);
    let mut toast = ToastReader::new(database.clone());
    let dates = date_setting(settings);
    for (_, stored) in rows {
        let payload = toast.payload(&stored, &file)?;
        let entries = array::text_elements(&payload);
        for entry in entries.map_err(|error| Error::file_damage(&file, &error))? {
            if let Some((name, value)) = parse_role_setting(&entry) {
                match date_style_over(dates, &name, value) {
                    Some(merged) => settings.set(&name, merged.as_bytes()),
                    None => settings.set(&name, value),
                }
            }
        }
    }
    Ok(())
}

/// The settings of `pg_db_role_setting` that apply, as they are stored (many are in a TOAST
/// table), each with its rank.
fn role_settings(database: &Database, role: Oid) -> Result<Vec<(usize, Vec<u8>)>> {
    let own = database.row().oid;
    let mut rows = Vec::new();
    let wanted = ["setdatabase", "setrole", "setconfig"];
    database.scan(catalog::PG_DB_ROLE_SETTING, &wanted, |row| {
        let rank = match (row.oid(0)?, row.oid(1)?) {
            (Oid::INVALID, Oid::INVALID) => 0,
            (of, Oid::INVALID) if of == own => 1,
            (Oid::INVALID, of_role) if of_role == role => 2,
            (of, of_role) if of == own && of_role == role => 3,
            _ => return Ok(()),
        };
        rows.extend(row.raw(2).map(|stored| (rank, stored.to_vec())));
        Ok(())
    })?;
    Ok(rows)
}

struct StorageFiles<'a>(&'a Storage);

impl StorageFiles<'_> {
    /// The names of what is in a directory: of directories, or of what is none.
    fn entries(&self, directory: &Path, directories: bool) -> io::Result<Vec<String>> {
        let entries = self.0.read_dir(directory).map_err(|error| plain_error(&error))?;
        let names = entries.into_iter().filter_map(|entry| entry.name.into_string().ok());
        let is_wanted = |name: &String| {
            let found = self.0.metadata(&directory.join(name));
            found.is_ok_and(|found| found.is_dir == directories)
        };
        Ok(names.filter(is_wanted).collect())
    }
}

fn plain_error(error: &pagemill_io::Error) -> io::Error {
    let kind = match error.kind() {
        ErrorKind::NotFound => io::ErrorKind::NotFound,
        ErrorKind::Permission => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error.to_string())
}

impl SettingFiles for StorageFiles<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.0.read_file(path, CONFIGURATION_LIMIT).map_err(|error| plain_error(&error))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        self.entries(directory, false)
    }

    fn directories(&self, directory: &Path) -> io::Result<Vec<String>> {
        self.entries(directory, true)
    }

    fn is_same(&self, one: &Path, other: &Path) -> bool {
        self.0.is_same(one, other)
    }
}
