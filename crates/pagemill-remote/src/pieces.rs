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
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};

use crate::disk_cache::{DiskCache, PieceKey};
use crate::error::Result;
use crate::object::Object;

/// Bytes of a piece. A request takes 30 ms, in which a link brings some megabytes; but who looks one page up pays for all.
pub(crate) const PIECE: u64 = 128 * 1024;
/// Bytes of pieces kept in memory.
const MOST_BYTES: usize = 64 << 20;

/// What brings pieces; whoever wants them waits for the same.
type OnItsWay = Shared<BoxFuture<'static, Result<()>>>;

/// One piece.
#[derive(Default)]
struct Slot {
    bytes: OnceLock<Bytes>,
    way: Mutex<Option<OnItsWay>>,
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slot").field("bytes", &self.bytes.get().map(Bytes::len)).finish()
    }
}

impl Slot {
    fn on_its_way(&self) -> Option<OnItsWay> {
        self.way.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_way(&self, way: Option<OnItsWay>) {
        *self.way.lock().unwrap_or_else(PoisonError::into_inner) = way;
    }

    fn set(&self, bytes: Bytes) {
        let fresh = self.bytes.set(bytes).is_ok();
        assert!(fresh, "a piece was asked for twice");
    }
}

/// The pieces in memory, and on disk below them.
#[derive(Debug)]
pub(crate) struct Pieces {
    kept: Mutex<Kept>,
    pub(crate) disk: Option<Arc<DiskCache>>,
}

#[derive(Debug, Default)]
struct Kept {
    slots: HashMap<(u64, u64), (Arc<Slot>, u64)>,
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
            let Some(bytes) = slot.as_ref().and_then(|slot| slot.bytes.get()) else { return false };
            copy_part(buf, offset, piece * PIECE, bytes);
        }
        true
    }

    /// The pieces that a range lies in, in order.
    ///
    /// # Errors
    /// When those that nobody else asks for cannot be fetched.
    pub(crate) async fn fetch(
        self: &Arc<Self>,
        object: &Arc<Object>,
        range: Range<u64>,
    ) -> Result<Vec<Found>> {
        let slots: Vec<_> = pieces_of(&range).map(|n| (n, self.slot(object.id, n))).collect();
        loop {
            let (own, others) = self.claim(object, &slots);
            if let Some(own) = own {
                own.await?;
            }
            // Whose request fails says so itself; what it did not bring is asked for here, the next time around.
            futures_util::future::join_all(others).await;
            let found = slots.iter().map(|(number, slot)| {
                let bytes = slot.bytes.get()?.clone();
                Some(Found { at: number * PIECE, bytes })
            });
            if let Some(found) = found.collect() {
                self.evict();
                return Ok(found);
            }
        }
    }

    /// Of the pieces that are not here, those that nobody has asked for yet, on their way from now on; and the ways of the
    /// others.
    fn claim(
        self: &Arc<Self>,
        object: &Arc<Object>,
        slots: &[(u64, Arc<Slot>)],
    ) -> (Option<OnItsWay>, Vec<OnItsWay>) {
        // Held until all are claimed: of two who want the same run of pieces, one asks for all of it.
        let _kept = self.lock();
        let (mut claimed, mut others) = (Vec::new(), Vec::new());
        for (number, slot) in slots {
            match slot.on_its_way() {
                _ if slot.bytes.get().is_some() => {}
                Some(other) => others.push(other),
                None => claimed.push((*number, slot.clone())),
            }
        }
        if claimed.is_empty() {
            return (None, others);
        }
        let (pieces, object) = (self.clone(), object.clone());
        let own: Vec<_> = claimed.iter().map(|(_, slot)| slot.clone()).collect();
        let way = async move {
            let loaded = pieces.load(&object, &claimed).await;
            claimed.iter().for_each(|(_, slot)| slot.set_way(None));
            loaded
        };
        let way = way.boxed().shared();
        own.iter().for_each(|slot| slot.set_way(Some(way.clone())));
        (Some(way), others)
    }

    /// Brings pieces from the disk, or by one request for each run of them that is not there.
    async fn load(&self, object: &Arc<Object>, claimed: &[(u64, Arc<Slot>)]) -> Result<()> {
        let missing: Vec<_> = match &self.disk {
            Some(disk) => take_from_disk(disk, object, claimed).await,
            None => claimed.iter().collect(),
        };
        let runs = missing.chunk_by(|(one, _), (next, _)| one + 1 == *next);
        let loads = runs.map(|run| self.load_run(object, run));
        futures_util::future::join_all(loads).await.into_iter().collect()
    }

    /// Fetches a run of pieces by one request.
    async fn load_run(&self, object: &Arc<Object>, run: &[&(u64, Arc<Slot>)]) -> Result<()> {
        let first = run[0].0;
        let numbers = first..first + run.len() as u64;
        let mut bytes = Bytes::from(object.fetch_whole(span(object, numbers)).await?);
        for (number, slot) in run {
            let len = usize::try_from(PIECE).unwrap_or(usize::MAX).min(bytes.len());
            let piece = bytes.split_to(len);
            // A copy, as a slice would keep all of the run in memory.
            let piece = Bytes::copy_from_slice(&piece);
            self.keep_on_disk(object, *number, piece.clone());
            slot.set(piece);
        }
        Ok(())
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
    fn used(&self, object: u64, piece: u64) -> Option<Arc<Slot>> {
        let mut kept = self.lock();
        kept.clock += 1;
        let clock = kept.clock;
        let (slot, used) = kept.slots.get_mut(&(object, piece))?;
        *used = clock;
        Some(slot.clone())
    }

    fn slot(&self, object: u64, piece: u64) -> Arc<Slot> {
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

/// Takes what is there, and gives what is not.
async fn take_from_disk<'a>(
    disk: &Arc<DiskCache>,
    object: &Arc<Object>,
    claimed: &'a [(u64, Arc<Slot>)],
) -> Vec<&'a (u64, Arc<Slot>)> {
    let mut missing = Vec::new();
    for piece in claimed {
        let found = match PieceKey::small(object, piece.0) {
            Some(key) => disk.read(key).await,
            None => None,
        };
        match found {
            Some(bytes) => piece.1.set(bytes),
            None => missing.push(piece),
        }
    }
    missing
}

/// The pieces that a range lies in.
fn pieces_of(range: &Range<u64>) -> Range<u64> {
    range.start / PIECE..range.end.div_ceil(PIECE)
}

/// The bytes of a run of pieces.
fn span(object: &Object, run: Range<u64>) -> Range<u64> {
    run.start * PIECE..(run.end * PIECE).min(object.len)
}
