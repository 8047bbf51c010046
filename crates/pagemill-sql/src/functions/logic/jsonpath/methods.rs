//! Methods: of numbers, and those that make a value one of another type.
//!
//! Strings are read as the types' own input reads them. Those from `.bigint()` on came with PostgreSQL 17, when `.double()`
//! got other words for its errors.
//!
//! Source: `executeItemOptUnwrapTarget`, `executeNumericItemMethod` in `src/backend/utils/adt/jsonpath_exec.c`,
//! PostgreSQL 14 to 18.

use pagemill_types::input::InputError;
use pagemill_types::input::float::read_float8;
use pagemill_types::input::integer::{read_bool, read_int4, read_int8};
use pagemill_types::input::numeric::read_numeric;

use super::kind::{Kind, Method};
use super::numbers::{of_float, text, to_i32, to_i64, whole};
use super::path::NodeId;
use super::run::{Found, Run, Status, Step};
use super::steps::OBJECT_NOT_FOUND;
use super::value::{Bytes, Value};
use crate::error::{SqlState, StatementError};
use crate::functions::numeric::arithmetic as numeric;
use crate::functions::numeric::value::Value as Numeric;
use crate::functions::rows::Outcome;

const ARRAY_NOT_FOUND: &str = "22039";
const NON_NUMERIC: &str = "22036";
/// The most digits that a numeric can be declared to have, and places.
const MOST_DIGITS: i32 = 1000;

/// A method with its arguments.
type Call = (Method, [Option<NodeId>; 2]);

type Reader = fn(&[u8], i32, &mut Vec<u8>) -> Result<(), InputError>;

