//! What is measured: the rows of the result, and what each side does for them.
//!
//! Both sides read one file into tables of the same columns. Targets are set here, before a run, and never moved to fit
//! one.

use std::path::Path;

use anyhow::{Result, bail};

use super::options::Options;

/// How many times faster than COPY.
pub(super) const TARGET: f64 = 4.0;
/// Peak memory of any row.
pub(super) const MEMORY_TARGET_MIB: f64 = 256.0;
/// Write calls for 64 blocks written, WAL included.
pub(super) const WRITES_TARGET: f64 = 1.0;

/// A file to be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// One wide text column, about 600 bytes a row.
    T,
    /// Three random integers.
    Bigtable,
    /// The same, no two of the first column equal.
    Unique,
}

impl Input {
    pub(super) const ALL: [Self; 3] = [Self::T, Self::Bigtable, Self::Unique];

    pub(super) const fn file_name(self) -> &'static str {
        match self {
            Self::T => "t.csv",
            Self::Bigtable => "bigtable.csv",
            Self::Unique => "unique.csv",
        }
    }

    pub(super) const fn rows(self, options: &Options) -> u64 {
        match self {
            Self::T => options.rows,
            Self::Bigtable | Self::Unique => options.bigtable_rows,
        }
    }

    pub(super) const fn table(self) -> &'static str {
        match self {
            Self::T => "t",
            Self::Bigtable | Self::Unique => "bigtable",
        }
    }

    const fn columns(self) -> &'static str {
        match self {
            Self::T => "filler text",
            Self::Bigtable | Self::Unique => "a int4, b int4, c int4",
        }
    }

    /// Writes the file. An odd factor modulo a power of two gives every number once.
    pub(super) fn statement(self, options: &Options, file: &Path) -> String {
        let rows = self.rows(options);
        let random = "(random() * 2147483647)::int4";
        let query = match self {
            Self::T => format!(
                "select repeat('a', 100) || i || repeat('b', 500) from generate_series(1, {rows}) i"
            ),
            Self::Bigtable => {
                format!("select {random}, {random}, {random} from generate_series(1, {rows})")
            }
            Self::Unique => format!(
                "select ((i::int8 * 1103515245 + 12345) & 2147483647)::int4, {random}, {random} \
                 from generate_series(1, {rows}) i order by random()"
            ),
        };
        format!("copy ({query}) to {} (format csv)", quoted(file))
    }
}

/// One row of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: &'static str,
    pub(super) input: Input,
    /// The table has a primary key at the end.
    pub(super) has_key: bool,
    /// Everything is logged; otherwise rows are frozen, and nothing is logged that need not be.
    pub(super) is_logged: bool,
}

const ROWS: [Row; 6] = [
    Row { id: "t-logged", input: Input::T, has_key: false, is_logged: true },
    Row { id: "t-freeze", input: Input::T, has_key: false, is_logged: false },
    Row { id: "bigtable-logged", input: Input::Bigtable, has_key: false, is_logged: true },
    Row { id: "bigtable-freeze", input: Input::Bigtable, has_key: false, is_logged: false },
    Row { id: "bigtable-key-logged", input: Input::Unique, has_key: true, is_logged: true },
    Row { id: "bigtable-key-freeze", input: Input::Unique, has_key: true, is_logged: false },
];

impl Row {
    /// What the server is started with.
    pub(super) fn settings(&self) -> &'static [&'static str] {
        match self.is_logged {
            true => &["wal_level=replica", "max_wal_size=16GB"],
            false => &["wal_level=minimal", "max_wal_size=16GB"],
        }
    }

    /// Leaves an empty table.
    pub(super) fn create(&self, with_key: bool) -> String {
        let key = if with_key { ", primary key (a)" } else { "" };
        let (table, columns) = (self.input.table(), self.input.columns());
        format!("create table {table} ({columns}{key})")
    }

    /// What the server does first in the session that is timed, without being timed.
    pub(super) fn before_copy(&self) -> Vec<String> {
        match self.is_logged {
            true => Vec::new(),
            false => vec!["begin".to_owned(), self.create(false)],
        }
    }

    /// What the server is timed with: until everything is committed.
    pub(super) fn copy(&self, file: &Path) -> String {
        let (table, file) = (self.input.table(), quoted(file));
        let freeze = if self.is_logged { "" } else { ", freeze" };
        let key = if self.has_key { "; alter table bigtable add primary key (a)" } else { "" };
        let commit = if self.is_logged { "" } else { "; commit" };
        format!("copy {table} from {file} (format csv{freeze}){key}{commit}")
    }

    /// The flags of `pagemill load`.
    pub(super) fn flags(&self) -> &'static [&'static str] {
        if self.is_logged { &[] } else { &["--no-wal", "--freeze", "--truncate"] }
    }
}

fn quoted(file: &Path) -> String {
    format!("'{}'", file.to_string_lossy().replace('\'', "''"))
}

/// The rows whose names begin with one of these words; all for none.
pub(super) fn selected(words: &[String]) -> Result<Vec<Row>> {
    let matches = |row: &Row, word: &String| row.id.starts_with(word.as_str());
    if let Some(word) = words.iter().find(|word| !ROWS.iter().any(|row| matches(row, word))) {
        let names: Vec<&str> = ROWS.iter().map(|row| row.id).collect();
        bail!("no row begins with {word}; there are: {}", names.join(" "));
    }
    let wanted = |row: &Row| words.is_empty() || words.iter().any(|word| matches(row, word));
    Ok(ROWS.into_iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str) -> Row {
        selected(&[id.to_owned()]).unwrap()[0]
    }

    #[test]
    fn a_word_selects_the_rows_that_begin_with_it() {
        assert_eq!(selected(&["t-".to_owned()]).unwrap().len(), 2);
        assert_eq!(selected(&[]).unwrap().len(), ROWS.len());
        assert!(selected(&["count".to_owned()]).is_err());
    }

    #[test]
    fn the_clock_runs_until_the_commit_and_not_while_the_table_is_made() {
        let file = Path::new("/in's");
        assert_eq!(row("t-logged").copy(file), "copy t from '/in''s' (format csv)");
        assert_eq!(
            row("bigtable-key-freeze").copy(Path::new("/i")),
            "copy bigtable from '/i' (format csv, freeze); alter table bigtable add primary key (a); commit"
        );
        assert_eq!(row("t-freeze").before_copy(), ["begin", "create table t (filler text)"]);
        assert!(row("t-logged").before_copy().is_empty());
    }
}
