//! The values that PASSING gives a path, and what JSON_EXISTS, JSON_VALUE, JSON_QUERY and JSON_TABLE make of what a path finds.
//!
//! Invariant: an error that is suppressed leaves nothing of what was found before it.
//!
//! Source: `GetJsonPathVar`, `JsonItemFromDatum`, `JsonPathQuery`, `JsonPathValue`, `JsonTableResetRowPattern` in
//! `src/backend/utils/adt/jsonpath_exec.c`, PostgreSQL 17 and 18.

use super::moment::{Moment, Type};
use super::path::Path;
use super::run::{Run, Status};
use super::value::{Bytes, Value};
use super::{Query, build};
use crate::error::{SqlState, StatementError};
use crate::functions::rows::Outcome;

/// A value under a name.
#[derive(Debug, Clone)]
pub(crate) struct PassedValue {
    /// The name.
    pub(crate) name: String,
    /// The value.
    pub(crate) value: Passed,
}

/// What is passed, as the payloads of its types.
#[derive(Debug, Clone)]
pub(crate) enum Passed {
    Null,
    Bool(bool),
    Number(Vec<u8>),
    Text(Vec<u8>),
    Document(Vec<u8>),
    Date(i32),
    Time(i64),
    /// With the seconds west of Greenwich.
    TimeTz(i64, i32),
    Timestamp(i64),
    TimestampTz(i64),
    /// Of a type that paths do not know, which is called so.
    Unfit(String),
}

impl Passed {
    /// The value in a search, whose objects are told apart by `base`.
    pub(super) fn value(&self, base: i64) -> Outcome<Value<'_>> {
        let moment = |ty: Type, value: i64, west: i32| Value::Moment(Moment { ty, value, west });
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(truth) => Value::Bool(*truth),
            Self::Number(payload) => Value::Number(Bytes::Given(payload)),
            Self::Text(text) => Value::String(Bytes::Given(text)),
            Self::Document(payload) => return Value::document(Bytes::Given(payload), base),
            Self::Date(days) => moment(Type::Date, i64::from(*days), 0),
            Self::Time(value) => moment(Type::Time, *value, 0),
            Self::TimeTz(value, west) => moment(Type::TimeTz, *value, *west),
            Self::Timestamp(value) => moment(Type::Timestamp, *value, 0),
            Self::TimestampTz(value) => moment(Type::TimestampTz, *value, 0),
            Self::Unfit(name) => {
                let message = format!("could not convert value of type {name} to jsonpath");
                return Err(StatementError::new(SqlState::INVALID_PARAMETER, message));
            }
        })
    }
}

/// Whether what is found becomes an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Wrapper {
    Never,
    /// Where it is not one value.
    OfSeveral,
    Always,
}

/// What comes of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer<T> {
    Found(T),
    Empty,
    /// An error that is suppressed.
    Failed,
}

/// A scalar that is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scalar {
    /// Its type's name, and its payload as one of that; none for a null.
    pub(crate) value: Option<(ScalarType, Vec<u8>)>,
    /// As a `jsonb`.
    pub(crate) document: Vec<u8>,
}

/// The types of scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScalarType {
    Bool,
    Text,
    Numeric,
    Date,
    Time,
    TimeTz,
    Timestamp,
    TimestampTz,
}

impl<'q> Query<'q> {
    /// All items; nothing after an error that is suppressed.
    fn items(&self) -> Outcome<Option<Vec<Value<'q>>>> {
        let mut run = Run::new(self)?;
        let (mut found, root) = (Vec::new(), run.root.clone());
        let status = run.item(Path::ROOT, root, Some(&mut found))?;
        Ok((status != Status::Failed).then_some(found))
    }

    /// The payloads of the items from which JSON_TABLE makes rows.
    ///
    /// # Errors
    /// Those of the path that are not suppressed.
    pub(crate) fn row_items(&self) -> Outcome<Vec<Vec<u8>>> {
        self.items()?.unwrap_or_default().iter().map(build::document).collect() // default: a suppressed error gives no rows
    }

    /// The payload of what JSON_QUERY finds; `column` is that of JSON_TABLE that it is for.
    ///
    /// # Errors
    /// Those of the path that are not suppressed; several items without a wrapper, unless silent.
    pub(crate) fn queried(
        &self,
        wrapper: Wrapper,
        column: Option<&str>,
    ) -> Outcome<Answer<Vec<u8>>> {
        let Some(found) = self.items()? else { return Ok(Answer::Failed) };
        let [first, ..] = &found[..] else { return Ok(Answer::Empty) };
        let wraps = match wrapper {
            Wrapper::Never => false,
            Wrapper::OfSeveral => found.len() > 1,
            Wrapper::Always => true,
        };
        match found.len() {
            _ if wraps => build::array(&found).map(Answer::Found),
            1 => build::document(first).map(Answer::Found),
            _ if self.is_silent => Ok(Answer::Failed),
            _ => Err(several(column)),
        }
    }

    /// The scalar that JSON_VALUE finds.
    ///
    /// # Errors
    /// Those of the path that are not suppressed; several items, or no scalar, unless silent.
    pub(crate) fn scalar(&self, column: Option<&str>) -> Outcome<Answer<Scalar>> {
        let Some(found) = self.items()? else { return Ok(Answer::Failed) };
        let state = match &found[..] {
            [] => return Ok(Answer::Empty),
            [Value::Container(_)] => SqlState("2203F"),
            [scalar] => return scalar_of(scalar).map(Answer::Found),
            _ => SqlState("22034"),
        };
        match self.is_silent {
            true => Ok(Answer::Failed),
            false => Err(no_scalar(state, column)),
        }
    }
}

fn scalar_of(scalar: &Value<'_>) -> Outcome<Scalar> {
    let value = match scalar {
        Value::Null | Value::Container(_) => None,
        Value::Bool(truth) => Some((ScalarType::Bool, vec![u8::from(*truth)])),
        Value::String(text) => Some((ScalarType::Text, text.get().to_vec())),
        Value::Number(payload) => Some((ScalarType::Numeric, payload.get().to_vec())),
        Value::Moment(moment) => Some(payload_of(*moment)),
    };
    Ok(Scalar { value, document: build::document(scalar)? })
}

fn payload_of(moment: Moment) -> (ScalarType, Vec<u8>) {
    let long = moment.value.to_le_bytes();
    match moment.ty {
        Type::Date => (ScalarType::Date, (moment.value as i32).to_le_bytes().to_vec()),
        Type::Time => (ScalarType::Time, long.to_vec()),
        Type::TimeTz => (ScalarType::TimeTz, [&long[..], &moment.west.to_le_bytes()].concat()),
        Type::Timestamp => (ScalarType::Timestamp, long.to_vec()),
        Type::TimestampTz => (ScalarType::TimestampTz, long.to_vec()),
    }
}

#[cold]
fn several(column: Option<&str>) -> StatementError {
    let of = match column {
        Some(column) => format!("for column \"{column}\""),
        None => "in JSON_QUERY".to_owned(),
    };
    let message =
        format!("JSON path expression {of} must return single item when no wrapper is requested");
    StatementError::new(SqlState("22034"), message)
        .with_hint("Use the WITH WRAPPER clause to wrap SQL/JSON items into an array.")
}

#[cold]
fn no_scalar(state: SqlState, column: Option<&str>) -> StatementError {
    let of = match column {
        Some(column) => format!("for column \"{column}\""),
        None => "in JSON_VALUE".to_owned(),
    };
    StatementError::new(state, format!("JSON path expression {of} must return single scalar item"))
}
