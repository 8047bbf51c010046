//! The one error of this crate: why an object store did not give what was asked for.
//!
//! It travels inside an [`io::Error`] through the seam, and what is above names the file and the offset; so only the reason is
//! told here, with what the server said. [`RemoteError::of`] finds it again.
//!
//! Invariant: no text here has a secret in it: of a server's answer only its code and message are repeated, and never a
//! request's headers.

use std::io;
use std::time::Duration;

/// Result with this crate's [`RemoteError`].
pub type Result<T> = std::result::Result<T, RemoteError>;

/// Why an object store did not give what was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The URL is none that can be read.
    #[error("not a URL that can be read: {0}")]
    Url(String),
    /// A setting in the environment cannot be followed.
    #[error("the settings in the environment cannot be used: {0}")]
    Settings(String),
    /// There are no credentials.
    #[error("no credentials for {0} were found")]
    NoCredentials(&'static str),
    /// The credentials were good once.
    #[error("the credentials have expired ({0})")]
    Expired(String),
    /// The store does not know the credentials, or they do not fit.
    #[error("the credentials were refused ({0})")]
    Unauthenticated(String),
    /// The credentials do not allow it.
    #[error("the store does not allow {request} with these credentials ({said})")]
    Denied {
        /// What was asked for.
        request: &'static str,
        /// The server's code.
        said: String,
    },
    /// There is no such bucket or container.
    #[error("there is no such bucket ({0})")]
    NoBucket(String),
    /// The bucket lies in another region than was asked.
    #[error("the bucket lies in another region{}", .0.as_ref().map(|region| format!(": {region}")).unwrap_or_default())]
    WrongRegion(
        /// Which, if the server said so.
        Option<String>,
    ),
    /// An object is not what it was when it was first seen.
    #[error("it was replaced or removed while it was read: read it again from the start")]
    Replaced,
    /// Bytes did not come as they were announced, again and again.
    #[error("the server sent {got} of {expected} bytes, in {tries} tries")]
    WrongLength {
        /// Bytes that were asked for.
        expected: u64,
        /// Bytes that came.
        got: u64,
        /// How often it was tried.
        tries: u32,
    },
    /// The server answered with an error that may pass, until there was no more time to wait.
    #[error("the server answered {status} in {tries} tries ({} s){said}", .waited.as_secs())]
    Busy {
        /// The status.
        status: u16,
        /// The server's code, in parentheses, or nothing.
        said: String,
        /// How often it was tried.
        tries: u32,
        /// For how long.
        waited: Duration,
    },
    /// There was no answer, until there was no more time to wait.
    #[error("no answer in {tries} tries ({} s): {reason}", .waited.as_secs())]
    Unreachable {
        /// What the last try ended with.
        reason: String,
        /// How often it was tried.
        tries: u32,
        /// For how long.
        waited: Duration,
    },
    /// The server does not list directories.
    #[error("the server does not list its files ({0})")]
    NoListing(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl RemoteError {
    /// The error that went through the seam.
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl From<RemoteError> for io::Error {
    fn from(error: RemoteError) -> Self {
        // Of no kind that what is above has words for: they are about files of this machine.
        Self::other(error)
    }
}
