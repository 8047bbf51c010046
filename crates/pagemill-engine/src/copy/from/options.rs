//! The options of COPY FROM, checked as COPY checks them.
//!
//! Checks follow `ProcessCopyOptions` in `src/backend/commands/copy.c` and `BeginCopyFrom` in
//! `copyfrom.c` (PostgreSQL 14 to 18). Stricter than those of 14 to 16 in one case: QUOTE and
//! ESCAPE cannot be the end of a line.

use std::sync::Arc;

use super::byte_marks::MarkedBytes;
use super::input_encoding::InputEncoding;
use crate::copy::options::{
    CopyOptionError, ForcedColumns, Format, check_delimiter, check_null, forced_flags,
    quote_and_escape,
};
use crate::encoding::stored_text;
use crate::error::Result;

/// The first version for which `\.` in CSV format is data.
const MARKER_IS_DATA_SINCE: u32 = 18;
/// The first version whose COPY takes HEADER in text format, and `HEADER MATCH`.
const TEXT_HEADER_SINCE: u32 = 15;
/// The first version whose `FORCE_NULL` and `FORCE_NOT_NULL` take `*`; `FORCE_QUOTE` always did.
const FORCED_STAR_SINCE: u32 = 17;

/// COPY FROM's HEADER option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// The first line is a row.
    #[default]
    None,
    /// The first line is passed over.
    Skip,
    /// The first line must name the columns.
    Match,
}

/// The options of COPY FROM; what is not given takes the format's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyFromOptions {
    /// FORMAT.
    pub format: Format,
    /// DELIMITER: tab in text format, comma in CSV.
    pub delimiter: Option<u8>,
    /// NULL, in UTF-8: `\N` in text format, nothing in CSV.
    pub null: Option<Vec<u8>>,
    /// HEADER.
    pub header: Header,
    /// QUOTE, CSV only: the double quote.
    pub quote: Option<u8>,
    /// ESCAPE, CSV only: the quote.
    pub escape: Option<u8>,
    /// ENCODING of the input: that of the database.
    pub encoding: Option<String>,
    /// FORCE_NULL, CSV only, columns named in UTF-8.
    pub force_null: ForcedColumns,
    /// FORCE_NOT_NULL, CSV only, columns named in UTF-8.
    pub force_not_null: ForcedColumns,
}

/// The database that rows are for, as far as reading them depends on it.
#[derive(Clone, Copy, Debug)]
pub struct CopyTarget<'a> {
    /// The table's name, for messages.
    pub relation: &'a str,
    /// The names of the columns that values are given for, in their order, as they are stored.
    pub columns: &'a [&'a [u8]],
    /// The number of the database's encoding (`pg_database.encoding`).
    pub encoding: i32,
    /// The server's major version.
    pub server_major: u32,
}

/// How the rows of an input are read: options that were checked for a table.
#[derive(Clone, Debug)]
pub struct CopyRules {
    /// The table's name, for messages.
    pub(super) relation: Arc<str>,
    pub(super) format: Format,
    pub(super) delimiter: u8,
    pub(super) null: Vec<u8>,
    pub(super) header: Header,
    /// CSV only; otherwise the backslash.
    pub(super) quote: u8,
    /// CSV only; the quote if it is no other.
    pub(super) escape: u8,
    pub(super) encoding: InputEncoding,
    pub(super) columns: Vec<Vec<u8>>,
    /// For each column, where FORCE_NULL or FORCE_NOT_NULL names any.
    pub(super) forced: Option<Vec<Forced>>,
    /// Whether the server is of 18 or later: `\.` is data in CSV format, and must be alone on its
    /// line in text format.
    pub(super) strict_marker: bool,
    pub(super) marked: MarkedBytes,
}

/// What FORCE_NULL and FORCE_NOT_NULL say of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Forced {
    pub(super) null: bool,
    pub(super) not_null: bool,
}

