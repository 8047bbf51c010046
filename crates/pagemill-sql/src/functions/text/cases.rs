//! `upper`, `lower`, `initcap`, as far as they are known to be the server's.
//!
//! Under C and POSIX only letters of ASCII have a case. Elsewhere those of ASCII are known, but for the locales in which an
//! `i` is another letter; other letters need the C library in the version that the cluster recorded, and are refused without, or are
//! Unicode's, under the provider `builtin`.
//!
//! Source: `str_toupper` and its kin in `src/backend/utils/adt/formatting.c`, `lc_ctype_is_c` in `pg_locale.c`, PostgreSQL 14 to 18.

use arrow::array::ArrayRef;

use super::super::characters::Characters;
use super::super::rows::{Outcome, one};
use super::super::{Build, Implementation, Kernel, KernelCall, collations};
use super::initials::initcap;
use crate::catalog::Catalog;
use crate::error::{Result, StatementError, unsupported};
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

/// What letters are to a collation.
pub(in super::super) fn letters_of(catalog: &Catalog, collation: Oid) -> Result<Letters> {
    if matches!(collation, C_COLLATION | POSIX_COLLATION) {
        return Ok(Letters::Ascii);
    }
    let Some(row) = catalog.collation(collation) else {
        let name = collations::shown(catalog, collation);
        return unsupported(format!("upper and lower case in collation {name}"));
    };
    if !row.is_deterministic {
        return unsupported(format!("the nondeterministic collation \"{}\"", row.name));
    }
    let locale = match row.provider {
        b'c' => row.letters.clone(),
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
pub(in super::super) fn has_other_i(locale: &str) -> bool {
    const LANGUAGES: [&str; 9] = ["tr", "az", "crh", "ku", "tt", "lt", "kk", "uz", "ba"];
    let language = locale.split(['_', '-', '.', '@']).next().unwrap_or_default();
    // A locale without a language takes what the server's environment said.
    language.is_empty() || LANGUAGES.contains(&language.to_ascii_lowercase().as_str())
}

fn case_call(build: &Build<'_>) -> Result<Typed> {
    let kernel: Kernel = match (letters(build.catalog, build.arguments)?, build.key) {
        (Letters::More { is_icu: true }, "initcap") => {
            return unsupported("function initcap(text) in a collation of ICU");
        }
        (Letters::Ascii, "upper") => |_, a| one(a, |text: &str| Ok(text.to_ascii_uppercase())),
        (Letters::Ascii, "lower") => |_, a| one(a, |text: &str| Ok(text.to_ascii_lowercase())),
        (Letters::Ascii, _) => |_, a| one(a, |text: &str| Ok(initcap(text))),
        _ => locale_case,
    };
    let carrier = crate::coerce::carrier_of(build.catalog, build.result);
    Ok(build.kernel(kernel, build.arguments, carrier))
}

fn locale_case(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let mut letters = LocaleLetters::new(call);
    one(arguments, |text: &str| match &*call.key {
        "upper" => letters.upper(text),
        "lower" => letters.lower(text),
        _ => letters.initcap(text),
    })
}

/// The case of letters under the collation of a call. Those of ASCII need no locale; others need one that is known to be the
/// server's.
pub(in super::super) struct LocaleLetters<'c> {
    call: &'c KernelCall,
    collation: Oid,
    characters: Option<Characters>,
}

impl<'c> LocaleLetters<'c> {
    pub(super) fn new(call: &'c KernelCall) -> Self {
        let own = |oid: &Oid| !matches!(*oid, Oid(0) | DEFAULT_COLLATION);
        let own = call.arguments.iter().map(|ty| ty.collation).find(own);
        Self { call, collation: own.unwrap_or(DEFAULT_COLLATION), characters: None }
    }

    /// Those of the database, whatever collation the arguments have.
    pub(in super::super) fn of_database(call: &'c KernelCall) -> Self {
        Self { call, collation: DEFAULT_COLLATION, characters: None }
    }

    fn characters(&mut self) -> Outcome<&Characters> {
        if self.characters.is_none() {
            let found = collations::letters(&self.call.catalog, self.collation);
            self.characters = Some(found.map_err(|why| beyond_ascii(&self.call.key, &why))?);
        }
        Ok(self.characters.as_ref().expect("it was just put there")) // infallible: above
    }

    fn upper(&mut self, text: &str) -> Outcome<String> {
        if text.is_ascii() {
            return Ok(text.to_ascii_uppercase());
        }
        let characters = self.characters()?;
        Ok(text.chars().map(|letter| characters.upper(letter)).collect())
    }

    pub(in super::super) fn lower(&mut self, text: &str) -> Outcome<String> {
        if text.is_ascii() {
            return Ok(text.to_ascii_lowercase());
        }
        let characters = self.characters()?;
        Ok(text.chars().map(|letter| characters.lower(letter)).collect())
    }

    pub(in super::super) fn is_alphanumeric(&mut self, letter: char) -> Outcome<bool> {
        match letter.is_ascii() {
            true => Ok(letter.is_ascii_alphanumeric()),
            false => Ok(self.characters()?.is_alphanumeric(letter)),
        }
    }

    fn initcap(&mut self, text: &str) -> Outcome<String> {
        if text.is_ascii() {
            return Ok(initcap(text));
        }
        let characters = self.characters()?;
        let mut is_within = false;
        let one = |letter: char| {
            let made =
                if is_within { Some(characters.lower(letter)) } else { characters.initial(letter) };
            is_within = characters.is_alphanumeric(made.unwrap_or(letter)); // default: as it was
            made
        };
        let made: Option<String> = text.chars().map(one).collect();
        made.ok_or_else(|| {
            beyond_ascii("initcap", "of some letters it is not known how they begin a word")
        })
    }
}

#[cold]
fn beyond_ascii(what: &str, why: &str) -> StatementError {
    let what = format!("{what} of a text with characters beyond ASCII in this locale ({why})");
    StatementError::unsupported(what).with_hint("COLLATE \"C\" knows no case but that of ASCII.")
}
