//! The plan of a stage as bytes: steps as the engine writes them; scans, functions and aggregates by their numbers in the plan of
//! the whole statement, which both sides have.
//!
//! Invariant: bytes of any content come to a plan made of these parts and the engine's own steps, or to an error.

use std::sync::Arc;

use datafusion::common::Result as QueryResult;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_common::physical_expr::proto_decode::PhysicalExprDecodeCtx;
use datafusion::physical_expr_common::physical_expr::proto_encode::PhysicalExprEncodeCtx;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion_distributed::DistributedCodec;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use serde::{Deserialize, Serialize};

use crate::barrier::{barrier_over, is_barrier};
use crate::scan::{Stepwise, is_relation_scan, parts_of_scan};

/// What stands for a step.
const ENGINE: u8 = 0;
const SCAN: u8 = 1;
const BARRIER: u8 = 2;
/// More shares than any plan has for one task.
pub(super) const MOST_GROUPS: usize = 4096;

/// What plans of stages are put together from: the parts of the plan of the whole statement, in its order.
#[derive(Debug)]
pub(super) struct PlanParts {
    scans: Vec<Arc<dyn ExecutionPlan>>,
    functions: Vec<Arc<ScalarUDF>>,
    aggregates: Vec<Arc<AggregateUDF>>,
}

