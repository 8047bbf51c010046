//! SCRAM-SHA-256: the two messages that a client sends in an exchange.
//!
//! ```text
//! client-first:  n,,n=,r=NONCE        y,,n=,r=NONCE        p=tls-server-end-point,,n=,r=NONCE
//!                └┬┘ └────┬──────┘ what is signed later
//!                header, which client-final repeats in c=
//! client-final:  c=BASE64,r=NONCE,p=BASE64
//!                └──────┬───────┘ what is signed
//! ```
//!
//! The name in `n=` is not looked at: who it is was said in the startup packet. Attributes that are not known are left out, but for `m=`,
//! by which a client says that it depends on what follows.
//!
//! Invariant: arbitrary bytes are a message or an error. Source: RFC 5802, section 7.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Why bytes are no message of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScramError {
    /// Bytes that are no message of this kind.
    #[error("malformed SCRAM message")]
    Malformed,
    /// The client wants to be somebody else than who it authenticates as.
    #[error("client uses authorization identity, but it is not supported")]
    AuthorizationIdentity,
    /// What the client depends on is not known here.
    #[error("client requires an unsupported SCRAM extension")]
    MandatoryExtension,
}

/// Results here.
pub type Result<T> = std::result::Result<T, ScramError>;

/// Bytes of a proof, and of a key: those of SHA-256.
pub const KEY_BYTES: usize = 32;

/// Whether a client binds what it proves to the TLS session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindingFlag<'m> {
    /// `n`: it cannot.
    Unsupported,
    /// `y`: it can, and believes that the server cannot.
    NotOffered,
    /// `p=`: it does, in the way of this name.
    Used(&'m str),
}

/// A client's first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientFirst<'m> {
    /// Whether it binds.
    pub flag: BindingFlag<'m>,
    /// All before `n=`, with its commas.
    pub header: &'m str,
    /// From `n=` on.
    pub bare: &'m str,
    /// Its nonce.
    pub nonce: &'m str,
}

/// A client's last message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientFinal<'m> {
    /// The header and what it binds to, in base64.
    pub binding: &'m str,
    /// Both nonces.
    pub nonce: &'m str,
    /// The proof.
    pub proof: [u8; KEY_BYTES],
    /// All before the proof.
    pub without_proof: &'m str,
}

impl<'m> ClientFirst<'m> {
    /// The message of these bytes.
    ///
    /// # Errors
    /// When they are none.
    pub fn parse(message: &'m [u8]) -> Result<Self> {
        let message = text(message)?;
        let (flag, rest) = cut(message)?;
        let flag = match flag {
            "n" => BindingFlag::Unsupported,
            "y" => BindingFlag::NotOffered,
            other => BindingFlag::Used(value(other, "p=")?),
        };
        let (identity, bare) = cut(rest)?;
        match identity {
            "" => {}
            other if other.starts_with("a=") => return Err(ScramError::AuthorizationIdentity),
            _ => return Err(ScramError::Malformed),
        }
        let header = message.strip_suffix(bare).ok_or(ScramError::Malformed)?;
        if bare.starts_with("m=") {
            return Err(ScramError::MandatoryExtension);
        }
        let (name, rest) = cut(bare)?;
        value(name, "n=")?;
        let nonce = nonce_of(rest)?;
        Ok(Self { flag, header, bare, nonce })
    }
}

impl<'m> ClientFinal<'m> {
    /// The message of these bytes.
    ///
    /// # Errors
    /// When they are none.
    pub fn parse(message: &'m [u8]) -> Result<Self> {
        let message = text(message)?;
        let (without_proof, proof) = message.rsplit_once(",p=").ok_or(ScramError::Malformed)?;
        let proof = STANDARD.decode(proof).map_err(|_| ScramError::Malformed)?;
        let proof = proof.try_into().map_err(|_| ScramError::Malformed)?;
        let (binding, rest) = cut(without_proof)?;
        let binding = value(binding, "c=")?;
        let nonce = nonce_of(rest)?;
        Ok(Self { binding, nonce, proof, without_proof })
    }
}

