//! The secret that a coordinator and its workers share.
//!
//! Invariants: it is never printed; how long a wrong one takes to be refused does not tell how much of it was right.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use subtle::ConstantTimeEq as _;

/// The environment variable that has it where no file is named.
pub const SECRET_VARIABLE: &str = "PAGEMILL_WORKER_SECRET";
/// Fewer bytes could be guessed.
const LEAST_BYTES: usize = 16;

/// A secret.
#[derive(Clone)]
pub struct Secret(Box<[u8]>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Secret {
    /// The bytes without the end of their line; `None` where they are too few to keep anybody out.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        (bytes.len() >= LEAST_BYTES).then(|| Self(bytes.into()))
    }

    /// What is sent with each request.
    pub(super) fn header(&self) -> HeaderValue {
        let text = format!("Bearer {}", STANDARD.encode(&self.0));
        let mut value = HeaderValue::from_str(&text).expect("base64 is of header characters"); // infallible: ASCII letters, digits, +, /, =
        value.set_sensitive(true);
        value
    }

    /// Whether a request that has this header knows it.
    pub(super) fn is_proven_by(&self, header: Option<&[u8]>) -> bool {
        let own = self.header();
        header.is_some_and(|given| own.as_bytes().ct_eq(given).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_secret_proves_nothing() {
        let secret = Secret::new(b"0123456789abcdef\r\n").unwrap();
        let same = Secret::new(b"0123456789abcdef").unwrap();
        let other = Secret::new(b"0123456789abcdeg").unwrap();
        assert!(secret.is_proven_by(Some(same.header().as_bytes())));
        assert!(!secret.is_proven_by(Some(other.header().as_bytes())));
        assert!(!secret.is_proven_by(Some(b"Bearer ")) && !secret.is_proven_by(None));
        assert!(Secret::new(b"0123456789abcde\n").is_none());
        assert!(!format!("{secret:?}").contains("0123"));
    }
}
