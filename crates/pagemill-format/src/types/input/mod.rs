//! Input functions: a value's text, as `COPY … FROM` reads it, to the bytes a tuple holds.
//!
//! A [`ScalarReader`] appends a value's *payload* to a buffer: of a type of fixed length exactly
//! `typlen` bytes, of a varlena type the bytes after the length word. It needs nothing but the text,
//! which is already in the server's encoding, and the type modifier.
//!
//! Rules: messages are PostgreSQL's, word for word; no text panics; nothing is allocated for a value
//! that is accepted, beyond the caller's buffer; after an error that buffer may hold part of the
//! value (the caller cuts it off).

pub mod datetime;

/// Appends the payload of the value that a text says, given its type modifier (-1 for none).
pub type ScalarReader = fn(&[u8], i32, &mut Vec<u8>) -> Result<(), InputError>;

/// Why a text is no value of its type, in PostgreSQL's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InputError {
    /// The server's primary message. What is no UTF-8 in it was replaced.
    pub message: String,
}

impl InputError {
    /// An error with a message of its own.
    #[cold]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }

    /// `invalid input syntax for type NAME: "TEXT"`.
    #[cold]
    pub fn syntax(type_name: &str, text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        Self::new(format!("invalid input syntax for type {type_name}: \"{text}\""))
    }

    /// `value "TEXT" is out of range for type NAME`.
    #[cold]
    pub fn out_of_range(type_name: &str, text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        Self::new(format!("value \"{text}\" is out of range for type {type_name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_speak_as_the_server_does() {
        let message = InputError::syntax("integer", b"abc").to_string();
        assert_eq!(message, "invalid input syntax for type integer: \"abc\"");
        let message = InputError::out_of_range("smallint", b"99999").to_string();
        assert_eq!(message, "value \"99999\" is out of range for type smallint");
    }
}
