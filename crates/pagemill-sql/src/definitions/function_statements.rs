//! `CREATE FUNCTION` and `CREATE PROCEDURE` as `pg_get_functiondef` writes them.
//!
//! Invariant: an aggregate is refused, which the server has no text for either.
//!
//! Source: `pg_get_functiondef` in `src/backend/utils/adt/ruleutils.c`, PostgreSQL 14 to 18; the settings that are lists from
//! `GUC_LIST_QUOTE` in `src/backend/utils/misc/guc_tables.c`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pagemill_cluster::settings::parse_setting_list;
use pagemill_format::Oid;

use super::dictionary::literal;
use super::writer::{Style, Writer, Written};
use super::{FunctionWriter, Unwritten};
use crate::catalog::Catalog;
use crate::error::Result;
use crate::system_rows::for_each_row;

/// `internal` and `c`, whose functions cost 1 by default; others cost 100.
const NATIVE_LANGUAGES: [Oid; 2] = [Oid(12), Oid(13)];
const DEFAULT_ROWS: f32 = 1000.0;

/// Settings whose values are names, each in quotes.
const LISTS: [&str; 7] = [
    "local_preload_libraries",
    "search_path",
    "session_preload_libraries",
    "shared_preload_libraries",
    "temp_tablespaces",
    "unix_socket_directories",
    "createrole_self_grant",
];

/// A row of `pg_proc`.
struct Row {
    name: String,
    namespace: Oid,
    kind: u8,
    language: Oid,
    volatility: u8,
    parallel: u8,
    is_strict: bool,
    is_security_definer: bool,
    is_leakproof: bool,
    cost: f32,
    rows: f32,
    support: Oid,
    transformed: Vec<Oid>,
    settings: Vec<String>,
    library: Option<Vec<u8>>,
    source: String,
}

/// Writes definitions of functions.
pub(crate) struct FunctionStatements {
    catalog: Arc<Catalog>,
    arguments: FunctionWriter,
    rows: HashMap<Oid, Row>,
    languages: HashMap<Oid, String>,
}

impl FunctionStatements {
    /// Reads the functions that are wanted.
    ///
    /// # Errors
    /// When a catalog cannot be read.
    pub(crate) fn new(catalog: &Arc<Catalog>, wanted: &HashSet<Oid>) -> Result<Self> {
        let columns = [
            "oid",
            "proname",
            "pronamespace",
            "prokind",
            "prolang",
            "provolatile",
            "proparallel",
            "proisstrict",
            "prosecdef",
            "proleakproof",
            "procost",
            "prorows",
            "prosupport",
            "protrftypes",
            "proconfig",
            "probin",
            "prosrc",
        ];
        let mut rows = HashMap::new();
        for_each_row(catalog.values(), "pg_proc", &columns, |row| {
            if !wanted.contains(&row.oid(0)) {
                return Ok(());
            }
            let float = |bits: i32| f32::from_bits(bits.cast_unsigned());
            let found = Row {
                name: row.name(1),
                namespace: row.oid(2),
                kind: row.byte(3),
                language: row.oid(4),
                volatility: row.byte(5),
                parallel: row.byte(6),
                is_strict: row.bool(7),
                is_security_definer: row.bool(8),
                is_leakproof: row.bool(9),
                cost: float(row.int4(10)),
                rows: float(row.int4(11)),
                support: row.oid(12),
                transformed: row.oids(13)?,
                settings: row.texts(14)?,
                library: row.payload(15)?.map(<[u8]>::to_vec),
                source: row.text(16)?.unwrap_or_default(),
            };
            rows.insert(row.oid(0), found);
            Ok(())
        })?;
        let mut languages = HashMap::new();
        for_each_row(catalog.values(), "pg_language", &["oid", "lanname"], |row| {
            languages.insert(row.oid(0), row.name(1));
            Ok(())
        })?;
        let arguments = FunctionWriter::new(catalog)?;
        Ok(Self { catalog: catalog.clone(), arguments, rows, languages })
    }

    /// The name of an aggregate, for which there is no statement of this kind.
    pub(crate) fn aggregate(&self, of: Oid) -> Option<&str> {
        self.rows.get(&of).filter(|row| row.kind == b'a').map(|row| row.name.as_str())
    }

