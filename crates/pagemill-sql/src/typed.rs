//! An expression with the type that PostgreSQL gives it, and what carries its values: what binding passes around.
//!
//! Invariant: the carrier is the Arrow type that the expression has when it runs.

use arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;
use datafusion::scalar::ScalarValue;

use crate::parameters::Undecided;
use crate::types::{PgType, UNKNOWN};

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
}

impl Typed {
    pub(crate) fn new(expr: Expr, ty: PgType, carrier: DataType) -> Self {
        Self { expr, ty, carrier, literal: None, parameter: None }
    }

    /// A literal without a type.
    pub(crate) fn unknown(text: Option<String>) -> Self {
        let expr = Expr::Literal(ScalarValue::Utf8(text.clone()), None);
        let ty = PgType { oid: UNKNOWN, modifier: -1, collation: pagemill_format::Oid(0) };
        Self { expr, ty, carrier: DataType::Utf8, literal: Some(text), parameter: None }
    }

    /// The same with another expression of the same type.
    pub(crate) fn with_expr(&self, expr: Expr) -> Self {
        Self::new(expr, self.ty, self.carrier.clone())
    }
}
