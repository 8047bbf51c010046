//! The settings of a session: what a client may ask, and set.
//!
//! Answers are printed in the session's time zone, and by its styles. Another setting that would change what is printed can be set
//! to what it is, and to nothing else; one that changes how fast or how long a statement runs can be set to anything.
//!
//! Values that are set in a transaction go with it, or with a part of it, when that is rolled back, and those that are `LOCAL` to it at its
//! end in any case. A setting of an application that was set once is there from then on, empty where nothing else is said.
//!
//! Source: `src/backend/utils/misc/guc_tables.c`, PostgreSQL 18, for names, defaults and units.

mod styles;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use pagemill_cluster::settings::parse_search_path;
use pagemill_sql::session::SettingValues;
use pagemill_sql::{SqlState, StatementError};

use crate::command::SetSetting;

type Result<T, E = StatementError> = std::result::Result<T, E>;

/// Names as `SHOW` and `ParameterStatus` spell them, with the values that clients are told when they connect.
const REPORTED: [(&str, &str); 10] = [
    ("application_name", ""),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("default_transaction_read_only", "on"),
    ("in_hot_standby", "off"),
    ("integer_datetimes", "on"),
    ("IntervalStyle", "postgres"),
    ("is_superuser", "on"),
    ("standard_conforming_strings", "on"),
    ("TimeZone", "UTC"),
];

/// More that can be shown, and set to what it is.
const FIXED: [(&str, &str); 8] = [
    ("array_nulls", "on"),
    ("backslash_quote", "safe_encoding"),
    (DEFAULT_ISOLATION, LEVELS[2]),
    ("quote_all_identifiers", "off"),
    (ISOLATION, LEVELS[2]),
    ("transaction_read_only", "on"),
    ("transform_null_equals", "off"),
    ("xmlbinary", "base64"),
];

/// How far a transaction is kept apart from others, and how far one is that begins. As nothing is written, what all of them promise holds.
const ISOLATION: &str = "transaction_isolation";
const DEFAULT_ISOLATION: &str = "default_transaction_isolation";
const LEVELS: [&str; 4] = ["serializable", "repeatable read", "read committed", "read uncommitted"];

/// Those that the cluster's files say, with what a server has that they say nothing to; the locales of a session are not followed here, so they are set to what
/// they are and to nothing else.
const OF_FILES: [(&str, &str); 5] = [
    ("default_text_search_config", "pg_catalog.simple"),
    ("lc_messages", ""),
    ("lc_monetary", "C"),
    ("lc_numeric", "C"),
    ("lc_time", "C"),
];

/// What changes no answer.
const FREE: [(&str, &str); 32] = [
    ("check_function_bodies", "on"),
    ("client_min_messages", "notice"),
    ("cursor_tuple_fraction", "0.1"),
    ("default_statistics_target", "100"),
    ("default_table_access_method", "heap"),
    ("effective_cache_size", "4GB"),
    ("enable_hashagg", "on"),
    ("enable_hashjoin", "on"),
    ("enable_indexscan", "on"),
    ("enable_mergejoin", "on"),
    ("enable_nestloop", "on"),
    ("enable_seqscan", "on"),
    ("enable_sort", "on"),
    ("escape_string_warning", "on"),
    ("from_collapse_limit", "8"),
    ("geqo", "on"),
    ("idle_in_transaction_session_timeout", "0"),
    ("idle_session_timeout", "0"),
    ("jit", "on"),
    ("join_collapse_limit", "8"),
    ("lock_timeout", "0"),
    ("log_min_duration_statement", "-1"),
    ("maintenance_work_mem", "64MB"),
    ("max_parallel_workers_per_gather", "2"),
    ("plan_cache_mode", "auto"),
    ("random_page_cost", "4"),
    ("seq_page_cost", "1"),
    ("statement_timeout", "0"),
    ("synchronize_seqscans", "on"),
    (SYNCHRONOUS_COMMIT, "on"),
    ("transaction_timeout", "0"),
    ("work_mem", "4MB"),
];

/// One that has more values than `on` and `off`.
const SYNCHRONOUS_COMMIT: &str = "synchronous_commit";

/// Whether policies leave out rows, or are errors where they would.
const ROW_SECURITY: &str = "row_security";

/// Whose rights the session has, and what stands there for its user's own.
const ROLE: &str = "role";
const NO_ROLE: &str = "none";
const IS_SUPERUSER: &str = "is_superuser";

