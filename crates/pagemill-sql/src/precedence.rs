//! Operators bind here as in PostgreSQL, or the statement is refused.
//!
//! The parser has levels of its own: it takes `~1 + 1` for `(~1) + 1` and `|/ 4 - 1` for `(|/ 4) - 1`, where PostgreSQL has
//! `~(1 + 1)` and `|/ (4 - 1)`. A tree stands for its text in one way only, so it is enough to look at each operator and
//! at what lies at its edges: of what ends before it, nothing open may bind less; of what begins behind it, nothing may
//! bind less or, as all associate to the left or not at all, the same.
//!
//! Source: the precedences at the head of `src/backend/parser/gram.y`, PostgreSQL 14 to 18.

use sqlparser::ast::{BinaryOperator, CastKind, Expr, UnaryOperator};

use crate::json_spelling::is_predicate;

const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const IS: u8 = 4;
const COMPARISON: u8 = 5;
const LIKE: u8 = 6;
/// Every operator that has no level of its own, whether between or before operands.
const OTHER: u8 = 7;
const SUM: u8 = 8;
const PRODUCT: u8 = 9;
const POWER: u8 = 10;
const AT: u8 = 11;
const COLLATE: u8 = 12;
const SIGN: u8 = 13;
const SUBSCRIPT: u8 = 14;
const CAST: u8 = 15;

/// An expression as the grammar puts it together.
struct Shape<'e> {
    level: u8,
    /// What ends before the operator.
    left: Option<&'e Expr>,
    /// What begins behind it.
    right: Option<&'e Expr>,
    /// Two of the level stand in a row only with parentheses.
    is_single: bool,
}

impl<'e> Shape<'e> {
    fn between(level: u8, left: &'e Expr, right: &'e Expr) -> Option<Self> {
        let is_single = matches!(level, IS | COMPARISON | LIKE);
        Some(Self { level, left: Some(left), right: Some(right), is_single })
    }

    fn before(level: u8, operand: &'e Expr) -> Option<Self> {
        Some(Self { level, left: None, right: Some(operand), is_single: false })
    }

    fn behind(level: u8, operand: &'e Expr) -> Option<Self> {
        let is_single = matches!(level, IS | COMPARISON | LIKE);
        Some(Self { level, left: Some(operand), right: None, is_single })
    }
}

/// True where PostgreSQL reads the operator of an expression, and what is beside it, in the same way.
pub(crate) fn binds_alike(expr: &Expr) -> bool {
    let Some(shape) = shape(expr) else { return true };
    let holds = |level: u8| level > shape.level || (level == shape.level && !shape.is_single);
    let is_left_good = shape.left.is_none_or(|left| open_levels(left).into_iter().all(holds));
    let mut behind = shape.right.map(first_levels).unwrap_or_default().into_iter();
    // A sign before a power is taken apart where it is bound.
    let is_sign = shape.left.is_none() && shape.level == SIGN;
    let is_second_sign = is_sign && shape.right.is_some_and(is_signed_power);
    is_left_good
        && !is_second_sign
        && behind.all(|level| level > shape.level || (is_sign && level == POWER))
}

/// The levels of the rules that are still open where an expression ends.
fn open_levels(expr: &Expr) -> Vec<u8> {
    let mut levels = Vec::new();
    let mut next = Some(expr);
    while let Some(found) = next.and_then(shape) {
        next = found.right;
        // A sign before a power binds before it.
        let is_sign = found.left.is_none() && found.level == SIGN;
        let is_power = is_sign && next.is_some_and(is_power);
        if next.is_some() && !is_power {
            levels.push(found.level);
        }
    }
    levels
}

/// The levels of the operators that take what an expression begins with.
fn first_levels(expr: &Expr) -> Vec<u8> {
    let mut levels = Vec::new();
    let mut next = Some(expr);
    while let Some(found) = next.and_then(shape) {
        next = found.left;
        if next.is_some() {
            levels.push(found.level);
        }
    }
    levels
}

/// `- 2 ^ 2`, which a sign before it would have to be taken apart for once more.
fn is_signed_power(expr: &Expr) -> bool {
    match expr {
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => {
            is_power(expr) || is_signed_power(expr)
        }
        _ => false,
    }
}

