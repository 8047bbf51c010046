//! AND and OR whose second part is computed only for the rows that the first one does not settle.
//!
//! Invariants: each part is computed once for a row; NULL settles nothing.
//!
//! Source: `EEOP_BOOL_AND_STEP` and `EEOP_BOOL_OR_STEP` in `src/backend/executor/execExprInterp.c`, PostgreSQL 18.

use std::fmt::{self, Display, Formatter};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{AsArray as _, BooleanArray};
use arrow::compute::{and_kleene, or_kleene};
use arrow::datatypes::{DataType, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::common::Result as QueryResult;
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::BinaryExpr;

/// The two parts.
#[derive(Debug)]
pub(crate) struct Stepwise {
    first: Arc<dyn PhysicalExpr>,
    pub(super) second: Arc<dyn PhysicalExpr>,
    /// OR; else AND.
    is_or: bool,
}

impl Stepwise {
    /// `None` for another operator.
    pub(super) fn of(binary: &BinaryExpr) -> Option<Self> {
        let is_or = match binary.op() {
            Operator::Or => true,
            Operator::And => false,
            _ => return None,
        };
        Some(Self { first: binary.left().clone(), second: binary.right().clone(), is_or })
    }

    #[cfg(feature = "workers")]
    pub(crate) fn new(
        first: Arc<dyn PhysicalExpr>,
        second: Arc<dyn PhysicalExpr>,
        is_or: bool,
    ) -> Self {
        Self { first, second, is_or }
    }

    /// True for OR, false for AND.
    #[cfg(feature = "workers")]
    pub(crate) fn is_or(&self) -> bool {
        self.is_or
    }

    /// The rows that the first part leaves open.
    fn open(&self, first: &BooleanArray) -> BooleanArray {
        first.iter().map(|value| Some(value != Some(self.is_or))).collect()
    }
}

impl PartialEq for Stepwise {
    fn eq(&self, other: &Self) -> bool {
        self.is_or == other.is_or && self.first.eq(&other.first) && self.second.eq(&other.second)
    }
}

impl Eq for Stepwise {}

impl Hash for Stepwise {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.is_or.hash(state);
        self.first.hash(state);
        self.second.hash(state);
    }
}

impl Display for Stepwise {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let word = if self.is_or { "OR" } else { "AND" };
        write!(f, "({} {word} {})", self.first, self.second)
    }
}

impl PhysicalExpr for Stepwise {
    fn data_type(&self, _: &Schema) -> QueryResult<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, schema: &Schema) -> QueryResult<bool> {
        Ok(self.first.nullable(schema)? || self.second.nullable(schema)?)
    }

    fn evaluate(&self, batch: &RecordBatch) -> QueryResult<ColumnarValue> {
        let rows = batch.num_rows();
        let first = self.first.evaluate(batch)?.into_array(rows)?;
        let open = self.open(first.as_boolean());
        if open.true_count() == 0 {
            return Ok(ColumnarValue::Array(first));
        }
        // What is settled is NULL there, which changes nothing of it.
        let second = self.second.evaluate_selection(batch, &open)?.into_array(rows)?;
        let (first, second) = (first.as_boolean(), second.as_boolean());
        let both = if self.is_or { or_kleene(first, second) } else { and_kleene(first, second) };
        Ok(ColumnarValue::Array(Arc::new(both?)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.first, &self.second]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> QueryResult<Arc<dyn PhysicalExpr>> {
        let [first, second] = &children[..] else { unreachable!("there are two parts") };
        let (first, second) = (first.clone(), second.clone());
        Ok(Arc::new(Self { first, second, is_or: self.is_or }))
    }

    fn fmt_sql(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Int32Array;
    use arrow::datatypes::Field;
    use datafusion::physical_expr::expressions::{binary, col, lit};

    use super::*;

    /// Division by zero among the rows that are settled, NULL among those that are open; and as many parts as nobody writes, which
    /// would never end if a part were computed twice.
    #[test]
    fn second_parts_are_computed_once_and_only_where_they_count() {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, true)]));
        let values = Int32Array::from(vec![Some(0), Some(5), None, Some(20)]);
        let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(values)]).unwrap();
        let a = || col("a", &schema).unwrap();
        let zero = |operator| binary(a(), operator, lit(0), &schema).unwrap();
        let divided = || binary(lit(10), Operator::Divide, a(), &schema).unwrap();
        let is_large = || binary(divided(), Operator::Gt, lit(1), &schema).unwrap();
        let truths = |expr: Arc<dyn PhysicalExpr>| -> Vec<Option<bool>> {
            let value = expr.evaluate(&batch).unwrap().into_array(4).unwrap();
            value.as_boolean().iter().collect()
        };
        let or: Arc<dyn PhysicalExpr> =
            Arc::new(Stepwise { first: zero(Operator::Eq), second: is_large(), is_or: true });
        assert_eq!(truths(or.clone()), [Some(true), Some(true), None, Some(false)]);
        let and = Stepwise { first: zero(Operator::NotEq), second: is_large(), is_or: false };
        assert_eq!(truths(Arc::new(and)), [Some(false), Some(true), None, Some(false)]);
        let long = (0..200)
            .fold(or, |first, _| Arc::new(Stepwise { first, second: is_large(), is_or: true }));
        assert_eq!(truths(long), [Some(true), Some(true), None, Some(false)]);
    }
}
