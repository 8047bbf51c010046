//! The files of a copy, copied by several threads.
//!
//! Each thread takes the largest file that nobody has taken. A large file is synced when it is copied; small ones wait for
//! each other, each sent to the device meanwhile, and are synced by several threads at once, so that one commit of the
//! file system's journal serves them all, and one flush of the device many.
//!
//! Invariant: when all threads have ended without an error, every file is durable; after the first error no thread takes
//! another file.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

use pagemill_cluster::Cluster;
use pagemill_format::BLOCK_SIZE;
use pagemill_io::{CopiedFile, CopiedPiece, CopyMethod, sync_all};

use super::created_files::CreatedFiles;
use super::error::CopyResult;
use super::page_check::PageCheck;
use super::survey::{PlannedFile, Survey};
use super::{CopyClusterOptions, CopyClusterSummary, CopyStrategy};
use crate::error::{Error, Result};

/// Files from this size on are synced by themselves, in bytes.
const LARGE: u64 = 8 << 20;
/// Small files of a thread that wait for their sync, at most: they stay open meanwhile.
const MOST_WAITING: usize = 128;

/// A copy of all files under way.
pub(super) struct CopyFiles<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) survey: &'a Survey,
    /// How those of each part are copied.
    pub(super) methods: &'a [CopyMethod],
    pub(super) options: &'a CopyClusterOptions,
    pub(super) made: &'a CreatedFiles,
}

#[derive(Default)]
struct Shared {
    next: AtomicUsize,
    stopped: AtomicBool,
    failure: Mutex<Option<Error>>,
    bytes: AtomicU64,
    shared_bytes: AtomicU64,
}

impl Shared {
    /// Keeps the first failure, and has everybody stop.
    fn fail(&self, error: Error) {
        self.stopped.store(true, Relaxed);
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

impl CopyFiles<'_> {
    /// Copies all of them.
    ///
    /// # Errors
    /// The first of any thread.
    pub(super) fn run(&self) -> Result<CopyClusterSummary> {
        let shared = Shared::default();
        std::thread::scope(|scope| {
            for _ in 1..self.options.jobs {
                let started = Builder::new().spawn_scoped(scope, || self.work(&shared));
                if let Err(error) = started {
                    shared.fail(Error::Threads(error));
                }
            }
            self.work(&shared);
        });
        match shared.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(CopyClusterSummary {
                files: self.survey.files.len() as u64,
                bytes: shared.bytes.into_inner(),
                shared_bytes: shared.shared_bytes.into_inner(),
            }),
        }
    }

    fn work(&self, shared: &Shared) {
        if let Err(error) = self.copy_until_done(shared) {
            shared.fail(error.into());
        }
    }

    fn copy_until_done(&self, shared: &Shared) -> CopyResult<()> {
        let mut waiting = Vec::new();
        while !shared.stopped.load(Relaxed) {
            let number = shared.next.fetch_add(1, Relaxed);
            let Some(file) = self.survey.files.get(number) else { break };
            self.options.check_interrupt()?;
            let copied = self.copy(file)?;
            self.made.file(number);
            if copied.bytes < LARGE {
                copied.begin_write_back()?;
                waiting.push(copied);
            } else {
                sync(&[copied], shared)?;
            }
            if waiting.len() == MOST_WAITING {
                sync(&waiting, shared)?;
                waiting.clear();
            }
        }
        sync(&waiting, shared)
    }

    fn copy(&self, file: &PlannedFile) -> CopyResult<CopiedFile> {
        let storage = self.cluster.storage();
        let (from, to) = (self.survey.source_of(file), self.survey.target_of(file));
        let method = self.methods[file.part];
        let checksums = self.cluster.control().has_data_checksums();
        let pages = file.pages.filter(|_| self.options.verify);
        let check = pages.map(|(fork, first)| PageCheck { file: &from, fork, first, checksums });
        if let Some(check) = check.as_ref().filter(|_| method != CopyMethod::ReadWrite) {
            check.check_all(storage)?;
        }
        // What no more than one file shows may not hold for all.
        let unless_asked =
            method == CopyMethod::Reflink && self.options.strategy == CopyStrategy::Auto;
        let method = Some(method).filter(|_| !unless_asked);
        storage.copy_file(&from, &to, method, &mut |piece: CopiedPiece<'_>| {
            self.options.check_interrupt()?;
            if let (Some(check), Some(bytes)) = (&check, piece.bytes) {
                check.check(piece.offset, bytes)?;
            }
            self.options.progress.add_pages(piece.len.div_ceil(BLOCK_SIZE as u64));
            Ok(())
        })
    }
}

/// Waits until the device holds these files.
fn sync(files: &[CopiedFile], shared: &Shared) -> CopyResult<()> {
    sync_all(files, |file| {
        file.sync()?;
        shared.bytes.fetch_add(file.bytes, Relaxed);
        if file.method != CopyMethod::ReadWrite {
            let found = file.shared_bytes()?.unwrap_or(0);
            shared.shared_bytes.fetch_add(found, Relaxed);
        }
        Ok(())
    })
}
