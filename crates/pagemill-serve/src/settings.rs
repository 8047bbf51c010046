//! The settings of a session: what a client may ask, and set.
//!
//! Answers are printed in one way, that of TimeZone UTC and DateStyle ISO. A setting that would change what is printed can be
//! set to what it is, and to nothing else; one that changes how fast or how long a statement runs can be set to anything.
//!
//! Values that are set in a transaction go with it when it is rolled back, and those that are `LOCAL` to it at its end in any case. One
//! difference to the server's: `ROLLBACK TO SAVEPOINT` leaves them.
//!
//! Source: `src/backend/utils/misc/guc_tables.c`, PostgreSQL 18, for names, defaults and units.

use std::collections::BTreeMap;
use std::time::Duration;

use pagemill_cluster::settings::parse_search_path;
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
const FIXED: [(&str, &str); 11] = [
    ("array_nulls", "on"),
    ("backslash_quote", "safe_encoding"),
    ("bytea_output", "hex"),
    ("default_transaction_isolation", "read committed"),
    ("escape_string_warning", "on"),
    ("quote_all_identifiers", "off"),
    ("row_security", "on"),
    ("transaction_isolation", "read committed"),
    ("transaction_read_only", "on"),
    ("transform_null_equals", "off"),
    ("xmlbinary", "base64"),
];

/// What changes no answer.
const FREE: [(&str, &str); 26] = [
    ("client_min_messages", "notice"),
    ("cursor_tuple_fraction", "0.1"),
    ("default_statistics_target", "100"),
    ("effective_cache_size", "4GB"),
    ("enable_hashagg", "on"),
    ("enable_hashjoin", "on"),
    ("enable_indexscan", "on"),
    ("enable_mergejoin", "on"),
    ("enable_nestloop", "on"),
    ("enable_seqscan", "on"),
    ("enable_sort", "on"),
    ("from_collapse_limit", "8"),
    ("geqo", "on"),
    ("idle_in_transaction_session_timeout", "0"),
    ("jit", "on"),
    ("join_collapse_limit", "8"),
    ("lock_timeout", "0"),
    ("log_min_duration_statement", "-1"),
    ("maintenance_work_mem", "64MB"),
    ("max_parallel_workers_per_gather", "2"),
    ("random_page_cost", "4"),
    ("seq_page_cost", "1"),
    ("statement_timeout", "0"),
    ("synchronize_seqscans", "on"),
    ("transaction_timeout", "0"),
    ("work_mem", "4MB"),
];

/// By names in small letters: as it is spelled, and the value.
type Values = BTreeMap<String, (String, String)>;

/// A session's settings.
#[derive(Debug, Clone)]
pub struct Settings {
    values: Values,
    defaults: Values,
    /// While there is a transaction.
    transaction: Option<Ends>,
    /// Clients of 18 are told of their search path.
    reports_path: bool,
}

/// How settings will be after a transaction.
#[derive(Debug, Clone)]
struct Ends {
    committed: Values,
    rolled_back: Values,
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
}

impl Settings {
    /// Those of a new session.
    pub fn new(origin: Origin<'_>) -> Self {
        let own = [
            // Over what stands in REPORTED.
            ("is_superuser", if origin.is_superuser { "on" } else { "off" }),
            ("server_version", origin.version),
            ("server_encoding", "UTF8"),
            ("session_authorization", origin.user),
            ("search_path", origin.search_path),
            ("extra_float_digits", "1"),
            ("max_identifier_length", "63"),
            ("block_size", "8192"),
        ];
        let all = REPORTED.into_iter().chain(FIXED).chain(FREE).chain(own);
        let entry = |(name, value): (&str, &str)| {
            (name.to_lowercase(), (name.to_owned(), value.to_owned()))
        };
        let values: Values = all.map(entry).collect();
        let reports_path = origin.major >= 18;
        Self { defaults: values.clone(), values, transaction: None, reports_path }
    }

    /// What a client is told of when it connects.
    pub fn reported(&self) -> impl Iterator<Item = &(String, String)> {
        let own = ["server_version", "server_encoding", "session_authorization"];
        let names = REPORTED.iter().map(|(name, _)| *name).chain(own);
        let path = self.reports_path.then_some("search_path");
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

    /// A transaction begins.
    pub fn begin(&mut self) {
        let values = || self.values.clone();
        self.transaction = Some(Ends { committed: values(), rolled_back: values() });
    }

    /// A transaction ends.
    pub fn end(&mut self, is_commit: bool) {
        if let Some(ends) = self.transaction.take() {
            self.values = if is_commit { ends.committed } else { ends.rolled_back };
        }
    }

    /// Sets a value, or the default where there is none. Without a transaction, what is local to one has no effect.
    ///
    /// # Errors
    /// When there is no such setting, or answers would have to look otherwise.
    pub fn set(&mut self, set: &SetSetting) -> Result<()> {
        let key = set.name.to_lowercase();
        let value = self.changed(&key, set)?;
        let mut all = Vec::new();
        match (&mut self.transaction, set.is_local) {
            (None, true) => {}
            (Some(ends), false) => all.extend([&mut self.values, &mut ends.committed]),
            (Some(_), true) | (None, false) => all.push(&mut self.values),
        }
        for values in all {
            match &value {
                Some(value) => drop(values.insert(key.clone(), value.clone())),
                None => drop(values.remove(&key)),
            }
        }
        Ok(())
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
            milliseconds(spelled, value)?;
        }
        if key == "search_path" && parse_search_path(value.as_bytes()).is_none() {
            return Err(invalid(spelled, value));
        }
        let is_free = ["application_name", "search_path"].contains(&key)
            || FREE.iter().any(|(free, _)| *free == key);
        match is_free {
            true => Ok(Some((spelled.clone(), value.to_owned()))),
            false if is_same(key, current, value) => Ok(Some((spelled.clone(), current.clone()))),
            false => Err(StatementError::unsupported(format!("{spelled} \"{value}\""))),
        }
    }

