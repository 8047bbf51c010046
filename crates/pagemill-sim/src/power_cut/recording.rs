//! The recording: every change in order, what went wrong, and which file is called what.
//!
//! Invariants: a change that failed is recorded as failed, and takes a number all the same; a file keeps its number
//! whatever it is called; a number is given to a file when it is first changed or renamed.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::WriteFault;

/// Which file, whatever it is called.
pub(super) type FileNumber = usize;

/// One change. Paths are those within the recorded directory.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Create {
        path: PathBuf,
        file: FileNumber,
    },
    Write {
        file: FileNumber,
        offset: u64,
        bytes: Arc<[u8]>,
    },
    Allocate {
        file: FileNumber,
        range: Range<u64>,
    },
    /// Space taken without a change that anybody could see.
    Reserve {
        file: FileNumber,
        range: Range<u64>,
    },
    SetLen {
        file: FileNumber,
        len: u64,
    },
    Sync {
        file: FileNumber,
    },
    WriteBack {
        file: FileNumber,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
        file: FileNumber,
    },
    Remove {
        path: PathBuf,
    },
    CreateDir {
        path: PathBuf,
    },
    RemoveDir {
        path: PathBuf,
    },
    Link {
        path: PathBuf,
        target: PathBuf,
    },
    SyncDir {
        path: PathBuf,
    },
}

/// A change and what became of it.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) change: Change,
    pub(super) done: bool,
}

/// What was done so far.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) directory: PathBuf,
    pub(super) snapshot: PathBuf,
    pub(super) made: Vec<Call>,
    /// What each file was called when it got its number, if it was there at the beginning.
    pub(super) origins: Vec<Option<PathBuf>>,
    names: HashMap<PathBuf, FileNumber>,
    faults: HashMap<usize, WriteFault>,
    full: bool,
    read_only: bool,
}

impl Recording {
    pub(super) fn new(directory: PathBuf, snapshot: PathBuf) -> Self {
        Self {
            directory,
            snapshot,
            made: Vec::new(),
            origins: Vec::new(),
            names: HashMap::new(),
            faults: HashMap::new(),
            full: false,
            read_only: false,
        }
    }

    pub(super) fn calls(&self) -> usize {
        self.made.len()
    }

    pub(super) fn fail(&mut self, call: usize, fault: WriteFault) {
        self.faults.insert(call, fault);
    }

    /// A number for a file that is about to be made.
    pub(super) fn new_file(&mut self) -> FileNumber {
        self.origins.push(None);
        self.origins.len() - 1
    }

    /// The number of the file of that name, which is there.
    pub(super) fn file_of(&mut self, path: &Path) -> FileNumber {
        if let Some(number) = self.names.get(path) {
            return *number;
        }
        self.origins.push(Some(path.to_owned()));
        self.names.insert(path.to_owned(), self.origins.len() - 1);
        self.origins.len() - 1
    }

    /// Refuses what would open a file for writing where nothing can be written.
    pub(super) fn check_writable(&self) -> io::Result<()> {
        if self.read_only { Err(Errno::ROFS.into()) } else { Ok(()) }
    }

    /// Makes a change, unless it is to fail, and records it.
    pub(super) fn perform<T>(
        &mut self,
        change: Change,
        act: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let outcome = self.fault(&change).map_or_else(act, |errno| Err(errno.into()));
        let done = outcome.is_ok();
        if done {
            self.take_names(&change);
        }
        self.made.push(Call { change, done });
        outcome
    }

    /// The error that the next call is to fail with.
    fn fault(&mut self, change: &Change) -> Option<Errno> {
        let fault = self.faults.remove(&self.made.len());
        self.full |= fault == Some(WriteFault::NoSpaceFromHere);
        self.read_only |= fault == Some(WriteFault::ReadOnlyFromHere);
        let no_space = self.full || fault == Some(WriteFault::NoSpace);
        match fault {
            Some(WriteFault::Failed) => Some(Errno::IO),
            _ if self.read_only && !matches!(change, Change::WriteBack { .. }) => Some(Errno::ROFS),
            _ if no_space && change.needs_space() => Some(Errno::NOSPC),
            _ => None,
        }
    }

    fn take_names(&mut self, change: &Change) {
        match change {
            Change::Create { path, file } => {
                self.names.insert(path.clone(), *file);
            }
            Change::Rename { from, to, file } => {
                self.names.remove(from);
                self.names.insert(to.clone(), *file);
            }
            Change::Remove { path } => {
                self.names.remove(path);
            }
            _ => {}
        }
    }

    /// A call in words.
    pub(super) fn describe(&self, call: usize) -> String {
        let Some(Call { change, done }) = self.made.get(call) else {
            return format!("after call {}", self.made.len());
        };
        let failed = if *done { "" } else { " (failed)" };
        format!("call {call}: {}{failed}", self.words(change))
    }

    fn words(&self, change: &Change) -> String {
        let name = |path: &Path| path.display().to_string();
        let of =
            |file: &FileNumber| self.name_of(*file).map_or("a file".to_owned(), |path| name(&path));
        match change {
            Change::Create { path, .. } => format!("create {}", name(path)),
            Change::Write { file, offset, bytes } => {
                format!("write {} bytes of {} at {offset}", bytes.len(), of(file))
            }
            Change::Allocate { file, range } => format!("allocate {range:?} of {}", of(file)),
            Change::Reserve { file, range } => format!("reserve {range:?} of {}", of(file)),
            Change::SetLen { file, len } => format!("cut {} at {len}", of(file)),
            Change::Sync { file } => format!("sync {}", of(file)),
            Change::WriteBack { file } => format!("write back {}", of(file)),
            Change::Rename { from, to, .. } => format!("rename {} to {}", name(from), name(to)),
            Change::Remove { path } => format!("remove {}", name(path)),
            Change::CreateDir { path } => format!("create directory {}", name(path)),
            Change::RemoveDir { path } => format!("remove directory {}", name(path)),
            Change::Link { path, .. } => format!("link {}", name(path)),
            Change::SyncDir { path } => format!("sync directory {}", name(path)),
        }
    }

    /// What a file was first called.
    fn name_of(&self, file: FileNumber) -> Option<PathBuf> {
        let made = self.made.iter().find_map(|call| match &call.change {
            Change::Create { path, file: number } if *number == file => Some(path.clone()),
            _ => None,
        });
        made.or_else(|| self.origins.get(file).cloned().flatten())
    }
}

impl Change {
    fn needs_space(&self) -> bool {
        matches!(
            self,
            Self::Create { .. }
                | Self::Write { .. }
                | Self::Allocate { .. }
                | Self::Reserve { .. }
                | Self::CreateDir { .. }
                | Self::Link { .. }
        )
    }

    /// Up to where the file is at least, in bytes, once it was made; 0 where it is no matter of size.
    pub(super) fn end(&self) -> u64 {
        match self {
            Self::Write { offset, bytes, .. } => offset.saturating_add(bytes.len() as u64),
            Self::Allocate { range, .. } => range.end,
            Self::SetLen { len, .. } => *len,
            _ => 0,
        }
    }

    /// The file whose bytes or size it changes, or makes durable.
    pub(super) fn file(&self) -> Option<FileNumber> {
        match self {
            Self::Write { file, .. }
            | Self::Allocate { file, .. }
            | Self::SetLen { file, .. }
            | Self::Sync { file } => Some(*file),
            _ => None,
        }
    }
}
