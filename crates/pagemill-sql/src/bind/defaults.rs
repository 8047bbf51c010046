//! Arguments of functions that a call leaves out, or gives by name: what the function was made with stands in the place of the first, and
//! the others are put into its order.
//!
//! A default is a stored expression; it is written as SQL, and read where no column is in sight, as it was when the function was made.
//!
//! Source: `MatchNamedCall` in `src/backend/catalog/namespace.c`, `expand_function_arguments` in `src/backend/optimizer/util/clauses.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use pagemill_format::Oid;
use sqlparser::ast::{Expr as Syntax, Select, SelectItem, SetExpr, Statement};

use super::Binder;
use super::functions::CallArguments;
use super::inlining::in_function;
use super::scope::Level;
use crate::catalog::{Catalog, FunctionRow};
use crate::coerce::signature;
use crate::definitions::FunctionWriter;
use crate::error::{Error, Result, SqlState, StatementError, unsupported};
use crate::resolve::{self, Chosen};
use crate::session::Session;
use crate::typed::Typed;

/// A function's name in a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct FunctionName<'n> {
    /// The schema, if it is named.
    pub(super) schema: Option<Oid>,
    pub(super) name: &'n str,
}

impl Binder<'_> {
    /// The function that a name and arguments mean; those that were left out are added.
    pub(super) fn chosen<'c>(
        &mut self,
        catalog: &'c Arc<Catalog>,
        called: FunctionName<'_>,
        arguments: &mut CallArguments<'_>,
    ) -> Result<Chosen<'c>> {
        if !arguments.names.is_empty() {
            return self.chosen_by_names(catalog, called, arguments);
        }
        let typed = &mut arguments.typed;
        let chosen = resolve::function(catalog, called.schema, called.name, &types(typed))?;
        if chosen.left_out() == 0 {
            return Ok(chosen);
        }
        let writer = FunctionWriter::new(catalog)?;
        let count = chosen.function.arguments.len();
        for at in count - chosen.left_out()..count {
            typed.push(self.default(&writer, chosen.function, at)?);
        }
        Chosen::whole(catalog, chosen.function, &types(typed))
    }

    /// The function that has arguments of these names, which are put into its order.
    fn chosen_by_names<'c>(
        &mut self,
        catalog: &'c Arc<Catalog>,
        called: FunctionName<'_>,
        arguments: &mut CallArguments<'_>,
    ) -> Result<Chosen<'c>> {
        let writer = FunctionWriter::new(catalog)?;
        let mut found: Option<(&FunctionRow, Vec<Option<usize>>)> = None;
        for row in catalog.functions_named(called.name).filter(|row| called.sees(catalog, row)) {
            let names = writer.input_names(row.oid).map_err(StatementError::from)?;
            let Some(order) = order_of(row, &names, arguments) else { continue };
            if found.replace((row, order)).is_some() {
                return unsupported(format!("several functions {} by names", called.name));
            }
        }
        let Some((row, order)) = found else {
            return Err(no_function_of_names(catalog, called.name, arguments));
        };
        let mut given: Vec<Option<Typed>> =
            std::mem::take(&mut arguments.typed).into_iter().map(Some).collect();
        for (at, place) in order.into_iter().enumerate() {
            let typed = match place {
                Some(place) => given[place].take().expect("each argument has a place of its own"), // infallible: by order_of
                None => self.default(&writer, row, at)?,
            };
            arguments.typed.push(typed);
        }
        arguments.names.clear();
        Chosen::whole(catalog, row, &types(&arguments.typed))
    }

    /// What an argument is where it is left out, by its place among those that go in.
    fn default(
        &mut self,
        writer: &FunctionWriter,
        function: &FunctionRow,
        at: usize,
    ) -> Result<Typed> {
        let syntax = default_of(&self.catalog, writer, function, at)?;
        self.levels.push(Level::default());
        let bound = self.expr(&syntax);
        self.levels.pop();
        bound.map_err(|error| in_function(error, &signature(&self.catalog, function)))
    }
}

impl FunctionName<'_> {
    fn sees(&self, catalog: &Catalog, row: &FunctionRow) -> bool {
        match self.schema {
            Some(schema) => row.namespace == schema,
            None => catalog.search_path().contains(&row.namespace),
        }
    }
}

/// For each argument that a function takes, by its name, the one of a call that it is; `None` inside for one that has a default, and
/// outside where the call is not one of this function.
fn order_of(
    row: &FunctionRow,
    names: &[String],
    call: &CallArguments<'_>,
) -> Option<Vec<Option<usize>>> {
    let count = row.arguments.len();
    let by_place = call.typed.len() - call.names.len();
    if row.variadic != Oid(0) || names.len() != count || by_place > count {
        return None;
    }
    let mut order: Vec<Option<usize>> =
        (0..count).map(|at| (at < by_place).then_some(at)).collect();
    for (place, name) in (by_place..).zip(&call.names) {
        let at = names.iter().position(|known| known == name)?;
        if order[at].replace(place).is_some() {
            return None;
        }
    }
    let with_default = count - row.defaults..;
    let is_whole =
        |(at, place): (usize, &Option<usize>)| place.is_some() || with_default.contains(&at);
    order.iter().enumerate().all(is_whole).then_some(order)
}

fn types(typed: &[Typed]) -> Vec<Oid> {
    typed.iter().map(|typed| typed.ty.oid).collect()
}

/// What an argument is where it is left out, by its place among those that go in.
fn default_of(
    catalog: &Catalog,
    writer: &FunctionWriter,
    function: &FunctionRow,
    at: usize,
) -> Result<Syntax> {
    let written = writer.default_of_input(function.oid, at).map_err(StatementError::from)?;
    let text = written.map(|text| format!("SELECT {text}"));
    let parsed = text.map(|text| Session::parse(&text)).transpose()?;
    match parsed.map(<[Statement; 1]>::try_from) {
        Some(Ok([Statement::Query(query)])) => match *query.body {
            SetExpr::Select(select) => one_value(*select),
            _ => None,
        },
        _ => None,
    }
    .map_or_else(
        || unsupported(format!("a default of function {}", signature(catalog, function))),
        Ok,
    )
}

fn one_value(select: Select) -> Option<Syntax> {
    match <[SelectItem; 1]>::try_from(select.projection) {
        Ok([SelectItem::UnnamedExpr(value)]) => Some(value),
        _ => None,
    }
}

/// That no function has arguments of these names.
#[cold]
fn no_function_of_names(catalog: &Catalog, name: &str, arguments: &CallArguments<'_>) -> Error {
    let by_place = arguments.typed.len() - arguments.names.len();
    let shown = |(at, typed): (usize, &Typed)| {
        let ty = catalog.type_name(typed.ty.oid);
        match at.checked_sub(by_place) {
            None => ty,
            Some(at) => format!("{} => {ty}", arguments.names[at]),
        }
    };
    let list: Vec<String> = arguments.typed.iter().enumerate().map(shown).collect();
    let what = format!("function {name}({}) does not exist", list.join(", "));
    let error = StatementError::new(SqlState::UNDEFINED_FUNCTION, what);
    error.with_hint("No function matches the given name and argument types.").into()
}
