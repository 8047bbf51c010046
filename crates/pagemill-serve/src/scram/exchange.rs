//! One exchange: what is answered to a client's two messages.
//!
//! Invariant: a proof is computed and compared in the same steps whether the role has a verifier or not.
//!
//! Source: RFC 5802, sections 3, 5 and 6; the names of what is hashed are its own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pagemill_protocol::scram::{BindingFlag, ClientFinal, ClientFirst, KEY_BYTES};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use subtle::{Choice, ConstantTimeEq as _};

use super::{Result, ScramError, Verifier};

/// `SCRAM_RAW_NONCE_LEN` in `scram-common.h`.
const NONCE_BYTES: usize = 18;
/// The one way to bind: by a digest of the server's certificate (RFC 5929, section 4).
const END_POINT: &str = "tls-server-end-point";

/// How a client authenticates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// `SCRAM-SHA-256`.
    Plain,
    /// `SCRAM-SHA-256-PLUS`: bound to the TLS session.
    Plus,
}

impl Mechanism {
    /// What is offered, the stronger one first.
    pub fn offered(can_bind: bool) -> &'static [Self] {
        if can_bind { &[Self::Plus, Self::Plain] } else { &[Self::Plain] }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "SCRAM-SHA-256",
            Self::Plus => "SCRAM-SHA-256-PLUS",
        }
    }
}

/// How an exchange is bound to the channel that it goes over.
#[derive(Debug, Clone, Copy)]
pub struct ChannelBinding<'c> {
    /// What the client chose.
    pub mechanism: Mechanism,
    /// What it can bind to, where it can.
    pub end_point: Option<&'c [u8]>,
}

/// An exchange that has begun.
#[derive(Debug)]
pub struct Exchange<'v> {
    verifier: &'v Verifier,
    mechanism: Mechanism,
    /// What `c=` has to be.
    binding: String,
    nonce: String,
    first_bare: String,
    server_first: String,
}

impl<'v> Exchange<'v> {
    /// Begins with a client's first message.
    ///
    /// # Errors
    /// When it is no such message, or does not bind as it should.
    pub fn begin(
        verifier: &'v Verifier,
        binding: ChannelBinding<'_>,
        message: &[u8],
    ) -> Result<Self> {
        let mut own = [0; NONCE_BYTES];
        SystemRandom::new().fill(&mut own).map_err(|_| ScramError::NoRandomBytes)?;
        Self::with_nonce(verifier, binding, message, &STANDARD.encode(own))
    }

    fn with_nonce(
        verifier: &'v Verifier,
        binding: ChannelBinding<'_>,
        message: &[u8],
        own: &str,
    ) -> Result<Self> {
        let ChannelBinding { mechanism, end_point } = binding;
        let first = ClientFirst::parse(message)?;
        let binding = STANDARD.encode(bound(&first, mechanism, end_point)?);
        let nonce = format!("{}{own}", first.nonce);
        let Verifier { salt, iterations, .. } = verifier;
        let server_first = format!("r={nonce},s={salt},i={iterations}");
        let first_bare = first.bare.to_owned();
        Ok(Self { verifier, mechanism, binding, nonce, first_bare, server_first })
    }

    /// What the client is answered to its first message.
    pub fn server_first(&self) -> &str {
        &self.server_first
    }

    /// What the client is answered to its last message; `None` when it does not know the password.
    ///
    /// # Errors
    /// When it is no such message, or one of another exchange or channel.
    pub fn finish(&self, message: &[u8]) -> Result<Option<String>> {
        let last = ClientFinal::parse(message)?;
        if !is_same(last.binding.as_bytes(), self.binding.as_bytes()) {
            return Err(match self.mechanism {
                Mechanism::Plus => ScramError::OtherChannel,
                Mechanism::Plain => ScramError::BindingAttribute,
            });
        }
        if !is_same(last.nonce.as_bytes(), self.nonce.as_bytes()) {
            return Err(ScramError::Nonce);
        }
        let signed = format!("{},{},{}", self.first_bare, self.server_first, last.without_proof);
        if !self.is_proven(&last.proof, &signed) {
            return Ok(None);
        }
        let signature = sign(&self.verifier.server_key, &signed);
        Ok(Some(format!("v={}", STANDARD.encode(signature))))
    }

