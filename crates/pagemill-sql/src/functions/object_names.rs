//! `to_regclass`, `to_regproc` and their kin: the object that a text names, or NULL where there is none; and `to_regtypemod`.
//!
//! From 16 on they read as the types' input functions do, numbers included, and give NULL for whatever is wrong with the form of a
//! name. Before, a number was a name, and a wrong form an error.
//!
//! Invariant: a text is told to name nothing only where the input function says no more than that; other errors are refused.
//!
//! Source: `src/backend/utils/adt/regproc.c`, PostgreSQL 14 to 18.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::scalar::ScalarValue;

use super::error_details::{absent_part, names_none};
use super::keys::strings;
use super::rows::{Made, Outcome};
use super::system::statement_error;
use super::text_form::read;
use super::{Implementation, KernelCall};
use crate::bind::type_of_text;
use crate::catalog::quote_identifier;
use crate::error::{Error, SqlState, StatementError};

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(match key {
        "to_regclass" | "to_regcollation" | "to_regnamespace" | "to_regoper" | "to_regoperator"
        | "to_regproc" | "to_regprocedure" | "to_regrole" => Implementation::Kernel(numbers),
        "to_regtypemod" => Implementation::Kernel(modifiers),
        _ => return None,
    })
}

fn numbers(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let type_name = call.catalog.type_name(call.result.oid);
    let one = |text: Option<&str>| match text {
        Some(text) => number(call, &type_name, text),
        None => Ok(None),
    };
    Made::column(strings(&arguments[0]).iter().map(one).collect::<Outcome<Vec<Option<u32>>>>()?)
}

/// The number of what a text names.
fn number(call: &KernelCall, type_name: &str, text: &str) -> Outcome<Option<u32>> {
    let is_new = call.catalog.database().cluster().version().major() >= 16;
    let refused = || StatementError::unsupported(format!("{}('{text}')", call.key));
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    // Types in parentheses that are wrong may end the statement.
    if text.matches('(').count() > 1
        || (!is_new && (is_number || text == "-" && type_name != "regoper"))
    {
        return Err(refused());
    }
    match read(&call.catalog, call.result, &DataType::UInt32, text) {
        Ok(ScalarValue::UInt32(number)) => Ok(number),
        Ok(_) => Err(refused()),
        Err(Error::Statement(error)) if error.state == SqlState::DENIED => Err(error),
        Err(Error::Statement(error)) => {
            let found = match is_new {
                true => is_null(type_name, &error.message),
                false => was_null(type_name, &error.message),
            };
            match found {
                Some(true) => Ok(None),
                Some(false) => Err(StatementError::new(SqlState("42602"), "invalid name syntax")),
                None => Err(refused()),
            }
        }
        Err(other) => Err(statement_error(other)),
    }
}

/// Whether an error means NULL, from 16 on; false for a name that is wrong, and nothing where that is not known.
fn is_null(type_name: &str, message: &str) -> Option<bool> {
    const OF_FORM: [&str; 7] = [
        "invalid name syntax",
        "expected a left parenthesis",
        "expected a right parenthesis",
        "expected a type name",
        "improper type name",
        "missing argument",
        "too many arguments",
    ];
    // What is no word of its own may be an error of syntax.
    let is_word = |name: &str| quote_identifier(name) == name;
    let is_known = names_none(type_name, message)
        || OF_FORM.contains(&message)
        || absent_part(message).is_some_and(is_word);
    is_known.then_some(true)
}

/// Until 15, where a schema that is not there was nothing in particular, and a type was an error.
fn was_null(type_name: &str, message: &str) -> Option<bool> {
    match () {
        () if names_none(type_name, message) => Some(true),
        () if message.starts_with("schema ") && absent_part(message).is_some() => Some(true),
        () if message == "invalid name syntax" => Some(false),
        () => None,
    }
}

/// The modifier of a type by its name, -1 for none.
fn modifiers(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let one = |name: Option<&str>| -> Outcome<Option<i32>> {
        let Some(name) = name else { return Ok(None) };
        let found = type_of_text(&call.catalog, name).map_err(statement_error)?;
        Ok(found.map(|ty| ty.modifier))
    };
    Made::column(strings(&arguments[0]).iter().map(one).collect::<Outcome<Vec<Option<i32>>>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_null_is_of_its_version() {
        let absent = "relation \"a\" does not exist";
        assert_eq!(
            (is_null("regclass", absent), was_null("regclass", absent)),
            (Some(true), Some(true))
        );
        let wrong = "invalid name syntax";
        assert_eq!(
            (is_null("regrole", wrong), was_null("regrole", wrong)),
            (Some(true), Some(false))
        );
        let dotted = "improper relation name (too many dotted names): a.b.c.d";
        assert_eq!((is_null("regclass", dotted), was_null("regclass", dotted)), (None, None));
        let ty = "type \"nothing\" does not exist";
        assert_eq!((is_null("regprocedure", ty), was_null("regprocedure", ty)), (Some(true), None));
        assert_eq!(is_null("regprocedure", "type \"select\" does not exist"), None);
    }
}
