//! How a scan is divided among tasks: into ranges of the relation's bytes, as many as tasks have partitions in all.
//!
//! Invariant: the ranges of all tasks together are all of the relation, and no two have a byte in common; a block belongs to the
//! range that its first byte lies in.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::Result as QueryResult;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties as _};
use datafusion_datasource::file_groups::FileGroupPartitioner;
use datafusion_distributed::{
    DesiredTaskCountEvent, DesiredTaskCountEventResponse, DesiredTaskCountHandler,
    DistributedLeafExec, RouteTasksEvent, RouteTasksEventResponse, RouteTasksHandler,
    ScaleUpLeafNodeEvent, ScaleUpLeafNodeEventResponse, ScaleUpLeafNodeHandler,
};
use url::Url;

use crate::scan::is_relation_scan;

/// How many tasks a scan is worth: one for each so many bytes.
pub(super) struct TaskPerBytes(pub(super) usize);

fn relation_config(plan: &Arc<dyn ExecutionPlan>) -> Option<&FileScanConfig> {
    let scan = is_relation_scan(&**plan).then(|| plan.downcast_ref::<DataSourceExec>())??;
    scan.data_source().downcast_ref()
}

/// What a scan of a relation may read; `None` for any other step.
fn bytes_of_scan(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    let files = relation_config(plan)?.file_groups.iter().flat_map(FileGroup::iter);
    let bytes: u64 = files.map(|file| file.effective_size()).sum();
    Some(usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// Whether any of its scans is worth several tasks.
pub(super) fn has_large_scan(plan: &Arc<dyn ExecutionPlan>, share_bytes: usize) -> bool {
    bytes_of_scan(plan).is_some_and(|bytes| bytes > share_bytes)
        || plan.children().into_iter().any(|child| has_large_scan(child, share_bytes))
}

#[async_trait]
impl DesiredTaskCountHandler for TaskPerBytes {
    async fn handle(
        &self,
        event: DesiredTaskCountEvent<'_>,
    ) -> Option<QueryResult<DesiredTaskCountEventResponse>> {
        let tasks = bytes_of_scan(event.plan)?.div_ceil(self.0.max(1));
        Some(Ok(DesiredTaskCountEventResponse::desired(tasks.max(1))))
    }
}

/// The scan in ranges, as many as tasks of it have partitions in all, which are as many for each worker; `None` where it is worth one
/// task, and for any other step.
#[cfg(feature = "ballista")]
pub(super) fn in_shares(
    plan: &Arc<dyn ExecutionPlan>,
    (share_bytes, workers): (usize, usize),
) -> Option<Arc<dyn ExecutionPlan>> {
    let config = relation_config(plan)?;
    let partitions = plan.output_partitioning().partition_count();
    let tasks = bytes_of_scan(plan)?.div_ceil(share_bytes.max(1));
    if tasks < 2 {
        return None;
    }
    let most = super::plan_codec::MOST_GROUPS / partitions.max(1);
    let tasks = tasks.next_multiple_of(workers).min(most);
    let mut groups = shares(&config.file_groups, partitions, tasks).concat();
    groups.retain(|group| !group.is_empty());
    let mut config = config.clone();
    config.file_groups = groups;
    Some(DataSourceExec::from_data_source(config))
}

/// Gives each task its ranges.
pub(super) struct RangesOfTasks;

impl ScaleUpLeafNodeHandler for RangesOfTasks {
    fn handle(
        &self,
        event: ScaleUpLeafNodeEvent<'_>,
    ) -> Option<QueryResult<ScaleUpLeafNodeEventResponse>> {
        let config = relation_config(event.plan)?;
        let partitions = event.plan.output_partitioning().partition_count();
        let shares = shares(&config.file_groups, partitions, event.task_count);
        let variants = shares.into_iter().map(|file_groups| {
            let mut config = config.clone();
            config.file_groups = file_groups;
            DataSourceExec::from_data_source(config) as Arc<dyn ExecutionPlan>
        });
        let leaf = DistributedLeafExec::try_new(event.plan.clone(), variants);
        Some(leaf.map(|leaf| ScaleUpLeafNodeEventResponse::new(Arc::new(leaf))))
    }
}

/// For each task as many groups as there are partitions, of which some may be empty.
fn shares(groups: &[FileGroup], partitions: usize, tasks: usize) -> Vec<Vec<FileGroup>> {
    let wanted = partitions * tasks;
    let cut = FileGroupPartitioner::new()
        .with_target_partitions(wanted)
        .with_repartition_file_min_size(0)
        .repartition_file_groups(groups);
    let mut cut = cut.unwrap_or_else(|| groups.to_vec());
    // Where they could not be cut into so many, some have nothing to do; were there more, none would be lost.
    let each = cut.len().div_ceil(tasks).max(partitions);
    cut.resize_with(each * tasks, || FileGroup::new(Vec::new()));
    let mut shares: Vec<Vec<FileGroup>> = vec![Vec::new(); tasks];
    for (at, group) in cut.into_iter().enumerate() {
        shares[at % tasks].push(group);
    }
    shares
}

/// Task for task the same workers each time, so that what they have read before is at hand.
pub(super) struct WorkersInOrder(pub(super) Vec<Url>);

impl RouteTasksHandler for WorkersInOrder {
    fn handle(&self, event: RouteTasksEvent<'_>) -> Option<QueryResult<RouteTasksEventResponse>> {
        // A task alone is best where its rows are, which others know.
        (event.task_count > 1).then(|| {
            let urls = self.0.iter().cycle().take(event.task_count).cloned();
            Ok(RouteTasksEventResponse::new(urls.collect()))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use datafusion::datasource::listing::PartitionedFile;

    use super::*;

    /// Each byte of each file is in one range.
    #[test]
    fn ranges_are_all_of_a_relation_and_overlap_nowhere() {
        let files = |sizes: &[u64]| -> Vec<FileGroup> {
            let file = |(at, size): (usize, &u64)| PartitionedFile::new(at.to_string(), *size);
            vec![FileGroup::new(sizes.iter().enumerate().map(file).collect())]
        };
        for sizes in [&[8192_u64][..], &[], &[0, 8192], &[81920, 8192, 1 << 30], &[1; 9]] {
            for (partitions, tasks) in [(1, 2), (2, 2), (3, 3), (2, 5)] {
                let shares = shares(&files(sizes), partitions, tasks);
                assert_eq!(shares.len(), tasks);
                assert!(shares.iter().all(|share| share.len() == shares[0].len()));
                let mut ranges: BTreeMap<String, Vec<(i64, i64)>> = BTreeMap::new();
                for file in shares.iter().flatten().flat_map(FileGroup::iter) {
                    let name = file.object_meta.location.to_string();
                    let whole = (0, file.object_meta.size.cast_signed());
                    let range = file.range.as_ref().map_or(whole, |r| (r.start, r.end));
                    ranges.entry(name).or_default().push(range);
                }
                for (at, size) in sizes.iter().enumerate().filter(|(_, size)| **size > 0) {
                    let mut found = ranges.remove(&at.to_string()).unwrap_or_default();
                    found.sort_unstable();
                    let mut end = 0;
                    for range in found {
                        assert_eq!(range.0, end, "{sizes:?} {partitions} {tasks}");
                        end = range.1;
                    }
                    assert_eq!(end, size.cast_signed(), "{sizes:?} {partitions} {tasks}");
                }
            }
        }
    }
}
