//! One value held against several: BETWEEN, IN, ANY and ALL.
//!
//! Source: `transformAExprBetween`, `transformAExprIn` and `transformAExprOpAny` in `src/backend/parser/parse_expr.c`,
//! PostgreSQL 18.

use datafusion::logical_expr::{Expr, lit, not};
use pagemill_format::Oid;
use sqlparser::ast::{
    BinaryOperator, DataType, Expr as Syntax, FunctionArg, FunctionArgExpr, FunctionArguments,
    ObjectNamePart, UnaryOperator,
};

use super::Binder;
use super::expressions::{
    ROW_OF_TYPE, is_row_of_type, operator_name, refuse_row_of_type, truth_value, unnested,
};
use super::json_clauses::predicate;
use super::subqueries::array_of_query;
use crate::catalog::CastContext;
use crate::coerce::{coerce, collated};
use crate::error::{Result, unsupported};
use crate::forms::SYMMETRIC;
use crate::resolve;
use crate::typed::Typed;
use crate::types::PgType;

impl Binder<'_> {
    pub(super) fn between(
        &mut self,
        syntax: &Syntax,
        negated: bool,
        low: &Syntax,
        high: &Syntax,
    ) -> Result<Typed> {
        if matches!(low, Syntax::UnaryOp { op: UnaryOperator::Not, .. }) {
            return unsupported("NOT right behind BETWEEN");
        }
        if let Some(low) = only_argument(low, SYMMETRIC) {
            return self.between_symmetric(syntax, negated, low, high);
        }
        let mut typed = self.expr(syntax)?;
        let (low, high) = (self.expr(low)?, self.expr(high)?);
        let least = self.operator(if negated { "<" } else { ">=" }, typed.clone(), low)?;
        if typed.parameter.is_some() {
            // The first comparison has said what it is.
            typed = self.expr(syntax)?;
        }
        let most = self.operator(if negated { ">" } else { "<=" }, typed, high)?;
        Ok(truth_value(match negated {
            true => least.expr.or(most.expr),
            false => least.expr.and(most.expr),
        }))
    }

    /// `x BETWEEN SYMMETRIC a AND b`, whichever of them is less.
    ///
    /// Source: `transformAExprBetween` in `src/backend/parser/parse_expr.c`, PostgreSQL 18.
    fn between_symmetric(
        &mut self,
        syntax: &Syntax,
        negated: bool,
        low: &Syntax,
        high: &Syntax,
    ) -> Result<Typed> {
        let one = self.between(syntax, negated, low, high)?.expr;
        let other = self.between(syntax, negated, high, low)?.expr;
        Ok(truth_value(if negated { one.and(other) } else { one.or(other) }))
    }

    pub(super) fn in_list(
        &mut self,
        syntax: &Syntax,
        list: &[Syntax],
        negated: bool,
    ) -> Result<Typed> {
        if let Some(said) = predicate(list) {
            return self.is_json(syntax, said, negated);
        }
        if let [_] = list {
            refuse_row_of_type(syntax)?;
        }
        if let Some(fields) = self.written_fields(syntax)? {
            let mut all: Option<Expr> = None;
            for item in list {
                let Some(item) = self.written_fields(item)? else {
                    return unsupported("a row IN values");
                };
                let pair = self.rows(&fields, &BinaryOperator::Eq, &item)?.expr;
                all = Some(all.map_or_else(|| pair.clone(), |before| before.or(pair.clone())));
            }
            let all = all.unwrap_or_else(|| lit(false));
            return Ok(truth_value(if negated { not(all) } else { all }));
        }
        let typed = self.expr(syntax)?;
        let mut items = list.iter().map(|item| self.expr(item)).collect::<Result<Vec<_>>>()?;
        // Two items or more without columns take the type that they and the left side have in common; `transformAExprIn` in
        // src/backend/parser/parse_expr.c, PostgreSQL 18.
        let is_plain = |item: &Typed| item.expr.column_refs().is_empty();
        let plain = items.iter().filter(|item| is_plain(item)).map(|item| item.ty.oid);
        let oids: Vec<Oid> = std::iter::once(typed.ty.oid).chain(plain).collect();
        if oids.len() > 2
            && let Ok(common) = resolve::common_type(&self.catalog, &oids)
        {
            for item in items.iter_mut().filter(|item| is_plain(item)) {
                let (given, to) = (item.clone(), PgType::new(common));
                *item = coerce(&self.catalog, given, to, CastContext::Implicit)?;
            }
        }
        self.one_of(typed, items, negated)
    }

    /// `x = a OR x = b …`, as one list where all are constants.
    pub(super) fn one_of(
        &mut self,
        typed: Typed,
        items: Vec<Typed>,
        negated: bool,
    ) -> Result<Typed> {
        let mut pairs = Vec::with_capacity(items.len());
        for item in items {
            if negated {
                self.operator("<>", typed.clone(), item.clone())?;
            }
            pairs.push(self.operator("=", typed.clone(), item)?.expr);
        }
        let all = listed(&pairs).or_else(|| pairs.into_iter().reduce(Expr::or));
        let all = all.unwrap_or_else(|| lit(false));
        Ok(truth_value(if negated { not(all) } else { all }))
    }

    /// `x = ANY (…)`, `x < ALL (…)`.
    pub(super) fn quantified(
        &mut self,
        left: &Syntax,
        op: &BinaryOperator,
        right: &Syntax,
        is_all: bool,
    ) -> Result<Typed> {
        let right = unnested(right);
        // Where it says that a value is of a list or not, as IN does.
        let plain = if is_all { BinaryOperator::NotEq } else { BinaryOperator::Eq };
        if *op != plain {
            let name = operator_name(op)?;
            return match right {
                Syntax::Subquery(query) => match self.written_fields(left)? {
                    None if is_row_of_type(left) => unsupported(ROW_OF_TYPE),
                    Some(fields) => self.row_and_rows(&fields, op, query, is_all),
                    None => self.over_elements(left, &name, &array_of_query(query), is_all),
                },
                array => self.over_elements(left, &name, array, is_all),
            };
        }
        match right {
            Syntax::Subquery(query) => self.in_subquery(left, query, is_all),
            array => match self.constants_of_array(array)? {
                Some(items) => {
                    let typed = self.expr(left)?;
                    self.one_of(typed, items, is_all)
                }
                None => self.over_elements(left, &operator_name(op)?, array, is_all),
            },
        }
    }

    /// The elements of an array that is written out, each by itself: an index may be searched for them.
    fn constants_of_array(&mut self, syntax: &Syntax) -> Result<Option<Vec<Typed>>> {
        let array = match unnested(syntax) {
            Syntax::Array(array) => array,
            Syntax::Cast { expr, data_type, .. } => return self.constants_as(expr, data_type),
            other => return self.array_literal(other),
        };
        if array.elem.is_empty() || !array.elem.iter().all(is_written) {
            return Ok(None);
        }
        let parts = array.elem.iter().map(|part| self.expr(part)).collect::<Result<Vec<_>>>()?;
        // ARRAY[…] has a type of its own, whatever it is compared with.
        let (_, element, is_nested) = self.array_types(&parts, None, false)?;
        if is_nested {
            return Ok(None);
        }
        let bring = |part| coerce(&self.catalog, part, element, CastContext::Implicit);
        Ok(Some(parts.into_iter().map(bring).collect::<Result<_>>()?))
    }

    /// The same of an array that is made one of this type, as the server writes what IN was in a stored expression.
    fn constants_as(&mut self, array: &Syntax, name: &DataType) -> Result<Option<Vec<Typed>>> {
        let Some(items) = self.constants_of_array(array)? else { return Ok(None) };
        let target = self.type_named(name)?;
        let (base, modifier) = self.catalog.base_type(target.oid, target.modifier);
        let Some(element) = self.array_row(base).map(|row| row.element) else { return Ok(None) };
        let element = collated(&self.catalog, element).with_modifier(modifier);
        let bring = |item| coerce(&self.catalog, item, element, CastContext::Explicit);
        Ok(Some(items.into_iter().map(bring).collect::<Result<_>>()?))
    }

    /// The elements of `'{a,b}'`, simple ones without quotes, as literals whose type follows from what they are compared with.
    pub(super) fn array_literal(&mut self, syntax: &Syntax) -> Result<Option<Vec<Typed>>> {
        let Syntax::Value(value) = syntax else { return Ok(None) };
        let Some(Some(text)) = self.literal(&value.value)?.literal else { return Ok(None) };
        let inside = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let is_simple = |text: &str| !text.contains(['"', '\\', '{', '}']);
        let Some(inside) = inside.filter(|inside| is_simple(inside)) else { return Ok(None) };
        if inside.trim().is_empty() || inside.split(',').any(|part| part.trim().is_empty()) {
            return Ok(None);
        }
        let element = |text: &str| {
            let text = text.trim();
            Typed::unknown((!text.eq_ignore_ascii_case("null")).then(|| text.to_owned()))
        };
        Ok(Some(inside.split(',').map(element).collect()))
    }
}

