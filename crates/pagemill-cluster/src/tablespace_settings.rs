//! The settings that each tablespace may have of its own: what its pages cost, and how many reads its
//! device bears at once.
//!
//! ```text
//! pg_tablespace.spcoptions ──► the session's settings (files, command line, ALTER DATABASE and ROLE)
//!                          none                            ──► the default
//!                                                         none
//! ```
//!
//! None of them changes a result. So a value that the server would not have taken is named as a
//! problem and passed over, and it is for the caller to go on without where nothing can be read.
//!
//! Source: `src/backend/utils/cache/spccache.c`, `tablespace_reloptions` in
//! `src/backend/access/common/reloptions.c`, `parse_int` and `parse_real` in
//! `src/backend/utils/misc/guc.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

use pagemill_format::{Oid, PgVersion};
use pagemill_types::array;

use crate::database::{Database, catalog};
use crate::error::{Error, Result};
use crate::settings::{Setting, Settings};
use crate::toast::ToastReader;

const EFFECTIVE_IO_CONCURRENCY: &str = "effective_io_concurrency";
const MAINTENANCE_IO_CONCURRENCY: &str = "maintenance_io_concurrency";
const SEQ_PAGE_COST: &str = "seq_page_cost";
const RANDOM_PAGE_COST: &str = "random_page_cost";
/// `DEFAULT_SEQ_PAGE_COST` and `DEFAULT_RANDOM_PAGE_COST` (`src/include/optimizer/cost.h`).
const DEFAULT_PAGE_COSTS: (f64, f64) = (1.0, 4.0);

/// The settings in use for what lies in one tablespace.
#[derive(Debug, Clone, PartialEq)]
pub struct TablespaceSettings {
    /// Reads in flight at once; 0 for no look-ahead.
    pub effective_io_concurrency: InUse<u32>,
    /// The same for VACUUM and the like.
    pub maintenance_io_concurrency: InUse<u32>,
    /// What the planner takes a page to cost that is read in order.
    pub seq_page_cost: InUse<f64>,
    /// What it takes a page to cost that is read in random order.
    pub random_page_cost: InUse<f64>,
    /// Values that a server would not have taken.
    pub problems: Vec<String>,
}

/// A value, and where it is set.
#[derive(Debug, Clone, PartialEq)]
pub struct InUse<T> {
    /// The value.
    pub value: T,
    /// Where it comes from.
    pub from: SettingSource,
}

/// Where a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingSource {
    /// The options of the tablespace, by its name.
    Tablespace(Box<[u8]>),
    /// A line of a configuration file.
    File(PathBuf, usize),
    /// The command line of the server's last start, or `ALTER DATABASE` or `ROLE`.
    Session,
    /// Nowhere.
    Default,
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tablespace(name) => {
                write!(f, "set for tablespace \"{}\"", String::from_utf8_lossy(name))
            }
            Self::File(path, line) => write!(f, "set in {}:{line}", path.display()),
            Self::Session => f.write_str("set on the server's command line or for a database"),
            Self::Default => f.write_str("the default"),
        }
    }
}

impl TablespaceSettings {
    /// True when pages read in order cost less than pages read in random order, so that neighbours of a
    /// page are worth reading with it.
    pub fn favours_neighbours(&self) -> bool {
        self.random_page_cost.value > self.seq_page_cost.value
    }

    /// What holds where neither a tablespace nor a session sets anything.
    fn defaults(version: PgVersion) -> Self {
        // `DEFAULT_MAINTENANCE_IO_CONCURRENCY` (`src/include/storage/bufmgr.h`).
        let maintenance = if version >= PgVersion::V18 { 16 } else { 10 };
        let (seq_page_cost, random_page_cost) = DEFAULT_PAGE_COSTS;
        Self {
            effective_io_concurrency: by_default(pagemill_io::DEFAULT_EFFECTIVE_IO_CONCURRENCY),
            maintenance_io_concurrency: by_default(maintenance),
            seq_page_cost: by_default(seq_page_cost),
            random_page_cost: by_default(random_page_cost),
            problems: Vec::new(),
        }
    }

    /// Takes the values of a session over.
    fn apply_session(&mut self, settings: &Settings) {
        let names =
            [EFFECTIVE_IO_CONCURRENCY, MAINTENANCE_IO_CONCURRENCY, SEQ_PAGE_COST, RANDOM_PAGE_COST];
        for name in names {
            if let Some(Setting { value, file, line }) = settings.setting(name) {
                let from = match file {
                    Some(file) => SettingSource::File(file.clone(), *line),
                    None => SettingSource::Session,
                };
                self.set(name, value, from);
            }
        }
    }

