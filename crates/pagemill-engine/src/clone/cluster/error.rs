//! The error of this room. Files of the cluster and of its copy are all that is opened here, so an error of a file is one
//! of the cluster, and `?` may say so.

use pagemill_cluster::Error as ClusterError;
use pagemill_cluster::error::Damage;

use crate::error::Error;
use crate::refusal::{CopyRefusal, MappingCause};

/// Result with this room's error.
pub(super) type CopyResult<T> = Result<T, CopyError>;

/// Why a copy is not made.
#[derive(Debug)]
pub(super) struct CopyError(Error);

impl From<CopyError> for Error {
    fn from(error: CopyError) -> Self {
        error.0
    }
}

impl From<ClusterError> for CopyError {
    fn from(error: ClusterError) -> Self {
        Self(error.into())
    }
}

impl From<pagemill_io::Error> for CopyError {
    fn from(error: pagemill_io::Error) -> Self {
        ClusterError::from(error).into()
    }
}

impl From<Damage> for CopyError {
    fn from(damage: Damage) -> Self {
        ClusterError::from(damage).into()
    }
}

impl From<CopyRefusal> for CopyError {
    fn from(refusal: CopyRefusal) -> Self {
        Self(Error::refused(refusal))
    }
}

impl From<MappingCause> for CopyError {
    fn from(cause: MappingCause) -> Self {
        CopyRefusal::from(cause).into()
    }
}
