//! Rows made of rows: for each row below, those that functions give for it, beside it.
//!
//! `FROM generate_series(1, 3)` expands the one row of a query without tables; `FROM t, unnest(t.tags)` each row of `t`; a
//! function of the select list the rows that the clauses before it left. Several functions go in step, and those that end
//! before others give NULL.
//!
//! Invariant: the columns below come first, then those of the functions, then the number of the row if it is wanted.
//!
//! Source: `src/backend/executor/nodeFunctionscan.c`, `nodeProjectSet.c`, PostgreSQL 18.

mod rows;
mod stream;

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{DFSchema, DFSchemaRef, Result as QueryResult};
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};

use crate::barrier::Barriers;
use crate::for_each_row::RowQueries;
use crate::functions::sets::SetCall;
pub(crate) use rows::ExpandRows;

/// What is made of each row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Expansion {
    /// The functions, in step.
    pub(crate) calls: Vec<SetCall>,
    /// The names of their columns.
    pub(crate) names: Vec<String>,
    /// The name of the column with the number of the row, from 1.
    pub(crate) ordinality: Option<String>,
    /// True where a row for which there is nothing stays, with NULLs beside it.
    pub(crate) keeps_all: bool,
}

impl Expansion {
    fn fields(&self) -> Vec<Field> {
        let columns = self.calls.iter().flat_map(|call| call.columns.iter());
        let field = |(column, name): (&crate::functions::sets::SetColumn, &String)| {
            Field::new(name, column.carrier.clone(), true)
        };
        let mut fields: Vec<Field> = columns.zip(&self.names).map(field).collect();
        fields.extend(self.ordinality.iter().map(|name| Field::new(name, DataType::Int64, true)));
        fields
    }

    /// The plan with these arguments, of all calls one behind the other.
    pub(crate) fn over(self, input: LogicalPlan, arguments: Vec<Expr>) -> QueryResult<LogicalPlan> {
        let node = Arc::new(Expand::new(self, arguments, input)?);
        Ok(LogicalPlan::Extension(Extension { node }))
    }
}

/// The plan of an expansion.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Expand {
    expansion: Expansion,
    arguments: Vec<Expr>,
    input: LogicalPlan,
    schema: DFSchemaRef,
}

impl Expand {
    fn new(expansion: Expansion, arguments: Vec<Expr>, input: LogicalPlan) -> QueryResult<Self> {
        let below = input.schema().iter().map(|(table, field)| (table.cloned(), field.clone()));
        let made = expansion.fields().into_iter().map(|field| (None, Arc::new(field)));
        let schema = DFSchema::new_with_metadata(below.chain(made).collect(), HashMap::new())?;
        Ok(Self { expansion, arguments, input, schema: Arc::new(schema) })
    }
}

impl PartialOrd for Expand {
    /// Expansions have no order.
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for Expand {
    fn name(&self) -> &str {
        "Expand"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.arguments.clone()
    }

    /// A condition on the columns below is one of the rows below.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        self.expansion.names.iter().chain(&self.expansion.ordinality).cloned().collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expand: {:?}", self.expansion.calls)
    }

    fn with_exprs_and_inputs(
        &self,
        exprs: Vec<Expr>,
        mut inputs: Vec<LogicalPlan>,
    ) -> QueryResult<Self> {
        let input = inputs.pop().expect("an expansion has an input"); // infallible: as many as inputs() gave
        Self::new(self.expansion.clone(), exprs, input)
    }

    fn necessary_children_exprs(&self, wanted: &[usize]) -> Option<Vec<Vec<usize>>> {
        let below = self.input.schema().fields().len();
        Some(vec![wanted.iter().copied().filter(|column| *column < below).collect()])
    }
}

/// True where a function of a plan refers to the query around it.
pub(crate) fn refers_outwards(plan: &LogicalPlan) -> bool {
    let own = match plan {
        LogicalPlan::Extension(Extension { node }) => {
            node.expressions().iter().any(Expr::contains_outer)
        }
        _ => false,
    };
    own || plan.inputs().into_iter().any(refers_outwards)
}

/// Plans with expansions and barriers in them.
#[derive(Debug)]
pub(crate) struct Planner;

#[async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> QueryResult<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![
            Arc::new(Expansions),
            Arc::new(Barriers),
            Arc::new(RowQueries),
        ]);
        planner.create_physical_plan(plan, session).await
    }
}

struct Expansions;

#[async_trait]
impl ExtensionPlanner for Expansions {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> QueryResult<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<Expand>() else { return Ok(None) };
        let schema = node.input.schema();
        let of = |expr| planner.create_physical_expr(expr, schema, session, context);
        let arguments = node.arguments.iter().map(of).collect::<QueryResult<Vec<_>>>()?;
        let made = node.schema.inner().clone();
        let plan = ExpandRows::new(node.expansion.clone(), arguments, inputs[0].clone(), made)?;
        Ok(Some(Arc::new(plan)))
    }
}
