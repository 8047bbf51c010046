//! Aggregates of SQL/JSON: `JSON_ARRAYAGG(x)`, `JSON_OBJECTAGG(k: v)`, and `JSON_ARRAY(query)`, which is the first of them over what the query
//! gives.
//!
//! They are the aggregates of which they say what becomes of NULLs and of names that come twice: `json_agg`,
//! `jsonb_object_agg_unique_strict` and their kin.
//!
//! Source: `transformJsonObjectAgg`, `transformJsonArrayAgg`, `transformJsonArrayQueryConstructor` in
//! `src/backend/parser/parse_expr.c`, PostgreSQL 16 to 18.

use sqlparser::ast::{
    Expr as Syntax, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, Query, SetExpr, TableFactor,
};

use super::Binder;
use super::json_clauses::Clause;
use super::json_constructors::{check_name, member, plain};
use super::json_output::{OF_ARRAYS, OF_OBJECTS, Output, parted};
use super::json_queries::formatted;
use super::scope::Allowed;
use crate::error::{Result, SqlState, fail, unsupported};
use crate::typed::Typed;
use crate::types::PgType;
use pagemill_types::builtin::oid;

/// What stands for the function whose value is its argument with its format; no statement can name it.
pub(super) const FORMATTED: &str = "\0format";

/// The query of `JSON_ARRAY(query)`, as [`crate::json_spelling`] makes it.
pub(super) fn query_of_array(list: &FunctionArgumentList) -> Option<&Query> {
    let [argument] = &list.args[..] else { return None };
    let clause = Clause::of(argument)?;
    match clause.arguments {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(Syntax::Subquery(query)))]
            if !clause.word().eq_ignore_ascii_case("format") =>
        {
            Some(query)
        }
        _ => None,
    }
}

/// What the aggregate is over.
fn source_of(query: &Query) -> Option<&Query> {
    let SetExpr::Select(select) = &*query.body else { return None };
    match &select.from.first()?.relation {
        TableFactor::Derived { subquery, .. } => Some(subquery),
        _ => None,
    }
}

/// A value with its format as a call that [`Binder::json_constructor`] knows.
fn argument_of(syntax: &Syntax) -> FunctionArg {
    let unnamed = |syntax| FunctionArg::Unnamed(FunctionArgExpr::Expr(syntax));
    if !formatted(syntax).2 {
        return unnamed(syntax.clone());
    }
    unnamed(Syntax::Function(Function {
        name: ObjectName::from(vec![Ident::new(FORMATTED)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![unnamed(syntax.clone())],
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }))
}

impl Binder<'_> {
    /// `JSON_ARRAY(query)`.
    pub(super) fn json_array_of_query(&mut self, query: &Query) -> Result<Typed> {
        let Some(source) = source_of(query) else {
            return fail(SqlState::SYNTAX_ERROR, "syntax error in JSON_ARRAY");
        };
        if self.query(source)?.columns.len() != 1 {
            return fail(SqlState::SYNTAX_ERROR, "subquery must return only one column");
        }
        self.scalar_subquery(query)
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
    pub(super) fn json_aggregate(
        &mut self,
        name: &str,
        call: &Function,
        list: &FunctionArgumentList,
    ) -> Result<Option<Typed>> {
        let (values, clauses) = parted(list)?;
        let is_ordered = !list.clauses.is_empty() && name == "json_objectagg";
        if list.duplicate_treatment.is_some() || is_ordered {
            return unsupported("DISTINCT or ORDER BY in this form of SQL/JSON");
        }
        let (args, output) = match (name, values) {
            ("json_objectagg", [argument]) => match member(argument) {
                Some((name, value)) => {
                    check_name(argument, name)?;
                    let args = vec![argument_of(name), argument_of(value)];
                    (args, Output::read(clauses, &OF_OBJECTS)?)
                }
                None => return fail(SqlState::SYNTAX_ERROR, format!("syntax error at {call}")),
            },
            ("json_arrayagg", [argument]) => {
                let args = vec![argument_of(plain(argument)?)];
                (args, Output::read(clauses, &OF_ARRAYS)?)
            }
            _ => return fail(SqlState::SYNTAX_ERROR, format!("syntax error at {call}")),
        };
        let returning = self.aggregated_type(&output, values)?;
        let aggregate = aggregate_name(name, &output, returning);
        let name = ObjectName::from(vec![Ident::new("pg_catalog"), Ident::new(aggregate)]);
        let list =
            FunctionArgumentList { duplicate_treatment: None, args, clauses: list.clauses.clone() };
        let call = Function { name, args: FunctionArguments::List(list), ..call.clone() };
        let typed = self.function(&call)?;
        self.returned(typed, returning)
    }

    /// The type of the document; where no clause says it, what the arguments are decides.
    fn aggregated_type(&mut self, output: &Output<'_>, values: &[FunctionArg]) -> Result<PgType> {
        match output.returning {
            Some(_) => self.document_type(output, &[]),
            None => {
                let values = self.aggregated_values(values)?;
                self.document_type(output, &values)
            }
        }
    }
}

fn aggregate_name(form: &str, output: &Output<'_>, returning: PgType) -> String {
    let prefix = if returning.oid == oid::JSONB { "jsonb" } else { "json" };
    let (aggregate, leaves_out) = match form {
        "json_objectagg" => ("object_agg", false),
        _ => ("agg", true),
    };
    let unique = if output.is_unique { "_unique" } else { "" };
    let leaves_out = output.leaves_out_nulls.unwrap_or(leaves_out); // default: what the server takes without ON NULL
    let strict = if leaves_out { "_strict" } else { "" };
    format!("{prefix}_{aggregate}{unique}{strict}")
}
