//! Time zones: what a clock on the wall showed, and which moment that was.
//!
//! A [`Zone`] comes from a compiled file of the IANA database ([`Zone::from_tzif`]) or from a rule in
//! POSIX's notation ([`Zone::from_posix`]). Both end as one sorted list of transitions. What follows
//! the last one of a file, by the rule at its end, is laid out for as many years as PostgreSQL does
//! and repeats every 400 years after that.
//!
//! Invariants: transitions ascend and each has a kind; every kind's name lies within `names`; there
//! is at least one kind. Times are seconds from 1970-01-01 UTC, offsets seconds east of Greenwich.
//! Ambiguous and missing local times are decided as the server decides them.
//!
//! Sources: `src/timezone/localtime.c`, `src/timezone/tzfile.h` and `DetermineTimeZoneOffsetInternal`
//! in `src/backend/utils/adt/datetime.c`, PostgreSQL 14 to 18.

mod posix;
mod tzif;

#[cfg(test)]
mod tests;

use crate::datetime::UNIX_SECONDS;

const SECONDS_PER_DAY: i64 = 86_400;
/// After so many seconds the Gregorian calendar repeats: 400 years.
const REPEAT: i64 = 400 * 31_556_952;
/// Transitions kept of a zone at most.
const MOST_TRANSITIONS: usize = 2000;

/// What clocks of a zone show during one stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalTimeKind {
    /// Seconds east of Greenwich.
    pub east: i32,
    /// True for daylight-saving time.
    pub is_daylight: bool,
    /// Where the abbreviation begins in the zone's names.
    name: usize,
}

/// A local time, decided: its offset and the moment it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolvedTime {
    /// Seconds east of Greenwich.
    pub east: i32,
    /// Seconds from 1970-01-01 UTC.
    pub utc: i64,
}

/// What an abbreviation means in a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbbreviationMeaning {
    /// Always the same.
    Fixed(LocalTimeKind),
    /// One thing at one time, another at another.
    Changing,
}

/// One time zone.
#[derive(Debug, Clone)]
pub struct Zone {
    /// When clocks changed, ascending, and to which of `kinds`.
    transitions: Vec<(i64, u8)>,
    kinds: Vec<LocalTimeKind>,
    /// Abbreviations, each ended by a NUL.
    names: Vec<u8>,
    /// The kind before the first transition.
    first: LocalTimeKind,
    repeats_before: bool,
    repeats_after: bool,
    /// Leap seconds that its times count until 2000; none where it keeps POSIX's time.
    leap_seconds: i64,
}

fn capitals(name: &[u8]) -> impl Iterator<Item = u8> {
    name.iter().map(u8::to_ascii_uppercase)
}

/// The 400 years, or times 400 years, that so many seconds (at least one) reach into.
fn cycles(seconds: i64) -> i64 {
    ((seconds - 1) / REPEAT + 1).saturating_mul(REPEAT)
}

/// A change of clocks and what they showed on both sides of it.
struct Boundary {
    at: i64,
    before: LocalTimeKind,
    after: LocalTimeKind,
}

impl Zone {
    /// Greenwich, by the name that needs no file.
    pub fn gmt() -> Self {
        let kind = LocalTimeKind { east: 0, is_daylight: false, name: 0 };
        Self::of_kinds(vec![kind], b"GMT\0".to_vec(), kind)
    }

    fn of_kinds(kinds: Vec<LocalTimeKind>, names: Vec<u8>, first: LocalTimeKind) -> Self {
        let transitions = Vec::new();
        let (repeats_before, repeats_after, leap_seconds) = (false, false, 0);
        Self { transitions, kinds, names, first, repeats_before, repeats_after, leap_seconds }
    }

    /// The kind of time at a moment.
    pub fn at(&self, utc: i64) -> LocalTimeKind {
        let utc = utc.saturating_sub(self.shift_into_list(utc));
        match self.transitions_until(utc).checked_sub(1) {
            Some(last) => self.kind_after(last),
            None => self.first,
        }
    }

    /// The abbreviation of what clocks of this zone show, as the zone has it.
    pub fn name_of(&self, kind: LocalTimeKind) -> &str {
        let names = self.names.get(kind.name..).unwrap_or_default();
        let name = names.split(|&byte| byte == 0).next().unwrap_or_default();
        std::str::from_utf8(name).unwrap_or_default()
    }

    /// The moment at which clocks showed a local time, given in seconds from 1970-01-01 as if it
    /// were UTC. A time that clocks skipped is read by the offset before the gap, one that they
    /// showed twice is the second.
    pub fn resolve(&self, local: i64) -> ResolvedTime {
        // Offsets are less than a day, and clocks do not change twice within two days.
        let (kind, boundary) = self.next_boundary(local.saturating_sub(SECONDS_PER_DAY));
        let by = |kind: LocalTimeKind| ResolvedTime {
            east: kind.east,
            utc: local.saturating_sub(kind.east.into()),
        };
        let Some(Boundary { at, before, after }) = boundary else { return by(kind) };
        let (early, late) = (by(before), by(after));
        if early.utc < at && late.utc < at {
            early
        } else if early.utc > at && late.utc >= at {
            late
        } else if early.utc > late.utc {
            early
        } else {
            late
        }
    }

