//! Single pages combined into runs: a few buffers, each for a window of neighbouring blocks.
//!
//! A window is as many blocks as one write may have, and begins at a multiple of that. So pages that come nearly
//! in order, as those of a B-tree whose upper pages are finished later than their children, still leave in
//! large writes, and no window crosses the end of a segment.
//!
//! Invariants: no two windows are of the same blocks; there are at most [`MOST_WINDOWS`]; one that is full
//! leaves at once.

use std::ops::Range;

use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber};
use pagemill_sys::AlignedBuffer;

/// Windows kept at once; of more, the one that nothing was added to for longest leaves.
const MOST_WINDOWS: usize = 4;

/// A run that is to be written: its first block, its pages from the start of the buffer on, and how many.
pub(crate) type Run = (u32, AlignedBuffer, usize);

/// The windows of one stream.
#[derive(Debug)]
pub(crate) struct WriteWindows {
    /// Blocks of a window, a power of two.
    size: u32,
    /// The least recently used first.
    windows: Vec<Window>,
}

#[derive(Debug)]
struct Window {
    first: u32,
    buffer: AlignedBuffer,
    /// Which of its blocks are there.
    filled: Vec<bool>,
    count: u32,
}

impl WriteWindows {
    pub(crate) fn new(size: u32) -> Self {
        Self { size: size.max(1), windows: Vec::new() }
    }

    fn start_of(&self, block: u32) -> u32 {
        block - block % self.size
    }

    /// True when there is no window for a block.
    pub(crate) fn needs_buffer(&self, block: BlockNumber) -> bool {
        let first = self.start_of(block.0);
        self.windows.iter().all(|window| window.first != first)
    }

    /// Makes a window for a block, with a buffer of the windows' size.
    pub(crate) fn add_buffer(&mut self, block: BlockNumber, buffer: AlignedBuffer) {
        let (first, filled) = (self.start_of(block.0), vec![false; self.size as usize]);
        self.windows.push(Window { first, buffer, filled, count: 0 });
    }

    /// Puts a page into its window, and hands out what is to be written now.
    pub(crate) fn put(&mut self, block: BlockNumber, page: &BlockBytes) -> Vec<Run> {
        let first = self.start_of(block.0);
        let Some(place) = self.windows.iter().position(|window| window.first == first) else {
            return Vec::new();
        };
        let mut window = self.windows.remove(place);
        window.put(block.0 - first, page);
        if window.count == self.size {
            return window.into_runs();
        }
        self.windows.push(window);
        if self.windows.len() <= MOST_WINDOWS {
            return Vec::new();
        }
        self.windows.remove(0).into_runs()
    }

    /// Takes the windows out that have one of the blocks.
    pub(crate) fn take_overlapping(&mut self, blocks: &Range<u32>) -> Vec<Run> {
        let size = self.size;
        let overlaps = |window: &mut Window| {
            window.first < blocks.end && blocks.start < window.first.saturating_add(size)
        };
        self.windows.extract_if(.., overlaps).flat_map(Window::into_runs).collect()
    }

    /// Takes all windows out, in the order of their blocks.
    pub(crate) fn take_all(&mut self) -> Vec<Run> {
        self.windows.sort_by_key(|window| window.first);
        self.windows.drain(..).flat_map(Window::into_runs).collect()
    }
}

impl Window {
    fn put(&mut self, at: u32, page: &BlockBytes) {
        let at = at as usize;
        let (blocks, _) = self.buffer.as_chunks_mut::<BLOCK_SIZE>();
        if let (Some(block), Some(filled)) = (blocks.get_mut(at), self.filled.get_mut(at)) {
            block.copy_from_slice(page);
            self.count += u32::from(!*filled);
            *filled = true;
        }
    }

    /// The runs of neighbours in it. The first keeps the buffer, which is copied within to begin with it;
    /// others, of which there are few, get one of their own.
    fn into_runs(self) -> Vec<Run> {
        let Self { first, mut buffer, filled, .. } = self;
        let mut runs = Vec::new();
        let neighbours = filled.chunk_by(|one, other| one == other);
        let mut at = 0;
        let mut ranges = Vec::new();
        for chunk in neighbours {
            if chunk.first() == Some(&true) {
                ranges.push(at..at + chunk.len());
            }
            at += chunk.len();
        }
        let mut ranges = ranges.into_iter();
        let own = ranges.next();
        for range in ranges {
            let mut other = AlignedBuffer::zeroed(range.len() * BLOCK_SIZE);
            if let Some(bytes) = buffer.get(range.start * BLOCK_SIZE..range.end * BLOCK_SIZE) {
                other.copy_from_slice(bytes);
            }
            runs.push((block_at(first, range.start), other, range.len()));
        }
        if let Some(own) = own {
            buffer.copy_within(own.start * BLOCK_SIZE..own.end * BLOCK_SIZE, 0);
            runs.insert(0, (block_at(first, own.start), buffer, own.len()));
        }
        runs
    }
}

fn block_at(first: u32, at: usize) -> u32 {
    first.saturating_add(u32::try_from(at).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: BlockBytes = [0; BLOCK_SIZE];

    fn page(of: u32) -> BlockBytes {
        let mut page = PAGE;
        page[..4].copy_from_slice(&of.to_le_bytes());
        page
    }

    fn put(windows: &mut WriteWindows, block: u32) -> Vec<(u32, usize)> {
        if windows.needs_buffer(BlockNumber(block)) {
            let buffer = AlignedBuffer::zeroed(windows.size as usize * BLOCK_SIZE);
            windows.add_buffer(BlockNumber(block), buffer);
        }
        sound(windows.put(BlockNumber(block), &page(block)))
    }

    /// Each run without its buffer, whose pages must be those of its blocks.
    fn sound(runs: Vec<Run>) -> Vec<(u32, usize)> {
        let check = |(first, buffer, pages): &Run| {
            for (n, bytes) in (*first..).zip(buffer.as_chunks::<BLOCK_SIZE>().0).take(*pages) {
                assert_eq!(bytes, &page(n));
            }
            (*first, *pages)
        };
        runs.iter().map(check).collect()
    }

    #[test]
    fn a_full_window_leaves_at_once_whatever_the_order_of_its_pages() {
        let mut windows = WriteWindows::new(4);
        for block in [5, 4, 7, 7] {
            assert!(put(&mut windows, block).is_empty());
        }
        assert_eq!(put(&mut windows, 6), [(4, 4)]);
        assert!(windows.take_all().is_empty());
    }

    #[test]
    fn of_too_many_windows_the_one_left_alone_for_longest_goes_in_runs_of_neighbours() {
        let mut windows = WriteWindows::new(8);
        for block in [1, 3, 4, 7, 8, 16, 24] {
            assert!(put(&mut windows, block).is_empty());
        }
        assert_eq!(put(&mut windows, 32), [(1, 1), (3, 2), (7, 1)]);
        assert_eq!(sound(windows.take_overlapping(&(10..17))), [(8, 1), (16, 1)]);
        assert_eq!(sound(windows.take_all()), [(24, 1), (32, 1)]);
    }
}
