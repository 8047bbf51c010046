//! Statements that hold many rows wait for each other where memory is limited: each alone would sort in files, and all at once have
//! too little to do even that.
//!
//! ```text
//! lookups, scans, lists, small tables ─────────────────────────► run
//! sorts, groups, joins of large tables ──► a turn, in order ───► run ──► its client is slow ──► runs on, the turn is another's
//! ```
//!
//! Invariants: who waits runs in the end, whatever clients do; nobody overtakes; a statement that ends, in any way, gives its turn back.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec,
};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use pagemill_engine::Progress;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::Result;

/// Memory for one statement at least: what its sorts need to merge their files.
const BYTES_A_TURN: usize = 128 << 20;
/// Tables of this share of the memory are small.
const SMALL: usize = 64;
/// A client that takes no rows for so long has left its turn to others.
const SLOW: Duration = Duration::from_secs(1);
/// How often one who waits looks whether it was cancelled, and for slow clients.
const GLANCE: Duration = Duration::from_millis(50);

/// The turns there are.
#[derive(Debug)]
pub(crate) struct Admission {
    memory: usize,
    free: Arc<Semaphore>,
    taken: Mutex<Vec<Weak<Mutex<Held>>>>,
}

/// The turn of a statement that runs.
#[derive(Debug)]
pub(crate) struct Turn(Arc<Mutex<Held>>);

#[derive(Debug)]
struct Held {
    /// `None` once another has it.
    permit: Option<OwnedSemaphorePermit>,
    /// Since when its client has asked for no more rows; `None` while they are computed.
    idle: Option<Instant>,
}

impl Admission {
    pub(crate) fn new(memory: usize) -> Self {
        let turns = (memory / BYTES_A_TURN).max(1);
        Self { memory, free: Arc::new(Semaphore::new(turns)), taken: Mutex::default() }
    }

    /// Lets a statement run, at once or in its turn; `None` for one that holds few rows.
    ///
    /// # Errors
    /// When it is cancelled meanwhile.
    pub(crate) async fn admit(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        progress: &Progress,
    ) -> Result<Option<Turn>> {
        if !holds_rows(plan)? || scanned_bytes(plan)? <= self.memory / SMALL {
            return Ok(None);
        }
        self.turn(progress).await.map(Some)
    }

    async fn turn(&self, progress: &Progress) -> Result<Turn> {
        // Only who waits needs a clock.
        if let Ok(permit) = self.free.clone().try_acquire_owned() {
            return Ok(self.keep(permit));
        }
        let mut permit = std::pin::pin!(self.free.clone().acquire_owned());
        loop {
            let waited = tokio::select! {
                biased;
                permit = &mut permit => Some(permit.expect("turns are never closed")), // infallible: nothing closes them
                () = tokio::time::sleep(GLANCE) => None,
            };
            if let Some(permit) = waited {
                return Ok(self.keep(permit));
            }
            if progress.is_cancelled() {
                return Err(pagemill_engine::Error::Cancelled.into());
            }
            self.take_from_slow_clients();
        }
    }

    fn keep(&self, permit: OwnedSemaphorePermit) -> Turn {
        let turn = Arc::new(Mutex::new(Held { permit: Some(permit), idle: None }));
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|held| held.strong_count() > 0);
        taken.push(Arc::downgrade(&turn));
        Turn(turn)
    }

    fn take_from_slow_clients(&self) {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        for held in taken.iter().filter_map(Weak::upgrade) {
            let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
            if held.idle.is_some_and(|since| since.elapsed() > SLOW) {
                held.permit = None;
            }
        }
    }
}

impl Turn {
    /// The client has rows, and has to ask for more.
    pub(crate) fn pause(&self) {
        self.set_idle(Some(Instant::now()));
    }

    /// It asks for more.
    pub(crate) fn resume(&self) {
        self.set_idle(None);
    }

    fn set_idle(&self, idle: Option<Instant>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).idle = idle;
    }
}

/// Whether a step keeps rows before it hands out the first, or for as long as it runs.
fn holds_rows(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let holds = plan.exists(|node| {
        let is_grouped = |group: &AggregateExec| !group.group_expr().expr().is_empty();
        let is_whole = |sort: &SortExec| sort.fetch().is_none();
        Ok(node.downcast_ref().is_some_and(is_whole)
            || node.downcast_ref().is_some_and(is_grouped)
            || node.is::<HashJoinExec>()
            || node.is::<SortMergeJoinExec>()
            || node.is::<NestedLoopJoinExec>()
            || node.is::<CrossJoinExec>()
            || node.is::<WindowAggExec>()
            || node.is::<BoundedWindowAggExec>())
    })?;
    Ok(holds)
}

/// How much the tables of a plan have on disk. Rows that functions make are not known beforehand.
pub(crate) fn scanned_bytes(plan: &Arc<dyn ExecutionPlan>) -> Result<usize> {
    let mut bytes = 0_u64;
    plan.apply(|node| {
        let source = node.downcast_ref::<DataSourceExec>();
        if let Some(scan) = source.and_then(|s| s.data_source().downcast_ref::<FileScanConfig>()) {
            let files = scan.file_groups.iter().flat_map(|group| group.iter());
            bytes += files.map(|file| file.effective_size()).sum::<u64>();
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use tokio::runtime::{Builder, Runtime};
    use tokio::task::JoinHandle;

    use super::*;

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_time().build().unwrap()
    }

    fn waiting(admission: &Arc<Admission>, progress: &Progress) -> JoinHandle<Result<Turn>> {
        let (admission, progress) = (admission.clone(), progress.clone());
        tokio::spawn(async move { admission.turn(&progress).await })
    }

    #[test]
    fn turns_are_taken_in_order_and_given_back() {
        runtime().block_on(async {
            let (admission, progress) = (Arc::new(Admission::new(1)), Progress::default());
            let first = admission.turn(&progress).await.unwrap();
            let second = waiting(&admission, &progress);
            tokio::time::sleep(GLANCE).await;
            let third = waiting(&admission, &progress);
            // The first computes all the while.
            tokio::time::sleep(SLOW + 4 * GLANCE).await;
            assert!(!second.is_finished() && !third.is_finished());
            drop(first);
            let second = second.await.unwrap().unwrap();
            assert!(!third.is_finished());
            drop(second);
            third.await.unwrap().unwrap();
        });
    }

    #[test]
    fn a_slow_client_leaves_its_turn_to_others() {
        runtime().block_on(async {
            let (admission, progress) = (Arc::new(Admission::new(1)), Progress::default());
            let first = admission.turn(&progress).await.unwrap();
            first.pause();
            let second = waiting(&admission, &progress).await.unwrap().unwrap();
            // It goes on all the same, and gives nothing back twice.
            first.resume();
            drop(first);
            let third = waiting(&admission, &progress);
            tokio::time::sleep(2 * GLANCE).await;
            assert!(!third.is_finished());
            drop(second);
            third.await.unwrap().unwrap();
        });
    }

    #[test]
    fn who_waits_can_be_cancelled() {
        runtime().block_on(async {
            let (admission, progress) = (Arc::new(Admission::new(1)), Progress::default());
            let _first = admission.turn(&progress).await.unwrap();
            let second = waiting(&admission, &progress);
            tokio::time::sleep(GLANCE).await;
            progress.cancel();
            assert!(second.await.unwrap().is_err());
        });
    }
}
