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

mod csv;
mod text;

use csv::CsvRules;

use super::options::{
    CopyOptionError, ForcedColumns, Format, check_delimiter, check_null, forced_flags, lossy,
    quote_and_escape,
};
use crate::encoding::stored_text;
use text::TextRules;

/// The first version whose COPY takes HEADER in text format.
const TEXT_HEADER_SINCE: u32 = 15;

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
    pub force_quote: ForcedColumns,
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

fn refuse_csv_options(options: &CopyOptions) -> Result<(), CopyOptionError> {
    let option = if options.quote.is_some() {
        "quote"
    } else if options.escape.is_some() {
        "escape"
    } else if options.force_quote != ForcedColumns::None {
        "force_quote"
    } else {
        return Ok(());
    };
    Err(CopyOptionError::CsvOnly { option })
}

#[cfg(test)]
mod tests;
