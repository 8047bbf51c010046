//! What the expressions of indexes are, and the conditions of partial ones, in the terms of a scan.
//!
//! ```text
//! stored tree ──► text ── bound over the scan's columns ──► an expression, beside which those of the statement are held
//! ```
//!
//! A key that is an expression gets a place behind the columns of the scan, by which conditions and orders tell of it as of a column.
//!
//! Invariant: two expressions are taken for one only where they are the same functions of the same columns. Nothing here is an error:
//! an index of which something is not known is not searched.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow::datatypes::SchemaRef;
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult as _, TreeNode as _};
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, DynamicFilterPhysicalExpr,
};
use datafusion::physical_expr::utils::split_conjunction;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr, create_physical_expr};
use pagemill_cluster::{KeySource, SearchIndex, SearchKey};
use pagemill_engine::Table;
use pagemill_format::Oid;
use pagemill_format::node_tree::Node;

use super::day_conditions::by_days;
use super::filters::ScanFilters;
use super::implication::{implies_all, is_comparison};
use super::index_payload::KeyForm;
use super::relation_table::TableColumn;
use super::source::RelationSource;
use crate::bind::{BoundColumn, stored_condition, stored_expression};
use crate::catalog::Catalog;
use crate::definitions::{Style, Writer};
use crate::error::Result;
use crate::typed::Typed;

/// What an index says of itself, as SQL; `None` for what cannot be written.
#[derive(Debug, Default)]
pub(crate) struct IndexTexts {
    expressions: Vec<Option<String>>,
    predicate: Option<String>,
}

/// An expression that is the key of an index.
#[derive(Debug)]
pub(super) struct KeyExpression {
    text: String,
    expr: Arc<dyn PhysicalExpr>,
    /// Its type, as that of a column.
    pub(super) column: TableColumn,
}

/// A condition of an index, as its parts that all have to hold.
type Predicate = Arc<[Arc<dyn PhysicalExpr>]>;

/// What is known of the indexes of a scan.
#[derive(Default)]
pub(super) struct IndexExpressions {
    /// By their texts, ascending.
    keys: OnceLock<Vec<KeyExpression>>,
    /// By their texts; `None` for one that is not understood.
    predicates: Mutex<HashMap<String, Option<Predicate>>>,
}

impl RelationSource {
    /// The expressions that are keys of indexes, where a condition may be about one.
    ///
    /// # Errors
    /// When a catalog cannot be read.
    pub(super) fn key_expressions(&self) -> Result<&[KeyExpression]> {
        let known = &self.expressions.keys;
        if let Some(found) = known.get() {
            return Ok(found);
        }
        let mut found = BTreeMap::new();
        // Of a thousand partitions few may be left, and no other's indexes are looked for.
        let without_rows = self.parts_without_rows()?;
        let parts = self.parts.iter().enumerate();
        for (_, (table, _)) in parts.filter(|(at, _)| !without_rows.contains(at)) {
            let catalog = &self.context.catalog;
            let indexes = catalog.search_indexes(&table.relation)?;
            let trees = indexes.trees.iter().filter_map(|(_, index)| index.as_ref().ok());
            for index in trees.filter(|index| has_expressions(index)) {
                let texts = indexes.texts(catalog, index);
                for text in texts.expressions.iter().flatten() {
                    let read = || self.key_expression(text);
                    found.entry(text.clone()).or_insert_with(read);
                }
            }
        }
        Ok(known.get_or_init(|| found.into_values().flatten().collect()))
    }

    /// `None` for one that is not understood.
    fn key_expression(&self, text: &str) -> Option<KeyExpression> {
        let typed = stored_expression(&self.context.catalog, self.bound_columns(), text).ok()?;
        let Typed { expr, ty, carrier, .. } = typed;
        let expr = physical(expr, self.table_columns())?;
        let (stored_name, name) = (Box::default(), text.to_owned());
        let column = TableColumn { stored_name, name, ty, carrier, system: None, number: 0 };
        Some(KeyExpression { text: text.to_owned(), expr, column })
    }

