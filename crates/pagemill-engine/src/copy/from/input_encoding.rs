//! Text of an input, checked and converted to the database's encoding.
//!
//! As in `CopyConvertBuf` of `src/backend/commands/copyfromparse.c` (PostgreSQL 14 to 18), bytes
//! that are no characters are an error only once everything before them was taken: the rows
//! before them, or an end-of-copy marker, come first. So a batch is given as its valid beginning
//! and the error that is due behind it.
//!
//! One difference is meant: COPY believes an input said to be in SQL_ASCII whatever is in it; here
//! it is checked against the database's encoding, so that no bytes get in that are not text there.

use super::character_check::CharacterCheck;
use crate::encoding::{
    EncodingError, Transcoder, encoding_id, encoding_name, hexadecimal, readable_name,
};

/// Bytes of a character that an error shows at most.
const MOST_BYTES_SHOWN: usize = 8;

/// The valid beginning of a text, in the database's encoding.
#[derive(Debug)]
pub(super) struct ValidText<'a> {
    pub(super) bytes: &'a [u8],
    /// The error that is due behind it.
    pub(super) behind: Option<String>,
}

/// The encodings of an input and of the database it is for.
#[derive(Clone, Debug)]
pub(super) struct InputEncoding {
    server: i32,
    /// The encoding that the bytes are checked against, where they are not converted.
    name: &'static str,
    check: CharacterCheck,
    server_name: &'static str,
    server_check: CharacterCheck,
    transcoder: Option<Box<Transcoder>>,
}

impl InputEncoding {
    /// For an input in the encoding of this name, the database's if there is none, and a database
    /// whose encoding has this number.
    ///
    /// # Errors
    /// When one of them does not exist, or there is no conversion.
    pub(super) fn new(name: Option<&str>, server: i32) -> Result<Self, EncodingError> {
        let unknown = EncodingError::UnknownNumber { id: server };
        let server_name = encoding_name(server).ok_or(unknown)?;
        let file = match name {
            Some(name) => {
                let unknown = || EncodingError::UnknownName { name: name.to_owned() };
                encoding_id(name).and_then(encoding_name).ok_or_else(unknown)?
            }
            None => server_name,
        };
        let as_it_is = file == server_name || server_name == "SQL_ASCII" || file == "SQL_ASCII";
        let transcoder = if as_it_is { None } else { Some(conversion(file, server_name)?) };
        let name = if file == "SQL_ASCII" { server_name } else { file };
        Ok(Self {
            server,
            name,
            check: CharacterCheck::of(name),
            server_name,
            server_check: CharacterCheck::of(server_name),
            transcoder,
        })
    }

    /// The encoding in which a byte from 0x80 on is not a character by itself, if there is one.
    pub(super) fn multibyte(&self) -> Option<&'static str> {
        let is_one = self.transcoder.is_none() && self.check.is_single_byte();
        (!is_one).then_some(self.name)
    }

    /// The text, in the database's encoding, as far as it is valid, and what is wrong behind it.
    pub(super) fn prepared<'a>(
        &self,
        bytes: &'a [u8],
        converted: &'a mut Vec<u8>,
    ) -> ValidText<'a> {
        match &self.transcoder {
            None => {
                let valid = self.check.valid_prefix(bytes);
                let (bytes, rest) = bytes.split_at_checked(valid).unwrap_or((bytes, &[]));
                let behind = (!rest.is_empty()).then(|| invalid(self.name, self.check, rest));
                ValidText { bytes, behind }
            }
            Some(transcoder) => {
                converted.clear();
                let failed = transcoder.convert(bytes, converted).is_err();
                let error =
                    failed.then(|| converted_prefix(transcoder, self.check, bytes, converted));
                ValidText { bytes: converted, behind: error.flatten() }
            }
        }
    }

    /// Whether a value in the database's encoding is valid: escapes may have made it of any bytes.
    ///
    /// # Errors
    /// COPY's message.
    pub(super) fn verify(&self, value: &[u8]) -> Result<(), String> {
        let valid = self.server_check.valid_prefix(value);
        match value.get(valid..) {
            Some(rest) if !rest.is_empty() => {
                Err(invalid(self.server_name, self.server_check, rest))
            }
            _ => Ok(()),
        }
    }

    /// Text in the database's encoding for a message, cut after `most` bytes.
    pub(super) fn excerpt(&self, text: &[u8], most: usize) -> String {
        if text.len() <= most {
            return self.readable(text);
        }
        format!("{}...", self.readable(self.server_check.clipped(text, most)))
    }

    /// Text in the database's encoding in UTF-8.
    pub(super) fn readable(&self, text: &[u8]) -> String {
        readable_name(self.server, text)
    }
}

