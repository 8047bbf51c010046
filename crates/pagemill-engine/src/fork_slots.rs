//! Which blocks of a fork a scan holds something of (a page, or what was worked out from it), and
//! in which slot; and which blocks are to be read.
//!
//! A scan goes in rounds: it wants the blocks of its next stretch, has them read in one go, in the
//! order of the file, and then uses them in whatever order it likes.
//!
//! ```text
//! want 70, 3, 69, 3 …  ─►  slots given  ─►  read in order: 3 | 69 70  ─►  use 70, 3, 69, 3 …
//! ```
//!
//! When there is a slot for every block, a slot is never given twice, and the neighbours of a wanted
//! block may be read with it. Otherwise the blocks of earlier rounds give way, oldest first.
//!
//! Invariants: a block wanted in this round keeps its slot until the next; no more blocks are wanted
//! in a round than there are slots; `places[b]` is `s` exactly when `owners[s]` is `Some(b)`.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use pagemill_format::BlockNumber;
use pagemill_io::ForkFiles;
use pagemill_stream::{ReadStream, ReadStreamOptions, Run};

/// Blocks nobody wants that are read to join two that are wanted: cheaper than another call.
const BRIDGED_BLOCKS: u32 = 2;

/// What a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotState {
    /// Nothing.
    Empty,
    /// Nothing yet: the block is to be read.
    Wanted,
    /// What was read.
    Read,
    /// The block could not be read with others; by itself it may be.
    Lost,
}

/// The slots of one fork, for one thread.
#[derive(Debug)]
pub(crate) struct Slots {
    blocks: u32,
    states: Vec<SlotState>,
    /// `None` when the slot of a block has its number.
    shared: Option<SharedSlots>,
    /// Blocks to be read.
    wanted: Vec<u32>,
    hits: u64,
    pages_read: u64,
}

/// Slots fewer than blocks.
#[derive(Debug)]
struct SharedSlots {
    places: HashMap<u32, u32, BuildHasherDefault<BlockHasher>>,
    owners: Vec<Option<u32>>,
    /// The last round each slot was wanted in.
    rounds: Vec<u32>,
    round: u32,
    /// How many slots are wanted in this round.
    in_round: usize,
    /// The slot looked at next when one must give way.
    hand: usize,
}

