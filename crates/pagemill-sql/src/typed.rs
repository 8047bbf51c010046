//! An expression with the type that PostgreSQL gives it, and what carries its values: what binding passes around.
//!
//! Invariant: the carrier is the Arrow type that the expression has when it runs.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;
use datafusion::scalar::ScalarValue;

use crate::parameters::Undecided;
use crate::types::{PgType, UNKNOWN};

/// A field of a row that is a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowField {
    pub(crate) name: String,
    pub(crate) ty: PgType,
    /// The Arrow type of its values.
    pub(crate) carrier: DataType,
    /// True where it is NULL only if there is no row.
    pub(crate) is_never_null: bool,
    /// True for a text that has no type of its own, of a row that is written out.
    pub(crate) was_unknown: bool,
    /// True for a field of a record that comes from where the server does not look for its fields' names.
    pub(crate) is_nameless: bool,
    /// The fields of one that is a row itself.
    pub(crate) row: Option<Arc<[RowField]>>,
}

impl RowField {
    /// A field that an expression gives.
    pub(crate) fn of(name: String, typed: &Typed) -> Self {
        let Typed { ty, carrier, row, .. } = typed.clone();
        Self { row, ..Self::new(name, ty, carrier) }
    }

    /// A field that is no row.
    pub(crate) fn new(name: String, ty: PgType, carrier: DataType) -> Self {
        let (is_never_null, was_unknown, is_nameless) = (false, false, false);
        Self { name, ty, carrier, is_never_null, was_unknown, is_nameless, row: None }
    }
}

/// An expression.
#[derive(Debug, Clone)]
pub(crate) struct Typed {
    pub(crate) expr: Expr,
    pub(crate) ty: PgType,
    /// The Arrow type of its values.
    pub(crate) carrier: DataType,
    /// The text of a literal whose type follows from where it stands; `None` inside for NULL.
    pub(crate) literal: Option<Option<String>>,
    /// Where a type is still sought, of a parameter: such a one passes for a literal.
    pub(crate) parameter: Option<Undecided>,
    /// The fields of a row.
    pub(crate) row: Option<Arc<[RowField]>>,
    /// Of a column that the role may not read: what whoever names it is told.
    pub(crate) denied: Option<Arc<str>>,
    /// Of what is a column of a relation as it stands.
    pub(crate) origin: Option<ColumnOrigin>,
    /// True of what COLLATE was said of, so that its collation goes before those of others.
    pub(crate) is_collated: bool,
}

/// Which column a value is, as clients are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnOrigin {
    /// The relation, a view where it was asked by its name.
    pub relation: pagemill_format::Oid,
    /// Its number there.
    pub number: i16,
}

impl Typed {
    pub(crate) fn new(expr: Expr, ty: PgType, carrier: DataType) -> Self {
        let (literal, parameter, row, denied, origin) = (None, None, None, None, None);
        let is_collated = false;
        Self { expr, ty, carrier, literal, parameter, row, denied, origin, is_collated }
    }

    /// A literal without a type.
    pub(crate) fn unknown(text: Option<String>) -> Self {
        let expr = Expr::Literal(ScalarValue::Utf8(text.clone()), None);
        let ty = PgType { oid: UNKNOWN, modifier: -1, collation: pagemill_format::Oid(0) };
        let carrier = DataType::Utf8;
        Self { literal: Some(text), ..Self::new(expr, ty, carrier) }
    }

    /// True for a row that is carried as its fields.
    pub(crate) fn is_row(&self) -> bool {
        self.row.is_some() || matches!(self.carrier, DataType::Struct(_))
    }

    /// The same with another expression of the same type.
    pub(crate) fn with_expr(&self, expr: Expr) -> Self {
        let (row, denied) = (self.row.clone(), self.denied.clone());
        Self { row, denied, ..Self::new(expr, self.ty, self.carrier.clone()) }
    }
}
