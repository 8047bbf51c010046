//! Where a shell's answers go.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

/// A stream for answers; clones are the same one.
#[derive(Debug, Clone)]
pub(super) enum Target {
    /// Standard output.
    Standard,
    /// A file that `\o` or `\g` named.
    File(Arc<File>),
}

impl Target {
    /// A file of its own, emptied.
    pub(super) fn create(path: &str) -> io::Result<Self> {
        Ok(Self::File(Arc::new(File::create(path)?)))
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Standard => io::stdout().write(bytes),
            Self::File(file) => (&**file).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Standard => io::stdout().flush(),
            Self::File(file) => (&**file).flush(),
        }
    }
}
