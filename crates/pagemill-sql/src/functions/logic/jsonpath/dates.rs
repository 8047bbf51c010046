//! `.datetime()` and its kin: a string read as a date, a time or a timestamp, and taken as the type that the method names.
//!
//! Without a template the forms of ISO 8601 are tried one after the other; the first that fits the whole string decides on
//! the type.
//!
//! Source: `executeDateTimeMethod` in `src/backend/utils/adt/jsonpath_exec.c`, `anytime_typmod_check` in `date.c`,
//! PostgreSQL 14 to 18.

use std::sync::LazyLock;

use super::by_template::read;
use super::damaged;
use super::kind::{Kind, Method};
use super::moment::{Moment, Type, overflow};
use super::path::NodeId;
use super::run::{Run, Status, Step};
use super::value::Value;
use crate::error::{SqlState, StatementError};
use crate::functions::datetime::calendar::is_valid as is_valid_timestamp;
use crate::functions::datetime::round_to;
use crate::functions::datetime::templates::{Fault, Template};
use crate::functions::rows::Outcome;

const INVALID_ARGUMENT: &str = "22031";
/// The most places of a second.
const MOST_PLACES: i32 = 6;

/// The forms tried before 17, with and without minutes of the offset.
const FORMS_BEFORE_17: &[&str] = &[
    "yyyy-mm-dd",
    "HH24:MI:SS.USTZH:TZM",
    "HH24:MI:SS.USTZH",
    "HH24:MI:SSTZH:TZM",
    "HH24:MI:SSTZH",
    "HH24:MI:SS.US",
    "HH24:MI:SS",
    "yyyy-mm-dd HH24:MI:SS.USTZH:TZM",
    "yyyy-mm-dd HH24:MI:SS.USTZH",
    "yyyy-mm-dd HH24:MI:SSTZH:TZM",
    "yyyy-mm-dd HH24:MI:SSTZH",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZH:TZM",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZH",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZH:TZM",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZH",
    "yyyy-mm-dd HH24:MI:SS.US",
    "yyyy-mm-dd HH24:MI:SS",
    "yyyy-mm-dd\"T\"HH24:MI:SS.US",
    "yyyy-mm-dd\"T\"HH24:MI:SS",
];
const FORMS: &[&str] = &[
    "yyyy-mm-dd",
    "HH24:MI:SS.USTZ",
    "HH24:MI:SSTZ",
    "HH24:MI:SS.US",
    "HH24:MI:SS",
    "yyyy-mm-dd HH24:MI:SS.USTZ",
    "yyyy-mm-dd HH24:MI:SSTZ",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZ",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZ",
    "yyyy-mm-dd HH24:MI:SS.US",
    "yyyy-mm-dd HH24:MI:SS",
    "yyyy-mm-dd\"T\"HH24:MI:SS.US",
    "yyyy-mm-dd\"T\"HH24:MI:SS",
];

/// What no version has other words for.
fn made(forms: &[&str]) -> Outcome<Vec<Template>> {
    forms.iter().map(|form| Template::standard(form, 14)).collect()
}

static TEMPLATES: LazyLock<Outcome<Vec<Template>>> = LazyLock::new(|| made(FORMS));
static TEMPLATES_BEFORE_17: LazyLock<Outcome<Vec<Template>>> =
    LazyLock::new(|| made(FORMS_BEFORE_17));

