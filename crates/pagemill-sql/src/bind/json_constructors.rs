//! Forms of SQL/JSON that make documents: `JSON_OBJECT('a': 1)`, `JSON_ARRAY(1, 2)`, `JSON_ARRAYAGG(x)`, `JSON_OBJECTAGG(k: v)`,
//! `JSON_SCALAR(x)`, `JSON_SERIALIZE(x)`.
//!
//! They are of the grammar, so that names of functions do not come into it; before 16, and 17 for the last two, they are names as any
//! other. What the parser knows of them is answered, with RETURNING json, jsonb or text.
//!
//! Source: `json_aggregate_func` and `func_expr_common_subexpr` in `src/backend/parser/gram.y`,
//! `transformJsonObjectConstructor` and its kin in `parse_expr.c`, PostgreSQL 16 to 18.

use pagemill_types::builtin::oid;
use sqlparser::ast::{
    Expr as Syntax, Function, FunctionArg, FunctionArgExpr, FunctionArgOperator,
    FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident, JsonNullClause,
    ObjectName,
};

use super::Binder;
use super::scope::Allowed;
use crate::catalog::CastContext;
use crate::coerce::coerce;
use crate::error::{Result, SqlState, fail, unsupported};
use crate::functions::logic::json_constructors::Constructor;
use crate::functions::row_forms::json_of_row;
use crate::typed::Typed;
use crate::types::PgType;

/// What stands behind the arguments of a form.
struct Clauses {
    /// What `… ON NULL` says.
    leaves_out_nulls: Option<bool>,
    returning: Option<PgType>,
}

impl Clauses {
    /// The type of a document that is made of such values.
    fn document(&self, values: &[Typed]) -> PgType {
        let has_jsonb = values.iter().any(|value| value.ty.oid == oid::JSONB);
        let default = PgType::new(if has_jsonb { oid::JSONB } else { oid::JSON });
        self.returning.unwrap_or(default) // default: what the server takes without RETURNING
    }
}

