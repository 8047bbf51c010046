//! The engine's outputs as the libraries for Arrow and Parquet want them: as writers.
//!
//! Invariant: an error of the output comes out again as it was, not as what a library made of it.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use pagemill_io::{ByteSink, DirectoryFile, Error as IoError};

use crate::error::{Error, Result};

/// The error that an output gave, kept until somebody asks.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeptError(Arc<Mutex<Option<IoError>>>);

impl KeptError {
    /// The result of a library's call, with the output's own error if that is why it failed.
    pub(crate) fn instead<T, E: Into<Error>>(&self, result: Result<T, E>) -> Result<T> {
        result.map_err(|error| {
            let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
            match kept {
                Some(own) => Error::Engine(pagemill_engine::Error::Output(own)),
                None => error.into(),
            }
        })
    }
}

/// A writer over an output.
pub(crate) struct SinkWriter<S> {
    sink: S,
    kept: KeptError,
}

impl<S: ByteSink> SinkWriter<S> {
    pub(crate) fn new(sink: S) -> (Self, KeptError) {
        let kept = KeptError::default();
        (Self { sink, kept: kept.clone() }, kept)
    }
}

impl<S: ByteSink> io::Write for SinkWriter<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.sink.write_all(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                *self.kept.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                Err(io::Error::other("the output failed"))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A sink that is lent to a writer.
pub(crate) struct LentSink<'a>(pub(crate) &'a mut (dyn ByteSink + Send));

impl ByteSink for LentSink<'_> {
    fn write_all(&mut self, bytes: &[u8]) -> pagemill_io::Result<()> {
        self.0.write_all(bytes)
    }
}

/// A file of a directory, which somebody else closes while nothing is written to it.
#[derive(Clone)]
pub(crate) struct SharedFile(Arc<Mutex<DirectoryFile>>);

impl SharedFile {
    pub(crate) fn new(file: DirectoryFile) -> Self {
        Self(Arc::new(Mutex::new(file)))
    }

    pub(crate) fn rest(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).rest();
    }
}

impl ByteSink for SharedFile {
    fn write_all(&mut self, bytes: &[u8]) -> pagemill_io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(bytes)
    }
}
