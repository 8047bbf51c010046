//! The one value of a query that stands in an expression and refers to the query around it.
//!
//! The engine joins such a query to the rows around it, by groups of what it refers by. Groups that no row asks for are
//! computed as well, so that several rows in one are not the server's error yet: the statement begins anew without the join.
//!
//! Invariant: no row gives NULL; more than one gives no value.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, BooleanArray};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result as QueryResult;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;

use crate::error::{SEVERAL_ROWS, StatementError};

/// The one value of an expression.
pub(crate) fn single(value: Expr, carrier: &DataType) -> Expr {
    let function =
        Single { carrier: carrier.clone(), signature: Signature::any(1, Volatility::Immutable) };
    Arc::new(AggregateUDF::new_from_impl(function)).call(vec![value])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Single {
    carrier: DataType,
    signature: Signature,
}

impl AggregateUDFImpl for Single {
    fn name(&self) -> &str {
        "pg_single_value"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> QueryResult<DataType> {
        Ok(self.carrier.clone())
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> QueryResult<Box<dyn Accumulator>> {
        let value = ScalarValue::try_from(&self.carrier)?;
        Ok(Box::new(Found { value, is_found: false }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> QueryResult<Vec<FieldRef>> {
        let field = |name: &str, carrier: DataType| {
            Arc::new(Field::new(format_state_name(args.name, name), carrier, true))
        };
        Ok(vec![field("value", self.carrier.clone()), field("found", DataType::Boolean)])
    }
}

#[derive(Debug)]
struct Found {
    value: ScalarValue,
    is_found: bool,
}

impl Found {
    fn take(&mut self, values: &ArrayRef, row: usize) -> QueryResult<()> {
        if self.is_found {
            return Err(DataFusionError::from(StatementError::unsupported(SEVERAL_ROWS)));
        }
        self.is_found = true;
        self.value = ScalarValue::try_from_array(values, row)?;
        Ok(())
    }
}

impl Accumulator for Found {
    fn update_batch(&mut self, values: &[ArrayRef]) -> QueryResult<()> {
        (0..values[0].len()).try_for_each(|row| self.take(&values[0], row))
    }

    fn evaluate(&mut self) -> QueryResult<ScalarValue> {
        Ok(self.value.clone())
    }

    fn size(&self) -> usize {
        size_of_val(self) - size_of_val(&self.value) + self.value.size()
    }

    fn state(&mut self) -> QueryResult<Vec<ScalarValue>> {
        Ok(vec![self.value.clone(), ScalarValue::Boolean(Some(self.is_found))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> QueryResult<()> {
        let found = states[1].as_any().downcast_ref::<BooleanArray>();
        let found = found.expect("a flag is carried as one"); // infallible: of state_fields
        for row in 0..found.len() {
            if found.is_valid(row) && found.value(row) {
                self.take(&states[0], row)?;
            }
        }
        Ok(())
    }
}
