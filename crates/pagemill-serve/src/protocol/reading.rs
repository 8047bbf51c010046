//! Messages cut out of a stream of bytes.
//!
//! Invariant: room is made for bytes that came, never for bytes that a length word promises.

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::{FrontendMessage, StartupRequest};
use crate::error::{Error, Result};

/// Bytes of a first packet; `MAX_STARTUP_PACKET_LENGTH` in `pqcomm.h`.
const MOST_STARTUP_BYTES: usize = 10_000;
/// Bytes of a message that holds no text or values; `PQ_SMALL_MESSAGE_LIMIT` in `libpq.h`.
const MOST_SMALL_BYTES: usize = 10_000;
/// Bytes of a message from a client that has yet to prove who it is; `PG_MAX_SASL_MESSAGE_LENGTH` in `auth-sasl.h`.
const MOST_SASL_BYTES: usize = 1024;
/// Bytes of any other. PostgreSQL takes a GiB; there is nothing to load here.
const MOST_BYTES: usize = 64 << 20;
/// Bytes that are asked of the system at a time.
const STEP: usize = 16 << 10;

/// Cuts messages out of what a client sends.
#[derive(Debug)]
pub struct MessageReader<R> {
    from: R,
    buffer: Vec<u8>,
    /// Bytes at the start of the buffer that were handed out.
    taken: usize,
}

impl<R: AsyncRead + Unpin> MessageReader<R> {
    /// A reader.
    pub fn new(from: R) -> Self {
        Self { from, buffer: Vec::new(), taken: 0 }
    }

    /// The stream; `None` where bytes of it were read already that no message was made of.
    pub fn into_inner(self) -> Option<R> {
        (self.taken == self.buffer.len()).then_some(self.from)
    }

    /// True where all bytes that came were handed out.
    pub fn is_empty(&self) -> bool {
        self.taken == self.buffer.len()
    }

    /// A first packet; `None` when the client left before one.
    ///
    /// # Errors
    /// When it is none, or cannot be read.
    pub async fn startup(&mut self) -> Result<Option<StartupRequest>> {
        if !self.fill(4).await? {
            return Ok(None);
        }
        let length = self.length_at(self.taken);
        let length = length.filter(|length| (8..=MOST_STARTUP_BYTES).contains(length));
        let Some(length) = length else {
            return Err(Error::protocol("invalid length of startup packet"));
        };
        if !self.fill(length).await? {
            return Ok(None);
        }
        let start = self.taken;
        self.taken += length;
        StartupRequest::parse(&self.buffer[start + 4..start + length]).map(Some)
    }

    /// The next message; `None` when the client left.
    ///
    /// # Errors
    /// When it is none, or cannot be read.
    pub async fn message(&mut self) -> Result<Option<FrontendMessage>> {
        match self.body(most_bytes).await? {
            Some((kind, body)) => FrontendMessage::parse(kind, body).map(Some),
            None => Ok(None),
        }
    }

    /// What a message holds that answers a request to authenticate; `None` when the client left.
    ///
    /// # Errors
    /// When it is another one, or a long one, or cannot be read.
    pub async fn password(&mut self) -> Result<Option<Vec<u8>>> {
        match self.body(|_| MOST_SASL_BYTES).await? {
            Some((b'p', body)) => Ok(Some(body.to_vec())),
            Some((kind, _)) => {
                let message = format!("expected SASL response, got message type {kind}");
                Err(Error::protocol(message))
            }
            None => Ok(None),
        }
    }

    /// The next message's type, and what follows its length, which may have so many bytes for a type.
    async fn body(&mut self, most: impl Fn(u8) -> usize) -> Result<Option<(u8, &[u8])>> {
        if !self.fill(5).await? {
            return Ok(None);
        }
        let kind = self.buffer[self.taken];
        let length = self.length_at(self.taken + 1);
        let Some(length) = length.filter(|length| (4..=most(kind)).contains(length)) else {
            return Err(Error::protocol("invalid message length"));
        };
        if !self.fill(1 + length).await? {
            return Ok(None);
        }
        let start = self.taken + 5;
        self.taken += 1 + length;
        Ok(Some((kind, &self.buffer[start..self.taken])))
    }

