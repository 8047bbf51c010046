//! Counting the rows of a table: a scan that looks at line pointers and visibility only.
//!
//! Several threads take shares of the table from one counter; the sum does not depend on who
//! takes which, and neither does the order of the losses.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::Builder;

use pagemill_cluster::{ClusterLog, heap};

use crate::damage::{DamageLog, OnDamage};
use crate::error::{Error, Result};
use crate::page_scan::{PageScan, PageUse};
use crate::progress::Progress;
use crate::scan_plan::{ScanPlan, ScanRequest};
use crate::table::Shares;
use crate::table_scan::common_blocks;

/// Blocks a thread takes at a time (8 MiB).
const SHARE_BLOCKS: u32 = 1024;

/// Counts the rows that a server started on the files would count.
///
/// # Errors
/// On damage, unless it is to be skipped; when files cannot be read, or the block to begin with is
/// past the end.
pub fn count(request: ScanRequest<'_>, damage: &mut DamageLog) -> Result<u64> {
    let ScanRequest { cluster, table, options, progress } = request;
    let plan = ScanPlan::new(cluster, table, options)?;
    let counter = || Counter { plan: &plan, log: ClusterLog::new(cluster.clone()), progress };
    let shares = plan.shares(SHARE_BLOCKS);
    let jobs = options.jobs.min(shares.count() as usize);
    if jobs <= 1 {
        return counter().count(plan.ranges(), damage);
    }
    let queue = Queue { next: AtomicU32::new(0), shares };
    let policy = damage.policy();
    let counted = std::thread::scope(|scope| {
        let work = || count_shares(counter(), &queue, policy);
        let start = |_| Builder::new().spawn_scoped(scope, work).map_err(Error::Threads);
        // Whoever was started finds nothing left to do when another could not be.
        let threads: Result<Vec<_>> = (0..jobs).map(start).collect();
        let threads = threads.inspect_err(|_| queue.close())?;
        threads.into_iter().map(|t| t.join().map_err(|_| Error::Worker)).collect::<Result<Vec<_>>>()
    });
    let counted = counted?;
    let rows = counted.iter().map(|one| one.rows).sum();
    let (logs, failures): (Vec<_>, Vec<_>) =
        counted.into_iter().map(|one| (one.damage, one.failure)).unzip();
    damage.merge(&logs, plan.order())?;
    // Shares are handed out in order, and those begun are done to their end: so the failure of
    // the lowest one is the same whoever met it.
    match failures.into_iter().flatten().min_by_key(|(share, _)| *share) {
        Some((_, error)) => Err(error),
        None => Ok(rows),
    }
}

/// Counts the rows of some blocks, by this one thread: those of ranges that have no block in common, and all blocks in one of them,
/// are those of the table.
///
/// # Errors
/// As [`count`].
pub fn count_blocks(
    request: ScanRequest<'_>,
    blocks: &[Range<u32>],
    damage: &mut DamageLog,
) -> Result<u64> {
    let ScanRequest { cluster, table, options, progress } = request;
    let plan = ScanPlan::new(cluster, table, options)?;
    let chosen = plan.order().arrange(&common_blocks(table.present(), blocks));
    Counter { plan: &plan, log: ClusterLog::new(cluster.clone()), progress }.count(chosen, damage)
}

/// What counts, one for each thread.
struct Counter<'a> {
    plan: &'a ScanPlan,
    log: ClusterLog,
    progress: &'a Progress,
}

impl Counter<'_> {
    /// The visible tuples of ranges of blocks.
    fn count(
        &mut self,
        ranges: impl IntoIterator<Item = Range<u32>>,
        damage: &mut DamageLog,
    ) -> Result<u64> {
        let scan = PageScan::new(self.plan, ranges, PageUse::LinePointers, self.progress);
        let Some(mut scan) = scan else { return Ok(0) };
        let mut rows = 0;
        while let Some(sound) = scan.next_page(damage)? {
            let mut faults = 0;
            let alive = heap::count_tuples(sound.page, &mut self.log, |number, fault| {
                faults += 1;
                damage.report(sound.location.tuple_damage(number, fault)?)
            })?;
            let dead = sound.dead_tuples(alive as usize + faults);
            scan.note_tuples(alive, dead);
            rows += alive;
        }
        Ok(rows)
    }
}

/// What a thread did.
struct Counted {
    rows: u64,
    damage: DamageLog,
    /// The share that failed, and why.
    failure: Option<(u32, Error)>,
}

fn count_shares(mut counter: Counter<'_>, queue: &Queue, policy: OnDamage) -> Counted {
    let mut done = Counted { rows: 0, damage: DamageLog::new(policy), failure: None };
    while let Some((share, range)) = queue.next() {
        match counter.count([range], &mut done.damage) {
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
