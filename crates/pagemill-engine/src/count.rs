//! Counting the rows of a table: a scan that looks at line pointers and visibility only.
//!
//! Several threads take shares of the table from one counter; the sum does not depend on who
//! takes which.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use pagemill_cluster::Cluster;

use crate::damage::DamageLog;
use crate::error::{Error, Result};
use crate::scan::{Progress, Scan};
use crate::table::Table;

/// Blocks a thread takes at a time (8 MiB).
const SHARE_BLOCKS: u32 = 1024;

/// How to scan.
#[derive(Debug, Clone, Copy)]
pub struct ScanOptions {
    /// Most blocks fetched by one read call.
    pub io_combine_limit: u32,
    /// Threads that scan.
    pub jobs: usize,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self { io_combine_limit: pagemill_stream::DEFAULT_IO_COMBINE_LIMIT, jobs: 1 }
    }
}

/// Counts the rows that a server started on the files would count.
///
/// # Errors
/// On damage, unless it is to be skipped; when files cannot be read.
pub fn count(
    cluster: &Cluster,
    table: &Table,
    options: ScanOptions,
    progress: &Progress,
    damage: &mut DamageLog,
) -> Result<u64> {
    let scan = || Scan::new(cluster, table, options.io_combine_limit, progress);
    if options.jobs <= 1 {
        return scan().count(0..table.blocks(), damage);
    }
    let shares = Shares::new(table.blocks());
    let policy = damage.policy();
    let counts = std::thread::scope(|scope| {
        let work = || count_shares(scan(), &shares, DamageLog::new(policy));
        let threads: Vec<_> = (0..options.jobs).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|t| t.join().unwrap_or(Err(Error::Worker))).collect::<Vec<_>>()
    });
    let mut rows = 0;
    for outcome in counts {
        let (counted, found) = outcome?;
        rows += counted;
        damage.append(found);
    }
    Ok(rows)
}

fn count_shares(
    mut scan: Scan<'_>,
    shares: &Shares,
    mut damage: DamageLog,
) -> Result<(u64, DamageLog)> {
    let mut rows = 0;
    while let Some(range) = shares.next() {
        match scan.count(range, &mut damage) {
            Ok(counted) => rows += counted,
            Err(error) => {
                shares.close();
                return Err(error);
            }
        }
    }
    Ok((rows, damage))
}

/// Ranges of blocks, handed out to whichever thread asks next.
struct Shares {
    next: AtomicU32,
    count: u32,
    blocks: u32,
}

impl Shares {
    fn new(blocks: u32) -> Self {
        Self { next: AtomicU32::new(0), count: blocks.div_ceil(SHARE_BLOCKS), blocks }
    }

    fn next(&self) -> Option<Range<u32>> {
        let share = self.next.fetch_add(1, Ordering::Relaxed);
        (share < self.count).then(|| {
            let start = share * SHARE_BLOCKS;
            start..start.saturating_add(SHARE_BLOCKS).min(self.blocks)
        })
    }

    /// No more is handed out.
    fn close(&self) {
        self.next.store(self.count, Ordering::Relaxed);
    }
}
