//! What ON EMPTY and ON ERROR say in forms of SQL/JSON.
//!
//! Invariant: a DEFAULT is a constant, or calls of functions and operators on such; it refers to no column.
//!
//! Source: `transformJsonBehavior`, `ValidJsonBehaviorDefaultExpr`, `transformJsonFuncExpr` in `src/backend/parser/parse_expr.c`,
//! PostgreSQL 17 and 18.

use std::sync::Arc;

use arrow::datatypes::Schema;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::DFSchema;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::create_physical_expr;
use pagemill_format::Oid;
use pagemill_types::builtin::oid;
use sqlparser::ast::{
    BinaryOperator, Expr as Syntax, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    UnaryOperator,
};

use super::Binder;
use super::columns::last_name;
use super::json_clauses::Said;
use super::json_queries::Form;
use crate::catalog::CastContext;
use crate::coerce::coerce;
use crate::error::{Error, Result, SqlState, StatementError, fail, unsupported};
use crate::functions::logic::json_queries::{Behavior, Operation, Says};
use crate::typed::Typed;
use crate::types::PgType;

/// The search that behaviors are of.
pub(super) struct Searched<'s> {
    pub(super) result: PgType,
    pub(super) is_domain: bool,
    pub(super) is_integer: bool,
    /// What DEFAULT says is added to them.
    pub(super) arguments: &'s mut Vec<Typed>,
}

impl Form<'_> {
    /// Behaviors that the form does not have.
    pub(super) fn check_behaviors(&self) -> Result<()> {
        for (said, clause) in
            [(&self.clauses.on_empty, "ON EMPTY"), (&self.clauses.on_error, "ON ERROR")]
        {
            let Some(said) = said else { continue };
            let is_known = matches!(
                (self.operation, said.shown()),
                (_, "ERROR")
                    | (Operation::Exists, "TRUE" | "FALSE" | "UNKNOWN")
                    | (Operation::Query(_), "NULL" | "EMPTY ARRAY" | "EMPTY OBJECT" | "DEFAULT")
                    | (Operation::Value, "NULL" | "DEFAULT")
            );
            if !is_known {
                let of = match self.column {
                    Some(column) => format!(" for column \"{column}\""),
                    None => String::new(),
                };
                let message = format!("invalid {clause} behavior{of}");
                return Err(said.clause.error(SqlState::SYNTAX_ERROR, message));
            }
        }
        Ok(())
    }
}

