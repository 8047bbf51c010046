//! The two sides in turns: COPY on a server that was started before, and `pagemill load` into the same cluster, stopped.
//!
//! Each turn begins with a table without rows, an input that is in the page cache, and nothing left to be written.
//! Invariant: no time is kept of a run after which the table had not all rows.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::bench_cluster::{BenchCluster, pieces};
use super::loader::{Loader, RunStats};
use super::options::Options;
use super::rows::Row;
use crate::bench::figures::verdict;
use crate::bench::server::Server;

/// One row with everything that was found out about it.
pub(super) struct Measured {
    pub(super) row: Row,
    pub(super) server_ms: Vec<f64>,
    pub(super) pagemill_ms: Vec<f64>,
    /// Of the last run.
    pub(super) stats: RunStats,
    pub(super) peak_memory_mib: Option<f64>,
    pub(super) input_bytes: u64,
    /// Of the table's file, as COPY and as pagemill left it in the last run.
    pub(super) server_pieces: Option<u64>,
    pub(super) pagemill_pieces: Option<u64>,
    /// Of the table.
    pub(super) blocks: u64,
    pub(super) fault: Option<String>,
}

impl Measured {
    /// PostgreSQL's time over pagemill's, pair by pair.
    pub(super) fn ratios(&self) -> Vec<f64> {
        let pairs = self.server_ms.iter().zip(&self.pagemill_ms);
        pairs.map(|(server, pagemill)| server / pagemill).collect()
    }

    pub(super) fn verdict(&self) -> &'static str {
        if self.fault.is_some() {
            return "failed";
        }
        verdict(&self.ratios(), |ratio| ratio >= super::rows::TARGET)
    }

    /// Write calls for 64 blocks written.
    pub(super) fn writes_per_64_blocks(&self) -> Option<f64> {
        let runs = self.stats.bytes_written as f64 / (64.0 * 8192.0);
        (runs > 0.0).then(|| self.stats.write_calls as f64 / runs)
    }
}

/// Everything a turn needs to know.
pub(super) struct Stand<'a> {
    pub(super) options: &'a Options,
    pub(super) bench_cluster: &'a BenchCluster,
    pub(super) loader: &'a Loader,
}

/// A table as it lies on the disk.
struct Lying {
    blocks: u64,
    pieces: Option<u64>,
}

