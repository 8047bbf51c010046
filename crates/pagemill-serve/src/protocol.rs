//! PostgreSQL's messages, which `pagemill-protocol` makes of bytes and of which it makes bytes, read from a stream.
//!
//! Invariant: what a client sends is read when somebody asks for a message, so that one who sends more than is answered waits.

use tokio::io::{AsyncRead, AsyncReadExt as _};

pub use pagemill_protocol::{
    Bind, ColumnDescription, Described, Execute, FrontendMessage, FunctionCall, Parse,
    ResponseBuffer, SaslInitialResponse, Severity, Startup, StartupRequest, TransactionStatus,
};
use pagemill_protocol::{Incoming, Result as Cut};

use crate::error::{Error, Result};

/// Cuts messages out of what a client sends.
#[derive(Debug)]
pub struct MessageReader<R> {
    from: R,
    incoming: Incoming,
}

impl<R: AsyncRead + Unpin> MessageReader<R> {
    /// A reader.
    pub fn new(from: R) -> Self {
        Self { from, incoming: Incoming::default() }
    }

    /// The stream; `None` where bytes of it were read already that no message was made of.
    pub fn into_inner(self) -> Option<R> {
        self.is_empty().then_some(self.from)
    }

    /// True where all bytes that came were handed out.
    pub fn is_empty(&self) -> bool {
        self.incoming.is_empty()
    }

    /// A first packet; `None` when the client left before one.
    ///
    /// # Errors
    /// When it is none, or cannot be read.
    pub async fn startup(&mut self) -> Result<Option<StartupRequest>> {
        self.next(Incoming::startup).await
    }

    /// The next message; `None` when the client left.
    ///
    /// # Errors
    /// When it is none, or cannot be read.
    pub async fn message(&mut self) -> Result<Option<FrontendMessage>> {
        self.next(Incoming::message).await
    }

    /// What a message holds that answers a request to authenticate; `None` when the client left.
    ///
    /// # Errors
    /// When it is another one, or a long one, or cannot be read.
    pub async fn password(&mut self) -> Result<Option<Vec<u8>>> {
        self.next(Incoming::password).await
    }

    async fn next<T>(
        &mut self,
        cut: impl Fn(&mut Incoming) -> Cut<Option<T>>,
    ) -> Result<Option<T>> {
        loop {
            let found = cut(&mut self.incoming)?;
            if found.is_some() || self.from.read_buf(self.incoming.room()).await? == 0 {
                return Ok(found);
            }
        }
    }

    /// Waits until the client is gone, and says how. What it sends meanwhile is kept, as much as one message may have.
    pub async fn gone(&mut self) -> Error {
        loop {
            if self.incoming.is_full() {
                std::future::pending::<()>().await;
            }
            match self.from.read_buf(self.incoming.room()).await {
                Ok(0) => return std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into(),
                Ok(_) => {}
                Err(error) => return error.into(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_are_read_until_the_client_leaves() {
        let bytes: &[u8] = b"Q\0\0\0\x0dselect 1\0S\0\0\0\x04X\0\0\0\x04S\0";
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
        // It left in the middle of one.
        assert_eq!(reader.message().await.unwrap(), None);
        assert!(reader.into_inner().is_none());
    }

    #[tokio::test]
    async fn what_is_no_message_is_told() {
        let told = MessageReader::new(&b"Q\0\0\0\x03"[..]).message().await.unwrap_err();
        assert_eq!(told.to_string(), "invalid message length");
    }
}
