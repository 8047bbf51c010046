//! [`TemporaryFile`]: a file without a name in the directory for temporary files, for what is read many times and does not fit
//! in memory.
//!
//! Invariant: it has no name, so it is gone with the process, however that ends.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::real_files::RealFile;
use crate::seam::File;

/// A file that is being written, from its beginning to its end.
#[derive(Debug)]
pub struct TemporaryFile(std::fs::File);

impl TemporaryFile {
    /// An empty file.
    ///
    /// # Errors
    /// When there is no directory for it.
    pub fn new() -> Result<Self> {
        let directory = Self::directory();
        let made = tempfile::tempfile_in(&directory);
        Ok(Self(made.map_err(|error| Error::new(error, directory))?))
    }

    /// Where such files are: what `TMPDIR` names, or the system's directory for them.
    pub fn directory() -> PathBuf {
        std::env::temp_dir()
    }

    /// The file, to be read.
    pub fn into_file(self) -> Arc<dyn File> {
        Arc::new(RealFile::of(self.0.into()))
    }
}

impl Write for TemporaryFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_at_any_place() {
        let mut file = TemporaryFile::new().unwrap();
        file.write_all(b"0123456789").unwrap();
        let file = file.into_file();
        let mut buf = [0; 3];
        assert_eq!((file.read_at(&mut buf, 7).unwrap(), &buf), (3, b"789"));
        assert_eq!(file.len().unwrap(), 10);
    }
}
