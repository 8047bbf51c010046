//! `LIKE` and `ILIKE` as functions.
//!
//! Source: `src/backend/utils/adt/like.c`, PostgreSQL 14 to 18.

use arrow::array::ArrayRef;
use pagemill_types::input::Characters;

use super::super::rows::{Outcome, two};
use super::super::{Build, Implementation, Kernel, KernelCall};
use super::cases::{Letters, LocaleLetters, letters};
use super::like::{LikeCache, with_backslash};
use super::{regular, require_known};
use crate::error::Result;
use crate::typed::Typed;

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(match key {
        "textlike" | "namelike" | "bpcharlike" | "textnlike" | "namenlike" | "bpcharnlike" => {
            Implementation::Kernel(like)
        }
        "bytealike" | "byteanlike" => Implementation::Kernel(bytes_like),
        "texticlike" | "nameiclike" | "bpchariclike" | "texticnlike" | "nameicnlike"
        | "bpcharicnlike" => Implementation::Build(any_case_call),
        "like_escape" => Implementation::Kernel(|_, a| two(a, with_backslash)),
        _ => return regular::find(key),
    })
}

/// The functions of `NOT` have an `n` before `like`.
fn is_negated(key: &str) -> bool {
    key.ends_with("nlike")
}

fn like(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    require_known(call, arguments)?;
    let (mut cache, negated) = (LikeCache::new(Characters::Utf8), is_negated(&call.key));
    two(arguments, |text: &str, pattern: &str| {
        Ok(cache.matches(text.as_bytes(), pattern.as_bytes())? != negated)
    })
}

fn bytes_like(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let (mut cache, negated) = (LikeCache::new(Characters::Single), is_negated(&call.key));
    two(arguments, |text: &[u8], pattern: &[u8]| Ok(cache.matches(text, pattern)? != negated))
}

fn any_case_call(build: &Build<'_>) -> Result<Typed> {
    let kernel: Kernel = match letters(build.catalog, build.arguments)? {
        Letters::Ascii => |call, arguments| any_case(call, arguments, false),
        Letters::More { .. } => |call, arguments| any_case(call, arguments, true),
    };
    let carrier = crate::coerce::carrier_of(build.catalog, build.result);
    Ok(build.kernel(kernel, build.arguments, carrier))
}

fn any_case(call: &KernelCall, arguments: &[ArrayRef], of_locale: bool) -> Outcome<ArrayRef> {
    require_known(call, arguments)?;
    let (mut cache, negated) = (LikeCache::new(Characters::Utf8), is_negated(&call.key));
    let mut letters = LocaleLetters::new(call);
    two(arguments, |text: &str, pattern: &str| {
        let (text, pattern) = match of_locale {
            true => (letters.lower(text)?, letters.lower(pattern)?),
            false => (text.to_ascii_lowercase(), pattern.to_ascii_lowercase()),
        };
        Ok(cache.matches(text.as_bytes(), pattern.as_bytes())? != negated)
    })
}