/// The argument of what has a name that only [`crate::forms`] gives.
pub(super) fn only_argument<'s>(syntax: &'s Syntax, wanted: &str) -> Option<&'s Syntax> {
    let Syntax::Function(call) = syntax else { return None };
    let FunctionArguments::List(list) = &call.args else { return None };
    let is_it = matches!(&call.name.0[..], [ObjectNamePart::Identifier(name)]
        if name.quote_style.is_some() && name.value == wanted);
    match &list.args[..] {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))]
            if is_it && list.clauses.is_empty() && list.duplicate_treatment.is_none() =>
        {
            Some(inner)
        }
        _ => None,
    }
}

/// A constant or a parameter, perhaps with a sign before it or as another type.
fn is_written(part: &Syntax) -> bool {
    match part {
        Syntax::Value(_) => true,
        Syntax::UnaryOp { op: UnaryOperator::Minus, expr } => {
            matches!(&**expr, Syntax::Value(_))
        }
        Syntax::Cast { expr, .. } => is_written(expr),
        _ => false,
    }
}

/// `x = 1`, `x = 2` … as a list, which the engine looks up at once.
fn listed(pairs: &[Expr]) -> Option<Expr> {
    let mut subject: Option<&Expr> = None;
    let mut list = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let Expr::BinaryExpr(pair) = pair else { return None };
        if pair.op != datafusion::logical_expr::Operator::Eq
            || !is_constant(&pair.right)
            || subject.is_some_and(|subject| *subject != *pair.left)
        {
            return None;
        }
        subject = Some(&pair.left);
        list.push((*pair.right).clone());
    }
    (list.len() > 1).then(|| subject.map(|subject| subject.clone().in_list(list, false)))?
}

/// A literal or a parameter, perhaps as another type or as its key.
fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(..) | Expr::Placeholder(_) => true,
        Expr::Cast(cast) => is_constant(&cast.expr),
        Expr::ScalarFunction(call) => !call.args.is_empty() && call.args.iter().all(is_constant),
        _ => false,
    }
}
