//! Plans of statements that are kept: made once, and run with other values of parameters, or constants, each time.
//!
//! ```text
//! second run: $n ─► placeholder ─► optimized ─► a call without arguments, "$n" ─► ExecutionPlan, kept
//! from then on: the kept plan ─► each "$n" a literal, each scan in the statement's own context ─► run
//! ```
//!
//! A kept plan must be no worse than one that is made for the values. So it is kept only where parameters stand nowhere but in
//! the conditions that scans evaluate themselves, where indexes and bounds of partitions are searched while it runs, and in
//! what is shown; whatever else there is with a parameter in it is planned again for each run.
//!
//! Invariants: a kept plan gives what a plan for its values would; what depends on the time of a statement is not kept; a plan
//! is run only in the session that it was made in.
//!
//! Source: generic and custom plans of `src/backend/utils/cache/plancache.c`, PostgreSQL 18.

mod parameter_call;
mod sample;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result as QueryResult;
use datafusion::common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::TaskContext;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::scalar::ScalarValue;
use tokio::sync::OnceCell;

use crate::catalog::Catalog;
use crate::error::Result;
use crate::functions::logic::json_queries::remembers_rows;
use crate::nested::runs_queries;
use crate::parameters::ParameterValue;
use crate::scan::{KeyLookup, ScanContext, is_relation_scan, renewed_scan};
use crate::session::AnswerColumn;
use crate::statement_texts::Constant;
use crate::types::PgType;
pub(crate) use parameter_call::is_parameter;
use parameter_call::{call_for, contains_parameter, with_values};
pub(crate) use sample::Sample;
use sample::values_of;

/// The plan of a prepared statement, once it is worth one.
#[derive(Debug, Default)]
pub(crate) struct PlanCell {
    /// It ran once: a statement that runs once needs no plan for others.
    has_run: AtomicBool,
    plan: OnceCell<Option<GenericPlan>>,
}

impl PlanCell {
    /// For a statement that ran before.
    pub(crate) fn of_repeated() -> Self {
        Self { has_run: true.into(), plan: OnceCell::new() }
    }

    /// The plan, where there is one by now.
    pub(crate) fn kept(&self) -> Option<&GenericPlan> {
        self.plan.get()?.as_ref()
    }

    /// The plan; `None` for the first run, and for a statement of which none is kept.
    pub(crate) async fn plan<F>(&self, make: impl FnOnce() -> F) -> Option<&GenericPlan>
    where
        F: Future<Output = Result<Option<GenericPlan>>>,
    {
        if !self.has_run.swap(true, Ordering::Relaxed) {
            return None;
        }
        // What stands in the way is told by the plan for the values, if it stands in its way, too.
        let made = self.plan.get_or_init(|| async { make().await.unwrap_or(None) });
        made.await.as_ref()
    }
}

/// A plan for any values.
pub(crate) struct GenericPlan {
    /// Of the session in which it holds.
    catalog: Arc<Catalog>,
    /// Whether policies leave out rows there, or are errors.
    row_security: bool,
    columns: Arc<[AnswerColumn]>,
    /// The type of each parameter; a modifier says only how a value is carried.
    types: Vec<PgType>,
    /// What carries each of them.
    carriers: Vec<DataType>,
    plan: Arc<dyn ExecutionPlan>,
    /// Where rows may be read by their keys without it.
    lookup: Option<KeyLookup>,
    task: Arc<TaskContext>,
    hands_down: bool,
}

/// A statement of which a plan may be kept.
pub(crate) struct Planned<'p> {
    pub(crate) catalog: &'p Arc<Catalog>,
    pub(crate) row_security: bool,
    pub(crate) types: Vec<PgType>,
    pub(crate) columns: Vec<AnswerColumn>,
    /// With placeholders for the parameters.
    pub(crate) plan: &'p LogicalPlan,
    /// Of a statement whose last parameters were constants.
    pub(crate) sample: Option<Sample<'p>>,
}

