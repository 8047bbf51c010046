//! A client's first packet, which has no type: what is asked for before a session begins.
//!
//! Source: `ProcessStartupPacket` in `src/backend/tcop/backend_startup.c`, PostgreSQL 18.

use crate::error::{Error, Result};
use crate::frontend::Fields;

const CANCEL_REQUEST: i32 = 1234 << 16 | 5678;
const SSL_REQUEST: i32 = 1234 << 16 | 5679;
const GSS_REQUEST: i32 = 1234 << 16 | 5680;

/// The newest version of protocol 3 that is spoken here. There never was a 3.1.
const NEWEST_MINOR: i32 = 2;

/// A first packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartupRequest {
    /// TLS is asked for.
    Tls,
    /// Encryption by GSSAPI is asked for.
    Gss,
    /// The statement of another connection is to end.
    Cancel {
        /// The number that this connection was told.
        process: i32,
        /// The secret that it was told.
        key: Vec<u8>,
    },
    /// A session.
    Session(Startup),
}

/// What a session is asked for with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Startup {
    /// The version within protocol 3.
    pub minor: i32,
    /// Names and values, in their order.
    pub parameters: Vec<(String, String)>,
    /// Options of the protocol, all of them unknown here.
    pub protocol_options: Vec<String>,
}

impl StartupRequest {
    /// A packet by what follows its length.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(packet: &[u8]) -> Result<Self> {
        let mut fields = Fields { left: packet };
        match fields.i32()? {
            SSL_REQUEST => Ok(Self::Tls),
            GSS_REQUEST => Ok(Self::Gss),
            CANCEL_REQUEST => {
                let process = fields.i32()?;
                Ok(Self::Cancel { process, key: fields.left.to_vec() })
            }
            version => Startup::parse(version, fields).map(Self::Session),
        }
    }
}

impl Startup {
    fn parse(version: i32, mut fields: Fields<'_>) -> Result<Self> {
        let (major, minor) = (version >> 16, version & 0xFFFF);
        if major != 3 {
            return Err(Error::UnsupportedVersion { major, minor });
        }
        let mut startup = Self { minor, ..Self::default() };
        loop {
            let name = fields.string()?;
            if name.is_empty() {
                break;
            }
            let value = fields.string()?;
            match name.starts_with("_pq_.") {
                true => startup.protocol_options.push(name),
                false => startup.parameters.push((name, value)),
            }
        }
        match fields.left {
            [] => Ok(startup),
            _ => {
                let message = "invalid startup packet layout: expected terminator as last byte";
                Err(Error::protocol(message))
            }
        }
    }

    /// A parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().rev().find(|(given, _)| given == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The version that is spoken.
    pub fn spoken_minor(&self) -> i32 {
        self.minor.min(NEWEST_MINOR)
    }

    /// True where the client has to be told that it gets less than it asked for.
    pub fn asks_too_much(&self) -> bool {
        self.minor > NEWEST_MINOR || !self.protocol_options.is_empty()
    }

    /// How many bytes a secret has: more since 3.2.
    pub fn key_bytes(&self) -> usize {
        if self.spoken_minor() >= 2 { 32 } else { 4 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(version: i32, rest: &[u8]) -> Vec<u8> {
        [&version.to_be_bytes(), rest].concat()
    }

    #[test]
    fn a_session_has_parameters_and_options() {
        let bytes = packet(3 << 16 | 9999, b"user\0ada\0_pq_.x\0on\0database\0shop\0\0");
        let StartupRequest::Session(startup) = StartupRequest::parse(&bytes).unwrap() else {
            panic!("no session");
        };
        assert_eq!(startup.parameter("database"), Some("shop"));
        assert_eq!(startup.protocol_options, ["_pq_.x"]);
        assert!(startup.asks_too_much());
        assert_eq!((startup.spoken_minor(), startup.key_bytes()), (2, 32));
    }

    #[test]
    fn other_requests_are_known() {
        let cancel = packet(CANCEL_REQUEST, b"\0\0\0\x07abcd");
        let wanted = StartupRequest::Cancel { process: 7, key: b"abcd".to_vec() };
        assert_eq!(StartupRequest::parse(&cancel).unwrap(), wanted);
        let request = |version| StartupRequest::parse(&packet(version, b"")).unwrap();
        assert_eq!(request(SSL_REQUEST), StartupRequest::Tls);
        assert_eq!(request(GSS_REQUEST), StartupRequest::Gss);
    }

    #[test]
    fn other_protocols_and_damaged_packets_are_refused() {
        let wrong = [
            packet(2 << 16, b"user\0ada\0\0"),
            packet(3 << 16, b"user\0ada\0"),
            packet(3 << 16, b"user\0ada\0\0more"),
            packet(3 << 16, b"user"),
            b"\0\0".to_vec(),
        ];
        for bytes in wrong {
            assert!(StartupRequest::parse(&bytes).is_err(), "{bytes:?}");
        }
    }
}
