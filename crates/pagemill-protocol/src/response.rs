//! What a server says, as bytes.
//!
//! Invariant: the buffer holds whole messages between any two calls.

use pagemill_format::Oid;

/// Messages to be sent.
#[derive(Debug, Default)]
pub struct ResponseBuffer {
    bytes: Vec<u8>,
}

/// A column as `RowDescription` has it.
#[derive(Debug, Clone)]
pub struct ColumnDescription<'c> {
    /// Its name.
    pub name: &'c str,
    /// The table and the number that it has there; zeros for what is computed.
    pub origin: (Oid, i16),
    /// Its type.
    pub type_oid: Oid,
    /// `typlen`.
    pub type_length: i16,
    /// `atttypmod`.
    pub modifier: i32,
    /// True for the binary form.
    pub is_binary: bool,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The connection ends.
    Fatal,
    /// The statement ended.
    Error,
    /// The statement went on, and something is missing.
    Warning,
    /// The statement went on.
    Notice,
}

impl Severity {
    fn word(self) -> &'static str {
        match self {
            Self::Fatal => "FATAL",
            Self::Error => "ERROR",
            Self::Warning => "WARNING",
            Self::Notice => "NOTICE",
        }
    }

    fn kind(self) -> u8 {
        match self {
            Self::Fatal | Self::Error => b'E',
            Self::Warning | Self::Notice => b'N',
        }
    }
}

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatus {
    /// Outside of a transaction.
    Idle,
    /// Within one.
    InTransaction,
    /// Within one that an error ended.
    Failed,
}

impl ResponseBuffer {
    /// After messages that are there already.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// The bytes so far, which are the caller's then.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True when there is nothing to be sent.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes that are whole messages already.
    pub fn append(&mut self, messages: &[u8]) {
        self.bytes.extend_from_slice(messages);
    }

    /// A message of this type, whose content `write` appends.
    pub fn message(&mut self, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.push(kind);
        let start = self.bytes.len();
        self.bytes.extend([0; 4]);
        write(&mut self.bytes);
        set_length(&mut self.bytes, start, start);
    }

    /// The same with a content that may fail; the buffer is then as it was.
    ///
    /// # Errors
    /// What `write` returns.
    pub fn try_message<E>(
        &mut self,
        kind: u8,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let before = self.bytes.len();
        let mut written = Ok(());
        self.message(kind, |out| written = write(out));
        if written.is_err() {
            self.bytes.truncate(before);
        }
        written
    }

    /// A message that has a type only.
    pub fn empty(&mut self, kind: u8) {
        self.message(kind, |_| {});
    }

    /// `Authentication…`, with what this way to authenticate adds.
    pub fn authentication(&mut self, code: i32, rest: &[u8]) {
        self.message(b'R', |out| {
            out.extend(code.to_be_bytes());
            out.extend_from_slice(rest);
        });
    }

    /// `NegotiateProtocolVersion`.
    pub fn negotiate(&mut self, minor: i32, unknown: &[String]) {
        self.message(b'v', |out| {
            out.extend((3 << 16 | minor).to_be_bytes());
            out.extend((unknown.len() as i32).to_be_bytes());
            for option in unknown {
                string(out, option);
            }
        });
    }

    /// `BackendKeyData`.
    pub fn key(&mut self, process: i32, key: &[u8]) {
        self.message(b'K', |out| {
            out.extend(process.to_be_bytes());
            out.extend_from_slice(key);
        });
    }

    /// `ParameterStatus`.
    pub fn parameter(&mut self, name: &str, value: &str) {
        self.message(b'S', |out| {
            string(out, name);
            string(out, value);
        });
    }

    /// `ReadyForQuery`.
    pub fn ready(&mut self, status: TransactionStatus) {
        let letter = match status {
            TransactionStatus::Idle => b'I',
            TransactionStatus::InTransaction => b'T',
            TransactionStatus::Failed => b'E',
        };
        self.message(b'Z', |out| out.push(letter));
    }

    /// `CommandComplete`.
    pub fn complete(&mut self, tag: &str) {
        self.message(b'C', |out| string(out, tag));
    }

