//! A kernel as a scalar function of the query engine.
//!
//! Invariant: two calls are equal for the engine only if they compute the same: by name, types and carrier.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, new_null_array};
use arrow::compute::concat;
use arrow::datatypes::DataType;
use datafusion::common::Result as QueryResult;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;

use super::Kernel;
use crate::catalog::Catalog;
use crate::error::{SqlState, StatementError};
use crate::long_constants::rows_with;
use crate::typed::Typed;
use crate::types::PgType;

/// What a kernel knows of the call beside the values.
#[derive(Clone)]
pub(crate) struct KernelCall {
    /// For types whose values need the catalogs.
    pub(crate) catalog: Arc<Catalog>,
    /// The server's name of the function.
    pub(crate) key: Arc<str>,
    /// The types of the arguments.
    pub(crate) arguments: Arc<[PgType]>,
    /// The type of the result.
    pub(crate) result: PgType,
    /// What carries the result.
    pub(crate) carrier: DataType,
}

/// The call of a kernel as an expression.
pub(crate) fn call_kernel(
    catalog: &Arc<Catalog>,
    (key, kernel): (&str, Kernel),
    arguments: &[Typed],
    result: PgType,
    carrier: DataType,
) -> Typed {
    let call = KernelCall {
        catalog: catalog.clone(),
        key: key.into(),
        arguments: arguments.iter().map(|argument| argument.ty).collect(),
        result,
        carrier: carrier.clone(),
    };
    let volatility = match super::chance::is_drawn(key) {
        true => Volatility::Volatile,
        false => Volatility::Immutable,
    };
    let signature = match arguments.is_empty() {
        true => Signature::nullary(volatility),
        false => Signature::any(arguments.len(), volatility),
    };
    let takes = arguments.iter().map(|argument| argument.carrier.clone()).collect();
    let function = ScalarUDF::new_from_impl(PgFunction { call, takes, kernel, signature });
    let exprs = arguments.iter().map(|argument| argument.expr.clone()).collect();
    let expr = Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), exprs));
    Typed::new(expr, result, carrier)
}

/// The types of the arguments of such a call; `None` of another one.
pub(crate) fn argument_types(function: &ScalarUDF) -> Option<&[PgType]> {
    function.inner().downcast_ref::<PgFunction>().map(|own| &*own.call.arguments)
}

struct PgFunction {
    call: KernelCall,
    /// What carries the arguments.
    takes: Vec<DataType>,
    kernel: Kernel,
    signature: Signature,
}

impl fmt::Debug for PgFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.call.key)
    }
}

impl PartialEq for PgFunction {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&self.call, &other.call);
        a.key == b.key
            && a.arguments == b.arguments
            && a.result == b.result
            && a.carrier == b.carrier
    }
}

impl Eq for PgFunction {}

impl Hash for PgFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.call.key.hash(state);
        self.call.arguments.hash(state);
        self.call.result.hash(state);
    }
}

impl ScalarUDFImpl for PgFunction {
    fn name(&self) -> &str {
        &self.call.key
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> QueryResult<DataType> {
        Ok(self.call.carrier.clone())
    }

    fn invoke_with_args(&self, given: ScalarFunctionArgs) -> QueryResult<ColumnarValue> {
        // What is drawn is another one for each row.
        let is_constant = self.signature.volatility != Volatility::Volatile
            && given.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { given.number_rows };
        let piece = rows_at_once(&given.args, rows);
        if piece < rows {
            return self.in_pieces(&given, piece);
        }
        let has_arguments = !given.args.is_empty();
        let arrays = columns_of(given.args, &self.takes, rows)?;
        let found = (self.kernel)(&self.call, &arrays).map_err(DataFusionError::from)?;
        assert_eq!(found.data_type(), &self.call.carrier, "{} gives what it says", self.call.key);
        match is_constant && has_arguments {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?)),
            false => Ok(ColumnarValue::Array(found)),
        }
    }
}

/// The arguments of a call as columns of so many rows.
pub(crate) fn columns_of(
    arguments: Vec<ColumnarValue>,
    takes: &[DataType],
    rows: usize,
) -> QueryResult<Vec<ArrayRef>> {
    // The engine asks what a condition is of columns of NULLs, which have no type then.
    let column = |(argument, takes): (ColumnarValue, &DataType)| match argument.data_type() {
        DataType::Null => Ok(new_null_array(takes, rows)),
        _ => argument.into_array(rows),
    };
    arguments.into_iter().zip(takes).map(column).collect()
}

/// How many rows have room for all constants at once.
fn rows_at_once(arguments: &[ColumnarValue], rows: usize) -> usize {
    arguments.iter().fold(rows, |rows, argument| match argument {
        ColumnarValue::Scalar(constant) => rows_with(constant, rows),
        ColumnarValue::Array(_) => rows,
    })
}

impl PgFunction {
    /// The results of so many rows after so many others: some constant is too long for all of them.
    fn in_pieces(&self, given: &ScalarFunctionArgs, piece: usize) -> QueryResult<ColumnarValue> {
        let mut found: Vec<ArrayRef> = Vec::new();
        for start in (0..given.number_rows).step_by(piece) {
            let rows = piece.min(given.number_rows - start);
            let of_rows = |argument: &ColumnarValue| match argument {
                ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(start, rows)),
                constant => constant.clone(),
            };
            let args = given.args.iter().map(of_rows).collect();
            let given = ScalarFunctionArgs { args, number_rows: rows, ..given.clone() };
            found.push(self.invoke_with_args(given)?.into_array(rows)?);
        }
        let all: Vec<&dyn Array> = found.iter().map(|array| &**array).collect();
        let all = concat(&all).map_err(|_| {
            let message = "the values of some rows together take more than 2 GB";
            StatementError::new(SqlState("54000"), message)
        });
        Ok(ColumnarValue::Array(all?))
    }
}