    fn set(&mut self, name: &str, text: &[u8], from: SettingSource) {
        let taken = match name {
            EFFECTIVE_IO_CONCURRENCY => {
                put(&mut self.effective_io_concurrency, concurrency(text), &from)
            }
            MAINTENANCE_IO_CONCURRENCY => {
                put(&mut self.maintenance_io_concurrency, concurrency(text), &from)
            }
            SEQ_PAGE_COST => put(&mut self.seq_page_cost, page_cost(text), &from),
            RANDOM_PAGE_COST => put(&mut self.random_page_cost, page_cost(text), &from),
            _ => false,
        };
        if !taken {
            let text = String::from_utf8_lossy(text);
            let problem = format!("{name} = \"{text}\", {from}, is nothing a server would take");
            self.problems.push(format!("{problem}: it is passed over"));
        }
    }
}

fn by_default<T>(value: T) -> InUse<T> {
    InUse { value, from: SettingSource::Default }
}

fn put<T>(slot: &mut InUse<T>, value: Option<T>, from: &SettingSource) -> bool {
    let taken = value.is_some();
    if let Some(value) = value {
        *slot = InUse { value, from: from.clone() };
    }
    taken
}

/// A number of reads, from 0 to `MAX_IO_CONCURRENCY`.
fn concurrency(text: &[u8]) -> Option<u32> {
    let number = u32::try_from(integer(std::str::from_utf8(text).ok()?.trim())?).ok()?;
    (number <= pagemill_io::MAX_EFFECTIVE_IO_CONCURRENCY).then_some(number)
}

/// A whole number as the server takes one: decimal, hexadecimal or octal, or a decimal fraction, which
/// is rounded.
fn integer(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, text.get(1..)?),
        b'+' => (1, text.get(1..)?),
        _ => (1, text),
    };
    let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let (digits, radix) = match hexadecimal {
        Some(digits) => (digits, 16),
        None if digits.contains(['.', 'e', 'E']) => return rounded(digits).map(|n| sign * n),
        None if digits.len() > 1 && digits.starts_with('0') => (digits, 8),
        None => (digits, 10),
    };
    let is_sign = |first: &u8| matches!(first, b'+' | b'-');
    if digits.as_bytes().first().is_some_and(is_sign) {
        return None;
    }
    i32::from_str_radix(digits, radix).ok().map(|number| sign * i64::from(number))
}

fn rounded(digits: &str) -> Option<i64> {
    let begins = digits.as_bytes().first()?;
    let number: f64 = digits.parse().ok().filter(|n: &f64| n.abs() <= f64::from(i32::MAX))?;
    // In range, as was just seen.
    (begins.is_ascii_digit() || *begins == b'.').then(|| number.round_ties_even() as i64)
}