impl Binder<'_> {
    /// A form that makes a document; `None` for a call of a function.
    pub(super) fn json_constructor(
        &mut self,
        name: &str,
        call: &Function,
    ) -> Result<Option<Typed>> {
        let FunctionArguments::List(list) = &call.args else { return Ok(None) };
        let major = self.catalog.database().cluster().version().major();
        let has_members = list.args.is_empty() || list.args.iter().any(|a| member(a).is_some());
        match name {
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

    fn clauses(&self, list: &FunctionArgumentList) -> Result<Clauses> {
        let mut found = Clauses { leaves_out_nulls: None, returning: None };
        for clause in &list.clauses {
            match clause {
                FunctionArgumentClause::JsonNullClause(clause) => {
                    found.leaves_out_nulls = Some(*clause == JsonNullClause::AbsentOnNull);
                }
                FunctionArgumentClause::JsonReturningClause(clause) => {
                    found.returning = Some(self.type_named(&clause.data_type)?);
                }
                FunctionArgumentClause::OrderBy(_) => {}
                _ => return unsupported("this form of SQL/JSON"),
            }
        }
        match found.returning.map(|ty| ty.oid) {
            None | Some(oid::JSON | oid::JSONB | oid::TEXT) => Ok(found),
            Some(other) => {
                let name = self.catalog.type_name(other);
                unsupported(format!("RETURNING {name} of SQL/JSON"))
            }
        }
    }

    /// A document of a form, made as a json unless it is to be a jsonb, then brought to its type.
    fn returned(&self, typed: Typed, returning: PgType) -> Result<Option<Typed>> {
        match returning.oid == typed.ty.oid {
            true => Ok(Some(typed)),
            false => coerce(&self.catalog, typed, returning, CastContext::Explicit).map(Some),
        }
    }

    /// A value within a document.
    fn json_value(&mut self, syntax: &Syntax) -> Result<Typed> {
        let typed = self.expr(syntax)?;
        if typed.is_row() {
            return Ok(json_of_row(&self.catalog, &typed, false));
        }
        match typed.literal.is_some() || typed.parameter.is_some() {
            true => coerce(&self.catalog, typed, PgType::new(oid::TEXT), CastContext::Implicit),
            false => Ok(typed),
        }
    }

    fn constructed(
        &mut self,
        (is_object, leaves_out_nulls): (bool, bool),
        returning: PgType,
        arguments: &[Typed],
    ) -> Result<Option<Typed>> {
        let made = if returning.oid == oid::JSONB { oid::JSONB } else { oid::JSON };
        let result = PgType::new(made);
        let typed =
            Constructor { is_object, leaves_out_nulls, result }.of(&self.catalog, arguments)?;
        self.returned(typed, returning)
    }

    fn json_object(
        &mut self,
        call: &Function,
        list: &FunctionArgumentList,
    ) -> Result<Option<Typed>> {
        refuse_extras(call, list)?;
        let mut arguments = Vec::with_capacity(list.args.len() * 2);
        for argument in &list.args {
            let Some((name, value)) = member(argument) else {
                return fail(SqlState::SYNTAX_ERROR, format!("syntax error at {argument}"));
            };
            check_name(argument, name)?;
            arguments.push(self.json_value(name)?);
            arguments.push(self.json_value(value)?);
        }
        let clauses = self.clauses(list)?;
        let returning = clauses.document(&arguments);
        let leaves_out = clauses.leaves_out_nulls.unwrap_or(false);
        self.constructed((true, leaves_out), returning, &arguments)
    }

    fn json_array(
        &mut self,
        call: &Function,
        list: &FunctionArgumentList,
    ) -> Result<Option<Typed>> {
        refuse_extras(call, list)?;
        let mut arguments = Vec::with_capacity(list.args.len());
        for argument in &list.args {
            arguments.push(self.json_value(plain(argument)?)?);
        }
        let clauses = self.clauses(list)?;
        let returning = clauses.document(&arguments);
        let leaves_out = clauses.leaves_out_nulls.unwrap_or(true);
        self.constructed((false, leaves_out), returning, &arguments)
    }

    /// What an aggregate's arguments are.
    fn aggregated_values(&mut self, arguments: &[FunctionArg]) -> Result<Vec<Typed>> {
        let before = self.level().allowed;
        self.level().allowed = Allowed::PlainIn("arguments of aggregate functions");
        let mut bound = Ok(Vec::new());
        for argument in arguments {
            let value = match member(argument) {
                Some((_, value)) => self.json_value(value),
                None => plain(argument).and_then(|value| self.json_value(value)),
            };
            bound = bound.and_then(|mut all: Vec<Typed>| {
                all.push(value?);
                Ok(all)
            });
        }
        self.level().allowed = before;
        bound
    }

    /// One of the aggregates that functions are, too.
    fn json_aggregate(
        &mut self,
        name: &str,
        call: &Function,
        list: &FunctionArgumentList,
    ) -> Result<Option<Typed>> {
        let clauses = self.clauses(list)?;
        let returning = match clauses.returning {
            Some(named) => named,
            // What the arguments are decides.
            None => clauses.document(&self.aggregated_values(&list.args)?),
        };
        let prefix = if returning.oid == oid::JSONB { "jsonb" } else { "json" };
        let (args, aggregate, leaves_out) = match (name, &list.args[..]) {
            ("json_objectagg", [argument]) => match member(argument) {
                Some((name, value)) => {
                    check_name(argument, name)?;
                    let argument = |syntax: &Syntax| {
                        FunctionArg::Unnamed(FunctionArgExpr::Expr(syntax.clone()))
                    };
                    (vec![argument(name), argument(value)], "object_agg", false)
                }
                None => return fail(SqlState::SYNTAX_ERROR, format!("syntax error at {call}")),
            },
            ("json_arrayagg", [_]) => (list.args.clone(), "agg", true),
            _ => return fail(SqlState::SYNTAX_ERROR, format!("syntax error at {call}")),
        };
        let strict = if clauses.leaves_out_nulls.unwrap_or(leaves_out) { "_strict" } else { "" };
        let aggregate = Ident::new(format!("{prefix}_{aggregate}{strict}"));
        let is_order =
            |clause: &&FunctionArgumentClause| matches!(clause, FunctionArgumentClause::OrderBy(_));
        let list = FunctionArgumentList {
            duplicate_treatment: list.duplicate_treatment,
            args,
            clauses: list.clauses.iter().filter(is_order).cloned().collect(),
        };
        let name = ObjectName::from(vec![Ident::new("pg_catalog"), aggregate]);
        let call = Function { name, args: FunctionArguments::List(list), ..call.clone() };
        let typed = self.function(&call)?;
        self.returned(typed, returning)
    }

    fn json_scalar(
        &mut self,
        call: &Function,
        list: &FunctionArgumentList,
    ) -> Result<Option<Typed>> {
        refuse_extras(call, list)?;
        let [argument] = &list.args[..] else {
            return fail(SqlState::SYNTAX_ERROR, format!("syntax error at {call}"));
        };
        let typed = self.json_value(plain(argument)?)?;
        let base = self.catalog.base_type(typed.ty.oid, -1).0;
        let is_scalar = self
            .catalog
            .type_row(base)
            .is_some_and(|row| matches!(row.kind, b'b' | b'e') && !row.is_array());
        match is_scalar && list.clauses.is_empty() {
            true => self.call("to_json", vec![typed]).map(Some),
            false => unsupported("this form of JSON_SCALAR"),
        }
    }

    fn json_serialize(
        &mut self,
        call: &Function,
        list: &FunctionArgumentList,
    ) -> Result<Option<Typed>> {
        refuse_extras(call, list)?;
        let clauses = self.clauses(list)?;
        let [argument] = &list.args[..] else {
            return fail(SqlState::SYNTAX_ERROR, format!("syntax error at {call}"));
        };
        let mut typed = self.expr(plain(argument)?)?;
        if typed.literal.is_some() {
            let json = PgType::new(oid::JSON);
            typed = coerce(&self.catalog, typed, json, CastContext::Implicit)?;
        }
        let returning = clauses.returning.unwrap_or(PgType::new(oid::TEXT)); // default: what the server takes without RETURNING
        match (typed.ty.oid, returning.oid, clauses.leaves_out_nulls) {
            // Of a jsonb servers give its inner form for a text.
            (oid::JSON, oid::TEXT, None) => self.returned(typed, returning),
            _ => unsupported("this form of JSON_SERIALIZE"),
        }
    }
}

/// `name: value` and `name VALUE value`.
fn member(argument: &FunctionArg) -> Option<(&Syntax, &Syntax)> {
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
fn check_name(argument: &FunctionArg, name: &Syntax) -> Result<()> {
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

fn plain(argument: &FunctionArg) -> Result<&Syntax> {
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
