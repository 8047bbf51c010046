//! Paths of SQL/JSON, followed through documents: what `jsonb_path_query` and its kin, `@?` and `@@` compute.
//!
//! ```text
//! jsonpath ─► path ─► run ─► steps, predicates, arithmetic, methods, dates ─► value ─► build ─► jsonb
//! ```
//!
//! A [`Path`] is made once and serves any number of rows; a [`Query`] is one row. Errors are of two kinds: those that
//! `silent` and predicates suppress, which end a search and keep what was found, and the others.
//!
//! Invariants: what is found and which error ends a search are the server's, including where it stops early; what is not
//! known to be the same is refused. Damaged documents and paths are errors. Recursion has a limit.
//!
//! Strings are taken to be UTF-8: they compare byte by byte, which is by code point.
//!
//! Source: `src/backend/utils/adt/jsonpath_exec.c`, PostgreSQL 14 to 18.

mod arithmetic;
mod build;
mod by_template;
mod calendar;
mod dates;
mod kind;
mod methods;
mod moment;
mod numbers;
mod passed;
mod path;
mod pattern;
mod predicates;
mod run;
mod steps;
mod value;
mod walk;

#[cfg(test)]
mod passed_tests;
#[cfg(test)]
mod tests;

use pagemill_types::time_zone::Zone;

use crate::error::{SqlState, StatementError};
use crate::functions::rows::Outcome;
pub(crate) use passed::{Answer, Passed, PassedValue, Scalar, ScalarType, Wrapper};
pub(crate) use path::Path;
pub(crate) use pattern::{LikeRegex, PatternFlags, quoted};
use run::{Run, Status};
use value::Value;

/// What a search depends on beside path and document.
pub(crate) struct Settings<'s> {
    /// The server's major version.
    pub(crate) major: u32,
    /// True for the functions with `_tz`, which may use the session's time zone.
    pub(crate) uses_zone: bool,
    /// The session's time zone.
    pub(crate) zone: &'s Zone,
    /// How `like_regex` is done.
    pub(crate) regex: &'s dyn LikeRegex,
}

/// A path to be followed through one document.
pub(crate) struct Query<'q> {
    /// The path.
    pub(crate) path: &'q Path,
    /// The payload of a `jsonb`.
    pub(crate) document: &'q [u8],
    /// The payload of the `jsonb` with the values of variables; none for `@?` and `@@`.
    pub(crate) variables: Option<&'q [u8]>,
    /// The values that PASSING gives, in their order, instead of those.
    pub(crate) passed: Option<&'q [PassedValue]>,
    /// Whether errors are suppressed that can be; true for `@?` and `@@`.
    pub(crate) is_silent: bool,
    /// The session.
    pub(crate) settings: &'q Settings<'q>,
}

impl<'q> Query<'q> {
    /// `jsonb_path_exists` and `@?`; nothing is NULL. In lax mode it ends with the first item.
    ///
    /// # Errors
    /// Those of the path that are not suppressed.
    pub(crate) fn finds_any(&self) -> Outcome<Option<bool>> {
        let mut run = Run::new(self)?;
        let root = run.root.clone();
        let status = match self.path.is_lax {
            true => run.item(Path::ROOT, root, None)?,
            // Whether there are errors at all is known at the end.
            false => {
                let mut found = Vec::new();
                match run.item(Path::ROOT, root, Some(&mut found))? {
                    Status::Failed => Status::Failed,
                    _ if found.is_empty() => Status::Nothing,
                    _ => Status::Found,
                }
            }
        };
        Ok(match status {
            Status::Failed => None,
            other => Some(other == Status::Found),
        })
    }

    /// `jsonb_path_match` and `@@`; nothing is NULL.
    ///
    /// # Errors
    /// Those of the path that are not suppressed; that there is not one truth value, unless silent.
    pub(crate) fn matches(&self) -> Outcome<Option<bool>> {
        match self.found()?[..] {
            [Value::Bool(truth)] => Ok(Some(truth)),
            [Value::Null] => Ok(None),
            _ if self.is_silent => Ok(None),
            _ => {
                let message = "single boolean result is expected";
                Err(StatementError::new(SqlState("22038"), message))
            }
        }
    }

    /// `jsonb_path_query`: the payloads of all items.
    ///
    /// # Errors
    /// Those of the path that are not suppressed.
    pub(crate) fn all(&self) -> Outcome<Vec<Vec<u8>>> {
        self.found()?.iter().map(build::document).collect()
    }

    /// `jsonb_path_query_array`: the payload of an array of all items.
    ///
    /// # Errors
    /// Those of the path that are not suppressed.
    pub(crate) fn array(&self) -> Outcome<Vec<u8>> {
        build::array(&self.found()?)
    }

    /// `jsonb_path_query_first`: the first item's payload. As the server does, it looks for all of them.
    ///
    /// # Errors
    /// Those of the path that are not suppressed.
    pub(crate) fn first(&self) -> Outcome<Option<Vec<u8>>> {
        self.found()?.first().map(build::document).transpose()
    }

    /// All items, up to a suppressed error.
    fn found(&self) -> Outcome<Vec<Value<'q>>> {
        let mut run = Run::new(self)?;
        let (mut found, root) = (Vec::new(), run.root.clone());
        run.item(Path::ROOT, root, Some(&mut found))?;
        Ok(found)
    }
}

#[cold]
fn damaged(what: impl std::fmt::Display) -> StatementError {
    StatementError::new(SqlState::DATA_CORRUPTED, what.to_string())
}