/// Whose session it is.
const SESSION_AUTHORIZATION: &str = "session_authorization";

/// What stays when all settings get their defaults.
const KEPT: [&str; 4] = [ROLE, IS_SUPERUSER, SESSION_AUTHORIZATION, ISOLATION];

/// By names in small letters: as it is spelled, and the value.
type Values = BTreeMap<String, (String, String)>;

/// A session's settings.
#[derive(Debug, Clone)]
pub struct Settings {
    values: Values,
    defaults: Values,
    /// While there is a transaction.
    transaction: Option<Ends>,
    /// How often they were changed.
    changes: u64,
    /// Clients of 18 are told of their search path, and of names as they are spelled.
    is_of_18: bool,
}

/// How settings will be after a transaction.
#[derive(Debug, Clone)]
struct Ends {
    committed: Values,
    rolled_back: Values,
    savepoints: Vec<Savepoint>,
}

/// How settings were when a savepoint was made.
#[derive(Debug, Clone)]
struct Savepoint {
    name: String,
    values: Values,
    committed: Values,
}

/// What the settings of a session begin with.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The server's version as it is shown.
    pub version: &'a str,
    /// The server's major version.
    pub major: u32,
    /// Who connects.
    pub user: &'a str,
    /// Whether nothing is kept from it.
    pub is_superuser: bool,
    /// The configured search path.
    pub search_path: &'a str,
    /// The configured time zone.
    pub time_zone: &'a str,
}

impl Settings {
    /// Those of a new session.
    pub fn new(origin: Origin<'_>) -> Self {
        // Which minor version wrote the files is not in them.
        let number = (origin.major * 10_000).to_string();
        let own = [
            // Over what stands in REPORTED.
            ("is_superuser", if origin.is_superuser { "on" } else { "off" }),
            ("server_version", origin.version),
            ("server_version_num", &number),
            ("server_encoding", "UTF8"),
            (SESSION_AUTHORIZATION, origin.user),
            ("search_path", origin.search_path),
            ("TimeZone", origin.time_zone),
            (ROLE, NO_ROLE),
            (ROW_SECURITY, "on"),
            ("max_identifier_length", "63"),
            ("block_size", "8192"),
        ];
        let all = REPORTED.into_iter().chain(FIXED).chain(OF_FILES).chain(FREE);
        let all = all.chain(styles::STYLES).chain(own);
        let entry = |(name, value): (&str, &str)| {
            (name.to_lowercase(), (name.to_owned(), value.to_owned()))
        };
        let values: Values = all.map(entry).collect();
        let is_of_18 = origin.major >= 18;
        Self { defaults: values.clone(), values, transaction: None, changes: 0, is_of_18 }
    }

    /// True for a setting, by its name in small letters, that can be anything here.
    pub fn changes_no_answer(name: &str) -> bool {
        FREE.iter().any(|(free, _)| *free == name)
    }

    /// True for a setting, by its name in small letters, that is what the files say.
    pub fn is_of_files(name: &str) -> bool {
        OF_FILES.iter().any(|(known, _)| *known == name)
    }

    /// What the files say of a setting.
    ///
    /// # Panics
    /// When it is none [of the files](Self::is_of_files).
    pub fn take_of_files(&mut self, name: &str, value: String) {
        assert!(Self::is_of_files(name), "{name} is what a session has it");
        for values in [&mut self.values, &mut self.defaults] {
            values.insert(name.to_owned(), (name.to_owned(), value.clone()));
        }
    }

    /// What a client is told of when it connects.
    pub fn reported(&self) -> impl Iterator<Item = &(String, String)> {
        let own = ["server_version", "server_encoding", SESSION_AUTHORIZATION];
        let names = REPORTED.iter().map(|(name, _)| *name).chain(own);
        let path = self.is_of_18.then_some("search_path");
        names.chain(path).filter_map(|name| self.values.get(&name.to_lowercase()))
    }

    /// The name as it is spelled, and the value.
    ///
    /// # Errors
    /// When there is no such setting here.
    pub fn show(&self, name: &str) -> Result<&(String, String)> {
        self.values.get(&name.to_lowercase()).ok_or_else(|| unknown(name))
    }