impl Binder<'_> {
    pub(super) fn on_empty(
        &mut self,
        form: &Form<'_>,
        searched: &mut Searched<'_>,
    ) -> Result<Behavior> {
        match &form.clauses.on_empty {
            Some(said) => self.behavior(said, searched),
            None => Ok(Behavior::NULL),
        }
    }

    pub(super) fn on_error(
        &mut self,
        form: &Form<'_>,
        searched: &mut Searched<'_>,
    ) -> Result<Behavior> {
        match (&form.clauses.on_error, form.operation) {
            (Some(said), _) => self.behavior(said, searched),
            (None, Operation::Exists) => {
                Ok(Behavior { shown: "FALSE", says: says_truth(false, searched) })
            }
            (None, _) => Ok(Behavior::NULL),
        }
    }

    fn behavior(&mut self, said: &Said<'_>, searched: &mut Searched<'_>) -> Result<Behavior> {
        let shown = said.shown();
        let says = match shown {
            "ERROR" => Says::Error,
            "TRUE" => says_truth(true, searched),
            "FALSE" => says_truth(false, searched),
            "EMPTY ARRAY" => Says::Document("[]"),
            "EMPTY OBJECT" => Says::Document("{}"),
            "DEFAULT" => match said.default {
                Some(syntax) => self.default_value(syntax, searched)?,
                None => return Err(said.clause.syntax_error()),
            },
            _ => Says::Null,
        };
        Ok(Behavior { shown, says })
    }

    fn default_value(&mut self, syntax: &Syntax, searched: &mut Searched<'_>) -> Result<Says> {
        let is_good = self.is_default(syntax);
        let has_rows = is_good && self.has_rows(syntax);
        let wrong = |message: &str| fail(SqlState::DATATYPE_MISMATCH, message);
        if !is_good {
            // Names that are nobody's are told first.
            self.expr(syntax)?;
            return wrong(
                "can only specify a constant, non-aggregate function, or operator expression for DEFAULT",
            );
        }
        if has_rows {
            return wrong("DEFAULT expression must not return a set");
        }
        if let Some(says) = self.cast_to_domain(syntax, searched)? {
            return Ok(says);
        }
        let typed = self.expr(syntax)?;
        let refers = |expr: &Expr| !expr.column_refs().is_empty() || expr.contains_outer();
        if refers(&typed.expr) {
            return wrong("DEFAULT expression must not contain column references");
        }
        if typed.parameter.is_some() || typed.is_row() {
            return unsupported("DEFAULT of a parameter or of a row");
        }
        if typed.literal.is_none() || typed.is_collated {
            self.check_collation(syntax, &typed, searched.result)?;
        }
        self.said_value(typed, searched)
    }

    /// A constant that is cast to the domain itself: whether that accepts it is an error of the behavior.
    fn cast_to_domain(
        &mut self,
        syntax: &Syntax,
        searched: &mut Searched<'_>,
    ) -> Result<Option<Says>> {
        let (true, Syntax::Cast { expr, data_type, format: None, .. }) =
            (searched.is_domain, syntax)
        else {
            return Ok(None);
        };
        if self.type_named(data_type)? != searched.result || !matches!(**expr, Syntax::Value(_)) {
            return Ok(None);
        }
        let typed = self.expr(expr)?;
        if typed.literal == Some(None) {
            return Ok(Some(Says::Null));
        }
        let (at, base) = (searched.arguments.len(), self.base_of(searched.result));
        let value = coerce(&self.catalog, typed, base, CastContext::Explicit)?;
        searched.arguments.push(value);
        Ok(Some(Says::Argument(at, base)))
    }

    /// The type under a domain, with what the domain says of it.
    fn base_of(&self, domain: PgType) -> PgType {
        let (base, modifier) = self.catalog.base_type(domain.oid, domain.modifier);
        PgType { collation: domain.collation, ..PgType::new(base).with_modifier(modifier) }
    }

    fn said_value(&mut self, typed: Typed, searched: &mut Searched<'_>) -> Result<Says> {
        let result = searched.result;
        let is_same = typed.ty.oid == result.oid && result.modifier < 0;
        let at = searched.arguments.len();
        if typed.literal == Some(None) {
            return Ok(Says::Null);
        }
        if typed.ty.oid == oid::JSONB && !is_same {
            searched.arguments.push(typed);
            return Ok(Says::DocumentArgument(at));
        }
        // The server takes any truth for false then.
        if typed.ty.oid == oid::BOOL && !is_same && !searched.is_integer {
            return Ok(Says::Document("false"));
        }
        let base = if searched.is_domain { self.base_of(result) } else { result };
        let is_text = self
            .catalog
            .type_row(result.oid)
            .is_some_and(|row| matches!(row.category, b'S' | b'V'));
        let context = if is_text { CastContext::Assignment } else { CastContext::Explicit };
        let from = self.catalog.type_name(typed.ty.oid);
        let value = coerce(&self.catalog, typed, base, context);
        let value = value.map_err(|error| self.no_cast(error, &from, result))?;
        if !self.fails_at_once(result) && !is_computed(&value.expr) {
            return unsupported(format!(
                "DEFAULT that is no value of type {}",
                self.catalog.type_name(result.oid)
            ));
        }
        searched.arguments.push(value);
        Ok(Says::Argument(at, base))
    }

    /// True for a type whose values are read before the statement runs. To other types a server comes where the behavior is for.
    fn fails_at_once(&self, result: PgType) -> bool {
        matches!(
            self.catalog.base_type(result.oid, -1).0,
            oid::BOOL
                | oid::INT2
                | oid::INT4
                | oid::INT8
                | oid::FLOAT4
                | oid::FLOAT8
                | oid::NUMERIC
        )
    }

    /// A text in an order of its own is none of the result's. What its parts say of it is not known to the server then.
    fn check_collation(&self, syntax: &Syntax, typed: &Typed, result: PgType) -> Result<()> {
        let of_type =
            |ty: PgType| self.catalog.type_row(ty.oid).map_or(Oid(0), |row| row.collation); // default: none
        let own = match collated(syntax) {
            Collated::Nowhere => of_type(typed.ty),
            Collated::Here => typed.ty.collation,
            Collated::Within => return unsupported("DEFAULT of a cast of COLLATE"),
        };
        let wanted = of_type(result);
        match own.0 == 0 || wanted.0 == 0 || own == wanted {
            true => Ok(()),
            false => {
                let message = "collation of DEFAULT expression conflicts with RETURNING clause";
                fail(SqlState("42P21"), message)
            }
        }
    }

    #[cold]
    fn no_cast(&self, error: Error, from: &str, result: PgType) -> Error {
        match error {
            Error::Statement(error) if error.state == SqlState::CANNOT_COERCE => {
                let to = self.catalog.type_name(result.oid);
                let message = format!("cannot cast behavior expression of type {from} to {to}");
                let hint = format!("You will need to explicitly cast the expression to type {to}.");
                StatementError::new(SqlState::CANNOT_COERCE, message).with_hint(hint).into()
            }
            other => other,
        }
    }

    /// True for what the server allows as DEFAULT, by its form.
    fn is_default(&self, syntax: &Syntax) -> bool {
        match syntax {
            Syntax::Nested(inner)
            | Syntax::Cast { expr: inner, .. }
            | Syntax::Collate { expr: inner, .. } => self.is_default(inner),
            Syntax::UnaryOp { op, .. } => !matches!(op, UnaryOperator::Not),
            Syntax::BinaryOp { op, .. } => !matches!(op, BinaryOperator::And | BinaryOperator::Or),
            Syntax::Function(call) => self.is_default_call(call),
            Syntax::Value(_)
            | Syntax::TypedString(_)
            | Syntax::Interval(_)
            | Syntax::Like { .. }
            | Syntax::ILike { .. }
            | Syntax::Extract { .. }
            | Syntax::Substring { .. }
            | Syntax::Trim { .. }
            | Syntax::Overlay { .. }
            | Syntax::AtTimeZone { .. } => true,
            _ => false,
        }
    }

    fn is_default_call(&self, call: &Function) -> bool {
        const OTHERS: [&str; 8] = [
            "coalesce",
            "greatest",
            "least",
            "nullif",
            "row",
            "json_value",
            "json_query",
            "json_exists",
        ];
        let name = last_name(&call.name);
        let is_plain = |argument: &FunctionArg| {
            matches!(
                argument,
                FunctionArg::Unnamed(FunctionArgExpr::Expr(_)) | FunctionArg::Named { .. }
            )
        };
        match &call.args {
            FunctionArguments::List(list) => {
                list.args.iter().all(is_plain)
                    && call.over.is_none()
                    && !OTHERS.contains(&name.as_str())
                    && !self.is_aggregate(&name)
            }
            _ => false,
        }
    }
}

