//! Dates held against a moment, as `date + interval` is one, become dates held against a day, and moments held against a date become
//! moments held against its midnight: numbers beside a number, which are compared many at once, and which an index or a partition's
//! bounds know. Where one side is a moment with a zone, the other is what clocks of the session's zone show then.
//!
//! Invariant: the condition is true of the same dates and moments, the infinite ones included, which are the least and the greatest
//! numbers.

use std::sync::Arc;

use datafusion::common::Result as QueryResult;
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::scalar::ScalarValue;
use pagemill_types::time_zone::Zone;

use crate::functions::datetime::date_to_timestamp;
use crate::functions::datetime::session_zone::moment_of;

/// Microseconds.
const DAY: i64 = 86_400_000_000;

/// The condition with each comparison of a date column and a moment as one of days, and of a column of moments and a date, or of moments
/// with a zone and one without, as one of moments.
pub(super) fn by_days(
    condition: Arc<dyn PhysicalExpr>,
    zone: Option<&Zone>,
) -> QueryResult<Arc<dyn PhysicalExpr>> {
    let by_day = |node: Arc<dyn PhysicalExpr>| {
        let call = node.downcast_ref::<ScalarFunctionExpr>();
        let found = call.and_then(|call| by_day(call, zone));
        Ok(found.map_or_else(|| Transformed::no(node), Transformed::yes))
    };
    condition.transform(by_day).map(|changed| changed.data)
}

fn by_day(call: &ScalarFunctionExpr, zone: Option<&Zone>) -> Option<Arc<dyn PhysicalExpr>> {
    let [left, right] = call.args() else { return None };
    let (kinds, operator) = compared(call.name())?;
    // The column on the left.
    let (column, constant, operator, kinds) = match (left.is::<Column>(), right.is::<Column>()) {
        (true, false) => (left, right, operator, kinds),
        (false, true) => (right, left, operator.swap()?, [kinds[1], kinds[0]]),
        _ => return None,
    };
    let constant = constant.downcast_ref::<Literal>()?.value();
    let (operator, constant) = match (kinds, constant) {
        ([DATE, MOMENT], ScalarValue::Int64(Some(moment))) => day_beside(operator, *moment)?,
        ([MOMENT, DATE], ScalarValue::Int32(Some(day))) => {
            (operator, number(date_to_timestamp(*day).ok()?))
        }
        ([ZONED, DATE], ScalarValue::Int32(Some(day))) => {
            (operator, number(moment_in(zone, date_to_timestamp(*day).ok()?)?))
        }
        ([ZONED, MOMENT], ScalarValue::Int64(Some(local))) => {
            (operator, number(moment_in(zone, *local)?))
        }
        // In Greenwich clocks show what it is. Elsewhere what they show is not in the order of moments, when they are put forward or back.
        ([DATE, ZONED], ScalarValue::Int64(Some(moment))) if zone.is_none() => {
            day_beside(operator, *moment)?
        }
        ([MOMENT, ZONED], ScalarValue::Int64(Some(moment))) if zone.is_none() => {
            (operator, number(*moment))
        }
        _ => return None,
    };
    let constant = Arc::new(Literal::new(constant));
    Some(Arc::new(BinaryExpr::new(column.clone(), operator, constant)))
}

const DATE: &str = "date";
const MOMENT: &str = "timestamp";
const ZONED: &str = "timestamptz";

fn number(moment: i64) -> ScalarValue {
    ScalarValue::Int64(Some(moment))
}

/// The moment at which clocks of the zone show this, or of Greenwich without one; `None` where there is none.
fn moment_in(zone: Option<&Zone>, local: i64) -> Option<i64> {
    match zone {
        None => Some(local),
        Some(zone) => moment_of(zone, local).ok(),
    }
}

/// What the server's function of this name compares, if that is a moment and a date or a moment of another kind, and how.
pub(super) fn compared(name: &str) -> Option<([&str; 2], Operator)> {
    let mut words = name.split('_');
    let (left, word, right) = (words.next()?, words.next()?, words.next()?);
    let operator = match word {
        "eq" => Operator::Eq,
        "ne" => Operator::NotEq,
        "lt" => Operator::Lt,
        "le" => Operator::LtEq,
        "gt" => Operator::Gt,
        "ge" => Operator::GtEq,
        _ => return None,
    };
    let is_known = |kind| matches!(kind, DATE | MOMENT | ZONED);
    let is_it = is_known(left) && is_known(right) && left != right && words.next().is_none();
    is_it.then_some(([left, right], operator))
}

