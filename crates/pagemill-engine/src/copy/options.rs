//! What the options of COPY TO and COPY FROM have in common, and what COPY refuses about them.
//!
//! Checks follow `ProcessCopyOptions` in `src/backend/commands/copy.c` (PostgreSQL 14 to 18).

use thiserror::Error;

use crate::encoding::utf8_name;

/// Characters a text-format delimiter cannot be: the backslash is the escape, and a backslash
/// before one of the others means something else to COPY FROM.
const UNSAFE_TEXT_DELIMITERS: &[u8] = b"\\.abcdefghijklmnopqrstuvwxyz0123456789";

/// COPY's FORMAT option, as far as it is text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Delimited text with backslash escapes.
    #[default]
    Text,
    /// Comma separated values.
    Csv,
}

/// The columns of an option that is about columns: FORCE_QUOTE, whose values are quoted even if they need not
/// be, FORCE_NULL, FORCE_NOT_NULL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ForcedColumns {
    /// No column: the option is not given.
    #[default]
    None,
    /// `*`: all columns.
    All,
    /// The columns of these names.
    Columns(Vec<Vec<u8>>),
}

impl ForcedColumns {
    /// The columns by their stored names.
    pub(super) fn stored(&self, encoding: i32, column_names: &[&[u8]]) -> ForcedColumns {
        let ForcedColumns::Columns(columns) = self else { return self.clone() };
        let is_meant = |name: &[u8], typed: &[u8]| *utf8_name(encoding, name) == *typed;
        let stored = |typed: &Vec<u8>| {
            let found = column_names.iter().find(|name| is_meant(name, typed));
            found.map_or_else(|| typed.clone(), |name| name.to_vec())
        };
        ForcedColumns::Columns(columns.iter().map(stored).collect())
    }
}

/// Options that COPY refuses, with what to do instead.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CopyOptionError {
    /// DELIMITER, QUOTE or ESCAPE is not a single byte.
    #[error("{option} takes exactly one single-byte character, not {given:?}")]
    NotOneByte {
        /// The option's name.
        option: &'static str,
        /// What was given.
        given: String,
    },
    /// An option holds a zero byte, which no COPY command can express.
    #[error("{option} cannot contain a zero byte; choose another character")]
    ZeroByte {
        /// The option's name.
        option: &'static str,
    },
    /// An option holds a character that ends a line.
    #[error("{option} cannot contain a newline or carriage return; those end a row")]
    EndOfLine {
        /// The option's name.
        option: &'static str,
    },
    /// A delimiter that would be ambiguous behind a backslash.
    #[error(
        "the delimiter of text format cannot be {given:?}; choose one that is not a lower-case \
         letter, digit, dot or backslash, or use csv format"
    )]
    AmbiguousDelimiter {
        /// The delimiter asked for.
        given: char,
    },
    /// An option of CSV format was given with text format.
    #[error("{option} applies to csv format only; choose csv format or leave it out")]
    CsvOnly {
        /// The option's name.
        option: &'static str,
    },
    /// DELIMITER and QUOTE are the same character.
    #[error("delimiter and quote are both {given:?}; choose different characters")]
    DelimiterIsQuote {
        /// The character given twice.
        given: char,
    },
    /// The NULL string holds a character that means something in a row.
    #[error("the null string contains the {character}; change the null string or the {character}")]
    SpecialInNull {
        /// Which character: delimiter or quote.
        character: &'static str,
    },
    /// The NULL string holds a character that the database's encoding does not have.
    #[error(
        "the null string {null:?} has a character that the database's encoding does not have; \
         choose one in ASCII"
    )]
    NullNotStored {
        /// The string given.
        null: String,
    },
    /// HEADER in text format on a version whose COPY has none.
    #[error(
        "COPY of PostgreSQL {server_major} has no header in text format (15 and later do); use csv \
         format or leave the header out"
    )]
    TextHeader {
        /// The server's major version.
        server_major: u32,
    },
    /// `*` instead of a list, which the server's version does not take.
    #[error(
        "argument to option \"{option}\" must be a list of column names: COPY of PostgreSQL {server_major} takes no * \
         here (17 and later do)"
    )]
    StarTooNew {
        /// The option's name.
        option: &'static str,
        /// The server's major version.
        server_major: u32,
    },
    /// An option about columns names one that is not copied.
    #[error("{option} names the column {column:?}, which is not among the columns copied")]
    UnknownColumn {
        /// The option's name.
        option: &'static str,
        /// The name given.
        column: String,
    },
    /// An option about columns names one twice.
    #[error("{option} names the column {column:?} more than once; name it once")]
    RepeatedColumn {
        /// The option's name.
        option: &'static str,
        /// The name given.
        column: String,
    },
    /// DELIMITER, QUOTE or ESCAPE is no ASCII character, where bytes from 0x80 on are parts of
    /// characters.
    #[error(
        "{option} must be an ASCII character in a file or database of encoding {encoding}; choose \
         another character"
    )]
    NotAscii {
        /// The option's name.
        option: &'static str,
        /// The encoding that allows no other.
        encoding: &'static str,
    },
}

