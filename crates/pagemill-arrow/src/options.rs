//! What values become in Arrow where there is a choice, and how files of them are written.
//!
//! Invariant: every default is lossless, or refuses the value that would be changed.

use std::str::FromStr;

use pagemill_engine::ScanOptions;

/// How a table becomes Arrow batches, and a file of them.
#[derive(Debug, Clone, Default)]
pub struct ArrowOptions {
    /// Columns by name; all that COPY would print when `None`.
    pub columns: Option<Vec<Box<[u8]>>>,
    /// Columns, by name, that are in the names of directories instead of in files (`NAME=VALUE/`, as Hive has it); none for
    /// one file.
    pub partition_by: Vec<Box<[u8]>>,
    /// What numerics become.
    pub numeric: NumericChoice,
    /// What becomes of values past the range of their Arrow type.
    pub infinity: InfinityChoice,
    /// What arrays become.
    pub arrays: ArrayChoice,
    /// The file's format.
    pub format: FileFormat,
    /// How the file is compressed; each format has its own default.
    pub compression: Option<Compression>,
    /// Most rows of a Parquet row group; 1,048,576 when `None`.
    pub row_group_rows: Option<usize>,
    /// How to scan.
    pub scan: ScanOptions,
    /// Up to where WAL was redone, for the file to tell.
    pub redo_end: Option<String>,
}

/// Formats of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileFormat {
    /// Apache Parquet.
    #[default]
    Parquet,
    /// The file format of Arrow IPC, also called Feather 2.
    Arrow,
    /// The stream format of Arrow IPC.
    ArrowStream,
}

impl FileFormat {
    /// How names of files in this format end.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Parquet => ".parquet",
            Self::Arrow => ".arrow",
            Self::ArrowStream => ".arrows",
        }
    }
}

/// What becomes of a numeric. `numeric(p,s)` of up to 38 digits is a decimal but with `Text`; the choice is that of all
/// others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NumericChoice {
    /// The columns are read once before, for the smallest decimal that holds every value with the places it is printed
    /// with; text where no decimal of 38 digits does. Inside of arrays and rows: text.
    #[default]
    Auto,
    /// Text as COPY prints it, also of `numeric(p,s)`.
    Text,
    /// The nearest double.
    Double,
    /// A decimal of so many digits, so many of them behind the point; a value that does not fit is refused.
    Decimal(u8, u8),
}

impl FromStr for NumericChoice {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = || ParseError(format!("{text:?} is none of auto, text, double, decimal(P,S)"));
        match text {
            "auto" => return Ok(Self::Auto),
            "text" => return Ok(Self::Text),
            "double" => return Ok(Self::Double),
            _ => {}
        }
        let inside = text.strip_prefix("decimal(").and_then(|rest| rest.strip_suffix(')'));
        let (precision, scale) = inside.and_then(|list| list.split_once(',')).ok_or_else(wrong)?;
        let number = |text: &str| text.trim().parse::<u8>().map_err(|_| wrong());
        let (precision, scale) = (number(precision)?, number(scale)?);
        if precision == 0 || precision > MOST_DIGITS || scale > precision {
            let reason =
                format!("{text}: a decimal has 1 to {MOST_DIGITS} digits, and no more places");
            return Err(ParseError(reason));
        }
        Ok(Self::Decimal(precision, scale))
    }
}

/// Digits of the largest decimal that is written.
pub(crate) const MOST_DIGITS: u8 = 38;

/// What becomes of infinite dates and timestamps, of those that Arrow's range does not reach, of the time 24:00:00, and of
/// NaN and infinities in decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InfinityChoice {
    /// They are refused, with their row.
    #[default]
    Error,
    /// NULL.
    Null,
    /// The nearest of 0001-01-01 and 9999-12-31, which all readers know; 24:00:00 becomes its last microsecond. Decimals
    /// are refused.
    Clamp,
}

/// What becomes of arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ArrayChoice {
    /// Lists; arrays of several dimensions, or that do not begin at 1, are refused, with their row.
    #[default]
    List,
    /// Text as COPY prints it.
    Text,
    /// JSON, as `to_json` writes it: arrays of several dimensions are arrays of arrays. Where they begin is lost.
    Json,
}

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// Zstandard, at level 1 when `None`.
    Zstd(Option<i32>),
    /// Snappy.
    Snappy,
    /// LZ4: raw blocks in Parquet, frames in Arrow IPC.
    Lz4,
    /// Gzip, at level 6 when `None`.
    Gzip(Option<u32>),
}

impl FromStr for Compression {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => (name, Some(level)),
            None => (text, None),
        };
        let of = |range: std::ops::RangeInclusive<i32>| -> Result<Option<i32>, ParseError> {
            let Some(level) = level else { return Ok(None) };
            let found = level.parse().ok().filter(|level| range.contains(level));
            let reason =
                || format!("{text}: levels of {name} are {} to {}", range.start(), range.end());
            found.map(Some).ok_or_else(|| ParseError(reason()))
        };
        match (name, level) {
            ("zstd", _) => Ok(Self::Zstd(of(1..=22)?)),
            ("gzip", _) => Ok(Self::Gzip(of(0..=9)?.map(i32::unsigned_abs))),
            ("snappy", None) => Ok(Self::Snappy),
            ("lz4", None) => Ok(Self::Lz4),
            ("none", None) => Ok(Self::None),
            ("snappy" | "lz4" | "none", Some(_)) => {
                Err(ParseError(format!("{text}: {name} has no levels")))
            }
            _ => Err(ParseError(format!(
                "{text:?} is none of zstd[:LEVEL], snappy, lz4, gzip[:LEVEL], none"
            ))),
        }
    }
}

/// A text that is no such choice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_as_they_are_typed() {
        assert_eq!("auto".parse(), Ok(NumericChoice::Auto));
        assert_eq!("decimal(38, 9)".parse(), Ok(NumericChoice::Decimal(38, 9)));
        for wrong in ["decimal", "decimal(39,2)", "decimal(0,0)", "decimal(5,6)", "decimal(5)", ""]
        {
            assert!(wrong.parse::<NumericChoice>().is_err(), "{wrong}");
        }
        assert_eq!("zstd".parse(), Ok(Compression::Zstd(None)));
        assert_eq!("zstd:19".parse(), Ok(Compression::Zstd(Some(19))));
        assert_eq!("gzip:0".parse(), Ok(Compression::Gzip(Some(0))));
        for wrong in ["zstd:23", "zstd:", "gzip:10", "snappy:1", "brotli", "none:1", "zstd:x"] {
            assert!(wrong.parse::<Compression>().is_err(), "{wrong}");
        }
    }
}
