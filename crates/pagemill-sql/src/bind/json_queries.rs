//! Forms of SQL/JSON that ask documents: `JSON_EXISTS(j, path)`, `JSON_VALUE(j, path)`, `JSON_QUERY(j, path)`.
//!
//! They are of the grammar from 17 on; before, their names are as any other and their clauses no syntax.
//!
//! Invariant: what DEFAULT says is computed once and before the search, as it refers to no column; a type whose values are not read as
//! the server does softly is refused.
//!
//! Source: `transformJsonFuncExpr`, `transformJsonValueExpr`, `transformJsonPassingArgs` in
//! `src/backend/parser/parse_expr.c`, PostgreSQL 17 and 18.

use pagemill_types::builtin::oid;
use pagemill_types::input::tree::TypeInput;
use sqlparser::ast::{Expr as Syntax, Function, FunctionArg, FunctionArgumentList, ObjectNamePart};

use super::Binder;
use super::json_behaviors::Searched;
use super::json_clauses::{Clause, Clauses, Returning, Which, no_syntax, plain};
use super::json_constructors::refuse_extras;
use crate::catalog::CastContext;
use crate::coerce::coerce;
use crate::error::{Error, Result, SqlState, StatementError, fail, unsupported};
use crate::functions::logic::json_queries::{self, Coercion, Operation, Search, Wrapper};
use crate::functions::row_forms::json_of_row;
use crate::typed::Typed;
use crate::types::{PgType, UNKNOWN, is_object_number};

/// What a search is bound of.
pub(super) struct Form<'q> {
    /// As errors call it.
    pub(super) name: &'static str,
    pub(super) operation: Operation,
    pub(super) clauses: Clauses<'q>,
    /// The column of JSON_TABLE that it is for.
    pub(super) column: Option<&'q str>,
}

