//! Where a shell's answers go.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pagemill_io::HostFiles;

/// A stream for answers; clones are the same one.
#[derive(Debug, Clone)]
pub enum Target {
    /// Standard output.
    Standard,
    /// A file that `\o` or `\g` named, which grows answer by answer.
    File(Arc<File>),
    /// A file that appears when all of it is there.
    Whole(Arc<Mutex<Option<pagemill_io::Output>>>),
}

impl Target {
    /// A file of its own, emptied.
    pub(super) fn create(path: &str) -> io::Result<Self> {
        Ok(Self::File(Arc::new(File::create(path)?)))
    }

    /// A file that appears under its name with [`Self::finish`].
    ///
    /// # Errors
    /// When it cannot be made there.
    pub fn whole(path: &Path) -> pagemill_io::Result<Self> {
        let output = pagemill_io::Output::file(&HostFiles::real(), path)?;
        Ok(Self::Whole(Arc::new(Mutex::new(Some(output)))))
    }

    /// Gives a whole file its name.
    ///
    /// # Errors
    /// When it cannot be renamed.
    pub fn finish(&self) -> pagemill_io::Result<()> {
        let Self::Whole(output) = self else { return Ok(()) };
        let taken = output.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.map_or(Ok(()), pagemill_io::Output::finish)
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Standard => io::stdout().write(bytes),
            Self::File(file) => (&**file).write(bytes),
            Self::Whole(output) => {
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
            Self::File(file) => (&**file).flush(),
            Self::Whole(_) => Ok(()),
        }
    }
}
