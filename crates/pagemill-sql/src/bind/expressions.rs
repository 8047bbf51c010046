//! Expressions: operators and the forms of syntax that are not called like functions.
//!
//! Source: `transformExprRecurse` in `src/backend/parser/parse_expr.c`, `gram.y`, PostgreSQL 18.

use std::borrow::Cow;

use arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, is_not_null, is_null, lit, not};
use pagemill_format::Oid;
use pagemill_types::builtin::oid;
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    BinaryOperator, CastKind, Expr as Syntax, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, ObjectNamePart, Spanned as _, UnaryOperator, Value,
};

use super::Binder;
use super::memberships::only_argument;
use super::query::boolean;
use super::scope::{at, at_start};
use super::subqueries::array_of_query;
use crate::catalog::CastContext;
use crate::coerce::coerce;
use crate::error::{Result, SqlState, StatementError, fail, unsupported};
use crate::forms::{ALL_OF, ANY_OF, NO_COLUMN};
use crate::functions::keys;
use crate::functions::row_payloads::taken_apart;
use crate::functions::row_values::field_at;
use crate::resolve;
use crate::typed::Typed;
use crate::types::{PgType, UNKNOWN};

impl Binder<'_> {
    /// Binds an expression.
    pub(super) fn expr(&mut self, syntax: &Syntax) -> Result<Typed> {
        match syntax {
            Syntax::Nested(inner) => self.expr(inner),
            // The parser takes them for columns.
            Syntax::Identifier(ident)
                if ident.quote_style.is_none()
                    && ["current_role", "current_schema"]
                        .contains(&ident.value.to_ascii_lowercase().as_str()) =>
            {
                self.keyword(&ident.value.to_ascii_lowercase())
            }
            Syntax::Identifier(ident) if self.is_system_user(ident) => self.keyword("system_user"),
            Syntax::Identifier(ident) if ident.value == NO_COLUMN => {
                unsupported("a select list without columns in this place")
            }
            Syntax::Identifier(ident) => self.bare_column(ident),
            Syntax::CompoundIdentifier(parts) => match &parts[..] {
                [table @ .., column] if (1..=4).contains(&table.len()) => {
                    self.qualified_column(&table.iter().collect::<Vec<_>>(), column)
                }
                _ => fail(SqlState::SYNTAX_ERROR, format!("improper qualified name: {syntax}")),
            },
            Syntax::Value(value) => self.literal(&value.value),
            Syntax::TypedString(typed) => {
                use sqlparser::ast::DataType as Named;
                let ty = match &typed.data_type {
                    // Of a constant alone, bits and characters without a length are as many as are written.
                    Named::Bit(None) => PgType::new(oid::BIT),
                    Named::Char(None) | Named::Character(None) => PgType::new(oid::BPCHAR),
                    Named::Array(_) => {
                        return unsupported("a constant behind the name of an array's type");
                    }
                    named => self.type_named(named)?,
                };
                let literal = self.literal(&typed.value.value)?;
                if literal.literal.is_none() {
                    return fail(SqlState::SYNTAX_ERROR, format!("syntax error at {syntax}"));
                }
                let cast = coerce(&self.catalog, literal, ty, CastContext::Explicit);
                cast.map_err(|error| at_start(error, typed.value.span))
            }
            Syntax::Interval(interval) => self.interval(interval),
            Syntax::BinaryOp { left, op, right } => self.binary(left, op, right),
            Syntax::UnaryOp { op, expr } => self.unary(op, expr),
            Syntax::Cast { kind, expr, data_type, format: None } => {
                if !matches!(kind, CastKind::Cast | CastKind::DoubleColon) {
                    return fail(SqlState::SYNTAX_ERROR, "syntax error: no cast of PostgreSQL's");
                }
                let target = self.type_named(data_type)?;
                let typed = match &**expr {
                    Syntax::Array(array) => self.array_of(&array.elem, Some(target))?,
                    other => self.expr(other)?,
                };
                let cast = coerce(&self.catalog, typed, target, CastContext::Explicit);
                cast.map_err(|error| match &**expr {
                    Syntax::Value(value) => at_start(error, value.span),
                    _ => error,
                })
            }
            Syntax::IsNull(inner) => self.null_test(inner, is_null),
            Syntax::IsNotNull(inner) => self.null_test(inner, is_not_null),
            Syntax::IsTrue(inner) => self.truth(inner, Expr::is_true),
            Syntax::IsNotTrue(inner) => self.truth(inner, Expr::is_not_true),
            Syntax::IsFalse(inner) => self.truth(inner, Expr::is_false),
            Syntax::IsNotFalse(inner) => self.truth(inner, Expr::is_not_false),
            Syntax::IsUnknown(inner) => self.truth(inner, Expr::is_unknown),
            Syntax::IsNotUnknown(inner) => self.truth(inner, Expr::is_not_unknown),
            Syntax::IsNormalized { expr, form, negated } => {
                self.is_normalized(expr, form.as_ref(), *negated)
            }
            Syntax::IsDistinctFrom(a, b) => self.distinct_test(a, b, true),
            Syntax::IsNotDistinctFrom(a, b) => self.distinct_test(a, b, false),
            Syntax::Between { expr, negated, low, high } => self.between(expr, *negated, low, high),
            Syntax::InList { expr, list, negated } => self.in_list(expr, list, *negated),
            Syntax::InSubquery { expr, subquery, negated } => {
                self.in_subquery(expr, subquery, *negated)
            }
            Syntax::Exists { subquery, negated } => self.exists(subquery, *negated),
            Syntax::Subquery(query) => self.scalar_subquery(query),
            Syntax::AnyOp { left, compare_op, right, .. } => {
                self.quantified(left, compare_op, right, false)
            }
            Syntax::AllOp { left, compare_op, right } => {
                self.quantified(left, compare_op, right, true)
            }
            Syntax::Like { negated, any: false, expr, pattern, escape_char } => {
                let name = if *negated { "!~~" } else { "~~" };
                self.pattern_match(name, expr, pattern, escape_char.as_ref())
            }
            Syntax::ILike { negated, any: false, expr, pattern, escape_char } => {
                let name = if *negated { "!~~*" } else { "~~*" };
                self.pattern_match(name, expr, pattern, escape_char.as_ref())
            }
            Syntax::Like { negated, any: true, expr, pattern, escape_char: None } => {
                let name = if *negated { "!~~" } else { "~~" };
                self.over_elements(expr, name, &elements_of_any(pattern), false)
            }
            Syntax::ILike { negated, any: true, expr, pattern, escape_char: None } => {
                let name = if *negated { "!~~*" } else { "~~*" };
                self.over_elements(expr, name, &elements_of_any(pattern), false)
            }
            Syntax::SimilarTo { negated, expr, pattern, escape_char } => {
                self.similar_to(*negated, expr, pattern, escape_char.as_ref())
            }
            Syntax::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())
            }
            Syntax::QualifiedWildcard(name, _) => self.row_by_star(name),
            Syntax::Collate { expr, collation } => self.collate(expr, collation),
            Syntax::Array(array) if array.named => self.array_of(&array.elem, None),
            Syntax::CompoundFieldAccess { root, access_chain } => self.part_of(root, access_chain),
            Syntax::Function(call) => {
                self.function(call).map_err(|error| at_start(error, call.name.span()))
            }
            other => self.function_like(other),
        }
    }

    /// The fields of a row that is written out; `t.*` among them are the columns.
    pub(super) fn written_fields(&self, syntax: &Syntax) -> Result<Option<Vec<Syntax>>> {
        let Some(fields) = row_fields(syntax) else { return Ok(None) };
        let mut all = Vec::with_capacity(fields.len());
        for field in fields {
            match field {
                Syntax::QualifiedWildcard(table, _) => all.extend(self.names_by_star(&table)?),
                field => all.push(field),
            }
        }
        Ok(Some(all))
    }

    fn null_test(&mut self, syntax: &Syntax, test: fn(Expr) -> Expr) -> Result<Typed> {
        if let Some(parts) = self.written_fields(syntax)? {
            // A row is NULL when all of its fields are, and NOT NULL when none is.
            let parts = parts.iter().map(|part| Ok(test(self.expr(part)?.expr)));
            let all = parts.collect::<Result<Vec<Expr>>>()?.into_iter().reduce(Expr::and);
            return Ok(truth_value(all.unwrap_or_else(|| lit(true))));
        }
        let typed = self.expr(syntax)?;
        let typed = taken_apart(&self.catalog, typed)?;
        let base = self.catalog.base_type(typed.ty.oid, -1).0;
        // A row is null when all of its fields are.
        if let Some(fields) = typed.row.clone() {
            let field = |(at, field)| test(field_at(&typed, at, field).expr);
            let all = fields.iter().enumerate().map(field).reduce(Expr::and);
            return match all {
                Some(all) => Ok(truth_value(all)),
                None => unsupported("IS NULL of a row without fields"),
            };
        }
        if typed.is_row() || self.catalog.type_row(base).is_some_and(|row| row.kind == b'c') {
            return unsupported("IS NULL of a row");
        }
        Ok(truth_value(test(typed.expr)))
    }

    fn truth(&mut self, syntax: &Syntax, test: fn(Expr) -> Expr) -> Result<Typed> {
        let typed = self.expr(syntax)?;
        let typed = boolean(typed, "IS", &self.catalog)?;
        Ok(truth_value(test(typed.expr)))
    }

    fn distinct_test(&mut self, a: &Syntax, b: &Syntax, is_distinct: bool) -> Result<Typed> {
        if let (Some(a), Some(b)) = (self.written_fields(a)?, self.written_fields(b)?) {
            if a.len() != b.len() {
                return fail(SqlState::SYNTAX_ERROR, UNEQUAL_ROWS);
            }
            let pairs = a.iter().zip(&b);
            let pairs = pairs.map(|(a, b)| Ok(self.distinct_test(a, b, is_distinct)?.expr));
            let join = if is_distinct { Expr::or } else { Expr::and };
            let all = pairs.collect::<Result<Vec<Expr>>>()?.into_iter().reduce(join);
            return Ok(truth_value(all.unwrap_or_else(|| lit(!is_distinct))));
        }
        let (a, b) = (self.expr(a)?, self.expr(b)?);
        let (a, b) = self.operands_of_equality(a, b)?;
        if has_no_common_key(&a, &b) {
            let are_null = is_null(a.expr.clone()).and(is_null(b.expr.clone()));
            let is_same = self.operator("=", a, b)?.expr.is_true().or(are_null);
            return Ok(truth_value(if is_distinct { not(is_same) } else { is_same }));
        }
        let (a, b) = keys::equality_pair(&self.catalog, &a, &b)?;
        let operator = match is_distinct {
            true => datafusion::logical_expr::Operator::IsDistinctFrom,
            false => datafusion::logical_expr::Operator::IsNotDistinctFrom,
        };
        Ok(truth_value(datafusion::logical_expr::binary_expr(a, operator, b)))
    }

    /// Both as the operator `=` of their types takes them; refused where there is none, or it is not known here.
    pub(super) fn operands_of_equality(&self, a: Typed, b: Typed) -> Result<(Typed, Typed)> {
        let chosen = resolve::operator(&self.catalog, "=", Some(a.ty.oid), b.ty.oid)?;
        if crate::functions::implementation(&chosen.function.key).is_none() {
            let signature = crate::coerce::signature(&self.catalog, chosen.function);
            return unsupported(format!("function {signature}"));
        }
        let mut both = crate::coerce::brought(&self.catalog, &chosen, vec![a, b])?;
        let b = both.pop().expect("two operands"); // infallible: two went in
        Ok((both.pop().expect("two operands"), b)) // infallible: two went in
    }

    fn binary(&mut self, left: &Syntax, op: &BinaryOperator, right: &Syntax) -> Result<Typed> {
        match op {
            BinaryOperator::And | BinaryOperator::Or => {
                let clause = op.to_string();
                let a = self.expr(left)?;
                let a = boolean(a, &clause, &self.catalog)?;
                let b = self.expr(right)?;
                let b = boolean(b, &clause, &self.catalog)?;
                let both = match op {
                    BinaryOperator::And => a.expr.and(b.expr),
                    _ => a.expr.or(b.expr),
                };
                return Ok(truth_value(both));
            }
            BinaryOperator::Overlaps => return self.overlaps(left, right),
            _ => {}
        }
        // Comparisons do not associate: `a < b = c` means nothing.
        if is_comparison(op) && [left, right].into_iter().any(is_bare_comparison) {
            return fail(SqlState::SYNTAX_ERROR, format!("syntax error at or near \"{op}\""));
        }
        if let (Some(a), Some(b)) = (self.written_fields(left)?, self.written_fields(right)?) {
            return self.rows(&a, op, &b);
        }
        if let (Some(fields), Syntax::Subquery(query)) =
            (self.written_fields(left)?, unnested(right))
        {
            return self.row_and_query(&fields, op, query);
        }
        let name = operator_name(op)?;
        for (word, is_all) in [(ANY_OF, false), (ALL_OF, true)] {
            if let Some(array) = only_argument(right, word) {
                return self.over_elements(left, &name, array, is_all);
            }
        }
        let (a, b) = (self.expr(left)?, self.expr(right)?);
        self.operator(&name, a, b)
    }

    /// `(a, b) OVERLAPS (c, d)`, which is a call of a function.
    ///
    /// Source: `a_expr` in `src/backend/parser/gram.y`, PostgreSQL 14 to 18.
    fn overlaps(&mut self, left: &Syntax, right: &Syntax) -> Result<Typed> {
        let (Some(first), Some(second)) = (self.written_fields(left)?, self.written_fields(right)?)
        else {
            return unsupported("OVERLAPS of what is no row in parentheses");
        };
        for (side, fields) in [("left", &first), ("right", &second)] {
            if fields.len() != 2 {
                let message =
                    format!("wrong number of parameters on {side} side of OVERLAPS expression");
                return fail(SqlState::SYNTAX_ERROR, message);
            }
        }
        let all = first.iter().chain(&second).map(|field| self.expr(field));
        let arguments = all.collect::<Result<Vec<_>>>()?;
        self.call("overlaps", arguments)
    }

    /// `(a, b) = (c, d)` and its kin: the first pair that differs tells the order.
    pub(super) fn rows(
        &mut self,
        a: &[Syntax],
        op: &BinaryOperator,
        b: &[Syntax],
    ) -> Result<Typed> {
        if a.len() != b.len() {
            return fail(SqlState::SYNTAX_ERROR, UNEQUAL_ROWS);
        }
        if !matches!(op, BinaryOperator::Eq | BinaryOperator::NotEq) {
            return self.compare_rows(a, op, b);
        }
        let mut all: Option<Expr> = None;
        for (a, b) in a.iter().zip(b) {
            let pair = self.binary(a, op, b)?.expr;
            all = Some(match (all, op) {
                (None, _) => pair,
                (Some(before), BinaryOperator::Eq) => before.and(pair),
                (Some(before), BinaryOperator::NotEq) => before.or(pair),
                _ => return unsupported("the order of rows"),
            });
        }
        match (all, op) {
            (Some(all), BinaryOperator::Eq | BinaryOperator::NotEq) => Ok(truth_value(all)),
            _ => unsupported("the order of rows"),
        }
    }

    /// `a < c OR (a = c AND b < d)`, which is NULL wherever the first pair that tells has a NULL.
    fn compare_rows(&mut self, a: &[Syntax], op: &BinaryOperator, b: &[Syntax]) -> Result<Typed> {
        let mut pairs = Vec::with_capacity(a.len());
        for (a, b) in a.iter().zip(b) {
            pairs.push((self.expr(a)?, self.expr(b)?));
        }
        self.compare_fields(pairs, op)
    }

    /// The same of fields that are known, and for `=` and `<>` of all of them.
    pub(super) fn compare_fields(
        &mut self,
        pairs: Vec<(Typed, Typed)>,
        op: &BinaryOperator,
    ) -> Result<Typed> {
        if matches!(op, BinaryOperator::Eq | BinaryOperator::NotEq) || pairs.len() == 1 {
            let name = operator_name(op)?;
            let join = if *op == BinaryOperator::NotEq { Expr::or } else { Expr::and };
            let one = |(a, b)| Ok(self.operator(&name, a, b)?.expr);
            let all = pairs.into_iter().map(one).collect::<Result<Vec<Expr>>>()?;
            return match all.into_iter().reduce(join) {
                Some(all) => Ok(truth_value(all)),
                None => unsupported("the order of rows"),
            };
        }
        let strict = match op {
            BinaryOperator::Lt | BinaryOperator::LtEq => "<",
            BinaryOperator::Gt | BinaryOperator::GtEq => ">",
            _ => return unsupported(format!("the operator {op} of rows")),
        };
        let mut all: Option<Expr> = None;
        for (a, b) in pairs.into_iter().rev() {
            all = Some(match all {
                None => self.operator(&op.to_string(), a, b)?.expr,
                Some(after) => {
                    let before = self.operator(strict, a.clone(), b.clone())?.expr;
                    before.or(self.operator("=", a, b)?.expr.and(after))
                }
            });
        }
        Ok(truth_value(all.unwrap_or_else(|| lit(false))))
    }

    /// An operator between two expressions.
    pub(super) fn operator(&mut self, name: &str, a: Typed, b: Typed) -> Result<Typed> {
        let catalog = self.catalog.clone();
        let chosen = resolve::operator(&catalog, name, Some(a.ty.oid), b.ty.oid)?;
        self.call_of(&chosen, vec![a, b])
    }

    fn unary(&mut self, op: &UnaryOperator, syntax: &Syntax) -> Result<Typed> {
        let name = match op {
            UnaryOperator::Not => {
                let typed = self.expr(syntax)?;
                return Ok(truth_value(not(boolean(typed, "NOT", &self.catalog)?.expr)));
            }
            UnaryOperator::Minus => "-",
            UnaryOperator::Plus => "+",
            UnaryOperator::PGBitwiseNot => "~",
            UnaryOperator::PGSquareRoot => "|/",
            UnaryOperator::PGCubeRoot => "||/",
            UnaryOperator::PGAbs => "@",
            UnaryOperator::PGPrefixFactorial => "!!",
            UnaryOperator::Hash => "#",
            UnaryOperator::AtDashAt => "@-@",
            UnaryOperator::DoubleAt => "@@",
            UnaryOperator::QuestionDash => "?-",
            UnaryOperator::QuestionPipe => "?|",
            _ => return unsupported(format!("the operator {op}")),
        };
        if let ("-", Some(digits)) = (name, number_written(syntax)) {
            return self.number(&negated(&digits));
        }
        // A sign binds more tightly than ^, which the parser has the other way around.
        if let (Syntax::BinaryOp { left, op: BinaryOperator::PGExp, right }, "-" | "+") =
            (syntax, name)
        {
            let a = self.unary(op, left)?;
            let b = self.expr(right)?;
            return self.operator("^", a, b);
        }
        let typed = self.expr(syntax)?;
        if typed.ty.oid == UNKNOWN {
            if matches!(name, "-" | "~" | "#" | "@-@" | "@@" | "?-" | "?|") {
                let message = format!("operator is not unique: {name} unknown");
                return fail(SqlState("42725"), message);
            }
            let ty = PgType::new(if name == "!!" { oid::TSQUERY } else { oid::FLOAT8 });
            let typed = coerce(&self.catalog, typed, ty, CastContext::Implicit)?;
            return self.prefix(name, typed);
        }
        self.prefix(name, typed)
    }

    fn prefix(&mut self, name: &str, typed: Typed) -> Result<Typed> {
        let catalog = self.catalog.clone();
        let chosen = resolve::operator(&catalog, name, None, typed.ty.oid)?;
        self.call_of(&chosen, vec![typed])
    }

    fn pattern_match(
        &mut self,
        name: &str,
        expr: &Syntax,
        pattern: &Syntax,
        escape: Option<&Value>,
    ) -> Result<Typed> {
        if let (Some(array), None) = (elements_of_all(pattern), escape) {
            return self.over_elements(expr, name, array, true);
        }
        let (text, mut pattern) = (self.expr(expr)?, self.expr(pattern)?);
        if let Some(escape) = escape {
            let escape = self.literal(escape)?;
            pattern = self.call("like_escape", vec![pattern, escape])?;
        }
        self.operator(name, text, pattern)
    }

    fn similar_to(
        &mut self,
        negated: bool,
        expr: &Syntax,
        pattern: &Syntax,
        escape: Option<&Value>,
    ) -> Result<Typed> {
        let (text, pattern) = (self.expr(expr)?, self.expr(pattern)?);
        let mut arguments = vec![pattern];
        if let Some(escape) = escape {
            arguments.push(self.literal(escape)?);
        }
        let pattern = self.call("similar_to_escape", arguments)?;
        self.operator(if negated { "!~" } else { "~" }, text, pattern)
    }

    fn collate(&mut self, expr: &Syntax, name: &sqlparser::ast::ObjectName) -> Result<Typed> {
        let mut typed = self.expr(expr)?;
        // What type a literal is of is not said by its collation.
        let is_untyped = typed.literal.is_some() && typed.parameter.is_none();
        if typed.literal.is_some() && !is_untyped {
            typed = coerce(&self.catalog, typed, PgType::new(oid::TEXT), CastContext::Implicit)?;
        }
        if typed.ty.collation == Oid(0) && !is_untyped {
            let of = self.catalog.type_name(typed.ty.oid);
            let message = format!("collations are not supported by type {of}");
            return fail(SqlState::DATATYPE_MISMATCH, message);
        }
        let parts = super::from::name_parts(name)?;
        let last = parts.last().expect("a name has a part"); // infallible: of the parser
        let wanted = super::scope::folded(last);
        let Some(row) = self.catalog.collation_named(&wanted) else {
            let encoding =
                pagemill_types::encoding::encoding_name(self.catalog.database().row().encoding);
            let encoding = encoding.unwrap_or("this database");
            let message =
                format!("collation \"{wanted}\" for encoding \"{encoding}\" does not exist");
            return Err(at(StatementError::new(SqlState::UNDEFINED_OBJECT, message), last));
        };
        typed.ty.collation = row.oid;
        typed.is_collated = true;
        Ok(typed)
    }
}

