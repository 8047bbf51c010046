//! Rows that are set aside instead of ending the load, as `ON_ERROR ignore` and `REJECT_LIMIT` of
//! PostgreSQL 17 and 18 do: those with a value that its column's type does not take.
//!
//! They are told in a file in CSV or text format that COPY can read again: input, line, column,
//! value and message, in UTF-8, below a line of names. The file appears when the load is done or
//! has failed, never half.

use pagemill_io::Output;

use super::error::{CopyError, ErrorContext};
use crate::copy::Format;
use crate::copy::to::{CopyFormat, CopyOptions};
use crate::error::{Error, Result};

/// The columns of the file.
const COLUMNS: [&[u8]; 5] = [b"input", b"line", b"column", b"value", b"message"];
/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 64 << 10;
/// A server version whose COPY takes a header in both formats.
const WITH_HEADER: u32 = 15;

/// How rows are set aside.
#[derive(Clone, Debug, Default)]
pub struct RejectSettings {
    /// The format of the file.
    pub format: Format,
    /// How many rows at most; any number if there is none.
    pub most: Option<u64>,
    /// What the file is called in messages.
    pub name: String,
}

/// The account of rows set aside.
#[derive(Debug)]
pub struct RejectLog {
    output: Output,
    settings: RejectSettings,
    format: CopyFormat,
    buffer: Vec<u8>,
    count: u64,
}

impl RejectLog {
    /// An account that goes to this output.
    ///
    /// # Errors
    /// Never for the formats there are.
    pub fn new(output: Output, settings: RejectSettings) -> Result<Self> {
        let options =
            CopyOptions { format: settings.format, header: true, ..CopyOptions::default() };
        let format = CopyFormat::new(&options, &COLUMNS, WITH_HEADER)?;
        let mut buffer = Vec::new();
        format.write_header(&mut buffer);
        Ok(Self { output, settings, format, buffer, count: 0 })
    }

    /// How many rows were set aside.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sets a row aside. Rows are to come in the order of the input.
    ///
    /// # Errors
    /// The row's error itself, if it is not one to pass over; when there are too many, or the
    /// account cannot be written.
    pub fn push(&mut self, error: CopyError) -> Result<()> {
        let ErrorContext::Value { column, value, .. } = &error.place else {
            return Err(Error::Copy(Box::new(error)));
        };
        let line = error.line.to_string();
        let texts = [
            Some(&*error.input),
            Some(line.as_str()),
            Some(column.as_str()),
            value.as_deref(),
            Some(error.message.as_str()),
        ];
        for (place, text) in texts.into_iter().enumerate() {
            if place > 0 {
                self.format.separate(&mut self.buffer);
            }
            match text {
                Some(text) => self.format.write_field(place, text.as_bytes(), &mut self.buffer),
                None => self.format.write_null(&mut self.buffer),
            }
        }
        self.format.end_row(&mut self.buffer);
        self.count += 1;
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        self.check_limit()
    }

    /// Writes what is left, and gives the file its name.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> Result<u64> {
        self.flush()?;
        self.output.finish().map_err(Error::Output)?;
        Ok(self.count)
    }

    fn flush(&mut self) -> Result<()> {
        self.output.write_all(&self.buffer).map_err(Error::Output)?;
        self.buffer.clear();
        Ok(())
    }

    fn check_limit(&self) -> Result<()> {
        match self.settings.most {
            Some(most) if self.count > most => {
                Err(Error::TooManyRejected { most, log: self.settings.name.clone() })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagemill_io::HostFiles;

    fn rejected(line: u64, value: Option<&str>) -> CopyError {
        CopyError {
            input: "t,1.csv".into(),
            relation: "t".into(),
            line,
            place: ErrorContext::Value {
                column: "a".into(),
                value: value.map(Into::into),
                shown: value.map(Into::into),
            },
            message: "bad \"x\"".into(),
            detail: None,
            hint: None,
        }
    }

    fn log_in(dir: &std::path::Path, settings: RejectSettings) -> RejectLog {
        let output = Output::file(&HostFiles::real(), &dir.join("log")).unwrap();
        RejectLog::new(output, settings).unwrap()
    }

    #[test]
    fn rows_set_aside_are_told_in_a_file_that_copy_reads() {
        let dir = tempfile::tempdir().unwrap();
        let csv = RejectSettings { format: Format::Csv, ..RejectSettings::default() };
        let mut log = log_in(dir.path(), csv);
        log.push(rejected(3, Some("x\ny"))).unwrap();
        log.push(rejected(5, None)).unwrap();
        assert_eq!(log.finish().unwrap(), 2);
        let told = std::fs::read_to_string(dir.path().join("log")).unwrap();
        let expected = "input,line,column,value,message\n\
                        \"t,1.csv\",3,a,\"x\ny\",\"bad \"\"x\"\"\"\n\
                        \"t,1.csv\",5,a,,\"bad \"\"x\"\"\"\n";
        assert_eq!(told, expected);
    }

    #[test]
    fn one_row_too_many_ends_the_load_and_so_does_another_kind_of_error() {
        let dir = tempfile::tempdir().unwrap();
        let settings =
            RejectSettings { most: Some(1), name: "log".into(), ..RejectSettings::default() };
        let mut log = log_in(dir.path(), settings);
        log.push(rejected(1, Some("x"))).unwrap();
        let error = log.push(rejected(2, Some("x"))).unwrap_err().to_string();
        assert!(error.starts_with("skipped more than 1 rows due to data type incom"), "{error}");
        let whole = CopyError { place: ErrorContext::Row("1,2,3".into()), ..rejected(3, None) };
        assert!(matches!(log.push(whole), Err(Error::Copy(_))));
        assert_eq!(log.count(), 2);
    }
}
