//! `upper`, `lower`, `initcap`, as far as they are the same on every machine.
//!
//! Under C and POSIX only letters of ASCII have a case. Elsewhere those of ASCII are known, but for the locales in which an
//! `i` is another letter; a text with other letters is refused, as what they become depends on the server's libraries.
//!
//! Source: `str_toupper` and its kin in `src/backend/utils/adt/formatting.c`, `lc_ctype_is_c` in `pg_locale.c`, PostgreSQL 14 to 18.

use arrow::array::ArrayRef;

use super::super::rows::{Outcome, one};
use super::super::{Build, Implementation, Kernel, KernelCall};
use super::initials::initcap;
use crate::catalog::Catalog;
use crate::error::{Result, StatementError, unsupported};
use crate::system_rows::for_each_row;
use crate::typed::Typed;
use crate::types::{C_COLLATION, DEFAULT_COLLATION, POSIX_COLLATION};
use pagemill_format::Oid;

pub(super) fn find(key: &str) -> Option<Implementation> {
    matches!(key, "upper" | "lower" | "initcap").then_some(Implementation::Build(case_call))
}

/// What letters are to a collation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Letters {
    /// Those of ASCII.
    Ascii,
    /// More than those.
    More {
        /// By ICU, or by Unicode's properties alone, in which `=` is no punctuation.
        is_icu: bool,
    },
}

/// What letters are to the collation of the arguments.
pub(in super::super) fn letters(catalog: &Catalog, arguments: &[Typed]) -> Result<Letters> {
    let own = |oid: &Oid| !matches!(*oid, Oid(0) | DEFAULT_COLLATION);
    let mut collations: Vec<Oid> = arguments.iter().map(|a| a.ty.collation).filter(own).collect();
    collations.dedup();
    match collations[..] {
        [] => letters_of(catalog, DEFAULT_COLLATION),
        [only] => letters_of(catalog, only),
        _ => unsupported("a function of texts of several collations"),
    }
}

fn letters_of(catalog: &Catalog, collation: Oid) -> Result<Letters> {
    if matches!(collation, C_COLLATION | POSIX_COLLATION) {
        return Ok(Letters::Ascii);
    }
    let Some(row) = catalog.collation(collation) else {
        return unsupported(format!("collation {}", collation.0));
    };
    if !row.is_deterministic {
        return unsupported(format!("the nondeterministic collation \"{}\"", row.name));
    }
    let locale = match row.provider {
        b'c' => libc_locale(catalog, collation)?,
        _ => row.locale.clone(),
    };
    if matches!((row.provider, locale.as_str()), (b'b' | b'c', "C" | "POSIX")) {
        return Ok(Letters::Ascii);
    }
    match has_other_i(&locale) {
        true => unsupported(format!("upper and lower case in locale \"{locale}\"")),
        false => Ok(Letters::More { is_icu: row.provider == b'i' || locale == "PG_UNICODE_FAST" }),
    }
}

/// Locales in which the capital of `i` is no `I`, or may be none.
fn has_other_i(locale: &str) -> bool {
    const LANGUAGES: [&str; 9] = ["tr", "az", "crh", "ku", "tt", "lt", "kk", "uz", "ba"];
    let language = locale.split(['_', '-', '.', '@']).next().unwrap_or_default();
    // A locale without a language takes what the server's environment said.
    language.is_empty() || LANGUAGES.contains(&language.to_ascii_lowercase().as_str())
}

/// `LC_CTYPE` of a collation of the C library.
fn libc_locale(catalog: &Catalog, collation: Oid) -> Result<String> {
    let is_name = catalog.database().cluster().version().major() == 14;
    let (table, columns, wanted) = match collation {
        DEFAULT_COLLATION => ("pg_database", ["oid", "datctype"], catalog.database().row().oid),
        other => ("pg_collation", ["oid", "collctype"], other),
    };
    let mut found = None;
    for_each_row(catalog.values(), table, &columns, |row| {
        if row.oid(0) == wanted {
            found = if is_name { Some(row.name(1)) } else { row.text(1)? };
        }
        Ok(())
    })?;
    Ok(found.unwrap_or_default())
}

fn case_call(build: &Build<'_>) -> Result<Typed> {
    let kernel: Kernel = match (letters(build.catalog, build.arguments)?, build.key) {
        (Letters::More { is_icu: true }, "initcap") => {
            return unsupported("function initcap(text) in a collation of ICU");
        }
        (Letters::Ascii, "upper") => |_, a| one(a, |text: &str| Ok(text.to_ascii_uppercase())),
        (Letters::Ascii, "lower") => |_, a| one(a, |text: &str| Ok(text.to_ascii_lowercase())),
        (Letters::Ascii, _) => |_, a| one(a, |text: &str| Ok(initcap(text))),
        _ => ascii_case,
    };
    let carrier = crate::coerce::carrier_of(build.catalog, build.result);
    Ok(build.kernel(kernel, build.arguments, carrier))
}

fn ascii_case(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    one(arguments, |text: &str| {
        require_ascii(text, &call.key)?;
        Ok(match &*call.key {
            "upper" => text.to_ascii_uppercase(),
            "lower" => text.to_ascii_lowercase(),
            _ => initcap(text),
        })
    })
}

/// Refuses a text with letters whose case depends on the server's libraries.
pub(super) fn require_ascii(text: &str, what: &str) -> Outcome<()> {
    if text.is_ascii() {
        return Ok(());
    }
    let what = format!("{what} of a text with characters beyond ASCII in this locale");
    Err(StatementError::unsupported(what)
        .with_hint("COLLATE \"C\" knows no case but that of ASCII."))
}
