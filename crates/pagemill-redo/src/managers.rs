//! Redo of one block: the image, or the resource manager that knows the record.
//!
//! Order of what is looked at: an image that is to be applied replaces the page, and data beside it is not
//! applied again; a block that the record initializes begins as zeros; the rest changes the page that is there.
//! An image that is not to be applied (`wal_consistency_checking` writes those) is no part of redo.
//!
//! Sources: `XLogReadBufferForRedoExtended` in `src/backend/access/transam/xlogutils.c`,
//! `src/include/access/rmgrlist.h`, PostgreSQL 14 to 18.

use pagemill_format::page::Page;
use pagemill_format::page_builder::set_lsn;
use pagemill_format::wal::{BlockImage, ResourceManager};
use pagemill_format::{BlockBytes, Error};

use crate::change::{Change, PageLsn, RedoSite};
use crate::error::{RedoError, Result};
use crate::{brin, btree, generic, gin, gist, hash, heap, heap2, sequence, spgist, xlog};

/// Changes a page as a record of this manager does; the page's LSN is set afterwards.
type RedoFunction = fn(&mut BlockBytes, Change<'_>) -> pagemill_format::Result<PageLsn>;

/// Who redoes the records of a manager; `None` for one whose changes of pages are not understood here.
fn function_of(manager: ResourceManager) -> Option<RedoFunction> {
    match manager {
        ResourceManager::XLOG => Some(xlog::redo),
        ResourceManager::HEAP => Some(heap::redo),
        ResourceManager::HEAP2 => Some(heap2::redo),
        ResourceManager::SEQUENCE => Some(sequence::redo),
        ResourceManager::BTREE => Some(btree::redo),
        ResourceManager::HASH => Some(hash::redo),
        ResourceManager::GIN => Some(gin::redo),
        ResourceManager::GIST => Some(gist::redo),
        ResourceManager::SPGIST => Some(spgist::redo),
        ResourceManager::BRIN => Some(brin::redo),
        ResourceManager::GENERIC => Some(generic::redo),
        _ => None,
    }
}

/// True when changes by this manager's records are understood; images are by anybody.
pub fn is_redone(manager: ResourceManager) -> bool {
    function_of(manager).is_some()
}

/// Makes of a page what the record makes of it, and sets its LSN.
///
/// The page is the one that the records before left. Whether the record is in it already is the caller's
/// question: of a page that comes *from a file*, records are skipped whose [`end`](RedoSite::end) is not beyond
/// the page's LSN. Behind an [image](crate::Effect::Image) or an [initialization](crate::Effect::Init), which
/// are applied without that question, every record is. The checksum is left as it is.
///
/// A block that lies beyond the file, or was never written, is a page of zeros here. Only pages of the
/// visibility map can be changed from that; otherwise it is an error, as it is to a server.
///
/// # Errors
/// The record does not fit the page, or is damaged; or nothing is known of its manager
/// ([`RedoError::is_unsupported`]). The page is not to be used then.
pub fn redo(page: &mut BlockBytes, site: &RedoSite<'_>) -> Result<()> {
    redo_block(page, site).map_err(|cause| failure(site, cause))
}

fn redo_block(page: &mut BlockBytes, site: &RedoSite<'_>) -> pagemill_format::Result<()> {
    let change = Change::of(site)?;
    if let Some(image) = change.block.image.filter(|image| image.apply) {
        restore(page, &image, site)?;
        return match site.record.header.resource_manager {
            ResourceManager::GIST => gist::after_image(page, change),
            _ => Ok(()),
        };
    }
    if change.block.will_init {
        page.fill(0);
    }
    let manager = site.record.header.resource_manager;
    let Some(redo) = function_of(manager) else {
        let what = format!("nothing is known of what {} records change", manager.name());
        return Err(Error::unsupported("resource manager", what));
    };
    if redo(page, change)? == PageLsn::Advance {
        set_lsn(page, site.end);
    }
    Ok(())
}

fn restore(
    page: &mut BlockBytes,
    image: &BlockImage<'_>,
    site: &RedoSite<'_>,
) -> pagemill_format::Result<()> {
    image.restore(page, &mut Vec::new())?;
    // A page that was never initialized has no LSN, and would not count as new with one.
    if !Page::new(page).is_new() {
        set_lsn(page, site.end);
    }
    Ok(())
}

#[cold]
fn failure(site: &RedoSite<'_>, cause: Error) -> RedoError {
    let header = &site.record.header;
    let manager = header.resource_manager;
    let operation = match manager.record_name(header.info, site.version) {
        Some(name) => format!("{} {name}", manager.name()),
        None => format!("{} record {:02X}", manager.name(), header.kind()),
    };
    RedoError { manager, operation, start: site.start, reference: site.reference, cause }
}
