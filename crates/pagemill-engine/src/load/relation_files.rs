//! New files for a relation, in place of those it has.
//!
//! A relation that is not logged has an init fork beside: what a server copies over the main fork after a crash. It is an
//! empty table or index, the same in every file, so that of the old files is copied. It alone of such a relation is logged,
//! as standbys need it, and never the main fork, whose being there would keep a standby from being promoted.
//!
//! Source: `heapam_relation_set_new_filelocator` in `src/backend/access/heap/heapam_handler.c`, `btbuildempty` in
//! `src/backend/access/nbtree/nbtree.c`, `src/backend/storage/file/reinit.c`, PostgreSQL 14 to 18.

use pagemill_cluster::ClassRow;
use pagemill_cluster::change::ClusterChange;
use pagemill_format::wal::RelFileLocator;
use pagemill_format::{BLOCK_SIZE, BlockNumber, Fork};
use pagemill_wal::ForkKey;

use super::fork_writer::{ForkWriter, Writing};
use super::plan::LoadOptions;
use crate::error::{Error, Result};
use crate::heap_files::page_run::PIECE_BLOCKS;
use crate::refusal::LoadRefusal;

/// How new files are written in pieces of so many blocks.
pub(super) fn writing(is_unlogged: bool, options: &LoadOptions, piece_blocks: usize) -> Writing {
    let (wal, read_back) = (options.wal && !is_unlogged, options.read_back.clone());
    Writing { wal, settings: options.writing, piece_blocks, read_back }
}

/// A number for new files of a relation, and its init fork, where it has one.
///
/// # Errors
/// When they cannot be made, or an init fork that should be there is missing.
pub(super) fn new_files(
    change: &mut ClusterChange,
    class: &ClassRow,
    is_unlogged: bool,
    options: &LoadOptions,
) -> Result<RelFileLocator> {
    let tablespace = change.files_of(class.oid)?.tablespace;
    if !is_unlogged {
        let [file] = change.new_files(&[tablespace])?[..] else {
            unreachable!("one tablespace gets one new file")
        };
        return Ok(file);
    }
    let file = change.new_unlogged_files(tablespace)?;
    let base = change.database().base_path(class)?;
    let Some(init) = change.database().cluster().fork(&base, Fork::Init)? else {
        let name = String::from_utf8_lossy(&class.name).into_owned();
        return Err(Error::refused(LoadRefusal::NoInitFork { base, name }));
    };
    let how = Writing { wal: true, ..writing(is_unlogged, options, PIECE_BLOCKS) };
    let mut writer =
        ForkWriter::new_file(change, ForkKey { locator: file, fork: Fork::Init }, 0, how)?;
    let mut page = Box::new([0; BLOCK_SIZE]);
    for block in (0..init.blocks()).map(BlockNumber) {
        init.read_block(block, &mut page).map_err(pagemill_cluster::Error::from)?;
        writer.add_page(change, block, &page)?;
    }
    writer.flush(change)?;
    writer.finish()?;
    Ok(file)
}
