//! The plan of a stage on its way, and at its worker: what the engine carries is one step with bytes in it, which become the plan on
//! the parts of the worker's own plan.
//!
//! Invariant: what runs on a worker is of steps that stages have, and ends in an error if the cluster has changed when it is done.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result as QueryResult;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning,
    PlanProperties, ReplaceChildrenOptions,
};
use datafusion_distributed::BroadcastExec;
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use futures::StreamExt as _;
use futures::stream::once;

use super::changed_rows::ChangedRows;
use super::errors::to_send;
use super::plan_codec::PlanCodec;
use super::steps::foreign_step;
use super::until_cancelled::{rows_until_cancelled, until_cancelled};
use crate::error::{SqlState, StatementError};
use crate::interruption::interruptible;
use crate::scan::ScanContext;

/// The plan of a stage as bytes.
#[derive(Debug)]
pub(super) struct Envelope {
    bytes: Vec<u8>,
    properties: Arc<PlanProperties>,
}

impl Envelope {
    pub(super) fn seal(plan: Arc<dyn ExecutionPlan>, codec: &PlanCodec) -> QueryResult<Self> {
        let properties = properties(plan.schema());
        let bytes = physical_plan_to_bytes_with_extension_codec(plan, codec)?.to_vec();
        Ok(Self { bytes, properties })
    }
}

fn properties(schema: SchemaRef) -> Arc<PlanProperties> {
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new(schema),
        Partitioning::UnknownPartitioning(1),
        EmissionType::Incremental,
        Boundedness::Bounded,
    ))
}

impl DisplayAs for Envelope {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Envelope")
    }
}

impl ExecutionPlan for Envelope {
    fn name(&self) -> &str {
        "Envelope"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> QueryResult<TreeNodeRecursion>,
    ) -> QueryResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> QueryResult<SendableRecordBatchStream> {
        Err(DataFusionError::Execution("a plan on its way does not run".to_owned()))
    }
}

/// What opens envelopes: nothing where they are only sent.
#[derive(Debug)]
pub(super) struct EnvelopeCodec(pub(super) Option<StageOpener>);

/// What a worker has for the stages of a statement.
#[derive(Debug)]
pub(super) struct StageOpener {
    pub(super) codec: PlanCodec,
    pub(super) scans: Arc<ScanContext>,
}

impl StageOpener {
    fn open(&self, bytes: &[u8], context: &TaskContext) -> QueryResult<Arc<dyn ExecutionPlan>> {
        let plan = physical_plan_from_bytes_with_extension_codec(bytes, context, &self.codec)?;
        if let Some(step) = foreign_step(&plan) {
            let message = format!("a plan with the step {step}, which no worker does");
            return Err(StatementError::new(SqlState::DENIED, message).into());
        }
        let plan = interruptible(plan, &self.scans.progress)?;
        let plan = until_cancelled(plan, &self.scans.progress)?;
        // What hands rows on to the next stage is taken off and put on by the engine.
        let is_head = plan.is::<RepartitionExec>() || plan.is::<BroadcastExec>();
        match (is_head, plan.children()[..].first()) {
            (true, Some(input)) => {
                let input = end_of_stage((*input).clone(), &self.scans);
                let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
                plan.replace_children(vec![input], options)
            }
            _ => Ok(end_of_stage(plan, &self.scans)),
        }
    }
}

impl PhysicalExtensionCodec for EnvelopeCodec {
    fn try_decode(
        &self,
        buffer: &[u8],
        _: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        _: &dyn PhysicalProtoConverterExtension,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        match &self.0 {
            Some(opener) => opener.open(buffer, context).map_err(to_send),
            None => Err(DataFusionError::Execution("no plans are taken here".to_owned())),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buffer: &mut Vec<u8>,
        _: &dyn PhysicalProtoConverterExtension,
    ) -> QueryResult<()> {
        let envelope = node.downcast_ref::<Envelope>();
        let envelope = envelope.ok_or_else(|| {
            DataFusionError::Execution(format!("{} does not travel by itself", node.name()))
        })?;
        buffer.extend_from_slice(&envelope.bytes);
        Ok(())
    }
}

/// The last step of a stage: it ends when the statement is cancelled, its errors are put as they are sent, and its rows count only if
/// the cluster is what it was.
pub(super) fn end_of_stage(
    input: Arc<dyn ExecutionPlan>,
    scans: &Arc<ScanContext>,
) -> Arc<dyn ExecutionPlan> {
    let scans = scans.clone();
    ChangedRows::over(input, "EndOfStage", move |rows| {
        let rows = rows_until_cancelled(rows.map_err(to_send)?, scans.progress.clone());
        let (schema, scans) = (rows.schema(), scans.clone());
        let end = once(async move { unchanged(&scans) });
        let end = end.filter_map(async |checked: QueryResult<()>| checked.err().map(Err));
        let rows = rows.chain(end).map(|batch| batch.map_err(to_send));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    })
}

fn unchanged(scans: &ScanContext) -> QueryResult<()> {
    let cluster = scans.catalog.database().cluster();
    cluster.check_unchanged().map_err(|change| {
        let message = format!("{}: {change}", cluster.path().display());
        StatementError::new(SqlState::DATA_CORRUPTED, message).into()
    })
}
