//! Expressions that can be evaluated without a server: what CHECK constraints mostly are.
//!
//! Values are payloads, and null is the absence of one; a truth value is a byte. Comparison, logic and functions treat
//! null as SQL does. What an [`Expression`] says, it says exactly as the server would: whoever makes one refuses all
//! else.
//!
//! Invariant: evaluation depends on nothing but its inputs, and never panics, whatever their bytes.
//!
//! Source: `ExecInterpExpr` in `src/backend/executor/execExprInterp.c`, PostgreSQL 14 to 18.

pub mod function;
pub mod like;
pub mod regular;

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::input::InputError;
use crate::order::ValueOrder;

pub use function::Function;
pub use like::LikePattern;
pub use regular::RegularPattern;

const FALSE: &[u8] = &[0];
const TRUE: &[u8] = &[1];

/// A payload, or null.
pub type Datum<'a> = Option<Cow<'a, [u8]>>;

/// The values that an expression is about.
pub trait Inputs {
    /// The payload of the value with this number; nothing for null.
    fn value(&self, number: usize) -> Option<&[u8]>;
}

/// A single value, number 0.
impl Inputs for Option<&[u8]> {
    fn value(&self, number: usize) -> Option<&[u8]> {
        self.filter(|_| number == 0)
    }
}

/// How two values may compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `=`.
    Equal,
    /// `<>`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessOrEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterOrEqual,
}

impl Comparison {
    /// By the operator's name.
    pub fn of_operator(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"=" => Self::Equal,
            b"<>" => Self::NotEqual,
            b"<" => Self::Less,
            b"<=" => Self::LessOrEqual,
            b">" => Self::Greater,
            b">=" => Self::GreaterOrEqual,
            _ => return None,
        })
    }

    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// What a text is matched with.
#[derive(Debug, Clone)]
pub enum Pattern {
    /// `LIKE`.
    Like(LikePattern),
    /// `~`.
    Regular(RegularPattern),
}

/// An expression.
#[derive(Debug, Clone)]
pub enum Expression {
    /// A payload, or null.
    Constant(Option<Vec<u8>>),
    /// The input with this number.
    Input(usize),
    /// A comparison; null if a side is.
    Compare(Comparison, ValueOrder, Box<[Expression; 2]>),
    /// `IS DISTINCT FROM`; never null.
    Distinct(ValueOrder, Box<[Expression; 2]>),
    /// All of them.
    And(Vec<Expression>),
    /// Any of them.
    Or(Vec<Expression>),
    /// Not.
    Not(Box<Expression>),
    /// `IS NULL`.
    IsNull(Box<Expression>),
    /// `IS TRUE`, `IS FALSE`, `IS UNKNOWN`.
    Is(Option<bool>, Box<Expression>),
    /// Whether a text matches a pattern.
    Matches(Pattern, Box<Expression>),
    /// The first that is not null.
    Coalesce(Vec<Expression>),
    /// The result behind the first condition that holds, or the last expression.
    Case(Vec<(Expression, Expression)>, Box<Expression>),
    /// A function, null if an argument is.
    Call(Function, Vec<Expression>),
}

impl Expression {
    /// True unless the expression is false of these inputs: how a CHECK constraint is satisfied.
    ///
    /// # Errors
    /// What the server would raise, as a number out of range.
    pub fn is_satisfied(&self, inputs: &dyn Inputs) -> Result<bool, InputError> {
        Ok(self.truth(inputs)? != Some(false))
    }

    /// The same, with the value in the place of a function of constants.
    #[must_use]
    pub fn folded(self) -> Self {
        let is_constant = |of: &Self| matches!(of, Self::Constant(_));
        match &self {
            Self::Call(_, arguments) if arguments.iter().all(is_constant) => {
                let value = self.value(&None::<&[u8]>).map(|value| value.map(Cow::into_owned));
                // What the server raises for each row is raised here for each row.
                value.map(Self::Constant).unwrap_or(self)
            }
            _ => self,
        }
    }

