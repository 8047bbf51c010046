//! What is measured: the rows of the result, and the target each is held to.
//!
//! Targets are set here and in `targets.rs`, before a run, and never moved to fit one.

use anyhow::{Result, bail};

use super::options::Options;
use crate::bench::targets::{self, Counted, Target};

/// A table of the benchmark's database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    /// One wide text column, about 600 bytes a row.
    T,
    /// Three random integers.
    Bigtable,
}

impl Table {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::T => "t",
            Self::Bigtable => "bigtable",
        }
    }
}

/// The output of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Csv,
}

impl Format {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Csv => "csv",
        }
    }
}

/// The work of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Count(Table),
    Export { table: Table, format: Format, jobs: usize },
    Startup,
}

/// One row of the result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Row {
    pub(super) id: &'static str,
    pub(super) work: Work,
}

/// Peak memory of any row.
pub(super) const MEMORY_TARGET_MIB: f64 = 64.0;

/// Read calls for 16 blocks of a table large enough for the catalogs not to matter.
pub(super) const READS_TARGET: f64 = 1.1;

const ROWS: [Row; 11] = [
    row("count-t", Work::Count(Table::T)),
    row("count-bigtable", Work::Count(Table::Bigtable)),
    export("export-text-t", Table::T, Format::Text, 1),
    export("export-text-bigtable", Table::Bigtable, Format::Text, 1),
    export("export-csv-t", Table::T, Format::Csv, 1),
    export("export-csv-bigtable", Table::Bigtable, Format::Csv, 1),
    export("export-text-t-j2", Table::T, Format::Text, 2),
    export("export-text-bigtable-j2", Table::Bigtable, Format::Text, 2),
    export("export-csv-t-j2", Table::T, Format::Csv, 2),
    export("export-csv-bigtable-j2", Table::Bigtable, Format::Csv, 2),
    row("startup-ls", Work::Startup),
];

const fn row(id: &'static str, work: Work) -> Row {
    Row { id, work }
}

const fn export(id: &'static str, table: Table, format: Format, jobs: usize) -> Row {
    row(id, Work::Export { table, format, jobs })
}

impl Row {
    pub(super) fn table(&self) -> Option<Table> {
        match self.work {
            Work::Count(table) | Work::Export { table, .. } => Some(table),
            Work::Startup => None,
        }
    }

    /// What it is held to, on the files that these options make.
    pub(super) fn target(&self, options: &Options) -> Target {
        match self.work {
            Work::Count(table) => targets::of_count(Counted {
                is_large: table == Table::T,
                checksums: options.data_checksums,
                as_written: options.as_written,
            }),
            Work::Export { .. } => Target::AtLeast(3.0),
            Work::Startup => Target::Milliseconds(50.0),
        }
    }

    pub(super) fn jobs(&self) -> usize {
        match self.work {
            Work::Export { jobs, .. } => jobs,
            _ => 1,
        }
    }
}

/// The rows whose names begin with one of these words; all for none. Rows of two jobs need two cores.
pub(super) fn selected(words: &[String], two_cores: bool) -> Result<Vec<Row>> {
    if let Some(word) = words.iter().find(|word| !ROWS.iter().any(|row| matches(row, word))) {
        let names: Vec<&str> = ROWS.iter().map(|row| row.id).collect();
        bail!("no row begins with {word}; there are: {}", names.join(" "));
    }
    let wanted = |row: &&Row| words.is_empty() || words.iter().any(|word| matches(row, word));
    let possible = |row: &&Row| row.jobs() == 1 || two_cores;
    Ok(ROWS.iter().filter(wanted).filter(possible).copied().collect())
}

fn matches(row: &Row, word: &str) -> bool {
    row.id.starts_with(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(word: &str) -> Vec<&'static str> {
        selected(&[word.to_owned()], true).unwrap().iter().map(|row| row.id).collect()
    }

    #[test]
    fn a_word_selects_the_rows_that_begin_with_it() {
        assert_eq!(ids("count"), ["count-t", "count-bigtable"]);
        assert_eq!(ids("export").len(), 8);
        assert_eq!(selected(&[], true).unwrap().len(), ROWS.len());
    }

    #[test]
    fn an_unknown_row_is_refused() {
        assert!(selected(&["vacuum".to_owned()], true).is_err());
    }

    #[test]
    fn one_core_has_no_rows_of_two_jobs() {
        assert!(selected(&[], false).unwrap().iter().all(|row| row.jobs() == 1));
    }
}
