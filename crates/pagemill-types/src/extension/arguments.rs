//! What functions of extensions ask of their arguments, each by its place.
//!
//! Invariant: an argument of another type, or none in that place, is an error; what extensions declare (`CREATE FUNCTION` in their
//! scripts, PostgreSQL 14 to 18) never leads to it.

use super::call::{Argument, CallError};

/// A value that is kept as its payload.
///
/// # Errors
/// When it is of another type.
pub fn payload<'a>(arguments: &[Argument<'a>], at: usize) -> Result<&'a [u8], CallError> {
    match arguments.get(at) {
        Some(Argument::Payload(payload)) => Ok(payload),
        _ => Err(CallError::other_arguments()),
    }
}

/// `text`.
///
/// # Errors
/// When it is of another type.
pub fn text<'a>(arguments: &[Argument<'a>], at: usize) -> Result<&'a str, CallError> {
    match arguments.get(at) {
        Some(Argument::Text(text)) => Ok(text),
        _ => Err(CallError::other_arguments()),
    }
}

/// `integer`.
///
/// # Errors
/// When it is of another type.
pub fn integer(arguments: &[Argument<'_>], at: usize) -> Result<i32, CallError> {
    match arguments.get(at) {
        Some(Argument::Int4(number)) => Ok(*number),
        _ => Err(CallError::other_arguments()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_arguments_are_an_error() {
        let arguments = [Argument::Int4(1), Argument::Text("a"), Argument::Payload(b"b")];
        assert_eq!(integer(&arguments, 0), Ok(1));
        assert_eq!(text(&arguments, 1), Ok("a"));
        assert_eq!(payload(&arguments, 2), Ok(&b"b"[..]));
        assert_eq!(integer(&arguments, 1), Err(CallError::other_arguments()));
        assert_eq!(payload(&arguments, 3), Err(CallError::other_arguments()));
    }
}
