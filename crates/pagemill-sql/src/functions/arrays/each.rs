//! An expression computed for each element of an array: `x = ANY (array)`, and casts from one array type to another.
//!
//! Invariant: the expression refers to nothing but the columns `x` and `element`, which is all that it is given.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::{DFSchema, Result as QueryResult};
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use datafusion::scalar::ScalarValue;

use super::super::rows::{Made, Outcome};
use super::array_at;
use super::value::{ArrayParts, ElementType};
use crate::catalog::Catalog;
use crate::error::Result;
use crate::typed::Typed;
use crate::types::PgType;

/// The columns of an expression for one element.
pub(crate) const SUBJECT: &str = "x";
/// The element.
pub(crate) const ELEMENT: &str = "element";

/// What becomes of what the expression gives for each element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fold {
    /// True if it is for any.
    Any,
    /// True if it is for all.
    All,
    /// An array of the same bounds.
    Array(PgType),
    /// Bytes that sort as arrays do whose elements sort as what comes out for each.
    Key,
}

/// An expression over the elements of an array.
pub(crate) struct Each {
    /// What it is for one.
    pub(crate) of_one: Typed,
    pub(crate) fold: Fold,
    /// The array.
    pub(crate) array: Typed,
    /// What else it is computed of.
    pub(crate) subject: Option<Typed>,
}

impl Each {
    /// The call. The carrier of the subject is that of the column `x`.
    pub(crate) fn call(self, catalog: &Arc<Catalog>) -> Result<Expr> {
        let elements = ElementType::of_array(catalog, self.array.ty)?;
        let mut fields = vec![Field::new(ELEMENT, elements.carrier.clone(), true)];
        fields.extend(self.subject.iter().map(|x| Field::new(SUBJECT, x.carrier.clone(), true)));
        let schema = Arc::new(Schema::new(fields));
        let of_schema = DFSchema::try_from(schema.as_ref().clone())?;
        let physical = create_physical_expr(
            &self.of_one.expr,
            &of_schema,
            &ExecutionProps::new(),
            &PhysicalPlanningContext::default(),
        )?;
        let arguments: Vec<Expr> =
            std::iter::once(self.array.expr).chain(self.subject.map(|x| x.expr)).collect();
        let function = EachElement {
            catalog: catalog.clone(),
            array: self.array.ty,
            of_one: self.of_one.expr,
            fold: self.fold,
            physical,
            schema,
            signature: Signature::any(arguments.len(), Volatility::Immutable),
        };
        let function = Arc::new(ScalarUDF::new_from_impl(function));
        Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, arguments)))
    }
}

struct EachElement {
    catalog: Arc<Catalog>,
    array: PgType,
    of_one: Expr,
    fold: Fold,
    physical: Arc<dyn PhysicalExpr>,
    schema: Arc<Schema>,
    signature: Signature,
}

impl fmt::Debug for EachElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.fold, self.of_one)
    }
}

impl PartialEq for EachElement {
    fn eq(&self, other: &Self) -> bool {
        (self.array, &self.of_one, self.fold) == (other.array, &other.of_one, other.fold)
    }
}

impl Eq for EachElement {}

impl Hash for EachElement {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.array, &self.of_one, self.fold).hash(state);
    }
}

impl ScalarUDFImpl for EachElement {
    fn name(&self) -> &str {
        match self.fold {
            Fold::Any => "any",
            Fold::All => "all",
            Fold::Array(_) => "each",
            Fold::Key => "array key",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> QueryResult<DataType> {
        Ok(match self.fold {
            Fold::Array(_) | Fold::Key => DataType::Binary,
            Fold::Any | Fold::All => DataType::Boolean,
        })
    }

    fn invoke_with_args(&self, given: ScalarFunctionArgs) -> QueryResult<ColumnarValue> {
        let is_constant = given.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { given.number_rows };
        let columns: Vec<ArrayRef> =
            given.args.into_iter().map(|arg| arg.into_array(rows)).collect::<QueryResult<_>>()?;
        let elements = ElementType::of_array(&self.catalog, self.array)?;
        let arrays: Vec<Option<ArrayParts>> =
            (0..rows).map(|row| array_at(&elements, &columns[0], row)).collect::<Outcome<_>>()?;
        let found = self.computed(&elements, &arrays, columns.get(1))?;
        let found = match self.fold {
            Fold::Array(result) => self.rebuilt(result, arrays, &found)?,
            Fold::Key => super::keys::keyed(&arrays, &found)?,
            Fold::Any | Fold::All => self.folded(&arrays, &found)?,
        };
        match is_constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?)),
            false => Ok(ColumnarValue::Array(found)),
        }
    }
}

impl EachElement {
    /// What the expression gives for all elements of all rows.
    fn computed(
        &self,
        elements: &ElementType<'_>,
        arrays: &[Option<ArrayParts>],
        subject: Option<&ArrayRef>,
    ) -> QueryResult<ArrayRef> {
        let (mut values, mut places) = (Vec::new(), Vec::new());
        for (row, parts) in arrays.iter().enumerate() {
            for element in parts.iter().flat_map(|parts| &parts.elements) {
                values.push(elements.value(element.as_deref())?);
                places.push(row as u64);
            }
        }
        let count = values.len();
        let mut columns = vec![elements.column(values)?];
        if let Some(subject) = subject {
            columns.push(take(subject, &UInt64Array::from(places), None)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?;
        self.physical.evaluate(&batch)?.into_array(count)
    }

    fn folded(&self, arrays: &[Option<ArrayParts>], found: &ArrayRef) -> QueryResult<ArrayRef> {
        let truths: &BooleanArray = datafusion::common::cast::as_boolean_array(found)?;
        let mut truths = truths.iter();
        let wanted = self.fold == Fold::Any;
        let one = |parts: &Option<ArrayParts>| {
            let count = parts.as_ref()?.elements.len();
            let all: Vec<Option<bool>> = truths.by_ref().take(count).collect();
            match () {
                () if all.contains(&Some(wanted)) => Some(wanted),
                () if all.contains(&None) => None,
                () => Some(!wanted),
            }
        };
        let folded: BooleanArray = arrays.iter().map(one).collect();
        Ok(Arc::new(folded))
    }

    fn rebuilt(
        &self,
        result: PgType,
        arrays: Vec<Option<ArrayParts>>,
        found: &ArrayRef,
    ) -> Outcome<ArrayRef> {
        let elements = ElementType::of_array(&self.catalog, result)?;
        let mut at = 0;
        let mut one = |parts: Option<ArrayParts>| -> Outcome<Option<Vec<u8>>> {
            let Some(parts) = parts else { return Ok(None) };
            let values = at..at + parts.elements.len();
            at = values.end;
            let values = values.map(|row| elements.element(found, row)).collect::<Outcome<_>>()?;
            ArrayParts { bounds: parts.bounds, elements: values }.payload(&elements).map(Some)
        };
        Made::column(arrays.into_iter().map(&mut one).collect::<Outcome<Vec<Option<Vec<u8>>>>>()?)
    }
}