    /// `RowDescription`.
    pub fn row_description<'c>(
        &mut self,
        columns: impl ExactSizeIterator<Item = ColumnDescription<'c>>,
    ) {
        self.message(b'T', |out| {
            out.extend((columns.len() as i16).to_be_bytes());
            for column in columns {
                string(out, column.name);
                out.extend(column.origin.0.0.to_be_bytes());
                out.extend(column.origin.1.to_be_bytes());
                out.extend(column.type_oid.0.to_be_bytes());
                out.extend(column.type_length.to_be_bytes());
                out.extend(column.modifier.to_be_bytes());
                out.extend(i16::from(column.is_binary).to_be_bytes());
            }
        });
    }

    /// `ParameterDescription`.
    pub fn parameter_description(&mut self, types: impl ExactSizeIterator<Item = Oid>) {
        self.message(b't', |out| {
            out.extend((types.len() as i16).to_be_bytes());
            out.extend(types.flat_map(|oid| oid.0.to_be_bytes()));
        });
    }

    /// `DataRow`: `write` appends the value of each column, or says that it is NULL.
    ///
    /// # Errors
    /// What `write` returns; the buffer is then as it was.
    pub fn row<E>(
        &mut self,
        columns: usize,
        mut write: impl FnMut(usize, &mut Vec<u8>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let before = self.bytes.len();
        let bytes = &mut self.bytes;
        bytes.extend_from_slice(b"D\0\0\0\0");
        bytes.extend((columns as i16).to_be_bytes());
        for column in 0..columns {
            let at = bytes.len();
            bytes.extend([0; 4]);
            match write(column, bytes) {
                Ok(true) => set_length(bytes, at, at + 4),
                Ok(false) => bytes[at..at + 4].copy_from_slice(&(-1_i32).to_be_bytes()),
                Err(error) => {
                    bytes.truncate(before);
                    return Err(error);
                }
            }
        }
        set_length(bytes, before + 1, before + 1);
        Ok(())
    }

    /// `CopyOutResponse` for so many columns, in binary form or as texts.
    pub fn copy_out(&mut self, columns: usize, is_binary: bool) {
        self.message(b'H', |out| {
            out.push(is_binary.into());
            out.extend((columns as i16).to_be_bytes());
            out.extend([0, is_binary.into()].repeat(columns));
        });
    }

    /// `ErrorResponse` or `NoticeResponse`: fields by their letters, those without a value left out.
    pub fn report(&mut self, severity: Severity, fields: &[(u8, Option<&str>)]) {
        self.message(severity.kind(), |out| {
            for letter in [b'S', b'V'] {
                out.push(letter);
                string(out, severity.word());
            }
            for (letter, value) in fields {
                if let Some(value) = value {
                    out.push(*letter);
                    string(out, value);
                }
            }
            out.push(0);
        });
    }
}

/// Writes the length word at `at`, of what begins at `from` and ends with the buffer.
fn set_length(bytes: &mut [u8], at: usize, from: usize) {
    let length = i32::try_from(bytes.len() - from);
    let length = length.expect("a message has less than 2 GiB"); // infallible: values have less than 1 GiB, texts less than 64 MiB
    bytes[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

/// A text up to its end, or to a NUL in it, which the protocol cannot carry.
fn string(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().take_while(|byte| *byte != 0));
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_their_lengths() {
        let mut buffer = ResponseBuffer::default();
        buffer.ready(TransactionStatus::Idle);
        buffer.complete("SELECT 1");
        assert_eq!(buffer.take(), b"Z\0\0\0\x05IC\0\0\0\x0dSELECT 1\0");
        assert!(buffer.is_empty());
    }

    #[test]
    fn errors_have_their_fields() {
        let mut buffer = ResponseBuffer::default();
        buffer.report(
            Severity::Error,
            &[(b'C', Some("42P01")), (b'H', None), (b'M', Some("no\0pe"))],
        );
        assert_eq!(buffer.take(), b"E\0\0\0\x1eSERROR\0VERROR\0C42P01\0Mno\0\0");
    }
}
