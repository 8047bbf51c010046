//! Pages of a template on their way into a copy: whether they are sound, and how one that is not stays so.
//!
//! Invariant: a page that was damaged is found damaged in the copy too, if it was carried along on request: a checksum
//! that did not fit does not fit afterwards.

use pagemill_cluster::page_check::check_page;
use pagemill_cluster::{Cluster, Damage, Error as ClusterError};
use pagemill_format::checksum::page_checksum;
use pagemill_format::page::Page;
use pagemill_format::page_builder::set_checksum;
use pagemill_format::{BlockBytes, BlockNumber};
use pagemill_io::ForkFiles;

use crate::error::Result;

/// Where the checksum is in a page's header.
const CHECKSUM: std::ops::Range<usize> = 8..10;

/// Looks at pages that pass.
#[derive(Debug, Clone)]
pub(super) struct PageGuard {
    cluster: Cluster,
    has_checksums: bool,
    verifies: bool,
}

impl PageGuard {
    /// For pages of this cluster; `verifies` when damage is to end the copy.
    pub(super) fn new(cluster: &Cluster, verifies: bool) -> Self {
        let has_checksums = cluster.control().has_data_checksums();
        Self { cluster: cluster.clone(), has_checksums, verifies }
    }

    /// Refuses a fork of which segments are missing or cut.
    ///
    /// # Errors
    /// Damage that names the file.
    pub(super) fn check_files(&self, files: &ForkFiles) -> Result<()> {
        match files.damage().first() {
            None => Ok(()),
            Some(damage) => {
                let damage = Damage::in_file(files.path(), damage.to_string());
                Err(ClusterError::from(damage).into())
            }
        }
    }

    /// Checks a page as it was read.
    ///
    /// # Errors
    /// Damage that names file and block.
    #[inline]
    pub(super) fn check(
        &self,
        files: &ForkFiles,
        block: BlockNumber,
        page: &BlockBytes,
    ) -> Result<()> {
        if self.verifies { Ok(check_page(&self.cluster, files, block, page)?) } else { Ok(()) }
    }

    /// Changes a page, and its checksum with it.
    #[inline]
    pub(super) fn change(
        &self,
        block: BlockNumber,
        page: &mut BlockBytes,
        change: impl FnOnce(&mut BlockBytes),
    ) {
        if !self.has_checksums {
            return change(page);
        }
        let stored = Page::new(page).header().checksum;
        let fault = if self.verifies { 0 } else { stored ^ page_checksum(page, block) };
        change(page);
        set_checksum(page, block);
        if fault != 0 {
            let fitting = Page::new(page).header().checksum;
            page[CHECKSUM].copy_from_slice(&(fitting ^ fault).to_le_bytes());
        }
    }
}
