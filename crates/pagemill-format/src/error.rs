//! The one error of this crate: what is wrong with some bytes, and where in them.
//!
//! This crate never knows which file its bytes came from, so an error says the structure, the
//! offset inside it and the finding; the crates above add file, fork, block and line pointer.
//! Corruption and "not supported" stay apart: the first is damage, the second a refusal.
//!
//! Invariant: an error is no larger than a pointer, as the results of what is done for each value and tuple are moved
//! about with room for one.

use std::borrow::Cow;

/// Result, with this crate's [`Error`] unless another is named.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What is wrong with the bytes of one structure.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(Box<ErrorKind>);

/// The kinds of [`Error`].
#[derive(Debug, thiserror::Error)]
pub enum ErrorKind {
    /// The bytes cannot be what PostgreSQL wrote.
    #[error("corrupt {structure}: {what} (byte {offset})")]
    Corrupt {
        /// The structure being read, in PostgreSQL's words: `"numeric"`, `"page header"`.
        structure: &'static str,
        /// Offset in bytes from the start of the structure.
        offset: usize,
        /// The finding: the value met, and the one that had to be there.
        what: Cow<'static, str>,
    },
    /// The bytes are sound, as far as can be told, but of a kind this build does not read.
    #[error("unsupported {structure}: {what}")]
    Unsupported {
        /// The structure being read.
        structure: &'static str,
        /// What is not supported, and the remedy where there is one.
        what: Cow<'static, str>,
    },
    /// What was to be written is larger than PostgreSQL's files can hold; the message is a server's.
    #[error("{message}")]
    Limit {
        /// The limit, in PostgreSQL's words: `row is too big: size …, maximum size 8160`.
        message: String,
    },
    /// Something outside of the bytes was needed (a TOAST value, a catalog row) and failed.
    #[error(transparent)]
    Lookup(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// An [`ErrorKind::Corrupt`].
    #[cold]
    pub fn corrupt(
        structure: &'static str,
        offset: usize,
        what: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self(Box::new(ErrorKind::Corrupt { structure, offset, what: what.into() }))
    }

    /// An [`ErrorKind::Limit`].
    #[cold]
    pub fn limit(message: impl Into<String>) -> Self {
        Self(Box::new(ErrorKind::Limit { message: message.into() }))
    }

    /// An [`ErrorKind::Unsupported`].
    #[cold]
    pub fn unsupported(structure: &'static str, what: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(ErrorKind::Unsupported { structure, what: what.into() }))
    }

    /// An [`ErrorKind::Lookup`].
    #[cold]
    pub fn lookup(source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self(Box::new(ErrorKind::Lookup(Box::new(source))))
    }

    /// The error of a kind that was [taken out](Self::into_kind).
    #[cold]
    pub fn of_kind(kind: ErrorKind) -> Self {
        Self(Box::new(kind))
    }

    /// What kind it is.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    /// What kind it is, taken out.
    pub fn into_kind(self) -> ErrorKind {
        *self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_pointer() {
        assert_eq!(size_of::<Result<(), Error>>(), size_of::<usize>());
        assert_eq!(Error::limit("too long").to_string(), "too long");
    }
}
