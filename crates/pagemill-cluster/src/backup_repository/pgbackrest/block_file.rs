//! [`BlockFile`]: a file that is stored by blocks, put together as it is read.
//!
//! Its map is read when the file is read first; then each block comes from its super block, in this backup or in one before it,
//! which is decompressed as a whole and stays at hand for its neighbors.
//!
//! Invariant: each block that is handed out has the checksum that the map has for it.
//!
//! Source: `blockDeltaNext` in `src/command/restore/blockDelta.c`, `restoreFile` in `src/command/restore/file.c.inc`, pgBackRest 2.59.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pagemill_format::pgbackrest::{BlockIncrement, BlockMap, BlockMapShape, SuperBlock};
use pagemill_io::{File, ListedFile};

use super::fault::StoredFault;
use super::stored_backup::{StoredBackup, Stretch};

/// About what a processor needs to decompress a byte.
const UNPACK_NS: u64 = 1;

/// A file by its map of blocks.
#[derive(Debug)]
pub(super) struct BlockFile(Arc<Blocks>);

#[derive(Debug)]
struct Blocks {
    stored: Arc<StoredBackup>,
    /// What is stored of it in the newest backup that copied some of it: blocks, and then the map.
    stretch: Stretch,
    shape: BlockMapShape,
    map_len: u64,
    name: String,
    /// Its number in the manifest.
    number: usize,
    map: OnceLock<BlockMap>,
}

impl BlockFile {
    /// A file of so many bytes with this name and number.
    pub(super) fn new(
        stored: Arc<StoredBackup>,
        blocks: BlockIncrement,
        stretch: Stretch,
        (len, name, number): (u64, String, usize),
    ) -> Self {
        let BlockIncrement { block_size, checksum_size, map_len } = blocks;
        let references = stored.references();
        let shape = BlockMapShape { len, block_size, checksum_size, references };
        let map = OnceLock::new();
        Self(Arc::new(Blocks { stored, stretch, shape, map_len, name, number, map }))
    }
}

impl ListedFile for BlockFile {
    fn bytes(&self) -> u64 {
        self.0.shape.len
    }

    fn open(&self) -> io::Result<Box<dyn File>> {
        Ok(Box::new(BlockReader(self.0.clone())))
    }
}

/// An open file.
#[derive(Debug)]
struct BlockReader(Arc<Blocks>);

impl File for BlockReader {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            match self.0.fill(&mut buf[done..], offset.saturating_add(done as u64)) {
                Ok(0) => break,
                Ok(got) => done += got,
                // The next read names the block that cannot be had.
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.shape.len)
    }

    fn making_time(&self, range: Range<u64>) -> Duration {
        let bytes = range.end.saturating_sub(range.start);
        let each = if self.0.stored.is_packed() { UNPACK_NS } else { 0 };
        Duration::from_nanos(bytes.saturating_mul(each))
    }
}

impl Blocks {
    /// Fills a buffer from within one block.
    fn fill(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let (block, from) = (offset / self.shape.block_size, offset % self.shape.block_size);
        let map = self.map()?;
        let Some((place, of)) = map.place(block) else { return Ok(0) };
        let contents = self.super_block(of)?;
        let start = usize::try_from(place.start).unwrap_or(usize::MAX);
        let end = start.saturating_add(usize::try_from(map.block_len(block)).unwrap_or(usize::MAX));
        let whole = contents.get(start..end).filter(|whole| map.is_sound(block, whole));
        let Some(whole) = whole else {
            let Stretch { path, offset, .. } = self.stretch_of(of);
            return Err(StoredFault::Block { path, offset, block }.into());
        };
        let rest = usize::try_from(from).ok().and_then(|from| whole.get(from..));
        let rest = rest.unwrap_or_default();
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn map(&self) -> io::Result<&BlockMap> {
        if let Some(map) = self.map.get() {
            return Ok(map);
        }
        let Stretch { path, offset, len } = &self.stretch;
        // The manifest was read only if the map is no longer than all that is stored.
        let offset = offset.saturating_add(len.saturating_sub(self.map_len));
        let at = Stretch { path: path.clone(), offset, len: self.map_len };
        let bytes = self.stored.read(&at)?;
        let parsed = BlockMap::parse(self.shape, &bytes);
        let map = parsed.map_err(|cause| StoredFault::Map { path: path.clone(), offset, cause })?;
        Ok(self.map.get_or_init(|| map))
    }

    fn stretch_of(&self, of: &SuperBlock) -> Stretch {
        let name = format!("{}{}", self.name, super::stored_backup::BLOCKS_SUFFIX);
        let path = self.stored.path(of.reference, of.bundle, &name);
        Stretch { path, offset: of.offset, len: of.stored_len }
    }

    fn super_block(&self, of: &SuperBlock) -> io::Result<Arc<[u8]>> {
        let file = if of.bundle == 0 { self.number } else { 0 };
        let key = (of.reference, of.bundle, file, of.offset);
        if let Some(found) = self.stored.unpacked.super_block(key) {
            return Ok(found);
        }
        let stretch = self.stretch_of(of);
        let mut contents = Vec::new();
        let read =
            self.stored.unpacked(&stretch, true)?.take(of.len + 1).read_to_end(&mut contents);
        read.map_err(|cause| stretch.undecodable(cause))?;
        stretch.check_len(contents.len() as u64, of.len)?;
        let contents: Arc<[u8]> = contents.into();
        self.stored.unpacked.add_super_block(key, &contents);
        Ok(contents)
    }
}
