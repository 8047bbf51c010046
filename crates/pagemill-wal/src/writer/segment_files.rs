//! The segment files that are written: found, made, filled, synced.
//!
//! A new one is made under another name, gets all its space in one step, and then its own name: a file that
//! is called a segment has the size of one. A name that servers remove at their start is taken, so that
//! nothing is left behind by a kill.
//!
//! Invariants: a file counts as unsynced from its first write on, and stays open until it was synced; the
//! directory is synced when a file was made.

use std::io;
use std::path::{Path, PathBuf};

use pagemill_format::Lsn;
use pagemill_format::wal::SegmentName;
use pagemill_io::{Create, OpenForWrite, Storage, WritableFile};
use pagemill_sys::WriteBack;

use crate::error::Result;
use crate::wal_directory::WalDirectory;

/// Bytes in files that were filled and not synced, at most: they are on their way to the device already.
const MOST_UNSYNCED_BYTES: u64 = 128 << 20;
/// Zeros written at once where space cannot be taken otherwise.
const ZERO_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct SegmentFiles {
    storage: Storage,
    directory: WalDirectory,
    group_access: bool,
    /// Those that were written to; the last is the one that is written now.
    open: Vec<(SegmentName, WritableFile)>,
    is_directory_changed: bool,
}

impl SegmentFiles {
    pub(super) fn new(storage: &Storage, directory: &WalDirectory, group_access: bool) -> Self {
        Self {
            storage: storage.clone(),
            directory: directory.clone(),
            group_access,
            open: Vec::new(),
            is_directory_changed: false,
        }
    }

    /// Writes bytes that lie in one segment, and begins to send them to the device.
    pub(super) fn write(&mut self, at: Lsn, bytes: &[u8]) -> Result<()> {
        let offset = self.directory.offset_of(at);
        let file = self.file(self.directory.segment_of(at))?;
        file.write_all_at(bytes, offset)?;
        file.write_back(offset..offset + bytes.len() as u64, WriteBack::Begin)?;
        Ok(())
    }

    /// Waits until the device holds all that was written, and the names of the files.
    pub(super) fn sync(&mut self) -> Result<()> {
        for (_, file) in &self.open {
            file.sync_data()?;
        }
        if let Some(newest) = self.open.len().checked_sub(1) {
            self.open.drain(..newest);
        }
        if std::mem::take(&mut self.is_directory_changed) {
            self.storage.sync_dir(&self.directory.path)?;
        }
        Ok(())
    }

    fn file(&mut self, segment: SegmentName) -> Result<WritableFile> {
        if let Some((_, file)) = self.open.iter().find(|(open, _)| *open == segment) {
            return Ok(file.clone());
        }
        let unsynced = self.open.len() as u64 * u64::from(segment.segment_size);
        if unsynced > MOST_UNSYNCED_BYTES {
            let (_, oldest) = self.open.remove(0);
            oldest.sync_data()?;
        }
        let file = self.open_or_make(segment)?;
        self.open.push((segment, file.clone()));
        Ok(file)
    }

    fn open_or_make(&mut self, segment: SegmentName) -> Result<WritableFile> {
        let path = self.directory.file_of(segment);
        match self.storage.open_for_write(&path, self.how(Create::Existing)) {
            Ok(file) => {
                let len = file.len()?;
                if len < u64::from(segment.segment_size) {
                    self.take_space(&file, len)?;
                }
                Ok(file)
            }
            Err(error) if error.is_not_found() => self.make(&path),
            Err(error) => Err(error.into()),
        }
    }

    fn make(&mut self, path: &Path) -> Result<WritableFile> {
        let temporary = self.temporary();
        self.storage.remove_if_there(&temporary)?;
        let file = self.storage.open_for_write(&temporary, self.how(Create::New))?;
        let named = self.take_space(&file, 0).and_then(|()| {
            self.storage.rename(&temporary, path)?;
            Ok(self.storage.open_for_write(path, self.how(Create::Existing))?)
        });
        if named.is_err() {
            // The failure that is told is the one before this.
            let _ = self.storage.remove_if_there(&temporary);
        }
        self.is_directory_changed = true;
        named
    }

    /// Servers remove what is called `xlogtemp.*` when they start.
    fn temporary(&self) -> PathBuf {
        self.directory.path.join(format!("xlogtemp.{}", std::process::id()))
    }

    /// Gives the file the size of a segment, from `len` bytes on.
    fn take_space(&self, file: &WritableFile, len: u64) -> Result<()> {
        let size = u64::from(self.directory.segment_size);
        match file.allocate(len..size) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                Err(file.error(error).into())
            }
            // Whatever else the file system has against it: zeros can be written anywhere.
            Err(_) => self.write_zeros(file, len, size),
        }
    }

    fn write_zeros(&self, file: &WritableFile, len: u64, size: u64) -> Result<()> {
        let zeros = vec![0; ZERO_BYTES];
        let mut at = len;
        while at < size {
            let now = zeros.len().min(usize::try_from(size - at).unwrap_or(zeros.len()));
            file.write_all_at(zeros.get(..now).unwrap_or_default(), at)?;
            at += now as u64;
        }
        // A file that is called a segment has the size of one, also after a power cut.
        Ok(file.sync_data()?)
    }

    fn how(&self, create: Create) -> OpenForWrite {
        OpenForWrite { create, group_access: self.group_access, ..OpenForWrite::default() }
    }
}