    /// Sets all to their defaults.
    pub fn reset_all(&mut self) {
        self.values.clone_from(&self.defaults);
        if let Some(ends) = &mut self.transaction {
            ends.committed.clone_from(&self.defaults);
        }
    }

    /// From now on this value is the default: a client connected with it.
    pub fn keep_as_default(&mut self, name: &str) {
        let key = name.to_lowercase();
        if let Some(value) = self.values.get(&key) {
            self.defaults.insert(key, value.clone());
        }
    }

    /// Where names without a schema are looked up.
    pub fn search_path(&self) -> &str {
        &self.values["search_path"].1
    }

    /// How long a statement may run.
    pub fn statement_timeout(&self) -> Option<Duration> {
        let (name, value) = self.values.get("statement_timeout")?;
        let time = milliseconds(name, value);
        let time = time.expect("only what can be read is set"); // infallible: by `set`
        (time > 0).then(|| Duration::from_millis(time))
    }
}

fn unknown(name: &str) -> StatementError {
    let message = format!("unrecognized configuration parameter \"{name}\"");
    StatementError::new(SqlState::UNDEFINED_OBJECT, message)
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
        "timezone" => {
            one_of(&["UTC", "Etc/UTC", "GMT", "Etc/GMT", "Zulu", "Universal", "0", "default"])
        }
        "client_encoding" => one_of(&["UTF8", "UTF-8", "UNICODE", "utf_8"]),
        "datestyle" => {
            let mut parts = value.split(',').map(str::trim);
            parts.all(|part| ["ISO", "MDY", "US"].iter().any(|p| p.eq_ignore_ascii_case(part)))
        }
        // From 1 on, the shortest digits that give the value back are printed.
        "extra_float_digits" => value.parse().is_ok_and(|digits: i32| (1..=3).contains(&digits)),
        // Nothing is written: what all of them promise holds.
        "default_transaction_isolation" | "transaction_isolation" => {
            one_of(&["read committed", "repeatable read", "serializable", "read uncommitted"])
        }
        "row_security" => one_of(&["on", "off", "true", "false"]),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let search_path = "public";
        let origin =
            Origin { version: "15", major: 15, user: "ada", is_superuser: true, search_path };
        Settings::new(origin)
    }

    fn set(settings: &mut Settings, name: &str, value: &str) -> Result<()> {
        let (name, value) = (name.to_owned(), Some(value.to_owned()));
        settings.set(&SetSetting { name, value, is_local: false })
    }

    #[test]
    fn what_changes_answers_keeps_its_value() {
        let mut settings = settings();
        let mut set = |name, value| set(&mut settings, name, value);
        assert!(set("DateStyle", "ISO").is_ok());
        assert!(set("datestyle", "German").is_err());
        assert!(set("timezone", "UTC").is_ok());
        assert!(set("TimeZone", "Europe/Paris").is_err());
        assert!(set("extra_float_digits", "3").is_ok());
        assert!(set("extra_float_digits", "0").is_err());
        assert!(set("nonsense", "0").is_err());
        assert!(set("search_path", "a b").is_err());
        assert!(set("my.own", "x").is_ok());
        assert!(set("application_name", "psql").is_ok());
        assert_eq!(settings.show("my.own").unwrap().1, "x");
        assert_eq!(settings.show("timezone").unwrap().0, "TimeZone");
    }

    #[test]
    fn settings_go_with_their_transaction() {
        let mut settings = settings();
        let local = |value: &str| {
            let (name, value) = ("search_path".to_owned(), Some(value.to_owned()));
            SetSetting { name, value, is_local: true }
        };
        settings.set(&local("nowhere")).unwrap();
        assert_eq!(settings.search_path(), "public");
        settings.begin();
        set(&mut settings, "search_path", "a").unwrap();
        settings.set(&local("b")).unwrap();
        assert_eq!(settings.search_path(), "b");
        settings.end(true);
        assert_eq!(settings.search_path(), "a");
        settings.begin();
        set(&mut settings, "search_path", "c").unwrap();
        settings.end(false);
        assert_eq!(settings.search_path(), "a");
    }

    #[test]
    fn times_have_units() {
        let mut settings = settings();
        assert_eq!(settings.statement_timeout(), None);
        for (text, time) in [("250", 250), ("2s", 2000), ("1.5min", 90_000), ("0", 0)] {
            set(&mut settings, "statement_timeout", text).unwrap();
            let found = settings.statement_timeout().unwrap_or_default();
            assert_eq!(found, Duration::from_millis(time), "{text}");
        }
        for wrong in ["-1", "soon", "5 years", ""] {
            assert!(set(&mut settings, "statement_timeout", wrong).is_err(), "{wrong}");
        }
    }
}