    /// Whether a proof is that of who knows the password: it gives the key whose hash is kept.
    fn is_proven(&self, proof: &[u8; KEY_BYTES], signed: &str) -> bool {
        let mut client_key = *proof;
        let signature = sign(&self.verifier.stored_key, signed);
        client_key.iter_mut().zip(signature.as_ref()).for_each(|(key, by)| *key ^= by);
        let digest = ring::digest::digest(&ring::digest::SHA256, &client_key);
        let is_it = digest.as_ref().ct_eq(&self.verifier.stored_key);
        bool::from(is_it & Choice::from(u8::from(self.verifier.is_genuine)))
    }
}

/// What a client has to repeat in its last message: the header of its first one, and what it binds to.
fn bound(
    first: &ClientFirst<'_>,
    mechanism: Mechanism,
    end_point: Option<&[u8]>,
) -> Result<Vec<u8>> {
    let header = first.header.as_bytes();
    match (mechanism, first.flag, end_point) {
        (Mechanism::Plus, BindingFlag::Used(END_POINT), Some(digest)) => {
            Ok([header, digest].concat())
        }
        (Mechanism::Plus, BindingFlag::Used(_), _) => Err(ScramError::BindingType),
        (Mechanism::Plus, _, _) => Err(ScramError::NoBinding),
        (Mechanism::Plain, BindingFlag::Used(_), _) => Err(ScramError::UnwantedBinding),
        // Somebody between the two took the offer away.
        (Mechanism::Plain, BindingFlag::NotOffered, Some(_)) => Err(ScramError::Downgrade),
        (Mechanism::Plain, _, _) => Ok(header.to_vec()),
    }
}

fn sign(key: &[u8], message: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message.as_bytes())
}

