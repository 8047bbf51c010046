//! A plan made for one machine, with its scans cut into shares and its rows told apart into as many parts as several machines have: what
//! Ballista makes stages and tasks of.
//!
//! Invariant: a scan is cut only where what takes its rows takes any number of parts, up to the step that brings them together again; the
//! parts by which rows meet are as many everywhere.

use std::sync::Arc;

use datafusion::common::Result as QueryResult;
use datafusion::physical_expr::Distribution;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning, ReplaceChildrenOptions};

use super::super::shares::in_shares;

/// How a plan is divided.
#[derive(Debug)]
pub(super) struct Cutting {
    /// Bytes of a table for which one more share is worth it.
    pub(super) share_bytes: usize,
    pub(super) workers: usize,
}

impl Cutting {
    /// The plan; `None` where no scan of it is worth it.
    pub(super) fn plan(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
    ) -> QueryResult<Option<Arc<dyn ExecutionPlan>>> {
        let mut is_cut = false;
        let divided = self.step(plan, false, &mut is_cut)?;
        Ok(is_cut.then_some(divided))
    }

    fn step(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        takes_any: bool,
        is_cut: &mut bool,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        if let Some(scan) = in_shares(plan, (self.share_bytes, self.workers)).filter(|_| takes_any)
        {
            *is_cut = true;
            return Ok(scan);
        }
        let brings_together = brings_together(&**plan);
        let wanted = plan.input_distribution_requirements();
        let children = plan.children().into_iter().zip(wanted.per_child_distributions());
        let mut divided = Vec::new();
        for (child, wanted) in children {
            let any = takes_any && matches!(wanted, Distribution::UnspecifiedDistribution);
            divided.push(self.step(child, brings_together || any, is_cut)?);
        }
        if let (Some((exprs, parts)), [input]) = (by_hash(&**plan), &divided[..]) {
            let by = Partitioning::Hash(exprs.to_vec(), parts * self.workers);
            return Ok(Arc::new(RepartitionExec::try_new(input.clone(), by)?));
        }
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        match divided.is_empty() {
            true => Ok(plan.clone()),
            false => plan.clone().replace_children(divided, options),
        }
    }
}

/// Whether a step takes the rows of all parts of its input, whatever their number.
fn brings_together(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<CoalescePartitionsExec>()
        || plan.is::<RepartitionExec>()
        || plan.is::<SortPreservingMergeExec>()
}

fn by_hash(
    plan: &dyn ExecutionPlan,
) -> Option<(&[Arc<dyn datafusion::physical_expr::PhysicalExpr>], usize)> {
    match plan.downcast_ref::<RepartitionExec>()?.partitioning() {
        Partitioning::Hash(exprs, parts) => Some((exprs, *parts)),
        _ => None,
    }
}

/// Whether rows go from one stage to the next in an order, which files of stages do not keep.
pub(in super::super) fn keeps_order_between(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<RepartitionExec>().is_some_and(RepartitionExec::preserve_order)
        || plan.children().into_iter().any(keeps_order_between)
}
