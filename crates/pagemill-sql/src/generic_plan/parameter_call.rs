//! A parameter in a kept plan: a function without arguments that is never called, as a literal takes its place first.
//!
//! Invariant: two of them are equal only if they are the same parameter.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::Result as QueryResult;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::expressions::{CastExpr, InListExpr, Literal, in_list};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::scalar::ScalarValue;

/// A parameter.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ParameterCall {
    /// `$1` and so on.
    name: String,
    /// From 0.
    number: usize,
    carrier: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for ParameterCall {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> QueryResult<DataType> {
        Ok(self.carrier.clone())
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> QueryResult<ColumnarValue> {
        Err(DataFusionError::Internal(format!("{} has no value yet", self.name)))
    }
}

/// The call that stands for a placeholder.
pub(super) fn call_for(placeholder: &Placeholder) -> QueryResult<Expr> {
    let number = placeholder.id.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok());
    let number = number.and_then(|number| number.checked_sub(1));
    let (Some(number), Some(field)) = (number, &placeholder.field) else {
        let what = format!("{} is no parameter with a type", placeholder.id);
        return Err(DataFusionError::Internal(what));
    };
    let call = ParameterCall {
        name: placeholder.id.clone(),
        number,
        carrier: field.data_type().clone(),
        signature: Signature::nullary(Volatility::Stable),
    };
    let function = Arc::new(ScalarUDF::new_from_impl(call));
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, Vec::new())))
}

/// Which parameter an expression is.
fn parameter(expr: &Arc<dyn PhysicalExpr>) -> Option<&ParameterCall> {
    expr.downcast_ref::<ScalarFunctionExpr>()?.fun().inner().downcast_ref()
}

/// True for a parameter, whose value is as good as a literal.
pub(crate) fn is_parameter(expr: &Arc<dyn PhysicalExpr>) -> bool {
    parameter(expr).is_some()
}

/// True where a parameter stands in an expression.
pub(super) fn contains_parameter(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let mut found = false;
    let walked = expr.apply(|part| {
        found |= is_parameter(part);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found || walked.is_err()
}

/// The expression on columns of this schema with a value for each of its parameters. What is computed of these alone is computed, so
/// that an index can be searched for it; in a list of values one is looked up.
pub(super) fn with_values(
    expr: &Arc<dyn PhysicalExpr>,
    values: &[ScalarValue],
    schema: &Schema,
) -> QueryResult<Arc<dyn PhysicalExpr>> {
    Ok(changed(expr, values, schema)?.unwrap_or_else(|| expr.clone()))
}

/// `None` where it has no parameter.
fn changed(
    expr: &Arc<dyn PhysicalExpr>,
    values: &[ScalarValue],
    schema: &Schema,
) -> QueryResult<Option<Arc<dyn PhysicalExpr>>> {
    if let Some(call) = parameter(expr) {
        let value = values.get(call.number);
        let value = value.expect("each parameter of a plan was given a value"); // infallible: counted when they were bound
        return Ok(Some(Arc::new(Literal::new(value.clone()))));
    }
    let mut has_changed = false;
    let mut children = Vec::new();
    for child in expr.children() {
        let new = changed(child, values, schema)?;
        has_changed |= new.is_some();
        children.push(new.unwrap_or_else(|| child.clone()));
    }
    match has_changed {
        true => computed(expr.clone().with_new_children(children)?, schema).map(Some),
        false => Ok(None),
    }
}

/// As a literal, where it is made of literals and does not fail: then it is left to fail where the statement comes to it.
fn computed(expr: Arc<dyn PhysicalExpr>, schema: &Schema) -> QueryResult<Arc<dyn PhysicalExpr>> {
    let are_literals =
        |parts: &[&Arc<dyn PhysicalExpr>]| parts.iter().all(|part| part.is::<Literal>());
    if let Some(list) = expr.downcast_ref::<InListExpr>() {
        let (item, items) = (list.expr().clone(), list.list().to_vec());
        return match are_literals(&items.iter().collect::<Vec<_>>()) {
            true => in_list(item, items, &list.negated(), schema),
            false => Ok(expr),
        };
    }
    let is_computed = expr.is::<CastExpr>() || expr.is::<ScalarFunctionExpr>();
    if !is_computed || expr.is_volatile_node() || !are_literals(&expr.children()) {
        return Ok(expr);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)?;
    let value = expr.evaluate(&row).and_then(|value| value.into_array(1));
    let value = value.and_then(|array| ScalarValue::try_from_array(&array, 0));
    Ok(match value {
        Ok(value) => Arc::new(Literal::new(value)),
        Err(_) => expr,
    })
}