/// The days that stand so to a moment, by how they stand to one of them.
fn day_beside(operator: Operator, moment: i64) -> Option<(Operator, ScalarValue)> {
    let is_midnight = moment.rem_euclid(DAY) == 0;
    let operator = match operator {
        Operator::Eq | Operator::NotEq | Operator::Lt | Operator::GtEq if is_midnight => operator,
        Operator::Lt | Operator::LtEq => Operator::LtEq,
        Operator::GtEq | Operator::Gt => Operator::Gt,
        _ => return None,
    };
    let is_infinite = matches!(moment, i64::MIN | i64::MAX);
    let day = i32::try_from(moment.div_euclid(DAY)).ok().filter(|_| !is_infinite)?;
    Some((operator, ScalarValue::Int32(Some(day))))
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use arrow::array::{ArrayRef, AsArray as _, Int32Array, Int64Array};
    use arrow::datatypes::{DataType, Field};
    use arrow::record_batch::RecordBatch;
    use datafusion::logical_expr::{Volatility, create_udf};

    use super::*;
    use crate::functions::datetime::{against, session_zone};

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

    /// `ts … day`, or `day … ts`.
    fn of_moments(name: &str, day: i32) -> Arc<dyn PhysicalExpr> {
        beside_column(name, ScalarValue::Int32(Some(day)), name.starts_with("date"))
    }

    /// A column of moments beside a constant, which comes first or behind it.
    fn beside_column(name: &str, constant: ScalarValue, is_first: bool) -> Arc<dyn PhysicalExpr> {
        let made = call(name, 0);
        let call = made.downcast_ref::<ScalarFunctionExpr>().unwrap();
        let constant = Arc::new(Literal::new(constant)) as _;
        let column = Arc::new(Column::new("ts", 0)) as _;
        let arguments = if is_first { vec![constant, column] } else { vec![column, constant] };
        let function = Arc::new(call.fun().clone());
        let field = Arc::new(Field::new("truth", DataType::Boolean, true));
        Arc::new(ScalarFunctionExpr::new(name, function, arguments, field, Arc::default()))
    }

    #[test]
    fn moments_and_midnights_agree() {
        let is_so: [fn(Ordering) -> bool; 6] = [
            Ordering::is_eq,
            Ordering::is_ne,
            Ordering::is_lt,
            Ordering::is_le,
            Ordering::is_ge,
            Ordering::is_gt,
        ];
        let moments = [i64::MIN, -DAY - 1, -DAY, -1, 0, 1, DAY - 1, DAY, DAY + 1, i64::MAX];
        let array: ArrayRef = Arc::new(Int64Array::from(moments.to_vec()));
        let batch = RecordBatch::try_from_iter([("ts", array)]).unwrap();
        for (operator, is_so) in ["eq", "ne", "lt", "le", "ge", "gt"].into_iter().zip(is_so) {
            for day in DAYS {
                for is_turned in [false, true] {
                    let name = match is_turned {
                        false => format!("timestamp_{operator}_date"),
                        true => format!("date_{operator}_timestamp"),
                    };
                    let expected = moments.map(|moment| {
                        let order = against(day, moment);
                        is_so(if is_turned { order } else { order.reverse() })
                    });
                    let found = by_days(of_moments(&name, day), None).unwrap();
                    let found = found.evaluate(&batch).unwrap().into_array(moments.len()).unwrap();
                    let found: Vec<bool> = found.as_boolean().values().iter().collect();
                    assert_eq!(found, expected, "{name} {day}");
                }
            }
        }
        let beyond = by_days(of_moments("timestamp_lt_date", i32::MAX - 1), None).unwrap();
        assert!(beyond.is::<ScalarFunctionExpr>(), "no moment stands for that day");
    }

    #[test]
    fn moments_with_a_zone_and_what_its_clocks_show_agree() {
        let berlin = Zone::from_posix(b"CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        const HOUR: i64 = DAY / 24;
        // Around 2000-03-26 and 2000-10-29, when clocks are put forward and back.
        let around = |day: i64| (-30..30).map(move |half| day * DAY + half * HOUR / 2);
        let moments: Vec<i64> = around(85).chain(around(302)).chain([i64::MIN, i64::MAX]).collect();
        let column: ArrayRef = Arc::new(Int64Array::from(moments.clone()));
        let batch = RecordBatch::try_from_iter([("ts", column.clone())]).unwrap();
        let days = [85, 86, 302, 303, i32::MIN, i32::MAX].map(|day| ScalarValue::Int32(Some(day)));
        let shown = moments.iter().map(|local| ScalarValue::Int64(Some(*local)));
        let constants = days.into_iter().map(|day| ("date", day));
        let constants = constants.chain(shown.map(|local| ("timestamp", local)));
        for (kind, constant) in constants {
            for operator in ["eq", "ne", "lt", "le", "ge", "gt"] {
                for is_first in [false, true] {
                    let name = match is_first {
                        true => format!("{kind}_{operator}_timestamptz"),
                        false => format!("timestamptz_{operator}_{kind}"),
                    };
                    let given = constant.to_array_of_size(moments.len()).unwrap();
                    let arguments = match is_first {
                        true => [given, column.clone()],
                        false => [column.clone(), given],
                    };
                    let expected = session_zone::find(&name).unwrap()(&berlin, &arguments).unwrap();
                    let found = beside_column(&name, constant.clone(), is_first);
                    let found = by_days(found, Some(&berlin)).unwrap();
                    assert!(found.is::<BinaryExpr>(), "{name} {constant}");
                    let found = found.evaluate(&batch).unwrap().into_array(moments.len()).unwrap();
                    assert_eq!(&found, &expected, "{name} {constant}");
                }
            }
        }
        // What clocks show is not in the order of moments.
        let left = by_days(call("date_lt_timestamptz", DAY), Some(&berlin)).unwrap();
        assert!(left.is::<ScalarFunctionExpr>());
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
                let found = truths(&by_days(call(name, moment), None).unwrap());
                assert_eq!(found, expected, "{name} {moment}");
            }
        }
        let midnight = truths(&by_days(call("date_eq_timestamp", DAY), None).unwrap());
        assert_eq!(midnight, DAYS.map(|day| day == 1));
    }

    #[test]
    fn what_no_day_stands_for_is_left_as_it_is() {
        let moments = [("date_lt_timestamp", i64::MAX), ("date_gt_timestamp", i64::MIN)];
        for (name, moment) in [moments[0], moments[1], ("date_eq_timestamp", 1)] {
            let left = by_days(call(name, moment), None).unwrap();
            assert!(left.is::<ScalarFunctionExpr>(), "{name} {moment}");
        }
    }
}
