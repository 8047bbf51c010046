//! The members of an archive, found by its headers alone.
//!
//! Invariant: what is listed lies within the archive as long as it is now, each member behind the one before it; all up to the
//! archive's marked end is listed, and nothing but zeros lies behind that.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pagemill_format::backup::{PaxRecords, TAR_BLOCK, TarHeader, TarMember};

use super::fault_at;
use crate::error::{Error, Result, check_interrupt};
use crate::file_tree::{FileTree, TreeEntry};
use crate::file_window::FileWindow;
use crate::seam::File;
use crate::storage::Storage;

/// Zeros behind the last member: PostgreSQL writes two blocks, GNU tar fills up to a multiple of 20 or of what it is told.
const MOST_ZEROS: u64 = 1 << 20;

/// What is wrong with an archive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TarFault {
    /// Bytes that are no header, or that of something that is not read.
    #[error("the header behind {behind}: {cause}")]
    Header {
        /// The member before it.
        behind: String,
        /// What is wrong with it.
        cause: pagemill_format::Error,
    },
    /// A member is longer than what is left of the archive.
    #[error("member {member} has {size} bytes, of which the archive has {left}: it was cut short")]
    Cut {
        /// The member.
        member: String,
        /// Its size, in bytes.
        size: u64,
        /// Bytes there are.
        left: u64,
    },
    /// The archive ends without the blocks of zeros that mark its end.
    #[error("the archive ends behind {behind}, and its end is not marked: it was cut short")]
    NoEnd {
        /// The last member.
        behind: String,
    },
    /// Nothing follows an extended header.
    #[error("an extended header without the member that it is of")]
    NoMember,
    /// An extended header is longer than names can be.
    #[error("an extended header of {size} bytes")]
    LongExtended {
        /// Its size, in bytes.
        size: u64,
    },
    /// Something follows what marks the end.
    #[error(
        "the archive's end is marked behind {behind}, but {bytes} bytes follow: a header was zeroed, or archives were joined"
    )]
    BehindEnd {
        /// The last member.
        behind: String,
        /// Bytes behind the mark.
        bytes: u64,
    },
    /// Two members have one name.
    #[error("member {member} comes a second time")]
    Twice {
        /// The member.
        member: String,
    },
    /// The name of a member leads through a file.
    #[error("member {member} lies below another that is no directory")]
    BelowFile {
        /// The member.
        member: String,
    },
}

/// An archive that is open.
pub(super) struct Archive<'a> {
    /// What messages call it.
    pub(super) path: &'a Path,
    pub(super) file: Arc<dyn File>,
}

/// Adds all members of an archive to a tree, in the directory `at`.
pub(super) fn add_members(
    storage: &Storage,
    archive: Archive<'_>,
    tree: &mut FileTree<FileWindow>,
    at: &Path,
) -> Result<()> {
    let Archive { path, file } = archive;
    // An archive of a tablespace stands where another may have a link to it.
    tree.insert(at, TreeEntry::Directory);
    let mut headers = Headers::of(storage, path, file.as_ref())?;
    while let Some(found) = headers.next()? {
        let Placed { header, offset, start } = found;
        let name = header.display_name();
        let entry = match header.kind {
            TarMember::Directory => TreeEntry::Directory,
            TarMember::Link(target) => TreeEntry::Link(path_of(&[target])),
            TarMember::File => TreeEntry::File(FileWindow::new(file.clone(), start, header.size)),
            // It was applied to the member behind it.
            TarMember::Extended => continue,
        };
        let place = at.join(path_of(&header.name));
        if let Some(fault) = misplaced(tree, &place, &entry, &name) {
            return Err(fault_at(path, offset, fault));
        }
        tree.insert(&place, entry);
    }
    Ok(())
}

/// What hinders an entry: nothing takes the place of another, and nothing lies below what is no directory.
fn misplaced(
    tree: &FileTree<FileWindow>,
    place: &Path,
    entry: &TreeEntry<FileWindow>,
    member: &str,
) -> Option<TarFault> {
    let is_directory = |entry: &TreeEntry<FileWindow>| matches!(entry, TreeEntry::Directory);
    match tree.entry(place) {
        Some(found) if is_directory(found) && is_directory(entry) => return None,
        Some(_) => return Some(TarFault::Twice { member: member.into() }),
        None => {}
    }
    let mut above = place.ancestors().skip(1).filter_map(|above| tree.entry(above));
    let is_below_file = above.any(|above| !is_directory(above));
    is_below_file.then(|| TarFault::BelowFile { member: member.into() })
}

