//! Arguments behind VARIADIC, COLLATION FOR, and moments AT LOCAL.
//!
//! An array behind VARIADIC whose elements are written one by one is as many arguments, of the array's type of elements, where
//! the function takes arguments of any type; such functions alone tell the two apart by nothing. Other arrays are refused.
//!
//! Source: `ParseFuncOrColumn` in `src/backend/parser/parse_func.c`, `extract_variadic_args` in `funcapi.c`, PostgreSQL 14 to 18;
//! `timestamptz_at_local` in `src/backend/utils/adt/timestamp.c`, PostgreSQL 17 and 18.

use arrow::array::{Array as _, ArrayRef};
use arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;
use pagemill_format::Oid;
use pagemill_types::builtin::oid;
use sqlparser::ast::{
    ArrayElemTypeDef, DataType as Named, Expr as Syntax, Function, FunctionArg, FunctionArguments,
    Ident,
};

use super::Binder;
use crate::catalog::{CastContext, Catalog, FunctionRow, quote_identifier};
use crate::coerce::{coerce, null_of};
use crate::error::{Result, SqlState, fail, unsupported};
use crate::forms::{LOCAL, VARIADIC};
use crate::functions::rows::{Made, Outcome};
use crate::functions::{Kernel, KernelCall, call_kernel};
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

/// The name of a collation of the server's own, all of which the search path has.
fn collation_name(catalog: &Catalog, collation: Oid) -> Option<String> {
    const FIRST_OF_USERS: u32 = 16_384;
    let row = catalog.collation(collation).filter(|row| row.oid.0 < FIRST_OF_USERS)?;
    Some(quote_identifier(&row.name))
}

fn collation_names(call: &KernelCall, values: &[ArrayRef]) -> Outcome<ArrayRef> {
    let name = collation_name(&call.catalog, call.arguments[0].collation);
    Made::column(vec![name; values[0].len()])
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
                let Some(items) = self.written_elements(expr)? else {
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

    /// The elements of an array that is cast, where they are written one by one.
    fn written_elements(&mut self, array: &Syntax) -> Result<Option<Vec<Typed>>> {
        let Syntax::Array(array) = array else { return self.array_literal(array) };
        let has_arrays = array.elem.iter().any(|item| matches!(item, Syntax::Array(_)));
        if !array.named || array.elem.is_empty() || has_arrays {
            return Ok(None);
        }
        array.elem.iter().map(|item| self.expr(item)).collect::<Result<Vec<Typed>>>().map(Some)
    }

    /// `COLLATION FOR (x)` of what has its collation by itself: a column, or a constant.
    ///
    /// Source: `pg_collation_for` in `src/backend/utils/adt/misc.c`, PostgreSQL 14 to 18.
    pub(super) fn collation_for(&self, arguments: &[Typed]) -> Result<Typed> {
        let text = PgType::new(oid::TEXT);
        let [value] = arguments else { return unsupported("COLLATION FOR several values") };
        let is_literal = value.literal.is_some() && value.parameter.is_none();
        if is_literal && !value.is_collated {
            return null_of(&self.catalog, text);
        }
        // What COLLATE was said of is a text here.
        let collated;
        let value = if is_literal {
            collated = coerce(&self.catalog, value.clone(), text, CastContext::Implicit)?;
            &collated
        } else {
            value
        };
        let row = self.catalog.type_row(value.ty.oid);
        if value.parameter.is_none() && row.is_some_and(|row| row.collation == Oid(0)) {
            let name = self.catalog.type_name(value.ty.oid);
            let message = format!("collations are not supported by type {name}");
            return fail(SqlState::DATATYPE_MISMATCH, message);
        }
        let is_plain = value.origin.is_some() || matches!(value.expr, Expr::Literal(..));
        let is_text = matches!(value.ty.oid, oid::TEXT | oid::VARCHAR | oid::BPCHAR);
        let is_known = collation_name(&self.catalog, value.ty.collation).is_some();
        if !is_plain || !is_text || !is_known || value.parameter.is_some() {
            return unsupported("COLLATION FOR this expression");
        }
        let call = ("pg_collation_for", collation_names as Kernel);
        let of = std::slice::from_ref(value);
        Ok(call_kernel(&self.catalog, call, of, text, DataType::Utf8))
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