/// A day and a moment are equal to their operator, but have no key in common.
pub(super) fn has_no_common_key(a: &Typed, b: &Typed) -> bool {
    let is_moment = |ty: Oid| [oid::DATE, oid::TIMESTAMP, oid::TIMESTAMPTZ].contains(&ty);
    is_moment(a.ty.oid) && is_moment(b.ty.oid) && a.ty.oid != b.ty.oid
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// The array of `LIKE ANY (…)`, which a query may give.
fn elements_of_any(pattern: &Syntax) -> Cow<'_, Syntax> {
    match unnested(pattern) {
        Syntax::Subquery(query) => Cow::Owned(array_of_query(query)),
        array => Cow::Borrowed(array),
    }
}

/// A comparison without parentheses around it.
fn is_bare_comparison(syntax: &Syntax) -> bool {
    matches!(syntax, Syntax::BinaryOp { op, .. } if is_comparison(op))
}

/// A boolean.
pub(super) fn truth_value(expr: Expr) -> Typed {
    Typed::new(expr, PgType::new(oid::BOOL), DataType::Boolean)
}

/// The digits of a number, with the minus before it, in parentheses or not.
///
/// Source: `doNegate` in `src/backend/parser/gram.y`, PostgreSQL 14 to 18.
fn number_written(syntax: &Syntax) -> Option<String> {
    match syntax {
        Syntax::Nested(inner) => number_written(inner),
        Syntax::UnaryOp { op: UnaryOperator::Minus, expr } => Some(negated(&number_written(expr)?)),
        Syntax::Value(value) => match &value.value {
            Value::Number(digits, _) => Some(digits.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn negated(digits: &str) -> String {
    digits.strip_prefix('-').map_or_else(|| format!("-{digits}"), str::to_owned)
}

const UNEQUAL_ROWS: &str = "unequal number of entries in row expressions";

/// The fields of `(a, b)` or `ROW(a, b)`, as they are written.
fn row_fields(syntax: &Syntax) -> Option<Vec<Syntax>> {
    let call = match syntax {
        Syntax::Tuple(fields) => return Some(fields.clone()),
        Syntax::Function(call) => call,
        _ => return None,
    };
    let FunctionArguments::List(list) = &call.args else { return None };
    if !is_row(call) || !list.clauses.is_empty() || list.duplicate_treatment.is_some() {
        return None;
    }
    let field = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(field)) => Some(field.clone()),
        FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(table)) => {
            Some(Syntax::QualifiedWildcard(table.clone(), AttachedToken::empty()))
        }
        _ => None,
    };
    list.args.iter().map(field).collect()
}

/// What is refused.
pub(super) const ROW_OF_TYPE: &str = "a row that is cast to a type, held against others";

/// True for `ROW(…)::type`, which the server takes for the row that is written out where it holds it against the items of IN.
pub(super) fn is_row_of_type(syntax: &Syntax) -> bool {
    matches!(unnested(syntax), Syntax::Cast { expr, .. } if row_fields(unnested(expr)).is_some())
}

pub(super) fn refuse_row_of_type(syntax: &Syntax) -> Result<()> {
    if is_row_of_type(syntax) { unsupported(ROW_OF_TYPE) } else { Ok(()) }
}

/// True for `ROW(…)`.
fn is_row(call: &Function) -> bool {
    matches!(&call.name.0[..], [ObjectNamePart::Identifier(name)]
        if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("row"))
}

/// The array of `ALL (…)`, which the parser takes for a function behind LIKE.
fn elements_of_all(syntax: &Syntax) -> Option<&Syntax> {
    let Syntax::Function(call) = syntax else { return None };
    let FunctionArguments::List(list) = &call.args else { return None };
    let is_all = matches!(&call.name.0[..], [ObjectNamePart::Identifier(name)]
        if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("all"));
    match &list.args[..] {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(array))]
            if is_all && list.clauses.is_empty() && list.duplicate_treatment.is_none() =>
        {
            Some(array)
        }
        _ => None,
    }
}

pub(super) fn unnested(syntax: &Syntax) -> &Syntax {
    match syntax {
        Syntax::Nested(inner) => unnested(inner),
        other => other,
    }
}

/// The operator's name in `pg_operator`.
pub(super) fn operator_name(op: &BinaryOperator) -> Result<String> {
    Ok(match op {
        BinaryOperator::NotEq => "<>".to_owned(),
        BinaryOperator::PGExp => "^".to_owned(),
        BinaryOperator::BitwiseXor | BinaryOperator::PGBitwiseXor => "#".to_owned(),
        BinaryOperator::Custom(name) => name.clone(),
        BinaryOperator::PGCustomBinaryOperator(parts) => match parts.last() {
            Some(last) => last.clone(),
            None => return fail(SqlState::SYNTAX_ERROR, "an operator without a name"),
        },
        BinaryOperator::Xor
        | BinaryOperator::DuckIntegerDivide
        | BinaryOperator::MyIntegerDivide
        | BinaryOperator::Spaceship
        | BinaryOperator::Match
        | BinaryOperator::Regexp
        | BinaryOperator::Assignment
        | BinaryOperator::Overlaps => return unsupported(format!("the operator {op}")),
        other => other.to_string(),
    })
}