impl Stand<'_> {
    /// Measures one row; a failure is part of the result.
    pub(super) fn measure(&self, row: &Row) -> Measured {
        let mut measured = Measured {
            row: *row,
            server_ms: Vec::new(),
            pagemill_ms: Vec::new(),
            stats: RunStats::default(),
            peak_memory_mib: None,
            input_bytes: 0,
            server_pieces: None,
            pagemill_pieces: None,
            blocks: 0,
            fault: None,
        };
        if let Err(error) = self.take_turns(&mut measured) {
            eprintln!("{}: {error:#}", row.id);
            let fault = self.bench_cluster.without_places(&format!("{error:#}"));
            measured.fault = Some(fault.trim().replace('\n', " "));
        }
        measured
    }

    /// A warm-up of each side, in which pagemill is asked for its memory, and then the timed turns.
    fn take_turns(&self, measured: &mut Measured) -> Result<()> {
        let row = measured.row;
        measured.input_bytes = std::fs::metadata(self.input(&row))?.len();
        self.copy(&row)?;
        self.make_table(&row)?;
        measured.peak_memory_mib = Some(self.loader.watched(&row, &self.input(&row))?);
        self.look(&row)?;
        for _ in 0..self.options.run.repetitions {
            let (milliseconds, lying) = self.copy(&row)?;
            measured.server_ms.push(milliseconds);
            measured.server_pieces = lying.pieces;
            self.make_table(&row)?;
            let (milliseconds, stats) = self.loader.timed(&row, &self.input(&row))?;
            let lying = self.look(&row)?;
            measured.pagemill_ms.push(milliseconds);
            measured.stats = stats;
            (measured.blocks, measured.pagemill_pieces) = (lying.blocks, lying.pieces);
        }
        let drop_table = format!("drop table {}", row.input.table());
        self.bench_cluster.start(self.options, &row)?.psql(&[&drop_table, "checkpoint"])?;
        Ok(())
    }

    fn input(&self, row: &Row) -> PathBuf {
        self.bench_cluster.input(row.input)
    }

    /// COPY's milliseconds, until its commit, into a table without rows.
    fn copy(&self, row: &Row) -> Result<(f64, Lying)> {
        let server = self.bench_cluster.start(self.options, row)?;
        self.empty(&server, row, row.is_logged, false)?;
        self.bench_cluster.settle(row.input)?;
        let before = row.before_copy();
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        let (_, milliseconds) = server.timed_after(&before, &row.copy(&self.input(row)))?;
        Ok((milliseconds, self.lying(&server, row)?))
    }

    /// Drops the table, and makes it anew where that is not part of the transaction that fills it.
    fn empty(&self, server: &Server<'_>, row: &Row, makes: bool, with_key: bool) -> Result<()> {
        let drop_table = format!("drop table if exists {}", row.input.table());
        let quiet = "set client_min_messages = warning";
        server.psql(&[quiet, &drop_table])?;
        if makes {
            server.psql(&[&row.create(with_key)])?;
        }
        server.psql(&["checkpoint"])?;
        Ok(())
    }

    /// A table without rows in a stopped cluster, with the input in the page cache.
    fn make_table(&self, row: &Row) -> Result<()> {
        let server = self.bench_cluster.start(self.options, row)?;
        self.empty(&server, row, true, row.has_key)?;
        drop(server);
        self.bench_cluster.settle(row.input)
    }

    /// Starts a server on what was loaded, and counts.
    fn look(&self, row: &Row) -> Result<Lying> {
        let server = self.bench_cluster.start(self.options, row)?;
        self.lying(&server, row)
    }

    /// Counts the rows, and looks how the table lies on the disk.
    fn lying(&self, server: &Server<'_>, row: &Row) -> Result<Lying> {
        let table = row.input.table();
        let count = server.psql(&[&format!("select count(*) from {table}")])?;
        let expected = row.input.rows(self.options).to_string();
        ensure!(count.trim() == expected, "{} rows instead of {expected}", count.trim());
        let keys =
            "select count(*) from pg_index where indisprimary and indisvalid and indrelid = ";
        let keys = server.psql(&[&format!("{keys}'{table}'::regclass")])?;
        ensure!(keys.trim() == u8::from(row.has_key).to_string(), "not the key that was wanted");
        server.psql(&["checkpoint"])?;
        rustix::fs::sync();
        let size = server.psql(&[&format!("select pg_relation_size('{table}') / 8192")])?;
        let blocks = size.trim().parse().context("pg_relation_size")?;
        let path = server.psql(&[&format!("select pg_relation_filepath('{table}')")])?;
        let segments = self.bench_cluster.segments(path.trim());
        let pieces = segments.iter().map(|segment| pieces(segment)).sum();
        Ok(Lying { blocks, pieces })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::load::rows;

    #[test]
    fn a_ratio_is_taken_pair_by_pair_and_a_target_inside_the_interval_is_called_noise() {
        let mut measured = Measured {
            row: rows::selected(&[]).unwrap()[0],
            server_ms: vec![100.0, 200.0],
            pagemill_ms: vec![10.0, 10.0],
            stats: RunStats { write_calls: 3, bytes_written: 128 * 8192, sync_calls: 1 },
            peak_memory_mib: None,
            input_bytes: 0,
            server_pieces: None,
            pagemill_pieces: None,
            blocks: 128,
            fault: None,
        };
        assert_eq!((measured.ratios(), measured.verdict()), (vec![10.0, 20.0], "met"));
        assert_eq!(measured.writes_per_64_blocks(), Some(1.5));
        measured.server_ms = vec![20.0, 90.0, 90.0];
        measured.pagemill_ms = vec![10.0; 3];
        assert_eq!(measured.verdict(), "met, within noise");
        measured.fault = Some("no".into());
        assert_eq!(measured.verdict(), "failed");
    }
}
