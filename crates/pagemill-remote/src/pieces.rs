//! Pieces of objects in memory: what small reads go through, so that the pages of an index or a catalog cost one request for
//! many of them.
//!
//! ```text
//! read ─► all pieces here? ─► yes: copied
//!                          └► no:  on disk?  ─► no: one request for each run of missing pieces
//! ```
//!
//! Invariants: a piece is whole, but for the last of its object; who waits for a piece that another one has asked for does not
//! ask for it again; the pieces that were used longest ago go first.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::OnceCell;

use crate::disk_cache::{DiskCache, PieceKey};
use crate::error::Result;
use crate::object::Object;

/// Bytes of a piece. A request takes 30 ms, in which a link brings some megabytes; but who looks one page up pays for all.
pub(crate) const PIECE: u64 = 128 * 1024;
/// Bytes of pieces kept in memory.
const MOST_BYTES: usize = 64 << 20;

type Slot = Arc<OnceCell<Bytes>>;

/// The pieces in memory, and on disk below them.
#[derive(Debug)]
pub(crate) struct Pieces {
    kept: Mutex<Kept>,
    pub(crate) disk: Option<Arc<DiskCache>>,
}

#[derive(Debug, Default)]
struct Kept {
    slots: HashMap<(u64, u64), (Slot, u64)>,
    /// Counts uses.
    clock: u64,
}

impl Pieces {
    pub(crate) fn new(disk: Option<Arc<DiskCache>>) -> Self {
        Self { kept: Mutex::default(), disk }
    }

    /// Copies bytes out of pieces that are all here, from `offset` on.
    pub(crate) fn copy(&self, object: &Object, buf: &mut [u8], offset: u64) -> bool {
        let end = offset + buf.len() as u64;
        for piece in pieces_of(&(offset..end)) {
            let slot = self.used(object.id, piece);
            let Some(bytes) = slot.as_ref().and_then(|slot| slot.get()) else { return false };
            copy_part(buf, offset, piece * PIECE, bytes);
        }
        true
    }

    /// Fills a buffer from `offset` on; what lies up to `ahead` is fetched with it.
    ///
    /// # Errors
    /// When bytes that are not here cannot be fetched.
    pub(crate) async fn fetch(
        &self,
        object: &Arc<Object>,
        range: Range<u64>,
    ) -> Result<Vec<Found>> {
        let slots: Vec<_> = pieces_of(&range).map(|n| (n, self.slot(object.id, n))).collect();
        let mut missing: Vec<u64> =
            slots.iter().filter(|(_, slot)| !slot.initialized()).map(|(n, _)| *n).collect();
        if let Some(disk) = &self.disk {
            missing = self.take_from_disk(disk, object, missing).await;
        }
        let runs = missing.chunk_by(|one, next| one + 1 == *next);
        let loads = runs.map(|run| self.load(object, run[0]..run[run.len() - 1] + 1));
        for loaded in futures_util::future::join_all(loads).await {
            loaded?;
        }
        let mut found = Vec::new();
        for (number, slot) in slots {
            let load = || async move {
                object.fetch_whole(span(object, number..number + 1)).await.map(Bytes::from)
            };
            let bytes = slot.get_or_try_init(load).await?.clone();
            found.push(Found { at: number * PIECE, bytes });
        }
        self.evict();
        Ok(found)
    }

    /// Fetches a run of pieces by one request.
    async fn load(&self, object: &Arc<Object>, run: Range<u64>) -> Result<()> {
        if run.end - run.start == 1 {
            let slot = self.slot(object.id, run.start);
            let mut fetched = false;
            let load = async || {
                fetched = true;
                object.fetch_whole(span(object, run.clone())).await.map(Bytes::from)
            };
            let bytes = slot.get_or_try_init(load).await?.clone();
            if fetched {
                self.keep_on_disk(object, run.start, bytes);
            }
            return Ok(());
        }
        let mut bytes = Bytes::from(object.fetch_whole(span(object, run.clone())).await?);
        for number in run {
            let len = usize::try_from(PIECE).unwrap_or(usize::MAX).min(bytes.len());
            let piece = bytes.split_to(len);
            // A copy, as a slice would keep all of the run in memory. One that came meanwhile is the same.
            let piece = Bytes::copy_from_slice(&piece);
            self.keep_on_disk(object, number, piece.clone());
            let _ = self.slot(object.id, number).set(piece);
        }
        Ok(())
    }

    async fn take_from_disk(
        &self,
        disk: &Arc<DiskCache>,
        object: &Arc<Object>,
        missing: Vec<u64>,
    ) -> Vec<u64> {
        let mut still_missing = Vec::new();
        for number in missing {
            let found = match PieceKey::small(object, number) {
                Some(key) => disk.read(key).await,
                None => None,
            };
            match found {
                Some(bytes) => drop(self.slot(object.id, number).set(bytes)),
                None => still_missing.push(number),
            }
        }
        still_missing
    }

    fn keep_on_disk(&self, object: &Object, number: u64, bytes: Bytes) {
        if let Some(disk) = &self.disk
            && let Some(key) = PieceKey::small(object, number)
        {
            disk.keep(key, bytes);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A piece that is here, or on its way.
    fn used(&self, object: u64, piece: u64) -> Option<Slot> {
        let mut kept = self.lock();
        kept.clock += 1;
        let clock = kept.clock;
        let (slot, used) = kept.slots.get_mut(&(object, piece))?;
        *used = clock;
        Some(slot.clone())
    }

    fn slot(&self, object: u64, piece: u64) -> Slot {
        let mut kept = self.lock();
        kept.clock += 1;
        let clock = kept.clock;
        let (slot, used) = kept.slots.entry((object, piece)).or_default();
        *used = clock;
        slot.clone()
    }

    /// Lets go of what was used longest ago, a quarter at a time.
    fn evict(&self) {
        let most = MOST_BYTES / usize::try_from(PIECE).unwrap_or(1);
        let mut kept = self.lock();
        if kept.slots.len() <= most {
            return;
        }
        let mut uses: Vec<u64> = kept.slots.values().map(|(_, used)| *used).collect();
        uses.sort_unstable();
        let oldest = uses[uses.len() - most * 3 / 4];
        kept.slots.retain(|_, (_, used)| *used >= oldest);
    }
}

/// Bytes of an object, and where they lie in it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) at: u64,
    pub(crate) bytes: Bytes,
}

/// Copies what a stretch of an object, at `at`, and a buffer, at `offset`, have in common.
pub(crate) fn copy_part(buf: &mut [u8], offset: u64, at: u64, bytes: &[u8]) {
    let start = offset.max(at);
    let end = (offset + buf.len() as u64).min(at + bytes.len() as u64);
    let len = usize::try_from(end.saturating_sub(start)).unwrap_or(0);
    if len > 0 {
        let (to, from) = ((start - offset) as usize, (start - at) as usize);
        buf[to..to + len].copy_from_slice(&bytes[from..from + len]);
    }
}

/// The pieces that a range lies in.
fn pieces_of(range: &Range<u64>) -> Range<u64> {
    range.start / PIECE..range.end.div_ceil(PIECE)
}

/// The bytes of a run of pieces.
fn span(object: &Object, run: Range<u64>) -> Range<u64> {
    run.start * PIECE..(run.end * PIECE).min(object.len)
}
