//! `$1`, `$2`: parameters of a statement that is prepared first, and run with values later.
//!
//! ```text
//! prepared: $n ── its type given, or the first that it is brought to ──► a placeholder; nothing runs
//! run:      $n ── its value ──► a constant of that type: bound and planned again, as if it had been written there
//! generic:  $n ── its type ──► a placeholder, for a plan that is kept for any value
//! ```
//!
//! Invariant: a parameter has one type in all places.
//!
//! Source: `src/backend/parser/parse_param.c`, PostgreSQL 18.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::Placeholder;
use pagemill_format::Oid;
use pagemill_types::builtin::oid;

use crate::binary_form;
use crate::catalog::Catalog;
use crate::coerce::{carrier_of, constant, null_of};
use crate::error::{Result, SqlState, StatementError, fail};
use crate::typed::Typed;
use crate::types::{PgType, UNKNOWN};

/// More than a message can have values for.
const MOST: usize = 65_535;

/// A value for a parameter.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "workers", derive(serde::Serialize, serde::Deserialize))]
pub struct ParameterValue {
    /// The parameter's type.
    #[cfg_attr(feature = "workers", serde(with = "oid_number"))]
    pub type_oid: Oid,
    /// True for the binary form of the protocol, and not the text.
    pub is_binary: bool,
    /// `None` for NULL.
    pub value: Option<Vec<u8>>,
}

/// An OID on its way to a worker.
#[cfg(feature = "workers")]
mod oid_number {
    use pagemill_format::Oid;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(oid: &Oid, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u32(oid.0)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Oid, D::Error> {
        u32::deserialize(from).map(Oid)
    }
}

/// What parameters of a statement are.
pub(crate) enum Parameters {
    /// Their types are found.
    Sought(Mutex<Vec<Undecided>>),
    /// They have values.
    Given(GivenValues),
    /// Their types are known, and the plan is to hold for any values. A modifier says only how a value is carried.
    Generic(Vec<PgType>),
}

/// Values of all parameters.
#[derive(Debug, Default)]
pub(crate) struct GivenValues {
    typed: Vec<Typed>,
    /// As they came, for workers.
    #[cfg(feature = "workers")]
    pub(crate) sent: Vec<ParameterValue>,
}

/// A parameter whose type follows from where it stands.
#[derive(Debug, Clone, Default)]
pub(crate) struct Undecided {
    number: usize,
    decided: Arc<OnceLock<Oid>>,
}

impl Parameters {
    /// Those whose types are not 0 or `unknown` have them already.
    pub(crate) fn sought(types: &[Oid]) -> Self {
        let undecided = |(at, ty): (usize, &Oid)| {
            let undecided = Undecided { number: at + 1, ..Undecided::default() };
            if *ty != Oid(0) && *ty != UNKNOWN {
                undecided.decided.get_or_init(|| *ty);
            }
            undecided
        };
        Self::Sought(Mutex::new(types.iter().enumerate().map(undecided).collect()))
    }

    /// # Errors
    /// When a value is none of its type.
    pub(crate) fn given(catalog: &Arc<Catalog>, values: &[ParameterValue]) -> Result<Self> {
        let typed = values.iter().map(|value| value.typed(catalog)).collect::<Result<_>>()?;
        Ok(Self::Given(GivenValues {
            typed,
            #[cfg(feature = "workers")]
            sent: values.to_vec(),
        }))
    }

    /// True while nothing is known but types.
    pub(crate) fn are_sought(&self) -> bool {
        matches!(self, Self::Sought(_))
    }

    /// True where nothing that changes from one run to the next may stand in the plan.
    pub(crate) fn are_generic(&self) -> bool {
        matches!(self, Self::Generic(_))
    }

    /// Whether `$n` was given no type but void.
    pub(crate) fn is_void(&self, name: &str) -> bool {
        let is_it = |ty: Option<&Oid>| ty == Some(&oid::VOID);
        let number = name.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok());
        let Some(at) = number.and_then(|number| number.checked_sub(1)) else { return false };
        match self {
            Self::Sought(known) => {
                let known = known.lock().unwrap_or_else(PoisonError::into_inner);
                is_it(known.get(at).and_then(|undecided| undecided.decided.get()))
            }
            Self::Given(values) => is_it(values.typed.get(at).map(|typed| &typed.ty.oid)),
            Self::Generic(types) => is_it(types.get(at).map(|ty| &ty.oid)),
        }
    }

