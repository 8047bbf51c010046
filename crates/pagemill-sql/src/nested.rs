//! Queries in expressions that are run anew for each row around them, as the server runs what it can make no join of.
//!
//! ```text
//! row around ──its columns──► the query with constants in their place ──plan, run──► one value
//! ```
//!
//! A batch of rows is computed on a thread of its own, for running a plan waits, and who computes must not. Equal rows of a
//! batch share one run.
//!
//! Invariant: a query of no rows gives NULL, one of several rows the server's error.
//!
//! Source: `ExecScanSubPlan` in `src/backend/executor/nodeSubplan.c`, PostgreSQL 18.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{ArrayRef, new_null_array};
use arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion};
use datafusion::common::{Column, Result as QueryResult};
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::scalar::ScalarValue;
use futures::StreamExt as _;
use pagemill_engine::Progress;
use tokio::sync::OnceCell;

use crate::error::{Error, SqlState, StatementError};
use crate::generic_plan::{for_any_values, plan_with_values};
use crate::interruption::interruptible;
use crate::scan::{ScanContext, with_runtime_filters};

/// Bytes of the stack of a thread that plans and runs statements: the engine's planner recurses.
pub const PLANNING_STACK: usize = 64 << 20;

/// What a query within another runs in.
pub(crate) struct Nested {
    pub(crate) state: SessionState,
    pub(crate) progress: Progress,
    pub(crate) scans: Arc<ScanContext>,
}

/// A query with values in the place of what it refers to.
pub(crate) fn with_values(
    plan: &LogicalPlan,
    (outer, values): (&[(Column, DataType)], &[ScalarValue]),
) -> QueryResult<LogicalPlan> {
    with_each(plan, outer, &|at| Expr::Literal(values[at].clone(), None))
}

/// A query with parameters in the place of what it refers to.
pub(crate) fn with_placeholders(
    plan: &LogicalPlan,
    outer: &[(Column, DataType)],
) -> QueryResult<LogicalPlan> {
    with_each(plan, outer, &|at| {
        let (column, carrier) = &outer[at];
        let field = Arc::new(Field::new(column.name(), carrier.clone(), true));
        Expr::Placeholder(Placeholder::new_with_field(format!("${}", at + 1), Some(field)))
    })
}

fn with_each(
    plan: &LogicalPlan,
    outer: &[(Column, DataType)],
    value: &dyn Fn(usize) -> Expr,
) -> QueryResult<LogicalPlan> {
    let value_of = |column: &Column| outer.iter().position(|(outer, _)| outer == column).map(value);
    let replaced = plan.clone().transform_up_with_subqueries(|node| {
        // What a column is called is part of its plan.
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let expr = expr.transform_up(|inner| {
                let value = match &inner {
                    Expr::OuterReferenceColumn(_, column) => value_of(column),
                    _ => None,
                };
                Ok(value.map_or(Transformed::no(inner), Transformed::yes))
            })?;
            Ok(expr.update_data(|expr| name.restore(expr)))
        })
    });
    Ok(replaced?.data)
}

/// What planning gives, once it is done.
type Planning<'p, T> = Pin<Box<dyn Future<Output = QueryResult<T>> + Send + 'p>>;

/// Plans on a thread of its own, whose stack is long enough.
pub(crate) fn planned_apart<T: Send>(
    nested: &Nested,
    planning: &(dyn for<'p> Fn(&'p SessionState) -> Planning<'p, T> + Sync),
) -> QueryResult<T> {
    on_own_thread(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        runtime.block_on(planning(&nested.state))
    })
}

