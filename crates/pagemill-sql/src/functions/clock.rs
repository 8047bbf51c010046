//! The time as it passes: `clock_timestamp()`, which differs from row to row of one statement.
//!
//! Invariant: the query engine knows that two calls differ, and computes neither ahead of its row.
//!
//! Source: `clock_timestamp` in `src/backend/utils/adt/timestamp.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use arrow::array::Int64Array;
use arrow::datatypes::DataType;
use datafusion::common::Result as QueryResult;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::{Build, Implementation};
use crate::scan::now;

pub(crate) fn find(key: &str) -> Option<Implementation> {
    (key == "clock_timestamp").then_some(Implementation::Build(|build: &Build<'_>| {
        let signature = Signature::nullary(Volatility::Volatile);
        let function = Arc::new(ScalarUDF::new_from_impl(Clock { signature }));
        let expr = Expr::ScalarFunction(ScalarFunction::new_udf(function, Vec::new()));
        Ok(build.done(expr, DataType::Int64))
    }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Clock {
    signature: Signature,
}

impl ScalarUDFImpl for Clock {
    fn name(&self) -> &str {
        "clock_timestamp"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> QueryResult<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, given: ScalarFunctionArgs) -> QueryResult<ColumnarValue> {
        let moments = Int64Array::from_iter_values((0..given.number_rows).map(|_| now()));
        Ok(ColumnarValue::Array(Arc::new(moments)))
    }
}