    /// Whether there is such a setting.
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(&name.to_lowercase())
    }

    /// A transaction begins, with a level of isolation or that of the session.
    ///
    /// # Errors
    /// Where there is no such level.
    pub fn begin(&mut self, isolation: Option<&str>) -> Result<()> {
        let isolation = isolation.map(|value| level(ISOLATION, value)).transpose()?;
        let values = || self.values.clone();
        let (committed, rolled_back) = (values(), values());
        self.transaction = Some(Ends { committed, rolled_back, savepoints: Vec::new() });
        if let Some(isolation) = isolation {
            self.changes += 1;
            self.values.insert(ISOLATION.to_owned(), (ISOLATION.to_owned(), isolation));
        }
        Ok(())
    }

    /// How far the transaction is kept apart from others.
    pub fn isolation(&self) -> &str {
        &self.values[ISOLATION].1
    }

    /// Without a transaction, each statement is one, of the session's level.
    fn follow_default_isolation(&mut self) {
        if self.transaction.is_none() {
            let value = self.values[DEFAULT_ISOLATION].1.clone();
            self.values.insert(ISOLATION.to_owned(), (ISOLATION.to_owned(), value));
        }
    }

    /// A place in the transaction to come back to.
    pub fn save(&mut self, name: &str) {
        if let Some(ends) = &mut self.transaction {
            let (values, committed) = (self.values.clone(), ends.committed.clone());
            ends.savepoints.push(Savepoint { name: name.to_owned(), values, committed });
        }
    }

    /// Forgets a savepoint and those behind it.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn release(&mut self, name: &str) -> Result<()> {
        let at = self.savepoint(name)?;
        if let Some(ends) = &mut self.transaction {
            ends.savepoints.truncate(at);
        }
        Ok(())
    }

    /// Values are again what they were at a savepoint, which stays.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn roll_back_to(&mut self, name: &str) -> Result<()> {
        let at = self.savepoint(name)?;
        if let Some(ends) = &mut self.transaction {
            ends.savepoints.truncate(at + 1);
            let Savepoint { values, committed, .. } = &ends.savepoints[at];
            self.values.clone_from(values);
            ends.committed.clone_from(committed);
            self.changes += 1;
            self.keep_custom();
        }
        Ok(())
    }

    fn savepoint(&self, name: &str) -> Result<usize> {
        let made = self.transaction.as_ref().map_or(&[][..], |ends| &ends.savepoints);
        made.iter().rposition(|savepoint| savepoint.name == name).ok_or_else(|| {
            let message = format!("savepoint \"{name}\" does not exist");
            StatementError::new(SqlState("3B001"), message)
        })
    }

    /// One of an application that was ever set stays there, if only with its default.
    fn keep_custom(&mut self) {
        for (key, default) in self.defaults.iter().filter(|(key, _)| key.contains('.')) {
            self.values.entry(key.clone()).or_insert_with(|| default.clone());
        }
    }

    /// A transaction ends.
    pub fn end(&mut self, is_commit: bool) {
        if let Some(ends) = self.transaction.take() {
            self.values = if is_commit { ends.committed } else { ends.rolled_back };
            self.changes += 1;
            self.keep_custom();
            self.follow_default_isolation();
        }
    }

    /// Sets a value, or the default where there is none. Without a transaction, what is local to one has no effect.
    ///
    /// # Errors
    /// When there is no such setting, or answers would have to look otherwise.
    pub fn set(&mut self, set: &SetSetting) -> Result<()> {
        let key = set.name.to_lowercase();
        let value = self.changed(&key, set)?;
        self.changes += 1;
        if key.contains('.') {
            let nothing = || (set.name.clone(), String::new());
            self.defaults.entry(key.clone()).or_insert_with(nothing);
        }
        for values in self.set_in(set.is_local || key == ISOLATION) {
            match &value {
                Some(value) => drop(values.insert(key.clone(), value.clone())),
                None => drop(values.remove(&key)),
            }
        }
        self.keep_custom();
        self.follow_default_isolation();
        if key != SESSION_AUTHORIZATION {
            return Ok(());
        }
        // Whoever it is of then has no other rights than its own, for as long.
        let value = set.value.as_ref().map(|_| NO_ROLE.to_owned());
        self.set(&SetSetting { name: ROLE.to_owned(), value, is_local: set.is_local })
    }

    /// What a setting is to be: its name as it is spelled, and the value; `None` for one that is gone.
    fn changed(&self, key: &str, set: &SetSetting) -> Result<Option<(String, String)>> {
        let name = &set.name;
        let is_own = key.contains('.');
        let Some(value) = set.value.as_deref() else {
            return match self.defaults.get(key) {
                None if !is_own => Err(unknown(name)),
                default => Ok(default.cloned()),
            };
        };
        if is_own {
            return Ok(Some((name.clone(), value.to_owned())));
        }
        let Some((spelled, current)) = self.values.get(key) else { return Err(unknown(name)) };
        if key.ends_with("_timeout") {
            return Ok(Some((spelled.clone(), shown_time(milliseconds(spelled, value)?))));
        }
        if key == "search_path" && parse_search_path(value.as_bytes()).is_none() {
            return Err(invalid(spelled, value));
        }
        if [ISOLATION, DEFAULT_ISOLATION].contains(&key) {
            return Ok(Some((spelled.clone(), level(spelled, value)?)));
        }
        if key == ROW_SECURITY || FREE.contains(&(key, "on")) && key != SYNCHRONOUS_COMMIT {
            let is_on = boolean(value).ok_or_else(|| {
                let message = format!("parameter \"{spelled}\" requires a Boolean value");
                StatementError::new(SqlState::INVALID_PARAMETER, message)
            })?;
            return Ok(Some((spelled.clone(), if is_on { "on" } else { "off" }.to_owned())));
        }
        if let Some(changed) = styles::changed(self, name, value) {
            return Ok(Some((spelled.clone(), changed?)));
        }
        let asked = ["application_name", "search_path", "timezone", ROLE, SESSION_AUTHORIZATION];
        let is_free = asked.contains(&key) || Self::changes_no_answer(key);
        match is_free {
            true => Ok(Some((spelled.clone(), value.to_owned()))),
            false if is_same(key, current, value) => Ok(Some((spelled.clone(), current.clone()))),
            false => Err(StatementError::unsupported(format!("{spelled} \"{value}\""))),
        }
    }

    /// What would be shown of a setting if this were set.
    ///
    /// # Errors
    /// As by [`Self::set`].
    pub fn shown_by(&self, set: &SetSetting) -> Result<String> {
        let changed = self.changed(&set.name.to_lowercase(), set)?;
        // default: what an application's own setting without a value shows
        Ok(changed.map(|(_, shown)| shown).unwrap_or_default())
    }

    /// Sets all to their defaults but the user and the role, whose rights stay, and the level of a transaction that runs (`GUC_NO_RESET_ALL`).
    pub fn reset_all(&mut self) {
        let mut all = vec![&mut self.values];
        all.extend(self.transaction.as_mut().map(|ends| &mut ends.committed));
        for values in all {
            let kept = KEPT.map(|key| (key.to_owned(), values[key].clone()));
            values.clone_from(&self.defaults);
            values.extend(kept);
        }
        self.follow_default_isolation();
        self.changes += 1;
    }

    /// The user and its role again, as at the begin of the session.
    pub fn reset_role(&mut self) {
        for key in KEPT {
            self.values.insert(key.to_owned(), self.defaults[key].clone());
        }
        self.follow_default_isolation();
    }

    /// Whether nothing is kept from the role that was set just now, for as long as it is set.
    pub fn note_superuser(&mut self, is_superuser: bool, is_local: bool) {
        let word = if is_superuser { "on" } else { "off" };
        let value = (IS_SUPERUSER.to_owned(), word.to_owned());
        for values in self.set_in(is_local) {
            values.insert(IS_SUPERUSER.to_owned(), value.clone());
        }
    }

    /// Where a value is set: nowhere, if it is local to a transaction that there is not.
    fn set_in(&mut self, is_local: bool) -> Vec<&mut Values> {
        match (&mut self.transaction, is_local) {
            (None, true) => Vec::new(),
            (Some(ends), false) => vec![&mut self.values, &mut ends.committed],
            (Some(_), true) | (None, false) => vec![&mut self.values],
        }
    }

    /// From now on this value is the default: a client connected with it.
    pub fn keep_as_default(&mut self, name: &str) {
        let key = name.to_lowercase();
        if let Some(value) = self.values.get(&key) {
            self.defaults.insert(key, value.clone());
        }
    }

    /// How often they were changed so far.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// What statements can ask for by `current_setting`: what can be shown.
    pub fn asked_for(&self) -> SettingValues {
        self.values.iter().map(|(key, (_, value))| (key.clone(), value.clone())).collect()
    }

    /// Where names without a schema are looked up.
    pub fn search_path(&self) -> &str {
        &self.values["search_path"].1
    }

    /// What the client calls itself.
    pub fn application(&self) -> &str {
        &self.values["application_name"].1
    }

    /// In which zone moments are printed and read.
    pub fn time_zone(&self) -> &str {
        &self.values["timezone"].1
    }

    /// Whose session it is.
    pub fn session_user(&self) -> &str {
        &self.values[SESSION_AUTHORIZATION].1
    }

    /// Whose rights the session has instead of its user's own.
    pub fn role(&self) -> Option<&str> {
        Some(&*self.values[ROLE].1).filter(|role| *role != NO_ROLE)
    }

    /// Whether policies leave out rows.
    pub fn row_security(&self) -> bool {
        self.values[ROW_SECURITY].1 == "on"
    }

    /// How long a statement may run.
    pub fn statement_timeout(&self) -> Option<Duration> {
        let (name, value) = self.values.get("statement_timeout")?;
        let time = milliseconds(name, value);
        let time = time.expect("only what can be read is set"); // infallible: by `set`
        (time > 0).then(|| Duration::from_millis(time))
    }
}