/// The byte meant by the text of a DELIMITER, QUOTE or ESCAPE option.
///
/// # Errors
/// When the text is empty or longer than one byte.
pub fn single_byte(option: &'static str, text: &[u8]) -> Result<u8, CopyOptionError> {
    match text {
        &[byte] => Ok(byte),
        _ => Err(CopyOptionError::NotOneByte { option, given: lossy(text) }),
    }
}

pub(super) fn check_delimiter(format: Format, delimiter: u8) -> Result<(), CopyOptionError> {
    match delimiter {
        0 => Err(CopyOptionError::ZeroByte { option: "delimiter" }),
        b'\n' | b'\r' => Err(CopyOptionError::EndOfLine { option: "delimiter" }),
        _ if format == Format::Text && UNSAFE_TEXT_DELIMITERS.contains(&delimiter) => {
            Err(CopyOptionError::AmbiguousDelimiter { given: char::from(delimiter) })
        }
        _ => Ok(()),
    }
}

pub(super) fn check_null(null: &[u8], delimiter: u8) -> Result<(), CopyOptionError> {
    if null.contains(&0) {
        Err(CopyOptionError::ZeroByte { option: "null" })
    } else if null.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        Err(CopyOptionError::EndOfLine { option: "null" })
    } else if null.contains(&delimiter) {
        Err(CopyOptionError::SpecialInNull { character: "delimiter" })
    } else {
        Ok(())
    }
}

pub(super) fn quote_and_escape(
    [quote, escape]: [Option<u8>; 2],
    delimiter: u8,
    null: &[u8],
) -> Result<[u8; 2], CopyOptionError> {
    let quote = quote.unwrap_or(b'"');
    let escape = escape.unwrap_or(quote);
    if quote == 0 {
        Err(CopyOptionError::ZeroByte { option: "quote" })
    } else if escape == 0 {
        Err(CopyOptionError::ZeroByte { option: "escape" })
    } else if quote == delimiter {
        Err(CopyOptionError::DelimiterIsQuote { given: char::from(quote) })
    } else if null.contains(&quote) {
        Err(CopyOptionError::SpecialInNull { character: "quote" })
    } else {
        Ok([quote, escape])
    }
}

/// For each column whether a FORCE option chooses it.
pub(super) fn forced_flags(
    option: &'static str,
    choice: &ForcedColumns,
    column_names: &[&[u8]],
) -> Result<Vec<bool>, CopyOptionError> {
    let mut flags = vec![*choice == ForcedColumns::All; column_names.len()];
    if let ForcedColumns::Columns(columns) = choice {
        for column in columns {
            let position = column_names.iter().position(|name| *name == column.as_slice());
            let flag = position.and_then(|position| flags.get_mut(position));
            match flag {
                None => {
                    return Err(CopyOptionError::UnknownColumn { option, column: lossy(column) });
                }
                Some(true) => {
                    return Err(CopyOptionError::RepeatedColumn { option, column: lossy(column) });
                }
                Some(flag) => *flag = true,
            }
        }
    }
    Ok(flags)
}

/// Text for a message.
pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
