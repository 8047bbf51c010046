//! PostgreSQL's identifiers and sizes as types of their own, so that a block number is never
//! taken for a block count, nor a transaction id for an OID.
//!
//! Sources: `src/include/pg_config.h` (BLCKSZ, RELSEG_SIZE as built by every distribution),
//! `src/include/storage/block.h`, `src/include/common/relpath.h`, `src/include/access/transam.h`,
//! PostgreSQL 14 to 18.

use std::fmt;
use std::str::FromStr;

/// Bytes in a block.
pub const BLOCK_SIZE: usize = 8192;
/// Blocks in a full segment file (1 GiB).
pub const SEGMENT_BLOCKS: u32 = 131_072;
/// Bytes in a full segment file.
pub const SEGMENT_BYTES: u64 = SEGMENT_BLOCKS as u64 * BLOCK_SIZE as u64;
const _: () = assert!(SEGMENT_BYTES == 1 << 30);

/// The bytes of one block.
pub type BlockBytes = [u8; BLOCK_SIZE];

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// The number of a block within one fork of a relation, counted over all its segments.
    BlockNumber(u32)
}
id! {
    /// An object identifier; 0 is "none".
    Oid(u32)
}
id! {
    /// A transaction id of 32 bits, as tuples carry it.
    TransactionId(u32)
}
id! {
    /// A multixact id.
    MultiXactId(u32)
}

impl Oid {
    /// "No object".
    pub const INVALID: Self = Self(0);

    /// False for 0.
    pub fn is_valid(self) -> bool {
        self.0 != 0
    }
}

impl TransactionId {
    /// "No transaction".
    pub const INVALID: Self = Self(0);
    /// The transaction of initdb, always committed.
    pub const BOOTSTRAP: Self = Self(1);
    /// The id that VACUUM FREEZE once wrote, older than every other, always committed.
    pub const FROZEN: Self = Self(2);
    /// The first id a real transaction can have.
    pub const FIRST_NORMAL: Self = Self(3);

    /// True for ids that real transactions have (3 and up).
    pub fn is_normal(self) -> bool {
        self >= Self::FIRST_NORMAL
    }

    /// `self < other` in the circular order of 32-bit ids (`TransactionIdPrecedes`).
    pub fn precedes(self, other: Self) -> bool {
        if !self.is_normal() || !other.is_normal() {
            return self.0 < other.0;
        }
        (self.0.wrapping_sub(other.0) as i32) < 0
    }
}

/// A position in the WAL, printed as PostgreSQL prints `pg_lsn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xFFFF_FFFF)
    }
}

/// As PostgreSQL prints it: `1F/2A000028`.
impl FromStr for Lsn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let part = |digits: &str| {
            let fits =
                (1..=8).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
            u32::from_str_radix(digits, 16).ok().filter(|_| fits)
        };
        let parts = text.split_once('/').and_then(|(high, low)| Some((part(high)?, part(low)?)));
        let (high, low) =
            parts.ok_or_else(|| format!("{text:?} is no LSN, as 0/16B3748 is one"))?;
        Ok(Self(u64::from(high) << 32 | u64::from(low)))
    }
}

/// Which of a relation's files: the rows, the free-space map, the visibility map, or the
/// initial contents of an unlogged relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fork {
    /// The relation's own data.
    Main,
    /// The free-space map.
    Fsm,
    /// The visibility map.
    Vm,
    /// What an unlogged relation is reset to after a crash.
    Init,
}

impl Fork {
    /// Every fork, in the order of PostgreSQL's fork numbers.
    pub const ALL: [Self; 4] = [Self::Main, Self::Fsm, Self::Vm, Self::Init];

    /// The name PostgreSQL gives the fork (`forkNames` in `src/common/relpath.c`).
    pub fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Fsm => "fsm",
            Self::Vm => "vm",
            Self::Init => "init",
        }
    }

    /// What the fork's file name has after the relfilenode.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Fsm => "_fsm",
            Self::Vm => "_vm",
            Self::Init => "_init",
        }
    }
}

impl fmt::Display for Fork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A PostgreSQL major version this build reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PgVersion {
    /// PostgreSQL 14.
    V14,
    /// PostgreSQL 15.
    V15,
    /// PostgreSQL 16.
    V16,
    /// PostgreSQL 17.
    V17,
    /// PostgreSQL 18.
    V18,
}

impl PgVersion {
    /// Every version, oldest first.
    pub const ALL: [Self; 5] = [Self::V14, Self::V15, Self::V16, Self::V17, Self::V18];

    /// The major number: 14 to 18.
    pub fn major(self) -> u32 {
        match self {
            Self::V14 => 14,
            Self::V15 => 15,
            Self::V16 => 16,
            Self::V17 => 17,
            Self::V18 => 18,
        }
    }

    /// The version of this major number, if this build reads it.
    pub fn from_major(major: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|v| v.major() == major)
    }
}

impl fmt::Display for PgVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.major().fmt(f)
    }
}

/// The physical address of a tuple: block and line pointer (from 1), printed as PostgreSQL
/// prints `tid`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tid {
    /// Block of the main fork.
    pub block: BlockNumber,
    /// Line pointer number in that block, counted from 1.
    pub line_pointer: u16,
}

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{})", self.block, self.line_pointer)
    }
}
