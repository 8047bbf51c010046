//! `clone`: a database from a template, in a stopped cluster, there wholly or not at all.
//!
//! | strategy | what is read and written | what a standby gets |
//! | --- | --- | --- |
//! | `wal_log` | every relation as a stream of its pages | the image of every page (15 on) |
//! | `file_copy` | every file | one record a directory: it copies its own template |
//! | `reflink` | nothing: files share their blocks (XFS, btrfs) | as `file_copy` |
//!
//! Invariants: until the commit nothing is changed that a server looks at; a copy is durable before it is committed.

mod copied;
mod logged;
mod page_guard;
mod plan;

use std::sync::Arc;

use pagemill_cluster::Database;
use pagemill_cluster::change::{ClusterLock, DatabaseCreation, NewDatabase};
use pagemill_format::wal::ImageCompression;
use pagemill_io::{WriteMethod, WriteSettings};

use super::cluster_error;
use crate::error::Result;
use crate::load::default_jobs;
use crate::progress::Progress;

pub use plan::{ClonePlan, CloneStrategy, TemplateFile, UnknownStrategy};

/// How a database is copied.
#[derive(Debug, Clone)]
pub struct CloneOptions {
    /// A damaged page of the template ends the copy.
    pub verify_checksums: bool,
    /// How images in the WAL are compressed.
    pub compression: ImageCompression,
    /// How large files are written.
    pub writing: WriteSettings,
    /// Read back what was written, before the commit, and compare it with the template.
    pub verify: bool,
    /// Threads that copy files.
    pub jobs: usize,
    /// Told how many pages were copied.
    pub progress: Progress,
}

impl CloneOptions {
    /// As the settings of the template's cluster have it, damage refused.
    ///
    /// # Errors
    /// When the settings cannot be read.
    pub fn for_template(template: &Database) -> Result<Self> {
        Ok(Self {
            verify_checksums: true,
            compression: template.wal_compression()?,
            writing: WriteSettings::default(),
            verify: false,
            jobs: default_jobs(),
            progress: Progress::default(),
        })
    }
}

/// What was copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CloneSummary {
    /// Relations; 0 where files were copied without asking what they are.
    pub relations: u64,
    /// Files, a fork of several segments counted once.
    pub files: u64,
    /// Blocks.
    pub blocks: u64,
    /// Bytes of WAL.
    pub wal_bytes: u64,
    /// Bytes that the copy shares with its template, where the file system tells.
    pub shared_bytes: Option<u64>,
    /// How large files were written; `None` where there were none.
    pub write_method: Option<WriteMethod>,
}

/// What a database is made by.
#[derive(Debug)]
pub struct CloneRequest<'a> {
    /// What it is to be.
    pub new: NewDatabase,
    /// In which way.
    pub plan: &'a ClonePlan,
    /// How that is done.
    pub options: &'a CloneOptions,
}

/// Makes a database as `template`, which was opened under `lock`, in the way that was planned.
///
/// # Errors
/// When the rules, a damaged page or the system stand in the way: nothing has changed then. Only
/// [`pagemill_cluster::Error::Unfinished`] and [`pagemill_cluster::Error::Undecided`] say otherwise.
pub fn clone_database(
    lock: Arc<ClusterLock>,
    template: &Database,
    request: CloneRequest<'_>,
) -> Result<CloneSummary> {
    let CloneRequest { new, plan, options } = request;
    let compression = options.compression;
    let mut creation = DatabaseCreation::begin(lock, template.clone(), new, compression)?;
    let mut summary = match plan.strategy {
        CloneStrategy::WalLog => {
            copied::make_directories(&creation)?;
            let map = copied::copy_small_files(&creation)?;
            creation.log_made(&map)?;
            logged::copy(&mut creation, options)?
        }
        CloneStrategy::FileCopy | CloneStrategy::Reflink => {
            copied::make_directories(&creation)?;
            let summary = copied::copy(&creation, plan, options)?;
            creation.log_copied()?;
            summary
        }
    };
    copied::sync_directories(&creation)?;
    summary.wal_bytes = creation.wal().position().0 - creation.wal().start_lsn().0;
    creation.commit()?;
    Ok(summary)
}
