//! Whether the conditions of a scan say that a partial index has all rows they let pass.
//!
//! Invariants: what is not understood is not implied; a condition implies another only where no row makes it true that makes
//! the other false or NULL.
//!
//! Source: `predicate_implied_by` in `src/backend/optimizer/util/predtest.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CastExpr, InListExpr, IsNotNullExpr, Literal, NotExpr,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::scalar::ScalarValue;

use super::index_payload::KeyForm;

/// True where all the wanted conditions hold for every row for which all that are known do.
pub(super) fn implies_all(
    known: &[Arc<dyn PhysicalExpr>],
    wanted: &[Arc<dyn PhysicalExpr>],
) -> bool {
    wanted.iter().all(|wanted| implied(known, wanted))
}

fn implied(known: &[Arc<dyn PhysicalExpr>], wanted: &Arc<dyn PhysicalExpr>) -> bool {
    if let Some([left, right]) = sides(wanted, Operator::And) {
        return implied(known, left) && implied(known, right);
    }
    if known.iter().any(|known| implies(known, wanted)) {
        return true;
    }
    let or = sides(wanted, Operator::Or);
    or.is_some_and(|[left, right]| implied(known, left) || implied(known, right))
}

/// Whether one condition alone says so.
fn implies(known: &Arc<dyn PhysicalExpr>, wanted: &Arc<dyn PhysicalExpr>) -> bool {
    if known == wanted {
        return true;
    }
    if let Some([left, right]) = sides(known, Operator::And) {
        return implied(&[left.clone(), right.clone()], wanted);
    }
    if let Some([left, right]) = sides(known, Operator::Or) {
        let each = [left, right].map(std::slice::from_ref);
        return each.into_iter().all(|alone| implied(alone, wanted));
    }
    if let Some(present) = wanted.downcast_ref::<IsNotNullExpr>() {
        return rejects_null(known, present.arg());
    }
    let (Some(known), Some(wanted)) = (compared(known), compared(wanted)) else { return false };
    let is_followed = |value: &&ScalarValue| {
        let mut others = wanted.alternatives.iter();
        others.any(|other| follows((known.operator, value), (wanted.operator, other)))
    };
    known.key == wanted.key && known.alternatives.iter().all(is_followed)
}

fn sides(expr: &Arc<dyn PhysicalExpr>, operator: Operator) -> Option<[&Arc<dyn PhysicalExpr>; 2]> {
    let binary = expr.downcast_ref::<BinaryExpr>().filter(|binary| *binary.op() == operator)?;
    Some([binary.left(), binary.right()])
}

/// An expression beside one of some constants.
struct Compared<'e> {
    key: &'e Arc<dyn PhysicalExpr>,
    operator: Operator,
    alternatives: Vec<&'e ScalarValue>,
}

fn compared(expr: &Arc<dyn PhysicalExpr>) -> Option<Compared<'_>> {
    if let Some(list) = expr.downcast_ref::<InListExpr>() {
        let values = list.list().iter().map(|item| Some(item.downcast_ref::<Literal>()?.value()));
        // A NULL among them makes nothing true.
        let values = values.collect::<Option<Vec<_>>>()?;
        let alternatives = values.into_iter().filter(|value| !value.is_null()).collect();
        let key = list.expr();
        return (!list.negated()).then_some(Compared { key, operator: Operator::Eq, alternatives });
    }
    let binary = expr.downcast_ref::<BinaryExpr>()?;
    let literal = |side: &'_ Arc<dyn PhysicalExpr>| side.downcast_ref::<Literal>().is_some();
    let (key, operator, value) = match (literal(binary.left()), literal(binary.right())) {
        (false, true) => (binary.left(), *binary.op(), binary.right()),
        (true, false) => (binary.right(), binary.op().swap()?, binary.left()),
        _ => return None,
    };
    let value = value.downcast_ref::<Literal>()?.value();
    let is_known = is_comparison(operator) && !value.is_null();
    is_known.then_some(Compared { key, operator, alternatives: vec![value] })
}

