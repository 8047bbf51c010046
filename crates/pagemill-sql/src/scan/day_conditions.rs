//! Dates held against a moment, as `date + interval` is one, become dates held against a day: numbers beside a number, which
//! are compared many at once, and which an index or a partition's bounds know.
//!
//! Invariant: the condition is true of the same dates, the infinite ones included, which are the least and the greatest
//! numbers.

use std::sync::Arc;

use datafusion::common::Result as QueryResult;
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::scalar::ScalarValue;

/// Microseconds.
const DAY: i64 = 86_400_000_000;

/// The condition with each comparison of a date column and a moment as one of days.
pub(super) fn by_days(condition: Arc<dyn PhysicalExpr>) -> QueryResult<Arc<dyn PhysicalExpr>> {
    let by_day = |node: Arc<dyn PhysicalExpr>| {
        let found = node.downcast_ref::<ScalarFunctionExpr>().and_then(by_day);
        Ok(found.map_or_else(|| Transformed::no(node), Transformed::yes))
    };
    condition.transform(by_day).map(|changed| changed.data)
}

fn by_day(call: &ScalarFunctionExpr) -> Option<Arc<dyn PhysicalExpr>> {
    let [date, moment] = call.args() else { return None };
    let ScalarValue::Int64(Some(moment)) = moment.downcast_ref::<Literal>()?.value() else {
        return None;
    };
    date.downcast_ref::<Column>()?;
    let is_midnight = moment.rem_euclid(DAY) == 0;
    let operator = match call.name() {
        "date_eq_timestamp" if is_midnight => Operator::Eq,
        "date_lt_timestamp" if is_midnight => Operator::Lt,
        "date_lt_timestamp" | "date_le_timestamp" => Operator::LtEq,
        "date_ge_timestamp" if is_midnight => Operator::GtEq,
        "date_ge_timestamp" | "date_gt_timestamp" => Operator::Gt,
        _ => return None,
    };
    let is_infinite = matches!(*moment, i64::MIN | i64::MAX);
    let day = i32::try_from(moment.div_euclid(DAY)).ok().filter(|_| !is_infinite)?;
    let day = Arc::new(Literal::new(ScalarValue::Int32(Some(day))));
    Some(Arc::new(BinaryExpr::new(date.clone(), operator, day)))
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use arrow::array::{ArrayRef, AsArray as _, Int32Array};
    use arrow::datatypes::{DataType, Field};
    use arrow::record_batch::RecordBatch;
    use datafusion::logical_expr::{Volatility, create_udf};

    use super::*;
    use crate::functions::datetime::against;

    const DAYS: [i32; 7] = [i32::MIN, -2, -1, 0, 1, 2, i32::MAX];

    fn call(name: &str, moment: i64) -> Arc<dyn PhysicalExpr> {
        let arguments = vec![DataType::Int32, DataType::Int64];
        let unasked = Arc::new(|_: &[_]| unreachable!("a call that is changed is not made"));
        let function =
            create_udf(name, arguments, DataType::Boolean, Volatility::Immutable, unasked);
        let moment = Literal::new(ScalarValue::Int64(Some(moment)));
        let arguments = vec![Arc::new(Column::new("d", 0)) as _, Arc::new(moment) as _];
        let field = Arc::new(Field::new("truth", DataType::Boolean, true));
        let (function, settings) = (Arc::new(function), Arc::default());
        Arc::new(ScalarFunctionExpr::new(name, function, arguments, field, settings))
    }

    /// Of which days a condition is true.
    fn truths(condition: &Arc<dyn PhysicalExpr>) -> Vec<bool> {
        let days: ArrayRef = Arc::new(Int32Array::from(DAYS.to_vec()));
        let batch = RecordBatch::try_from_iter([("d", days)]).unwrap();
        let found = condition.evaluate(&batch).unwrap().into_array(DAYS.len()).unwrap();
        found.as_boolean().values().iter().collect()
    }

    #[test]
    fn days_and_moments_agree() {
        let is_so: [fn(Ordering) -> bool; 4] =
            [Ordering::is_lt, Ordering::is_le, Ordering::is_ge, Ordering::is_gt];
        for (operator, is_so) in ["lt", "le", "ge", "gt"].into_iter().zip(is_so) {
            let name = &format!("date_{operator}_timestamp");
            for moment in [-DAY - 1, -DAY, -1, 0, 1, DAY - 1, DAY, DAY + 1] {
                let expected = DAYS.map(|day| is_so(against(day, moment)));
                let found = truths(&by_days(call(name, moment)).unwrap());
                assert_eq!(found, expected, "{name} {moment}");
            }
        }
        let midnight = truths(&by_days(call("date_eq_timestamp", DAY)).unwrap());
        assert_eq!(midnight, DAYS.map(|day| day == 1));
    }

    #[test]
    fn what_no_day_stands_for_is_left_as_it_is() {
        let moments = [("date_lt_timestamp", i64::MAX), ("date_gt_timestamp", i64::MIN)];
        for (name, moment) in [moments[0], moments[1], ("date_eq_timestamp", 1)] {
            let left = by_days(call(name, moment)).unwrap();
            assert!(left.is::<ScalarFunctionExpr>(), "{name} {moment}");
        }
    }
}