impl CopyRules {
    /// Checks the options as COPY FROM into this table would.
    ///
    /// # Errors
    /// When COPY would refuse them.
    pub fn new(options: &CopyFromOptions, target: CopyTarget<'_>) -> Result<Self> {
        let csv = options.format == Format::Csv;
        let encoding = InputEncoding::new(options.encoding.as_deref(), target.encoding)?;
        let delimiter = options.delimiter.unwrap_or(if csv { b',' } else { b'\t' });
        let null = null_string(options, target.encoding)?;
        check_delimiter(options.format, delimiter)?;
        check_null(&null, delimiter)?;
        check_header(options, target.server_major)?;
        let [quote, escape] = if csv {
            let given = [options.quote, options.escape];
            check_line_ends(quote_and_escape(given, delimiter, &null)?)?
        } else {
            refuse_csv_options(options)?;
            [b'\\'; 2]
        };
        check_stars(options, target.server_major)?;
        check_ascii(&encoding, [delimiter, quote, escape])?;
        Ok(Self {
            relation: target.relation.into(),
            format: options.format,
            delimiter,
            null,
            header: options.header,
            quote,
            escape,
            encoding,
            columns: target.columns.iter().map(|name| name.to_vec()).collect(),
            forced: forced(options, target)?,
            strict_marker: target.server_major >= MARKER_IS_DATA_SINCE,
            marked: MarkedBytes::new(&[delimiter, quote, escape, b'\r', b'\n']),
        })
    }

    /// How many columns values are given for.
    pub fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// The name of a column in UTF-8.
    pub(super) fn column_name(&self, column: usize) -> String {
        self.columns.get(column).map_or_else(String::new, |name| self.encoding.readable(name))
    }
}

fn null_string(options: &CopyFromOptions, encoding: i32) -> Result<Vec<u8>> {
    let Some(null) = &options.null else {
        let csv = options.format == Format::Csv;
        return Ok(if csv { Vec::new() } else { br"\N".to_vec() });
    };
    let lossy = || String::from_utf8_lossy(null).into_owned();
    let stored = stored_text(encoding, null);
    Ok(stored.ok_or_else(|| CopyOptionError::NullNotStored { null: lossy() })?)
}

fn check_header(options: &CopyFromOptions, server_major: u32) -> Result<(), CopyOptionError> {
    let text_header = options.format == Format::Text && options.header != Header::None;
    if text_header && server_major < TEXT_HEADER_SINCE {
        return Err(CopyOptionError::TextHeader { server_major });
    }
    Ok(())
}

fn check_stars(options: &CopyFromOptions, server_major: u32) -> Result<(), CopyOptionError> {
    let given = [("force_not_null", &options.force_not_null), ("force_null", &options.force_null)];
    match given.into_iter().find(|(_, columns)| **columns == ForcedColumns::All) {
        Some((option, _)) if server_major < FORCED_STAR_SINCE => {
            Err(CopyOptionError::StarTooNew { option, server_major })
        }
        _ => Ok(()),
    }
}

fn check_line_ends([quote, escape]: [u8; 2]) -> Result<[u8; 2], CopyOptionError> {
    for (option, byte) in [("quote", quote), ("escape", escape)] {
        if matches!(byte, b'\n' | b'\r') {
            return Err(CopyOptionError::EndOfLine { option });
        }
    }
    Ok([quote, escape])
}

fn refuse_csv_options(options: &CopyFromOptions) -> Result<(), CopyOptionError> {
    let given = [
        ("quote", options.quote.is_some()),
        ("escape", options.escape.is_some()),
        ("force_not_null", options.force_not_null != ForcedColumns::None),
        ("force_null", options.force_null != ForcedColumns::None),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(CopyOptionError::CsvOnly { option }),
        None => Ok(()),
    }
}

/// Where a byte from 0x80 on is part of a character, it cannot stand for anything else.
fn check_ascii(encoding: &InputEncoding, bytes: [u8; 3]) -> Result<(), CopyOptionError> {
    let Some(encoding) = encoding.multibyte() else { return Ok(()) };
    for (option, byte) in ["delimiter", "quote", "escape"].into_iter().zip(bytes) {
        if !byte.is_ascii() {
            return Err(CopyOptionError::NotAscii { option, encoding });
        }
    }
    Ok(())
}