    /// Whether a session may choose it: a minute of its clocks begins with one of UTC, which is not so where leap seconds are
    /// counted.
    ///
    /// Source: `pg_tz_acceptable` in `src/timezone/localtime.c`, PostgreSQL 14 to 18.
    pub fn is_acceptable(&self) -> bool {
        (i64::from(self.at(UNIX_SECONDS).east) - self.leap_seconds) % 60 == 0
    }

    /// The offset of a zone that never had another one, in seconds east.
    pub fn only_offset(&self) -> Option<i32> {
        let east = self.first_kind().east;
        self.kinds.iter().all(|kind| kind.east == east).then_some(east)
    }

    /// What an abbreviation (in any case; zones have it in capitals) meant at a moment, or last
    /// before it, or else first after it; nothing when the zone does not use it.
    pub fn abbreviation_at(&self, abbreviation: &[u8], utc: i64) -> Option<LocalTimeKind> {
        let name = self.name_position(abbreviation)?;
        let is_it = |position: &usize| self.kind_after(*position).name == name;
        let cutoff = self.transitions_until(utc);
        let before = (0..cutoff).rev().find(is_it);
        let found = before.or_else(|| (cutoff..self.transitions.len()).find(is_it))?;
        Some(self.kind_after(found))
    }

    /// What an abbreviation (in any case) means in this zone, if the zone knows it.
    pub fn abbreviation(&self, abbreviation: &[u8]) -> Option<AbbreviationMeaning> {
        let name = self.name_position(abbreviation)?;
        let mut uses = self.kinds.iter().filter(|kind| kind.name == name);
        let first = *uses.next()?;
        let fixed = uses.all(|other| *other == first);
        Some(if fixed { AbbreviationMeaning::Fixed(first) } else { AbbreviationMeaning::Changing })
    }

    /// Where the names have this one, from its first letter on.
    fn name_position(&self, abbreviation: &[u8]) -> Option<usize> {
        let is_it = |name: &[u8]| name.iter().copied().eq(capitals(abbreviation));
        let mut position = 0;
        for name in self.names.split(|&byte| byte == 0) {
            if position < self.names.len() && is_it(name) {
                return Some(position);
            }
            position += name.len() + 1;
        }
        None
    }

    /// The kind in force at a moment, and the next transition after it.
    fn next_boundary(&self, utc: i64) -> (LocalTimeKind, Option<Boundary>) {
        let shift = self.shift_into_list(utc);
        let next = self.transitions_until(utc.saturating_sub(shift));
        let before = match next.checked_sub(1) {
            Some(last) => self.kind_after(last),
            None => self.first_kind(),
        };
        let boundary = self.transitions.get(next).map(|(at, _)| {
            let after = self.kind_after(next);
            Boundary { at: at.saturating_add(shift), before, after }
        });
        (before, boundary)
    }

    /// How many transitions lie at or before a moment.
    fn transitions_until(&self, utc: i64) -> usize {
        self.transitions.partition_point(|(at, _)| *at <= utc)
    }

    fn kind_after(&self, transition: usize) -> LocalTimeKind {
        let kind = self.transitions.get(transition).map(|(_, kind)| usize::from(*kind));
        kind.and_then(|kind| self.kinds.get(kind)).copied().unwrap_or(self.first)
    }

    /// The lowest-numbered standard time, else the lowest-numbered kind.
    fn first_kind(&self) -> LocalTimeKind {
        let standard = self.kinds.iter().find(|kind| !kind.is_daylight);
        standard.or(self.kinds.first()).copied().unwrap_or(self.first)
    }

    /// What to take off a moment outside of the list, so that it falls where the list repeats.
    fn shift_into_list(&self, utc: i64) -> i64 {
        let (Some((first, _)), Some((last, _))) =
            (self.transitions.first(), self.transitions.last())
        else {
            return 0;
        };
        if self.repeats_before && utc < *first {
            -cycles(first.saturating_sub(utc))
        } else if self.repeats_after && utc > *last {
            cycles(utc.saturating_sub(*last))
        } else {
            0
        }
    }

    /// Sees whether the list repeats before its begin or after its end.
    fn note_repeats(&mut self) {
        let same = |one: u8, other: u8| {
            let kind = |number: u8| self.kinds.get(usize::from(number));
            kind(one) == kind(other)
        };
        let (Some(first), Some(last)) = (self.transitions.first(), self.transitions.last()) else {
            return;
        };
        let repeats = |from: &(i64, u8), to: &(i64, u8)| {
            from.0.checked_add(REPEAT) == Some(to.0) && same(from.1, to.1)
        };
        self.repeats_before = self.transitions.iter().any(|later| repeats(first, later));
        self.repeats_after = self.transitions.iter().any(|earlier| repeats(earlier, last));
    }
}
