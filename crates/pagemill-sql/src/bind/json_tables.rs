//! `JSON_TABLE(j, path COLUMNS (…))`: an item of FROM whose rows are those of a document.
//!
//! Invariant: the columns of a path stand before those of the paths nested in it, whatever their order in the text.
//!
//! Source: `transformJsonTable`, `transformJsonTableColumns` in `src/backend/parser/parse_jsontable.c`, PostgreSQL 17 and 18.

use std::borrow::Cow;

use pagemill_types::builtin::oid;
use sqlparser::ast::{Expr as Syntax, Function, FunctionArg, FunctionArguments};

use super::Binder;
use super::json_clauses::{Clause, Clauses, Returning, Which, plain};
use super::json_queries::{Form, first_clause};
use super::set_calls::BoundCall;
use crate::error::{Result, SqlState, fail};
use crate::functions::logic::json_queries::{Operation, Scan, TableColumn, TableRows, Wrapper};
use crate::functions::logic::quoted_json;
use crate::functions::sets::{SetColumn, of_table};
use crate::functions::text_form::payload_of_text;
use crate::typed::Typed;
use crate::types::{PgType, RECORD};

/// A table while its columns are bound.
struct Made {
    columns: Vec<SetColumn>,
    parts: Vec<TableColumn>,
    /// The document, what PASSING gives, what DEFAULTs say.
    arguments: Vec<Typed>,
    scans: usize,
}

impl Binder<'_> {
    /// The item that this call stands for.
    pub(super) fn json_table(&mut self, call: &Function) -> Result<BoundCall> {
        let FunctionArguments::List(list) = &call.args else { return no_table() };
        if self.catalog.database().cluster().version().major() < 17 {
            return match first_clause(&list.args) {
                Some(clause) => Err(clause.syntax_error()),
                None => no_table(),
            };
        }
        let [context, path, clauses @ ..] = &list.args[..] else { return no_table() };
        let (Some(context), Some(path)) = (plain(context), plain(path)) else { return no_table() };
        let known = [Which::Name, Which::Passing, Which::Columns, Which::OnError];
        let clauses = Clauses::read(clauses, &known)?;
        let Some(columns) = clauses.columns else { return no_table() };
        let path = self.constant_path(path)?;
        let throws = match &clauses.on_error {
            Some(said) if !matches!(said.shown(), "ERROR" | "EMPTY ARRAY") => {
                let message = "invalid ON ERROR behavior";
                return Err(said.clause.error(SqlState::SYNTAX_ERROR, message));
            }
            said => said.as_ref().is_some_and(|said| said.shown() == "ERROR"),
        };
        let first = clauses.name.unwrap_or("json_table_path_0"); // default: what the server calls it
        check_names(&mut vec![first.to_owned()], columns)?;
        let mut arguments = vec![self.json_document(context, "JSON_TABLE")?];
        let path = self.path_payload(&path)?;
        let (names, passed) = self.passed(&clauses.passing)?;
        arguments.extend(passed);
        let mut made = Made { columns: Vec::new(), parts: Vec::new(), arguments, scans: 0 };
        let root = self.table_scan(path, columns, &mut made)?;
        let table = TableRows { root, columns: made.parts, names, throws };
        let call = of_table(&self.catalog, table, &made.arguments, made.columns);
        Ok(BoundCall::new("json_table".to_owned(), call, made.arguments))
    }

    /// The text of a path, which is a constant.
    fn constant_path(&mut self, syntax: &Syntax) -> Result<String> {
        let literal = match syntax {
            Syntax::Value(value) => self.literal(&value.value)?.literal,
            _ => None,
        };
        match literal {
            Some(Some(text)) => Ok(text),
            _ => {
                let what = "only string constants are supported in JSON_TABLE path specification";
                fail(SqlState::FEATURE_NOT_SUPPORTED, what)
            }
        }
    }

    fn path_payload(&self, text: &str) -> Result<Vec<u8>> {
        Ok(payload_of_text(&self.catalog, PgType::new(oid::JSONPATH), text)?)
    }

    /// A path with its columns, then those nested in it.
    fn table_scan(
        &mut self,
        path: Vec<u8>,
        columns: &[FunctionArg],
        made: &mut Made,
    ) -> Result<Scan> {
        let number = made.scans;
        made.scans += 1;
        let mut has_ordinality = false;
        for clause in columns.iter().filter_map(Clause::of) {
            match clause.word() {
                "ORDINALITY" => {
                    if std::mem::replace(&mut has_ordinality, true) {
                        let message = "only one FOR ORDINALITY column is allowed";
                        return Err(clause.error(SqlState::SYNTAX_ERROR, message));
                    }
                    let name = clause.text(0).unwrap_or_default().to_owned(); // default: the spelling gives a name
                    let ty = PgType::new(oid::INT4);
                    made.columns.push(SetColumn::new(&self.catalog, Some(Cow::Owned(name)), ty));
                    made.parts.push(TableColumn { scan: number, search: None });
                }
                "COLUMN" | "EXISTS" => self.table_column(clause, number, made)?,
                _ => {}
            }
        }
        let mut nested = Vec::new();
        for clause in columns.iter().filter_map(Clause::of) {
            if !clause.word().eq_ignore_ascii_case("nested") {
                continue;
            }
            let [inner, clauses @ ..] = clause.arguments else { return no_table() };
            let clauses = Clauses::read(clauses, &[Which::Name, Which::Columns])?;
            let (Some(inner), Some(columns)) = (plain(inner), clauses.columns) else {
                return Err(clause.syntax_error());
            };
            let inner = self.constant_path(inner)?;
            let inner = self.path_payload(&inner)?;
            nested.push(self.table_scan(inner, columns, made)?);
        }
        Ok(Scan { number, path, nested })
    }

    fn table_column(&mut self, clause: Clause<'_>, scan: usize, made: &mut Made) -> Result<()> {
        let is_test = clause.word() == "EXISTS";
        let (Some(name), [_, named, clauses @ ..]) = (clause.text(0), clause.arguments) else {
            return no_table();
        };
        let Some(Syntax::Cast { data_type, .. }) = plain(named) else { return no_table() };
        let known: &[Which] = if is_test { &OF_TEST } else { &OF_COLUMN };
        let clauses = Clauses::read(clauses, known)?;
        let (has_format, encoding) = match clauses.format {
            Some(format) => (true, format.text(0)),
            None => (false, None),
        };
        let returning = Returning { data_type, has_format, encoding };
        let ty = self.type_named(data_type)?;
        let asks_query = has_format
            || self.is_composite(ty)
            || clauses.omits_quotes.is_some()
            || clauses.wrapper.is_some();
        let (of, operation) = match (is_test, asks_query) {
            (true, _) => ("JSON_EXISTS", Operation::Exists),
            (false, true) => ("JSON_QUERY", Operation::Query(Wrapper::Never)),
            (false, false) => ("JSON_VALUE", Operation::Value),
        };
        let path = match clauses.path {
            Some(path) => self.constant_path(path)?,
            None => format!("$.{}", quoted_json(name)),
        };
        let form = Form { name: of, operation, clauses, column: Some(name) };
        self.check_form(&form)?;
        let path = self.path_payload(&path)?;
        let result = self.returned_type(Some(returning), operation)?;
        let mut search = self.searched(&form, result, &mut made.arguments)?;
        search.path = Some(path);
        made.columns.push(SetColumn::new(&self.catalog, Some(Cow::Owned(name.to_owned())), result));
        made.parts.push(TableColumn { scan, search: Some(search) });
        Ok(())
    }

    /// True for types whose values are asked as by JSON_QUERY.
    fn is_composite(&self, ty: PgType) -> bool {
        let base = self.catalog.base_type(ty.oid, -1).0;
        let is_row = |row: &crate::catalog::TypeRow| row.kind == b'c' || row.is_array();
        matches!(base, oid::JSON | oid::JSONB | RECORD)
            || self.catalog.type_row(base).is_some_and(is_row)
    }
}