    fn truth(&self, inputs: &dyn Inputs) -> Result<Option<bool>, InputError> {
        match self {
            Self::Compare(comparison, order, sides) => {
                let (a, b) = (sides[0].value(inputs)?, sides[1].value(inputs)?);
                let Some((a, b)) = a.zip(b) else { return Ok(None) };
                Ok(Some(comparison.holds(order.compare(&a, &b))))
            }
            Self::Distinct(order, sides) => {
                Ok(Some(match (sides[0].value(inputs)?, sides[1].value(inputs)?) {
                    (Some(a), Some(b)) => order.compare(&a, &b).is_ne(),
                    (a, b) => a.is_some() != b.is_some(),
                }))
            }
            Self::And(parts) => decide(parts, false, inputs),
            Self::Or(parts) => decide(parts, true, inputs),
            Self::Not(inner) => Ok(inner.truth(inputs)?.map(|truth| !truth)),
            Self::IsNull(inner) => Ok(Some(inner.value(inputs)?.is_none())),
            Self::Is(wanted, inner) => Ok(Some(inner.truth(inputs)? == *wanted)),
            Self::Matches(pattern, text) => Ok(text.value(inputs)?.map(|text| match pattern {
                Pattern::Like(pattern) => pattern.matches(&text),
                Pattern::Regular(pattern) => pattern.matches(&text),
            })),
            other => Ok(other.value(inputs)?.map(|byte| *byte != *FALSE)),
        }
    }

    fn value<'a>(&'a self, inputs: &'a dyn Inputs) -> Result<Datum<'a>, InputError> {
        match self {
            Self::Constant(value) => Ok(value.as_deref().map(Cow::Borrowed)),
            Self::Input(number) => Ok(inputs.value(*number).map(Cow::Borrowed)),
            Self::Coalesce(parts) => {
                for part in parts {
                    if let Some(value) = part.value(inputs)? {
                        return Ok(Some(value));
                    }
                }
                Ok(None)
            }
            Self::Case(branches, otherwise) => {
                for (condition, result) in branches {
                    if condition.truth(inputs)? == Some(true) {
                        return result.value(inputs);
                    }
                }
                otherwise.value(inputs)
            }
            Self::Call(function, arguments) => {
                let mut values = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    let Some(value) = argument.value(inputs)? else { return Ok(None) };
                    values.push(value);
                }
                Ok(function.value(&values)?.map(Cow::Owned))
            }
            _ => {
                let truth = self.truth(inputs)?;
                Ok(truth.map(|truth| Cow::Borrowed(if truth { TRUE } else { FALSE })))
            }
        }
    }
}

/// The first part that decides does; else one that is null makes the whole null.
fn decide(
    parts: &[Expression],
    deciding: bool,
    inputs: &dyn Inputs,
) -> Result<Option<bool>, InputError> {
    let mut result = Some(!deciding);
    for part in parts {
        match part.truth(inputs)? {
            Some(truth) if truth == deciding => return Ok(Some(deciding)),
            Some(_) => {}
            None => result = None,
        }
    }
    Ok(result)
}

/// A CHECK constraint.
#[derive(Debug, Clone)]
pub struct Check {
    /// Its name.
    pub name: String,
    /// What has to hold.
    pub expression: Expression,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::TextCollation;
    use pagemill_format::ids::Oid;

    fn int(number: i32) -> Expression {
        Expression::Constant(Some(number.to_le_bytes().to_vec()))
    }

    fn compare(comparison: Comparison, a: Expression, b: Expression) -> Expression {
        let order = ValueOrder::of_type(Oid(23), &TextCollation::C).unwrap();
        Expression::Compare(comparison, order, Box::new([a, b]))
    }

    #[test]
    fn null_is_neither_true_nor_false_and_satisfies_a_constraint() {
        let null = || Expression::Constant(None);
        let equal = |a, b| compare(Comparison::Equal, a, b);
        let truth = |expression: Expression| expression.truth(&None::<&[u8]>).unwrap();
        assert_eq!(truth(equal(int(1), null())), None);
        assert_eq!(truth(Expression::And(vec![null(), equal(int(1), int(2))])), Some(false));
        assert_eq!(truth(Expression::And(vec![null(), equal(int(1), int(1))])), None);
        assert_eq!(truth(Expression::Or(vec![null(), equal(int(1), int(1))])), Some(true));
        assert_eq!(truth(Expression::Or(vec![null(), equal(int(1), int(2))])), None);
        assert_eq!(truth(Expression::Not(Box::new(null()))), None);
        assert_eq!(truth(Expression::Is(None, Box::new(null()))), Some(true));
        assert!(equal(int(1), null()).is_satisfied(&None::<&[u8]>).unwrap());
        assert!(!equal(int(1), int(2)).is_satisfied(&None::<&[u8]>).unwrap());
    }

    #[test]
    fn a_value_is_compared_with_its_bounds() {
        let within = Expression::And(vec![
            compare(Comparison::GreaterOrEqual, Expression::Input(0), int(-3)),
            compare(Comparison::Less, Expression::Input(0), int(10)),
        ]);
        for (value, expected) in [(-4, false), (-3, true), (9, true), (10, false)] {
            let value = i32::to_le_bytes(value);
            assert_eq!(within.is_satisfied(&Some(&value[..])).unwrap(), expected);
        }
    }
}
