//! One search in one document.
//!
//! Invariant: whoever says ERROR ON ERROR gets the first error as it is; elsewhere only errors of values are suppressed.
//!
//! Source: `ExecEvalJsonExprPath`, `ExecGetJsonValueItemString`, `ExecEvalJsonCoercion` in
//! `src/backend/executor/execExprInterp.c`, PostgreSQL 17 and 18.

use std::sync::atomic::{AtomicBool, Ordering};

use pagemill_types::builtin::oid;
use pagemill_types::jsonb::write_jsonb;

use super::super::super::text_form::{payload_of_text, text_of_payload};
use super::super::jsonpath::{Answer, PassedValue, Path, Query, Scalar, ScalarType, Settings};
use super::super::records::{accept, populated};
use super::{Behavior, Coercion, Operation, Outcome, Says, Search, Value};
use crate::catalog::Catalog;
use crate::error::{Error, SqlState, StatementError};

/// Where a search is made.
pub(super) struct Place<'p> {
    pub(super) catalog: &'p Catalog,
    pub(super) settings: &'p Settings<'p>,
    pub(super) passed: &'p [PassedValue],
    /// The values of arguments, by their numbers.
    pub(super) argument: &'p dyn Fn(usize, crate::types::PgType) -> Outcome<Value>,
    pub(super) seen: &'p Seen,
}

/// What a search has met in the rows so far.
///
/// A server does not forget, at NULL, that the row before was empty or in error, and gives what that row's behavior says. As it is
/// not known in which order it takes its rows, a search that meets both is refused.
#[derive(Debug, Default)]
pub(super) struct Seen {
    null: AtomicBool,
    behavior: AtomicBool,
}

impl Seen {
    fn null(&self) -> Outcome<()> {
        self.null.store(true, Ordering::SeqCst);
        self.check()
    }

    fn behavior(&self) -> Outcome<()> {
        self.behavior.store(true, Ordering::SeqCst);
        self.check()
    }

    fn check(&self) -> Outcome<()> {
        match self.null.load(Ordering::SeqCst) && self.behavior.load(Ordering::SeqCst) {
            true => Err(StatementError::unsupported(
                "what ON EMPTY or ON ERROR says, among documents or paths that are NULL,",
            )),
            false => Ok(()),
        }
    }
}