fn on_own_thread<T: Send>(run: impl FnOnce() -> QueryResult<T> + Send) -> QueryResult<T> {
    std::thread::scope(|scope| {
        let named = std::thread::Builder::new().name("nested query".to_owned());
        let thread = named.stack_size(PLANNING_STACK).spawn_scoped(scope, run)?;
        match thread.join() {
            Ok(found) => found,
            // A defect there is one here.
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// A query of one value that refers to columns of the queries around it.
pub(crate) struct NestedQuery {
    /// Unique in the statement.
    pub(crate) name: String,
    pub(crate) plan: LogicalPlan,
    /// What it refers to, as it is called there, and the types of that.
    pub(crate) outer: Vec<(Column, DataType)>,
    /// What carries the value.
    pub(crate) carrier: DataType,
}

impl NestedQuery {
    /// Its value, for the values of what it refers to.
    pub(crate) fn of(self, values: Vec<Expr>, nested: Arc<Nested>) -> Expr {
        assert_eq!(values.len(), self.outer.len(), "a value stands for each column");
        // Not the same for equal values: nothing of the optimizer's is to run it.
        let signature = match values.len() {
            0 => Signature::nullary(Volatility::Volatile),
            count => Signature::any(count, Volatility::Volatile),
        };
        let function = ScalarUDF::new_from_impl(Apply {
            query: Arc::new(self),
            nested,
            signature,
            any_plan: AnyPlan::default(),
        });
        Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), values))
    }

    async fn run(&self, values: &[ScalarValue], apply: &Apply) -> QueryResult<ScalarValue> {
        let Apply { nested, any_plan, .. } = apply;
        if nested.progress.is_cancelled() {
            return Err(Error::from(pagemill_engine::Error::Cancelled).into());
        }
        let plan = match any_plan.of(self, nested).await {
            Some(plan) => plan_with_values(plan, values, &nested.scans)?,
            None => {
                let plan = with_values(&self.plan, (&self.outer, values))?;
                nested.state.create_physical_plan(&plan).await?
            }
        };
        let (plan, task) = with_runtime_filters(plan, &nested.state)?;
        let mut rows = execute_stream(interruptible(plan, &nested.progress)?, task)?;
        let mut found = None;
        while let Some(batch) = rows.next().await.transpose()? {
            if batch.num_rows() > 1 || batch.num_rows() == 1 && found.is_some() {
                let message = "more than one row returned by a subquery used as an expression";
                return Err(StatementError::new(SqlState::CARDINALITY_VIOLATION, message).into());
            }
            if batch.num_rows() == 1 {
                found = Some(ScalarValue::try_from_array(batch.column(0), 0)?);
            }
        }
        found.map_or_else(|| ScalarValue::try_from(&self.carrier), Ok)
    }
}

struct Apply {
    query: Arc<NestedQuery>,
    nested: Arc<Nested>,
    signature: Signature,
    any_plan: AnyPlan,
}

/// The plan for any values, where it is as good as one for given ones; sought when the query runs a second time.
#[derive(Default)]
struct AnyPlan {
    has_run: AtomicBool,
    plan: OnceCell<Option<Arc<dyn ExecutionPlan>>>,
}

impl AnyPlan {
    async fn of(&self, query: &NestedQuery, nested: &Nested) -> Option<&Arc<dyn ExecutionPlan>> {
        if !self.has_run.swap(true, Ordering::Relaxed) {
            return None;
        }
        let make = async || {
            let plan = with_placeholders(&query.plan, &query.outer)?;
            for_any_values(&plan, &nested.state).await
        };
        // What stands in the way is told by the plan for the values, if it stands in its way, too.
        self.plan.get_or_init(|| async { make().await.unwrap_or(None) }).await.as_ref()
    }
}

/// Whether an expression has a query in it that is not run for each row; true of what cannot be walked through.
pub(crate) fn has_query(expr: &Expr) -> bool {
    let is_query = |part: &Expr| {
        Ok(matches!(part, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_)))
    };
    // default: who asks leaves alone what has one
    expr.exists(is_query).unwrap_or(true)
}

/// True where an expression runs a query for each row: in a context of its statement, which a plan that is kept has no part in.
pub(crate) fn runs_queries(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let is_one = |part: &Arc<dyn PhysicalExpr>| {
        part.downcast_ref::<ScalarFunctionExpr>()
            .is_some_and(|call| call.fun().inner().is::<Apply>())
    };
    expr.exists(|part| Ok(is_one(part))).unwrap_or(true) // default: looking does not fail
}

/// True where some step of a plan does.
pub(crate) fn plan_runs_queries(plan: &dyn ExecutionPlan) -> QueryResult<bool> {
    let mut runs = false;
    plan.apply_expressions(&mut |expr| {
        runs |= runs_queries(expr);
        Ok(TreeNodeRecursion::Continue)
    })?;
    for child in plan.children() {
        runs = runs || plan_runs_queries(&**child)?;
    }
    Ok(runs)
}

impl std::fmt::Debug for Apply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.query.name)
    }
}

impl PartialEq for Apply {
    fn eq(&self, other: &Self) -> bool {
        self.query.name == other.query.name
    }
}

impl Eq for Apply {}

impl Hash for Apply {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.query.name.hash(state);
    }
}

impl Apply {
    async fn rows(&self, columns: &[ArrayRef], rows: usize) -> QueryResult<Vec<ScalarValue>> {
        let mut known: HashMap<Vec<ScalarValue>, ScalarValue> = HashMap::new();
        let mut found = Vec::with_capacity(rows);
        for row in 0..rows {
            let values = columns.iter().map(|column| ScalarValue::try_from_array(column, row));
            found.push(match known.entry(values.collect::<QueryResult<_>>()?) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(new) => {
                    let value = self.query.run(new.key(), self).await?;
                    new.insert(value).clone()
                }
            });
        }
        Ok(found)
    }

    /// On a thread and a runtime of its own.
    fn compute(&self, columns: &[ArrayRef], rows: usize) -> QueryResult<Vec<ScalarValue>> {
        on_own_thread(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().build()?;
            runtime.block_on(self.rows(columns, rows))
        })
    }
}

impl ScalarUDFImpl for Apply {
    fn name(&self) -> &str {
        &self.query.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> QueryResult<DataType> {
        Ok(self.query.carrier.clone())
    }

    fn invoke_with_args(&self, given: ScalarFunctionArgs) -> QueryResult<ColumnarValue> {
        let rows = given.number_rows;
        let column = |(arg, (_, takes)): (ColumnarValue, &(Column, DataType))| match arg.data_type()
        {
            DataType::Null => Ok(new_null_array(takes, rows)),
            _ => arg.into_array(rows),
        };
        let columns = given.args.into_iter().zip(&self.query.outer).map(column);
        let columns = columns.collect::<QueryResult<Vec<ArrayRef>>>()?;
        let found = self.compute(&columns, rows)?;
        let made = match found.is_empty() {
            true => new_null_array(&self.query.carrier, 0),
            false => ScalarValue::iter_to_array(found)?,
        };
        if *made.data_type() != self.query.carrier {
            let what = format!("a nested query gave {}", made.data_type());
            return Err(DataFusionError::Internal(what));
        }
        Ok(ColumnarValue::Array(made))
    }
}
