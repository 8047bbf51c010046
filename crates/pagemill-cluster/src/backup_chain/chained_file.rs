//! [`ChainedFile`]: a segment whose blocks lie in several backups.
//!
//! A block comes from the newest backup that has it. How long the segment is, the newest one says; a block that it has not
//! is as in the backup before if it lies below the truncation length. Blocks that no backup has are zeros: a server extended
//! the file and did no more.
//!
//! `pg_combinebackup` looks at the truncation length of the newest backup alone. Here that of each counts, so that a block that
//! was truncated away before one of them, and came back as zeros, is not as it was before that.
//!
//! Invariant: what a file should have, and has not since it was cut, is an error and never zeros.
//!
//! Source: `reconstruct_from_incremental_file` in `src/bin/pg_combinebackup/reconstruct.c`, PostgreSQL 17 and 18.

use std::io;

use pagemill_format::BlockBytes;
use pagemill_format::backup::IncrementalHeader;
use pagemill_io::File;

use super::chained_files::ChainFault;
use crate::recovery::{Composition, read_pages};

/// A file of an incremental backup.
#[derive(Debug)]
pub(super) struct Increment {
    pub(super) header: IncrementalHeader,
    pub(super) file: Box<dyn File>,
}

/// A segment put together.
#[derive(Debug)]
pub(super) struct ChainedFile {
    pub(super) newest: Increment,
    /// Those of older backups, newer ones first.
    pub(super) older: Vec<Increment>,
    /// The file of the newest backup that has it whole.
    pub(super) full: Box<dyn File>,
    /// Whole blocks of that.
    pub(super) full_blocks: u32,
}

/// Where a block lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// In one of the incremental files, at this place, in blocks of the file.
    Increment { at: usize, position: u32 },
    /// In the full file, at its own place.
    Full(u32),
    /// Nowhere.
    Zeros,
}

impl ChainedFile {
    fn increments(&self) -> impl Iterator<Item = &Increment> {
        std::iter::once(&self.newest).chain(&self.older)
    }

    fn source(&self, block: u32) -> Source {
        for (at, Increment { header, .. }) in self.increments().enumerate() {
            if let Some(position) = header.position(block) {
                return Source::Increment { at, position };
            }
            // From there on, what is older was truncated away before this backup.
            if block >= header.truncation_block_length() {
                return Source::Zeros;
            }
        }
        match block < self.full_blocks {
            true => Source::Full(block),
            false => Source::Zeros,
        }
    }

    /// How many blocks from `first` on, `most` at most, lie behind each other in one place.
    fn run(&self, first: u32, source: Source, most: usize) -> usize {
        let continues = |block: &u32| {
            let step = block - first;
            self.source(*block)
                == match source {
                    Source::Increment { at, position } => {
                        Source::Increment { at, position: position + step }
                    }
                    Source::Full(from) => Source::Full(from + step),
                    Source::Zeros => Source::Zeros,
                }
        };
        (first..self.pages()).take(most).take_while(continues).count()
    }
}

impl Composition for ChainedFile {
    fn pages(&self) -> u32 {
        self.newest.header.blocks()
    }

    fn fill(&self, first: u32, pages: &mut [BlockBytes]) -> io::Result<usize> {
        let source = self.source(first);
        let run = self.run(first, source, pages.len());
        let pages = &mut pages[..run];
        let (file, position) = match source {
            Source::Zeros => {
                pages.as_flattened_mut().fill(0);
                return Ok(run);
            }
            Source::Full(position) => (Some(&self.full), position),
            Source::Increment { at, position } => {
                (self.increments().nth(at).map(|increment| &increment.file), position)
            }
        };
        let read = match file {
            Some(file) => read_pages(file.as_ref(), position, pages)?,
            None => 0,
        };
        match read {
            0 => Err(ChainFault::Cut { block: first, position }.into()),
            read => Ok(read),
        }
    }
}

#[cfg(test)]
mod tests {
    use pagemill_format::BLOCK_SIZE;
    use pagemill_io::{Caching, FileSystem as _, MemoryFiles};
    use proptest::prelude::*;

    use super::*;

    fn page(mark: u8) -> [u8; BLOCK_SIZE] {
        [mark; BLOCK_SIZE]
    }

    /// What a server writes of a file of so many blocks: those that are given.
    fn incremental(truncation: u32, blocks: &[(u32, u8)]) -> Vec<u8> {
        let numbers = blocks.iter().map(|(number, _)| *number);
        let fixed = [0xD3AE_1F0D, blocks.len() as u32, truncation];
        let mut bytes: Vec<u8> =
            fixed.into_iter().chain(numbers).flat_map(u32::to_le_bytes).collect();
        if !blocks.is_empty() {
            bytes.resize(bytes.len().next_multiple_of(BLOCK_SIZE), 0);
        }
        bytes.extend(blocks.iter().flat_map(|(_, mark)| page(*mark)));
        bytes
    }

