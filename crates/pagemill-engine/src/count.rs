//! Counting the rows of a table: a scan that looks at line pointers and visibility only.
//!
//! Several threads take shares of the table from one counter; the sum does not depend on who
//! takes which, and neither does the order of the losses.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::Builder;

use pagemill_cluster::Cluster;

use crate::damage::{DamageLog, OnDamage};
use crate::error::{Error, Result};
use crate::scan::{Progress, Scan};
use crate::scan_plan::{ScanOptions, ScanPlan};
use crate::table::{Shares, Table};

/// Blocks a thread takes at a time (8 MiB).
const SHARE_BLOCKS: u32 = 1024;

/// Counts the rows that a server started on the files would count.
///
/// # Errors
/// On damage, unless it is to be skipped; when files cannot be read, or the block to begin with is
/// past the end.
pub fn count(
    cluster: &Cluster,
    table: &Table,
    options: ScanOptions,
    progress: &Progress,
    damage: &mut DamageLog,
) -> Result<u64> {
    let plan = ScanPlan::new(cluster, table, options)?;
    let scan = || Scan::new(&plan, progress);
    let shares = plan.shares(SHARE_BLOCKS);
    let jobs = options.jobs.min(shares.count() as usize);
    if jobs <= 1 {
        return scan().count(&plan.ranges(), damage);
    }
    let queue = Queue { next: AtomicU32::new(0), shares };
    let policy = damage.policy();
    let outcomes = std::thread::scope(|scope| {
        let work = || count_shares(scan(), &queue, policy);
        let start = |_| Builder::new().spawn_scoped(scope, work).map_err(Error::Threads);
        // Whoever was started finds nothing left to do when another could not be.
        let threads: Result<Vec<_>> = (0..jobs).map(start).collect();
        let threads = threads.inspect_err(|_| queue.close())?;
        threads.into_iter().map(|t| t.join().map_err(|_| Error::Worker)).collect::<Result<Vec<_>>>()
    });
    let outcomes = outcomes?;
    let rows = outcomes.iter().map(|outcome| outcome.rows).sum();
    let (logs, failures): (Vec<_>, Vec<_>) =
        outcomes.into_iter().map(|outcome| (outcome.damage, outcome.failure)).unzip();
    damage.merge(&logs, plan.order())?;
    // Shares are handed out in order, and those begun are done to their end: so the failure of
    // the lowest one is the same whoever met it.
    match failures.into_iter().flatten().min_by_key(|(share, _)| *share) {
        Some((_, error)) => Err(error),
        None => Ok(rows),
    }
}

/// What a thread did.
struct Outcome {
    rows: u64,
    damage: DamageLog,
    /// The share that failed, and why.
    failure: Option<(u32, Error)>,
}

fn count_shares(mut scan: Scan<'_>, queue: &Queue, policy: OnDamage) -> Outcome {
    let mut done = Outcome { rows: 0, damage: DamageLog::new(policy), failure: None };
    while let Some((share, range)) = queue.next() {
        match scan.count(std::slice::from_ref(&range), &mut done.damage) {
            Ok(counted) => done.rows += counted,
            Err(error) => {
                queue.close();
                done.failure = Some((share, error));
                break;
            }
        }
    }
    done
}

/// The shares of a table, handed out in order to whichever thread asks next.
struct Queue {
    next: AtomicU32,
    shares: Shares,
}

impl Queue {
    fn next(&self) -> Option<(u32, Range<u32>)> {
        let share = self.next.fetch_add(1, Ordering::Relaxed);
        Some((share, self.shares.get(share)?))
    }

    /// No more is handed out.
    fn close(&self) {
        self.next.store(self.shares.count(), Ordering::Relaxed);
    }
}
