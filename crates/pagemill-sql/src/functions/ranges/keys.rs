//! Keys of ranges and multiranges: bytes that sort as they do, made of the keys of their bounds.
//!
//! ```text
//! range:      0 | 1 lower upper          lower:  0 | 1 key of the value, 1 where it is shut out
//! multirange: 1 lower upper … 0          upper:  0 key of the value, 1 where it is let in | 1
//! ```
//!
//! So the empty range comes first, of bounds that there are none of a lower one first and an upper one last, and what has
//! fewer ranges before what has the same and more.
//!
//! Invariant: the expression for one bound refers to nothing but the column `element`, which is all that it is given.
//!
//! Source: `range_cmp` and `range_cmp_bounds` in `src/backend/utils/adt/rangetypes.c`, `multirange_cmp` in
//! `multirangetypes.c`, PostgreSQL 14 to 18.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::{Column, DFSchema, Result as QueryResult};
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use datafusion::scalar::ScalarValue;
use pagemill_format::Oid;
use pagemill_types::builtin::oid;
use pagemill_types::input::range::{Bound, Bounds};
use pagemill_types::order::{TextCollation, ValueOrder};

use super::super::arrays::each::ELEMENT;
use super::super::arrays::keys::push;
use super::super::rows::{Made, Outcome};
use super::super::text_form::scalar_of_payload;
use super::kind::RangeKind;
use crate::catalog::Catalog;
use crate::coerce::carrier_of;
use crate::error::{Result, unsupported};
use crate::typed::Typed;
use crate::types::{C_COLLATION, DEFAULT_COLLATION, PgType};

/// What makes the key of a value of a type.
type KeyOf = fn(&Arc<Catalog>, &Typed) -> Result<Expr>;

/// The key of a range or multirange whose bounds have this one.
///
/// # Errors
/// When the bounds have none, or the type is refused.
pub(crate) fn range_key(catalog: &Arc<Catalog>, typed: &Typed, key: KeyOf) -> Result<Expr> {
    let kind = RangeKind::new(catalog, typed.ty)?;
    let bound = bound_type(catalog, &kind)?;
    let carrier = carrier_of(catalog, bound);
    let element = Typed::new(Expr::Column(Column::new_unqualified(ELEMENT)), bound, carrier);
    let of_one = key(catalog, &element)?;
    let schema = Arc::new(Schema::new(vec![Field::new(ELEMENT, element.carrier.clone(), true)]));
    let of_schema = DFSchema::try_from(schema.as_ref().clone())?;
    let physical = create_physical_expr(
        &of_one,
        &of_schema,
        &ExecutionProps::new(),
        &PhysicalPlanningContext::default(),
    )?;
    let (ty, is_multirange) = (typed.ty, kind.is_multirange());
    let signature = Signature::any(1, Volatility::Immutable);
    let bound = BoundKey { ty: bound, of_one, physical, schema };
    let function = RangeKey { catalog: catalog.clone(), ty, is_multirange, bound, signature };
    let function = Arc::new(ScalarUDF::new_from_impl(function));
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![typed.expr.clone()])))
}

/// The type of the bounds with the collation under which they are compared.
fn bound_type(catalog: &Catalog, kind: &RangeKind<'_>) -> Result<PgType> {
    let plain = kind.subtype();
    let collation = match &kind.range().order {
        ValueOrder::Text(TextCollation::C) | ValueOrder::PaddedText(TextCollation::C) => {
            C_COLLATION
        }
        _ => kind.row.collation,
    };
    let (base, _) = catalog.base_type(plain.oid, -1);
    match base {
        oid::TEXT | oid::VARCHAR | oid::BPCHAR => Ok(PgType { collation, ..plain }),
        oid::NAME => Ok(plain),
        // The key of an array has its elements in the order of the database.
        _ if matches!(collation, Oid(0) | DEFAULT_COLLATION) => Ok(plain),
        _ => unsupported("a key of ranges over texts in others, in a collation of their own"),
    }
}

/// The key of one bound's value.
struct BoundKey {
    ty: PgType,
    of_one: Expr,
    physical: Arc<dyn PhysicalExpr>,
    schema: Arc<Schema>,
}

struct RangeKey {
    catalog: Arc<Catalog>,
    ty: PgType,
    is_multirange: bool,
    bound: BoundKey,
    signature: Signature,
}

impl fmt::Debug for RangeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "range key {}", self.bound.of_one)
    }
}

impl PartialEq for RangeKey {
    fn eq(&self, other: &Self) -> bool {
        (self.ty, &self.bound.of_one) == (other.ty, &other.bound.of_one)
    }
}

impl Eq for RangeKey {}

impl Hash for RangeKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.ty, &self.bound.of_one).hash(state);
    }
}

impl ScalarUDFImpl for RangeKey {
    fn name(&self) -> &str {
        "range key"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> QueryResult<DataType> {
        Ok(DataType::Binary)
    }

    fn invoke_with_args(&self, given: ScalarFunctionArgs) -> QueryResult<ColumnarValue> {
        let is_constant = given.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { given.number_rows };
        let columns: Vec<ArrayRef> =
            given.args.into_iter().map(|arg| arg.into_array(rows)).collect::<QueryResult<_>>()?;
        let mut kind = RangeKind::new(&self.catalog, self.ty)?;
        let sets = (0..rows).map(|row| kind.at(&columns[0], row)).collect::<Outcome<Vec<_>>>()?;
        let values = self.bound.keys(&self.catalog, sets.iter().flatten().flatten())?;
        let found = keyed(&sets, &values, self.is_multirange)?;
        match is_constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?)),
            false => Ok(ColumnarValue::Array(found)),
        }
    }
}