fn is_same(one: &[u8], other: &[u8]) -> bool {
    bool::from(one.ct_eq(other))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NONE: ChannelBinding<'_> =
        ChannelBinding { mechanism: Mechanism::Plain, end_point: None };
    const BOUND: ChannelBinding<'_> =
        ChannelBinding { mechanism: Mechanism::Plus, end_point: Some(b"digest") };

    /// What a password's verifier is.
    fn keys(password: &str, salt: &[u8]) -> (Vec<u8>, Verifier) {
        let count = std::num::NonZeroU32::new(4096).unwrap();
        let mut salted = [0; 32];
        let by = ring::pbkdf2::PBKDF2_HMAC_SHA256;
        ring::pbkdf2::derive(by, count, salt, password.as_bytes(), &mut salted);
        let client_key = sign(&salted, "Client Key").as_ref().to_vec();
        let stored_key = ring::digest::digest(&ring::digest::SHA256, &client_key);
        let (stored_key, server_key) = (stored_key.as_ref(), sign(&salted, "Server Key"));
        let text = |bytes: &[u8]| STANDARD.encode(bytes);
        let kept = format!(
            "SCRAM-SHA-256$4096:{}${}:{}",
            text(salt),
            text(stored_key),
            text(server_key.as_ref())
        );
        (client_key, Verifier::parse(&kept).unwrap())
    }

    /// The last message of a client that has this key.
    fn last_message(exchange: &Exchange<'_>, client_key: &[u8]) -> String {
        let without = format!("c={},r={}", exchange.binding, exchange.nonce);
        let signed = format!("{},{},{without}", exchange.first_bare, exchange.server_first);
        let stored_key = ring::digest::digest(&ring::digest::SHA256, client_key);
        let signature = sign(stored_key.as_ref(), &signed);
        let proof: Vec<u8> =
            client_key.iter().zip(signature.as_ref()).map(|(a, b)| a ^ b).collect();
        format!("{without},p={}", STANDARD.encode(proof))
    }

    /// RFC 7677, section 3.
    #[test]
    fn the_example_of_the_standard_is_answered_as_there() {
        let (_, verifier) = keys("pencil", &STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap());
        let first = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
        let own = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let exchange = Exchange::with_nonce(&verifier, NONE, first, own).unwrap();
        let nonce = format!("rOprNGfwEbeRWgbNEkqO{own}");
        let wanted = format!("r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
        assert_eq!(exchange.server_first(), wanted);
        let proof = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let answer = exchange.finish(format!("c=biws,r={nonce},p={proof}").as_bytes()).unwrap();
        assert_eq!(answer.unwrap(), "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn a_wrong_password_and_a_stand_in_end_alike() {
        let (right, verifier) = keys("right", b"salt");
        let (wrong, _) = keys("wrong", b"salt");
        let exchange = Exchange::begin(&verifier, NONE, b"n,,n=,r=abc").unwrap();
        assert!(exchange.finish(last_message(&exchange, &right).as_bytes()).unwrap().is_some());
        assert_eq!(exchange.finish(last_message(&exchange, &wrong).as_bytes()), Ok(None));
        let stand_in = Verifier::stand_in("nobody", b"secret");
        let exchange = Exchange::begin(&stand_in, NONE, b"n,,n=,r=abc").unwrap();
        assert_eq!(exchange.finish(last_message(&exchange, &right).as_bytes()), Ok(None));
        // Keys of zeros: the proof that would fit them is none.
        let fitting = Verifier { is_genuine: false, ..verifier };
        let exchange = Exchange::begin(&fitting, NONE, b"n,,n=,r=abc").unwrap();
        assert_eq!(exchange.finish(last_message(&exchange, &right).as_bytes()), Ok(None));
    }

    #[test]
    fn a_message_of_another_exchange_or_channel_is_refused() {
        let (key, verifier) = keys("right", b"salt");
        let first = b"p=tls-server-end-point,,n=,r=abc";
        let exchange = Exchange::begin(&verifier, BOUND, first).unwrap();
        let other = Exchange::begin(&verifier, BOUND, first).unwrap();
        let message = last_message(&exchange, &key);
        assert!(exchange.finish(message.as_bytes()).unwrap().is_some());
        assert_eq!(other.finish(message.as_bytes()), Err(ScramError::Nonce));
        let elsewhere = Exchange {
            binding: STANDARD.encode(b"p=tls-server-end-point,,other"),
            ..Exchange::begin(&verifier, BOUND, first).unwrap()
        };
        assert_eq!(elsewhere.finish(message.as_bytes()), Err(ScramError::OtherChannel));
    }

    #[test]
    fn who_takes_the_binding_away_is_found_out() {
        let verifier = Verifier::stand_in("ada", b"secret");
        let begin =
            |way, message: &str| Exchange::begin(&verifier, way, message.as_bytes()).map(|_| ());
        let offered = ChannelBinding { mechanism: Mechanism::Plain, ..BOUND };
        assert_eq!(begin(offered, "y,,n=,r=a"), Err(ScramError::Downgrade));
        assert_eq!(begin(offered, "n,,n=,r=a"), Ok(()));
        assert_eq!(begin(NONE, "y,,n=,r=a"), Ok(()));
        assert_eq!(begin(BOUND, "n,,n=,r=a"), Err(ScramError::NoBinding));
        assert_eq!(begin(BOUND, "y,,n=,r=a"), Err(ScramError::NoBinding));
        assert_eq!(begin(BOUND, "p=tls-unique,,n=,r=a"), Err(ScramError::BindingType));
        let used = "p=tls-server-end-point,,n=,r=a";
        assert_eq!(begin(offered, used), Err(ScramError::UnwantedBinding));
        assert_eq!(begin(BOUND, used), Ok(()));
    }

    proptest! {
        #[test]
        fn arbitrary_last_messages_prove_nothing(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let verifier = Verifier::stand_in("ada", b"secret");
            let exchange = Exchange::begin(&verifier, NONE, b"n,,n=,r=abc").unwrap();
            prop_assert!(!matches!(exchange.finish(&bytes), Ok(Some(_))));
        }
    }
}