impl<'q> Run<'q> {
    pub(super) fn date_time(
        &self,
        (method, argument): (Method, Option<NodeId>),
        value: &Value<'q>,
    ) -> Outcome<Step<'q>> {
        let Some(text) = value.as_string() else {
            let name = method.name();
            let message =
                || format!("jsonpath item method .{name}() can only be applied to a string");
            return self.fail(INVALID_ARGUMENT, message).map(Step::Done);
        };
        let text = std::str::from_utf8(text).map_err(damaged)?;
        let failed = Ok(Step::Done(Status::Failed));
        let (moment, places) = match (method, argument) {
            (Method::DateTime, Some(template)) => (self.by_template(template, text)?, None),
            (_, argument) => {
                let places = match argument {
                    Some(argument) => match self.places(argument, method)? {
                        Some(places) => Some(places),
                        None => return failed,
                    },
                    None => None,
                };
                (self.by_forms(method, text)?, places)
            }
        };
        let Some(moment) = moment else { return failed };
        let Some(ty) = wanted(method) else { return Ok(Step::Next(Value::Moment(moment))) };
        let Some(moment) = moment.cast(ty, self.settings)? else {
            return self.not_recognized(method, text).map(Step::Done);
        };
        let moment = match places {
            Some(places) => rounded(moment, places)?,
            None => moment,
        };
        Ok(Step::Next(Value::Moment(moment)))
    }

    fn by_template(&self, template: NodeId, text: &str) -> Outcome<Option<Moment>> {
        let Kind::String(range) = self.path.kind(template)? else {
            return Err(damaged("an argument of .datetime() that is no string"));
        };
        let template = std::str::from_utf8(self.path.bytes(range)).map_err(damaged)?;
        let template = Template::standard(template, self.settings.major)?;
        match read(&template, text, self.settings.major) {
            Ok(moment) => Ok(Some(moment)),
            Err(Fault::Wrong(_)) if !self.throws => Ok(None),
            Err(Fault::Wrong(error) | Fault::Refused(error)) => Err(error),
        }
    }

    /// By the first of the forms that fits.
    fn by_forms(&self, method: Method, text: &str) -> Outcome<Option<Moment>> {
        let templates = if self.settings.major < 17 { &TEMPLATES_BEFORE_17 } else { &TEMPLATES };
        for template in templates.as_ref().map_err(Clone::clone)? {
            match read(template, text, self.settings.major) {
                Ok(moment) => return Ok(Some(moment)),
                Err(Fault::Wrong(_)) => {}
                Err(Fault::Refused(error)) => return Err(error),
            }
        }
        self.not_recognized(method, text).map(|_| None)
    }

    fn not_recognized(&self, method: Method, text: &str) -> Outcome<Status> {
        let name = method.name();
        let failed =
            self.fail(INVALID_ARGUMENT, || format!("{name} format is not recognized: \"{text}\""));
        failed.map_err(|error| match method {
            Method::DateTime => error
                .with_hint("Use a datetime template argument to specify the input data format."),
            _ => error,
        })
    }

    /// The places of a second that are asked for; none where that fails.
    fn places(&self, at: NodeId, method: Method) -> Outcome<Option<i32>> {
        let places = self.integer_argument(at)?;
        if places.is_none() {
            let name = method.name();
            let message = || {
                format!(
                    "time precision of jsonpath item method .{name}() is out of range for type integer"
                )
            };
            self.fail(INVALID_ARGUMENT, message)?;
        }
        Ok(places)
    }
}

/// What a method makes of a string; `.datetime()` leaves it as it was read.
fn wanted(method: Method) -> Option<Type> {
    Some(match method {
        Method::Date => Type::Date,
        Method::Time => Type::Time,
        Method::TimeTz => Type::TimeTz,
        Method::Timestamp => Type::Timestamp,
        Method::TimestampTz => Type::TimestampTz,
        _ => return None,
    })
}

/// With so many places of a second; with more than there are a server warns and takes all.
fn rounded(moment: Moment, places: i32) -> Outcome<Moment> {
    if places < 0 {
        let (name, zone) = match moment.ty {
            Type::Time => ("TIME", ""),
            Type::TimeTz => ("TIME", " WITH TIME ZONE"),
            Type::Timestamp => ("TIMESTAMP", ""),
            _ => ("TIMESTAMP", " WITH TIME ZONE"),
        };
        let message = format!("{name}({places}){zone} precision must not be negative");
        return Err(StatementError::new(SqlState::INVALID_PARAMETER, message));
    }
    let is_timestamp = matches!(moment.ty, Type::Timestamp | Type::TimestampTz);
    let value = round_to(moment.value, places.min(MOST_PLACES));
    let value = value.filter(|value| !is_timestamp || is_valid_timestamp(*value));
    let value = value.ok_or_else(|| overflow("timestamp out of range"))?;
    Ok(Moment { value, ..moment })
}
