//! One value of a type from a document, as the forms of SQL/JSON with RETURNING make it.
//!
//! ```text
//! "x"       ──►  text: "x" with its quotes, without them where they are left out
//! [1, 2]    ──►  int[]: {1,2}; where quotes are left out it is the text of the document that the array's input function reads
//! ```
//!
//! Invariant: here a null is no NULL: it is a document like another, which only domains and inputs of types refuse.
//!
//! Source: `json_populate_type`, `populate_record_field`, `populate_scalar` in `src/backend/utils/adt/jsonfuncs.c`,
//! PostgreSQL 17 and 18.

use super::super::super::rows::Outcome;
use super::super::documents::{Kind, unescaped};
use super::super::json_changes::quoted;
use super::fill::{Filler, Makes, Parts, Target, Value};
use super::makes::{Payloads, target_of};
use crate::catalog::Catalog;
use crate::types::PgType;

/// What documents are never taken for: an array's or a row's error says so.
const SOME_SCALAR: &str = "0";

/// The value that the text of a `jsonb` becomes; none for NULL.
///
/// # Errors
/// Where it is none of the type.
pub(crate) fn populated(
    catalog: &Catalog,
    ty: PgType,
    document: Option<&str>,
    omits_quotes: bool,
) -> Outcome<Value> {
    let target = target_of(catalog, ty)?;
    let document = match (document, omits_quotes) {
        (Some(text), true) if Kind::of(text) == Kind::String => Some((unescaped(text)?, true)),
        (text, omits_quotes) => text.map(|text| (text.to_owned(), omits_quotes)),
    };
    made(&mut Payloads(catalog), &target, document.as_ref())
}

/// Refuses what a domain does.
///
/// # Errors
/// In the words of the domain.
pub(crate) fn accept(catalog: &Catalog, ty: PgType, value: Option<&[u8]>) -> Outcome<()> {
    let target = target_of(catalog, ty)?;
    match target.parts {
        Parts::Domain(_) => Payloads(catalog).accept(&target, value),
        _ => Ok(()),
    }
}

/// Of a document, or of a string that is said without its quotes.
fn made(
    makes: &mut dyn Makes,
    target: &Target,
    document: Option<&(String, bool)>,
) -> Outcome<Value> {
    let Some((text, is_string)) = document else {
        if matches!(target.parts, Parts::Domain(_)) {
            makes.accept(target, None)?;
        }
        return Ok(None);
    };
    match &target.parts {
        Parts::Domain(base) if !target.is_row() => {
            let value = made(makes, base, document)?;
            makes.accept(target, value.as_deref())?;
            Ok(value)
        }
        Parts::None | Parts::Document => makes.read(target, text).map(Some),
        _ if *is_string => Filler::new(makes).field(target, Some(&quoted(text)), None, None),
        _ => {
            let is_taken = !matches!(Kind::of(text), Kind::String | Kind::Null);
            let part = if is_taken { text.as_str() } else { SOME_SCALAR };
            Filler::new(makes).field(target, Some(part), None, None)
        }
    }
}
