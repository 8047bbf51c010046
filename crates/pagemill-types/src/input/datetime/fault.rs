//! What can be wrong with the text of a date or time, and how PostgreSQL says it.
//!
//! Source: `DateTimeParseError` in `src/backend/utils/adt/datetime.c`, PostgreSQL 14 to 18.

use crate::input::InputError;

/// Result with a [`Fault`].
pub(super) type Result<T> = std::result::Result<T, Fault>;

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is no text of this type.
    Syntax,
    /// A field has a value that no date or time has.
    Field,
    /// An offset from UTC of 16 hours or more.
    Displacement,
    /// No time zone has this name.
    UnknownZone(String),
}

impl Fault {
    /// The message for `text`, which should have been a `type_name`.
    #[cold]
    pub(super) fn explain(self, type_name: &str, text: &[u8]) -> InputError {
        let about =
            |what: &str| InputError::new(format!("{what}: \"{}\"", String::from_utf8_lossy(text)));
        match self {
            Self::Syntax => InputError::syntax(type_name, text),
            Self::Field if type_name == "interval" => about("interval field value out of range"),
            Self::Field => about("date/time field value out of range"),
            Self::Displacement => about("time zone displacement out of range"),
            Self::UnknownZone(name) => {
                InputError::new(format!("time zone \"{name}\" not recognized"))
            }
        }
    }
}
