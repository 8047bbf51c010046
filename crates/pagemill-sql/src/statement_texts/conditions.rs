//! Where in a statement a constant may be another without the statement meaning something else: held against a column, or in what
//! is computed of one, in WHERE and ON.
//!
//! All others stay what they are: a number in ORDER BY or GROUP BY is a place, one behind LIMIT says which way is short, one in
//! a call or a cast may decide what it computes, a pattern of LIKE which index is searched, and a condition without any column
//! whether a table is read at all.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, JoinConstraint, JoinOperator, Query, SetExpr, Statement, UnaryOperator,
    Value, VisitMut as _, VisitorMut, visit_expressions,
};
use sqlparser::tokenizer::Location;

use crate::numbers::is_odd;

/// A constant in such a place.
pub(super) struct Found<'s> {
    /// With its sign.
    pub(super) expr: &'s mut Expr,
    /// Where its token stands, behind the sign.
    pub(super) place: Location,
    /// True behind a minus sign.
    pub(super) is_negative: bool,
}

/// Shows all of them, of all queries of a statement.
pub(super) fn for_each_constant(statement: &mut Statement, show: impl FnMut(Found<'_>)) {
    let _ = statement.visit(&mut Conditions { show });
}

struct Conditions<F> {
    show: F,
}

impl<F: FnMut(Found<'_>)> VisitorMut for Conditions<F> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.body(&mut query.body);
        ControlFlow::Continue(())
    }
}

impl<F: FnMut(Found<'_>)> Conditions<F> {
    fn body(&mut self, body: &mut SetExpr) {
        match body {
            SetExpr::Select(select) => {
                let joins = select.from.iter_mut().flat_map(|item| &mut item.joins);
                let conditions = joins.filter_map(|join| condition_of(&mut join.join_operator));
                conditions.chain(&mut select.selection).for_each(|expr| self.condition(expr));
            }
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left);
                self.body(right);
            }
            // A query of its own is visited as one.
            _ => {}
        }
    }

    fn condition(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Not, expr: inner } => {
                self.condition(inner);
            }
            Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
                self.condition(left);
                self.condition(right);
            }
            Expr::BinaryOp { left, op, right }
                if is_comparison(op) && (has_column(left) || has_column(right)) =>
            {
                self.operand(left);
                self.operand(right);
            }
            Expr::Between { expr, low, high, .. } if has_column(expr) => {
                self.operand(expr);
                self.operand(low);
                self.operand(high);
            }
            Expr::InList { expr, list, .. } if has_column(expr) => {
                list.iter_mut().for_each(|item| self.constant(item));
            }
            _ => {}
        }
    }

    fn operand(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Nested(inner) => self.operand(inner),
            Expr::BinaryOp { left, op, right } if is_arithmetic(op) => {
                self.operand(left);
                self.operand(right);
            }
            constant => self.constant(constant),
        }
    }

    fn constant(&mut self, expr: &mut Expr) {
        let (value, is_negative) = match &*expr {
            Expr::Value(value) => (value, false),
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match &**expr {
                Expr::Value(value) if matches!(value.value, Value::Number(..)) => (value, true),
                _ => return,
            },
            _ => return,
        };
        // Others are none of the texts' constants, though one may begin where they do.
        match &value.value {
            Value::Number(digits, _) if !is_odd(digits) => {}
            Value::SingleQuotedString(_) => {}
            _ => return,
        }
        let place = value.span.start;
        (self.show)(Found { expr, place, is_negative });
    }
}

fn condition_of(join: &mut JoinOperator) -> Option<&mut Expr> {
    match join {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => match constraint {
            JoinConstraint::On(expr) => Some(expr),
            _ => None,
        },
        _ => None,
    }
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

fn is_arithmetic(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Divide, Minus, Modulo, Multiply, Plus};
    matches!(op, Plus | Minus | Multiply | Divide | Modulo)
}

fn has_column(expr: &Expr) -> bool {
    let is_name = |expr: &Expr| match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    visit_expressions(expr, is_name).is_break()
}
