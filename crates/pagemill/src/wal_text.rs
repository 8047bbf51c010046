//! A WAL record on one line, as `pg_waldump` prints it, and its block references on lines of their own where
//! these are asked for.

use std::fmt::Write as _;

use pagemill_format::wal::{BlockImage, BlockReference, ImageCompression, Record};
use pagemill_format::{BLOCK_SIZE, Fork, Lsn, PgVersion};
use pagemill_wal::record_description;

/// Appends the beginning of the line, which [`push_blocks`] ends.
pub(crate) fn push(record: &Record<'_>, lsn: Lsn, version: PgVersion, text: &mut String) {
    // Writing to memory cannot fail.
    let _ = write_line(record, lsn, version, text);
}

/// Appends the block references, in detail on lines of their own.
pub(crate) fn push_blocks(record: &Record<'_>, details: bool, text: &mut String) {
    for block in &record.blocks {
        let _ = match details {
            true => write_details(block, text),
            false => write_reference(block, text),
        };
    }
    text.push('\n');
}

fn write_line(
    record: &Record<'_>,
    lsn: Lsn,
    version: PgVersion,
    text: &mut String,
) -> std::fmt::Result {
    let header = &record.header;
    let total = header.total_len as usize;
    let own = total - record.image_bytes();
    let (manager, xid) = (header.resource_manager.name(), header.xid);
    write!(text, "rmgr: {manager:<11} len (rec/tot): {own:>6}/{total:>6}, tx: {xid:>10}, ")?;
    write!(text, "lsn: {}, prev {}, ", Padded(lsn), Padded(header.prev))?;
    write!(text, "desc: {} ", header.record_name(version))?;
    match record_description(record, version) {
        Ok(told) => text.push_str(&told),
        Err(error) => write!(text, "({error})")?,
    }
    Ok(())
}

fn write_reference(block: &BlockReference<'_>, text: &mut String) -> std::fmt::Result {
    write!(text, ", blkref #{}: rel {}", block.id, block.locator)?;
    if block.fork != Fork::Main {
        write!(text, " fork {}", block.fork)?;
    }
    write!(text, " blk {}", block.block)?;
    match &block.image {
        Some(image) if image.apply => text.push_str(" FPW"),
        Some(_) => text.push_str(" FPW for WAL verification"),
        None => {}
    }
    Ok(())
}

fn write_details(block: &BlockReference<'_>, text: &mut String) -> std::fmt::Result {
    let BlockReference { id, locator, fork, block: number, .. } = block;
    write!(text, "\n\tblkref #{id}: rel {locator} fork {fork} blk {number}")?;
    block.image.as_ref().map_or(Ok(()), |image| write_image(image, text))
}

fn write_image(image: &BlockImage<'_>, text: &mut String) -> std::fmt::Result {
    let purpose = if image.apply { "" } else { " for WAL verification" };
    let (offset, length) = (image.hole_offset, image.hole_length);
    write!(text, " (FPW{purpose}); hole: offset: {offset}, length: {length}")?;
    if image.compression == ImageCompression::Off {
        return Ok(());
    }
    let saved = BLOCK_SIZE - usize::from(length).min(BLOCK_SIZE);
    let saved = saved.saturating_sub(image.data.len());
    write!(text, ", compression saved: {saved}, method: {}", image.compression.name())
}

/// A place in the WAL with all digits of its lower half.
struct Padded(Lsn);

impl std::fmt::Display for Padded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:X}/{:08X}", self.0.0 >> 32, self.0.0 & 0xFFFF_FFFF)
    }
}