/// Where COLLATE stands in an expression.
enum Collated {
    Nowhere,
    Here,
    /// Within a cast.
    Within,
}

fn collated(syntax: &Syntax) -> Collated {
    match syntax {
        Syntax::Nested(inner) => collated(inner),
        Syntax::Collate { .. } => Collated::Here,
        Syntax::Cast { expr, .. } => match collated(expr) {
            Collated::Nowhere => Collated::Nowhere,
            _ => Collated::Within,
        },
        _ => Collated::Nowhere,
    }
}

/// True for an expression without columns that has a value and no error.
fn is_computed(expr: &Expr) -> bool {
    let (props, context) = (ExecutionProps::new(), PhysicalPlanningContext::default());
    let computed = create_physical_expr(expr, &DFSchema::empty(), &props, &context);
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options);
    match (computed, row) {
        (Ok(computed), Ok(row)) => computed.evaluate(&row).is_ok(),
        _ => false,
    }
}

fn says_truth(truth: bool, searched: &Searched<'_>) -> Says {
    match (searched.result.oid == oid::BOOL, searched.is_integer) {
        (true, _) => Says::Text(if truth { "true" } else { "false" }),
        (_, true) => Says::Text(if truth { "1" } else { "0" }),
        _ => Says::Document(if truth { "true" } else { "false" }),
    }
}
