//! Collations of the C library: which of them are known to be here what they are on the server, and keys of texts under one; and what
//! letters are to any collation.
//!
//! An order changes with the library. So it is used only where the version that the cluster recorded is that of the library
//! which this program runs with, and the system has the locale; or where whoever asks says so ([`TextOrder`]), who is told of it then.
//!
//! Source: `pg_newlocale_from_collation` and `get_collation_actual_version` in `src/backend/utils/adt/pg_locale.c`,
//! PostgreSQL 14 to 18.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef};
use arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;
use pagemill_format::Oid;
use pagemill_sys::libc_version;
use pagemill_types::builtin::oid;

use super::characters::{Characters, Unicode};
use super::keys::strings;
use super::locale_order::LocaleOrder;
use super::rows::{Made, Outcome, two};
use super::{KernelCall, call_kernel};
use crate::catalog::{Catalog, CollationRow, TextOrder};
use crate::error::{Result, StatementError};
use crate::typed::Typed;
use crate::types::{COLLATION_OF_ANOTHER_DATABASE, DEFAULT_COLLATION, PgType};

/// `UTF8` in `src/include/mb/pg_wchar.h`.
const UTF8: i32 = 6;

/// The name of the kernel of such keys.
pub(crate) const LOCALE_KEY: &str = "locale_key";

/// What compares texts in a collation.
#[derive(Debug, Clone)]
pub(crate) struct Collator {
    pub(crate) collation: Oid,
    pub(crate) order: Arc<LocaleOrder>,
}

impl PartialEq for Collator {
    fn eq(&self, other: &Self) -> bool {
        self.collation == other.collation
    }
}

impl Eq for Collator {}

impl Hash for Collator {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.collation.hash(state);
    }
}

/// What compares texts in a collation that is not one of bytes.
pub(super) fn collator(catalog: &Catalog, collation: Oid) -> Result<Collator> {
    Ok(Collator { collation, order: known_locale(catalog, collation)? })
}

/// The key that sorts as texts do in a collation that is not one of bytes.
pub(super) fn order_key(catalog: &Arc<Catalog>, typed: &Typed) -> Result<Expr> {
    known_locale(catalog, typed.ty.collation)?;
    let argument = std::slice::from_ref(typed);
    Ok(call_kernel(catalog, (LOCALE_KEY, locale_keys), argument, typed.ty, DataType::Binary).expr)
}

/// The name of the kernel that compares two texts.
pub(crate) const LOCALE_COMPARE: &str = "locale_compare";

/// The order of two texts in a collation that is not one of bytes: a number that is below 0, 0 or above.
///
/// Unlike keys it is there for every two texts, and asks the library once.
pub(super) fn order(catalog: &Arc<Catalog>, a: &Typed, b: &Typed) -> Result<Expr> {
    known_locale(catalog, a.ty.collation)?;
    let (arguments, kernel) = ([a.clone(), b.clone()], (LOCALE_COMPARE, compared as _));
    let ty = PgType::new(oid::INT4);
    Ok(call_kernel(catalog, kernel, &arguments, ty, DataType::Int32).expr)
}

fn compared(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let order = locale(&call.catalog, call.arguments[0].collation).map_err(unavailable)?;
    two(arguments, |a: &str, b: &str| Ok(order.compare(a, b) as i32))
}

fn locale_keys(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let order = locale(&call.catalog, call.arguments[0].collation).map_err(unavailable)?;
    let texts = strings(&arguments[0]);
    let texts: Vec<Option<&str>> =
        (0..texts.len()).map(|row| (!texts.is_null(row)).then(|| texts.value(row))).collect();
    Made::column(order.keys(&texts)?)
}

/// The locale of a collation; refused where its order is not known.
fn known_locale(catalog: &Catalog, collation: Oid) -> Result<Arc<LocaleOrder>> {
    Ok(locale(catalog, collation).map_err(|why| {
        let name = shown(catalog, collation);
        let what = format!("the order of texts in collation {name} ({why})");
        // What is not installed is not there for any flag.
        let is_other =
            |row| of_library(catalog, row).is_ok_and(|here| same_version(row, &here).is_err());
        let hint = match catalog.collation(collation).is_some_and(is_other) {
            true => "COLLATE \"C\" sorts by bytes, and --text-order here as this machine does.",
            false => "COLLATE \"C\" sorts by bytes.",
        };
        StatementError::unsupported(what).with_hint(hint)
    })?)
}

