//! Plans of Ballista's stages as bytes: its own steps as it writes them, all others as they go by the other engine.
//!
//! Invariant: bytes of any content come to a plan of known steps, or to an error.

use std::sync::Arc;

use ballista_core::execution_plans::sort_shuffle::SortShuffleWriterExec;
use ballista_core::execution_plans::{ShuffleReaderExec, ShuffleWriterExec};
use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::arrow::datatypes::Schema;
use datafusion::common::Result as QueryResult;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr_common::physical_expr::proto_decode::PhysicalExprDecodeCtx;
use datafusion::physical_expr_common::physical_expr::proto_encode::PhysicalExprEncodeCtx;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};

use super::super::plan_codec::PlanCodec;
use super::kept::KeptFiles;
use super::kept_rows::KeptRows;

/// What stands for a step of Ballista's: no step of the other engine begins with it.
const BALLISTA: u8 = u8::MAX;

/// Writes and reads plans of stages.
#[derive(Debug)]
pub(super) struct StagesCodec {
    pub(super) plan: Arc<PlanCodec>,
    /// On a worker: where its rows are kept, and where those of others are.
    pub(super) kept: Option<Arc<KeptFiles>>,
}

/// Whether the step hands rows to a later stage.
pub(super) fn is_writer(node: &dyn ExecutionPlan) -> bool {
    node.is::<ShuffleWriterExec>() || node.is::<SortShuffleWriterExec>()
}

fn unknown(what: &str) -> DataFusionError {
    DataFusionError::Execution(format!("a plan between machines: {what}"))
}

impl StagesCodec {
    /// What a decoded step of Ballista's becomes where it runs.
    fn known(&self, step: Arc<dyn ExecutionPlan>) -> QueryResult<Arc<dyn ExecutionPlan>> {
        if is_writer(&*step) {
            return Ok(step);
        }
        match (step.downcast_ref::<ShuffleReaderExec>(), &self.kept) {
            (Some(reader), Some(kept)) => Ok(Arc::new(KeptRows::new(reader, kept.clone())?)),
            _ => Err(unknown(&format!("the step {}, which no worker does", step.name()))),
        }
    }
}

impl PhysicalExtensionCodec for StagesCodec {
    fn try_decode(
        &self,
        buffer: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        let Some((&BALLISTA, node)) = buffer.split_first() else {
            return self.plan.try_decode(buffer, inputs, context, converter);
        };
        // Ballista takes the first input of some steps without looking whether there is one.
        let nothing: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(Arc::new(Schema::empty())));
        let given = if inputs.is_empty() { &[nothing][..] } else { inputs };
        let codec = BallistaPhysicalExtensionCodec::default();
        let step = codec.try_decode(node, given, context, converter)?;
        match is_writer(&*step) && inputs.is_empty() {
            true => Err(unknown("a step without its input")),
            false => self.known(step),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buffer: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> QueryResult<()> {
        if is_writer(&*node) || node.is::<ShuffleReaderExec>() {
            buffer.push(BALLISTA);
            let codec = BallistaPhysicalExtensionCodec::default();
            return codec.try_encode(node, buffer, converter);
        }
        self.plan.try_encode(node, buffer, converter)
    }

    fn try_decode_udf(&self, name: &str, buffer: &[u8]) -> QueryResult<Arc<ScalarUDF>> {
        self.plan.try_decode_udf(name, buffer)
    }

    fn try_encode_udf(&self, node: &ScalarUDF, buffer: &mut Vec<u8>) -> QueryResult<()> {
        self.plan.try_encode_udf(node, buffer)
    }

    fn try_decode_udaf(&self, name: &str, buffer: &[u8]) -> QueryResult<Arc<AggregateUDF>> {
        self.plan.try_decode_udaf(name, buffer)
    }

    fn try_encode_udaf(&self, node: &AggregateUDF, buffer: &mut Vec<u8>) -> QueryResult<()> {
        self.plan.try_encode_udaf(node, buffer)
    }

    fn try_decode_expr(
        &self,
        buffer: &[u8],
        inputs: &[Arc<dyn PhysicalExpr>],
        context: &PhysicalExprDecodeCtx<'_>,
    ) -> QueryResult<Arc<dyn PhysicalExpr>> {
        self.plan.try_decode_expr(buffer, inputs, context)
    }

    fn try_encode_expr(
        &self,
        node: &Arc<dyn PhysicalExpr>,
        buffer: &mut Vec<u8>,
        context: &PhysicalExprEncodeCtx<'_>,
    ) -> QueryResult<()> {
        self.plan.try_encode_expr(node, buffer, context)
    }
}
