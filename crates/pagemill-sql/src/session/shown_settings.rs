//! Settings as `SHOW` shows them, for what serves sessions.
//!
//! Invariant: they are what `current_setting` tells in a statement of the same session.
//!
//! Source: `GetPGVariable` in `src/backend/utils/misc/guc_funcs.c` (`guc.c` until 15), PostgreSQL 14 to 18.

use std::borrow::Cow;

use super::{Session, SettingValues};
use crate::error::Result;
use crate::server_settings::{ServerSettings, fact};

impl Session {
    /// A setting's name as it is spelled, and what is shown of it; `None` where there is no such setting. Looks into files.
    ///
    /// # Errors
    /// When the cluster's catalogs cannot be read.
    pub fn shown_setting(&self, name: &str) -> Result<Option<(String, String)>> {
        ServerSettings::new(&self.catalog, &self.client_settings()).shown(name)
    }

    /// The same of all settings that lists have, in their order.
    ///
    /// # Errors
    /// As [`Self::shown_setting`].
    pub fn shown_settings(&self) -> Result<Vec<(String, String)>> {
        let client = self.client_settings();
        let settings = ServerSettings::new(&self.catalog, &client);
        let all = settings.all()?.into_iter();
        all.map(|(fact, value)| Ok((fact.name.to_owned(), settings.shown_value(fact, &value)?)))
            .collect()
    }

    /// How a setting with this value is spelled and shown; `None` where the cluster's version has no such setting.
    pub fn setting_shown_as(&self, name: &str, value: &str) -> Option<(String, String)> {
        let fact = fact(self.catalog.database().cluster().version().major(), name)?;
        let shown = fact.plain(value).map(|plain| fact.shown(&plain));
        Some((fact.name.to_owned(), shown.unwrap_or_else(|| value.to_owned()))) // default: as it was set
    }

    /// What a client set, if there is one.
    fn client_settings(&self) -> Cow<'_, SettingValues> {
        self.settings.as_deref().map_or_else(Cow::default, Cow::Borrowed)
    }
}
