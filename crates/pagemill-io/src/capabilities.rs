//! What a file system and a file can do, as far as that decides how files are best read: [`Capabilities`] and
//! [`FileCapabilities`].
//!
//! Why per file too: a file system that lays changed pages over files may have some that can be mapped as ever, and some that
//! cannot, side by side.
//!
//! Invariant: none of it is needed for a right result; a call that a file has not got says so all the same.

/// What a file system is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Its files are this machine's, so that a process that one of them names (`postmaster.pid`) is one that runs here.
    pub of_this_machine: bool,
    /// Each call takes long, however little it brings, as over a network: many have to be in flight at once.
    pub distant: bool,
    /// It has a queue of its own ([`QueueKind::Own`](crate::QueueKind::Own)).
    pub own_queue: bool,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self { of_this_machine: true, distant: false, own_queue: false }
    }
}

/// What a file can do. The default is nothing but to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileCapabilities {
    /// It can be mapped into memory.
    pub map: bool,
    /// It tells how much of it is in the page cache.
    pub residency: bool,
    /// It takes advice about what will be read.
    pub advise: bool,
    /// The kernel reads and writes it through a ring; other files are read by the thread that hands them to one.
    pub ring: bool,
    /// It may share blocks with others of its kind.
    pub share_blocks: bool,
}

impl FileCapabilities {
    /// All of it, as the operating system's files have.
    pub const ALL: Self =
        Self { map: true, residency: true, advise: true, ring: true, share_blocks: true };
}
