//! [`StoredBackup`]: what all files of a backup share: where they are stored, how, and what of them is at hand already.
//!
//! Many files lie in one bundle, so open files are shared, too. What was unpacked is kept in bounded memory and in a bounded
//! number of temporary files ([`UnpackedFiles`]).
//!
//! Invariant: what is not there, or not whole, is an error that names the file of the repository, never an end of the file.

use std::io;
use std::io::BufReader;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pagemill_format::pgbackrest::{CipherHeader, Manifest, ManifestFile, StoredBy};
use pagemill_io::{Caching, File, FileSystem, FileWindow, ListedFile, Storage};
use pagemill_wal::Compression;

use super::block_file::BlockFile;
use super::decrypted::{DecryptedFile, DecryptingReader, Encryption};
use super::fault::StoredFault;
use super::packed_file::PackedFile;
use super::unpacked_files::UnpackedFiles;
use crate::recovery::FileInMemory;
use crate::unpacked_archive::UnpackNotice;

/// Files of the repository that stay open.
const MOST_OPEN: usize = 64;
/// The suffix of a file that is stored by blocks.
pub(super) const BLOCKS_SUFFIX: &str = ".pgbi";

/// The files of one backup.
#[derive(Debug)]
pub(super) struct StoredBackup {
    files: Arc<dyn FileSystem>,
    /// The directory of the stanza's backups.
    stanza: PathBuf,
    manifest: Manifest,
    /// The one opened last at the end.
    open: Mutex<Vec<(PathBuf, Arc<dyn File>)>>,
    pub(super) unpacked: UnpackedFiles,
}

/// A stretch of a file of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) path: PathBuf,
    pub(super) offset: u64,
    pub(super) len: u64,
}

impl Stretch {
    /// The error of a decoder; a file that was cut says so itself.
    pub(super) fn undecodable(&self, cause: io::Error) -> io::Error {
        match cause.get_ref().is_some_and(|inner| inner.is::<StoredFault>()) {
            true => cause,
            false => {
                let (path, offset) = (self.path.clone(), self.offset);
                StoredFault::Unpack { path, offset, cause }.into()
            }
        }
    }

    /// As much comes out as should.
    pub(super) fn check_len(&self, found: u64, expected: u64) -> io::Result<()> {
        let (path, offset) = (self.path.clone(), self.offset);
        match found == expected {
            true => Ok(()),
            false => Err(StoredFault::Length { path, offset, found, expected }.into()),
        }
    }
}

impl StoredBackup {
    /// The files that a manifest tells of.
    pub(super) fn new(
        storage: &Storage,
        stanza: &Path,
        manifest: Manifest,
        notice: &UnpackNotice,
    ) -> Self {
        Self {
            files: storage.file_system().clone(),
            stanza: stanza.to_owned(),
            manifest,
            open: Mutex::default(),
            unpacked: UnpackedFiles::new(notice.clone()),
        }
    }

    /// A file of the backup, by its number in the manifest.
    pub(super) fn file(self: &Arc<Self>, number: usize, file: ManifestFile) -> Arc<dyn ListedFile> {
        let stored = self.clone();
        let suffix = match file.blocks {
            Some(_) => BLOCKS_SUFFIX,
            None => self.manifest.stored_by.suffix(),
        };
        let (bundle, offset) = file.bundle.unzip();
        let path =
            self.path(file.reference, bundle.unwrap_or(0), &format!("{}{suffix}", file.name));
        let stretch = Stretch { path, offset: offset.unwrap_or(0), len: file.stored_len };
        match file.blocks {
            // Not all that is empty is stored.
            _ if file.len == 0 => Arc::new(EmptyFile),
            Some(blocks) => {
                let (len, name) = (file.len, file.name);
                Arc::new(BlockFile::new(stored, blocks, stretch, (len, name, number)))
            }
            None if self.manifest.stored_by == StoredBy::None => {
                let is_raw = file.bundle.is_some() && self.has_raw_bundles();
                Arc::new(PlainFile { stored, stretch, len: file.len, is_raw })
            }
            None => Arc::new(PackedFile::new(stored, stretch, number, &file)),
        }
    }

    /// Where something of a referred backup is stored: in a bundle, or in a file of this name.
    pub(super) fn path(&self, reference: usize, bundle: u64, name: &str) -> PathBuf {
        // The manifest's files and maps were read with as many references as there are.
        let label = self.manifest.references.get(reference).map_or("", String::as_str);
        let backup = self.stanza.join(label);
        match bundle {
            0 => backup.join(name),
            number => backup.join("bundle").join(number.to_string()),
        }
    }