    /// The statement; `None` where there is no such function.
    pub(crate) fn statement(&self, of: Oid) -> Written<Option<String>> {
        let Some(row) = self.rows.get(&of) else { return Ok(None) };
        let dictionary =
            self.catalog.dictionary().map_err(|error| Unwritten::unknown(error.to_string()))?;
        let what = if row.kind == b'p' { "PROCEDURE" } else { "FUNCTION" };
        let mut text = format!(
            "CREATE OR REPLACE {what} {}.{}({})\n",
            dictionary.schema(row.namespace)?,
            dictionary.quoted(&row.name),
            self.arguments.arguments(of, true)?.unwrap_or_default()
        );
        if let Some(result) = self.arguments.result(of)? {
            text.push_str(&format!(" RETURNS {result}\n"));
        }
        if !row.transformed.is_empty() {
            let types = row.transformed.iter().map(|ty| self.catalog.type_name(*ty));
            let types: Vec<String> = types.map(|name| format!("FOR TYPE {name}")).collect();
            text.push_str(&format!(" TRANSFORM {}\n", types.join(", ")));
        }
        let language = self.languages.get(&row.language);
        let language = language.ok_or_else(|| Unwritten::missing("language", row.language))?;
        text.push_str(&format!(" LANGUAGE {}\n", dictionary.quoted(language)));
        let options = self.options(row)?;
        if !options.is_empty() {
            text.push_str(&options);
            text.push('\n');
        }
        for setting in &row.settings {
            text.push_str(&self.setting(setting, |name| dictionary.quoted(name))?);
        }
        let parsed = self.arguments.body(of)?;
        text.push_str(&parsed.unwrap_or_else(|| body(row)));
        text.push('\n');
        Ok(Some(text))
    }

    /// What differs from the defaults, each behind a space.
    fn options(&self, row: &Row) -> Written<String> {
        let words = [
            (row.kind == b'w', " WINDOW"),
            (row.volatility == b'i', " IMMUTABLE"),
            (row.volatility == b's', " STABLE"),
            (row.parallel == b's', " PARALLEL SAFE"),
            (row.parallel == b'r', " PARALLEL RESTRICTED"),
            (row.is_strict, " STRICT"),
            (row.is_security_definer, " SECURITY DEFINER"),
            (row.is_leakproof, " LEAKPROOF"),
        ];
        let mut text: String = words.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
        let default = if NATIVE_LANGUAGES.contains(&row.language) { 1.0 } else { 100.0 };
        if row.cost != default {
            text.push_str(&format!(" COST {}", short(row.cost)));
        }
        if row.rows > 0.0 && row.rows != DEFAULT_ROWS {
            text.push_str(&format!(" ROWS {}", short(row.rows)));
        }
        if row.support != Oid(0) {
            let dictionary = self.catalog.dictionary();
            let dictionary = dictionary.map_err(|error| Unwritten::unknown(error.to_string()))?;
            let writer = Writer::new(&self.catalog, &dictionary, Style::new(false));
            text.push_str(&format!(" SUPPORT {}", writer.function_name(row.support, &[], false)?));
        }
        Ok(text)
    }

    /// `name=value` as SET.
    fn setting(&self, setting: &str, quoted: impl Fn(&str) -> String) -> Written<String> {
        let Some((name, value)) = setting.split_once('=') else { return Ok(String::new()) };
        let value = match LISTS.contains(&name) {
            false => literal(value),
            true => {
                let names = parse_setting_list(value.as_bytes());
                let names =
                    names.ok_or_else(|| Unwritten::damaged("a list of names that is none"))?;
                let names = names.iter().map(|(name, _)| literal(&String::from_utf8_lossy(name)));
                names.collect::<Vec<String>>().join(", ")
            }
        };
        Ok(format!(" SET {} TO {value}\n", quoted(name)))
    }
}

/// The library's name, and the text between dollars and a word that is not in it.
fn body(row: &Row) -> String {
    let mut word = format!("${}", if row.kind == b'p' { "procedure" } else { "function" });
    while row.source.contains(&word) {
        word.push('x');
    }
    word.push('$');
    let library = row.library.as_deref().map(|name| literal(&String::from_utf8_lossy(name)) + ", ");
    format!("AS {}{word}{}{word}", library.unwrap_or_default(), row.source)
}

/// A number by six digits at most, as `%g` of printf writes it.
fn short(number: f32) -> String {
    let scientific = format!("{:.5e}", f64::from(number));
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().expect("the exponent is a number"); // infallible: by the format
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    let places = usize::try_from(5 - exponent).expect("it is five at most"); // infallible: by the range above
    trimmed(&format!("{:.places$}", f64::from(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_printf_writes_them() {
        for (number, text) in [
            (0.1, "0.1"),
            (100.0, "100"),
            (1e6, "1e+06"),
            (123_456.0, "123456"),
            (1_234_567.0, "1.23457e+06"),
            (0.0025, "0.0025"),
            (0.000_012, "1.2e-05"),
        ] {
            assert_eq!(short(number), text);
        }
    }
}
