//! Rows that functions make of documents: `json_populate_record(null::t, j)`, `json_to_record(j) AS x(a int)`, and their kin.
//!
//! What fields such rows have follows from the row that is given, or from the list of column definitions behind the call.
//!
//! Source: `get_record_type_from_argument`, `get_record_type_from_query` in `src/backend/utils/adt/jsonfuncs.c`,
//! `addRangeTableEntryForFunction` in `src/backend/parser/parse_relation.c`, `tupledesc_match` in
//! `src/backend/executor/execSRF.c`, PostgreSQL 14 to 18.

use std::borrow::Cow;

use datafusion::logical_expr::Expr;
use pagemill_format::Oid;
use sqlparser::ast::{Function, TableAlias};

use super::Binder;
use super::defaults::FunctionName;
use super::scope::folded;
use super::set_calls::BoundCall;
use crate::catalog::{CastContext, FunctionRow};
use crate::coerce::{carrier_of, coerce};
use crate::error::{Result, SqlState, StatementError, fail, unsupported};
use crate::functions::logic::records::{VALID, arguments_of_row, makes_rows, one_row, takes_row};
use crate::functions::row_casts::{check_names, fields_of_type};
use crate::functions::sets::{SetCall, SetColumn, of_document};
use crate::resolve::Chosen;
use crate::typed::{RowField, Typed};
use crate::types::{PgType, RECORD};

/// What a call is made of.
struct DocumentCall {
    call: SetCall,
    arguments: Vec<Typed>,
    row_type: Oid,
}

