//! [`PackedFile`]: a file that is stored as one compressed stream, unpacked as a whole when it is read first.
//!
//! Small ones go to memory, as catalogs are many small files; others to temporary files without a name, each of which is told
//! before. Either may be given up again for others, and is then unpacked anew.
//!
//! Invariant: nothing is read of a file before its length and its checksum were found right.

use std::io::{self, Read, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use pagemill_format::pgbackrest::{ContentDigest, ManifestFile};
use pagemill_io::{File, ListedFile, TemporaryFile};

use super::fault::StoredFault;
use super::stored_backup::{StoredBackup, Stretch};
use crate::recovery::FileInMemory;

/// Bytes read and written at once.
const CHUNK: usize = 1 << 20;
/// Files up to this size are unpacked into memory.
const SMALL: u64 = 4 << 20;

/// A file that is compressed.
#[derive(Debug)]
pub(super) struct PackedFile(Arc<Packed>);

#[derive(Debug)]
struct Packed {
    stored: Arc<StoredBackup>,
    stretch: Stretch,
    /// Its number in the manifest.
    number: usize,
    len: u64,
    checksum: Option<String>,
    is_raw: bool,
    /// Held by whoever unpacks it.
    unpacking: Mutex<()>,
}

impl PackedFile {
    pub(super) fn new(
        stored: Arc<StoredBackup>,
        stretch: Stretch,
        number: usize,
        file: &ManifestFile,
    ) -> Self {
        let is_raw = file.bundle.is_some() && stored.has_raw_bundles();
        let (len, checksum) = (file.len, file.checksum.clone());
        let unpacking = Mutex::default();
        Self(Arc::new(Packed { stored, stretch, number, len, checksum, is_raw, unpacking }))
    }
}

impl ListedFile for PackedFile {
    fn bytes(&self) -> u64 {
        self.0.len
    }

    fn open(&self) -> io::Result<Box<dyn File>> {
        Ok(Box::new(PackedReader(self.0.clone())))
    }
}

/// An open file, unpacked when it is read.
#[derive(Debug)]
struct PackedReader(Arc<Packed>);

impl File for PackedReader {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        match offset < self.0.len && !buf.is_empty() {
            true => self.0.contents()?.read_at(buf, offset),
            false => Ok(0),
        }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len)
    }
}

impl Packed {
    /// What comes out, as it is at hand or else unpacked now.
    fn contents(&self) -> io::Result<Arc<dyn File>> {
        let unpacked = &self.stored.unpacked;
        if let Some(found) = unpacked.get(self.number) {
            return Ok(found);
        }
        let _alone = self.unpacking.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = unpacked.get(self.number) {
            return Ok(found);
        }
        if self.len <= SMALL {
            let mut bytes = Vec::new();
            self.unpack(|chunk| {
                bytes.extend_from_slice(chunk);
                Ok(())
            })?;
            let file: Arc<dyn File> = Arc::new(FileInMemory(bytes));
            unpacked.add_in_memory(self.number, &file, self.len);
            return Ok(file);
        }
        unpacked.make_room(&self.stretch.path, self.len)?;
        let mut file = TemporaryFile::new().map_err(io::Error::other)?;
        self.unpack(|chunk| file.write_all(chunk))?;
        let file = file.into_file();
        unpacked.add_on_disk(self.number, &file);
        Ok(file)
    }

    /// Hands out all that comes out, and holds it against what the manifest says.
    fn unpack(&self, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut from = self.stored.unpacked(&self.stretch, self.is_raw)?.take(self.len + 1);
        let (mut chunk, mut found) = (vec![0; CHUNK.min(self.len as usize + 1)], 0);
        let mut digest = ContentDigest::default();
        loop {
            pagemill_io::check_interrupt(&self.stretch.path).map_err(io::Error::other)?;
            match from.read(&mut chunk) {
                Ok(0) => break,
                Ok(got) => {
                    found += got as u64;
                    digest.update(&chunk[..got]);
                    take(&chunk[..got])?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(self.stretch.undecodable(cause)),
            }
        }
        self.check(found, digest)
    }

    fn check(&self, found: u64, digest: ContentDigest) -> io::Result<()> {
        self.stretch.check_len(found, self.len)?;
        let Stretch { path, offset, .. } = self.stretch.clone();
        match (digest.digits(), &self.checksum) {
            (found, Some(expected)) if found != *expected => {
                let expected = expected.clone();
                Err(StoredFault::Checksum { path, offset, found, expected }.into())
            }
            _ => Ok(()),
        }
    }
}
