//! A timeline's history: which timelines led to it, and where each was left.
//!
//! Each line of a history file (`00000003.history`) is a parent, a tab, and where it was left; the rest of the line
//! is for people. Timeline 1 has no file, and a timeline whose file is missing has no known parents.
//!
//! Invariants: parts ascend; each begins where the one before ends; the last one has no end.
//!
//! Source: `readTimeLineHistory` in `src/backend/access/transam/timeline.c`, PostgreSQL 14 to 18.

use crate::error::{Error, Result};
use crate::ids::Lsn;

const STRUCTURE: &str = "timeline history";

/// A timeline with those before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineHistory {
    parts: Vec<TimelinePart>,
}

/// A timeline's part of the way to the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimelinePart {
    /// The timeline.
    pub timeline: u32,
    /// Where it begins; 0 for the first.
    pub begin: Lsn,
    /// Where it is left; `None` for the last.
    pub end: Option<Lsn>,
}

impl TimelineHistory {
    /// The history of a timeline of which no parents are known.
    pub fn without_parents(timeline: u32) -> Self {
        Self { parts: vec![TimelinePart { timeline, begin: Lsn(0), end: None }] }
    }

    /// Reads the history file of `timeline`.
    ///
    /// # Errors
    /// Corrupt: a line without a timeline and an LSN, or timelines that do not ascend.
    pub fn parse(timeline: u32, bytes: &[u8]) -> Result<Self> {
        let text = String::from_utf8_lossy(bytes);
        let mut parts: Vec<TimelinePart> = Vec::new();
        let mut begin = Lsn(0);
        for line in text.lines() {
            let line = line.trim_start();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (parent, end) = parent(line).ok_or_else(|| {
                corrupt(format!("{line:?} does not begin with a timeline and an LSN"))
            })?;
            if parts.last().is_some_and(|last| last.timeline >= parent) || parent >= timeline {
                return Err(corrupt(format!("timeline {parent} is out of order")));
            }
            parts.push(TimelinePart { timeline: parent, begin, end: Some(end) });
            begin = end;
        }
        parts.push(TimelinePart { timeline, begin, end: None });
        Ok(Self { parts })
    }

    /// The name of a timeline's file.
    pub fn file_name(timeline: u32) -> String {
        format!("{timeline:08X}.history")
    }

    /// The timeline whose history it is.
    pub fn timeline(&self) -> u32 {
        self.parts.last().map_or(0, |last| last.timeline)
    }

    /// All timelines on the way, the oldest first.
    pub fn parts(&self) -> &[TimelinePart] {
        &self.parts
    }

    /// The part of one timeline; `None` when the way does not lead over it.
    pub fn part(&self, timeline: u32) -> Option<TimelinePart> {
        self.parts.iter().copied().find(|part| part.timeline == timeline)
    }

    /// The timeline that the byte at `lsn` was written on.
    pub fn timeline_at(&self, lsn: Lsn) -> u32 {
        let found = self.parts.iter().find(|part| part.end.is_none_or(|end| lsn < end));
        found.map_or_else(|| self.timeline(), |part| part.timeline)
    }
}

fn parent(line: &str) -> Option<(u32, Lsn)> {
    let mut fields = line.split_ascii_whitespace();
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

fn corrupt(what: String) -> Error {
    Error::corrupt(STRUCTURE, 0, what)
}
