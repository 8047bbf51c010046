//! Operators of arithmetic, on single numbers, and signs, on each of several.
//!
//! Operands that are arrays are taken apart in lax mode.
//!
//! Source: `executeBinaryArithmExpr`, `executeUnaryArithmExpr` in `src/backend/utils/adt/jsonpath_exec.c`,
//! PostgreSQL 14 to 18.

use super::kind::Operator;
use super::path::NodeId;
use super::run::{Found, Operation, Run, Status, Step};
use super::value::Value;
use crate::functions::numeric::arithmetic as numeric;
use crate::functions::numeric::value::Value as Numeric;
use crate::functions::rows::Outcome;

const SINGLETON_REQUIRED: &str = "22038";
const NUMBER_NOT_FOUND: &str = "2203B";

impl<'q> Run<'q> {
    pub(super) fn arithmetic(
        &mut self,
        (operator, left, right): Operation,
        value: Value<'q>,
    ) -> Outcome<Step<'q>> {
        let failed = Ok(Step::Done(Status::Failed));
        let Some(lefts) = self.operand(left, &value, true)? else { return failed };
        let Some(rights) = self.operand(right, &value, true)? else { return failed };
        let Some(left) = self.single_number(&lefts, "left", operator)? else { return failed };
        let Some(right) = self.single_number(&rights, "right", operator)? else { return failed };
        let result = match operator {
            Operator::Add => numeric::add(&left, &right),
            Operator::Subtract => numeric::subtract(&left, &right),
            Operator::Multiply => numeric::multiply(&left, &right),
            Operator::Divide => numeric::divide(&left, &right),
            _ => numeric::modulo(&left, &right),
        };
        match result.and_then(|result| Value::number(&result)) {
            Ok(number) => Ok(Step::Next(number)),
            Err(error) if self.throws => Err(error),
            Err(_) => failed,
        }
    }

    fn single_number(
        &self,
        found: &[Value<'q>],
        side: &str,
        operator: Operator,
    ) -> Outcome<Option<Numeric>> {
        let number = match found {
            [only] => only.as_number()?,
            _ => None,
        };
        if number.is_none() {
            let name = operator.name();
            let message = || {
                format!("{side} operand of jsonpath operator {name} is not a single numeric value")
            };
            self.fail(SINGLETON_REQUIRED, message)?;
        }
        Ok(number)
    }

    /// `+x` or `-x`
    pub(super) fn sign(
        &mut self,
        at: NodeId,
        (is_minus, operand): (bool, NodeId),
        value: Value<'q>,
        mut found: Found<'_, 'q>,
    ) -> Outcome<Step<'q>> {
        let Some(operands) = self.operand(operand, &value, true)? else {
            return Ok(Step::Done(Status::Failed));
        };
        let only_asks = found.is_none() && self.path.next(at).is_none();
        let mut status = Status::Nothing;
        for operand in operands {
            let number = operand.as_number()?;
            match number {
                Some(_) if only_asks => return Ok(Step::Done(Status::Found)),
                None if only_asks => continue,
                _ => {}
            }
            let Some(number) = number else {
                let name = if is_minus { "-" } else { "+" };
                let message =
                    || format!("operand of unary jsonpath operator {name} is not a numeric value");
                return self.fail(NUMBER_NOT_FOUND, message).map(Step::Done);
            };
            let operand =
                if is_minus { Value::number(&numeric::negate(&number))? } else { operand };
            match self.behind(at, operand, found.as_deref_mut())? {
                Status::Failed => return Ok(Step::Done(Status::Failed)),
                Status::Found if found.is_none() => return Ok(Step::Done(Status::Found)),
                Status::Found => status = Status::Found,
                Status::Nothing => {}
            }
        }
        Ok(Step::Done(status))
    }
}