    /// Waits until the client is gone, and says how. What it sends meanwhile is kept, as much as one message may have.
    pub async fn gone(&mut self) -> Error {
        loop {
            if self.buffer.len() - self.taken > MOST_BYTES {
                std::future::pending::<()>().await;
            }
            self.buffer.reserve(STEP);
            match self.from.read_buf(&mut self.buffer).await {
                Ok(0) => return std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into(),
                Ok(_) => {}
                Err(error) => return error.into(),
            }
        }
    }

    fn length_at(&self, at: usize) -> Option<usize> {
        let bytes = self.buffer[at..at + 4].try_into().expect("four bytes"); // infallible: they were filled
        usize::try_from(i32::from_be_bytes(bytes)).ok()
    }

    /// Reads until so many bytes are there that were not handed out. False when the stream ends before.
    async fn fill(&mut self, wanted: usize) -> Result<bool> {
        if self.taken == self.buffer.len() {
            self.buffer.clear();
            // What a large message took is not kept for the session's life.
            self.buffer.shrink_to(STEP);
            self.taken = 0;
        }
        while self.buffer.len() - self.taken < wanted {
            self.buffer.reserve(STEP);
            if self.from.read_buf(&mut self.buffer).await? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
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

    #[tokio::test]
    async fn messages_come_one_by_one_however_they_arrive() {
        let bytes: &[u8] = b"Q\0\0\0\x0dselect 1\0S\0\0\0\x04X\0\0\0\x04";
        let (mut end, other) = tokio::io::duplex(3);
        let writer = tokio::spawn(async move {
            tokio::io::AsyncWriteExt::write_all(&mut end, bytes).await.unwrap();
        });
        let mut reader = MessageReader::new(other);
        let query = FrontendMessage::Query("select 1".into());
        assert_eq!(reader.message().await.unwrap(), Some(query));
        assert_eq!(reader.message().await.unwrap(), Some(FrontendMessage::Sync));
        assert_eq!(reader.message().await.unwrap(), Some(FrontendMessage::Terminate));
        writer.await.unwrap();
        assert_eq!(reader.message().await.unwrap(), None);
    }

    #[tokio::test]
    async fn lengths_that_cannot_be_are_refused_before_anything_is_kept() {
        for bytes in
            [&b"Q\0\0\0\x03"[..], b"Q\x7f\xff\xff\xff", b"S\0\0\xff\xff", b"Q\xff\xff\xff\xff"]
        {
            let mut reader = MessageReader::new(bytes);
            assert!(reader.message().await.is_err(), "{bytes:?}");
        }
        for bytes in [&b"\0\0\0\x07"[..], b"\0\0\x27\x11", b"\xff\xff\xff\xff"] {
            let mut reader = MessageReader::new(bytes);
            assert!(reader.startup().await.is_err(), "{bytes:?}");
        }
    }

    #[tokio::test]
    async fn who_is_not_known_sends_short_passwords_only() {
        let mut reader = MessageReader::new(&b"p\0\0\0\x07abcp\0\0\x04\x01"[..]);
        assert_eq!(reader.password().await.unwrap(), Some(b"abc".to_vec()));
        assert!(reader.password().await.is_err());
        assert!(MessageReader::new(&b"Q\0\0\0\x05\0"[..]).password().await.is_err());
        assert_eq!(MessageReader::new(&b""[..]).password().await.unwrap(), None);
    }

    #[tokio::test]
    async fn what_came_behind_a_request_is_seen() {
        let tls = [&8_i32.to_be_bytes()[..], &(1234 << 16 | 5679_i32).to_be_bytes(), b"Q"].concat();
        let mut reader = MessageReader::new(&tls[..]);
        assert_eq!(reader.startup().await.unwrap(), Some(StartupRequest::Tls));
        assert!(reader.into_inner().is_none());
    }
}
