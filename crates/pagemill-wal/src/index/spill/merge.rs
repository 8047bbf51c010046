//! Merging of runs: the entries of all of them, sorted by fork, block and LSN, without those that no longer count.
//!
//! Invariant: what comes out is in order and has each entry that counts once, whichever run it lay in.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pagemill_format::BlockNumber;

use super::run::RunCursor;
use crate::error::Result;
use crate::index::entry::{Entry, ForkKey};

/// Hands the entries of runs to `take`, the older runs first. `keeps` says whether an entry of a block still counts that
/// is in the run of this number; `None` for forks of which nothing does.
///
/// # Errors
/// Files that cannot be read; what `take` returns.
pub(super) fn merge<K: Fn(u32, BlockNumber) -> bool>(
    mut cursors: Vec<RunCursor>,
    keeps: impl Fn(ForkKey) -> Option<K>,
    mut take: impl FnMut(ForkKey, Entry) -> Result<()>,
) -> Result<()> {
    while let Some(key) = cursors.iter().filter_map(RunCursor::fork).min() {
        match keeps(key) {
            Some(keeps) => merge_fork(&mut cursors, key, keeps, &mut take)?,
            None => cursors.iter_mut().try_for_each(|cursor| cursor.pass(key))?,
        }
    }
    Ok(())
}

fn merge_fork(
    cursors: &mut [RunCursor],
    key: ForkKey,
    keeps: impl Fn(u32, BlockNumber) -> bool,
    take: &mut impl FnMut(ForkKey, Entry) -> Result<()>,
) -> Result<()> {
    let first = |(at, cursor): (usize, &RunCursor)| Some(Reverse((cursor.block_of(key)?, at)));
    let mut next: BinaryHeap<_> = cursors.iter().enumerate().filter_map(first).collect();
    while let Some(Reverse((block, at))) = next.pop() {
        let cursor = &mut cursors[at];
        let is_kept = keeps(cursor.number, block);
        while let Some(entry) = cursor.entry_of(key).filter(|entry| entry.block == block) {
            if is_kept {
                take(key, entry)?;
            }
            cursor.advance()?;
        }
        next.extend(cursor.block_of(key).map(|block| Reverse((block, at))));
    }
    Ok(())
}