    /// `$n`, by how it is written.
    ///
    /// # Errors
    /// When there is none of this number.
    pub(crate) fn get(&self, catalog: &Catalog, name: &str) -> Result<Typed> {
        let number = name.strip_prefix('$').and_then(|digits| digits.parse().ok());
        let number = number.filter(|number| (1..=MOST).contains(number));
        match (self, number) {
            (Self::Sought(known), Some(number)) => {
                let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                while known.len() < number {
                    let number = known.len() + 1;
                    known.push(Undecided { number, ..Undecided::default() });
                }
                known[number - 1].typed(catalog)
            }
            (Self::Given(values), Some(number)) if number <= values.typed.len() => {
                Ok(values.typed[number - 1].clone())
            }
            (Self::Generic(types), Some(number)) if number <= types.len() => {
                let undecided = Undecided { number, ..Undecided::default() };
                undecided.placeholder(catalog, types[number - 1])
            }
            _ => fail(SqlState("42P02"), format!("there is no parameter {name}")),
        }
    }

    /// The types that were found.
    ///
    /// # Errors
    /// When one stands nowhere that would say its type.
    pub(crate) fn types(self) -> Result<Vec<Oid>> {
        let Self::Sought(known) = self else { return Ok(Vec::new()) };
        let known = known.into_inner().unwrap_or_else(PoisonError::into_inner);
        let of = |undecided: Undecided| match undecided.decided.get() {
            Some(ty) => Ok(*ty),
            None => {
                let number = undecided.number;
                let message = format!("could not determine data type of parameter ${number}");
                fail(SqlState("42P18"), message)
            }
        };
        known.into_iter().map(of).collect()
    }
}

impl Undecided {
    fn typed(&self, catalog: &Catalog) -> Result<Typed> {
        match self.decided.get() {
            Some(ty) => self.placeholder(catalog, PgType::new(*ty)),
            // In all that is asked of it, it is a literal; its text is asked for by nobody who does not ask here first.
            None => {
                Ok(Typed { parameter: Some(self.clone()), ..Typed::unknown(Some(String::new())) })
            }
        }
    }

    /// Its type is this, unless it is another already.
    ///
    /// # Errors
    /// When it is.
    pub(crate) fn decide(&self, catalog: &Catalog, ty: Oid) -> Result<Typed> {
        let decided = *self.decided.get_or_init(|| ty);
        if decided != ty {
            let message = format!("inconsistent types deduced for parameter ${}", self.number);
            return fail(SqlState("42P08"), message);
        }
        self.placeholder(catalog, PgType::new(ty))
    }

    fn placeholder(&self, catalog: &Catalog, ty: PgType) -> Result<Typed> {
        if catalog.type_row(ty.oid).is_none() {
            let message = format!("type with OID {} does not exist", ty.oid.0);
            return fail(SqlState::UNDEFINED_OBJECT, message);
        }
        let carrier = carrier_of(catalog, ty);
        let field = arrow::datatypes::Field::new("parameter", carrier.clone(), true);
        let placeholder =
            Placeholder::new_with_field(format!("${}", self.number), Some(Arc::new(field)));
        Ok(Typed::new(Expr::Placeholder(placeholder), ty.with_modifier(-1), carrier))
    }
}

impl ParameterValue {
    /// The value as one of its type.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn typed(&self, catalog: &Arc<Catalog>) -> Result<Typed> {
        let ty = PgType::new(self.type_oid);
        match &self.value {
            None => null_of(catalog, ty),
            Some(bytes) if self.is_binary => binary_form::constant(catalog, ty, bytes),
            Some(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) if !text.contains('\0') => constant(catalog, ty, text),
                _ => {
                    let message = "invalid byte sequence for encoding \"UTF8\"";
                    Err(StatementError::new(SqlState("22021"), message).into())
                }
            },
        }
    }
}
