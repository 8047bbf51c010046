//! A file for what does not fit into memory: written at its end, read anywhere, gone with the
//! process.
//!
//! It has no name, so nothing is left behind, whatever ends the process. It lies in a directory the
//! caller chose, because the system's directory for temporary files may itself be memory. Each
//! call is counted.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::storage::Storage;

/// A temporary file without a name.
#[derive(Debug)]
pub struct ScratchFile {
    storage: Storage,
    file: File,
    len: u64,
    /// What it is called in messages.
    name: PathBuf,
}

impl ScratchFile {
    /// An empty file in this directory.
    ///
    /// # Errors
    /// When none can be made there.
    pub fn in_directory(storage: &Storage, directory: &Path) -> Result<Self> {
        let name = directory.join("(temporary file)");
        let file = tempfile::tempfile_in(directory).map_err(|error| Error::new(error, &name))?;
        Ok(Self { storage: storage.clone(), file, len: 0, name })
    }

    /// How many bytes were appended.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True while nothing was appended.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Writes all of `bytes` behind what there is.
    ///
    /// # Errors
    /// What the operating system reports; what was written before is there all the same.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let begin = self.storage.call_begins();
            let outcome = self.file.write_at(rest, self.len);
            let waited = self.storage.call_took(begin);
            self.storage.counters().record_write(*outcome.as_ref().unwrap_or(&0), waited);
            match outcome {
                Ok(0) => return Err(self.error(io::Error::from(io::ErrorKind::WriteZero))),
                Ok(count) => {
                    self.len += count as u64;
                    rest = rest.get(count..).unwrap_or_default();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error(error)),
            }
        }
        Ok(())
    }

    /// Fills `buf` with what was appended from `offset` on.
    ///
    /// # Errors
    /// What the operating system reports; also when less was appended.
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let begin = self.storage.call_begins();
            let outcome = self.file.read_at(rest, offset + done as u64);
            let waited = self.storage.call_took(begin);
            self.storage.counters().record_read(*outcome.as_ref().unwrap_or(&0), waited);
            match outcome {
                Ok(0) => {
                    let kind =
                        ErrorKind::ShortRead { expected: buf.len() as u64, got: done as u64 };
                    return Err(self.error(kind).with_offset(offset));
                }
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error(error).with_offset(offset)),
            }
        }
        Ok(())
    }

    fn error(&self, kind: impl Into<ErrorKind>) -> Error {
        Error::new(kind, &self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_appended_is_read_anywhere_and_nothing_is_left_behind() {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::real();
        let mut file = ScratchFile::in_directory(&storage, dir.path()).unwrap();
        assert!(file.is_empty());
        file.append(b"01234").unwrap();
        file.append(b"56789").unwrap();
        assert_eq!(file.len(), 10);
        let mut buf = [0; 4];
        file.read_at(&mut buf, 3).unwrap();
        assert_eq!(&buf, b"3456");
        let error = file.read_at(&mut buf, 8).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::ShortRead { expected: 4, got: 2 }), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let counted = storage.counters().snapshot();
        assert_eq!((counted.write_calls, counted.bytes_written, counted.read_calls), (2, 10, 3));
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let missing = Path::new("/nonexistent");
        let error = ScratchFile::in_directory(&Storage::real(), missing).unwrap_err();
        assert!(error.is_not_found() && error.to_string().starts_with("/nonexistent/"), "{error}");
    }
}