    /// The place of what a key of an index is, among the columns and then the expressions.
    ///
    /// # Errors
    /// As [`Self::key_expressions`].
    pub(super) fn place_of_key(
        &self,
        table: &Table,
        (index, key): (&SearchIndex, &SearchKey),
    ) -> Result<Option<usize>> {
        match key.source {
            KeySource::Column(position) => {
                let Some(stored) = table.relation.columns.get(position) else { return Ok(None) };
                Ok(self.columns.iter().position(|column| column.stored_name == stored.name))
            }
            KeySource::Expression(number) => {
                // Where nobody looked for any, no condition is about one.
                let Some(known) = self.expressions.keys.get() else { return Ok(None) };
                let catalog = &self.context.catalog;
                let indexes = catalog.search_indexes(&table.relation)?;
                let texts = indexes.texts(catalog, index);
                let Some(Some(text)) = texts.expressions.get(number) else { return Ok(None) };
                let place = known.iter().position(|known| known.text == *text);
                Ok(place.map(|place| self.columns.len() + place))
            }
        }
    }

    /// Whether an index has every row for which these conditions hold.
    ///
    /// # Errors
    /// As [`Self::key_expressions`].
    pub(super) fn has_all_rows(
        &self,
        table: &Table,
        (index, filters): (&SearchIndex, &ScanFilters),
    ) -> Result<bool> {
        if index.predicate.is_none() {
            return Ok(true);
        }
        let catalog = &self.context.catalog;
        let indexes = catalog.search_indexes(&table.relation)?;
        let Some(text) = &indexes.texts(catalog, index).predicate else { return Ok(false) };
        let mut known = self.expressions.predicates.lock().unwrap_or_else(PoisonError::into_inner);
        let predicate = match known.get(text) {
            Some(predicate) => predicate.clone(),
            None => known.entry(text.clone()).or_insert(self.predicate(text)).clone(),
        };
        drop(known);
        let conditions: Vec<_> = filters.all().flat_map(parts).collect();
        Ok(predicate.is_some_and(|predicate| implies_all(&conditions, &predicate)))
    }

    fn predicate(&self, text: &str) -> Option<Predicate> {
        let expr = stored_condition(&self.context.catalog, self.bound_columns(), text).ok()?;
        // As the conditions of scans are.
        let parts = parts(&physical(expr, self.table_columns())?).into_iter();
        let zone = self.context.catalog.time_zone().map(|zone| &**zone);
        parts.map(|part| comparable(&by_days(part, zone).ok()?)).collect()
    }

    /// The columns by the names that stored expressions call them.
    fn bound_columns(&self) -> Vec<BoundColumn> {
        let own = self.columns.iter().filter(|column| column.system.is_none());
        let bound = own.map(|column| {
            let expr = datafusion::common::Column::new_unqualified(&column.name);
            let typed = Typed::new(Expr::Column(expr), column.ty, column.carrier.clone());
            let name = String::from_utf8_lossy(&column.stored_name).into_owned();
            BoundColumn { name, typed }
        });
        bound.collect()
    }
}

fn has_expressions(index: &SearchIndex) -> bool {
    index.keys.iter().any(|key| matches!(key.source, KeySource::Expression(_)))
}

/// The place of the expression that is the same as this one.
pub(super) fn place_of(known: &[KeyExpression], expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    let expr = (!known.is_empty()).then(|| comparable(expr)).flatten()?;
    known.iter().position(|known| *known.expr == *expr)
}

/// Whether some condition looks at more than a column, so that it may be about an expression.
pub(super) fn may_compute(filters: &ScanFilters) -> bool {
    let computes = |filter: &Arc<dyn PhysicalExpr>| filter.exists(|node| Ok(computes(node)));
    // infallible: the question has no error
    filters.all().any(|filter| computes(filter).unwrap_or(true))
}