/// A message is a text, and ends where its bytes do.
fn text(message: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(message).map_err(|_| ScramError::Malformed)?;
    if text.contains('\0') { Err(ScramError::Malformed) } else { Ok(text) }
}

/// Up to a comma, and behind it.
fn cut(text: &str) -> Result<(&str, &str)> {
    text.split_once(',').ok_or(ScramError::Malformed)
}

/// What follows an attribute's name.
fn value<'m>(attribute: &'m str, name: &str) -> Result<&'m str> {
    attribute.strip_prefix(name).ok_or(ScramError::Malformed)
}

/// A nonce, behind which attributes may stand that are not known.
fn nonce_of(text: &str) -> Result<&str> {
    let mut attributes = text.split(',');
    let nonce = value(attributes.next().unwrap_or_default(), "r=")?;
    let is_printable = !nonce.is_empty() && nonce.bytes().all(|byte| byte.is_ascii_graphic());
    let is_attribute = |attribute: &str| match attribute.as_bytes() {
        [name, b'=', ..] => name.is_ascii_alphabetic(),
        _ => false,
    };
    match is_printable && attributes.all(is_attribute) {
        true => Ok(nonce),
        false => Err(ScramError::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PROOF: &str = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";

    #[test]
    fn first_messages_are_taken_apart() {
        let first = ClientFirst::parse(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO").unwrap();
        assert_eq!(first.flag, BindingFlag::Unsupported);
        assert_eq!((first.header, first.nonce), ("n,,", "rOprNGfwEbeRWgbNEkqO"));
        assert_eq!(first.bare, "n=user,r=rOprNGfwEbeRWgbNEkqO");
        let first = ClientFirst::parse(b"p=tls-server-end-point,,n=,r=x,e=more").unwrap();
        assert_eq!(first.flag, BindingFlag::Used("tls-server-end-point"));
        assert_eq!((first.header, first.nonce), ("p=tls-server-end-point,,", "x"));
    }

    #[test]
    fn last_messages_are_taken_apart() {
        let message = format!("c=biws,r=abc,p={PROOF}");
        let last = ClientFinal::parse(message.as_bytes()).unwrap();
        assert_eq!((last.binding, last.nonce), ("biws", "abc"));
        assert_eq!((last.without_proof, last.proof[0]), ("c=biws,r=abc", 0x74));
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        let wrong = ["", "n", "n,", "n,,", "x,,n=,r=a", "n,,n=", "n,,n=,r=", "n,,n=,r=a b"];
        let more =
            ["n,,r=a", "n,,n=,r=a,", "n,,n=,r=a,1=x", "n,b,n=,r=a", "n,,n=,r=a\0", "p,,n=,r=a"];
        for wrong in wrong.into_iter().chain(more) {
            assert_eq!(ClientFirst::parse(wrong.as_bytes()), Err(ScramError::Malformed), "{wrong}");
        }
        let first = |text: &'static str| ClientFirst::parse(text.as_bytes()).unwrap_err();
        assert_eq!(first("n,a=ada,n=,r=a"), ScramError::AuthorizationIdentity);
        assert_eq!(first("n,,m=x,n=,r=a"), ScramError::MandatoryExtension);
        for wrong in [
            "".to_owned(),
            format!("c=biws,r=a,p={PROOF},x=y"),
            format!("c=biws,p={PROOF}"),
            format!("r=a,c=biws,p={PROOF}"),
            "c=biws,r=a,p=YWJj".to_owned(),
            "c=biws,r=a".to_owned(),
        ] {
            assert_eq!(ClientFinal::parse(wrong.as_bytes()), Err(ScramError::Malformed), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (ClientFirst::parse(&bytes), ClientFinal::parse(&bytes));
        }

        #[test]
        fn arbitrary_attributes_are_a_message_or_an_error(text in "[nypcrmae=,+/ A-Za-z0-9]{0,80}") {
            if let Ok(first) = ClientFirst::parse(text.as_bytes()) {
                prop_assert_eq!(format!("{}{}", first.header, first.bare), text.clone());
            }
            let text = format!("c=biws,r=a{text},p={PROOF}");
            let _ = ClientFinal::parse(text.as_bytes());
        }
    }
}
