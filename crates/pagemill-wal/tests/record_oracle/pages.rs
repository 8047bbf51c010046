//! The pages that the records find: those of the copy that was taken before, and what became of them since.
//!
//! Two states are kept of each block: the page as it is redone here from one record to the next, which shows a
//! drift, and the server's own image after the last record, which shows the fault of one record alone.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use pagemill_format::wal::{RelFileLocator, ResourceManager};
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Fork, SEGMENT_BLOCKS};

/// The default tablespace, and that of shared relations.
const PG_DEFAULT: u32 = 1663;
const PG_GLOBAL: u32 = 1664;

pub(crate) type Block = (RelFileLocator, Fork, BlockNumber);

#[derive(Clone)]
pub(crate) struct States {
    pub(crate) ours: Box<BlockBytes>,
    pub(crate) theirs: Box<BlockBytes>,
    /// Who changed it last, images of nobody's left out.
    pub(crate) manager: Option<ResourceManager>,
    /// An image of it lacks what a page of the visibility map has instead of a hole.
    pub(crate) lost_bits: bool,
}

pub(crate) struct Pages {
    base: PathBuf,
    states: HashMap<Block, States>,
    /// Blocks of a fork from this one on do not come from the copy: they were cut off since.
    limits: HashMap<(RelFileLocator, Fork), u32>,
}

impl Pages {
    pub(crate) fn new(base: &Path) -> Self {
        Self { base: base.to_owned(), states: HashMap::new(), limits: HashMap::new() }
    }

    /// What a record finds at a block; zeros where nothing was ever written.
    pub(crate) fn take(&mut self, block: Block) -> Result<States> {
        if let Some(states) = self.states.remove(&block) {
            return Ok(states);
        }
        let page = match self.is_cut(block) {
            true => None,
            false => read(&self.base, block)?,
        };
        let page = page.unwrap_or_else(|| Box::new([0; BLOCK_SIZE]));
        Ok(States { theirs: page.clone(), ours: page, manager: None, lost_bits: false })
    }

    pub(crate) fn put(&mut self, block: Block, states: States) {
        self.states.insert(block, states);
    }

    /// Every block that a record was about, and what it is now.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Block, &States)> {
        self.states.iter().map(|(block, states)| (*block, states))
    }

    /// What a block is now, if a record was about it.
    pub(crate) fn get(&self, block: Block) -> Option<&States> {
        self.states.get(&block)
    }

    /// The block was cut off once, and is not in the copy for that.
    pub(crate) fn is_cut(&self, (locator, fork, block): Block) -> bool {
        self.limits.get(&(locator, fork)).is_some_and(|limit| block.0 >= *limit)
    }

    /// A fork was cut, or made anew.
    pub(crate) fn truncate(&mut self, locator: RelFileLocator, fork: Fork, blocks: u32) {
        self.states.retain(|(of, in_fork, block), _| {
            (*of, *in_fork) != (locator, fork) || block.0 < blocks
        });
        let limit = self.limits.entry((locator, fork)).or_insert(blocks);
        *limit = (*limit).min(blocks);
    }
}

/// A block of a stopped cluster; `None` if there is no such file, or it is shorter.
pub(crate) fn read(data: &Path, (locator, fork, block): Block) -> Result<Option<Box<BlockBytes>>> {
    // Other tablespaces are made by the work itself.
    let mut path = match locator.tablespace.0 {
        PG_GLOBAL => data.join("global"),
        PG_DEFAULT => data.join(format!("base/{}", locator.database)),
        _ => return Ok(None),
    };
    let segment = match block.0 / SEGMENT_BLOCKS {
        0 => String::new(),
        number => format!(".{number}"),
    };
    path.push(format!("{}{}{segment}", locator.number, fork.suffix()));
    let Ok(file) = File::open(&path) else { return Ok(None) };
    let offset = u64::from(block.0 % SEGMENT_BLOCKS) * BLOCK_SIZE as u64;
    if file.metadata()?.len() < offset + BLOCK_SIZE as u64 {
        return Ok(None);
    }
    let mut page = Box::new([0; BLOCK_SIZE]);
    file.read_exact_at(&mut page[..], offset)?;
    Ok(Some(page))
}