fn forced(options: &CopyFromOptions, target: CopyTarget<'_>) -> Result<Option<Vec<Forced>>> {
    let flags = |option, choice: &ForcedColumns| {
        forced_flags(option, &choice.stored(target.encoding, target.columns), target.columns)
    };
    let null = flags("force_null", &options.force_null)?;
    let not_null = flags("force_not_null", &options.force_not_null)?;
    let both = null.into_iter().zip(not_null);
    let forced: Vec<_> = both.map(|(null, not_null)| Forced { null, not_null }).collect();
    let any = forced.iter().any(|forced| *forced != Forced::default());
    Ok(any.then_some(forced))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    const COLUMNS: [&[u8]; 2] = [b"id", b"gr\xf6\xdfe"];
    const LATIN1: i32 = 8;
    const UTF8: i32 = 6;

    fn rules(options: &CopyFromOptions, encoding: i32) -> Result<CopyRules> {
        CopyRules::new(
            options,
            CopyTarget { relation: "t", columns: &COLUMNS, encoding, server_major: 15 },
        )
    }

    fn refusal(options: &CopyFromOptions, encoding: i32) -> CopyOptionError {
        match rules(options, encoding) {
            Err(Error::CopyOptions(refused)) => refused,
            other => panic!("{other:?}"),
        }
    }

    fn csv() -> CopyFromOptions {
        CopyFromOptions { format: Format::Csv, ..CopyFromOptions::default() }
    }

    #[test]
    fn what_copy_refuses_is_refused() {
        let text = CopyFromOptions::default;
        let escape = CopyFromOptions { escape: Some(b'"'), ..text() };
        assert_eq!(refusal(&escape, UTF8), CopyOptionError::CsvOnly { option: "escape" });
        let force = CopyFromOptions { force_null: ForcedColumns::All, ..text() };
        assert_eq!(refusal(&force, UTF8), CopyOptionError::CsvOnly { option: "force_null" });
        let letter = CopyFromOptions { delimiter: Some(b'x'), ..text() };
        assert_eq!(refusal(&letter, UTF8), CopyOptionError::AmbiguousDelimiter { given: 'x' });
        let same = CopyFromOptions { delimiter: Some(b'"'), ..csv() };
        assert_eq!(refusal(&same, UTF8), CopyOptionError::DelimiterIsQuote { given: '"' });
        let line = CopyFromOptions { quote: Some(b'\n'), ..csv() };
        assert_eq!(refusal(&line, UTF8), CopyOptionError::EndOfLine { option: "quote" });
        let null = CopyFromOptions { null: Some(b"a,b".into()), ..csv() };
        let refused = CopyOptionError::SpecialInNull { character: "delimiter" };
        assert_eq!(refusal(&null, UTF8), refused);
    }

    /// `*` was taken for servers up to 16, whose COPY refuses it.
    #[test]
    fn all_columns_can_be_forced_from_17_on() {
        let options = CopyFromOptions { force_null: ForcedColumns::All, ..csv() };
        let of = |server_major| {
            let columns = &COLUMNS;
            CopyRules::new(
                &options,
                CopyTarget { relation: "t", columns, encoding: UTF8, server_major },
            )
        };
        assert!(of(17).is_ok());
        let refused = of(16).unwrap_err().to_string();
        let words = "argument to option \"force_null\" must be a list of column names";
        assert!(refused.starts_with(words), "{refused}");
    }

    #[test]
    fn columns_and_null_string_are_named_in_utf8() {
        let names = ForcedColumns::Columns(vec!["größe".into()]);
        let options = CopyFromOptions { force_not_null: names, null: Some("ß".into()), ..csv() };
        let rules = rules(&options, LATIN1).unwrap();
        let not_null = rules.forced.map(|forced| forced.iter().map(|f| f.not_null).collect());
        assert_eq!(not_null, Some(vec![false, true]));
        assert_eq!(rules.null, b"\xdf");
        let options =
            CopyFromOptions { force_null: ForcedColumns::Columns(vec![b"zz".into()]), ..csv() };
        let refused = CopyOptionError::UnknownColumn { option: "force_null", column: "zz".into() };
        assert_eq!(refusal(&options, LATIN1), refused);
    }

    #[test]
    fn bytes_above_ascii_stand_for_something_in_single_byte_encodings_only() {
        let options = CopyFromOptions { delimiter: Some(0xa7), ..csv() };
        assert!(rules(&options, LATIN1).is_ok());
        let refused = CopyOptionError::NotAscii { option: "delimiter", encoding: "UTF8" };
        assert_eq!(refusal(&options, UTF8), refused);
        let converted = CopyFromOptions { encoding: Some("utf-8".into()), ..options };
        assert_eq!(refusal(&converted, LATIN1), refused);
    }

    #[test]
    fn a_header_in_text_format_came_with_version_15() {
        let options = CopyFromOptions { header: Header::Skip, ..CopyFromOptions::default() };
        let target =
            CopyTarget { relation: "t", columns: &COLUMNS, encoding: LATIN1, server_major: 14 };
        assert!(CopyRules::new(&options, target).is_err());
        assert!(CopyRules::new(&options, CopyTarget { server_major: 15, ..target }).is_ok());
    }
}
