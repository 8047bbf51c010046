//! `citext`: texts that are compared in lower case.
//!
//! Lower case is that of the database's collation, whatever collation the comparison is in. Of equal values neither is preferred.
//!
//! Source: `citextcmp`, `citext_eq`, `internal_citext_pattern_cmp` in `contrib/citext/citext.c`, PostgreSQL 14 to 18.

use std::sync::Arc;

use pagemill_types::builtin::oid;

use super::super::{Build, Implementation, implementation};
use crate::catalog::Catalog;
use crate::error::Result;
use crate::typed::Typed;
use crate::types::{C_COLLATION, DEFAULT_COLLATION, PgType};

/// Each with the function of texts that compares what is in lower case, and whether that is by bytes.
const COMPARISONS: [(&str, &str, bool); 10] = [
    ("citext_eq", "texteq", false),
    ("citext_ne", "textne", false),
    ("citext_lt", "text_lt", false),
    ("citext_le", "text_le", false),
    ("citext_gt", "text_gt", false),
    ("citext_ge", "text_ge", false),
    ("citext_pattern_lt", "text_lt", true),
    ("citext_pattern_le", "text_le", true),
    ("citext_pattern_gt", "text_gt", true),
    ("citext_pattern_ge", "text_ge", true),
];

pub(super) fn is_known(library: &str, symbol: &str) -> bool {
    find(library, symbol).is_some()
}

pub(super) fn find(library: &str, symbol: &str) -> Option<Implementation> {
    let is_comparison = || COMPARISONS.iter().any(|(own, ..)| *own == symbol);
    (library == "citext" && is_comparison()).then_some(Implementation::Build(compared))
}

/// A text in the lower case of the database, with its own collation.
pub(crate) fn lowered(catalog: &Arc<Catalog>, typed: &Typed) -> Result<Typed> {
    let text = PgType { collation: DEFAULT_COLLATION, ..PgType::new(oid::TEXT) };
    let plain = Typed { ty: text, is_collated: false, ..typed.clone() };
    let Some(Implementation::Build(lower)) = implementation("lower") else {
        unreachable!("lower is known")
    };
    let arguments = std::slice::from_ref(&plain);
    let mut made = lower(&Build { catalog, key: "lower", arguments, result: text })?;
    made.ty.collation = typed.ty.collation;
    made.is_collated = typed.is_collated;
    Ok(made)
}

fn both(build: &Build<'_>) -> Result<Vec<Typed>> {
    build.arguments.iter().map(|argument| lowered(build.catalog, argument)).collect()
}

fn compared(build: &Build<'_>) -> Result<Typed> {
    let symbol = build.key.rsplit('/').next();
    let known = COMPARISONS.iter().find(|(own, ..)| Some(*own) == symbol);
    let (_, key, is_by_bytes) = known.expect("only comparisons come here"); // infallible: by find
    let mut arguments = both(build)?;
    if *is_by_bytes {
        arguments.iter_mut().for_each(|argument| argument.ty.collation = C_COLLATION);
    }
    let Some(Implementation::Build(of_texts)) = implementation(key) else {
        unreachable!("texts are compared")
    };
    of_texts(&Build { catalog: build.catalog, key, arguments: &arguments, result: build.result })
}