const OF_TEST: [Which; 2] = [Which::Path, Which::OnError];
const OF_COLUMN: [Which; 6] =
    [Which::Format, Which::Path, Which::Wrapper, Which::Quotes, Which::OnEmpty, Which::OnError];

/// Columns and paths are all called otherwise.
fn check_names(known: &mut Vec<String>, columns: &[FunctionArg]) -> Result<()> {
    for clause in columns.iter().filter_map(Clause::of) {
        let (name, nested): (_, &[FunctionArg]) = match clause.word().eq_ignore_ascii_case("nested")
        {
            true => {
                let clauses = clause.arguments.get(1..).unwrap_or_default(); // default: its path is there
                let inner = Clauses::read(clauses, &[Which::Name, Which::Columns])?;
                (inner.name, inner.columns.unwrap_or_default()) // default: without columns it is refused later
            }
            false => (clause.text(0), &[]),
        };
        if let Some(name) = name {
            if known.iter().any(|other| other == name) {
                let message = format!("duplicate JSON_TABLE column or path name: {name}");
                return Err(clause.error(SqlState::DUPLICATE_ALIAS, message));
            }
            known.push(name.to_owned());
        }
        check_names(known, nested)?;
    }
    Ok(())
}

#[cold]
fn no_table<T>() -> Result<T> {
    fail(SqlState::SYNTAX_ERROR, "syntax error at or near \"JSON_TABLE\"")
}
