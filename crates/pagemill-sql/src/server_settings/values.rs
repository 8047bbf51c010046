//! The values of settings: of a session, of the files, of the cluster.
//!
//! Invariant: what a client set goes before what the cluster tells, that before the files, and those before what a server begins with.
//!
//! Source: `GetConfigOptionValues` in `src/backend/utils/misc/guc_funcs.c`, `XLOGChooseNumBuffers` in
//! `src/backend/access/transam/xlog.c`, `SimpleLruAutotuneBuffers` in `slru.c`, PostgreSQL 14 to 18.

use pagemill_format::Oid;

use super::known::known;
use super::{Fact, listed};
use crate::catalog::Catalog;
use crate::error::{Result, SqlState, StatementError};
use crate::rights::By;
use crate::session::SettingValues;

/// What every transaction begins with anew.
const OF_TRANSACTIONS: [&str; 3] =
    ["transaction_deferrable", "transaction_isolation", "transaction_read_only"];

/// Whose rights it takes to see all settings.
///
/// Source: `ROLE_PG_READ_ALL_SETTINGS` in `src/include/catalog/pg_authid.dat`, PostgreSQL 14 to 18.
const READ_ALL_SETTINGS: Oid = Oid(3374);

/// What stands for a command that is not used.
const DISABLED: &str = "(disabled)";

/// The settings of a session of a cluster.
pub(crate) struct ServerSettings<'s> {
    catalog: &'s Catalog,
    /// What a client set.
    client: &'s SettingValues,
}

/// What a setting is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SettingValue {
    /// In the setting's own unit; none where there is nothing.
    pub(crate) plain: Option<String>,
    /// What it would be if the session had not set it.
    pub(crate) reset: Option<String>,
    /// Who said so.
    pub(crate) source: &'static str,
}

/// Pages of shared memory to one of a buffer that is sized by it: the number, the least, the most, and what it is a multiple of.
struct Share {
    part: u32,
    least: u32,
    most: u32,
    multiple: u32,
}

impl<'s> ServerSettings<'s> {
    pub(crate) fn new(catalog: &'s Catalog, client: &'s SettingValues) -> Self {
        Self { catalog, client }
    }

    fn major(&self) -> u32 {
        self.catalog.database().cluster().version().major()
    }

    /// All that are listed, in their order, each with its value.
    ///
    /// # Errors
    /// When the cluster's catalogs cannot be read, or the setting may not be seen.
    pub(crate) fn all(&self) -> Result<Vec<(&'static Fact, SettingValue)>> {
        let is_hidden = self.hides_some()?;
        let shown = listed(self.major()).filter(|fact| !(is_hidden && fact.is_for_superusers()));
        shown.map(|fact| Ok((fact, self.value(fact)?))).collect()
    }

    /// Whether who asks sees only what everybody may.
    fn hides_some(&self) -> Result<bool> {
        if self.catalog.role().is_none() {
            return Ok(false);
        }
        let members = self.catalog.members()?;
        let user = members.named(&self.catalog.database().current_user()?);
        // Since 15 it takes a membership that rights are inherited by.
        let sees_all = |user: Oid| match self.major() {
            14 => members.is_member(user, READ_ALL_SETTINGS, By::Member),
            _ => members.has_rights_of(user, READ_ALL_SETTINGS),
        };
        Ok(!user.is_some_and(sees_all))
    }

    #[cold]
    fn denied(&self, fact: &Fact) -> StatementError {
        let name = fact.name;
        let denied = |message| StatementError::new(SqlState("42501"), message);
        match self.major() {
            14 => denied(format!(
                "must be superuser or a member of pg_read_all_settings to examine \"{name}\""
            )),
            15 => denied(format!(
                "must be superuser or have privileges of pg_read_all_settings to examine \"{name}\""
            )),
            _ => denied(format!("permission denied to examine \"{name}\"")),
        }
    }

    /// The value of a setting.
    ///
    /// # Errors
    /// As [`Self::all`].
    pub(crate) fn value(&self, fact: &Fact) -> Result<SettingValue> {
        let (reset, source) = self.without_client(fact)?;
        let own = self.client.get(&fact.name.to_ascii_lowercase());
        // Whose rights there are is told by the session alone.
        let own = own.filter(|_| !fact.is_internal() || fact.name == "is_superuser");
        let own = own.map(|value| fact.plain(value).unwrap_or_else(|| value.clone())); // default: as it was set
        Ok(match own {
            Some(own) if Some(&own) != reset.as_ref() => {
                SettingValue { plain: Some(own), reset, source: "session" }
            }
            _ => SettingValue { plain: reset.clone(), reset, source },
        })
    }

