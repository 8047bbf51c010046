//! Lines of text that may become very many: an account of losses, kept until the work is done.
//!
//! Invariant: memory is bounded. What exceeds it goes to a temporary file without a name, which the
//! system removes with the process.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read, Seek as _, Write as _};

use crate::error::{Error, Result};
use crate::temporary_file::{TemporaryFile, nameless_file};

/// Lines of text in the order they came, in memory that does not grow with their number: the
/// older ones go to an unnamed temporary file.
#[derive(Debug, Default)]
pub struct Spool {
    file: Option<File>,
    /// What is not in the file yet: lines with their line feeds.
    recent: Vec<u8>,
    lines: u64,
}

/// Bytes of lines kept in memory.
const SPOOL_BYTES: usize = 1 << 20;

impl Spool {
    /// How many lines there are.
    pub fn len(&self) -> u64 {
        self.lines
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.lines == 0
    }

    /// Adds a line. What would break it in two becomes a space.
    ///
    /// # Errors
    /// When the temporary file cannot be made or written.
    pub fn push(&mut self, line: &str) -> Result<()> {
        self.recent.extend(line.bytes().map(|byte| if byte == b'\n' { b' ' } else { byte }));
        self.recent.push(b'\n');
        self.lines += 1;
        if self.recent.len() < SPOOL_BYTES {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(nameless_file(TemporaryFile::directory())?),
        };
        file.write_all(&self.recent).map_err(spool_error)?;
        self.recent.clear();
        Ok(())
    }

    /// All lines. To be called once no more are added.
    ///
    /// # Errors
    /// When the temporary file cannot be read, also in place of a line.
    pub fn lines(&self) -> Result<impl Iterator<Item = Result<String>> + '_> {
        let older: Box<dyn Read + '_> = match &self.file {
            Some(file) => {
                let mut file = file;
                file.rewind().map_err(spool_error)?;
                Box::new(file)
            }
            None => Box::new(std::io::empty()),
        };
        let all = BufReader::new(older.chain(&*self.recent));
        Ok(all.lines().map(|line| line.map_err(spool_error)))
    }
}

fn spool_error(error: std::io::Error) -> Error {
    Error::new(error, TemporaryFile::directory().join("spooled lines of pagemill"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_in_order_from_file_and_memory() {
        let mut spool = Spool::default();
        for n in 0..200_000 {
            spool.push(&format!("line\n{n}")).unwrap();
        }
        assert_eq!(spool.len(), 200_000);
        assert!(spool.file.is_some() && spool.recent.capacity() <= 4 * SPOOL_BYTES);
        let mut told = 0;
        for (n, line) in spool.lines().unwrap().enumerate() {
            assert_eq!(line.unwrap(), format!("line {n}"));
            told += 1;
        }
        assert_eq!(told, 200_000);
    }
}