fn is_power(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryOp { op: BinaryOperator::PGExp, .. })
}

/// Nothing for what has words or parentheses around it.
fn shape(expr: &Expr) -> Option<Shape<'_>> {
    match expr {
        Expr::BinaryOp { left, op, right } => Shape::between(level_of(op), left, right),
        Expr::UnaryOp { op, expr } => Shape::before(prefix_level(op), expr),
        Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
            Shape::between(IS, left, right)
        }
        Expr::Like { expr, pattern, .. }
        | Expr::ILike { expr, pattern, .. }
        | Expr::SimilarTo { expr, pattern, .. } => Shape::between(LIKE, expr, pattern),
        Expr::Between { expr, high, .. } => Shape::between(LIKE, expr, high),
        Expr::AtTimeZone { timestamp, time_zone } => Shape::between(AT, timestamp, time_zone),
        Expr::IsNull(operand)
        | Expr::IsNotNull(operand)
        | Expr::IsTrue(operand)
        | Expr::IsNotTrue(operand)
        | Expr::IsFalse(operand)
        | Expr::IsNotFalse(operand)
        | Expr::IsUnknown(operand)
        | Expr::IsNotUnknown(operand) => Shape::behind(IS, operand),
        Expr::InList { expr, list, .. } if is_predicate(list) => Shape::behind(IS, expr),
        Expr::InList { expr, .. } | Expr::InSubquery { expr, .. } => Shape::behind(LIKE, expr),
        Expr::AnyOp { left, compare_op, .. } | Expr::AllOp { left, compare_op, .. } => {
            Shape::behind(level_of(compare_op), left)
        }
        Expr::Collate { expr, .. } => Shape::behind(COLLATE, expr),
        Expr::CompoundFieldAccess { root, .. } => Shape::behind(SUBSCRIPT, root),
        Expr::Cast { kind: CastKind::DoubleColon, expr, .. } => Shape::behind(CAST, expr),
        _ => None,
    }
}

fn level_of(op: &BinaryOperator) -> u8 {
    use BinaryOperator::{
        And, Divide, Eq, Gt, GtEq, Lt, LtEq, Minus, Modulo, Multiply, NotEq, Or, PGExp, Plus,
    };
    match op {
        Or => OR,
        And => AND,
        Eq | NotEq | Lt | LtEq | Gt | GtEq => COMPARISON,
        Plus | Minus => SUM,
        Multiply | Divide | Modulo => PRODUCT,
        PGExp => POWER,
        _ => OTHER,
    }
}

fn prefix_level(op: &UnaryOperator) -> u8 {
    match op {
        UnaryOperator::Not => NOT,
        UnaryOperator::Plus | UnaryOperator::Minus => SIGN,
        _ => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use crate::session::Session;

    /// Each reading was asked of servers of PostgreSQL 15 and 18.
    #[test]
    fn what_the_parser_reads_otherwise_is_refused() {
        for (text, good) in [
            ("select ~1 + 1", false),
            ("select ~(1 + 1), (~1) + 1", true),
            ("select |/ 4 - 1", false),
            ("select 5 | 2 & 1", true),
            ("select 'a' ~~ 'b' || 'c'", false),
            ("select - - 2 ^ 2", false),
            ("select 2 * 3 + 4 ^ 2, -2 ^ 2, 2 ^ -2, - 2 ^ 2 ^ 2, 1 - 2 - 3", true),
            ("select a + b * c = d and not e or f is null and g", true),
            ("select a || b || c like 'x' || '%' and d between 1 + 1 and 2 * 3", true),
            ("select -a::int, a -> 'b' ->> 'c' = 'd', a at time zone 'UTC' + b", true),
            ("select a = b is null, not a is null, not a = b, a is distinct from b", true),
            (
                "select a || b is json, not a is json array, a is not json = true, a is json and b",
                true,
            ),
            ("select a = b is json", false),
            ("select a = any (select 1) and b in (1, 2) and not exists (select 1)", true),
        ] {
            assert_eq!(Session::parse(text).is_ok(), good, "{text}");
        }
    }
}
