//! A search as an expression.
//!
//! Invariant: two calls are equal for the engine only if they ask the same of documents and give the same type.
//!
//! Source: `ExecInitJsonExpr` in `src/backend/executor/execExpr.c`, PostgreSQL 17 and 18.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef};
use arrow::datatypes::DataType;
use datafusion::common::Result as QueryResult;
use datafusion::common::tree_node::TreeNode as _;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use super::super::super::call::columns_of;
use super::super::super::keys::payloads;
use super::super::super::sets::typed_cells;
use super::super::super::text_form::scalar_of_payload;
use super::super::path_searches::{Paths, in_session};
use super::arguments::{passed, value};
use super::evaluate::{Place, Seen};
use super::{Outcome, Search};
use crate::catalog::Catalog;
use crate::coerce::carrier_of;
use crate::typed::Typed;
use crate::types::PgType;

/// The search of a document, which is the first of the arguments; the second is the path, then come the values that these names pass,
/// then those of DEFAULT.
pub(crate) fn search(
    catalog: &Arc<Catalog>,
    search: Search,
    names: Vec<String>,
    arguments: &[Typed],
) -> Typed {
    let (result, carrier) = (search.result, carrier_of(catalog, search.result));
    let call = SearchCall {
        catalog: catalog.clone(),
        search,
        names,
        arguments: arguments.iter().map(|argument| argument.ty).collect(),
        takes: arguments.iter().map(|argument| argument.carrier.clone()).collect(),
        carrier: carrier.clone(),
        signature: Signature::any(arguments.len(), Volatility::Immutable),
        seen: Seen::default(),
    };
    let exprs = arguments.iter().map(|argument| argument.expr.clone()).collect();
    let function = Arc::new(ScalarUDF::new_from_impl(call));
    let expr = Expr::ScalarFunction(ScalarFunction::new_udf(function, exprs));
    Typed::new(expr, result, carrier)
}

/// True where an expression remembers what its rows were so far, which is another run's in a plan that is kept.
pub(crate) fn remembers_rows(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let is_one = |part: &Arc<dyn PhysicalExpr>| {
        part.downcast_ref::<ScalarFunctionExpr>()
            .is_some_and(|call| call.fun().inner().is::<SearchCall>())
    };
    expr.exists(|part| Ok(is_one(part))).unwrap_or(true) // default: looking does not fail
}

struct SearchCall {
    catalog: Arc<Catalog>,
    search: Search,
    /// Those that PASSING gives.
    names: Vec<String>,
    arguments: Vec<PgType>,
    /// What carries the arguments.
    takes: Vec<DataType>,
    carrier: DataType,
    signature: Signature,
    seen: Seen,
}

impl std::fmt::Debug for SearchCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&self.search, f)
    }
}

impl PartialEq for SearchCall {
    fn eq(&self, other: &Self) -> bool {
        self.search == other.search
            && self.names == other.names
            && self.arguments == other.arguments
            && self.takes == other.takes
    }
}

impl Eq for SearchCall {}

impl Hash for SearchCall {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.search.hash(state);
        self.names.hash(state);
        self.arguments.hash(state);
    }
}

impl ScalarUDFImpl for SearchCall {
    fn name(&self) -> &str {
        "sql/json search"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> QueryResult<DataType> {
        Ok(self.carrier.clone())
    }

    fn invoke_with_args(&self, given: ScalarFunctionArgs) -> QueryResult<ColumnarValue> {
        let rows = given.number_rows;
        // Asked what it is of a document without a type, it has met no row.
        let is_of_none = given.args.iter().take(2).any(|arg| arg.data_type() == DataType::Null);
        let seen = if is_of_none { &Seen::default() } else { &self.seen };
        let columns = columns_of(given.args, &self.takes, rows)?;
        let found = self.found(&columns, rows, seen).map_err(DataFusionError::from)?;
        Ok(ColumnarValue::Array(found))
    }
}

impl SearchCall {
    fn found(&self, columns: &[ArrayRef], rows: usize, seen: &Seen) -> Outcome<ArrayRef> {
        let mut cells = typed_cells(&self.carrier);
        let (mut paths, catalog) = (Paths::default(), &*self.catalog);
        in_session(catalog, true, |settings| {
            for row in 0..rows {
                let given = (columns.get(2..).unwrap_or_default(), &self.arguments[2..]); // default: there are two at least
                let passed = passed(catalog, &self.names, given, row)?;
                let argument = |at: usize, ty: PgType| value(catalog, ty, &columns[at], row);
                let (passed, argument) = (&passed, &argument);
                let place = Place { catalog, settings, passed, argument, seen };
                let payload = |at: usize| {
                    let column = &columns[at];
                    column.is_valid(row).then(|| payloads(column).value(row))
                };
                let path = match payload(1) {
                    Some(path) => Some(paths.ready(path)?),
                    None => None,
                };
                match place.evaluate(&self.search, payload(0), path)? {
                    Some(found) => cells.scalar(scalar_of_payload(
                        catalog,
                        self.search.result,
                        &self.carrier,
                        &found,
                    )?)?,
                    None => cells.null()?,
                }
            }
            Ok(())
        })?;
        cells.finish()
    }
}
