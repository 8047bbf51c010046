//! What a client says once it is let in.
//!
//! Source: `src/backend/tcop/postgres.c` and `pqformat.c`, PostgreSQL 18, for what is a violation of the protocol.

use crate::error::{Error, Result};

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrontendMessage {
    /// Statements in one text.
    Query(String),
    /// A statement to prepare.
    Parse(Parse),
    /// Values for a prepared statement.
    Bind(Bind),
    /// What a statement or portal gives is asked for.
    Describe(Described),
    /// Rows of a portal are asked for.
    Execute(Execute),
    /// A statement or portal is no longer needed.
    Close(Described),
    /// The end of a run of messages.
    Sync,
    /// What was answered so far is asked for.
    Flush,
    /// A password, or what a way to authenticate sends in its place.
    Password(Vec<u8>),
    /// The end of the connection.
    Terminate,
    /// A function by its OID, from before there were prepared statements.
    FunctionCall(FunctionCall),
    /// Rows for `COPY … FROM STDIN`, which there is none of here: to be ignored, as it is after an error.
    CopyIn,
}

/// `Parse`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parse {
    /// The statement's name, empty for the unnamed one.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The types of its parameters, 0 where they follow from the text.
    pub types: Vec<u32>,
}

/// `Bind`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// The portal's name, empty for the unnamed one.
    pub portal: String,
    /// The statement's.
    pub statement: String,
    /// Whether each value is in binary form: none for no value, one for all.
    pub formats: Vec<bool>,
    /// The values, `None` for NULL.
    pub values: Vec<Option<Vec<u8>>>,
    /// Whether each column is wanted in binary form, likewise.
    pub result_formats: Vec<bool>,
}

/// A statement or portal by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Described {
    /// A prepared statement.
    Statement(String),
    /// A portal.
    Portal(String),
}

/// `Execute`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execute {
    /// The portal's name.
    pub portal: String,
    /// How many rows at most, 0 for all.
    pub most_rows: u32,
}

/// `FunctionCall`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionCall {
    /// The function's OID.
    pub function: u32,
    /// The arguments, `None` for NULL.
    pub arguments: Vec<Option<Vec<u8>>>,
    /// True where all of them are in binary form, and the result is wanted so.
    pub is_binary: bool,
}

/// `SASLInitialResponse`: a way to authenticate, chosen, and its first message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaslInitialResponse<'m> {
    /// The mechanism's name.
    pub mechanism: String,
    /// The message.
    pub data: &'m [u8],
}

impl<'m> SaslInitialResponse<'m> {
    /// What a password message holds where SASL was asked for.
    ///
    /// # Errors
    /// When it is none. One without data, which asks for the mechanism to begin by the server, fits none of those that are offered.
    pub fn parse(body: &'m [u8]) -> Result<Self> {
        let mut fields = Fields { left: body };
        let (mechanism, length) = (fields.string()?, fields.i32()?);
        match usize::try_from(length) == Ok(fields.left.len()) {
            true => Ok(Self { mechanism, data: fields.left }),
            false => Err(Error::protocol("invalid message format")),
        }
    }
}

impl FrontendMessage {
    /// A message by its type and what follows its length.
    ///
    /// # Errors
    /// When there is no such type, or the bytes are no such message.
    pub fn parse(kind: u8, body: &[u8]) -> Result<Self> {
        let mut fields = Fields { left: body };
        let message = match kind {
            b'Q' => Self::Query(fields.string()?),
            b'P' => Self::Parse(fields.parse()?),
            b'B' => Self::Bind(fields.bind()?),
            b'D' => Self::Describe(fields.described("DESCRIBE")?),
            b'E' => {
                let (portal, most) = (fields.string()?, fields.i32()?);
                // No rows at all, or fewer, mean all: exec_execute_message.
                Self::Execute(Execute { portal, most_rows: u32::try_from(most).unwrap_or(0) })
            }
            b'C' => Self::Close(fields.described("CLOSE")?),
            b'F' => Self::FunctionCall(fields.function_call()?),
            b'S' => Self::Sync,
            b'H' => Self::Flush,
            b'X' => Self::Terminate,
            // What these hold is for others to understand.
            b'p' => return Ok(Self::Password(body.to_vec())),
            b'd' | b'c' | b'f' => return Ok(Self::CopyIn),
            _ => return Err(Error::protocol(format!("invalid frontend message type {kind}"))),
        };
        match fields.left {
            [] => Ok(message),
            _ => Err(Error::protocol("invalid message format")),
        }
    }
}

/// What is left of a message's bytes.
pub(crate) struct Fields<'m> {
    pub(crate) left: &'m [u8],
}