/// There is no slot left in this round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Slots {
    /// Slots for the blocks of a fork, at most `capacity` of them and at least one.
    pub(crate) fn new(blocks: u32, capacity: usize) -> Self {
        let count = capacity.clamp(1, (blocks as usize).max(1));
        let shared = (count < blocks as usize).then(|| SharedSlots {
            places: HashMap::default(),
            owners: vec![None; count],
            rounds: vec![0; count],
            round: 1,
            in_round: 0,
            hand: 0,
        });
        let states = vec![SlotState::Empty; count];
        Self { blocks, states, shared, wanted: Vec::new(), hits: 0, pages_read: 0 }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.states.len()
    }

    /// Blocks asked for and held, and pages read.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.hits, self.pages_read)
    }

    /// Begins a round: what was wanted until now may give way.
    pub(crate) fn begin_round(&mut self) {
        if let Some(shared) = &mut self.shared {
            shared.round = shared.round.wrapping_add(1);
            shared.in_round = 0;
        }
    }

    /// The slot of a block, and what it holds.
    #[inline]
    pub(crate) fn find(&self, block: BlockNumber) -> Option<(usize, SlotState)> {
        let slot = match &self.shared {
            None => block.0 as usize,
            Some(shared) => *shared.places.get(&block.0)? as usize,
        };
        self.states.get(slot).map(|state| (slot, *state))
    }

    /// Sees to it that a block has a slot in this round, and is read with the next
    /// [`Slots::read_wanted`] if it is not held.
    ///
    /// # Errors
    /// When no slot is left in this round.
    #[inline]
    pub(crate) fn want(&mut self, block: BlockNumber) -> Result<(), Full> {
        let slot = match &mut self.shared {
            None => block.0 as usize,
            Some(shared) => shared.want(block.0, &mut self.states)?,
        };
        match self.states.get_mut(slot) {
            Some(state @ SlotState::Empty) => {
                *state = SlotState::Wanted;
                self.wanted.push(block.0);
            }
            _ => self.hits += 1,
        }
        Ok(())
    }

    /// How many blocks are to be read.
    pub(crate) fn wanted(&self) -> usize {
        self.wanted.len()
    }

    /// Reads what is wanted page by page: `read` fills the page of a slot, and tells whether it did.
    pub(crate) fn read_each(&mut self, mut read: impl FnMut(usize, BlockNumber) -> bool) {
        for block in std::mem::take(&mut self.wanted) {
            let block = BlockNumber(block);
            let Some((slot, SlotState::Wanted)) = self.find(block) else { continue };
            let is_read = read(slot, block);
            self.states[slot] = if is_read { SlotState::Read } else { SlotState::Lost };
            self.pages_read += u64::from(is_read);
        }
    }

    /// Reads what is wanted, in the order of the file, and gives each page to `take` with its slot.
    /// Where every block has a slot, the neighbours of a wanted block that `worth` names are read
    /// with it, as far as they are in the same group of `io_combine_limit` blocks.
    pub(crate) fn read_wanted(
        &mut self,
        files: &ForkFiles,
        reading: ReadStreamOptions,
        worth: impl FnMut(BlockNumber) -> bool,
        mut take: impl FnMut(usize, BlockNumber, &pagemill_format::BlockBytes),
    ) {
        if self.wanted.is_empty() {
            return;
        }
        self.wanted.sort_unstable();
        if self.shared.is_none() {
            self.add_neighbours(reading.io_combine_limit.max(1), worth);
        }
        let wanted = std::mem::take(&mut self.wanted);
        let mut stream = ReadStream::new(files, bridged(&wanted), reading);
        let mut last = 0..0;
        while let Some(run) = stream.next_run() {
            let Ok(Run { first, pages, .. }) = run else {
                // It may be that the last run was mapped, and its file failed while it was copied.
                // What is lost is read once more, on its own, before it counts as lost.
                self.lose(std::mem::take(&mut last));
                continue;
            };
            last = first.0..first.0 + pages.len() as u32;
            for (block, bytes) in (first.0..).map(BlockNumber).zip(pages) {
                if let Some((slot, SlotState::Wanted)) = self.find(block) {
                    self.states[slot] = SlotState::Read;
                    take(slot, block, bytes);
                }
            }
            self.pages_read += pages.len() as u64;
        }
        for &block in &wanted {
            if let Some((slot, SlotState::Wanted)) = self.find(BlockNumber(block)) {
                self.states[slot] = SlotState::Lost;
            }
        }
    }

    #[cold]
    fn lose(&mut self, blocks: std::ops::Range<u32>) {
        for block in blocks {
            if let Some((slot, SlotState::Read)) = self.find(BlockNumber(block)) {
                self.states[slot] = SlotState::Lost;
            }
        }
    }

    fn add_neighbours(&mut self, group: u32, mut worth: impl FnMut(BlockNumber) -> bool) {
        let mut all = Vec::with_capacity(self.wanted.len());
        let mut done_to = 0;
        for &block in &self.wanted {
            if block < done_to {
                continue;
            }
            let start = block - block % group;
            done_to = start.saturating_add(group).min(self.blocks);
            for neighbour in start..done_to {
                let state = &mut self.states[neighbour as usize];
                if *state == SlotState::Empty && worth(BlockNumber(neighbour)) {
                    *state = SlotState::Wanted;
                }
                if *state == SlotState::Wanted {
                    all.push(neighbour);
                }
            }
        }
        self.wanted = all;
    }
}

impl SharedSlots {
    #[inline]
    fn want(&mut self, block: u32, states: &mut [SlotState]) -> Result<usize, Full> {
        if let Some(&slot) = self.places.get(&block) {
            let slot = slot as usize;
            if self.rounds[slot] != self.round {
                self.rounds[slot] = self.round;
                self.in_round += 1;
            }
            return Ok(slot);
        }
        if self.in_round == self.owners.len() {
            return Err(Full);
        }
        let slot = self.victim();
        if let Some(old) = self.owners[slot].replace(block) {
            self.places.remove(&old);
        }
        self.places.insert(block, slot as u32);
        self.rounds[slot] = self.round;
        self.in_round += 1;
        states[slot] = SlotState::Empty;
        Ok(slot)
    }

    /// The next slot not wanted in this round: there is one, as fewer are than there are slots.
    fn victim(&mut self) -> usize {
        loop {
            let slot = self.hand;
            self.hand = (slot + 1) % self.owners.len();
            if self.rounds[slot] != self.round {
                return slot;
            }
        }
    }
}