fn computes(node: &Arc<dyn PhysicalExpr>) -> bool {
    if let Some(call) = node.downcast_ref::<ScalarFunctionExpr>() {
        return KeyForm::of_kernel(call.fun()).is_none();
    }
    let is_operator =
        |binary: &BinaryExpr| !is_comparison(*binary.op()) && !binary.op().is_logic_operator();
    node.is::<CastExpr>()
        || node.is::<CaseExpr>()
        || node.downcast_ref::<BinaryExpr>().is_some_and(is_operator)
}

/// The parts of a condition that all have to hold, as they can be held against others.
fn parts(condition: &Arc<dyn PhysicalExpr>) -> Vec<Arc<dyn PhysicalExpr>> {
    let current = match condition.downcast_ref::<DynamicFilterPhysicalExpr>() {
        Some(dynamic) => dynamic.current().ok(),
        None => Some(condition.clone()),
    };
    let current = current.and_then(|current| comparable(&current));
    current.iter().flat_map(split_conjunction).cloned().collect()
}

/// The expression as the engine would evaluate it.
fn physical(expr: Expr, schema: &SchemaRef) -> Option<Arc<dyn PhysicalExpr>> {
    let schema = Arc::new(DFSchema::try_from(schema.as_ref().clone()).ok()?);
    let context = SimplifyContext::builder().with_schema(schema.clone()).build();
    let expr = ExprSimplifier::new(context).simplify(expr).ok()?;
    let (props, context) = (ExecutionProps::new(), PhysicalPlanningContext::default());
    comparable(&create_physical_expr(&expr, &schema, &props, &context).ok()?)
}

/// The expression without what does not matter to its values: how its columns are called, and the settings of the engine.
fn comparable(expr: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
    static OPTIONS: OnceLock<Arc<ConfigOptions>> = OnceLock::new();
    let options = OPTIONS.get_or_init(Arc::default);
    let bare = |node: Arc<dyn PhysicalExpr>| {
        if let Some(column) = node.downcast_ref::<Column>() {
            let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new("", column.index()));
            return Ok(Transformed::yes(column));
        }
        let Some(call) = node.downcast_ref::<ScalarFunctionExpr>() else {
            return Ok(Transformed::no(node));
        };
        let (fun, args) = (Arc::new(call.fun().clone()), call.args().to_vec());
        let returns = Arc::new(arrow::datatypes::Field::new("", call.return_type().clone(), true));
        let call = ScalarFunctionExpr::new(call.name(), fun, args, returns, options.clone());
        let call: Arc<dyn PhysicalExpr> = Arc::new(call);
        Ok(Transformed::yes(call))
    };
    expr.clone().transform_up(bare).data().ok()
}

impl IndexTexts {
    /// What an index of a table says.
    pub(super) fn read(catalog: &Arc<Catalog>, table: Oid, index: &SearchIndex) -> Self {
        let SearchIndex { expressions, predicate, .. } = index;
        let parsed = |tree: &Option<Vec<u8>>| {
            let tree = Node::parse(tree.as_deref()?).ok()?;
            Some(each(&tree).map(|node| written(catalog, table, node)).collect::<Vec<_>>())
        };
        // default: an index without any
        let expressions = parsed(expressions).unwrap_or_default();
        let mut conditions = parsed(predicate).unwrap_or_default(); // default: likewise
        let predicate = if conditions.len() == 1 { conditions.remove(0) } else { None };
        Self { expressions, predicate }
    }
}

/// The members of a list, or the one node.
fn each<'n, 't>(tree: &'n Node<'t>) -> impl Iterator<Item = &'n Node<'t>> {
    let members = tree.as_list().unwrap_or(std::slice::from_ref(tree));
    members.iter()
}

fn written(catalog: &Arc<Catalog>, table: Oid, tree: &Node<'_>) -> Option<String> {
    let dictionary = catalog.dictionary().ok()?;
    Writer::new(catalog, &dictionary, Style::READ_BACK).tree(tree, table).ok()
}