pub(crate) fn unknown(name: &str) -> StatementError {
    let message = format!("unrecognized configuration parameter \"{name}\"");
    StatementError::new(SqlState::UNDEFINED_OBJECT, message)
}

/// A level of isolation as it is shown.
fn level(name: &str, value: &str) -> Result<String> {
    let known = LEVELS.iter().find(|level| level.eq_ignore_ascii_case(value));
    let hint = "Available values: serializable, repeatable read, read committed, read uncommitted.";
    known.map(|level| (*level).to_owned()).ok_or_else(|| invalid(name, value).with_hint(hint))
}

fn invalid(name: &str, value: &str) -> StatementError {
    let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
    StatementError::new(SqlState::INVALID_PARAMETER, message)
}

/// Whether a value means what is printed anyway.
fn is_same(key: &str, current: &str, value: &str) -> bool {
    let value = value.trim().trim_matches('\'');
    let one_of = |known: &[&str]| known.iter().any(|known| known.eq_ignore_ascii_case(value));
    match key {
        "client_encoding" => one_of(&["UTF8", "UTF-8", "UNICODE", "utf_8"]),
        _ => match current {
            "on" => one_of(&["on", "true", "yes", "1"]),
            "off" => one_of(&["off", "false", "no", "0"]),
            _ => {
                let plain = |text: &str| text.replace([' ', '"'], "").to_lowercase();
                plain(current) == plain(value)
            }
        },
    }
}

