//! Where a shell's answers go: standard output, or a file, whose clones are one stream.
//!
//! Invariant: what `--output` and `\copy` write has no name before it is whole; what `\o` names grows answer by answer, as psql's.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pagemill_io::{HostFiles, Output};

/// A stream for answers; clones are the same one.
#[derive(Debug, Clone)]
pub enum Target {
    /// Standard output.
    Standard,
    /// A file; none once it is finished.
    File(Arc<Mutex<Option<Output>>>),
}

impl Target {
    /// A file that grows answer by answer, emptied.
    pub(super) fn create(path: &str) -> pagemill_io::Result<Self> {
        Ok(Self::of(Output::growing(&HostFiles::real(), Path::new(path))?))
    }

    /// A file that appears under its name with [`Self::finish`].
    ///
    /// # Errors
    /// When it cannot be made there.
    pub fn whole(path: &Path) -> pagemill_io::Result<Self> {
        Ok(Self::of(Output::file(&HostFiles::real(), path)?))
    }

    fn of(output: Output) -> Self {
        Self::File(Arc::new(Mutex::new(Some(output))))
    }

    /// Gives a whole file its name.
    ///
    /// # Errors
    /// When it cannot be renamed.
    pub fn finish(&self) -> pagemill_io::Result<()> {
        let Self::File(output) = self else { return Ok(()) };
        let taken = output.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.map_or(Ok(()), Output::finish)
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Standard => io::stdout().write(bytes),
            Self::File(output) => {
                let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
                let closed = || io::Error::other("the file is finished");
                let output = output.as_mut().ok_or_else(closed)?;
                output.write_all(bytes).map_err(io::Error::other)?;
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Standard => io::stdout().flush(),
            Self::File(_) => Ok(()),
        }
    }
}