fn path_of(parts: &[Vec<u8>]) -> PathBuf {
    parts.iter().map(|part| OsStr::from_bytes(part)).collect()
}

/// Headers, one after the other.
struct Headers<'a> {
    storage: &'a Storage,
    path: &'a Path,
    file: &'a dyn File,
    len: u64,
    /// Where the next one lies.
    next: u64,
    /// The member before it.
    behind: String,
}

/// A header, where it lies, and where its contents begin, in bytes.
struct Placed {
    header: TarHeader,
    offset: u64,
    start: u64,
}

impl<'a> Headers<'a> {
    fn of(storage: &'a Storage, path: &'a Path, file: &'a dyn File) -> Result<Self> {
        let len = file.len().map_err(|error| Error::new(error, path))?;
        Ok(Self { storage, path, file, len, next: 0, behind: "the beginning".into() })
    }

    /// The next member, with what an extended header in front of it says.
    fn next(&mut self) -> Result<Option<Placed>> {
        let offset = self.next;
        let records = match self.next_header(PaxRecords::default())? {
            Some(Placed { header, start, .. }) if header.kind == TarMember::Extended => {
                self.records(&header, offset, start)?
            }
            found => return Ok(found),
        };
        match self.next_header(records)? {
            None => Err(fault_at(self.path, offset, TarFault::NoMember)),
            found => Ok(found),
        }
    }

    /// What an extended header says.
    fn records(&self, header: &TarHeader, offset: u64, start: u64) -> Result<PaxRecords> {
        let fault = |fault| fault_at(self.path, offset, fault);
        if header.size > PaxRecords::MOST_BYTES {
            return Err(fault(TarFault::LongExtended { size: header.size }));
        }
        // No more than was just looked at.
        let mut contents = vec![0; usize::try_from(header.size).unwrap_or_default()];
        self.read(&mut contents, start)?;
        let behind = self.behind.clone();
        PaxRecords::parse(&contents).map_err(|cause| fault(TarFault::Header { behind, cause }))
    }

    fn next_header(&mut self, records: PaxRecords) -> Result<Option<Placed>> {
        check_interrupt(self.path)?;
        let offset = self.next;
        let fault = |fault| fault_at(self.path, offset, fault);
        let mut block = [0; TAR_BLOCK];
        if self.read(&mut block, offset)? < TAR_BLOCK {
            return Err(fault(TarFault::NoEnd { behind: self.behind.clone() }));
        }
        let parsed = TarHeader::parse(&block);
        let behind = self.behind.clone();
        let Some(header) = parsed.map_err(|cause| fault(TarFault::Header { behind, cause }))?
        else {
            self.check_end()?;
            return Ok(None);
        };
        let header = records.applied_to(header);
        let start = offset + TAR_BLOCK as u64;
        let left = self.len.saturating_sub(start);
        match header.padded_size() {
            Some(padded) if padded <= left => self.next = start + padded,
            _ => {
                let (member, size) = (header.display_name(), header.size);
                return Err(fault(TarFault::Cut { member, size, left }));
            }
        }
        self.behind = format!("member {}", header.display_name());
        Ok(Some(Placed { header, offset, start }))
    }

    /// Looks at what lies behind the mark of the end.
    fn check_end(&self) -> Result<()> {
        let rest = self.next + TAR_BLOCK as u64;
        let bytes = self.len.saturating_sub(rest);
        let is_zeros = bytes <= MOST_ZEROS && {
            let mut zeros = vec![0; usize::try_from(bytes).unwrap_or_default()];
            self.read(&mut zeros, rest)?;
            zeros.iter().all(|&byte| byte == 0)
        };
        match is_zeros {
            true => Ok(()),
            false => {
                let fault = TarFault::BehindEnd { behind: self.behind.clone(), bytes };
                Err(fault_at(self.path, self.next, fault))
            }
        }
    }

    fn read(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let read = self.storage.read_fully_at(self.file, buf, offset);
        read.map_err(|error| Error::new(error, self.path).with_offset(offset))
    }
}