fn conversion(from: &'static str, to: &'static str) -> Result<Box<Transcoder>, EncodingError> {
    let unsupported = || EncodingError::UnsupportedInput { from, to };
    let id = encoding_id(from).ok_or_else(unsupported)?;
    // An encoding that no database can have is unknown there, and one without conversion named.
    let transcoder = Transcoder::new(id, to).map_err(|_| unsupported())?;
    transcoder.map(Box::new).ok_or_else(unsupported)
}

/// Converts as far as it goes, and says what stopped it.
fn converted_prefix(
    transcoder: &Transcoder,
    check: CharacterCheck,
    bytes: &[u8],
    converted: &mut Vec<u8>,
) -> Option<String> {
    // Line by line up to the one with the error, and that one by the character.
    let mut lines = bytes.split_inclusive(|&byte| byte == b'\n');
    let mut rest = lines.find(|line| transcoder.convert(line, converted).is_err())?;
    while let Some(&first) = rest.first() {
        let length = check.length(first).min(rest.len());
        let (character, tail) = rest.split_at_checked(length)?;
        if let Err(error) = transcoder.convert(character, converted) {
            return Some(message(&error));
        }
        rest = tail;
    }
    None
}

fn invalid(encoding: &str, check: CharacterCheck, rest: &[u8]) -> String {
    let length = rest.first().map_or(0, |&first| check.length(first)).min(MOST_BYTES_SHOWN);
    let shown = hexadecimal(rest.get(..length).unwrap_or(rest));
    format!("invalid byte sequence for encoding \"{encoding}\": {shown}")
}

/// The error in PostgreSQL's words.
fn message(error: &EncodingError) -> String {
    match error {
        EncodingError::InvalidSequence { encoding, bytes } => {
            format!("invalid byte sequence for encoding \"{encoding}\": {bytes}")
        }
        EncodingError::NoEquivalent { from, to, bytes } => format!(
            "character with byte sequence {bytes} in encoding \"{from}\" has no equivalent in \
             encoding \"{to}\""
        ),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UTF8: i32 = 6;
    const LATIN1: i32 = 8;
    const SQL_ASCII: i32 = 0;

    fn prepared(file: Option<&str>, server: i32, bytes: &[u8]) -> (Vec<u8>, Option<String>) {
        let encoding = InputEncoding::new(file, server).unwrap();
        let mut converted = Vec::new();
        let text = encoding.prepared(bytes, &mut converted);
        (text.bytes.to_vec(), text.behind)
    }

    #[test]
    fn an_input_in_the_databases_encoding_is_checked() {
        assert_eq!(prepared(None, UTF8, "zł\n".as_bytes()), ("zł\n".into(), None));
        let error = "invalid byte sequence for encoding \"UTF8\": 0xe2 0x0a 0x58".to_owned();
        assert_eq!(prepared(None, UTF8, b"a\n\xe2\nXY"), (b"a\n".to_vec(), Some(error)));
        let error = "invalid byte sequence for encoding \"LATIN1\": 0x00".to_owned();
        assert_eq!(prepared(None, LATIN1, b"a\xff\0"), (b"a\xff".to_vec(), Some(error)));
        assert_eq!(prepared(Some("latin1"), SQL_ASCII, b"\xff"), (b"\xff".to_vec(), None));
    }

    #[test]
    fn an_input_in_another_encoding_is_converted_as_far_as_it_goes() {
        assert_eq!(prepared(Some("latin1"), UTF8, b"\xe9\n"), ("é\n".into(), None));
        let (text, error) = prepared(Some("UTF8"), LATIN1, "é\n€\n".as_bytes());
        assert_eq!(text, b"\xe9\n");
        let expected = "character with byte sequence 0xe2 0x82 0xac in encoding \"UTF8\" has no \
                        equivalent in encoding \"LATIN1\"";
        assert_eq!(error.as_deref(), Some(expected));
    }

    #[test]
    fn what_is_said_to_be_sql_ascii_must_be_text_in_the_database_all_the_same() {
        assert!(prepared(Some("SQL_ASCII"), UTF8, b"\xff").1.is_some());
        assert_eq!(prepared(Some("SQL_ASCII"), UTF8, "é".as_bytes()).1, None);
    }

    #[test]
    fn conversions_that_are_not_there_are_refused_by_name() {
        let refused = |name| InputEncoding::new(Some(name), UTF8).unwrap_err().to_string();
        assert!(refused("SJIS").starts_with("converting from SJIS to UTF8 is not supported"));
        assert!(refused("klingon").contains("there is no encoding \"klingon\""));
        assert!(InputEncoding::new(None, 99).is_err());
    }

    #[test]
    fn excerpts_are_cut_between_characters() {
        let encoding = InputEncoding::new(None, UTF8).unwrap();
        assert_eq!(encoding.excerpt("ééé".as_bytes(), 5), "éé...");
        assert_eq!(encoding.excerpt("éé".as_bytes(), 5), "éé");
        let latin1 = InputEncoding::new(None, LATIN1).unwrap();
        assert_eq!(latin1.excerpt(b"\xe9", 5), "é");
    }
}
