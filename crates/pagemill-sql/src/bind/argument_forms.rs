//! Arguments behind VARIADIC, and moments AT LOCAL.
//!
//! An array behind VARIADIC whose elements are written one by one is as many arguments, of the array's type of elements, where
//! the function takes arguments of any type; such functions alone tell the two apart by nothing. Other arrays are refused.
//!
//! Source: `ParseFuncOrColumn` in `src/backend/parser/parse_func.c`, `extract_variadic_args` in `funcapi.c`, PostgreSQL 14 to 18;
//! `timestamptz_at_local` in `src/backend/utils/adt/timestamp.c`, PostgreSQL 17 and 18.

use pagemill_format::Oid;
use pagemill_types::builtin::oid;
use sqlparser::ast::{
    ArrayElemTypeDef, DataType as Named, Expr as Syntax, Function, FunctionArg, FunctionArguments,
    Ident,
};

use super::Binder;
use crate::catalog::{CastContext, FunctionRow};
use crate::coerce::coerce;
use crate::error::{Result, SqlState, fail, unsupported};
use crate::forms::{LOCAL, VARIADIC};
use crate::typed::Typed;
use crate::types::PgType;

/// `"any"`.
const ANY: Oid = Oid(2276);

/// Whether an argument's name stands for the word before it.
pub(super) fn is_variadic(name: &Ident) -> bool {
    name.quote_style.is_some() && name.value == VARIADIC
}

/// Whether a zone is the session's own, which AT LOCAL means.
pub(super) fn is_local(zone: &Syntax) -> bool {
    matches!(zone, Syntax::Identifier(name) if name.quote_style.is_some() && name.value == LOCAL)
}

impl Binder<'_> {
    /// The arguments that an array behind VARIADIC stands for.
    pub(super) fn spread(&mut self, call: &Function, array: &Syntax) -> Result<Vec<Typed>> {
        let (_, name) = self.function_name(call)?;
        let FunctionArguments::List(list) = &call.args else {
            return unsupported("VARIADIC in this form of a call");
        };
        let count = list.args.len();
        let is_last =
            list.args.iter().rev().skip(1).all(|one| matches!(one, FunctionArg::Unnamed(_)));
        // No other function has as many arguments as the array has elements.
        let takes_any = |row: &FunctionRow| match row.arguments.len() == count {
            true => row.variadic == ANY,
            false => row.arguments.len() < count && row.variadic == Oid(0),
        };
        let named = || self.catalog.functions_named(&name);
        let is_function = named().any(|row| row.variadic == ANY);
        if !is_last || !is_function || !named().all(takes_any) {
            return unsupported(format!("VARIADIC before an argument of {name}"));
        }
        let elements = match array {
            Syntax::Array(array) if array.named && !array.elem.is_empty() => {
                let items = array.elem.iter().map(|item| self.expr(item));
                let items = items.collect::<Result<Vec<Typed>>>()?;
                self.in_common("ARRAY", items)?
            }
            Syntax::Cast { expr, data_type: Named::Array(of), format: None, .. } => {
                let ArrayElemTypeDef::SquareBracket(of, None) = of else {
                    return unsupported("VARIADIC before this form of an array");
                };
                let ty = self.type_named(of)?;
                let Some(items) = self.array_literal(expr)? else {
                    return unsupported("VARIADIC before this form of an array");
                };
                let cast = |item| coerce(&self.catalog, item, ty, CastContext::Explicit);
                items.into_iter().map(cast).collect::<Result<Vec<Typed>>>()?
            }
            _ => return unsupported("VARIADIC before this form of an array"),
        };
        match elements.iter().any(|item| item.is_row() || self.array_row(item.ty.oid).is_some()) {
            true => unsupported("VARIADIC before an array of arrays or rows"),
            false => Ok(elements),
        }
    }

    /// A moment in the session's zone, or of it.
    pub(super) fn at_local(&mut self, syntax: &Syntax) -> Result<Typed> {
        if self.catalog.database().cluster().version().major() < 17 {
            return fail(SqlState::SYNTAX_ERROR, "syntax error at or near \"LOCAL\"");
        }
        let typed = self.expr(syntax)?;
        let to = match typed.ty.oid {
            oid::TIMESTAMP => oid::TIMESTAMPTZ,
            oid::TIMESTAMPTZ => oid::TIMESTAMP,
            _ => return unsupported("AT LOCAL of another type than timestamp"),
        };
        coerce(&self.catalog, typed, PgType::new(to), CastContext::Explicit)
    }
}
