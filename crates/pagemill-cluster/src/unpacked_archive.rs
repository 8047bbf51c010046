//! A compressed archive of a backup, unpacked into a temporary file without a name.
//!
//! Members of it are read in any order, and many times, which no compression allows. How large the file will be, an archive
//! does not always tell; what it tells is held against the space there is before anything is written, and told to the caller.
//!
//! Invariant: nothing is left behind, however the process ends.

use std::fmt;
use std::io::{self, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pagemill_io::{Error as IoError, File, Storage, TemporaryFile, check_interrupt};
use pagemill_wal::Compression;

use crate::error::{Error, Result};
use crate::refusal::Refusal;

/// Bytes read and written at once.
const CHUNK: usize = 1 << 20;
/// Bytes that tell how an archive is compressed, and how large it was.
const HEAD_BYTES: usize = 32;

/// An archive that will be unpacked, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveToUnpack {
    /// The archive.
    pub path: PathBuf,
    /// Bytes that come out.
    pub bytes: u64,
    /// There are so many, and not only at least so many.
    pub is_exact: bool,
    /// Where the temporary file is.
    pub directory: PathBuf,
}

impl fmt::Display for ArchiveToUnpack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, bytes, is_exact, directory } = self;
        let least = if *is_exact { "" } else { "at least " };
        let (path, directory) = (path.display(), directory.display());
        write!(
            f,
            "{path}: compressed, so it is unpacked to a temporary file in {directory}, of {least}{bytes} bytes"
        )
    }
}

/// Whom to tell of what will be unpacked, before it is.
#[derive(Clone)]
pub struct UnpackNotice(Arc<dyn Fn(&ArchiveToUnpack) + Send + Sync>);

impl UnpackNotice {
    /// Tells this function, from whichever thread unpacks.
    pub fn to(tell: impl Fn(&ArchiveToUnpack) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    /// Tells nobody.
    pub fn nobody() -> Self {
        Self::to(|_| ())
    }

    pub(crate) fn tell(&self, archive: &ArchiveToUnpack) {
        (self.0)(archive);
    }
}

impl fmt::Debug for UnpackNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnpackNotice")
    }
}

/// Unpacks an archive.
///
/// # Errors
/// Refused: no compression that is known, or not space enough. When it cannot be decompressed, or the file not be written.
pub(crate) fn unpacked_archive(
    storage: &Storage,
    path: &Path,
    notice: &UnpackNotice,
) -> Result<Arc<dyn File>> {
    let packed = storage.open(path)?;
    let mut head = [0; HEAD_BYTES];
    let got = storage.read_fully_at(packed.as_ref(), &mut head, 0);
    let head = &head[..got.map_err(|error| IoError::new(error, path))?];
    let Some(compression) = Compression::of(head) else {
        return Err(Error::refused(Refusal::ArchiveCompression { path: path.into() }));
    };
    let size = compression.unpacked_size(head);
    let len = packed.len().map_err(|error| IoError::new(error, path))?;
    let announced = ArchiveToUnpack {
        path: path.into(),
        bytes: size.unwrap_or(len),
        is_exact: size.is_some(),
        directory: TemporaryFile::directory(),
    };
    // Before its directory is asked for space: one that is missing is told as what it is.
    let unpacked = TemporaryFile::new()?;
    check_space(&announced)?;
    notice.tell(&announced);
    let reader = Packed { storage, file: packed.as_ref(), offset: 0 };
    let damaged = |cause| Error::refused(Refusal::ArchiveDamage { path: path.into(), cause });
    let decoder = compression.decoder(BufReader::with_capacity(CHUNK, reader)).map_err(damaged)?;
    copied(decoder, path, unpacked)
}

/// Refuses what certainly does not fit.
pub(crate) fn check_space(announced: &ArchiveToUnpack) -> Result<()> {
    let ArchiveToUnpack { path, bytes, directory, .. } = announced;
    match Storage::real().space_left(directory)? {
        Some(left) if left.bytes < *bytes => Err(Error::refused(Refusal::NoSpaceToUnpack {
            path: path.clone(),
            needed: *bytes,
            left: left.bytes,
            directory: directory.clone(),
        })),
        _ => Ok(()),
    }
}

fn copied(
    mut decoder: Box<dyn Read + '_>,
    path: &Path,
    mut file: TemporaryFile,
) -> Result<Arc<dyn File>> {
    let mut chunk = vec![0; CHUNK];
    loop {
        check_interrupt(path)?;
        match decoder.read(&mut chunk) {
            Ok(0) => return Ok(file.into_file()),
            Ok(got) => file
                .write_all(&chunk[..got])
                .map_err(|error| IoError::new(error, TemporaryFile::directory()))?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => {
                return Err(Error::refused(Refusal::ArchiveDamage { path: path.into(), cause }));
            }
        }
    }
}

/// An archive, read from its beginning.
struct Packed<'a> {
    storage: &'a Storage,
    file: &'a dyn File,
    offset: u64,
}

impl Read for Packed<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let got = self.storage.read_fully_at(self.file, buf, self.offset)?;
        self.offset += got as u64;
        Ok(got)
    }
}
