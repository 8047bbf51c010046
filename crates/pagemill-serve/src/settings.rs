//! The settings of a session: what a client may ask, and set.
//!
//! Answers are printed in one way, that of TimeZone UTC and DateStyle ISO. A setting that would change what is printed can be
//! set to what it is, and to nothing else; one that changes how fast or how long a statement runs can be set to anything.
//!
//! Source: `src/backend/utils/misc/guc_tables.c`, PostgreSQL 18, for names, defaults and units.

use std::collections::BTreeMap;
use std::time::Duration;

use pagemill_sql::{SqlState, StatementError};

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
const FIXED: [(&str, &str); 12] = [
    ("array_nulls", "on"),
    ("backslash_quote", "safe_encoding"),
    ("bytea_output", "hex"),
    ("default_transaction_isolation", "read committed"),
    ("escape_string_warning", "on"),
    ("quote_all_identifiers", "off"),
    ("row_security", "on"),
    ("search_path", "\"$user\", public"),
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

/// A session's settings.
#[derive(Debug, Clone)]
pub struct Settings {
    /// By names in small letters: as it is spelled, and the value.
    values: BTreeMap<String, (String, String)>,
    defaults: BTreeMap<String, (String, String)>,
}

impl Settings {
    /// Those of a server of a version, for a user.
    pub fn new(version: &str, user: &str) -> Self {
        let own = [("server_version", version), ("server_encoding", "UTF8")];
        let own = own.into_iter().chain([
            ("session_authorization", user),
            ("extra_float_digits", "1"),
            ("max_identifier_length", "63"),
            ("block_size", "8192"),
        ]);
        let all = REPORTED.into_iter().chain(FIXED).chain(FREE).chain(own);
        let entry = |(name, value): (&str, &str)| {
            (name.to_lowercase(), (name.to_owned(), value.to_owned()))
        };
        let values: BTreeMap<_, _> = all.map(entry).collect();
        Self { defaults: values.clone(), values }
    }

    /// What a client is told of when it connects.
    pub fn reported(&self) -> impl Iterator<Item = &(String, String)> {
        let own = ["server_version", "server_encoding", "session_authorization"];
        let names = REPORTED.iter().map(|(name, _)| *name).chain(own);
        names.filter_map(|name| self.values.get(&name.to_lowercase()))
    }

    /// The name as it is spelled, and the value.
    ///
    /// # Errors
    /// When there is no such setting here.
    pub fn show(&self, name: &str) -> Result<&(String, String)> {
        self.values.get(&name.to_lowercase()).ok_or_else(|| unknown(name))
    }

    /// Sets a value, or the default where there is none. True where clients are to be told.
    ///
    /// # Errors
    /// When there is no such setting, or answers would have to look otherwise.
    pub fn set(&mut self, name: &str, value: Option<&str>) -> Result<bool> {
        let key = name.to_lowercase();
        let Some(value) = value else { return self.reset(&key, name) };
        if key.contains('.') && !self.values.contains_key(&key) {
            self.values.insert(key, (name.to_owned(), value.to_owned()));
            return Ok(false);
        }
        let Some((spelled, current)) = self.values.get(&key) else { return Err(unknown(name)) };
        if key.ends_with("_timeout") {
            milliseconds(spelled, value)?;
        }
        let is_free = key == "application_name" || FREE.iter().any(|(free, _)| *free == key);
        if !is_free {
            return match is_same(&key, current, value) {
                true => Ok(false),
                false => Err(StatementError::unsupported(format!("{spelled} \"{value}\""))),
            };
        }
        let spelled = spelled.clone();
        self.values.insert(key.clone(), (spelled, value.to_owned()));
        Ok(key == "application_name")
    }

    fn reset(&mut self, key: &str, name: &str) -> Result<bool> {
        match self.defaults.get(key) {
            Some(default) => {
                self.values.insert(key.to_owned(), default.clone());
            }
            None if key.contains('.') => {
                self.values.remove(key);
            }
            None => return Err(unknown(name)),
        }
        Ok(key == "application_name")
    }

    /// Sets all to their defaults.
    pub fn reset_all(&mut self) {
        self.values.clone_from(&self.defaults);
    }

    /// From now on this value is the default: a client connected with it.
    pub fn keep_as_default(&mut self, name: &str) {
        let key = name.to_lowercase();
        if let Some(value) = self.values.get(&key) {
            self.defaults.insert(key, value.clone());
        }
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
        let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
        return Err(StatementError::new(SqlState::INVALID_PARAMETER, message));
    }
    Ok(time.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_answers_keeps_its_value() {
        let mut settings = Settings::new("15", "ada");
        assert!(!settings.set("DateStyle", Some("ISO")).unwrap());
        assert!(settings.set("datestyle", Some("German")).is_err());
        assert!(settings.set("timezone", Some("UTC")).is_ok());
        assert!(settings.set("TimeZone", Some("Europe/Paris")).is_err());
        assert!(settings.set("extra_float_digits", Some("3")).is_ok());
        assert!(settings.set("extra_float_digits", Some("0")).is_err());
        assert!(settings.set("nonsense", Some("0")).is_err());
        assert!(settings.set("my.own", Some("x")).is_ok());
        assert_eq!(settings.show("my.own").unwrap().1, "x");
        assert!(settings.set("application_name", Some("psql")).unwrap());
        assert_eq!(settings.show("timezone").unwrap().0, "TimeZone");
    }

    #[test]
    fn times_have_units() {
        let mut settings = Settings::new("15", "ada");
        assert_eq!(settings.statement_timeout(), None);
        for (text, time) in [("250", 250), ("2s", 2000), ("1.5min", 90_000), ("0", 0)] {
            settings.set("statement_timeout", Some(text)).unwrap();
            let found = settings.statement_timeout().unwrap_or_default();
            assert_eq!(found, Duration::from_millis(time), "{text}");
        }
        for wrong in ["-1", "soon", "5 years", ""] {
            assert!(settings.set("statement_timeout", Some(wrong)).is_err(), "{wrong}");
        }
    }
}
