//! What a fleet may have to do: [`Work`].
//!
//! Invariant: what is computed and not asked for comes from this project's benchmarks, and what is asked for from its tests of requests.

use std::time::Duration;

/// Opening a database: requests of which some wait for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// Requests for names.
    pub lists: u64,
    /// Requests for contents.
    pub gets: u64,
    /// How many of them follow each other.
    pub in_a_row: u32,
    /// Bytes of all of them.
    pub bytes: u64,
    /// What the process computes before, between and after them.
    pub computing: Duration,
}

impl Opening {
    /// As the command opens a database, by the log of a server: what the tests of requests hold it to.
    pub fn of_a_database() -> Self {
        Self { lists: 4, gets: 32, in_a_row: 6, bytes: 4_200_000, computing: COMPUTING }
    }
}

/// The whole command `ls`, on a store without latency and without a limit.
const COMPUTING: Duration = Duration::from_millis(60);

/// Something that workers do together: each opens the database, then reads its share, then takes the steps that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// What it is called.
    pub name: &'static str,
    /// What each worker does first.
    pub opening: Opening,
    /// Bytes that are read in shares.
    pub bytes: u64,
    /// Bytes a second that one core gets through, receiving left out; 0 where nothing is read in shares.
    pub core_rate: u64,
    /// Requests that each wait for the one before, down an index.
    pub steps: u32,
}

impl Work {
    /// All rows of tables of so many bytes, counted: by the benchmark of this machine's page cache, 2 cores.
    pub fn count(bytes: u64) -> Self {
        let core_rate = 2_400_000_000;
        Self { name: "count", opening: Opening::of_a_database(), bytes, core_rate, steps: 0 }
    }

    /// All rows, written out as text, as `export` does.
    pub fn export(bytes: u64) -> Self {
        Self { name: "export", core_rate: 1_800_000_000, ..Self::count(bytes) }
    }

    /// A row by its key: root and inner pages, the leaf, the row.
    pub fn lookup() -> Self {
        Self { name: "lookup", bytes: 0, core_rate: 0, steps: 4, ..Self::count(0) }
    }

    /// A query of TPC-H, the mean of the 22, over a database of so many bytes.
    pub fn tpch_query(database: u64) -> Self {
        let read: u64 = TPCH_TABLES.iter().map(|table| table.share * table.scans).sum();
        let bytes = database / 10_000 * read / 22;
        Self { name: "query of TPC-H", core_rate: TPCH_CORE_RATE, ..Self::count(bytes) }
    }
}

/// 25.0 GB, which the 22 queries read at scale factor 1, in 9.2 s on 2 cores: the benchmark of SQL of 2026-11-24.
const TPCH_CORE_RATE: u64 = 1_360_000_000;

/// A table of TPC-H.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TpchTable {
    /// Its name.
    pub name: &'static str,
    /// Its part of all heaps of PostgreSQL 15, in ten-thousandths.
    pub share: u64,
    /// How often the 22 queries read it.
    pub scans: u64,
}

const fn table(name: &'static str, share: u64, scans: u64) -> TpchTable {
    TpchTable { name, share, scans }
}

/// The tables, but for the two that are a page.
pub const TPCH_TABLES: [TpchTable; 6] = [
    table("lineitem", 6_889, 22),
    table("orders", 1_598, 12),
    table("partsupp", 1_039, 7),
    table("part", 244, 8),
    table("customer", 214, 9),
    table("supplier", 14, 9),
];
