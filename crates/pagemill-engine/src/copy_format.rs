//! The rows of COPY TO, in text and CSV format.
//!
//! [`CopyFormat`] appends headers, fields, separators and line ends to one buffer. The bytes are
//! those PostgreSQL's `COPY ... TO` writes for the same options: options and their checks follow
//! `ProcessCopyOptions` in `src/backend/commands/copy.c`, rows follow `DoCopyTo` and
//! `CopyOneRowTo` in `copyto.c` (PostgreSQL 14 to 18).
//!
//! A value gets into the buffer in one of three ways:
//! - [`CopyFormat::write_field`] escapes or quotes while it copies: for text kept in a page;
//! - the caller appends the value's text, then [`CopyFormat::finish_field`] mends it in place;
//! - the caller appends *plain* text and does nothing more, where
//!   [`CopyFormat::plain_is_safe`] allows it: for numbers, dates and their like.
//!
//! Invariants: the first two give the same bytes; the third does too for every non-empty value
//! made of digits, ASCII letters, `+`, `-`, `.`, `:` and blanks only. Bytes from 0x80 on are
//! copied: in every server encoding the bytes of a multi-byte character are all above ASCII, so
//! an output encoding that reuses ASCII bytes (SJIS, BIG5, GBK...) must not be written this way.

use thiserror::Error;

use crate::copy_csv::CsvRules;
use crate::copy_text::TextRules;
use crate::encoding::{stored_text, utf8_name};

/// Characters a text-format delimiter cannot be: the backslash is the escape, and a backslash
/// before one of the others means something else to COPY FROM.
const UNSAFE_TEXT_DELIMITERS: &[u8] = b"\\.abcdefghijklmnopqrstuvwxyz0123456789";

/// The first version whose COPY takes HEADER in text format.
const TEXT_HEADER_SINCE: u32 = 15;

/// COPY's FORMAT option, as far as it is text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Delimited text with backslash escapes.
    #[default]
    Text,
    /// Comma separated values.
    Csv,
}

/// COPY's FORCE_QUOTE option: columns whose values are quoted even if they need not be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ForceQuote {
    /// Quote what needs quotes.
    #[default]
    None,
    /// `FORCE_QUOTE *`.
    All,
    /// The columns of these names.
    Columns(Vec<Vec<u8>>),
}

/// The options of COPY TO; what is not given takes the format's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyOptions {
    /// FORMAT.
    pub format: Format,
    /// DELIMITER: tab in text format, comma in CSV.
    pub delimiter: Option<u8>,
    /// NULL: `\N` in text format, nothing in CSV.
    pub null: Option<Vec<u8>>,
    /// HEADER.
    pub header: bool,
    /// QUOTE, CSV only: the double quote.
    pub quote: Option<u8>,
    /// ESCAPE, CSV only: the quote.
    pub escape: Option<u8>,
    /// FORCE_QUOTE, CSV only.
    pub force_quote: ForceQuote,
}

impl CopyOptions {
    /// The options, whose texts were typed in UTF-8, as a database of the encoding with this
    /// number has them: the NULL string converted, columns by their stored names.
    ///
    /// # Errors
    /// When the encoding does not have a character of the NULL string.
    pub fn stored(
        &self,
        encoding: i32,
        column_names: &[&[u8]],
    ) -> Result<CopyOptions, CopyOptionError> {
        let stored = |null: &Vec<u8>| {
            stored_text(encoding, null)
                .ok_or_else(|| CopyOptionError::NullNotStored { null: lossy(null) })
        };
        Ok(CopyOptions {
            null: self.null.as_ref().map(stored).transpose()?,
            force_quote: self.force_quote.stored(encoding, column_names),
            ..self.clone()
        })
    }
}

