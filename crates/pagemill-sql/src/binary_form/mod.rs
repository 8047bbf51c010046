//! Values in the binary form of the protocol: what `typreceive` takes and `typsend` gives.
//!
//! Numbers are big-endian there, and little-endian in a tuple's payload; texts are the same in both.
//!
//! Invariant: a type whose binary form is not known here is refused by name.
//!
//! Source: the functions `*recv` and `*send` in `src/backend/utils/adt`, PostgreSQL 18.

mod array;
mod inner;
mod network;
mod numeric;
mod shapes;
mod text_search;

use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion::logical_expr::Expr;
use pagemill_types::builtin::oid;

use crate::catalog::Catalog;
use crate::coerce::{carrier_of, constant as constant_of_text};
use crate::error::{Result, SqlState, fail, unsupported};
use crate::functions::text_form::{Printer, payload_of, scalar_of_payload};
use crate::typed::Typed;
use crate::types::PgType;
pub(crate) use inner::InnerForm;
use numeric::{numeric_text, put_numeric};

/// What stands before the text of a jsonb.
const JSONB_VERSION: u8 = 1;

/// How a type's values look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BinaryForm {
    /// As the payload of a tuple.
    Payload,
    /// Numbers behind each other, of so many bytes each.
    Numbers(&'static [usize]),
    /// As its text.
    Text,
    /// As its text behind a version, which is 1 for all types that have one.
    Versioned,
    /// Digits of base 10,000 behind a head.
    Numeric,
    /// A length of so many bits, and these.
    Bits,
    /// The number of a block and one in it.
    Tid,
    /// Family, bits, whether it is a network, and the address.
    Address,
    /// Points.
    Path,
    Polygon,
    /// Lexemes with their places.
    Document,
    /// Operators and lexemes.
    SearchQuery,
    /// Bounds, and elements of this form.
    Array(Box<BinaryForm>),
    /// Flags, and bounds of this form.
    Range(Box<InnerForm>),
    /// Such ranges.
    Multirange(Box<InnerForm>),
    /// Types, and values of these forms.
    Row(Box<[InnerForm]>),
}

impl BinaryForm {
    /// The form of a type.
    ///
    /// # Errors
    /// When it is not known here.
    pub(crate) fn of(catalog: &Catalog, ty: PgType) -> Result<Self> {
        let (base, _) = catalog.base_type(ty.oid, -1);
        let is_enum = catalog.type_row(base).is_some_and(|row| row.kind == b'e');
        Ok(match base {
            oid::BOOL | oid::BYTEA | oid::UUID | oid::CHAR | oid::MACADDR | oid::MACADDR8 => {
                Self::Payload
            }
            oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME | oid::JSON | oid::XML => Self::Text,
            // Nothing, in both.
            oid::VOID => Self::Text,
            oid::INT2 => Self::Numbers(&[2]),
            oid::INT4 | oid::FLOAT4 | oid::DATE | oid::OID | oid::XID | oid::CID => {
                Self::Numbers(&[4])
            }
            oid::REGCLASS | oid::REGTYPE | oid::REGPROC | oid::REGPROCEDURE => Self::Numbers(&[4]),
            oid::REGOPER | oid::REGOPERATOR | oid::REGROLE | oid::REGNAMESPACE => {
                Self::Numbers(&[4])
            }
            oid::REGCONFIG | oid::REGDICTIONARY | oid::REGCOLLATION => Self::Numbers(&[4]),
            oid::INT8 | oid::FLOAT8 | oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ => {
                Self::Numbers(&[8])
            }
            oid::MONEY | oid::PG_LSN | oid::XID8 => Self::Numbers(&[8]),
            oid::POINT => Self::Numbers(&[8; 2]),
            oid::LINE | oid::CIRCLE => Self::Numbers(&[8; 3]),
            oid::LSEG | oid::BOX => Self::Numbers(&[8; 4]),
            oid::BIT | oid::VARBIT => Self::Bits,
            oid::TID => Self::Tid,
            oid::INET | oid::CIDR => Self::Address,
            oid::PATH => Self::Path,
            oid::POLYGON => Self::Polygon,
            oid::TSVECTOR => Self::Document,
            oid::TSQUERY => Self::SearchQuery,
            oid::TIMETZ => Self::Numbers(&[8, 4]),
            oid::INTERVAL => Self::Numbers(&[8, 4, 4]),
            oid::JSONB | oid::JSONPATH => Self::Versioned,
            oid::NUMERIC => Self::Numeric,
            _ if let Some(element) = array::element(catalog, base) => {
                Self::Array(Box::new(Self::of(catalog, element)?))
            }
            _ if is_enum || ty.oid == crate::types::UNKNOWN => Self::Text,
            _ if let Some(form) = inner::form(catalog, base)? => form,
            _ => {
                let name = catalog.type_name(ty.oid);
                return unsupported(format!("the binary form of type {name}"));
            }
        })
    }
}

