//! Predicates: true, false or unknown, over all pairs of what their operands yield.
//!
//! In lax mode the first pair that is true decides; in strict mode all pairs are looked at, and one that cannot be told makes
//! the whole unknown. Errors of operands that can be suppressed make it unknown as well.
//!
//! Source: `executeBoolItem`, `executePredicate`, `compareItems`, `executeStartsWith`, `executeLikeRegex` in
//! `src/backend/utils/adt/jsonpath_exec.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use super::damaged;
use super::kind::{Kind, Operator};
use super::numbers::compare;
use super::path::NodeId;
use super::pattern::PatternFlags;
use super::run::{Run, Status};
use super::value::Value;
use crate::functions::rows::Outcome;

/// None is unknown.
type Truth = Option<bool>;

/// A predicate of one value or two.
enum Test<'t> {
    Compare(Operator),
    StartsWith,
    LikeRegex(&'t str, PatternFlags),
}

impl<'q> Run<'q> {
    /// The truth of a predicate about a value.
    pub(super) fn truth(&mut self, at: NodeId, value: &Value<'q>) -> Outcome<Truth> {
        self.enter()?;
        let truth = self.truth_within(at, value);
        self.leave();
        truth
    }

    fn truth_within(&mut self, at: NodeId, value: &Value<'q>) -> Outcome<Truth> {
        let path = self.path;
        match path.kind(at)? {
            Kind::Binary(Operator::And | Operator::Or, ..) => self.chained(at, value),
            Kind::Not(operand) => Ok(self.truth(*operand, value)?.map(|truth| !truth)),
            Kind::IsUnknown(operand) => Ok(Some(self.truth(*operand, value)?.is_none())),
            Kind::Exists(operand) => self.exists(*operand, value),
            Kind::Binary(Operator::StartsWith, left, right) => {
                self.predicate(&Test::StartsWith, (*left, Some(*right)), value)
            }
            Kind::Binary(operator, left, right) if operator.is_predicate() => {
                self.predicate(&Test::Compare(*operator), (*left, Some(*right)), value)
            }
            Kind::LikeRegex { operand, pattern, flags } => {
                let pattern = std::str::from_utf8(path.bytes(pattern)).map_err(damaged)?;
                let test = Test::LikeRegex(pattern, PatternFlags::of(*flags)?);
                self.predicate(&test, (*operand, None), value)
            }
            _ => Err(damaged("a jsonpath item where a predicate has to be")),
        }
    }

    /// `a && b || c …`, which hang together on the left, without a level for each.
    fn chained(&mut self, at: NodeId, value: &Value<'q>) -> Outcome<Truth> {
        let path = self.path;
        let (mut rights, mut first) = (Vec::new(), at);
        while let Kind::Binary(operator @ (Operator::And | Operator::Or), left, right) =
            path.kind(first)?
        {
            if path.next(first).is_some() && first != at {
                return Err(damaged("boolean jsonpath item cannot have next item"));
            }
            rights.push((*operator, *right));
            first = *left;
        }
        let mut truth = self.truth(first, value)?;
        while let Some((operator, right)) = rights.pop() {
            // What decides, and what leaves the decision to the other side.
            let decides = Some(operator == Operator::Or);
            if truth == decides {
                continue;
            }
            let second = self.truth(right, value)?;
            if second != decides.map(|truth| !truth) {
                truth = second;
            }
        }
        Ok(truth)
    }

    fn exists(&mut self, operand: NodeId, value: &Value<'q>) -> Outcome<Truth> {
        let throws = std::mem::replace(&mut self.throws, false);
        let mut found = Vec::new();
        let is_lax = self.is_lax();
        let collected = if is_lax { None } else { Some(&mut found) };
        let status = self.item(operand, value.clone(), collected);
        self.throws = throws;
        Ok(match status? {
            Status::Failed => None,
            status if is_lax => Some(status == Status::Found),
            _ => Some(!found.is_empty()),
        })
    }

    fn predicate(
        &mut self,
        test: &Test<'_>,
        (left, right): (NodeId, Option<NodeId>),
        value: &Value<'q>,
    ) -> Outcome<Truth> {
        let throws = std::mem::replace(&mut self.throws, false);
        let operands = self.operands(test, (left, right), value);
        self.throws = throws;
        let Some((lefts, rights)) = operands? else { return Ok(None) };
        let (mut is_unknown, mut is_true) = (false, false);
        for left in &lefts {
            for right in &rights {
                match self.test(test, left, right)? {
                    None if !self.is_lax() => return Ok(None),
                    None => is_unknown = true,
                    Some(true) if self.is_lax() => return Ok(Some(true)),
                    Some(true) => is_true = true,
                    Some(false) => {}
                }
            }
        }
        Ok(match (is_true, is_unknown) {
            (true, _) => Some(true),
            (false, true) => None,
            (false, false) => Some(false),
        })
    }

    /// The values of both operands, of one where there is no other a pair with nothing; none where one fails.
    fn operands(
        &mut self,
        test: &Test<'_>,
        (left, right): (NodeId, Option<NodeId>),
        value: &Value<'q>,
    ) -> Outcome<Option<(Vec<Value<'q>>, Vec<Value<'q>>)>> {
        let Some(lefts) = self.operand(left, value, true)? else { return Ok(None) };
        let rights = match right {
            Some(right) => self.operand(right, value, matches!(test, Test::Compare(_)))?,
            None => Some(vec![Value::Null]),
        };
        Ok(rights.map(|rights| (lefts, rights)))
    }

    fn test(&mut self, test: &Test<'_>, left: &Value<'q>, right: &Value<'q>) -> Outcome<Truth> {
        match test {
            Test::Compare(operator) => self.compare(*operator, left, right),
            Test::StartsWith => {
                let both = left.as_string().zip(right.as_string());
                Ok(both.map(|(whole, start)| whole.starts_with(start)))
            }
            Test::LikeRegex(pattern, flags) => {
                let Some(text) = left.as_string() else { return Ok(None) };
                let text = std::str::from_utf8(text).map_err(damaged)?;
                self.settings.regex.is_match(pattern, *flags, text).map(Some)
            }
        }
    }

    fn compare(&self, operator: Operator, left: &Value<'q>, right: &Value<'q>) -> Outcome<Truth> {
        let order = match (left, right) {
            (Value::Null, Value::Null) => Ordering::Equal,
            // NULL is unlike all others, and neither above nor below.
            (Value::Null, _) | (_, Value::Null) => return Ok(Some(operator == Operator::NotEqual)),
            (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
            (Value::Number(left), Value::Number(right)) => compare(left.get(), right.get())?,
            (Value::String(left), Value::String(right)) => left.get().cmp(right.get()),
            (Value::Moment(left), Value::Moment(right)) => {
                match left.compare(right, self.settings)? {
                    Some(order) => order,
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        Ok(Some(match operator {
            Operator::Equal => order.is_eq(),
            Operator::NotEqual => order.is_ne(),
            Operator::Less => order.is_lt(),
            Operator::Greater => order.is_gt(),
            Operator::LessOrEqual => order.is_le(),
            _ => order.is_ge(),
        }))
    }
}