impl Binder<'_> {
    /// An item of FROM that is one such function; `None` for any other.
    pub(super) fn document_in_from(
        &mut self,
        call: &Function,
        alias: Option<&TableAlias>,
    ) -> Result<Option<BoundCall>> {
        let (schema, name) = self.function_name(call)?;
        let catalog = self.catalog.clone();
        let is_one = |row: &FunctionRow| makes_rows(&row.key) && row.key != VALID;
        if !catalog.functions_named(&name).any(is_one) {
            return Ok(None);
        }
        let defined = self.definitions(alias)?;
        let mut arguments = self.call_arguments(call)?;
        let chosen = self.chosen(&catalog, FunctionName { schema, name: &name }, &mut arguments)?;
        if !is_one(chosen.function) {
            return Ok(None);
        }
        catalog.check_function(chosen.function)?;
        let made = self.document_call(&chosen, arguments.typed, Some(defined))?;
        let bound = BoundCall::new(name, made.call, made.arguments);
        Ok(Some(bound.of_rows(made.row_type)))
    }

    /// One of several rows in a select list.
    pub(super) fn rows_of_document(
        &mut self,
        name: String,
        chosen: &Chosen<'_>,
        arguments: Vec<Typed>,
    ) -> Result<BoundCall> {
        let made = self.document_call(chosen, arguments, None)?;
        Ok(BoundCall::new(name, made.call, made.arguments).of_rows(made.row_type))
    }

    /// One of a row in an expression.
    pub(super) fn row_of_document(
        &mut self,
        chosen: &Chosen<'_>,
        arguments: Vec<Typed>,
    ) -> Result<Typed> {
        let DocumentCall { call, arguments, row_type } =
            self.document_call(chosen, arguments, None)?;
        Ok(one_row(call, &arguments, row_type))
    }

    /// The columns of a list of definitions; none where there is no such list.
    fn definitions(&self, alias: Option<&TableAlias>) -> Result<Option<Vec<RowField>>> {
        let Some(alias) = alias else { return Ok(None) };
        if alias.columns.iter().all(|column| column.data_type.is_none()) {
            return Ok(None);
        }
        let mut fields = Vec::with_capacity(alias.columns.len());
        for column in &alias.columns {
            let Some(data_type) = &column.data_type else {
                return fail(SqlState::SYNTAX_ERROR, format!("syntax error at {}", column.name));
            };
            let ty = self.type_named(data_type)?;
            let (name, carrier) = (folded(&column.name), carrier_of(&self.catalog, ty));
            fields.push(RowField::new(name, ty, carrier));
        }
        check_names(&fields)?;
        Ok(Some(fields))
    }

    /// `defined` is there in FROM only: the definitions behind the call, if there are some.
    fn document_call(
        &mut self,
        chosen: &Chosen<'_>,
        arguments: Vec<Typed>,
        defined: Option<Option<Vec<RowField>>>,
    ) -> Result<DocumentCall> {
        let key = chosen.function.key.as_str();
        let mut given = arguments.into_iter();
        let row = if takes_row(key) { given.next() } else { None };
        let at = usize::from(row.is_some());
        let (Some(document), Some(wanted)) = (given.next(), chosen.arguments.get(at)) else {
            return unsupported(format!("function {key} with these arguments"));
        };
        let document =
            coerce(&self.catalog, document, PgType::new(*wanted), CastContext::Implicit)?;
        let (row_type, fields) = self.fields_of_rows(key, row.as_ref(), defined)?;
        let mut arguments = vec![document];
        arguments.extend(row.iter().flat_map(|row| arguments_of_row(&self.catalog, row)));
        let column =
            |field: RowField| SetColumn::new(&self.catalog, Some(Cow::Owned(field.name)), field.ty);
        let columns = fields.into_iter().map(column).collect();
        let call = of_document(&self.catalog, key, &arguments, columns);
        Ok(DocumentCall { call, arguments, row_type })
    }

    /// The type of the rows, and the fields under the names that documents have for them.
    fn fields_of_rows(
        &self,
        key: &str,
        row: Option<&Typed>,
        defined: Option<Option<Vec<RowField>>>,
    ) -> Result<(Oid, Vec<RowField>)> {
        let row_type = row.map_or(RECORD, |row| row.ty.oid);
        if row_type == RECORD {
            return self.fields_of_record(key, row, defined).map(|fields| (RECORD, fields));
        }
        let base = self.catalog.base_type(row_type, -1).0;
        let Some(fields) = fields_of_type(&self.catalog, base)? else {
            let told = key.strip_suffix("_valid").unwrap_or(key); // the server knows itself by the other's name
            let message = format!("first argument of {told} must be a row type");
            return fail(SqlState::DATATYPE_MISMATCH, message);
        };
        if base != row_type {
            return unsupported("a domain over a row in a document");
        }
        if let Some(Some(_)) = defined {
            let what = "a column definition list is redundant for a function returning a named composite type";
            return fail(SqlState::SYNTAX_ERROR, what);
        }
        Ok((row_type, fields))
    }

    fn fields_of_record(
        &self,
        key: &str,
        row: Option<&Typed>,
        defined: Option<Option<Vec<RowField>>>,
    ) -> Result<Vec<RowField>> {
        let own = row.and_then(|row| row.row.as_deref());
        let is_null = |row: &Typed| matches!(&row.expr, Expr::Literal(value, _) if value.is_null());
        let is_unknown = own.is_none() && row.is_some_and(|row| !is_null(row));
        if is_unknown || own.is_some_and(|own| own.iter().any(|field| field.ty.oid == RECORD)) {
            return unsupported(format!("a record of unknown fields as an argument of {key}"));
        }
        match (defined, own) {
            (Some(None), _) => {
                let what =
                    "a column definition list is required for functions returning \"record\"";
                fail(SqlState::SYNTAX_ERROR, what)
            }
            (Some(Some(defined)), None) => Ok(defined),
            (Some(Some(defined)), Some(own)) => {
                let is_same = |(a, b): (&RowField, &RowField)| a.ty.oid == b.ty.oid;
                if own.len() != defined.len() || !own.iter().zip(&defined).all(is_same) {
                    let what = "function return row and query-specified return row do not match";
                    return fail(SqlState::DATATYPE_MISMATCH, what);
                }
                Ok(own.to_vec())
            }
            (None, Some(own)) => Ok(own.to_vec()),
            (None, None) => {
                let message = format!("could not determine row type for result of {key}");
                let hint = "Provide a non-null record argument, or call the function in the FROM clause using a column definition list.";
                let error = StatementError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
                Err(error.with_hint(hint).into())
            }
        }
    }
}