/// `on` and `off` in all spellings, and their beginnings that are no other's.
///
/// Source: `parse_bool_with_len` in `src/backend/utils/adt/bool.c`, PostgreSQL 18.
pub(crate) fn boolean(value: &str) -> Option<bool> {
    let value = value.trim().to_ascii_lowercase();
    let begins = |word: &str, least: usize| value.len() >= least && word.starts_with(&value);
    match () {
        () if begins("true", 1) || begins("yes", 1) || begins("on", 2) || value == "1" => {
            Some(true)
        }
        () if begins("false", 1) || begins("no", 1) || begins("off", 2) || value == "0" => {
            Some(false)
        }
        () => None,
    }
}

/// A time with a unit, milliseconds without one.
fn milliseconds(name: &str, value: &str) -> Result<u64> {
    let value = value.trim();
    let end = value.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(value.len());
    let (number, unit) = value.split_at(end);
    let factor = match unit.trim() {
        "us" => 0.001,
        "ms" | "" => 1.0,
        "s" => 1000.0,
        "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => f64::NAN,
    };
    let time = number.parse::<f64>().unwrap_or(f64::NAN) * factor;
    if !(0.0..=f64::from(i32::MAX)).contains(&time) {
        return Err(invalid(name, value));
    }
    Ok(time.round() as u64)
}

/// A time in the largest unit that it is a whole number of.
fn shown_time(milliseconds: u64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms")];
    let whole = units.into_iter().find(|(size, _)| milliseconds.is_multiple_of(*size));
    match whole {
        Some((size, unit)) if milliseconds > 0 => format!("{}{unit}", milliseconds / size),
        _ => "0".to_owned(),
    }
}
