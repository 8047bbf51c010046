//! Whether a text is a document: `t IS JSON OBJECT WITH UNIQUE KEYS`, and `JSON(t WITH UNIQUE KEYS)`, which is the text as a json.
//!
//! The one is of the grammar from 16 on, the other from 17; before, JSON is a name as any other, and their clauses are no syntax.
//!
//! Source: `transformJsonIsPredicate`, `transformJsonParseArg`, `transformJsonParseExpr` in `src/backend/parser/parse_expr.c`,
//! PostgreSQL 16 to 18.

use datafusion::logical_expr::not;
use pagemill_types::builtin::oid;
use sqlparser::ast::{Expr as Syntax, Function, FunctionArgumentList};

use super::Binder;
use super::json_clauses::{Clause, no_syntax, plain};
use super::json_constructors::refuse_extras;
use super::json_queries::{first_clause, formatted, is_quoted};
use crate::catalog::CastContext;
use crate::coerce::coerce;
use crate::error::{Result, SqlState, fail};
use crate::functions::logic::json_queries;
use crate::typed::Typed;
use crate::types::{PgType, UNKNOWN};

impl Binder<'_> {
    /// `IS JSON`, which this clause stands for.
    pub(super) fn is_json(
        &mut self,
        syntax: &Syntax,
        said: Clause<'_>,
        is_negated: bool,
    ) -> Result<Typed> {
        if self.catalog.database().cluster().version().major() < 16 {
            return Err(said.syntax_error());
        }
        let mut typed = self.expr(syntax)?;
        if typed.is_row() {
            typed = Typed { row: None, ..typed };
        }
        if typed.ty.oid == oid::BYTEA {
            typed = json_queries::text_of_bytes(&self.catalog, &typed);
        } else if typed.ty.oid == UNKNOWN || self.is_string(typed.ty) {
            typed = coerce(&self.catalog, typed, PgType::new(oid::TEXT), CastContext::Implicit)?;
        }
        if !matches!(typed.ty.oid, oid::TEXT | oid::JSON | oid::JSONB) {
            let name = self.catalog.type_name(typed.ty.oid);
            let message = format!("cannot use type {name} in IS JSON predicate");
            return fail(SqlState::DATATYPE_MISMATCH, message);
        }
        let words = (0..said.arguments.len()).filter_map(|at| said.text(at));
        let words: Vec<String> = words.map(str::to_owned).collect();
        let test = json_queries::is_json(&self.catalog, &typed, &words);
        Ok(match is_negated {
            true => test.with_expr(not(test.expr.clone())),
            false => test,
        })
    }

    /// JSON(…), which is a text as a json; `None` for a call of a function.
    pub(super) fn json_parse(
        &mut self,
        call: &Function,
        list: &FunctionArgumentList,
    ) -> Result<Option<Typed>> {
        if self.catalog.database().cluster().version().major() < 17 {
            return match first_clause(&list.args) {
                Some(clause) => Err(clause.syntax_error()),
                None => Ok(None),
            };
        }
        if is_quoted(call) {
            return Ok(None);
        }
        refuse_extras(call, list)?;
        let (Some(document), true) = (list.args.first().and_then(plain), list.clauses.is_empty())
        else {
            return Err(no_syntax(")"));
        };
        let is_unique = match list.args.get(1) {
            None => false,
            Some(argument) => match Clause::of(argument) {
                Some(clause) => clause.word().eq_ignore_ascii_case("with"),
                None => return Err(no_syntax(",")),
            },
        };
        let (syntax, encoding, _) = formatted(document);
        let mut typed = self.expr(syntax)?;
        if typed.ty.oid == UNKNOWN {
            typed = coerce(&self.catalog, typed, PgType::new(oid::TEXT), CastContext::Implicit)?;
        }
        if is_unique && encoding.is_some() && typed.ty.oid != oid::BYTEA {
            let message = "cannot use JSON FORMAT ENCODING clause for non-bytea input types";
            return fail(SqlState::FEATURE_NOT_SUPPORTED, message);
        }
        typed = self.decoded(typed, encoding)?;
        if !is_unique {
            let json = PgType::new(oid::JSON);
            return coerce(&self.catalog, typed, json, CastContext::Explicit).map(Some);
        }
        if !self.is_string(typed.ty) {
            let message = "cannot use non-string types with WITH UNIQUE KEYS clause";
            return fail(SqlState::DATATYPE_MISMATCH, message);
        }
        let text = coerce(&self.catalog, typed, PgType::new(oid::TEXT), CastContext::Implicit)?;
        Ok(Some(json_queries::unique_json(&self.catalog, &text)))
    }
}