/// True for an operator that is NULL beside a NULL.
pub(super) fn is_comparison(operator: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// True where what stands so to the one value stands so to the other.
fn follows(known: (Operator, &ScalarValue), wanted: (Operator, &ScalarValue)) -> bool {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    let Some(order) = order(known.1, wanted.1) else { return false };
    match (known.0, wanted.0) {
        (Eq, Eq) | (NotEq, NotEq) => order.is_eq(),
        (Eq, NotEq) => order.is_ne(),
        (Eq | LtEq, Lt) | (LtEq, NotEq) => order.is_lt(),
        (Eq | Lt | LtEq, LtEq) | (Lt, Lt | NotEq) => order.is_le(),
        (Eq | GtEq, Gt) | (GtEq, NotEq) => order.is_gt(),
        (Eq | Gt | GtEq, GtEq) | (Gt, Gt | NotEq) => order.is_ge(),
        _ => false,
    }
}

/// The order in which the engine has two values; floats are compared by keys and never as they are.
fn order(a: &ScalarValue, b: &ScalarValue) -> Option<Ordering> {
    let is_same = a.data_type() == b.data_type() && !a.data_type().is_floating();
    is_same.then(|| a.partial_cmp(b)).flatten()
}

/// True where a condition is not true of a row without a value of the expression.
fn rejects_null(condition: &Arc<dyn PhysicalExpr>, of: &Arc<dyn PhysicalExpr>) -> bool {
    if let Some(not) = condition.downcast_ref::<NotExpr>() {
        return is_null_with(not.arg(), of);
    }
    if let Some(binary) = condition.downcast_ref::<BinaryExpr>() {
        return is_comparison(*binary.op())
            && [binary.left(), binary.right()].iter().any(|s| is_null_with(s, of));
    }
    if let Some(list) = condition.downcast_ref::<InListExpr>() {
        return is_null_with(list.expr(), of);
    }
    is_null_with(condition, of)
}

/// True for an expression that is NULL where the other one is.
fn is_null_with(expr: &Arc<dyn PhysicalExpr>, of: &Arc<dyn PhysicalExpr>) -> bool {
    if expr == of {
        return true;
    }
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        return is_null_with(cast.expr(), of);
    }
    let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() else { return false };
    let is_strict = KeyForm::of_kernel(call.fun()).is_some() || super::harmless::is_like(call);
    is_strict && call.args().first().is_some_and(|first| is_null_with(first, of))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::physical_expr::expressions::{
        binary, col, in_list, is_not_null, is_null, lit, not,
    };

    use super::*;

    fn schema() -> Schema {
        let fields = [("a", DataType::Int32), ("b", DataType::Int32), ("is", DataType::Boolean)];
        Schema::new(fields.map(|(name, ty)| Field::new(name, ty, true)).to_vec())
    }

    fn column(name: &str) -> Arc<dyn PhysicalExpr> {
        col(name, &schema()).unwrap()
    }

    fn beside(name: &str, operator: Operator, value: i32) -> Arc<dyn PhysicalExpr> {
        binary(column(name), operator, lit(value), &schema()).unwrap()
    }

    fn joined(
        a: Arc<dyn PhysicalExpr>,
        by: Operator,
        b: Arc<dyn PhysicalExpr>,
    ) -> Arc<dyn PhysicalExpr> {
        binary(a, by, b, &schema()).unwrap()
    }

    fn alone(known: &Arc<dyn PhysicalExpr>, wanted: &Arc<dyn PhysicalExpr>) -> bool {
        implied(std::slice::from_ref(known), wanted)
    }

    /// Over all values of two columns nothing is implied that is not so, and of comparisons with constants everything that is.
    #[test]
    fn a_comparison_implies_what_holds_for_all_of_its_values() {
        use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        let holds = |operator, value: i32, than: i32| match operator {
            Eq => value == than,
            NotEq => value != than,
            Lt => value < than,
            LtEq => value <= than,
            Gt => value > than,
            _ => value >= than,
        };
        for known in [Eq, NotEq, Lt, LtEq, Gt, GtEq] {
            for wanted in [Eq, NotEq, Lt, LtEq, Gt, GtEq] {
                for (a, b) in (0..9).flat_map(|pair| [(pair / 3, pair % 3)]) {
                    // Values between the constants stand for those that a type with no next value has.
                    let of_all =
                        (-9..9).all(|v| !holds(known, v, 2 * a) || holds(wanted, v, 2 * b));
                    let found = alone(&beside("a", known, 2 * a), &beside("a", wanted, 2 * b));
                    assert_eq!(found, of_all, "{known} {a} implies {wanted} {b}");
                    assert!(!alone(&beside("b", known, a), &beside("a", wanted, b)));
                }
            }
        }
    }

    #[test]
    fn lists_and_alternatives_imply_what_each_of_them_does() {
        let list = |values: &[i32]| {
            in_list(column("a"), values.iter().map(|v| lit(*v)).collect(), &false, &schema())
                .unwrap()
        };
        assert!(alone(&list(&[1, 2]), &list(&[2, 3, 1])));
        assert!(!alone(&list(&[1, 4]), &list(&[2, 3, 1])));
        assert!(alone(&list(&[1, 2]), &beside("a", Operator::Lt, 3)));
        assert!(alone(&beside("a", Operator::Eq, 2), &list(&[2, 3])));
        assert!(!alone(&beside("a", Operator::Gt, 2), &list(&[2, 3])));
        let either =
            joined(beside("a", Operator::Eq, 1), Operator::Or, beside("a", Operator::Eq, 2));
        assert!(alone(&either, &list(&[1, 2, 3])));
        assert!(alone(&list(&[1]), &either));
        assert!(!alone(&list(&[1, 3]), &either));
        let both =
            joined(beside("b", Operator::Eq, 1), Operator::And, beside("a", Operator::Eq, 2));
        assert!(alone(&both, &either));
        assert!(!alone(&either, &both));
    }

    #[test]
    fn what_is_compared_is_not_null_and_what_may_be_null_is_not_implied() {
        let present = is_not_null(column("a")).unwrap();
        assert!(alone(&beside("a", Operator::NotEq, 1), &present));
        assert!(alone(&not(column("is")).unwrap(), &is_not_null(column("is")).unwrap()));
        assert!(!alone(&beside("b", Operator::Eq, 1), &present));
        assert!(!alone(&is_null(column("a")).unwrap(), &present));
        let distinct = binary(column("a"), Operator::IsDistinctFrom, lit(1), &schema()).unwrap();
        assert!(!alone(&distinct, &present));
        assert!(!alone(&not(column("is")).unwrap(), &column("is")));
        // Two conditions may say together what none of them does.
        let within = [beside("a", Operator::Gt, 1), beside("a", Operator::Lt, 5)];
        let wider =
            joined(beside("a", Operator::Gt, 0), Operator::And, beside("a", Operator::Lt, 9));
        let wanted = joined(wider, Operator::Or, column("is"));
        assert!(implies_all(&within, std::slice::from_ref(&wanted)));
        assert!(!implies_all(&within[1..], &[wanted]));
        assert!(implies_all(&[], &[]) && !implies_all(&[], &[present]));
    }
}