impl Place<'_> {
    /// What is found in a document; none of the two is NULL for a search.
    ///
    /// # Errors
    /// Those that are not suppressed.
    pub(super) fn evaluate(
        &self,
        search: &Search,
        document: Option<&[u8]>,
        path: Option<&Path>,
    ) -> Outcome<Value> {
        if document.is_none() || path.is_none() {
            self.seen.null()?;
        }
        let found = match (document, path) {
            (Some(document), Some(path)) => self.found(search, document, path)?,
            // It is NULL, which a domain may refuse.
            _ if search.coercion != Coercion::Document => return Ok(None),
            _ => Answer::Found(Found::Nothing),
        };
        let made = match found {
            Answer::Found(found) => self.made(search, found),
            Answer::Failed => return self.behave(search, &search.on_error, "ON ERROR"),
            Answer::Empty if search.on_empty.says == Says::Error => return Err(no_item(search)),
            Answer::Empty => return self.behave(search, &search.on_empty, "ON EMPTY"),
        };
        match made {
            Err(error) if !search.throws() && is_of_values(&error) => {
                self.behave(search, &search.on_error, "ON ERROR")
            }
            made => made,
        }
    }

    fn found(&self, search: &Search, document: &[u8], path: &Path) -> Outcome<Answer<Found>> {
        let (passed, settings) = (Some(self.passed), self.settings);
        let is_silent = !search.throws();
        let query = Query { path, document, variables: None, passed, is_silent, settings };
        let column = search.column.as_deref();
        Ok(match search.operation {
            Operation::Exists => match query.finds_any()? {
                Some(truth) => Answer::Found(Found::Truth(truth)),
                None => Answer::Failed,
            },
            Operation::Query(wrapper) => match query.queried(wrapper, column)? {
                Answer::Found(document) => Answer::Found(Found::Document(document)),
                Answer::Empty => Answer::Empty,
                Answer::Failed => Answer::Failed,
            },
            Operation::Value => match query.scalar(column)? {
                Answer::Found(scalar) => Answer::Found(Found::Scalar(scalar)),
                Answer::Empty => Answer::Empty,
                Answer::Failed => Answer::Failed,
            },
        })
    }

    /// What is found as a value of the result's type.
    fn made(&self, search: &Search, found: Found) -> Outcome<Value> {
        match found {
            Found::Nothing => self.filled(search, None),
            Found::Truth(truth) => self.of_truth(search, truth),
            Found::Document(payload) => match search.coercion {
                Coercion::None => Ok(Some(payload)),
                _ => self.filled(search, Some(&text_of(&payload)?)),
            },
            Found::Scalar(scalar) => self.of_scalar(search, scalar),
        }
    }

    fn filled(&self, search: &Search, document: Option<&str>) -> Outcome<Value> {
        populated(self.catalog, search.result, document, search.omits_quotes)
    }

    fn of_truth(&self, search: &Search, truth: bool) -> Outcome<Value> {
        if search.coercion == Coercion::None {
            return Ok(Some(vec![u8::from(truth)]));
        }
        if search.is_integer {
            let number = i32::from(truth).to_le_bytes().to_vec();
            accept(self.catalog, search.result, Some(&number))?;
            return Ok(Some(number));
        }
        self.filled(search, Some(if truth { "true" } else { "false" }))
    }

    fn of_scalar(&self, search: &Search, scalar: Scalar) -> Outcome<Value> {
        let Some((kind, payload)) = scalar.value else {
            return match search.coercion {
                Coercion::Document => self.filled(search, None),
                _ => Ok(None),
            };
        };
        if matches!(search.result.oid, oid::JSON | oid::JSONB) {
            return self.read(search, &text_of(&scalar.document)?);
        }
        if search.coercion == Coercion::Document {
            return self.filled(search, Some(&text_of(&scalar.document)?));
        }
        let text = self.shown(kind, payload)?;
        match search.coercion {
            Coercion::None => Ok(Some(text.into_bytes())),
            _ => self.read(search, &text),
        }
    }

    fn read(&self, search: &Search, text: &str) -> Outcome<Value> {
        let checked = self.catalog.check_written_name(search.result.oid, text);
        checked.map_err(|error: Error| error.report())?;
        payload_of_text(self.catalog, search.result, text).map(Some)
    }

    /// A scalar as the output function of its type writes it.
    fn shown(&self, kind: ScalarType, payload: Vec<u8>) -> Outcome<String> {
        let of = match kind {
            ScalarType::Text => return Ok(String::from_utf8_lossy(&payload).into_owned()),
            ScalarType::Bool => oid::BOOL,
            ScalarType::Numeric => oid::NUMERIC,
            ScalarType::Date => oid::DATE,
            ScalarType::Time => oid::TIME,
            ScalarType::TimeTz => oid::TIMETZ,
            ScalarType::Timestamp => oid::TIMESTAMP,
            ScalarType::TimestampTz => oid::TIMESTAMPTZ,
        };
        text_of_payload(self.catalog, of, &payload).map_err(|error| error.report())
    }

    /// What a behavior says.
    fn behave(&self, search: &Search, behavior: &Behavior, clause: &str) -> Outcome<Value> {
        if search.is_domain || behavior.says != Says::Null {
            self.seen.behavior()?;
        }
        let said = match &behavior.says {
            Says::Error => Ok(None),
            Says::Null if !search.is_domain => Ok(None),
            Says::Null => self.filled(search, None),
            Says::Document(text) => self.filled(search, Some(text)),
            Says::Text(text) => self.read(search, text),
            Says::Argument(at, ty) => {
                let value = (self.argument)(*at, *ty)?;
                accept(self.catalog, search.result, value.as_deref()).map(|()| value)
            }
            Says::DocumentArgument(at) => {
                let value = (self.argument)(*at, crate::types::PgType::new(oid::JSONB))?;
                let text = value.map(|payload| text_of(&payload)).transpose()?;
                self.filled(search, text.as_deref())
            }
        };
        match said {
            Err(error) if !search.throws() && is_of_values(&error) => {
                let shown = behavior.shown;
                let message =
                    format!("could not coerce {clause} expression ({shown}) to the RETURNING type");
                Err(StatementError::new(SqlState::DATATYPE_MISMATCH, message))
            }
            said => said,
        }
    }
}

/// What a search finds.
enum Found {
    /// NULL for the document or the path.
    Nothing,
    Truth(bool),
    Document(Vec<u8>),
    Scalar(Scalar),
}

/// Errors that can be suppressed: those of values and of what domains refuse.
fn is_of_values(error: &StatementError) -> bool {
    error.state.0.starts_with("22") || error.state.0.starts_with("23")
}

pub(super) fn text_of(payload: &[u8]) -> Outcome<String> {
    let mut text = Vec::new();
    let written = write_jsonb(payload, &mut text);
    written.map_err(|error| StatementError::new(SqlState::DATA_CORRUPTED, error.to_string()))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[cold]
fn no_item(search: &Search) -> StatementError {
    let message = "no SQL/JSON item found for specified path";
    let message = match &search.column {
        Some(column) => format!("{message} of column \"{column}\""),
        None => message.to_owned(),
    };
    StatementError::new(SqlState("22035"), message)
}