impl<'m> Fields<'m> {
    fn take(&mut self, length: usize) -> Result<&'m [u8]> {
        let Some((taken, left)) = self.left.split_at_checked(length) else {
            return Err(Error::protocol("insufficient data left in message"));
        };
        self.left = left;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.take(N)?;
        Ok(bytes.try_into().expect("as many bytes were taken")) // infallible: by the line above
    }

    pub(crate) fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    fn i16(&mut self) -> Result<i16> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    /// A number of things that follow.
    fn count(&mut self) -> Result<usize> {
        // Of parameters there may be 65,535, and the word is unsigned in fact.
        Ok(usize::from(self.i16()?.cast_unsigned()))
    }

    pub(crate) fn string(&mut self) -> Result<String> {
        let Some(end) = self.left.iter().position(|byte| *byte == 0) else {
            return Err(Error::protocol("invalid string in message"));
        };
        let bytes = self.take(end)?;
        self.take(1)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(Error::protocol("invalid byte sequence for encoding \"UTF8\"")),
        }
    }

    fn parse(&mut self) -> Result<Parse> {
        let (name, text) = (self.string()?, self.string()?);
        let count = self.count()?;
        let types = (0..count).map(|_| Ok(self.i32()?.cast_unsigned()));
        Ok(Parse { name, text, types: types.collect::<Result<_>>()? })
    }

    fn formats(&mut self) -> Result<Vec<bool>> {
        let count = self.count()?;
        let format = |_| match self.i16()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(Error::protocol(format!("unsupported format code: {other}"))),
        };
        (0..count).map(format).collect()
    }

    fn values(&mut self) -> Result<Vec<Option<Vec<u8>>>> {
        let count = self.count()?;
        let value = |_| match self.i32()? {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length);
                let length = length.map_err(|_| Error::protocol("invalid message format"))?;
                Ok(Some(self.take(length)?.to_vec()))
            }
        };
        (0..count).map(value).collect()
    }

    fn function_call(&mut self) -> Result<FunctionCall> {
        let function = self.i32()?.cast_unsigned();
        let formats = self.formats()?;
        let arguments = self.values()?;
        let wants_binary = match self.i16()? {
            0 => false,
            1 => true,
            other => return Err(Error::protocol(format!("unsupported format code: {other}"))),
        };
        if formats.len() > 1 && formats.len() != arguments.len() {
            let (formats, given) = (formats.len(), arguments.len());
            let message = format!(
                "function call message contains {formats} argument formats but {given} arguments"
            );
            return Err(Error::protocol(message));
        }
        let is_given_binary = !formats.is_empty() && formats.iter().all(|is_binary| *is_binary);
        let is_binary = wants_binary && (is_given_binary || arguments.is_empty());
        Ok(FunctionCall { function, arguments, is_binary })
    }

    fn bind(&mut self) -> Result<Bind> {
        let (portal, statement) = (self.string()?, self.string()?);
        let formats = self.formats()?;
        let values = self.values()?;
        let result_formats = self.formats()?;
        if formats.len() > 1 && formats.len() != values.len() {
            let (formats, values) = (formats.len(), values.len());
            let message =
                format!("bind message has {formats} parameter formats but {values} parameters");
            return Err(Error::protocol(message));
        }
        Ok(Bind { portal, statement, formats, values, result_formats })
    }

    fn described(&mut self, verb: &str) -> Result<Described> {
        let [kind] = self.array()?;
        let name = self.string()?;
        match kind {
            b'S' => Ok(Described::Statement(name)),
            b'P' => Ok(Described::Portal(name)),
            _ => Err(Error::protocol(format!("invalid {verb} message subtype {kind}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_taken_apart() {
        let parse = FrontendMessage::parse(b'P', b"s1\0select $1\0\0\x01\0\0\0\x17").unwrap();
        let wanted = Parse { name: "s1".into(), text: "select $1".into(), types: vec![23] };
        assert_eq!(parse, FrontendMessage::Parse(wanted));
        let bytes = b"\0s1\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\0";
        let FrontendMessage::Bind(bind) = FrontendMessage::parse(b'B', bytes).unwrap() else {
            panic!("no Bind");
        };
        assert_eq!(bind.values, [Some(b"ab".to_vec()), None]);
        assert_eq!((bind.formats, bind.result_formats), (vec![true], vec![]));
        let execute = FrontendMessage::parse(b'E', b"p\0\0\0\0\x05").unwrap();
        let wanted = Execute { portal: "p".into(), most_rows: 5 };
        assert_eq!(execute, FrontendMessage::Execute(wanted));
        let bytes = b"\0\0\x03\xba\0\x01\0\x01\0\x02\0\0\0\x01a\xff\xff\xff\xff\0\x01";
        let arguments = vec![Some(b"a".to_vec()), None];
        let wanted = FunctionCall { function: 954, arguments, is_binary: true };
        let call = FrontendMessage::parse(b'F', bytes).unwrap();
        assert_eq!(call, FrontendMessage::FunctionCall(wanted));
        let close = FrontendMessage::parse(b'C', b"Ss1\0").unwrap();
        assert_eq!(close, FrontendMessage::Close(Described::Statement("s1".into())));
    }

    #[test]
    fn a_first_response_has_a_mechanism_and_data() {
        let response = SaslInitialResponse::parse(b"SCRAM-SHA-256\0\0\0\0\x03abc").unwrap();
        assert_eq!((&response.mechanism[..], response.data), ("SCRAM-SHA-256", &b"abc"[..]));
        for wrong in [&b"X\0\0\0\0\x03ab"[..], b"X\0\xff\xff\xff\xff", b"X\0\0", b"X", b""] {
            assert!(SaslInitialResponse::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_no_message_is_an_error_of_the_protocol() {
        let wrong: [(u8, &[u8]); 11] = [
            (b'Q', b"select 1"),
            (b'Q', b"select 1\0more\0"),
            (b'Q', b"\xff\0"),
            (b'P', b"s\0select\0\0\x02\0\0\0\x17"),
            (b'B', b"\0\0\0\0\0\x01\0\0\0\x09ab"),
            (b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0"),
            (b'B', b"\0\0\0\x01\0\x02\0\0\0\0"),
            (b'D', b"Xs\0"),
            (b'F', b"\0\0\0\x01\0\0\0\0\0\x02"),
            (b'F', b"\0\0\0\x01\0\x02\0\0\0\0\0\0\0\0"),
            (b'y', b""),
        ];
        for (kind, body) in wrong {
            assert!(FrontendMessage::parse(kind, body).is_err(), "{} {body:?}", char::from(kind));
        }
    }
}