/// A value by its binary form.
///
/// # Errors
/// When the bytes are none, or the form is not known here.
pub(crate) fn constant(catalog: &Arc<Catalog>, ty: PgType, bytes: &[u8]) -> Result<Typed> {
    let payload = match BinaryForm::of(catalog, ty)? {
        BinaryForm::Payload => match ty.oid {
            oid::UUID if bytes.len() != 16 => return wrong(),
            oid::BOOL | oid::CHAR if bytes.len() != 1 => return wrong(),
            oid::MACADDR if bytes.len() != 6 => return wrong(),
            oid::MACADDR8 if bytes.len() != 8 => return wrong(),
            oid::BOOL => vec![u8::from(bytes[0] != 0)],
            _ => bytes.to_vec(),
        },
        BinaryForm::Numbers(widths) => swapped(widths, bytes)?,
        BinaryForm::Text => return constant_of_text(catalog, ty, text(bytes)?),
        BinaryForm::Versioned => match bytes.split_first() {
            Some((&JSONB_VERSION, rest)) => return constant_of_text(catalog, ty, text(rest)?),
            _ => return wrong(),
        },
        BinaryForm::Numeric => return constant_of_text(catalog, ty, &numeric_text(bytes)?),
        BinaryForm::Bits => return constant_of_text(catalog, ty, &network::bits_text(bytes)?),
        BinaryForm::Address => {
            return constant_of_text(catalog, ty, &network::address_text(bytes)?);
        }
        BinaryForm::Tid => match bytes {
            [a, b, c, d, e, f] => vec![*b, *a, *d, *c, *f, *e],
            _ => return wrong(),
        },
        BinaryForm::Path => return constant_of_text(catalog, ty, &shapes::path_text(bytes)?),
        BinaryForm::Polygon => return constant_of_text(catalog, ty, &shapes::polygon_text(bytes)?),
        BinaryForm::Document => {
            return constant_of_text(catalog, ty, &text_search::document_text(bytes)?);
        }
        BinaryForm::SearchQuery => {
            return constant_of_text(catalog, ty, &text_search::query_text(bytes)?);
        }
        BinaryForm::Array(_) => array::payload(catalog, ty, bytes)?,
        BinaryForm::Range(form) => {
            return constant_of_text(catalog, ty, &inner::range_text(catalog, &form, bytes)?);
        }
        BinaryForm::Multirange(form) => {
            return constant_of_text(catalog, ty, &inner::multirange_text(catalog, &form, bytes)?);
        }
        BinaryForm::Row(forms) => {
            return constant_of_text(catalog, ty, &inner::row_text(catalog, &forms, bytes)?);
        }
    };
    let carrier = carrier_of(catalog, ty);
    let value = scalar_of_payload(catalog, ty, &carrier, &payload)?;
    Ok(Typed::new(Expr::Literal(value, None), ty, carrier))
}

/// Appends the binary form of a value that is not NULL.
///
/// # Errors
/// When the value is damaged.
pub(crate) fn print(
    (printer, form): (&mut Printer, &BinaryForm),
    array: &ArrayRef,
    row: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    match form {
        BinaryForm::Text => printer.print(array, row, out)?,
        BinaryForm::Versioned => {
            out.push(JSONB_VERSION);
            printer.print(array, row, out)?;
        }
        BinaryForm::Numeric => {
            let mut digits = Vec::new();
            printer.print(array, row, &mut digits)?;
            put_numeric(&digits, out);
        }
        _ => {
            let payload = payload_of(printer.catalog(), printer.ty(), array, row)?;
            put((printer.catalog(), printer.ty()), form, &payload, out)?;
        }
    }
    Ok(())
}

/// Appends the binary form of a payload, of a form that is made of one.
fn put(
    (catalog, ty): (&Arc<Catalog>, PgType),
    form: &BinaryForm,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    match form {
        BinaryForm::Numbers(widths) => out.extend(swapped(widths, payload)?),
        BinaryForm::Bits => network::put_bits(payload, out)?,
        BinaryForm::Address => network::put_address(ty.oid, payload, out)?,
        BinaryForm::Tid => match payload {
            [a, b, c, d, e, f] => out.extend([b, a, d, c, f, e]),
            _ => return wrong(),
        },
        BinaryForm::Path => shapes::put_path(payload, out)?,
        BinaryForm::Polygon => shapes::put_polygon(payload, out)?,
        BinaryForm::Document => text_search::put_document(payload, out)?,
        BinaryForm::SearchQuery => text_search::put_query(payload, out)?,
        BinaryForm::Array(form) => array::put(catalog, (ty, form), payload, out)?,
        BinaryForm::Range(_) | BinaryForm::Multirange(_) | BinaryForm::Row(_) => {
            inner::put_inner(catalog, (ty, form), payload, out)?;
        }
        _ => out.extend_from_slice(payload),
    }
    Ok(())
}

fn wrong<T>() -> Result<T> {
    fail(SqlState("22P03"), "incorrect binary data format in bind parameter")
}

fn text(bytes: &[u8]) -> Result<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => fail(SqlState("22021"), "invalid byte sequence for encoding \"UTF8\""),
    }
}

/// Numbers with their bytes the other way round.
fn swapped(widths: &[usize], bytes: &[u8]) -> Result<Vec<u8>> {
    if bytes.len() != widths.iter().sum::<usize>() {
        return wrong();
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    for width in widths {
        let (number, behind) = rest.split_at(*width);
        out.extend(number.iter().rev());
        rest = behind;
    }
    Ok(out)
}