impl ForceQuote {
    /// The columns by their stored names.
    pub(crate) fn stored(&self, encoding: i32, column_names: &[&[u8]]) -> ForceQuote {
        let ForceQuote::Columns(columns) = self else { return self.clone() };
        let is_meant = |name: &[u8], typed: &[u8]| *utf8_name(encoding, name) == *typed;
        let stored = |typed: &Vec<u8>| {
            let found = column_names.iter().find(|name| is_meant(name, typed));
            found.map_or_else(|| typed.clone(), |name| name.to_vec())
        };
        ForceQuote::Columns(columns.iter().map(stored).collect())
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

#[derive(Clone, Debug)]
enum Rules {
    Text(TextRules),
    Csv(CsvRules),
}

/// Writes rows the way COPY TO does for one set of options and columns.
#[derive(Clone, Debug)]
pub struct CopyFormat {
    rules: Rules,
    delimiter: u8,
    null: Vec<u8>,
    header: Option<Vec<Vec<u8>>>,
    force_quote: Vec<bool>,
    plain_values_stand_out: bool,
}

impl CopyFormat {
    /// Checks the options as the COPY of this server version would and prepares writing these columns.
    ///
    /// # Errors
    /// When COPY would refuse the options.
    pub fn new(
        options: &CopyOptions,
        column_names: &[&[u8]],
        server_major: u32,
    ) -> Result<CopyFormat, CopyOptionError> {
        let csv = options.format == Format::Csv;
        let delimiter = options.delimiter.unwrap_or(if csv { b',' } else { b'\t' });
        let null = options.null.clone().unwrap_or(if csv { Vec::new() } else { br"\N".to_vec() });
        check_delimiter(options.format, delimiter)?;
        check_null(&null, delimiter)?;
        if options.header && !csv && server_major < TEXT_HEADER_SINCE {
            return Err(CopyOptionError::TextHeader { server_major });
        }
        let force_quote = forced_flags("force_quote", &options.force_quote, column_names)?;
        let names = || column_names.iter().map(|name| name.to_vec()).collect();
        let mut special = vec![delimiter];
        let rules = if csv {
            let [quote, escape] =
                quote_and_escape([options.quote, options.escape], delimiter, &null)?;
            special.push(quote);
            Rules::Csv(CsvRules::new(
                delimiter,
                [quote, escape],
                null.clone(),
                column_names.len() == 1,
            ))
        } else {
            refuse_csv_options(options)?;
            Rules::Text(TextRules::new(delimiter))
        };
        let null_is_plain = csv && !null.is_empty() && null.iter().all(|&byte| is_plain(byte));
        Ok(CopyFormat {
            rules,
            delimiter,
            null,
            header: options.header.then(names),
            force_quote,
            plain_values_stand_out: null_is_plain || special.iter().any(|&byte| is_plain(byte)),
        })
    }

    /// Appends the line of column names, if HEADER asks for one.
    pub fn write_header(&self, out: &mut Vec<u8>) {
        let Some(names) = &self.header else { return };
        for (column, name) in names.iter().enumerate() {
            if column > 0 {
                self.separate(out);
            }
            // FORCE_QUOTE is about values: COPY quotes a name only where it needs quotes.
            match &self.rules {
                Rules::Text(rules) => rules.write(name, out),
                Rules::Csv(rules) => rules.write(name, false, out),
            }
        }
        self.end_row(out);
    }

    /// The byte between fields.
    pub fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// Appends what stands between two fields.
    #[inline]
    pub fn separate(&self, out: &mut Vec<u8>) {
        out.push(self.delimiter);
    }

    /// Appends what ends a row.
    #[inline]
    pub fn end_row(&self, out: &mut Vec<u8>) {
        out.push(b'\n');
    }

    /// Appends a null.
    #[inline]
    pub fn write_null(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.null);
    }

    /// Appends a value of the column at this place in the row, escaped or quoted.
    #[inline]
    pub fn write_field(&self, column: usize, bytes: &[u8], out: &mut Vec<u8>) {
        match &self.rules {
            Rules::Text(rules) => rules.write(bytes, out),
            Rules::Csv(rules) => rules.write(bytes, self.is_forced(column), out),
        }
    }

    /// Escapes or quotes a value whose text the caller appended as `out[start..]`.
    #[inline]
    pub fn finish_field(&self, column: usize, start: usize, out: &mut Vec<u8>) {
        match &self.rules {
            Rules::Text(rules) => rules.escape_tail(start, out),
            Rules::Csv(rules) => rules.quote_tail(start, self.is_forced(column), out),
        }
    }

    /// Whether non-empty plain text (digits, ASCII letters, `+`, `-`, `.`, `:`, blanks) of this
    /// column is always written as it is, so that [`CopyFormat::finish_field`] can be left out.
    #[must_use]
    pub fn plain_is_safe(&self, column: usize) -> bool {
        !self.plain_values_stand_out && !self.is_forced(column)
    }

    #[inline]
    fn is_forced(&self, column: usize) -> bool {
        self.force_quote.get(column).copied().unwrap_or(false)
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b':' | b' ')
}

pub(crate) fn check_delimiter(format: Format, delimiter: u8) -> Result<(), CopyOptionError> {
    match delimiter {
        0 => Err(CopyOptionError::ZeroByte { option: "delimiter" }),
        b'\n' | b'\r' => Err(CopyOptionError::EndOfLine { option: "delimiter" }),
        _ if format == Format::Text && UNSAFE_TEXT_DELIMITERS.contains(&delimiter) => {
            Err(CopyOptionError::AmbiguousDelimiter { given: char::from(delimiter) })
        }
        _ => Ok(()),
    }
}

pub(crate) fn check_null(null: &[u8], delimiter: u8) -> Result<(), CopyOptionError> {
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

pub(crate) fn quote_and_escape(
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

fn refuse_csv_options(options: &CopyOptions) -> Result<(), CopyOptionError> {
    let option = if options.quote.is_some() {
        "quote"
    } else if options.escape.is_some() {
        "escape"
    } else if options.force_quote != ForceQuote::None {
        "force_quote"
    } else {
        return Ok(());
    };
    Err(CopyOptionError::CsvOnly { option })
}

/// For each column whether a FORCE option chooses it.
pub(crate) fn forced_flags(
    option: &'static str,
    choice: &ForceQuote,
    column_names: &[&[u8]],
) -> Result<Vec<bool>, CopyOptionError> {
    let mut flags = vec![*choice == ForceQuote::All; column_names.len()];
    if let ForceQuote::Columns(columns) = choice {
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

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
#[path = "copy_format_tests.rs"]
mod tests;