impl Binder<'_> {
    /// True for a domain that refuses some values of the type under it.
    fn has_constraints(&self, ty: PgType) -> Result<bool> {
        if self.catalog.type_row(ty.oid).is_none_or(|row| row.kind != b'd') {
            return Ok(false);
        }
        let input = self.catalog.inputs()?.value_type(ty.oid)?;
        Ok(match &input.input {
            TypeInput::Domain(known) => known.not_null || !known.checks.is_empty(),
            _ => false,
        })
    }

    pub(super) fn is_string(&self, ty: PgType) -> bool {
        self.catalog.type_row(ty.oid).is_some_and(|row| row.category == b'S')
    }

    /// JSON_EXISTS, JSON_VALUE or JSON_QUERY; `None` for a call of a function.
    pub(super) fn json_search(
        &mut self,
        name: &str,
        call: &Function,
        list: &FunctionArgumentList,
    ) -> Result<Option<Typed>> {
        if self.catalog.database().cluster().version().major() < 17 {
            return match list.args.iter().find_map(Clause::of) {
                Some(clause) => Err(clause.syntax_error()),
                None => Ok(None),
            };
        }
        if is_quoted(call) {
            return Ok(None);
        }
        refuse_extras(call, list)?;
        let ([context, path, clauses @ ..], true) = (&list.args[..], list.clauses.is_empty())
        else {
            return Err(no_syntax(")"));
        };
        let (Some(context), Some(path)) = (plain(context), plain(path)) else {
            return Err(no_syntax(name));
        };
        let (name, operation, known): (_, _, &[Which]) = match name {
            "json_exists" => ("JSON_EXISTS", Operation::Exists, &[Which::Passing, Which::OnError]),
            "json_value" => ("JSON_VALUE", Operation::Value, &OF_VALUE),
            _ => ("JSON_QUERY", Operation::Query(Wrapper::Never), &OF_QUERY),
        };
        let form = Form { name, operation, clauses: Clauses::read(clauses, known)?, column: None };
        self.check_form(&form)?;
        let mut arguments = vec![self.json_document(context, name)?, self.json_path(path)?];
        let (names, passed) = self.passed(&form.clauses.passing)?;
        arguments.extend(passed);
        let returning = self.returned_type(form.clauses.returning, operation)?;
        let search = self.searched(&form, returning, &mut arguments)?;
        Ok(Some(json_queries::search(&self.catalog, search, names, &arguments)))
    }

    /// What clauses cannot say together.
    pub(super) fn check_form(&self, form: &Form<'_>) -> Result<()> {
        let is_query = matches!(form.operation, Operation::Query(_));
        if form.clauses.returning.is_some_and(|returning| returning.has_format) && !is_query {
            let name = form.name;
            let message = format!("cannot specify FORMAT JSON in RETURNING clause of {name}()");
            return fail(SqlState::SYNTAX_ERROR, message);
        }
        let wraps = matches!(form.clauses.wrapper, Some(Wrapper::OfSeveral | Wrapper::Always));
        if is_query && wraps && form.clauses.omits_quotes == Some(true) {
            let message =
                "SQL/JSON QUOTES behavior must not be specified when WITH WRAPPER is used";
            return fail(SqlState::SYNTAX_ERROR, message);
        }
        form.check_behaviors()
    }

    /// A document as a jsonb.
    pub(super) fn json_document(&mut self, syntax: &Syntax, of: &str) -> Result<Typed> {
        let (syntax, encoding, has_format) = formatted(syntax);
        let mut typed = self.expr(syntax)?;
        if typed.ty.oid == UNKNOWN {
            typed = coerce(&self.catalog, typed, PgType::new(oid::TEXT), CastContext::Implicit)?;
        }
        if has_format {
            typed = self.decoded(typed, encoding)?;
        }
        if typed.is_row() {
            return unsupported(format!("a row as the document of {of}"));
        }
        coerce(&self.catalog, typed, PgType::new(oid::JSONB), CastContext::Explicit)
    }

    /// The text of a document that is given in bytes.
    pub(super) fn decoded(&mut self, typed: Typed, encoding: Option<&str>) -> Result<Typed> {
        check_encoding(encoding)?;
        if typed.ty.oid != oid::BYTEA {
            return match encoding {
                Some(_) => {
                    let message = "JSON ENCODING clause is only allowed for bytea input type";
                    fail(SqlState::DATATYPE_MISMATCH, message)
                }
                None => Ok(typed),
            };
        }
        match encoding {
            None | Some("utf8") => Ok(json_queries::text_of_bytes(&self.catalog, &typed)),
            Some(other) => unsupported(format!("a document in {other}")),
        }
    }

    fn json_path(&mut self, syntax: &Syntax) -> Result<Typed> {
        let typed = self.expr(syntax)?;
        let name = self.catalog.type_name(typed.ty.oid);
        let path = coerce(&self.catalog, typed, PgType::new(oid::JSONPATH), CastContext::Explicit);
        path.map_err(|error| match error {
            Error::Statement(error) if error.state == SqlState::CANNOT_COERCE => {
                let message =
                    format!("JSON path expression must be of type jsonpath, not of type {name}");
                StatementError::new(SqlState::DATATYPE_MISMATCH, message).into()
            }
            other => other,
        })
    }

    /// The values that PASSING gives, and their names.
    pub(super) fn passed(
        &mut self,
        passing: &[(&Syntax, &str)],
    ) -> Result<(Vec<String>, Vec<Typed>)> {
        let mut passed = (Vec::with_capacity(passing.len()), Vec::with_capacity(passing.len()));
        for (syntax, name) in passing {
            passed.0.push((*name).to_owned());
            passed.1.push(self.passed_value(syntax)?);
        }
        Ok(passed)
    }

    /// A value as paths take it: numbers as numerics, and as a jsonb what they do not know.
    fn passed_value(&mut self, syntax: &Syntax) -> Result<Typed> {
        let (syntax, encoding, has_format) = formatted(syntax);
        let mut typed = self.expr(syntax)?;
        if typed.ty.oid == UNKNOWN {
            typed = coerce(&self.catalog, typed, PgType::new(oid::TEXT), CastContext::Implicit)?;
        }
        let as_type = |this: &Self, typed: Typed, ty| {
            coerce(&this.catalog, typed, PgType::new(ty), CastContext::Explicit)
        };
        if typed.is_row() {
            typed = json_of_row(&self.catalog, &typed, false);
        }
        if has_format {
            typed = self.decoded(typed, encoding)?;
            if !matches!(typed.ty.oid, oid::JSON | oid::JSONB) && self.is_string(typed.ty) {
                typed = as_type(self, typed, oid::JSON)?;
            }
        }
        match typed.ty.oid {
            oid::INT2 | oid::INT4 | oid::INT8 | oid::FLOAT4 | oid::FLOAT8 if !has_format => {
                as_type(self, typed, oid::NUMERIC)
            }
            oid::BOOL
            | oid::NUMERIC
            | oid::DATE
            | oid::TIME
            | oid::TIMETZ
            | oid::TIMESTAMP
            | oid::TIMESTAMPTZ
                if !has_format =>
            {
                Ok(typed)
            }
            _ if self.is_string(typed.ty) => Ok(typed),
            _ if self.catalog.base_type(typed.ty.oid, -1).0 == oid::JSONB => {
                as_type(self, typed, oid::JSONB)
            }
            _ if self.catalog.base_type(typed.ty.oid, -1).0 == oid::JSON => {
                as_type(self, typed, oid::JSONB)
            }
            _ => self.call("to_jsonb", vec![typed]),
        }
    }

    /// The type of the result.
    pub(super) fn returned_type(
        &self,
        returning: Option<Returning<'_>>,
        operation: Operation,
    ) -> Result<PgType> {
        let Some(returning) = returning else {
            return Ok(PgType::new(match operation {
                Operation::Exists => oid::BOOL,
                Operation::Query(_) => oid::JSONB,
                Operation::Value => oid::TEXT,
            }));
        };
        let ty = self.type_named(returning.data_type)?;
        if self.catalog.type_row(ty.oid).is_none_or(|row| row.kind == b'p') {
            let what = "returning pseudo-types is not supported in SQL/JSON functions";
            return fail(SqlState::FEATURE_NOT_SUPPORTED, what);
        }
        check_encoding(returning.encoding)?;
        if returning.has_format {
            self.check_format(ty, returning.encoding)?;
        }
        // Their input functions look into the catalogs, and end with other errors.
        let base = self.catalog.base_type(ty.oid, -1).0;
        if is_object_number(base) && base != oid::OID {
            let name = self.catalog.type_name(ty.oid);
            return unsupported(format!("RETURNING {name} of SQL/JSON"));
        }
        Ok(ty)
    }

    fn check_format(&self, ty: PgType, encoding: Option<&str>) -> Result<()> {
        let is_document = matches!(ty.oid, oid::BYTEA | oid::JSON | oid::JSONB);
        if !is_document && !self.is_string(ty) {
            let message = "cannot use JSON format with non-string output types";
            return fail(SqlState::FEATURE_NOT_SUPPORTED, message);
        }
        self.check_output_encoding(ty, encoding)
    }

    /// Documents are bytes in UTF8 alone, and have an encoding as bytes alone.
    pub(super) fn check_output_encoding(&self, ty: PgType, encoding: Option<&str>) -> Result<()> {
        if ty.oid != oid::BYTEA && encoding.is_some() {
            let message = "cannot set JSON encoding for non-bytea output types";
            return fail(SqlState::FEATURE_NOT_SUPPORTED, message);
        }
        if encoding.is_some_and(|encoding| encoding != "utf8") {
            let error =
                StatementError::new(SqlState::FEATURE_NOT_SUPPORTED, "unsupported JSON encoding");
            return Err(error.with_hint("Only UTF8 JSON encoding is supported.").into());
        }
        Ok(())
    }

    /// The search of a form; what its DEFAULTs say is added to the arguments.
    pub(super) fn searched(
        &mut self,
        form: &Form<'_>,
        result: PgType,
        arguments: &mut Vec<Typed>,
    ) -> Result<Search> {
        let operation = match form.operation {
            // Nothing said is as WITHOUT WRAPPER.
            Operation::Query(_) => {
                Operation::Query(form.clauses.wrapper.unwrap_or(Wrapper::Never)) // default: what the server takes without it
            }
            other => other,
        };
        let is_value = operation == Operation::Value;
        let omits_quotes = is_value || form.clauses.omits_quotes == Some(true);
        let coercion = match operation {
            Operation::Exists if result.oid == oid::BOOL => Coercion::None,
            Operation::Exists => Coercion::Document,
            Operation::Query(_) if result.oid == oid::JSONB && !omits_quotes => Coercion::None,
            Operation::Query(_) => Coercion::Document,
            Operation::Value if result.oid == oid::TEXT => Coercion::None,
            Operation::Value if self.has_constraints(result)? => Coercion::Document,
            Operation::Value => Coercion::Input,
        };
        let row = self.catalog.type_row(result.oid);
        let is_domain = row.is_some_and(|row| row.kind == b'd');
        let is_integer = self.catalog.base_type(result.oid, -1).0 == oid::INT4;
        let mut searched = Searched { result, is_domain, is_integer, arguments };
        let on_empty = self.on_empty(form, &mut searched)?;
        let on_error = self.on_error(form, &mut searched)?;
        let column = form.column.map(str::to_owned);
        let path = None;
        Ok(Search {
            operation,
            result,
            coercion,
            omits_quotes,
            on_empty,
            on_error,
            column,
            path,
            is_domain,
            is_integer,
        })
    }
}

