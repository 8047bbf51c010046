//! Forms of SQL/JSON that make documents: `JSON_OBJECT('a': 1)`, `JSON_ARRAY(1, 2)`, `JSON_SCALAR(x)`, `JSON_SERIALIZE(x)`.
//!
//! They are of the grammar, so that names of functions do not come into it; before 16, and 17 for the last two, they are names as any
//! other, and their clauses are no syntax. What the clauses say is in `json_output.rs`, the aggregates are in `json_aggregates.rs`.
//!
//! Source: `func_expr_common_subexpr` in `src/backend/parser/gram.y`, `transformJsonObjectConstructor` and its kin in
//! `parse_expr.c`, PostgreSQL 16 to 18.

use pagemill_types::builtin::oid;
use sqlparser::ast::{
    Expr as Syntax, Function, FunctionArg, FunctionArgExpr, FunctionArgOperator,
    FunctionArgumentClause, FunctionArgumentList, FunctionArguments,
};

use super::Binder;
use super::json_aggregates::{FORMATTED, query_of_array};
use super::json_clauses::Clause;
use super::json_output::{OF_ARRAYS, OF_OBJECTS, Output, Said, parted};
use super::json_queries::first_clause;
use crate::error::{Result, SqlState, StatementError, fail, unsupported};
use crate::functions::logic::json_constructors::Constructor;
use crate::typed::Typed;
use crate::types::PgType;

impl Binder<'_> {
    /// A form that makes a document; `None` for a call of a function.
    pub(super) fn json_constructor(
        &mut self,
        name: &str,
        call: &Function,
    ) -> Result<Option<Typed>> {
        let FunctionArguments::List(list) = &call.args else { return Ok(None) };
        let major = self.catalog.database().cluster().version().major();
        let is_member = |a: &FunctionArg| member(a).is_some() || Clause::of(a).is_some();
        let has_members = list.args.is_empty() || list.args.iter().any(is_member);
        let since = match name {
            "json_object" | "json_array" | "json_arrayagg" | "json_objectagg" => 16,
            "json_serialize" => 17,
            _ => 0,
        };
        if let (true, Some(clause)) = (major < since, first_clause(&list.args)) {
            return Err(clause.syntax_error());
        }
        match name {
            FORMATTED => match &list.args[..] {
                [argument] => self.json_value(plain(argument)?).map(Some),
                _ => Ok(None),
            },
            "json_object" if major >= 16 && has_members => self.json_object(call, list),
            "json_array" if major >= 16 => self.json_array(call, list),
            "json_arrayagg" | "json_objectagg" if major >= 16 => {
                self.json_aggregate(name, call, list)
            }
            "json" => self.json_parse(call, list),
            "json_scalar" if major >= 17 => self.json_scalar(call, list),
            "json_exists" | "json_value" | "json_query" => self.json_search(name, call, list),
            "json_serialize" if major >= 17 => self.json_serialize(call, list),
            _ => Ok(None),
        }
    }

    fn constructed(
        &mut self,
        is_object: bool,
        output: &Output<'_>,
        arguments: &[Typed],
    ) -> Result<Option<Typed>> {
        let returning = self.document_type(output, arguments)?;
        let made = if returning.oid == oid::JSONB { oid::JSONB } else { oid::JSON };
        let constructor = Constructor {
            is_object,
            // Arrays leave them out unless they are asked for.
            leaves_out_nulls: output.leaves_out_nulls.unwrap_or(!is_object),
            is_unique: output.is_unique,
            result: PgType::new(made),
        };
        let typed = constructor.of(&self.catalog, arguments)?;
        self.returned(typed, returning)
    }

    fn json_object(
        &mut self,
        call: &Function,
        list: &FunctionArgumentList,
    ) -> Result<Option<Typed>> {
        refuse_extras(call, list)?;
        let (values, clauses) = parted(list)?;
        let mut arguments = Vec::with_capacity(values.len() * 2);
        for argument in values {
            let Some((name, value)) = member(argument) else {
                return fail(SqlState::SYNTAX_ERROR, format!("syntax error at {argument}"));
            };
            check_name(argument, name)?;
            arguments.push(self.json_value(name)?);
            arguments.push(self.json_value(value)?);
        }
        let output = match values {
            [] => Output::read_alone(clauses)?,
            _ => Output::read(clauses, &OF_OBJECTS)?,
        };
        self.constructed(true, &output, &arguments)
    }

    fn json_array(
        &mut self,
        call: &Function,
        list: &FunctionArgumentList,
    ) -> Result<Option<Typed>> {
        refuse_extras(call, list)?;
        if let Some(query) = query_of_array(list) {
            return self.json_array_of_query(query).map(Some);
        }
        let (values, clauses) = parted(list)?;
        let mut arguments = Vec::with_capacity(values.len());
        for argument in values {
            arguments.push(self.json_value(plain(argument)?)?);
        }
        let output = match values {
            [] => Output::read_alone(clauses)?,
            _ => Output::read(clauses, &OF_ARRAYS)?,
        };
        self.constructed(false, &output, &arguments)
    }

    fn json_scalar(
        &mut self,
        call: &Function,
        list: &FunctionArgumentList,
    ) -> Result<Option<Typed>> {
        refuse_extras(call, list)?;
        let ([argument], true) = (&list.args[..], list.clauses.is_empty()) else {
            return fail(SqlState::SYNTAX_ERROR, format!("syntax error at {call}"));
        };
        let typed = self.json_value(plain(argument)?)?;
        match typed.ty.oid {
            // A row is its document by now.
            oid::JSON => Ok(Some(typed)),
            _ => self.call("to_json", vec![typed]).map(Some),
        }
    }

    fn json_serialize(
        &mut self,
        call: &Function,
        list: &FunctionArgumentList,
    ) -> Result<Option<Typed>> {
        refuse_extras(call, list)?;
        let (values, clauses) = parted(list)?;
        let [argument] = values else {
            return fail(SqlState::SYNTAX_ERROR, format!("syntax error at {call}"));
        };
        let typed = self.json_document_of(plain(argument)?, "implicit")?;
        let output = Output::read(clauses, &[Said::Returning])?;
        let returning = match output.returning {
            Some(_) => self.document_type(&output, &[])?,
            None => PgType::new(oid::TEXT), // what the server takes without RETURNING
        };
        if returning.oid != oid::BYTEA && !self.is_string(returning) {
            let name = self.catalog.type_name(returning.oid);
            let message = format!("cannot use type {name} in RETURNING clause of JSON_SERIALIZE()");
            let error = StatementError::new(SqlState::DATATYPE_MISMATCH, message);
            return Err(error.with_hint("Try returning a string type or bytea.").into());
        }
        match typed.ty.oid {
            oid::JSON => self.returned(typed, returning),
            // Of a jsonb servers give its inner form for a text.
            _ => unsupported("this form of JSON_SERIALIZE"),
        }
    }
}

