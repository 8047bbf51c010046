//! Messages cut out of bytes as they come.
//!
//! ```text
//!   room() ◄── bytes of the client, as many as came
//!   message() ──► the next message, or None until there are more bytes
//! ```
//!
//! Invariant: room is made for bytes that came, never for bytes that a length word promises; and bytes that were taken apart do not
//! stay for longer than as many others wait behind them.

use crate::error::{Error, Result};
use crate::{FrontendMessage, StartupRequest};

/// Bytes of a first packet; `MAX_STARTUP_PACKET_LENGTH` in `pqcomm.h`.
const MOST_STARTUP_BYTES: usize = 10_000;
/// Bytes of a message that holds no text or values; `PQ_SMALL_MESSAGE_LIMIT` in `libpq.h`.
const MOST_SMALL_BYTES: usize = 10_000;
/// Bytes of a message from a client that has yet to prove who it is; `PG_MAX_SASL_MESSAGE_LENGTH` in `auth-sasl.h`.
const MOST_SASL_BYTES: usize = 1024;
/// Bytes of any other. PostgreSQL takes a GiB; there is nothing to load here.
const MOST_BYTES: usize = 64 << 20;
/// Bytes that there is room for at a time.
const STEP: usize = 16 << 10;

/// What a client sent and no message was made of yet.
#[derive(Debug, Default)]
pub struct Incoming {
    buffer: Vec<u8>,
    /// Bytes at the start of the buffer that were handed out.
    taken: usize,
}

impl Incoming {
    /// Where bytes that come are to be appended; there is room for some.
    pub fn room(&mut self) -> &mut Vec<u8> {
        let waiting = self.buffer.len() - self.taken;
        if waiting <= self.taken {
            self.buffer.drain(..self.taken);
            self.taken = 0;
            // What a large message took is not kept for the session's life.
            self.buffer.shrink_to(2 * (waiting + STEP));
        }
        self.buffer.reserve(STEP);
        &mut self.buffer
    }

    /// True where a message was made of every byte.
    pub fn is_empty(&self) -> bool {
        self.taken == self.buffer.len()
    }

    /// True where more bytes wait than a message may have.
    pub fn is_full(&self) -> bool {
        self.buffer.len() - self.taken > MOST_BYTES
    }

    /// Bytes of memory that are held for it.
    pub fn memory(&self) -> usize {
        self.buffer.capacity()
    }

    /// A first packet; `None` until all of it has come.
    ///
    /// # Errors
    /// When it is none.
    pub fn startup(&mut self) -> Result<Option<StartupRequest>> {
        let Some(length) = self.length_at(0) else { return Ok(None) };
        let length = length.filter(|length| (8..=MOST_STARTUP_BYTES).contains(length));
        let Some(length) = length else {
            return Err(Error::protocol("invalid length of startup packet"));
        };
        match self.take(length) {
            Some(packet) => StartupRequest::parse(&packet[4..]).map(Some),
            None => Ok(None),
        }
    }

    /// The next message; `None` until all of it has come.
    ///
    /// # Errors
    /// When it is none.
    pub fn message(&mut self) -> Result<Option<FrontendMessage>> {
        match self.body(most_bytes)? {
            Some((kind, body)) => FrontendMessage::parse(kind, body).map(Some),
            None => Ok(None),
        }
    }

    /// What a message holds that answers a request to authenticate; `None` until all of it has come.
    ///
    /// # Errors
    /// When it is another one, or a long one.
    pub fn password(&mut self) -> Result<Option<Vec<u8>>> {
        match self.body(|_| MOST_SASL_BYTES)? {
            Some((b'p', body)) => Ok(Some(body.to_vec())),
            Some((kind, _)) => {
                let message = format!("expected SASL response, got message type {kind}");
                Err(Error::protocol(message))
            }
            None => Ok(None),
        }
    }

    /// The next message's type, and what follows its length, which may have so many bytes for a type.
    fn body(&mut self, most: impl Fn(u8) -> usize) -> Result<Option<(u8, &[u8])>> {
        let (Some(&kind), Some(length)) = (self.waiting().first(), self.length_at(1)) else {
            return Ok(None);
        };
        let Some(length) = length.filter(|length| (4..=most(kind)).contains(length)) else {
            return Err(Error::protocol("invalid message length"));
        };
        Ok(self.take(1 + length).map(|message| (kind, &message[5..])))
    }

