//! What letters, digits and spaces are to a pattern, by the collation that it is searched under.
//!
//! Invariant: beyond ASCII a pattern follows the C library only where that is known to be the server's, and Unicode where the server does.
//!
//! Source: `pg_set_regex_collation` in `src/backend/regex/regc_pg_locale.c`, PostgreSQL 14 to 18.

use std::fmt;

use pagemill_format::Oid;

use super::super::super::characters::Characters;
use super::super::super::{KernelCall, collations};
use super::super::cases::Letters;
use crate::catalog::Catalog;
use crate::types::DEFAULT_COLLATION;

/// The letters of a collation.
#[derive(Clone, Copy)]
pub(crate) struct Alphabet<'c> {
    pub(super) letters: Letters,
    /// What tells those beyond ASCII, where there are any.
    of: Option<(&'c Catalog, Oid)>,
}

impl fmt::Debug for Alphabet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alphabet").field("letters", &self.letters).finish_non_exhaustive()
    }
}

impl<'c> Alphabet<'c> {
    /// Of ASCII alone.
    #[cfg(test)]
    pub(super) fn ascii() -> Self {
        Self { letters: Letters::Ascii, of: None }
    }

    /// That of the arguments of a call, whose letters are known.
    pub(super) fn of_call(call: &'c KernelCall, letters: Letters) -> Self {
        let own = |oid: &Oid| !matches!(*oid, Oid(0) | DEFAULT_COLLATION);
        let own = call.arguments.iter().map(|ty| ty.collation).find(own);
        Self { letters, of: Some((&call.catalog, own.unwrap_or(DEFAULT_COLLATION))) }
    }

    /// That of a database.
    pub(crate) fn of_database(catalog: &'c Catalog, letters: Letters) -> Self {
        Self { letters, of: Some((catalog, DEFAULT_COLLATION)) }
    }

    /// What tells letters beyond ASCII, or why nothing does.
    pub(super) fn locale(&self) -> Result<Characters, String> {
        match self.of {
            Some((catalog, collation)) => collations::letters(catalog, collation),
            None => Err("it has none".to_owned()),
        }
    }
}