impl PlanParts {
    pub(super) fn of(plan: &Arc<dyn ExecutionPlan>) -> QueryResult<Self> {
        let (mut scans, mut functions, mut aggregates) = (Vec::new(), Vec::new(), Vec::new());
        plan.apply(|node| {
            if is_relation_scan(&**node) {
                scans.push(node.clone());
            }
            if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
                let own = aggregate.aggr_expr().iter().map(|expr| Arc::new(expr.fun().clone()));
                aggregates.extend(own);
                // Its filters are not among what it tells of itself.
                for filter in aggregate.filter_expr().iter().flatten() {
                    collect_functions(filter, &mut functions)?;
                }
            }
            node.apply_expressions(&mut |expr| {
                collect_functions(expr, &mut functions)?;
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        Ok(Self { scans, functions, aggregates })
    }
}

fn collect_functions(
    expr: &Arc<dyn PhysicalExpr>,
    functions: &mut Vec<Arc<ScalarUDF>>,
) -> QueryResult<()> {
    expr.apply(|expr| {
        if let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() {
            functions.push(Arc::new(call.fun().clone()));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

fn scan_config(node: &dyn ExecutionPlan) -> Option<&FileScanConfig> {
    node.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>()
}

/// A range of the part of a relation that has this number.
#[derive(Debug, Serialize, Deserialize)]
struct FileShare {
    part: usize,
    range: Option<(i64, i64)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ScanShares {
    scan: usize,
    groups: Vec<Vec<FileShare>>,
}

/// Writes and reads plans.
#[derive(Debug)]
pub(super) struct PlanCodec(pub(super) Arc<PlanParts>);

impl PlanCodec {
    fn scan_shares(&self, node: &dyn ExecutionPlan) -> QueryResult<ScanShares> {
        let config = scan_config(node).ok_or_else(|| defect("a scan is one of files"))?;
        let address = |config: &FileScanConfig| Arc::as_ptr(&config.file_source).cast::<()>();
        let is_it = |scan: &Arc<dyn ExecutionPlan>| {
            scan_config(&**scan).is_some_and(|own| address(own) == address(config))
        };
        let scan = self.0.scans.iter().position(is_it);
        let scan = scan.ok_or_else(|| defect("a scan that the statement has not got"))?;
        let share = |file: &PartitionedFile| {
            let part = file
                .object_meta
                .location
                .as_ref()
                .parse()
                .map_err(|_| defect("a part of a relation goes by its number"))?;
            let range = file.range.as_ref().map(|range| (range.start, range.end));
            Ok(FileShare { part, range })
        };
        let group = |group: &FileGroup| group.files().iter().map(share).collect();
        let groups = config.file_groups.iter().map(group).collect::<QueryResult<_>>()?;
        Ok(ScanShares { scan, groups })
    }

    fn scan(&self, bytes: &[u8]) -> QueryResult<Arc<dyn ExecutionPlan>> {
        let shares: ScanShares =
            serde_json::from_slice(bytes).map_err(|error| defect(&error.to_string()))?;
        let node = self.0.scans.get(shares.scan);
        let config = node.and_then(|node| scan_config(&**node));
        let config = config.ok_or_else(|| defect("a scan that the statement has not got"))?;
        if shares.groups.len() > MOST_GROUPS {
            return Err(defect("a scan of too many shares"));
        }
        let sizes = node.map(|node| parts_of_scan(&**node)).unwrap_or_default();
        let file = |share: &FileShare| {
            let size = sizes.get(share.part);
            let size = *size.ok_or_else(|| defect("a part that the relation has not got"))?;
            let file = PartitionedFile::new(share.part.to_string(), size);
            Ok(match share.range {
                None => file,
                Some((start, end)) => file.with_range(start, end),
            })
        };
        let group = |files: &Vec<FileShare>| {
            Ok(FileGroup::new(files.iter().map(file).collect::<QueryResult<_>>()?))
        };
        let mut config = config.clone();
        config.file_groups = shares.groups.iter().map(group).collect::<QueryResult<_>>()?;
        Ok(DataSourceExec::from_data_source(config))
    }
}

fn defect(what: &str) -> DataFusionError {
    DataFusionError::Execution(format!("a plan between machines: {what}"))
}

fn number(buffer: &[u8]) -> QueryResult<usize> {
    let bytes = buffer.try_into().map_err(|_| defect("a function goes by its number"))?;
    Ok(u32::from_le_bytes(bytes) as usize)
}

fn write_number(number: Option<usize>, buffer: &mut Vec<u8>) -> QueryResult<()> {
    let number = number.and_then(|number| u32::try_from(number).ok());
    let number = number.ok_or_else(|| defect("a function that the statement has not got"))?;
    buffer.extend_from_slice(&number.to_le_bytes());
    Ok(())
}

impl PhysicalExtensionCodec for PlanCodec {
    fn try_decode(
        &self,
        buffer: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        match buffer.split_first() {
            Some((&SCAN, shares)) => self.scan(shares),
            Some((&BARRIER, [])) => match inputs {
                [input] => Ok(barrier_over(input.clone())),
                _ => Err(defect("a barrier has one input")),
            },
            Some((&ENGINE, node)) => DistributedCodec.try_decode(node, inputs, context, converter),
            _ => Err(defect("a step that is not known")),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buffer: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> QueryResult<()> {
        if is_relation_scan(&*node) {
            let shares = self.scan_shares(&*node)?;
            buffer.push(SCAN);
            let written = serde_json::to_writer(buffer, &shares);
            return written.map_err(|error| defect(&error.to_string()));
        }
        if is_barrier(&*node) {
            buffer.push(BARRIER);
            return Ok(());
        }
        buffer.push(ENGINE);
        DistributedCodec.try_encode(node, buffer, converter)
    }

    fn try_decode_udf(&self, _: &str, buffer: &[u8]) -> QueryResult<Arc<ScalarUDF>> {
        let found = self.0.functions.get(number(buffer)?);
        found.cloned().ok_or_else(|| defect("a function that the statement has not got"))
    }

    fn try_encode_udf(&self, node: &ScalarUDF, buffer: &mut Vec<u8>) -> QueryResult<()> {
        write_number(self.0.functions.iter().position(|known| &**known == node), buffer)
    }

    fn try_decode_udaf(&self, _: &str, buffer: &[u8]) -> QueryResult<Arc<AggregateUDF>> {
        let found = self.0.aggregates.get(number(buffer)?);
        found.cloned().ok_or_else(|| defect("an aggregate that the statement has not got"))
    }

    fn try_encode_udaf(&self, node: &AggregateUDF, buffer: &mut Vec<u8>) -> QueryResult<()> {
        write_number(self.0.aggregates.iter().position(|known| &**known == node), buffer)
    }

    fn try_decode_expr(
        &self,
        buffer: &[u8],
        inputs: &[Arc<dyn PhysicalExpr>],
        _: &PhysicalExprDecodeCtx<'_>,
    ) -> QueryResult<Arc<dyn PhysicalExpr>> {
        match (buffer, inputs) {
            (&[is_or @ (0 | 1)], [first, second]) => {
                Ok(Arc::new(Stepwise::new(first.clone(), second.clone(), is_or == 1)))
            }
            _ => Err(defect("an expression that is not known")),
        }
    }

    fn try_encode_expr(
        &self,
        node: &Arc<dyn PhysicalExpr>,
        buffer: &mut Vec<u8>,
        _: &PhysicalExprEncodeCtx<'_>,
    ) -> QueryResult<()> {
        match node.downcast_ref::<Stepwise>() {
            Some(steps) => {
                buffer.push(u8::from(steps.is_or()));
                Ok(())
            }
            None => Err(defect("an expression that is not known")),
        }
    }
}