impl fmt::Debug for GenericPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GenericPlan").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl GenericPlan {
    /// Plans a statement for any values; `None` where they matter for the plan.
    pub(crate) async fn make(planned: Planned<'_>, state: &SessionState) -> Result<Option<Self>> {
        let Planned { catalog, row_security, types, columns, plan: bound, sample } = planned;
        if let Some(sample) = &sample
            && !sample.means(catalog, (bound, &types))?
        {
            return Ok(None);
        }
        let optimized = calls_for_placeholders(state.optimize(bound)?)?;
        let plan = state.query_planner().create_physical_plan(&optimized, state).await?;
        if !is_kept(&*plan)? {
            return Ok(None);
        }
        if let Some(sample) = &sample
            && !sample.is_run_by(&*plan, state).await?
        {
            return Ok(None);
        }
        let carrier = |ty: &PgType| crate::coerce::carrier_of(catalog, *ty);
        Ok(Some(Self {
            catalog: catalog.clone(),
            row_security,
            columns: columns.into(),
            carriers: types.iter().map(carrier).collect(),
            types,
            hands_down: has_joins_or_sorts(&*plan),
            lookup: KeyLookup::of(&*plan),
            plan,
            task: Arc::new(TaskContext::from(state)),
        }))
    }

    /// Whether it holds in a session of these catalogs, and of this setting.
    pub(crate) fn is_of(&self, catalog: &Arc<Catalog>, row_security: bool) -> bool {
        Arc::ptr_eq(&self.catalog, catalog) && self.row_security == row_security
    }

    #[cfg(feature = "workers")]
    pub(crate) fn plan(&self) -> &Arc<dyn ExecutionPlan> {
        &self.plan
    }

    pub(crate) fn columns(&self) -> &Arc<[AnswerColumn]> {
        &self.columns
    }

    pub(crate) fn task(&self) -> &Arc<TaskContext> {
        &self.task
    }

    /// Whether it has steps that hand filters down while they run.
    pub(crate) fn hands_down(&self) -> bool {
        self.hands_down
    }

    /// The rows for these values, where they are few and an index leads to them; `None` where the plan is to run.
    ///
    /// # Errors
    /// As of the plan.
    pub(crate) fn rows_by_key(
        &self,
        values: &[ScalarValue],
        scans: &Arc<ScanContext>,
    ) -> Result<Option<Vec<RecordBatch>>> {
        let Some(lookup) = &self.lookup else { return Ok(None) };
        lookup.rows(scans, |expr, schema| with_values(expr, values, schema))
    }

    /// The plan with these values, whose scans are those of a statement.
    ///
    /// # Errors
    /// When a step cannot begin again.
    pub(crate) fn with_values(
        &self,
        values: &[ScalarValue],
        scans: &Arc<ScanContext>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(plan_with_values(&self.plan, values, scans)?)
    }

    /// The types of the parameters.
    pub(crate) fn types(&self) -> &[PgType] {
        &self.types
    }

    /// The values of the first parameters as the plan has them, behind which so many constants stand; `None` where one is carried in
    /// another way than the plan was made for, or there are more or fewer.
    ///
    /// # Errors
    /// When a value is none of its type.
    pub(crate) fn literals(
        &self,
        values: &[ParameterValue],
        constants: usize,
    ) -> Result<Option<Vec<ScalarValue>>> {
        if values.len() + constants != self.carriers.len() {
            return Ok(None);
        }
        let literal = |(value, carrier): (&ParameterValue, &DataType)| {
            Ok(match value.typed(&self.catalog)?.expr {
                Expr::Literal(value, _) if value.data_type() == *carrier => Some(value),
                _ => None,
            })
        };
        values.iter().zip(&self.carriers).map(literal).collect()
    }

    /// The constants of a text, in the place of the last parameters.
    ///
    /// # Errors
    /// When one is no value of its type.
    pub(crate) fn constants(&self, constants: &[Constant]) -> Result<Vec<ScalarValue>> {
        let types = &self.types[self.types.len() - constants.len()..];
        values_of(&self.catalog, types, constants)
    }
}