    /// What it is for everybody, and where that comes from.
    fn without_client(&self, fact: &Fact) -> Result<(Option<String>, &'static str)> {
        if let Some(known) = known(self.catalog, fact.name)? {
            let is_own = OF_TRANSACTIONS.contains(&fact.name);
            return Ok((Some(known), if is_own { "override" } else { "default" }));
        }
        let (value, source) = match self.of_files(fact)? {
            Some((value, source)) => (Some(value), source),
            None if OF_TRANSACTIONS.contains(&fact.name) => {
                (fact.boot.map(str::to_owned), "override")
            }
            None => (fact.boot.map(str::to_owned), "default"),
        };
        Ok(match self.sized(fact, value.as_deref())? {
            Some(sized) => (Some(sized), source),
            None => (value, source),
        })
    }

    fn of_files(&self, fact: &Fact) -> Result<Option<(String, &'static str)>> {
        let settings = self.catalog.database().session_settings()?;
        let Some(setting) = settings.setting(fact.name).filter(|_| !fact.is_internal()) else {
            return Ok(None);
        };
        let value = String::from_utf8_lossy(&setting.value);
        let plain = match fact.name {
            "TimeZone" | "log_timezone" => {
                self.catalog.database().time_zone_of_setting(&value).map(|zone| zone.name)
            }
            _ => fact.plain(&value),
        };
        let source = match (&setting.file, fact.context) {
            (Some(_), _) => "configuration file",
            // No statement changes them, so that the command line did.
            (None, "postmaster" | "sighup") => "command line",
            (None, _) => "database",
        };
        Ok(Some((plain.unwrap_or_else(|| value.into_owned()), source))) // default: as it stands
    }

    /// What a server makes of a buffer that is to have the size that fits the others.
    fn sized(&self, fact: &Fact, value: Option<&str>) -> Result<Option<String>> {
        let segment = self.catalog.database().cluster().control().build.wal_segment_size;
        let share = match (fact.name, value) {
            ("wal_buffers", Some("-1")) => {
                Share { part: 32, least: 8, most: (segment / 8192).max(8), multiple: 1 }
            }
            (
                "commit_timestamp_buffers" | "subtransaction_buffers" | "transaction_buffers",
                Some("0"),
            ) => Share { part: 512, least: 16, most: 1024, multiple: 16 },
            _ => return Ok(None),
        };
        let Some(shared) = super::fact(self.major(), "shared_buffers") else { return Ok(None) };
        let pages = self.value(shared)?.plain.and_then(|pages| pages.parse::<u32>().ok());
        Ok(pages.map(|pages| {
            let part = pages / share.part;
            (part - part % share.multiple).clamp(share.least, share.most).to_string()
        }))
    }

    /// What lists show of a setting.
    ///
    /// # Errors
    /// As [`Self::all`].
    pub(crate) fn in_list(&self, fact: &Fact, value: &SettingValue) -> Result<String> {
        match self.is_disabled(fact)? {
            true => Ok(DISABLED.to_owned()),
            false => {
                Ok(value.plain.as_deref().map(|plain| fact.in_list(plain)).unwrap_or_default())
            } // default: none is shown as empty
        }
    }

    /// A setting's name as it is spelled, and what is shown of it alone; `None` where there is no such setting.
    ///
    /// # Errors
    /// As [`Self::all`].
    pub(crate) fn shown(&self, name: &str) -> Result<Option<(String, String)>> {
        let Some(fact) = super::fact(self.major(), name) else {
            return Ok(self.of_application(name)?.map(|value| (name.to_owned(), value)));
        };
        if fact.is_for_superusers() && self.hides_some()? {
            return Err(self.denied(fact).into());
        }
        let value = self.value(fact)?;
        Ok(Some((fact.name.to_owned(), self.shown_value(fact, &value)?)))
    }

    /// What is shown of a setting alone.
    ///
    /// # Errors
    /// As [`Self::all`].
    pub(crate) fn shown_value(&self, fact: &Fact, value: &SettingValue) -> Result<String> {
        match self.is_disabled(fact)? {
            true => Ok(DISABLED.to_owned()),
            false => Ok(value.plain.as_deref().map(|plain| fact.shown(plain)).unwrap_or_default()), // default: none is shown as empty
        }
    }

    /// A command is not shown while nothing is archived.
    fn is_disabled(&self, fact: &Fact) -> Result<bool> {
        if fact.name != "archive_command" {
            return Ok(false);
        }
        let Some(mode) = super::fact(self.major(), "archive_mode") else { return Ok(false) };
        Ok(self.value(mode)?.plain.as_deref() == Some("off"))
    }

    /// One that an application made up, which has a dot in its name.
    fn of_application(&self, name: &str) -> Result<Option<String>> {
        let name = name.to_lowercase();
        if !name.contains('.') {
            return Ok(None);
        }
        if let Some(value) = self.client.get(&name) {
            return Ok(Some(value.clone()));
        }
        let settings = self.catalog.database().session_settings()?;
        Ok(settings.get(&name).map(|value| String::from_utf8_lossy(value).into_owned()))
    }
}