/// The blocks, and those between two of them that are nearly neighbours.
fn bridged(wanted: &[u32]) -> impl Iterator<Item = BlockNumber> {
    let next = wanted.iter().skip(1).map(Some).chain([None]);
    let with_gap = |(&block, next): (&u32, Option<&u32>)| {
        let gap_end = next.copied().filter(|next| next - block <= BRIDGED_BLOCKS + 1);
        block..gap_end.unwrap_or(block + 1)
    };
    wanted.iter().zip(next).flat_map(with_gap).map(BlockNumber)
}

/// Spreads block numbers over a hash table; they come from files, but a bad spread only costs time.
#[derive(Debug, Default)]
struct BlockHasher(u64);

impl Hasher for BlockHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.0 = (self.0 ^ u64::from(value)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap as Model;

    use pagemill_format::{BLOCK_SIZE, Fork};
    use pagemill_io::Storage;
    use proptest::prelude::*;

    use super::*;

    fn combining(io_combine_limit: u32) -> ReadStreamOptions {
        ReadStreamOptions { io_combine_limit, ..ReadStreamOptions::default() }
    }

    /// A fork whose blocks carry their own number.
    fn files(dir: &tempfile::TempDir, storage: &Storage, blocks: u32) -> ForkFiles {
        let mut bytes = vec![0; blocks as usize * BLOCK_SIZE];
        for (number, page) in (0u32..).zip(bytes.as_chunks_mut::<BLOCK_SIZE>().0) {
            page[..4].copy_from_slice(&number.to_le_bytes());
        }
        let path = dir.path().join("1");
        std::fs::write(&path, bytes).unwrap();
        ForkFiles::open(storage, &path, Fork::Main).unwrap().unwrap()
    }

    #[test]
    fn neighbours_are_read_along_only_where_every_block_has_a_slot() {
        let (dir, storage) = (tempfile::tempdir().unwrap(), Storage::real());
        let files = files(&dir, &storage, 64);
        for (capacity, expected) in [(64, 32), (63, 2)] {
            let mut slots = Slots::new(64, capacity);
            slots.want(BlockNumber(5)).unwrap();
            slots.want(BlockNumber(40)).unwrap();
            let mut read = 0;
            slots.read_wanted(&files, combining(16), |_| true, |_, _, _| read += 1);
            assert_eq!((read, slots.counts()), (expected, (0, expected)));
        }
    }

    #[test]
    fn a_round_has_as_many_blocks_as_there_are_slots() {
        let mut slots = Slots::new(100, 2);
        assert_eq!(slots.want(BlockNumber(1)), Ok(()));
        assert_eq!(slots.want(BlockNumber(2)), Ok(()));
        assert_eq!(slots.want(BlockNumber(1)), Ok(()));
        assert_eq!(slots.want(BlockNumber(3)), Err(Full));
        slots.begin_round();
        assert_eq!(slots.want(BlockNumber(3)), Ok(()));
    }

    #[test]
    fn nearly_neighbouring_blocks_are_joined() {
        let blocks: Vec<u32> = bridged(&[1, 2, 5, 9, 10]).map(|block| block.0).collect();
        assert_eq!(blocks, [1, 2, 3, 4, 5, 9, 10]);
        assert_eq!(bridged(&[u32::MAX - 1]).count(), 1);
    }

    proptest! {
        #[test]
        fn what_a_round_wants_is_held_when_it_is_read(
            rounds in prop::collection::vec(prop::collection::vec(0u32..60, 0..30), 1..12),
            capacity in 1usize..80,
        ) {
            let (dir, storage) = (tempfile::tempdir().unwrap(), Storage::real());
            let files = files(&dir, &storage, 60);
            let mut slots = Slots::new(60, capacity);
            let mut held: Model<usize, u32> = Model::new();
            for round in rounds {
                slots.begin_round();
                let fitting: Vec<u32> =
                    round.into_iter().take_while(|b| slots.want(BlockNumber(*b)).is_ok()).collect();
                slots.read_wanted(&files, combining(8), |_| true, |slot, block, bytes| {
                    assert_eq!(bytes.first_chunk(), Some(&block.0.to_le_bytes()));
                    held.insert(slot, block.0);
                });
                for block in fitting {
                    let (slot, state) = slots.find(BlockNumber(block)).unwrap();
                    prop_assert_eq!(state, SlotState::Read);
                    prop_assert_eq!(held.get(&slot), Some(&block));
                }
            }
        }
    }
}
