//! The rows of the benchmark, and what is wanted of each.
//!
//! Databases are rows of one kind, whole clusters of another, as others are measured beside them.

use anyhow::{Result, bail};

use super::options::Options;

/// Resident set at most, in MiB.
pub(super) const MEMORY_TARGET_MIB: f64 = 128.0;
/// Reads, writes of data and writes of WAL for 64 blocks at most, each.
pub(super) const CALLS_TARGET: f64 = 1.0;
/// What a copy that shares its blocks takes at most, in milliseconds.
pub(super) const REFLINK_TARGET_MS: f64 = 1000.0;
/// The share of such a copy that lies in shared blocks.
pub(super) const SHARED_TARGET: f64 = 0.99;
/// How many times as fast as each of the others the copy of a whole cluster has to be.
pub(super) const WHOLE_TARGET: f64 = 1.3;

/// How a database is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    WalLog,
    /// Its WAL compressed by both.
    WalLogLz4,
    /// Its WAL compressed by pagemill alone, by a flag that CREATE DATABASE has not: the server is set up as for `WalLog`.
    WalLogOwnLz4,
    FileCopy,
    Reflink,
}

/// What is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Template {
    /// A database with table t.
    Large,
    /// What initdb made: hundreds of small files.
    Small,
}

impl Template {
    pub(super) const fn database(self) -> &'static str {
        match self {
            Self::Large => "postgres",
            Self::Small => "template1",
        }
    }

    /// A query whose answer a copy shares.
    pub(super) const fn fingerprint(self) -> &'static str {
        match self {
            Self::Large => "select count(*), sum(hashtext(filler)::int8) from t",
            Self::Small => "select count(*), sum(hashtext(attname::text)::int8) from pg_attribute",
        }
    }
}

/// Where the cluster lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileSystemChoice {
    /// In the directory that was asked for.
    Here,
    /// On XFS, on a loop device whose image lies in that directory.
    Xfs,
}

/// One row of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: &'static str,
    pub(super) strategy: Strategy,
    pub(super) template: Template,
    pub(super) major: u32,
    pub(super) place: FileSystemChoice,
}

const fn row(id: &'static str, strategy: Strategy, template: Template, major: u32) -> Row {
    let place = match strategy {
        Strategy::Reflink => FileSystemChoice::Xfs,
        _ => FileSystemChoice::Here,
    };
    Row { id, strategy, template, major, place }
}

const ROWS: [Row; 12] = [
    row("wal_log-15", Strategy::WalLog, Template::Large, 15),
    row("lz4-wal_log-15", Strategy::WalLogLz4, Template::Large, 15),
    row("own-lz4-wal_log-15", Strategy::WalLogOwnLz4, Template::Large, 15),
    row("file_copy-15", Strategy::FileCopy, Template::Large, 15),
    row("small-wal_log-15", Strategy::WalLog, Template::Small, 15),
    row("small-file_copy-15", Strategy::FileCopy, Template::Small, 15),
    row("wal_log-18", Strategy::WalLog, Template::Large, 18),
    row("own-lz4-wal_log-18", Strategy::WalLogOwnLz4, Template::Large, 18),
    row("file_copy-18", Strategy::FileCopy, Template::Large, 18),
    row("small-wal_log-18", Strategy::WalLog, Template::Small, 18),
    row("small-file_copy-18", Strategy::FileCopy, Template::Small, 18),
    row("reflink-18", Strategy::Reflink, Template::Large, 18),
];

impl Row {
    /// Rows of the same ground share a cluster.
    pub(super) fn bench_cluster(&self) -> (u32, FileSystemChoice) {
        (self.major, self.place)
    }

    /// How many times as fast as the server it has to be.
    pub(super) fn target(&self) -> Option<f64> {
        match (self.template, self.strategy) {
            (Template::Small, _) | (_, Strategy::Reflink) => None,
            (Template::Large, Strategy::FileCopy) => Some(3.0),
            (Template::Large, _) => Some(4.0),
        }
    }