/// `name: value` and `name VALUE value`.
pub(super) fn member(argument: &FunctionArg) -> Option<(&Syntax, &Syntax)> {
    match argument {
        FunctionArg::ExprNamed {
            name,
            arg: FunctionArgExpr::Expr(value),
            operator: FunctionArgOperator::Colon | FunctionArgOperator::Value,
        } => Some((name, value)),
        _ => None,
    }
}

/// Before VALUE servers take no operators and no casts outside of parentheses.
pub(super) fn check_name(argument: &FunctionArg, name: &Syntax) -> Result<()> {
    let is_before_value =
        matches!(argument, FunctionArg::ExprNamed { operator: FunctionArgOperator::Value, .. });
    let is_simple = matches!(
        name,
        Syntax::Value(_)
            | Syntax::TypedString(_)
            | Syntax::Identifier(_)
            | Syntax::CompoundIdentifier(_)
            | Syntax::Nested(_)
            | Syntax::Case { .. }
            | Syntax::Function(_)
            | Syntax::Subquery(_)
    );
    match is_before_value && !is_simple {
        true => unsupported("this form of a name before VALUE"),
        false => Ok(()),
    }
}

pub(super) fn plain(argument: &FunctionArg) -> Result<&Syntax> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(syntax)) => Ok(syntax),
        other => fail(SqlState::SYNTAX_ERROR, format!("syntax error at {other}")),
    }
}

/// What only aggregates may have.
pub(super) fn refuse_extras(call: &Function, list: &FunctionArgumentList) -> Result<()> {
    let is_order =
        |clause: &FunctionArgumentClause| matches!(clause, FunctionArgumentClause::OrderBy(_));
    let has_extras = list.duplicate_treatment.is_some()
        || list.clauses.iter().any(is_order)
        || call.filter.is_some()
        || call.over.is_some()
        || !call.within_group.is_empty();
    match has_extras {
        true => fail(SqlState::SYNTAX_ERROR, format!("syntax error at {}", call.name)),
        false => Ok(()),
    }
}
