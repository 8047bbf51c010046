//! What is wrong with a stored file, found when it is read: it names the file of the repository, while the error around it names the
//! file of the data directory that was asked for.

use std::io;
use std::path::PathBuf;

/// What is wrong with a stored file.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoredFault {
    #[error("{}: no such file: it is where the backup's manifest has this file", .0.display())]
    Missing(PathBuf),
    #[error("{}: it ends at offset {end}, in what is stored of this file: it was cut short", path.display())]
    Cut { path: PathBuf, end: u64 },
    #[error("{}: what is stored of this file at offset {offset} cannot be decompressed: {cause}", path.display())]
    Unpack { path: PathBuf, offset: u64, cause: io::Error },
    #[error("{}: what is stored of this file at offset {offset}: {cause}", path.display())]
    Decrypt { path: PathBuf, offset: u64, cause: pagemill_format::Error },
    #[error("{}: {found} bytes come out of what is stored at offset {offset}, and {expected} should", path.display())]
    Length { path: PathBuf, offset: u64, found: u64, expected: u64 },
    #[error(
        "{}: what is stored at offset {offset} has the checksum {found}, and the manifest says {expected}", path.display()
    )]
    Checksum { path: PathBuf, offset: u64, found: String, expected: String },
    #[error("{}: {cause}, in the map at offset {offset}", path.display())]
    Map { path: PathBuf, offset: u64, cause: pagemill_format::Error },
    #[error("{}: block {block} of this file, stored at offset {offset}, does not have its checksum", path.display())]
    Block { path: PathBuf, offset: u64, block: u64 },
}

impl From<StoredFault> for io::Error {
    fn from(fault: StoredFault) -> Self {
        Self::new(io::ErrorKind::InvalidData, fault)
    }
}