    /// What the server is started with. A server of 18 shares blocks when it is told to.
    pub(super) fn settings(&self) -> &'static [&'static str] {
        match self.strategy {
            Strategy::Reflink => {
                &["wal_level=replica", "max_wal_size=16GB", "file_copy_method=clone"]
            }
            Strategy::WalLogLz4 => {
                &["wal_level=replica", "max_wal_size=16GB", "wal_compression=lz4"]
            }
            _ => &["wal_level=replica", "max_wal_size=16GB"],
        }
    }

    /// What the server is timed with, before a CHECKPOINT.
    pub(super) fn statement(&self) -> String {
        let strategy = match self.strategy {
            Strategy::WalLog | Strategy::WalLogLz4 | Strategy::WalLogOwnLz4 => "wal_log",
            Strategy::FileCopy | Strategy::Reflink => "file_copy",
        };
        format!("create database copy template {} strategy {strategy}", self.template.database())
    }

    /// The arguments of pagemill, without the data directory.
    pub(super) fn arguments(&self, options: &Options) -> Vec<String> {
        let strategy = match self.strategy {
            Strategy::WalLog | Strategy::WalLogLz4 | Strategy::WalLogOwnLz4 => "wal_log",
            Strategy::FileCopy => "file_copy",
            Strategy::Reflink => "reflink",
        };
        let words = ["--strategy", strategy, "-v", "--stats=json"];
        let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        if matches!(self.strategy, Strategy::WalLogLz4 | Strategy::WalLogOwnLz4) {
            words.push("--wal-compression=lz4".to_owned());
        }
        words.extend(options.jobs.map(|jobs| format!("--jobs={jobs}")));
        words.extend([self.template.database().to_owned(), "copy".to_owned()]);
        words
    }
}

/// A row of another kind: the copy of a whole cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WholeRow {
    pub(super) id: &'static str,
    pub(super) major: u32,
}

const WHOLE_ROWS: [WholeRow; 1] = [WholeRow { id: "cluster-15", major: 15 }];

/// The rows that are wanted, of both kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Selected {
    pub(super) rows: Vec<Row>,
    pub(super) wholes: Vec<WholeRow>,
}

impl Selected {
    /// The clusters they need, each once.
    pub(super) fn grounds(&self) -> Vec<(u32, FileSystemChoice)> {
        let mut grounds: Vec<_> = self.wholes.iter().map(WholeRow::bench_cluster).collect();
        grounds.extend(self.rows.iter().map(Row::bench_cluster));
        grounds.sort_by_key(|&(major, place)| (place == FileSystemChoice::Xfs, major));
        grounds.dedup();
        grounds
    }

    pub(super) fn names(&self) -> Vec<&'static str> {
        let wholes = self.wholes.iter().map(|row| row.id);
        wholes.chain(self.rows.iter().map(|row| row.id)).collect()
    }
}

impl WholeRow {
    pub(super) fn bench_cluster(&self) -> (u32, FileSystemChoice) {
        (self.major, FileSystemChoice::Here)
    }
}

/// The rows whose names begin with one of these words; all for none.
pub(super) fn selected(words: &[String]) -> Result<Selected> {
    let all = Selected { rows: ROWS.to_vec(), wholes: WHOLE_ROWS.to_vec() };
    let matches = |name: &str, word: &String| name.starts_with(word.as_str());
    let names = all.names();
    if let Some(word) = words.iter().find(|word| !names.iter().any(|name| matches(name, word))) {
        bail!("no row begins with {word}; there are: {}", names.join(" "));
    }
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| matches(name, word));
    Ok(Selected {
        rows: all.rows.into_iter().filter(|row| wanted(row.id)).collect(),
        wholes: all.wholes.into_iter().filter(|row| wanted(row.id)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_selects_the_rows_that_begin_with_it() {
        let names = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            selected(&words).unwrap().names()
        };
        assert_eq!(names(&["small", "cluster"]).len(), 5);
        assert_eq!(names(&[]).len(), ROWS.len() + WHOLE_ROWS.len());
        assert!(selected(&["count".to_owned()]).is_err());
    }

    #[test]
    fn rows_of_one_cluster_share_it() {
        let grounds = selected(&[]).unwrap().grounds();
        assert_eq!(
            grounds,
            [
                (15, FileSystemChoice::Here),
                (18, FileSystemChoice::Here),
                (18, FileSystemChoice::Xfs)
            ]
        );
    }
}
