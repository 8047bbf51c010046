//! Putting the page images of our own WAL into the live files, once the change is decided.
//!
//! It is what a server's replay would do, done by hand so that the cluster ends shut down: each image becomes the page,
//! with the end of its record as LSN and a checksum where the cluster has them. Neighbouring blocks are written
//! together. Files that were made by this change have their pages already and are passed over.
//!
//! Invariant: when this succeeds, every page is durable in its file.
//!
//! Source: `xlog_redo` in `src/backend/access/transam/xlog.c`, `XLogReadBufferForRedoExtended` in `xlogutils.c`,
//! PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::ops::Range;

use pagemill_format::page_builder::{set_checksum, set_lsn};
use pagemill_format::wal::RelFileLocator;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Fork, Lsn, checksum};
use pagemill_io::{Create, OpenForWrite, WritableFork, sync_all};
use pagemill_wal::{WalDirectory, WalReader};

use super::pending;
use crate::data_directory::Cluster;
use crate::error::Result;

/// Blocks written together at most.
const MOST_BLOCKS: usize = 128;

/// A fork of a relation.
type ForkKey = (RelFileLocator, Fork);

/// Writes the images of all records that begin in a part of the WAL, but for those of relations that `is_skipped`.
pub(super) fn replay_images(
    cluster: &Cluster,
    wal: &WalDirectory,
    part: Range<Lsn>,
    is_skipped: &dyn Fn(RelFileLocator) -> bool,
) -> Result<()> {
    let mut reader = WalReader::at(cluster.storage(), wal, part.start);
    let mut run = Run::new(cluster);
    let (mut page, mut scratch) = (Box::new([0; BLOCK_SIZE]), Vec::new());
    while reader.position() < part.end {
        let Some(record) = reader.next_record()? else { break };
        let lsn = record.end;
        for block in record.parse()?.blocks {
            let Some(image) = block.image.filter(|_| !is_skipped(block.locator)) else {
                continue;
            };
            image.restore(&mut page, &mut scratch)?;
            if !checksum::is_new(&page) {
                set_lsn(&mut page, lsn);
            }
            run.add((block.locator, block.fork), block.block, &page)?;
        }
    }
    run.finish()
}

/// Neighbouring pages on their way, and the forks written to.
struct Run<'a> {
    cluster: &'a Cluster,
    has_checksums: bool,
    key: ForkKey,
    first: BlockNumber,
    bytes: Vec<u8>,
    forks: HashMap<ForkKey, WritableFork>,
}

impl<'a> Run<'a> {
    fn new(cluster: &'a Cluster) -> Self {
        Self {
            cluster,
            has_checksums: cluster.control().has_data_checksums(),
            key: (RelFileLocator::default(), Fork::Main),
            first: BlockNumber(0),
            bytes: Vec::with_capacity(MOST_BLOCKS * BLOCK_SIZE),
            forks: HashMap::new(),
        }
    }

    fn add(&mut self, key: ForkKey, block: BlockNumber, page: &BlockBytes) -> Result<()> {
        let blocks = self.bytes.len() / BLOCK_SIZE;
        let follows =
            key == self.key && u64::from(block.0) == u64::from(self.first.0) + blocks as u64;
        if !follows || blocks >= MOST_BLOCKS {
            self.write()?;
            (self.key, self.first) = (key, block);
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(page);
        if self.has_checksums
            && let Some(copy) = self.bytes.get_mut(start..).and_then(<[u8]>::first_chunk_mut)
            && !checksum::is_new(copy)
        {
            set_checksum(copy, block);
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        let (locator, fork) = self.key;
        let (storage, base) = (self.cluster.storage(), pending::base(self.cluster, locator));
        if !self.forks.contains_key(&self.key) {
            let how = OpenForWrite { create: Create::OrNew, ..OpenForWrite::default() };
            self.forks.insert(self.key, WritableFork::open(storage, &base, fork, how)?);
        }
        if let Some(fork) = self.forks.get(&self.key) {
            fork.write_blocks(self.first, &self.bytes)?;
        }
        self.bytes.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.write()?;
        let forks: Vec<_> = self.forks.values().collect();
        Ok(sync_all(&forks, |fork| fork.sync())?)
    }
}
