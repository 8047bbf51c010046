//! What a cluster keeps of a password, and what stands in for it where it keeps none.
//!
//! ```text
//! SCRAM-SHA-256$4096:SALT$STOREDKEY:SERVERKEY      in base64; pg_authid.rolpassword
//! ```
//!
//! The stand-in has a salt that depends on the role's name and on a secret of the cluster, as the server's has: asked again, also of the
//! server itself, it is the same, so that nobody can tell by it which roles there are.
//!
//! Source: `parse_scram_secret`, `mock_scram_secret` and `scram_mock_salt` in `src/backend/libpq/auth-scram.c`, and
//! `src/include/common/scram-common.h`, PostgreSQL 14 to 18.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pagemill_protocol::scram::KEY_BYTES;
use ring::digest::{Context, SHA256};

/// `SCRAM_SHA_256_DEFAULT_ITERATIONS`.
const ITERATIONS: u32 = 4096;
/// `SCRAM_DEFAULT_SALT_LEN`.
const SALT_BYTES: usize = 16;

/// What a proof is checked by.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    pub(super) iterations: u32,
    /// In base64.
    pub(super) salt: String,
    pub(super) stored_key: [u8; KEY_BYTES],
    pub(super) server_key: [u8; KEY_BYTES],
    /// False for a stand-in, which no proof fits.
    pub(super) is_genuine: bool,
}

impl std::fmt::Debug for Verifier {
    /// Without its keys, which let their holder pass for the server.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verifier").field("is_genuine", &self.is_genuine).finish_non_exhaustive()
    }
}

impl Verifier {
    /// The verifier that is kept as this text; `None` for a text of another form, such as an MD5 hash.
    pub fn parse(stored: &str) -> Option<Self> {
        let (iterations, rest) = stored.strip_prefix("SCRAM-SHA-256$")?.split_once(':')?;
        let (salt, keys) = rest.split_once('$')?;
        let (stored_key, server_key) = keys.split_once(':')?;
        let iterations = iterations.parse().ok().filter(|count| *count > 0)?;
        STANDARD.decode(salt).ok()?;
        let key = |text: &str| STANDARD.decode(text).ok()?.try_into().ok();
        Some(Self {
            iterations,
            salt: salt.to_owned(),
            stored_key: key(stored_key)?,
            server_key: key(server_key)?,
            is_genuine: true,
        })
    }

    /// What stands in for the verifier of a role that has none.
    pub fn stand_in(role: &str, secret: &[u8]) -> Self {
        let mut salt = Context::new(&SHA256);
        salt.update(role.as_bytes());
        salt.update(secret);
        let salt = salt.finish();
        let salt = STANDARD.encode(salt.as_ref().get(..SALT_BYTES).unwrap_or_default());
        let keys = ([0; KEY_BYTES], [0; KEY_BYTES]);
        let (stored_key, server_key) = keys;
        Self { iterations: ITERATIONS, salt, stored_key, server_key, is_genuine: false }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn other_forms_are_no_verifiers() {
        let key = STANDARD.encode([7; 32]);
        let form = |text: &str| Verifier::parse(&text.replace("KEY", &key)).is_some();
        assert!(form("SCRAM-SHA-256$4096:c2FsdA==$KEY:KEY"));
        for wrong in [
            "",
            "md5ab8c1d1ed8c8f1a9b2ffb4d0a1e3e5f7",
            "SCRAM-SHA-256$0:c2FsdA==$KEY:KEY",
            "SCRAM-SHA-256$-1:c2FsdA==$KEY:KEY",
            "SCRAM-SHA-256$4096:c2FsdA==$KEY:YWJj",
            "SCRAM-SHA-256$4096:c2FsdA==$KEY",
            "SCRAM-SHA-256$4096:!$KEY:KEY",
            "SCRAM-SHA-1$4096:c2FsdA==$KEY:KEY",
        ] {
            assert!(!form(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_stand_in_is_the_same_whenever_it_is_asked_for() {
        let one = Verifier::stand_in("ada", b"secret");
        assert_eq!(one, Verifier::stand_in("ada", b"secret"));
        assert_ne!(one.salt, Verifier::stand_in("bob", b"secret").salt);
        assert_ne!(one.salt, Verifier::stand_in("ada", b"other").salt);
        assert_eq!(STANDARD.decode(&one.salt).unwrap().len(), SALT_BYTES);
    }

    proptest! {
        #[test]
        fn arbitrary_texts_are_a_verifier_or_none(text in "(SCRAM-SHA-256)?[$:=0-9A-Za-z]{0,120}") {
            let _ = Verifier::parse(&text);
        }
    }
}
