//! The visibility map of one table, as an index-only scan asks it: are all tuples of this heap
//! block visible to everybody?
//!
//! Pages of the map are read when first asked for and kept: 8 kB for each 255 MB of the table. A
//! page that is damaged or cannot be read promises nothing, so the heap is looked at, as in
//! PostgreSQL, which reads such a page as zeros.
//!
//! Invariant: after an unclean shutdown, or under a running server, nothing is promised: the map
//! is only as new as the WAL that is not redone.
//!
//! Source: `visibilitymap_get_status` and `vm_readbuf` in
//! `src/backend/access/heap/visibilitymap.c`, PostgreSQL 14 to 18.

use std::path::Path;

use pagemill_format::visibility_map::VisibilityPosition;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Fork};
use pagemill_io::ForkFiles;

use crate::data_directory::Cluster;
use crate::error::Result;
use crate::page_check::check_page;

/// The visibility map of one table, for one thread.
#[derive(Debug)]
pub struct AllVisible {
    cluster: Cluster,
    files: Option<ForkFiles>,
    /// The pages of the map: asked for or not yet, and readable or not.
    pages: Vec<MapPage>,
    pages_read: u64,
}

#[derive(Debug, Clone)]
enum MapPage {
    Unread,
    Nothing,
    Read(Box<BlockBytes>),
}

impl AllVisible {
    /// The map of the table whose files these are, without fork and segment.
    ///
    /// # Errors
    /// When the directory or the size of a file cannot be read.
    pub fn open(cluster: &Cluster, base: &Path) -> Result<Self> {
        let trusted = cluster.is_complete();
        let files = if trusted { cluster.fork(base, Fork::Vm)? } else { None };
        let blocks = files.as_ref().map_or(0, ForkFiles::blocks);
        let pages = vec![MapPage::Unread; blocks as usize];
        Ok(Self { cluster: cluster.clone(), files, pages, pages_read: 0 })
    }

    /// A map that promises nothing.
    pub fn nothing(cluster: &Cluster) -> Self {
        Self { cluster: cluster.clone(), files: None, pages: Vec::new(), pages_read: 0 }
    }

    /// True when the map promises that every tuple of this heap block is visible.
    #[inline]
    pub fn contains(&mut self, heap_block: BlockNumber) -> bool {
        let position = VisibilityPosition::of(heap_block);
        match self.pages.get(position.block.0 as usize) {
            Some(MapPage::Read(page)) => position.bits(page).all_visible(),
            None | Some(MapPage::Nothing) => false,
            Some(MapPage::Unread) => {
                self.read(position.block);
                self.contains(heap_block)
            }
        }
    }

    /// Pages of the map that were read.
    pub fn pages_read(&self) -> u64 {
        self.pages_read
    }

    #[cold]
    fn read(&mut self, block: BlockNumber) {
        let mut page = Box::new([0; BLOCK_SIZE]);
        let is_sound = self.files.as_ref().is_some_and(|files| {
            let read = files.read_block(block, &mut page).is_ok();
            let is_of_moment = self.cluster.page_limit().holds(&page);
            read && is_of_moment && check_page(&self.cluster, files, block, &page).is_ok()
        });
        self.pages_read += 1;
        let read = if is_sound { MapPage::Read(page) } else { MapPage::Nothing };
        self.pages[block.0 as usize] = read;
    }
}
