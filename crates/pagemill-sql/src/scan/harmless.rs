//! Which expressions cannot raise an error, whatever the row: those may be evaluated earlier than the statement says.
//!
//! The server evaluates the conditions of WHERE one after the other, each on the rows that the ones before it left. An error
//! comes out only if a row that came so far raises it; so a condition that can raise one keeps its place, and everything
//! behind it, too.
//!
//! Invariant: what is not known here to be harmless is taken for the opposite. Damage that a value turns out to have does
//! not count: a row that nobody asks for may be damaged.

use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _};
use arrow::datatypes::{DataType, Schema};
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, DynamicFilterPhysicalExpr, InListExpr, IsNotNullExpr,
    IsNullExpr, Literal, NotExpr,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use super::day_conditions::compared;
use crate::functions::collations::LOCALE_COMPARE;
use crate::generic_plan::is_parameter;

/// The server's functions, and keys, that give a result for every argument.
const TOTAL_FUNCTIONS: [&str; 13] = [
    "float_key",
    "inet_key",
    "interval_key",
    LOCALE_COMPARE,
    "lsn_key",
    "numeric_key",
    "numeric_payload",
    "rtrim1",
    "tid_key",
    "ts_match_qv",
    "ts_match_vq",
    "tsquery_key",
    "tsvector_key",
];
/// Operators of numerics that give a result for every argument where both are decimals: the result has room for all digits.
const TOTAL_OF_DECIMALS: [&str; 3] = ["numeric_add", "numeric_mul", "numeric_sub"];
/// Functions that raise an error only for a pattern that ends in the middle of an escape.
const LIKES: [&str; 6] =
    ["bpcharlike", "bpcharnlike", "namelike", "namenlike", "textlike", "textnlike"];

/// True when no row of this schema can make the expression fail.
pub(super) fn is_harmless(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    is_harmless_itself(expr, schema)
        && expr.children().into_iter().all(|child| is_harmless(child, schema))
}

fn is_harmless_itself(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        return is_harmless_operator(*binary.op());
    }
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        let from = cast.expr().data_type(schema);
        return from.is_ok_and(|from| always_fits(&from, cast.cast_type()));
    }
    if let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() {
        return is_parameter(expr) || is_harmless_call(call) || has_room(call, schema);
    }
    expr.is::<Column>()
        || expr.is::<Literal>()
        || expr.is::<NotExpr>()
        || expr.is::<IsNullExpr>()
        || expr.is::<IsNotNullExpr>()
        || expr.is::<InListExpr>()
        || expr.is::<CaseExpr>()
        // Its children are the keys it looks at; what it holds them against are values that were computed.
        || expr.is::<DynamicFilterPhysicalExpr>()
}

fn is_harmless_operator(operator: Operator) -> bool {
    use Operator::*;
    matches!(
        operator,
        And | Or | Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom
    )
}

/// True when every value of the one type is a value of the other.
fn always_fits(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    match (from, to) {
        (from, to) if from == to => true,
        (Int16, Int32 | Int64) | (Int32, Int64) | (UInt32, Int64 | UInt64) => true,
        (Float32, Float64) => true,
        (Int16 | Int32, Float64) | (Int16, Float32) => true,
        (Decimal128(p, s), Decimal128(q, t)) => {
            t >= s && i16::from(*q) - i16::from(*t) >= i16::from(*p) - i16::from(*s)
        }
        _ => false,
    }
}

fn is_harmless_call(call: &ScalarFunctionExpr) -> bool {
    let name = call.fun().name();
    TOTAL_FUNCTIONS.contains(&name)
        // They know every date and moment.
        || compared(name).is_some()
        || (is_like(call) && call.args().get(1).is_some_and(is_whole_pattern))
}

/// True for `LIKE`, `NOT LIKE` and their kin.
pub(super) fn is_like(call: &ScalarFunctionExpr) -> bool {
    LIKES.contains(&call.fun().name())
}

/// True for an operator of decimals that has a decimal for every result.
fn has_room(call: &ScalarFunctionExpr, schema: &Schema) -> bool {
    let is_decimal = |ty: &DataType| matches!(ty, DataType::Decimal128(..));
    let mut arguments = call.args().iter().map(|argument| argument.data_type(schema));
    TOTAL_OF_DECIMALS.contains(&call.fun().name())
        && is_decimal(call.return_type())
        && arguments.all(|ty| ty.is_ok_and(|ty| is_decimal(&ty)))
}

/// True for a constant that does not end in the middle of an escape.
fn is_whole_pattern(pattern: &Arc<dyn PhysicalExpr>) -> bool {
    let Some(literal) = pattern.downcast_ref::<Literal>() else { return false };
    let Ok(array) = ColumnarValue::Scalar(literal.value().clone()).into_array(1) else {
        return false;
    };
    let Some(text) = array.as_string_opt::<i32>().filter(|texts| texts.is_valid(0)) else {
        return false;
    };
    let text = text.value(0);
    (text.len() - text.trim_end_matches('\\').len()) % 2 == 0
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;
    use datafusion::physical_expr::expressions::{binary, cast, col, lit};

    use super::*;

    fn schema() -> Schema {
        let fields = [("a", DataType::Int32), ("b", DataType::Int64), ("t", DataType::Utf8)];
        Schema::new(fields.map(|(name, ty)| Field::new(name, ty, true)).to_vec())
    }

    #[test]
    fn comparisons_cannot_fail_and_arithmetic_can() {
        let schema = schema();
        let a = col("a", &schema).unwrap();
        let compared = binary(a.clone(), Operator::Lt, lit(5), &schema).unwrap();
        assert!(is_harmless(&compared, &schema));
        let sum = binary(a, Operator::Plus, lit(5), &schema).unwrap();
        let over = binary(sum, Operator::Gt, lit(5), &schema).unwrap();
        assert!(!is_harmless(&over, &schema));
        let both = binary(compared, Operator::And, over, &schema).unwrap();
        assert!(!is_harmless(&both, &schema));
    }

    #[test]
    fn a_cast_cannot_fail_where_every_value_fits() {
        let schema = schema();
        let wide = cast(col("a", &schema).unwrap(), &schema, DataType::Int64).unwrap();
        assert!(is_harmless(&wide, &schema));
        let narrow = cast(col("b", &schema).unwrap(), &schema, DataType::Int32).unwrap();
        assert!(!is_harmless(&narrow, &schema));
        assert!(always_fits(&DataType::Decimal128(5, 2), &DataType::Decimal128(7, 4)));
        assert!(!always_fits(&DataType::Decimal128(5, 2), &DataType::Decimal128(6, 4)));
        assert!(!always_fits(&DataType::Decimal128(5, 2), &DataType::Decimal128(5, 1)));
    }

    #[test]
    fn dates_are_compared_with_timestamps_and_not_made_of_them() {
        for name in ["date_le_timestamp", "date_ne_timestamptz", "timestamp_gt_timestamptz"] {
            assert!(compared(name).is_some(), "{name}");
        }
        for name in
            ["date_timestamp", "date_le", "timestamp_date", "date_mi_timestamp", "date_pl_interval"]
        {
            assert!(compared(name).is_none(), "{name}");
        }
    }

    #[test]
    fn a_pattern_that_ends_in_an_escape_is_not_whole() {
        for (pattern, is_whole) in [("a%", true), ("a\\", false), ("a\\\\", true), ("", true)] {
            assert_eq!(is_whole_pattern(&lit(pattern)), is_whole, "{pattern}");
        }
        assert!(!is_whole_pattern(&col("t", &schema()).unwrap()));
    }
}
