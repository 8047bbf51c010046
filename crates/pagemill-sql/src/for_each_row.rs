//! For each row of a plan the rows of a query that refers to it, beside it: LATERAL, where it is no join.
//!
//! ```text
//! row on the left ──its columns──► the query with values in their place ──plan, run──► rows ──► the row beside each
//! ```
//!
//! The query is planned once for any values where such a plan is as good as one for the values; else for each row. Equal rows
//! share one run while what it gave is little.
//!
//! Invariants: the columns below come first, then those of the query; rows keep their order.
//!
//! Source: `ExecNestLoop` in `src/backend/executor/nodeNestloop.c`, PostgreSQL 18.

mod plan;
mod run;

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef, Result as QueryResult};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};

use crate::nested::Nested;
use plan::RowsForEach;

/// A query that refers to columns of the rows before it.
#[derive(Clone)]
pub(crate) struct RowQuery {
    /// Unique in the statement.
    pub(crate) name: String,
    pub(crate) plan: LogicalPlan,
    /// What it refers to, as it is called there, and the types of that.
    pub(crate) outer: Vec<(Column, DataType)>,
    /// True where a row for which it gives none stays, with NULLs beside it.
    pub(crate) keeps_all: bool,
    pub(crate) nested: Arc<Nested>,
}

impl RowQuery {
    /// The plan with the query's rows beside each of its own, for these values of what the query refers to.
    pub(crate) fn over(self, input: LogicalPlan, values: Vec<Expr>) -> QueryResult<LogicalPlan> {
        assert_eq!(values.len(), self.outer.len(), "a value stands for each column");
        let node = Arc::new(ForEachRow::new(Arc::new(self), values, input)?);
        Ok(LogicalPlan::Extension(Extension { node }))
    }

    /// Whether each run may give something else.
    fn is_volatile(&self) -> bool {
        let is_volatile = |plan: &LogicalPlan| {
            let mut found = false;
            plan.apply_expressions(|expr| {
                found |= expr.is_volatile();
                Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })?;
            Ok(found)
        };
        // What cannot be told may.
        self.plan.exists(is_volatile).unwrap_or(true)
    }

    fn schema(&self) -> SchemaRef {
        self.plan.schema().inner().clone()
    }
}

impl fmt::Debug for RowQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.outer.iter().map(|(column, _)| column.flat_name());
        write!(f, "query for each {}", columns.collect::<Vec<_>>().join(", "))
    }
}

impl PartialEq for RowQuery {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.keeps_all == other.keeps_all
    }
}

impl Eq for RowQuery {}

impl Hash for RowQuery {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// The plan of such a query on top of the rows before it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ForEachRow {
    query: Arc<RowQuery>,
    values: Vec<Expr>,
    input: LogicalPlan,
    schema: DFSchemaRef,
}

impl ForEachRow {
    fn new(query: Arc<RowQuery>, values: Vec<Expr>, input: LogicalPlan) -> QueryResult<Self> {
        let below = input.schema().iter().map(|(table, field)| (table.cloned(), field.clone()));
        let nullable = |(table, field): (Option<&_>, &Arc<arrow::datatypes::Field>)| {
            (Option::<&datafusion::common::TableReference>::cloned(table), {
                Arc::new(field.as_ref().clone().with_nullable(true))
            })
        };
        let made = query.plan.schema().iter().map(nullable);
        let schema = DFSchema::new_with_metadata(below.chain(made).collect(), HashMap::new())?;
        Ok(Self { query, values, input, schema: Arc::new(schema) })
    }
}

impl PartialOrd for ForEachRow {
    /// They have no order.
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for ForEachRow {
    fn name(&self) -> &str {
        "ForEachRow"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.values.clone()
    }

    /// A condition on the columns below is one of the rows below.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        self.query.plan.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ForEachRow: {:?}", self.query)
    }

    fn with_exprs_and_inputs(
        &self,
        exprs: Vec<Expr>,
        mut inputs: Vec<LogicalPlan>,
    ) -> QueryResult<Self> {
        let input = inputs.pop().expect("it has an input"); // infallible: as many as inputs() gave
        Self::new(self.query.clone(), exprs, input)
    }

    fn necessary_children_exprs(&self, wanted: &[usize]) -> Option<Vec<Vec<usize>>> {
        let below = self.input.schema().fields().len();
        Some(vec![wanted.iter().copied().filter(|column| *column < below).collect()])
    }
}

/// Plans such nodes.
pub(crate) struct RowQueries;

#[async_trait]
impl ExtensionPlanner for RowQueries {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> QueryResult<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<ForEachRow>() else { return Ok(None) };
        let schema = node.input.schema();
        let of = |expr| planner.create_physical_expr(expr, schema, session, context);
        let values = node.values.iter().map(of).collect::<QueryResult<Vec<_>>>()?;
        let made = node.schema.inner().clone();
        Ok(Some(Arc::new(RowsForEach::new(node.query.clone(), values, inputs[0].clone(), made))))
    }
}
