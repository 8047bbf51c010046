//! Offsets of frames: `2 PRECEDING`, `'1 day' FOLLOWING`, `(SELECT …) PRECEDING`, each of the type that the frame wants.
//!
//! An offset has no columns of its own query, and is the same for all of its rows.
//!
//! Source: `transformFrameOffset` in `src/backend/parser/parse_clause.c`, `pg_amproc.dat` (the functions `in_range`), PostgreSQL
//! 14 to 18.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNode as _;
use datafusion::logical_expr::Expr;
use datafusion::scalar::ScalarValue;
use pagemill_format::Oid;
use pagemill_types::builtin::oid;
use sqlparser::ast::{DataType as Named, Expr as Syntax, UnaryOperator, Value};

use super::Binder;
use super::scope::Allowed;
use super::window_frames::Order;
use crate::catalog::{CastContext, Catalog, TypeRow};
use crate::coerce::coerce;
use crate::error::{Result, SqlState, StatementError, fail};
use crate::functions::windows::{Units, negative_offset, null_offset};
use crate::resolve::pathway;
use crate::typed::Typed;
use crate::types::{PgType, UNKNOWN};

impl Binder<'_> {
    /// An offset, of the type that the frame wants.
    pub(super) fn frame_offset(
        &mut self,
        syntax: &Syntax,
        units: Units,
        order: &Order,
    ) -> Result<Typed> {
        let (name, clause) = match units {
            Units::Rows => ("ROWS", "window ROWS"),
            Units::Range => ("RANGE", "window RANGE"),
            Units::Groups => ("GROUPS", "window GROUPS"),
        };
        let before = std::mem::replace(&mut self.level().allowed, Allowed::PlainIn(clause));
        let typed = self.expr(syntax);
        self.level().allowed = before;
        let typed = typed?;
        let wanted = match (units, order.first()) {
            (Units::Range, Some((_, sorted))) => offset_type(&self.catalog, sorted, &typed)?,
            _ => oid::INT8,
        };
        let own = typed.ty.oid;
        let is_open = typed.literal.is_some() || typed.parameter.is_some() || own == wanted;
        if !is_open && pathway(&self.catalog, own, wanted, CastContext::Assignment).is_none() {
            let (own, wanted) = (self.catalog.type_name(own), self.catalog.type_name(wanted));
            let message = format!("argument of {name} must be type {wanted}, not type {own}");
            return fail(SqlState::DATATYPE_MISMATCH, message);
        }
        self.check_variables(&typed.expr, name)?;
        coerce(&self.catalog, typed, PgType::new(wanted), CastContext::Assignment)
    }

    /// Refuses columns of this query.
    fn check_variables(&mut self, expr: &Expr, name: &str) -> Result<()> {
        let refused = || {
            let message = format!("argument of {name} must not contain variables");
            fail(SqlState::INVALID_COLUMN_REFERENCE, message)
        };
        let tables = &self.level().scope.tables;
        let is_own = |outer: &Expr| match outer {
            Expr::OuterReferenceColumn(_, column) => tables.iter().any(|table| {
                let mut columns = table.columns.iter().chain(&table.system);
                columns.any(|known| matches!(&known.typed.expr, Expr::Column(c) if c == column))
            }),
            _ => true,
        };
        let has_own = expr.exists(|inner| match inner {
            Expr::ScalarSubquery(query) => Ok(query.outer_ref_columns.iter().any(is_own)),
            Expr::Exists(exists) => Ok(exists.subquery.outer_ref_columns.iter().any(is_own)),
            Expr::InSubquery(within) => Ok(within.subquery.outer_ref_columns.iter().any(is_own)),
            _ => Ok(false),
        })?;
        if has_own || !expr.column_refs().is_empty() {
            return refused();
        }
        Ok(())
    }
}

