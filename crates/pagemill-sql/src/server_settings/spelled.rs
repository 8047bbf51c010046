//! Values of settings as a server spells them: in the list of all, and where one is shown alone.
//!
//! Invariant: what is no value of a setting is not spelled.
//!
//! Source: `ShowGUCOption` and `config_enum_lookup_by_name` in `src/backend/utils/misc/guc.c`, `parse_bool_with_len` in
//! `src/backend/utils/adt/bool.c`, `check_datestyle` in `src/backend/commands/variable.c`, PostgreSQL 14 to 18.

use super::{Fact, Kind, units};
use crate::functions::aggregates::short_float;

/// Those of which the digits stand for rights on files.
const OF_RIGHTS: [&str; 3] = ["data_directory_mode", "log_file_mode", "unix_socket_permissions"];

/// Words that stand for others.
const SYNONYMS: [(&str, &str); 4] = [
    ("debug", "debug2"),
    ("archive", "replica"),
    ("hot_standby", "replica"),
    // Compression by what is there on every server.
    ("on", "pglz"),
];

impl Fact {
    /// A value in the setting's own unit; `None` for what is none.
    pub(crate) fn plain(&self, value: &str) -> Option<String> {
        match self.kind {
            Kind::Bool => boolean(value).map(|is_on| if is_on { "on" } else { "off" }.to_owned()),
            Kind::Integer => units::integer(value, self.unit).map(|number| number.to_string()),
            Kind::Real => units::real(value, self.unit).map(short_float),
            Kind::Enum => self.word(value),
            Kind::String if self.name == "DateStyle" => date_style(value),
            Kind::String => Some(value.to_owned()),
        }
    }

    /// The same as lists have it.
    pub(crate) fn in_list(&self, plain: &str) -> String {
        match plain.parse::<u32>() {
            Ok(rights) if OF_RIGHTS.contains(&self.name) => format!("{rights:04o}"),
            _ if self.name == "seed" => "unavailable".to_owned(),
            _ => plain.to_owned(),
        }
    }

    /// The same as it is shown alone, with its unit.
    pub(crate) fn shown(&self, plain: &str) -> String {
        let listed = self.in_list(plain);
        match (self.kind, self.unit) {
            (Kind::Integer, Some(_)) => {
                plain.parse().map_or(listed, |number| units::shown_integer(number, self.unit))
            }
            (Kind::Real, Some(_)) => {
                plain.parse().map_or(listed, |number| units::shown_real(number, self.unit))
            }
            _ => listed,
        }
    }

    /// One of the words that it can be.
    fn word(&self, value: &str) -> Option<String> {
        let all = || self.words.into_iter().flat_map(|all| all.trim_matches(['{', '}']).split(','));
        let all = || all().map(|word| word.trim_matches('"'));
        let find = |wanted: &str| all().find(|word| word.eq_ignore_ascii_case(wanted));
        let synonym = |wanted: &str| {
            let mut known = SYNONYMS.iter().filter(|(word, _)| word.eq_ignore_ascii_case(wanted));
            known.find_map(|(_, meant)| find(meant))
        };
        // Those that have `on` and `off` take the other words for them, but no beginnings.
        let switch = || match value.to_ascii_lowercase().as_str() {
            "true" | "yes" | "1" => Some("on"),
            "false" | "no" | "0" => Some("off"),
            _ => None,
        };
        let word = switch().filter(|word| find(word).is_some()).unwrap_or(value); // default: as it stands
        synonym(word).or_else(|| find(word)).map(str::to_owned)
    }
}

/// `on` and `off` in all spellings, and their beginnings that are no other's.
fn boolean(value: &str) -> Option<bool> {
    let value = value.to_ascii_lowercase();
    let begins = |word: &str, least: usize| value.len() >= least && word.starts_with(&value);
    let is_on = begins("true", 1) || begins("yes", 1) || begins("on", 2) || value == "1";
    let is_off = begins("false", 1) || begins("no", 1) || begins("off", 2) || value == "0";
    (is_on || is_off).then_some(is_on)
}

/// How dates look and in which order they are read: the first word of each, with what is meant where there is none.
fn date_style(value: &str) -> Option<String> {
    let (mut style, mut order) = (None, None);
    for word in value.split(',').map(|word| word.trim().trim_matches('"').to_ascii_lowercase()) {
        match word.as_str() {
            "iso" => style = Some("ISO"),
            "sql" => style = Some("SQL"),
            "german" => style = Some("German"),
            "ymd" => order = Some("YMD"),
            "mdy" | "us" => order = Some("MDY"),
            "dmy" => order = Some("DMY"),
            _ if word.starts_with("postgres") => style = Some("Postgres"),
            _ if word.starts_with("euro") => order = Some("DMY"),
            _ if word.starts_with("noneuro") => order = Some("MDY"),
            "default" => {}
            _ => return None,
        }
    }
    let usual = if style == Some("German") { "DMY" } else { "MDY" };
    Some(format!("{}, {}", style.unwrap_or("ISO"), order.unwrap_or(usual))) // default: what a server begins with
}