    /// How many backups there are that files can lie in.
    pub(super) fn references(&self) -> usize {
        self.manifest.references.len()
    }

    /// Opens a file of the repository, or takes it from those that are open.
    pub(super) fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = open.iter().rposition(|(known, _)| known == path) {
            let found = open.remove(at);
            let file = found.1.clone();
            open.push(found);
            return Ok(file);
        }
        let file: Arc<dyn File> = match self.files.open(path, Caching::Buffered) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(StoredFault::Missing(path.to_owned()).into());
            }
            opened => opened?.into(),
        };
        if open.len() >= MOST_OPEN {
            open.remove(0);
        }
        open.push((path.to_owned(), file.clone()));
        Ok(file)
    }

    /// Reads the stretch of a map, all of it.
    pub(super) fn read(&self, stretch: &Stretch) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.reader(stretch, true)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// How a piece is encrypted, if the files of this backup are.
    fn encryption(&self, is_raw: bool) -> Option<Encryption<'_>> {
        let header = if is_raw { CipherHeader::Raw } else { CipherHeader::Salted };
        self.manifest.passphrase.as_ref().map(|passphrase| Encryption { passphrase, header })
    }

    /// A stretch as it was before it was encrypted, from its beginning.
    fn reader<'a>(&self, stretch: &'a Stretch, is_raw: bool) -> io::Result<Box<dyn Read + 'a>> {
        let reader = StretchReader { file: self.open(&stretch.path)?, stretch, done: 0 };
        Ok(match self.encryption(is_raw) {
            None => Box::new(reader),
            Some(encryption) => Box::new(DecryptingReader::new(reader, encryption, stretch)?),
        })
    }

    /// What comes out of a stretch. Blocks are always packed and encrypted without headers, other streams where the manifest
    /// says so.
    pub(super) fn unpacked<'a>(
        &self,
        stretch: &'a Stretch,
        is_raw: bool,
    ) -> io::Result<Box<dyn Read + 'a>> {
        let reader = BufReader::with_capacity(READ_BYTES, self.reader(stretch, is_raw)?);
        let compression = match self.manifest.stored_by {
            StoredBy::None => return Ok(Box::new(reader)),
            StoredBy::Gz if is_raw => Compression::Zlib,
            StoredBy::Gz => Compression::Gzip,
            StoredBy::Lz4 => Compression::Lz4,
            StoredBy::Zst => Compression::Zstd,
            StoredBy::Bz2 => Compression::Bzip2,
        };
        compression.decoder(reader)
    }

    pub(super) fn has_raw_bundles(&self) -> bool {
        self.manifest.has_raw_bundles
    }

    /// True when what is stored has to be decompressed or decrypted.
    pub(super) fn is_packed(&self) -> bool {
        self.manifest.stored_by != StoredBy::None || self.manifest.passphrase.is_some()
    }
}

/// Bytes asked for at once.
const READ_BYTES: usize = 1 << 20;

/// Reads a stretch; its end is an error where the file ends before.
#[derive(Debug)]
struct StretchReader<'a> {
    file: Arc<dyn File>,
    stretch: &'a Stretch,
    done: u64,
}

impl Read for StretchReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.stretch.len - self.done;
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
        if wanted == 0 {
            return Ok(0);
        }
        let at = self.stretch.offset.saturating_add(self.done);
        match self.file.read_at(&mut buf[..wanted], at)? {
            0 => Err(StoredFault::Cut { path: self.stretch.path.clone(), end: at }.into()),
            got => {
                self.done += got as u64;
                Ok(got)
            }
        }
    }
}

/// A file without contents.
#[derive(Debug)]
struct EmptyFile;

impl ListedFile for EmptyFile {
    fn bytes(&self) -> u64 {
        0
    }

    fn open(&self) -> io::Result<Box<dyn File>> {
        Ok(Box::new(FileInMemory(Vec::new())))
    }
}

/// A file that is stored as it is, or encrypted.
#[derive(Debug)]
struct PlainFile {
    stored: Arc<StoredBackup>,
    stretch: Stretch,
    /// Bytes of its contents.
    len: u64,
    is_raw: bool,
}

impl ListedFile for PlainFile {
    fn bytes(&self) -> u64 {
        self.len
    }

    fn open(&self) -> io::Result<Box<dyn File>> {
        let Stretch { path, offset, len } = &self.stretch;
        let file = self.stored.open(path)?;
        Ok(match self.stored.encryption(self.is_raw) {
            None => Box::new(FileWindow::new(file, *offset, *len)),
            Some(encryption) => {
                Box::new(DecryptedFile::new(file, self.stretch.clone(), encryption, self.len))
            }
        })
    }
}