/// The type of an offset of RANGE: of those that the type of the values knows, the one that is meant.
fn offset_type(catalog: &Catalog, sorted: &Typed, offset: &Typed) -> Result<Oid> {
    let base = catalog.base_type(sorted.ty.oid, -1).0;
    let known: &[Oid] = match base {
        oid::INT2 | oid::INT4 => &[oid::INT8, oid::INT4, oid::INT2],
        oid::INT8 => &[oid::INT8],
        oid::FLOAT4 | oid::FLOAT8 => &[oid::FLOAT8],
        oid::NUMERIC => &[oid::NUMERIC],
        oid::DATE | oid::TIMESTAMP | oid::TIMESTAMPTZ => &[oid::INTERVAL],
        oid::TIME | oid::TIMETZ | oid::INTERVAL => &[oid::INTERVAL],
        _ => &[],
    };
    let own = offset.ty.oid;
    let is_open = own == UNKNOWN || offset.parameter.is_some();
    let preferred = if is_open { base } else { own };
    let fits = |wanted: &&Oid| {
        is_open
            || own == **wanted
            || pathway(catalog, own, **wanted, CastContext::Implicit).is_some()
    };
    let fitting: Vec<Oid> = known.iter().filter(fits).copied().collect();
    let what = "RANGE with offset PRECEDING/FOLLOWING";
    let column = shown_type(catalog, base);
    let refused = |message: String, hint: &str| {
        let error = StatementError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
        Err(if hint.is_empty() { error } else { error.with_hint(hint) }.into())
    };
    match &fitting[..] {
        _ if known.is_empty() => {
            refused(format!("{what} is not supported for column type {column}"), "")
        }
        [] => {
            let own = catalog.type_name(own);
            let message =
                format!("{what} is not supported for column type {column} and offset type {own}");
            refused(message, "Cast the offset value to an appropriate type.")
        }
        fitting if fitting.contains(&preferred) => Ok(preferred),
        [only] => Ok(*only),
        _ => {
            let own = catalog.type_name(own);
            let message = format!(
                "{what} has multiple interpretations for column type {column} and offset type {own}"
            );
            refused(message, "Cast the offset value to the exact intended type.")
        }
    }
}

/// The type by whose operators a type is sorted.
fn shown_type(catalog: &Catalog, base: Oid) -> String {
    let row = catalog.type_row(base);
    match base {
        oid::VARCHAR => catalog.type_name(oid::TEXT),
        oid::CIDR => catalog.type_name(oid::INET),
        _ if row.is_some_and(TypeRow::is_array) => "anyarray".to_owned(),
        _ => match row.map(|row| row.kind) {
            Some(b'e') => "anyenum".to_owned(),
            Some(b'r') => "anyrange".to_owned(),
            Some(b'm') => "anymultirange".to_owned(),
            _ => catalog.type_name(base),
        },
    }
}

/// A constant of an integer type, zero or above, that the engine takes.
pub(super) fn plain_number(syntax: &Syntax, typed: &Typed) -> Option<u64> {
    if !matches!(typed.ty.oid, oid::INT2 | oid::INT4 | oid::INT8) {
        return None;
    }
    let number = written_number(syntax).or_else(|| cast_number(&typed.expr))?;
    i32::try_from(number).ok().and_then(|number| u64::try_from(number).ok())
}

/// What is wrong with an offset that is a constant, as it is written and as it was bound.
pub(super) fn bad_constant(
    (syntax, expr): (&Syntax, &Expr),
    units: Units,
    name: &str,
) -> Option<StatementError> {
    let number = || written_number(syntax).or_else(|| cast_number(expr));
    match () {
        () if is_written_null(syntax) => Some(null_offset(name)),
        () if units == Units::Range => None,
        () => number().filter(|number| *number < 0).map(|_| negative_offset(name)),
    }
}

/// NULL as it is written: what a parameter is says its value, which is sought after its type.
fn is_written_null(syntax: &Syntax) -> bool {
    match syntax {
        Syntax::Nested(inner) => is_written_null(inner),
        Syntax::Cast { expr, .. } => is_written_null(expr),
        Syntax::Value(value) => value.value == Value::Null,
        _ => false,
    }
}

/// A constant whole number.
pub(super) fn whole_number(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(value, _) => match value.cast_to(&DataType::Int64).ok()? {
            ScalarValue::Int64(number) => number,
            _ => None,
        },
        Expr::Negative(inner) => whole_number(inner)?.checked_neg(),
        _ => None,
    }
}

/// A constant whole number, perhaps as another integer type.
fn cast_number(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Cast(cast) => cast_number(&cast.expr),
        other => whole_number(other),
    }
}

/// A number as it is written, perhaps as one of another integer type, which every such type has.
fn written_number(syntax: &Syntax) -> Option<i64> {
    match syntax {
        Syntax::Nested(inner) => written_number(inner),
        Syntax::UnaryOp { op: UnaryOperator::Minus, expr } => written_number(expr)?.checked_neg(),
        Syntax::Cast { expr, data_type, format: None, .. } if is_integer(data_type) => {
            written_number(expr)
        }
        Syntax::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.parse::<i16>().ok().map(i64::from),
            _ => None,
        },
        _ => None,
    }
}

fn is_integer(name: &Named) -> bool {
    matches!(
        name,
        Named::SmallInt(None)
            | Named::Int2(None)
            | Named::Int(None)
            | Named::Integer(None)
            | Named::Int4(None)
            | Named::BigInt(None)
            | Named::Int8(None)
    )
}