/// A locale that was there when the statement was planned.
#[cold]
fn unavailable(why: String) -> StatementError {
    StatementError::unsupported(format!("a locale of the C library ({why})"))
}

/// The locale of a collation, if it is known to be the server's; else why it is not.
pub(super) fn locale(catalog: &Catalog, collation: Oid) -> Result<Arc<LocaleOrder>, String> {
    let row = catalog.collation(collation).ok_or("it is not in this pg_collation")?;
    check_version(catalog, row)?;
    installed(catalog, &row.locale)
}

/// What characters are to a collation, if that is known to be as on the server; else why it is not.
pub(super) fn letters(catalog: &Catalog, collation: Oid) -> Result<Characters, String> {
    let row = catalog.collation(collation).ok_or("it is not in this pg_collation")?;
    if (row.provider, row.locale.as_str()) == (b'b', "C.UTF-8") {
        let major = catalog.database().cluster().version().major();
        let unicode = Unicode::of_server(major).ok_or("of a version that has no such locale")?;
        return Ok(Characters::Unicode(unicode));
    }
    check_version(catalog, row)?;
    installed(catalog, &row.letters).map(Characters::Library)
}

fn installed(catalog: &Catalog, locale: &str) -> Result<Arc<LocaleOrder>, String> {
    catalog.locale_order(locale).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("the locale {locale} is not installed here"),
        _ => error.to_string(),
    })
}

/// Why a collation may be another one here than on the server, unless it is to be taken for the same.
fn check_version(catalog: &Catalog, row: &CollationRow) -> Result<(), String> {
    let here = of_library(catalog, row)?;
    match (same_version(row, &here), catalog.text_order()) {
        (Err(why), TextOrder::Here) => {
            let name = shown(catalog, row.oid);
            catalog.assume(format!(
                "collation {name} is taken for what the C library has here ({why})"
            ));
            Ok(())
        }
        (checked, _) => checked,
    }
}

/// True where the order of a collation is not known, and is to be taken for that of bytes.
pub(super) fn is_taken_for_bytes(catalog: &Catalog, collation: Oid) -> bool {
    if catalog.text_order() != TextOrder::Bytes {
        return false;
    }
    let Some(row) = catalog.collation(collation) else { return false };
    let version = of_library(catalog, row).and_then(|here| same_version(row, &here));
    let (Err(why), true) = (version, row.provider == b'c' && row.is_deterministic) else {
        return false;
    };
    let name = shown(catalog, collation);
    catalog.assume(format!("texts in collation {name} are ordered by their bytes ({why})"));
    true
}

/// The version of the C library here, if the collation is one that it has.
fn of_library(catalog: &Catalog, row: &CollationRow) -> Result<String, String> {
    if row.provider == b'i' {
        return Err("its provider is ICU".to_owned());
    }
    if row.provider != b'c' || !row.is_deterministic {
        return Err("it is none of the C library".to_owned());
    }
    if catalog.database().row().encoding != UTF8 {
        return Err("the database is not in UTF-8".to_owned());
    }
    libc_version().ok_or_else(|| "the C library of this program (musl) has no locales".to_owned())
}

fn same_version(row: &CollationRow, here: &str) -> Result<(), String> {
    match &row.version {
        Some(recorded) if recorded == here => Ok(()),
        Some(recorded) => {
            Err(format!("of version {recorded} of the C library, and here is version {here}"))
        }
        None => Err(format!("no version of the C library is recorded, and here is {here}")),
    }
}

/// The name for messages.
pub(super) fn shown(catalog: &Catalog, collation: Oid) -> String {
    match catalog.collation(collation) {
        Some(row) if collation == DEFAULT_COLLATION => format!("\"{}\"", row.locale),
        Some(row) => format!("\"{}\"", row.name),
        None if collation == COLLATION_OF_ANOTHER_DATABASE => "of another database".to_owned(),
        None => collation.0.to_string(),
    }
}