/// A cost: any number that is not negative.
fn page_cost(text: &[u8]) -> Option<f64> {
    let number: f64 = std::str::from_utf8(text).ok()?.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

/// What `pg_tablespace` has for one tablespace.
#[derive(Debug)]
struct TablespaceRow {
    name: Box<[u8]>,
    /// Names and values, in order.
    options: Vec<(String, Vec<u8>)>,
    problems: Vec<String>,
}

/// The settings of a database's sessions, and what each tablespace has of its own.
#[derive(Debug)]
pub(crate) struct AllTablespaces {
    session: TablespaceSettings,
    rows: HashMap<Oid, TablespaceRow>,
}

impl AllTablespaces {
    fn read(database: &Database) -> Result<Self> {
        let mut session = TablespaceSettings::defaults(database.cluster().version());
        session.apply_session(database.session_settings()?);
        Ok(Self { session, rows: rows(database)? })
    }

    fn settings(&self, tablespace: Oid) -> TablespaceSettings {
        let mut settings = self.session.clone();
        if let Some(row) = self.rows.get(&tablespace) {
            settings.problems.extend(row.problems.iter().cloned());
            for (name, value) in &row.options {
                settings.set(name, value, SettingSource::Tablespace(row.name.clone()));
            }
        }
        settings
    }
}

fn rows(database: &Database) -> Result<HashMap<Oid, TablespaceRow>> {
    let mut stored = Vec::new();
    let wanted = ["oid", "spcname", "spcoptions"];
    database.scan(catalog::PG_TABLESPACE, &wanted, |row| {
        stored.push((row.oid(0)?, row.name(1)?, row.raw(2).map(<[u8]>::to_vec)));
        Ok(())
    })?;
    let class = database.class(catalog::PG_TABLESPACE);
    let file = class.map(|class| database.base_path(class)).transpose()?.unwrap_or_default();
    let mut toast = ToastReader::new(database.clone());
    let mut rows = HashMap::new();
    for (oid, name, options) in stored {
        let mut row = TablespaceRow { name, options: Vec::new(), problems: Vec::new() };
        if let Some(options) = options {
            let payload = toast.payload(&options, &file);
            let entries = payload.and_then(|payload| {
                array::text_elements(&payload).map_err(|error| Error::file_damage(&file, &error))
            });
            row.take(entries);
        }
        rows.insert(oid, row);
    }
    Ok(rows)
}

impl TablespaceRow {
    fn take(&mut self, entries: Result<Vec<Vec<u8>>>) {
        let name = String::from_utf8_lossy(&self.name).into_owned();
        let problem = |what: String| format!("the options of tablespace \"{name}\": {what}");
        let entries = match entries {
            Ok(entries) => entries,
            Err(error) => return self.problems.push(problem(error.to_string())),
        };
        for entry in entries {
            let text = String::from_utf8_lossy(&entry);
            match text.split_once('=') {
                Some((name, value)) => self.options.push((name.into(), value.into())),
                None => self.problems.push(problem(format!("\"{text}\" has no value"))),
            }
        }
    }
}

impl Database {
    /// The settings in use for what lies in a tablespace; 0 stands for the database's own, as in
    /// `pg_class`. A tablespace that does not exist has no settings of its own.
    ///
    /// # Errors
    /// When `pg_tablespace` or what sessions are set to cannot be read.
    pub fn tablespace_settings(&self, tablespace: Oid) -> Result<TablespaceSettings> {
        let tablespace = if tablespace.is_valid() { tablespace } else { self.row().tablespace };
        Ok(self.all_tablespaces(|| AllTablespaces::read(self))?.settings(tablespace))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_those_the_server_takes() {
        for (text, expected) in [
            ("0", Some(0)),
            (" 32 ", Some(32)),
            ("+7", Some(7)),
            ("0x10", Some(16)),
            ("010", Some(8)),
            ("2.5", Some(2)),
            ("1e2", Some(100)),
            (".9", Some(1)),
            ("1000", Some(1000)),
            ("1000.4", Some(1000)),
        ] {
            assert_eq!(concurrency(text.as_bytes()), expected, "{text}");
        }
        for text in
            ["", "1001", "-1", "08", "ten", "1 kB", "--1", "0x", "0x-1", "inf", "1e99", "-.6"]
        {
            assert_eq!(concurrency(text.as_bytes()), None, "{text}");
        }
        assert_eq!(
            (page_cost(b"1.1"), page_cost(b" 4 "), page_cost(b"1e1")),
            (Some(1.1), Some(4.0), Some(10.0))
        );
        for text in ["", "-0.1", "nan", "inf", "1,5", "four"] {
            assert_eq!(page_cost(text.as_bytes()), None, "{text}");
        }
    }

    fn fast(options: &[&str]) -> AllTablespaces {
        let mut session = TablespaceSettings::defaults(PgVersion::V15);
        let mut settings = Settings::default();
        settings.set(EFFECTIVE_IO_CONCURRENCY, b"8");
        settings.set(SEQ_PAGE_COST, b"cheap");
        session.apply_session(&settings);
        let name = b"fast".as_slice().into();
        let mut row = TablespaceRow { name, options: Vec::new(), problems: Vec::new() };
        row.take(Ok(options.iter().map(|option| option.as_bytes().to_vec()).collect()));
        AllTablespaces { session, rows: HashMap::from([(Oid(20_000), row)]) }
    }

    #[test]
    fn a_tablespace_overrides_the_session_and_the_session_the_default() {
        let all = fast(&["effective_io_concurrency=200", "random_page_cost=1.1"]);
        let (own, other) = (all.settings(Oid(20_000)), all.settings(Oid(1663)));
        let from = SettingSource::Tablespace(b"fast".as_slice().into());
        assert_eq!(own.effective_io_concurrency, InUse { value: 200, from });
        assert_eq!(own.random_page_cost.value, 1.1);
        assert_eq!(own.maintenance_io_concurrency, by_default(10));
        let from = SettingSource::Session;
        assert_eq!(other.effective_io_concurrency, InUse { value: 8, from });
        assert_eq!(other.random_page_cost, by_default(4.0));
    }

    #[test]
    fn what_a_server_would_not_have_taken_is_named_and_passed_over() {
        let all =
            fast(&["effective_io_concurrency=1001", "nonsense", "color=red", "seq_page_cost=2"]);
        let own = all.settings(Oid(20_000));
        assert_eq!((own.effective_io_concurrency.value, own.seq_page_cost.value), (8, 2.0));
        assert_eq!(own.problems.len(), 4, "{:?}", own.problems);
        for (problem, part) in
            own.problems.iter().zip(["\"cheap\"", "\"nonsense\" has no value", "1001", "color"])
        {
            assert!(problem.contains(part), "{problem}");
        }
    }

    #[test]
    fn equal_costs_favour_no_neighbours() {
        let equal = fast(&["seq_page_cost=2", "random_page_cost=2"]);
        assert!(!equal.settings(Oid(20_000)).favours_neighbours());
        assert!(equal.settings(Oid(1663)).favours_neighbours());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_value_or_not(text: Vec<u8>, near in "[-+]?[0x]{0,2}[0-9.e+-]{0,6}") {
            for text in [&text[..], near.as_bytes()] {
                prop_assert!(concurrency(text).is_none_or(|n| n <= 1000));
                prop_assert!(page_cost(text).is_none_or(|cost| cost >= 0.0));
            }
        }
    }
}