/// The plan of a query for any values of its placeholders; `None` where they matter for the plan.
pub(crate) async fn for_any_values(
    query: &LogicalPlan,
    state: &SessionState,
) -> QueryResult<Option<Arc<dyn ExecutionPlan>>> {
    let optimized = calls_for_placeholders(state.optimize(query)?)?;
    let plan = state.query_planner().create_physical_plan(&optimized, state).await?;
    Ok(is_kept(&*plan)?.then_some(plan))
}

/// Such a plan with values, whose scans are those of a statement.
pub(crate) fn plan_with_values(
    plan: &Arc<dyn ExecutionPlan>,
    values: &[ScalarValue],
    scans: &Arc<ScanContext>,
) -> QueryResult<Arc<dyn ExecutionPlan>> {
    let changed = plan.clone().transform_up(|node| {
        let node = renewed(node, values, scans)?;
        Ok(Transformed::yes(node))
    })?;
    Ok(changed.data)
}

/// The plan with a call in place of each placeholder, which nothing optimizes any more.
fn calls_for_placeholders(plan: LogicalPlan) -> QueryResult<LogicalPlan> {
    let changed = plan.transform_up_with_subqueries(|node| {
        node.map_expressions(|expr| {
            expr.transform_up(|expr| match &expr {
                Expr::Placeholder(placeholder) => Ok(Transformed::yes(call_for(placeholder)?)),
                _ => Ok(Transformed::no(expr)),
            })
        })
    })?;
    Ok(changed.data)
}

/// True where parameters stand only where any value is as well planned as another, and all steps can be run again.
fn is_kept(plan: &dyn ExecutionPlan) -> QueryResult<bool> {
    let (mut has_parameters, mut is_of_one_run) = (false, false);
    plan.apply_expressions(&mut |expr| {
        has_parameters |= contains_parameter(expr);
        is_of_one_run |= runs_queries(expr) || remembers_rows(expr);
        Ok(TreeNodeRecursion::Continue)
    })?;
    let may_have = plan.is::<ProjectionExec>() || is_relation_scan(plan);
    if !is_known(plan) || is_of_one_run || (has_parameters && !may_have) {
        return Ok(false);
    }
    for child in plan.children() {
        if !is_kept(&**child)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Steps of which a copy begins anew.
fn is_known(plan: &dyn ExecutionPlan) -> bool {
    is_relation_scan(plan)
        || plan.is::<ProjectionExec>()
        || plan.is::<FilterExec>()
        || plan.is::<AggregateExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<CrossJoinExec>()
        || plan.is::<EmptyExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<HashJoinExec>()
        || plan.is::<LocalLimitExec>()
        || plan.is::<PlaceholderRowExec>()
        || plan.is::<RepartitionExec>()
        || plan.is::<SortExec>()
        || plan.is::<SortMergeJoinExec>()
        || plan.is::<SortPreservingMergeExec>()
        || plan.is::<UnionExec>()
}

fn has_joins_or_sorts(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<HashJoinExec>()
        || plan.is::<SortExec>()
        || plan.children().into_iter().any(|child| has_joins_or_sorts(&**child))
}

/// A step that has not run, with values for parameters, below which all are such ones.
fn renewed(
    node: Arc<dyn ExecutionPlan>,
    values: &[ScalarValue],
    scans: &Arc<ScanContext>,
) -> QueryResult<Arc<dyn ExecutionPlan>> {
    if let Some(scan) = node.downcast_ref::<DataSourceExec>() {
        let scan = renewed_scan(scan, scans, |condition, on| with_values(condition, values, on))?;
        return Ok(scan);
    }
    if let Some(projection) = node.downcast_ref::<ProjectionExec>()
        && projection.expr().iter().any(|shown| contains_parameter(&shown.expr))
    {
        let schema = projection.input().schema();
        let shown = projection.expr().iter().map(|shown| {
            let expr = with_values(&shown.expr, values, &schema)?;
            Ok(ProjectionExpr { expr, alias: shown.alias.clone() })
        });
        let shown = shown.collect::<QueryResult<Vec<_>>>()?;
        return Ok(Arc::new(ProjectionExec::try_new(shown, projection.input().clone())?));
    }
    node.reset_state()
}
