//! What the server's images cannot tell, since it blanks it in them: whether a page is all-visible, and the bits of
//! the visibility map. The server's files tell it, once it was stopped and everything was redone.
//!
//! Bits of the map that were cleared by a record without a reference to it are still set here. They may be, as
//! nobody asks the map for a block that has records; but then the heap's page here must not be all-visible. The same
//! goes for bits of blocks that were cut off.
//!
//! Bits that the server has and that are not here are no fault if it logged the map's page as one with a hole, which it
//! does where it copies a database: its own recovery would lose them too.
//!
//! Sequences are left out: the record has the value that recovery goes on with, which is ahead of the server's.

use std::path::Path;

use anyhow::Result;
use pagemill_format::page::Page;
use pagemill_format::visibility_map::{BLOCKS_PER_PAGE, VisibilityPosition};
use pagemill_format::wal::ResourceManager;
use pagemill_format::{BlockBytes, BlockNumber, Fork};
use pagemill_redo::is_redone;

use super::pages::{Block, Pages, States, read};
use super::walk::difference;

/// Compares every page that was redone with the file; how many there were.
pub(crate) fn final_pages(pages: &Pages, after: &Path, faults: &mut Vec<String>) -> Result<usize> {
    let mut compared = 0;
    for (block, states) in pages.all() {
        let is_compared = |manager: &ResourceManager| {
            is_redone(*manager) && *manager != ResourceManager::SEQUENCE
        };
        let Some(manager) = states.manager.filter(is_compared) else { continue };
        // The relation was dropped, or cut off before this block.
        let Some(theirs) = read(after, block)? else { continue };
        let ours = &states.ours;
        let (locator, fork, number) = block;
        let at = format!("at the end, block {number} of {locator} {fork}");
        compared += 1;
        if fork == Fork::Vm {
            faults.extend(
                map_faults(pages, block, states, &theirs).map(|what| format!("{at}: {what}")),
            );
            continue;
        }
        let is_heap = [ResourceManager::HEAP, ResourceManager::HEAP2].contains(&manager);
        let (here, there) = (Page::new(ours).is_all_visible(), Page::new(&theirs).is_all_visible());
        if is_heap && here != there {
            faults.push(format!("{at}: all-visible is {here}, the server has {there}"));
        }
        if let Some(what) = difference(ours, &theirs, manager, number) {
            faults.push(format!("{at}: {what}"));
        }
    }
    Ok(compared)
}

fn map_faults(
    pages: &Pages,
    (locator, _, number): Block,
    states: &States,
    theirs: &BlockBytes,
) -> impl Iterator<Item = String> {
    let first = number.0 * BLOCKS_PER_PAGE;
    (first..first + BLOCKS_PER_PAGE).filter_map(move |heap| {
        let heap = BlockNumber(heap);
        let position = VisibilityPosition::of(heap);
        let (here, there) = (position.bits(&states.ours), position.bits(theirs));
        let may_be_stale = match pages.get((locator, Fork::Main, heap)) {
            Some(states) => !Page::new(&states.ours).is_all_visible(),
            None => pages.is_cut((locator, Fork::Main, heap)),
        };
        let is_missing = !states.lost_bits
            && (there.all_visible() && !here.all_visible()
                || there.all_frozen() && !here.all_frozen());
        let is_stale = here.all_visible() && !there.all_visible() && !may_be_stale;
        (is_missing || is_stale)
            .then(|| format!("bits of heap block {heap} are {here:?}, the server has {there:?}"))
    })
}
