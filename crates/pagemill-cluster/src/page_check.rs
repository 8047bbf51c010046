//! Is this page what PostgreSQL wrote? The checksum first, where the cluster has them, then the
//! header.
//!
//! A page that was allocated and never written is zeros, carries no checksum and is sound. The
//! checksum depends on the block number, so a page that was moved is found too. Under a running
//! server a page can be caught half written: it is read again before it counts as damaged.

use pagemill_format::checksum::page_checksum;
use pagemill_format::page::Page;
use pagemill_format::{BlockBytes, BlockNumber};
use pagemill_io::ForkFiles;

use crate::data_directory::Cluster;
use crate::error::{Damage, Result};

const LIVE_RETRIES: usize = 5;

/// Checks a page just read.
///
/// # Errors
/// Damage that names file, fork, block and finding.
#[inline]
pub fn check_page(
    cluster: &Cluster,
    files: &ForkFiles,
    block: BlockNumber,
    bytes: &BlockBytes,
) -> Result<()> {
    match find_fault(cluster.verify_checksums(), block, bytes) {
        None => Ok(()),
        Some(what) => {
            Err(Damage::in_block(files.locate(block).0, files.fork(), block, what).into())
        }
    }
}

/// Reads a page again, as often as it may take for a running server to finish writing it.
///
/// # Errors
/// As [`check_page`], when the page stays damaged; or when it cannot be read.
pub fn read_again(
    cluster: &Cluster,
    files: &ForkFiles,
    block: BlockNumber,
    bytes: &mut BlockBytes,
) -> Result<()> {
    let mut last = Ok(());
    for _ in 0..LIVE_RETRIES {
        std::thread::sleep(std::time::Duration::from_millis(1));
        files.read_block(block, bytes)?;
        last = check_page(cluster, files, block, bytes);
        if last.is_ok() {
            break;
        }
    }
    last
}

fn find_fault(verify_checksums: bool, block: BlockNumber, bytes: &BlockBytes) -> Option<String> {
    let page = Page::new(bytes);
    if verify_checksums && !page.is_new() {
        let (stored, computed) = (page.header().checksum, page_checksum(bytes, block));
        if stored != computed {
            return Some(format!("checksum {stored:#06x} on the page, {computed:#06x} computed"));
        }
    }
    page.check_header().err().map(|error| error.to_string())
}