    fn file(bytes: Vec<u8>) -> Box<dyn File> {
        let mut files = MemoryFiles::new();
        files.insert("/f".as_ref(), bytes);
        files.open("/f".as_ref(), Caching::Buffered).unwrap()
    }

    fn increment(truncation: u32, blocks: &[(u32, u8)]) -> Increment {
        let bytes = incremental(truncation, blocks);
        let header = IncrementalHeader::bytes(&bytes).unwrap();
        Increment { header: IncrementalHeader::parse(&bytes[..header]).unwrap(), file: file(bytes) }
    }

    fn full(marks: &[u8]) -> (Box<dyn File>, u32) {
        (file(marks.iter().flat_map(|mark| page(*mark)).collect()), marks.len() as u32)
    }

    /// The first byte of each block, read `at_once`.
    fn marks(chained: &ChainedFile, at_once: usize) -> Vec<u8> {
        let mut marks = Vec::new();
        while (marks.len() as u32) < chained.pages() {
            let left = chained.pages() as usize - marks.len();
            let mut pages = vec![page(0xEE); at_once.min(left)];
            let filled = chained.fill(marks.len() as u32, &mut pages).unwrap();
            marks.extend(pages[..filled].iter().map(|page| page[0]));
        }
        marks
    }

    #[test]
    fn a_block_comes_from_the_newest_backup_that_has_it() {
        let (full, full_blocks) = full(&[1, 1, 1, 1, 1, 1]);
        let older = vec![increment(6, &[(1, 2), (2, 2), (5, 2)])];
        let newest = increment(5, &[(2, 3), (3, 3), (7, 3)]);
        let chained = ChainedFile { newest, older, full, full_blocks };
        // Behind the truncation length older backups count no more, and block 4 is the full one's.
        for at_once in [1, 3, 16] {
            assert_eq!(marks(&chained, at_once), [1, 2, 3, 3, 1, 0, 0, 3]);
        }
    }

    #[test]
    fn blocks_that_no_backup_has_are_zeros_and_a_cut_file_is_an_error() {
        let (short, full_blocks) = full(&[1, 1]);
        let chained =
            ChainedFile { newest: increment(4, &[]), older: Vec::new(), full: short, full_blocks };
        assert_eq!(marks(&chained, 8), [1, 1, 0, 0]);
        let (cut, _) = full(&[1]);
        let chained =
            ChainedFile { newest: increment(4, &[]), older: Vec::new(), full: cut, full_blocks };
        let error = chained.fill(1, &mut [page(0)]).unwrap_err().to_string();
        assert!(error.contains("block 1"), "{error}");
    }

    proptest! {
        /// Three copies of a file that changed between them: the newest is what the chain makes.
        #[test]
        fn a_chain_makes_the_file_that_its_newest_backup_was_made_of(
            first in proptest::collection::vec(1_u8..250, 1..20),
            changes in proptest::collection::vec((0_u32..24, 1_u8..250), 0..12),
            later in proptest::collection::vec((0_u32..24, 1_u8..250), 0..12),
            (length, last_length) in (1_usize..24, 1_usize..24),
            at_once in 1_usize..9,
        ) {
            let mut file = first.clone();
            let middle = changed(&mut file, &changes, length);
            let newest = changed(&mut file, &later, last_length);
            let (full, full_blocks) = full(&first);
            let chained = ChainedFile { newest, older: vec![middle], full, full_blocks };
            prop_assert_eq!(marks(&chained, at_once), file);
        }
    }

    /// Truncates or extends a file and changes blocks of it; the backup of it has what was changed, and what lies where it
    /// was cut and grew again.
    fn changed(file: &mut Vec<u8>, changes: &[(u32, u8)], length: usize) -> Increment {
        let limit = file.len().min(length);
        file.truncate(limit);
        file.resize(length, 0);
        let mut blocks = std::collections::BTreeMap::new();
        for (block, mark) in changes.iter().filter(|(block, _)| (*block as usize) < length) {
            file[*block as usize] = *mark;
            blocks.insert(*block, *mark);
        }
        // Blocks behind the truncation that no record changed are zeros, which a server does not send.
        let blocks: Vec<_> = blocks.into_iter().collect();
        let (reached, limit) = (blocks.last().map_or(0, |(last, _)| *last as usize + 1), limit);
        file.truncate(reached.max(limit));
        increment(limit as u32, &blocks)
    }
}
