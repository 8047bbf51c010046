//! [`TemporaryFile`]: a file without a name in the directory for temporary files, for what is read many times and does not fit
//! in memory.
//!
//! Invariant: it has no name, so it is gone with the process, however that ends.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
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
        nameless_file(Self::directory()).map(Self)
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

/// A file without a name in this directory for temporary files. That the user named it, in the environment, is for the
/// error to say.
pub(crate) fn nameless_file(directory: PathBuf) -> Result<std::fs::File> {
    tempfile::tempfile_in(&directory).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound if !directory.exists() => {
            Error::new(ErrorKind::NoTemporaryDirectory, directory)
        }
        // That it is not found is how some file systems say that they take no files, such as /proc.
        reason @ (io::ErrorKind::NotFound
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem) => {
            Error::new(ErrorKind::TemporaryDirectory { reason }, directory)
        }
        _ => Error::new(error, directory),
    })
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

    #[test]
    fn a_directory_that_takes_no_file_is_told_with_the_variable_that_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let told = |directory: PathBuf| nameless_file(directory).unwrap_err().to_string();
        let missing = dir.path().join("missing");
        let says =
            "the directory for temporary files does not exist: make it, or set TMPDIR to another";
        assert_eq!(told(missing.clone()), format!("{}: {says}", missing.display()));
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let says = "no temporary file can be made in it (not a directory): set TMPDIR to another directory";
        assert_eq!(told(file.clone()), format!("{}: {says}", file.display()));
        let taken = told("/proc".into());
        assert!(taken.starts_with("/proc: no temporary file can be made in it ("), "{taken}");
    }
}
