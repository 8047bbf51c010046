//! What `--memory` gives to the steps of a statement.
//!
//! ```text
//! what can spill ────► equal shares of SPILLABLE parts of the whole
//! what cannot ───────► the rest of the whole, and of the others' part what they have not taken
//! ```
//!
//! The engine's own pool of shares gives all of the memory to what can spill: sorts then hold it all when the merge of their runs,
//! which cannot spill, asks for its first batch, and the statement fails where it should have spilled earlier.

use std::fmt::{Display, Formatter};
use std::sync::Arc;

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    FairSpillPool, GreedyMemoryPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};

use crate::admission::Admission;

/// Of so many parts of the memory, so many are for what can spill.
const PARTS: usize = 8;
const SPILLABLE: usize = 4;

/// What all statements may take together, of any number of sessions.
#[derive(Debug, Clone)]
pub struct StatementMemory {
    bytes: usize,
    pool: Arc<SharesPool>,
    admission: Arc<Admission>,
}

impl StatementMemory {
    /// So many bytes.
    pub fn new(bytes: usize) -> Self {
        let (pool, admission) = (SharesPool::new(bytes), Admission::new(bytes));
        Self { bytes, pool: Arc::new(pool), admission: Arc::new(admission) }
    }

    /// How many bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn pool(&self) -> Arc<dyn MemoryPool> {
        self.pool.clone()
    }

    pub(crate) fn admission(&self) -> &Admission {
        &self.admission
    }
}

#[derive(Debug)]
struct SharesPool {
    bytes: usize,
    spillable: FairSpillPool,
    others: GreedyMemoryPool,
}

impl SharesPool {
    fn new(bytes: usize) -> Self {
        let spillable = FairSpillPool::new(bytes / PARTS * SPILLABLE);
        Self { bytes, spillable, others: GreedyMemoryPool::new(bytes) }
    }

    fn of(&self, consumer: &MemoryConsumer) -> &dyn MemoryPool {
        if consumer.can_spill() { &self.spillable } else { &self.others }
    }
}

impl MemoryPool for SharesPool {
    fn name(&self) -> &'static str {
        "statement memory"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.of(consumer).register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.of(consumer).unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.of(reservation.consumer()).grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.of(reservation.consumer()).shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let consumer = reservation.consumer();
        let is_too_much = self.reserved().saturating_add(additional) > self.bytes;
        if is_too_much {
            return Err(exhausted(consumer, additional, self.bytes));
        }
        let grown = self.of(consumer).try_grow(reservation, additional);
        grown.map_err(|_| exhausted(consumer, additional, self.bytes))
    }

    fn reserved(&self) -> usize {
        self.spillable.reserved() + self.others.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.bytes)
    }
}

#[cold]
fn exhausted(consumer: &MemoryConsumer, additional: usize, bytes: usize) -> DataFusionError {
    let step = step_of(consumer.name());
    let what =
        format!("{step} needs {additional} bytes more than the {bytes} of --memory leave it");
    DataFusionError::ResourcesExhausted(what)
}

/// A step by the name that the engine gives it.
fn step_of(name: &str) -> &str {
    const STEPS: [(&str, &str); 9] = [
        ("ExternalSorter", "a sort"),
        ("TopK", "a sort"),
        ("HashJoin", "a join"),
        ("NestedLoopJoin", "a join"),
        ("CrossJoin", "a join"),
        ("SMJ", "a join"),
        ("RecursiveQuery", "WITH RECURSIVE"),
        ("Repartition", "handing rows from thread to thread"),
        ("Window", "a window"),
    ];
    let known = STEPS.iter().find(|(of, _)| name.starts_with(of)).map(|(_, step)| *step);
    let is_aggregate = name.contains("Aggregate");
    known.or(is_aggregate.then_some("an aggregate")).unwrap_or(name)
}

impl Display for SharesPool {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} bytes", self.reserved(), self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_spill_leaves_room_for_what_cannot() {
        let pool: Arc<dyn MemoryPool> = Arc::new(SharesPool::new(800));
        let sort = MemoryConsumer::new("sort").with_can_spill(true).register(&pool);
        assert!(sort.try_grow(401).is_err());
        sort.try_grow(400).expect("all that is there to spill");
        let merge = MemoryConsumer::new("merge").register(&pool);
        merge.try_grow(400).expect("the rest");
        assert!(merge.try_grow(1).is_err());
        sort.shrink(100);
        merge.try_grow(100).expect("what the sort gave back");
        assert_eq!(pool.reserved(), 800);
        assert!(sort.try_grow(1).is_err());
    }

    #[test]
    fn steps_are_named_in_words() {
        let pool: Arc<dyn MemoryPool> = Arc::new(SharesPool::new(800));
        for (name, step) in [
            ("ExternalSorterMerge[3]", "a sort"),
            ("FinalHashAggregateStream[0]", "an aggregate"),
            ("HashJoinInput", "a join"),
            ("Something", "Something"),
        ] {
            let consumer = MemoryConsumer::new(name).register(&pool);
            let refused = consumer.try_grow(801).unwrap_err().to_string();
            let wanted = format!("{step} needs 801 bytes more than the 800 of --memory leave it");
            assert!(refused.contains(&wanted), "{refused}");
        }
    }
}