    fn waiting(&self) -> &[u8] {
        &self.buffer[self.taken..]
    }

    /// The length word behind so many bytes, where it has come; a length that cannot be is none.
    fn length_at(&self, at: usize) -> Option<Option<usize>> {
        let word = self.waiting().get(at..)?.first_chunk()?;
        Some(usize::try_from(i32::from_be_bytes(*word)).ok())
    }

    /// So many bytes, where they have come; they count as handed out.
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let start = self.taken;
        let end = start.checked_add(count).filter(|end| *end <= self.buffer.len())?;
        self.taken = end;
        Some(&self.buffer[start..end])
    }
}

fn most_bytes(kind: u8) -> usize {
    match kind {
        b'Q' | b'P' | b'B' | b'd' | b'F' | b'p' => MOST_BYTES,
        _ => MOST_SMALL_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> Incoming {
        let mut incoming = Incoming::default();
        incoming.room().extend_from_slice(bytes);
        incoming
    }

    #[test]
    fn messages_come_one_by_one_however_they_arrive() {
        let mut incoming = Incoming::default();
        let mut messages = Vec::new();
        for piece in b"Q\0\0\0\x0dselect 1\0S\0\0\0\x04X\0\0\0\x04".chunks(3) {
            incoming.room().extend_from_slice(piece);
            messages.extend(std::iter::from_fn(|| incoming.message().unwrap()));
        }
        let query = FrontendMessage::Query("select 1".into());
        assert_eq!(messages, [query, FrontendMessage::Sync, FrontendMessage::Terminate]);
        assert!(incoming.is_empty());
    }

    #[test]
    fn lengths_that_cannot_be_are_refused_before_anything_is_kept() {
        for bytes in
            [&b"Q\0\0\0\x03"[..], b"Q\x7f\xff\xff\xff", b"S\0\0\xff\xff", b"Q\xff\xff\xff\xff"]
        {
            assert!(of(bytes).message().is_err(), "{bytes:?}");
        }
        for bytes in [&b"\0\0\0\x07"[..], b"\0\0\x27\x11", b"\xff\xff\xff\xff"] {
            assert!(of(bytes).startup().is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn who_is_not_known_sends_short_passwords_only() {
        let mut incoming = of(b"p\0\0\0\x07abcp\0\0\x04\x01");
        assert_eq!(incoming.password(), Ok(Some(b"abc".to_vec())));
        assert!(incoming.password().is_err());
        assert!(of(b"Q\0\0\0\x05\0").password().is_err());
        assert_eq!(of(b"").password(), Ok(None));
    }

    #[test]
    fn what_came_behind_a_request_is_seen() {
        let tls = [&8_i32.to_be_bytes()[..], &(1234 << 16 | 5679_i32).to_be_bytes(), b"Q"].concat();
        let mut incoming = of(&tls);
        assert_eq!(incoming.startup(), Ok(Some(StartupRequest::Tls)));
        assert!(!incoming.is_empty());
    }

    /// Pieces that never end with a message: what was handed out must go all the same.
    #[test]
    fn a_client_that_never_pauses_takes_no_more_memory() {
        let message = [&b"d\0\0\x03\xe8"[..], &[7; 996]].concat();
        let endless = std::iter::repeat_n(message, 20_000).flatten().collect::<Vec<u8>>();
        let mut incoming = Incoming::default();
        let mut count = 0;
        for piece in endless.chunks(1500) {
            incoming.room().extend_from_slice(piece);
            count += std::iter::from_fn(|| incoming.message().unwrap()).count();
            assert!(incoming.memory() <= 8 * STEP, "{}", incoming.memory());
        }
        assert_eq!(count, 20_000);
    }

    #[test]
    fn what_a_large_message_took_is_let_go() {
        let large = [&b"d\0\x10\0\x04"[..], &[7; 1 << 20], b"S\0"].concat();
        let mut incoming = of(&large);
        assert_eq!(incoming.message(), Ok(Some(FrontendMessage::CopyIn)));
        assert_eq!(incoming.message(), Ok(None));
        incoming.room().extend_from_slice(b"\0\0\x04");
        assert_eq!(incoming.message(), Ok(Some(FrontendMessage::Sync)));
        assert!(incoming.memory() <= 4 * STEP, "{}", incoming.memory());
    }
}
