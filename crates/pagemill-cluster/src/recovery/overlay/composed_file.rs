//! [`ComposedFile`]: a file whose pages are put together as they are read.
//!
//! What puts them together is a [`Composition`]; here is what all of them share: reads that begin or end within a page, and
//! reads of many pages at once, which stop before the first page that cannot be had, so that the next read names it.

use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::time::Duration;

use pagemill_format::{BLOCK_SIZE, BlockBytes};
use pagemill_io::File;
use pagemill_sys::AlignedBuffer;

/// Puts pages of one file together.
pub(crate) trait Composition: Send + Sync + Debug {
    /// Pages of the file.
    fn pages(&self) -> u32;

    /// Fills pages from `first` on, which the file has, and says how many: at least one.
    ///
    /// # Errors
    /// Why the first of them cannot be had.
    fn fill(&self, first: u32, pages: &mut [BlockBytes]) -> io::Result<usize>;

    /// About how much time a processor needs to put these pages together, beyond copying them.
    fn making_time(&self, pages: Range<u32>) -> Duration {
        let _ = pages;
        Duration::ZERO
    }
}

/// The file that a composition makes.
#[derive(Debug)]
pub(crate) struct ComposedFile<C>(pub(crate) C);

impl<C: Composition> ComposedFile<C> {
    fn bytes(&self) -> u64 {
        u64::from(self.0.pages()) * BLOCK_SIZE as u64
    }

    /// Reads within one page.
    fn read_part(&self, buf: &mut [u8], page: u32, from: usize) -> io::Result<usize> {
        let mut whole = AlignedBuffer::zeroed(BLOCK_SIZE);
        self.0.fill(page, whole.as_chunks_mut().0)?;
        let rest = whole.get(from..).unwrap_or_default();
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

impl<C: Composition> File for ComposedFile<C> {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = self.bytes().saturating_sub(offset);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
        let buf = &mut buf[..len];
        if buf.is_empty() {
            return Ok(0);
        }
        let size = BLOCK_SIZE as u64;
        // The file has no page behind those that 32 bits number.
        let first = (offset / size) as u32;
        let from = (offset % size) as usize;
        if from > 0 || len < BLOCK_SIZE {
            return self.read_part(buf, first, from);
        }
        let (pages, _) = buf.as_chunks_mut();
        let mut done = 0;
        while done < pages.len() {
            match self.0.fill(first + done as u32, &mut pages[done..]) {
                Ok(filled) => done += filled,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done * BLOCK_SIZE)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes())
    }

    fn making_time(&self, range: Range<u64>) -> Duration {
        let page = |at: u64| u32::try_from(at / BLOCK_SIZE as u64).unwrap_or(u32::MAX);
        let end = page(range.end.saturating_add(BLOCK_SIZE as u64 - 1));
        self.0.making_time(page(range.start)..end.min(self.0.pages()))
    }
}

/// Reads whole pages of a file, and says how many there were.
///
/// # Errors
/// What the operating system reports, before the first of them was whole.
pub(crate) fn read_pages(
    file: &dyn File,
    first: u32,
    pages: &mut [BlockBytes],
) -> io::Result<usize> {
    let buf = pages.as_flattened_mut();
    let start = u64::from(first) * BLOCK_SIZE as u64;
    let mut done = 0;
    while done < buf.len() {
        match file.read_at(&mut buf[done..], start + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if done < BLOCK_SIZE => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done / BLOCK_SIZE)
}

/// Reads one page of a file; what the file does not have of it is zeros.
///
/// # Errors
/// What the operating system reports.
pub(super) fn read_page(
    file: Option<&dyn File>,
    number: u32,
    page: &mut BlockBytes,
) -> io::Result<()> {
    let read = match file {
        Some(file) => read_pages(file, number, std::slice::from_mut(page))?,
        None => 0,
    };
    if read == 0 {
        page.fill(0);
    }
    Ok(())
}

/// A small file that is in memory.
#[derive(Debug)]
pub(crate) struct FileInMemory(pub(crate) Vec<u8>);

impl File for FileInMemory {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.0.get(from..).unwrap_or_default();
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}