impl BoundKey {
    /// The keys of all values that are bounds, in order.
    fn keys<'b>(
        &self,
        catalog: &Catalog,
        ranges: impl Iterator<Item = &'b Bounds>,
    ) -> QueryResult<ArrayRef> {
        let carrier = carrier_of(catalog, self.ty);
        let bounds = ranges.flat_map(|range| [&range.lower, &range.upper]);
        let of = |value: &Vec<u8>| scalar_of_payload(catalog, self.ty, &carrier, value);
        let values = bounds.filter_map(|bound| bound.value.as_ref()).map(of);
        let values = values.collect::<Outcome<Vec<ScalarValue>>>()?;
        let count = values.len();
        let column = match values.is_empty() {
            true => arrow::array::new_empty_array(&carrier),
            false => ScalarValue::iter_to_array(values)?,
        };
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), vec![column], &options)?;
        self.physical.evaluate(&batch)?.into_array(count)
    }
}

/// The keys of sets, from those of all their bounds.
fn keyed(
    sets: &[Option<Vec<Bounds>>],
    values: &ArrayRef,
    is_multirange: bool,
) -> Outcome<ArrayRef> {
    let mut at = 0;
    let mut one = |set: &Option<Vec<Bounds>>| -> Outcome<Option<Vec<u8>>> {
        let Some(ranges) = set else { return Ok(None) };
        let mut key = Vec::new();
        for range in ranges {
            key.push(1);
            push_bound(&range.lower, (values, &mut at), &mut key)?;
            push_bound(&range.upper, (values, &mut at), &mut key)?;
        }
        if is_multirange || ranges.is_empty() {
            key.push(0);
        }
        Ok(Some(key))
    };
    Made::column(sets.iter().map(&mut one).collect::<Outcome<Vec<Option<Vec<u8>>>>>()?)
}

/// Appends the key of a bound; the next of the keys of values is its own, if it has a value.
fn push_bound(
    bound: &Bound,
    (values, at): (&ArrayRef, &mut usize),
    key: &mut Vec<u8>,
) -> Outcome<()> {
    key.push(u8::from(bound.is_lower == bound.value.is_some()));
    if bound.value.is_some() {
        push(values, *at, key)?;
        *at += 1;
        key.push(u8::from(bound.is_lower != bound.inclusive));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array as _, BinaryArray, Int32Array};

    use super::super::relations::compare;
    use super::*;

    fn ranges() -> Vec<Bounds> {
        let mut found = Vec::new();
        let values = [None, Some(-1), Some(0), Some(7)];
        for (lower, upper) in values.iter().flat_map(|a| values.iter().map(move |b| (a, b))) {
            for (opens, closes) in [(false, false), (false, true), (true, false), (true, true)] {
                let bound = |value: &Option<i32>, inclusive, is_lower| {
                    let value = value.map(|number| number.to_le_bytes().to_vec());
                    Bound { inclusive: inclusive && value.is_some(), value, is_lower }
                };
                let (lower, upper) = (bound(lower, opens, true), bound(upper, closes, false));
                found.push(Bounds { lower, upper });
            }
        }
        found
    }

    /// Keys of sets are ordered as the sets are.
    fn check(sets: &[Option<Vec<Bounds>>], is_multirange: bool) {
        let number = |bytes: &Vec<u8>| i32::from_le_bytes(bytes[..].try_into().unwrap());
        let bounds = sets.iter().flatten().flatten().flat_map(|range| [&range.lower, &range.upper]);
        let values = bounds.filter_map(|bound| bound.value.as_ref().map(number));
        let values: ArrayRef = Arc::new(values.collect::<Int32Array>());
        let keys = keyed(sets, &values, is_multirange).unwrap();
        let keys: &BinaryArray = keys.as_any().downcast_ref().unwrap();
        let order = ValueOrder::of_type(oid::INT4, &TextCollation::C).unwrap();
        for (i, a) in sets.iter().enumerate() {
            assert_eq!(keys.is_null(i), a.is_none());
            for (j, b) in sets.iter().enumerate() {
                let (Some(a), Some(b)) = (a, b) else { continue };
                let expected = compare(&order, a, b);
                assert_eq!(keys.value(i).cmp(keys.value(j)), expected, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn keys_sort_as_ranges_do() {
        let one = ranges().into_iter().map(|range| Some(vec![range]));
        check(&one.chain([Some(Vec::new()), None]).collect::<Vec<_>>(), false);
    }

    #[test]
    fn keys_sort_as_multiranges_do() {
        let all = ranges();
        let pairs = all
            .iter()
            .step_by(5)
            .flat_map(|a| all.iter().step_by(7).map(move |b| Some(vec![a.clone(), b.clone()])));
        let one = all.iter().map(|range| Some(vec![range.clone()]));
        check(&pairs.chain(one).chain([Some(Vec::new()), None]).collect::<Vec<_>>(), true);
    }
}
