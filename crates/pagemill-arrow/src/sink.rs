//! The engine's outputs as the libraries for Arrow and Parquet want them: as writers.
//!
//! Invariant: an error of the output comes out again as it was, not as what a library made of it.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use pagemill_io::{ByteSink, Error as IoError};

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
pub(crate) struct SinkWriter<'a> {
    sink: &'a mut (dyn ByteSink + Send),
    kept: KeptError,
}

impl<'a> SinkWriter<'a> {
    pub(crate) fn new(sink: &'a mut (dyn ByteSink + Send)) -> (Self, KeptError) {
        let kept = KeptError::default();
        (Self { sink, kept: kept.clone() }, kept)
    }
}

impl io::Write for SinkWriter<'_> {
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