const OF_VALUE: [Which; 4] = [Which::Passing, Which::Returning, Which::OnEmpty, Which::OnError];
const OF_QUERY: [Which; 6] = [
    Which::Passing,
    Which::Returning,
    Which::Wrapper,
    Which::Quotes,
    Which::OnEmpty,
    Which::OnError,
];

/// An expression without its format, its encoding, and whether it has a format.
pub(super) fn formatted(syntax: &Syntax) -> (&Syntax, Option<&str>, bool) {
    match Clause::of_syntax(syntax).filter(|clause| clause.which() == Which::Format) {
        Some(clause) => match clause.arguments.first().and_then(plain) {
            Some(inner) => (inner, clause.text(1), true),
            None => (syntax, None, false),
        },
        None => (syntax, None, false),
    }
}

pub(super) fn check_encoding(encoding: Option<&str>) -> Result<()> {
    let is_known = |name: &str| {
        ["utf8", "utf16", "utf32"].iter().any(|known| known.eq_ignore_ascii_case(name))
    };
    match encoding {
        Some(name) if !is_known(name) => {
            let message = format!("unrecognized JSON encoding: {name}");
            fail(SqlState::INVALID_PARAMETER, message)
        }
        _ => Ok(()),
    }
}

/// The first clause of a form that servers before it do not know, of its arguments or behind FORMAT.
pub(super) fn first_clause(arguments: &[FunctionArg]) -> Option<Clause<'_>> {
    arguments.iter().find_map(Clause::of)
}

/// True for a call of a function that is called as a form is, which quotes tell.
pub(super) fn is_quoted(call: &Function) -> bool {
    let is_one = |part: &ObjectNamePart| match part {
        ObjectNamePart::Identifier(name) => name.quote_style.is_some(),
        _ => false,
    };
    call.name.0.iter().any(is_one)
}