impl<'q> Run<'q> {
    pub(super) fn method(
        &mut self,
        at: NodeId,
        (method, arguments): Call,
        value: Value<'q>,
        found: Found<'_, 'q>,
    ) -> Outcome<Step<'q>> {
        match method {
            Method::Type => {
                Ok(Step::Next(Value::String(Bytes::Given(value.type_name().as_bytes()))))
            }
            Method::Size => self.size(&value),
            Method::KeyValue => match value.as_object() {
                Some(object) => self.key_value(at, object, found),
                None => self.refuse(OBJECT_NOT_FOUND, method, "an object"),
            },
            Method::Abs | Method::Floor | Method::Ceiling => self.of_number(method, &value),
            Method::Double => self.double(value),
            Method::Bigint => self.integer(method, &value, read_bigint),
            Method::Integer => self.integer(method, &value, read_integer),
            Method::Boolean => self.boolean(&value),
            Method::Decimal | Method::Number => self.decimal((method, arguments), value),
            Method::String => self.string(&value),
            _ => self.date_time((method, arguments[0]), &value),
        }
    }

    /// The one of a value that a method is not for.
    fn refuse(&self, state: &'static str, method: Method, what: &str) -> Outcome<Step<'q>> {
        let name = method.name();
        let message = || format!("jsonpath item method .{name}() can only be applied to {what}");
        self.fail(state, message).map(Step::Done)
    }

    /// The one of a value that is none of a type.
    fn invalid(&self, method: Method, text: &str, ty: &str) -> Outcome<Step<'q>> {
        let name = method.name();
        let message = || {
            format!(
                "argument \"{text}\" of jsonpath item method .{name}() is invalid for type {ty}"
            )
        };
        self.fail(NON_NUMERIC, message).map(Step::Done)
    }

    fn not_finite(&self, method: Method) -> Outcome<Step<'q>> {
        let name = method.name();
        let message =
            || format!("NaN or Infinity is not allowed for jsonpath item method .{name}()");
        self.fail(NON_NUMERIC, message).map(Step::Done)
    }

    fn size(&self, value: &Value<'q>) -> Outcome<Step<'q>> {
        match value.as_array() {
            Some(array) => whole(array.count as i64).map(Step::Next),
            None if self.is_lax() => whole(1).map(Step::Next),
            None => self.fail_structure(ARRAY_NOT_FOUND, || {
                "jsonpath item method .size() can only be applied to an array".to_owned()
            }),
        }
    }

    fn of_number(&self, method: Method, value: &Value<'q>) -> Outcome<Step<'q>> {
        let Some(number) = value.as_number()? else {
            return self.refuse(NON_NUMERIC, method, "a numeric value");
        };
        let result = match method {
            Method::Abs => numeric::absolute(&number),
            Method::Floor => numeric::floor(&number),
            _ => numeric::ceiling(&number),
        };
        Value::number(&result).map(Step::Next)
    }

    fn double(&self, value: Value<'q>) -> Outcome<Step<'q>> {
        let is_number = matches!(value, Value::Number(_));
        let Some(written) = written(&value)? else {
            return self.refuse(NON_NUMERIC, Method::Double, "a string or numeric value");
        };
        let float = float(&written);
        let is_before_17 = self.settings.major < 17;
        match float {
            Some(float) if float.is_finite() && is_number => Ok(Step::Next(value)),
            Some(float) if float.is_finite() => of_float(float).map(Step::Next),
            _ if is_before_17 => {
                let what = match is_number {
                    true => {
                        "numeric argument of jsonpath item method .double() is out of range for type double precision"
                    }
                    false => {
                        "string argument of jsonpath item method .double() is not a valid representation of a double precision number"
                    }
                };
                self.fail(NON_NUMERIC, || what.to_owned()).map(Step::Done)
            }
            Some(_) => self.not_finite(Method::Double),
            None => self.invalid(Method::Double, &written, "double precision"),
        }
    }

    fn integer(
        &self,
        method: Method,
        value: &Value<'q>,
        read: fn(&Value<'q>) -> Outcome<Option<i64>>,
    ) -> Outcome<Step<'q>> {
        let Some(written) = written(value)? else {
            return self.refuse(NON_NUMERIC, method, "a string or numeric value");
        };
        match read(value)? {
            Some(number) => whole(number).map(Step::Next),
            None => self.invalid(method, &written, method.name()),
        }
    }

    fn boolean(&self, value: &Value<'q>) -> Outcome<Step<'q>> {
        if let Value::Bool(truth) = value {
            return Ok(Step::Next(Value::Bool(*truth)));
        }
        let Some(written) = written(value)? else {
            return self.refuse(
                NON_NUMERIC,
                Method::Boolean,
                "a boolean, string, or numeric value",
            );
        };
        let truth = match value {
            Value::Number(_) => input(read_int4, &written).map(|payload| payload != [0; 4]),
            // Unlike the type's own input it takes no blanks around.
            _ if written.trim_matches(is_blank) != written => None,
            _ => input(read_bool, &written).map(|payload| payload != [0]),
        };
        match truth {
            Some(truth) => Ok(Step::Next(Value::Bool(truth))),
            None => self.invalid(Method::Boolean, &written, "boolean"),
        }
    }

    fn decimal(&self, (method, arguments): Call, value: Value<'q>) -> Outcome<Step<'q>> {
        let Some(written) = written(&value)? else {
            return self.refuse(NON_NUMERIC, method, "a string or numeric value");
        };
        let number = match &value {
            Value::Number(_) => Some(value),
            _ => input(read_numeric, &written).map(|payload| Value::Number(Bytes::made(payload))),
        };
        let Some(number) = number else { return self.invalid(method, &written, "numeric") };
        if !matches!(number.as_number()?, Some(Numeric::Finite(_))) {
            return self.not_finite(method);
        }
        let [Some(precision), scale] = arguments else { return Ok(Step::Next(number)) };
        let Some(precision) = self.argument(precision, method, "precision")? else {
            return Ok(Step::Done(Status::Failed));
        };
        let scale = match scale {
            Some(scale) => self.argument(scale, method, "scale")?,
            None => Some(0),
        };
        let Some(scale) = scale else { return Ok(Step::Done(Status::Failed)) };
        let modifier = modifier(precision, scale).map_err(|error| match self.throws {
            true => error,
            // Some minor versions suppress it, others do not.
            false => {
                StatementError::unsupported(format!("where errors are suppressed: {error}; that"))
            }
        })?;
        let mut payload = Vec::new();
        match read_numeric(written.as_bytes(), modifier, &mut payload) {
            Ok(()) => Ok(Step::Next(Value::Number(Bytes::made(payload)))),
            Err(_) => self.invalid(method, &written, "numeric"),
        }
    }

    /// A number among the arguments; none where it fails.
    fn argument(&self, at: NodeId, method: Method, what: &str) -> Outcome<Option<i32>> {
        let Some(number) = self.integer_argument(at)? else {
            let name = method.name();
            let message = || {
                format!("{what} of jsonpath item method .{name}() is out of range for type integer")
            };
            return self.fail(NON_NUMERIC, message).map(|_| None);
        };
        Ok(Some(number))
    }

    /// A number among the arguments, if it has 32 bits.
    pub(super) fn integer_argument(&self, at: NodeId) -> Outcome<Option<i32>> {
        match self.path.kind(at)? {
            Kind::Numeric(range) => Ok(to_i32(&Numeric::parse(self.path.bytes(range))?)),
            _ => Err(super::damaged("an argument of a jsonpath method that is no number")),
        }
    }

    fn string(&self, value: &Value<'q>) -> Outcome<Step<'q>> {
        Ok(Step::Next(match value {
            Value::String(_) => value.clone(),
            Value::Number(payload) => Value::text(text(payload.get())?),
            Value::Bool(truth) => Value::text(if *truth { "true" } else { "false" }),
            Value::Moment(moment) => {
                let mut out = Vec::new();
                moment.write(&mut out)?;
                Value::text(out)
            }
            Value::Null | Value::Container(_) => {
                return self.refuse(
                    NON_NUMERIC,
                    Method::String,
                    "a boolean, string, numeric, or datetime value",
                );
            }
        }))
    }
}

/// The text of a string or of a number.
fn written(value: &Value<'_>) -> Outcome<Option<String>> {
    match value {
        Value::String(bytes) => Ok(Some(String::from_utf8_lossy(bytes.get()).into_owned())),
        Value::Number(payload) => text(payload.get()).map(Some),
        _ => Ok(None),
    }
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\u{B}' | '\u{C}')
}

/// The payload of a text's value, if it has one.
fn input(read: Reader, text: &str) -> Option<Vec<u8>> {
    let mut payload = Vec::new();
    read(text.as_bytes(), -1, &mut payload).ok().map(|()| payload)
}

fn float(text: &str) -> Option<f64> {
    input(read_float8, text)?.try_into().ok().map(f64::from_le_bytes)
}

fn read_bigint(value: &Value<'_>) -> Outcome<Option<i64>> {
    if let Some(number) = value.as_number()? {
        return Ok(to_i64(&number));
    }
    let payload = written(value)?.and_then(|text| input(read_int8, &text));
    Ok(payload.and_then(|payload| payload.try_into().ok()).map(i64::from_le_bytes))
}

fn read_integer(value: &Value<'_>) -> Outcome<Option<i64>> {
    if let Some(number) = value.as_number()? {
        return Ok(to_i32(&number).map(i64::from));
    }
    let payload = written(value)?.and_then(|text| input(read_int4, &text));
    Ok(payload.and_then(|payload| payload.try_into().ok()).map(i32::from_le_bytes).map(i64::from))
}

/// Digits and places as a type modifier.
///
/// Source: `make_numeric_typmod_safe` in `src/backend/utils/adt/numeric.c`, PostgreSQL 17 and 18.
fn modifier(precision: i32, scale: i32) -> Outcome<i32> {
    let message = if !(1..=MOST_DIGITS).contains(&precision) {
        format!("NUMERIC precision {precision} must be between 1 and {MOST_DIGITS}")
    } else if !(-MOST_DIGITS..=MOST_DIGITS).contains(&scale) {
        format!("NUMERIC scale {scale} must be between -{MOST_DIGITS} and {MOST_DIGITS}")
    } else {
        return Ok((precision << 16 | (scale & 0x7FF)) + 4);
    };
    Err(StatementError::new(SqlState::INVALID_PARAMETER, message))
}
