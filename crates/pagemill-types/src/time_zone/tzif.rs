//! Compiled zone files, as `zic` writes them (RFC 8536, versions 1 to 4).
//!
//! ```text
//! header | data with 4-byte times | header | data with 8-byte times | \n rule \n
//! ```
//!
//! Only the second part is read where there is one. Numbers are big-endian. Limits are PostgreSQL's:
//! what it refuses to load is refused here, so that the two know the same zones.
//! Source: `tzloadbody` in `src/timezone/localtime.c`, PostgreSQL 14 to 18.

use pagemill_format::error::{Error, Result};
use pagemill_format::reader::Reader;

use super::{LocalTimeKind, MOST_TRANSITIONS, Zone};
use crate::datetime::UNIX_SECONDS;

const STRUCTURE: &str = "time zone";
const MAGIC: &[u8; 4] = b"TZif";
const MOST_KINDS: usize = 256;
const MOST_NAME_BYTES: usize = 50;
const MOST_LEAPS: usize = 50;

/// How many there are of each part of the data.
struct Counts {
    ut_flags: usize,
    standard_flags: usize,
    leaps: usize,
    transitions: usize,
    kinds: usize,
    name_bytes: usize,
}

impl Zone {
    /// Reads a compiled zone file.
    ///
    /// # Errors
    /// When it is no such file, or one that PostgreSQL would not load.
    pub fn from_tzif(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(STRUCTURE, bytes);
        let version = read_magic(&mut reader)?;
        let counts = Counts::read(&mut reader)?;
        if version == 0 {
            let (zone, _) = read_data(&mut reader, &counts, 4)?;
            return finish(zone);
        }
        reader.bytes(counts.len(4))?;
        read_magic(&mut reader)?;
        let counts = Counts::read(&mut reader)?;
        let (mut zone, leaps) = read_data(&mut reader, &counts, 8)?;
        if let [b'\n', rule @ .., b'\n'] = reader.rest() {
            zone.append_rule(rule, &leaps);
        }
        finish(zone)
    }

    /// Lays out the rule that holds after the last transition.
    fn append_rule(&mut self, rule: &[u8], leaps: &[(i64, i32)]) {
        let Some(tail) = Self::from_posix(rule) else { return };
        if self.kinds.len() + 2 > MOST_KINDS || !self.adopt_names(&tail) {
            return;
        }
        let offset = self.kinds.len() as u8 - tail.kinds.len() as u8;
        while let [.., (_, one), (_, other)] = self.transitions[..]
            && one == other
        {
            self.transitions.pop();
        }
        let end = self.transitions.last().map(|(at, _)| *at);
        let room = MOST_TRANSITIONS - self.transitions.len().min(MOST_TRANSITIONS);
        let corrected =
            tail.transitions.iter().map(|(at, kind)| (at.saturating_add(leap(leaps, *at)), *kind));
        let later = corrected.skip_while(|(at, _)| end.is_some_and(|end| *at <= end));
        self.transitions.extend(later.take(room).map(|(at, kind)| (at, kind + offset)));
    }

    /// Adds the kinds of a rule with their names, which are shared where they are known already.
    fn adopt_names(&mut self, tail: &Self) -> bool {
        let known = self.names.len();
        let mut names = self.names.clone();
        let mut kinds = Vec::with_capacity(tail.kinds.len());
        for kind in &tail.kinds {
            let name = name_at(&tail.names, kind.name);
            let name = match (0..known).find(|&start| name_at(&self.names, start) == name) {
                Some(start) => start,
                None if names.len() + name.len() < MOST_NAME_BYTES => {
                    let start = names.len();
                    names.extend_from_slice(name);
                    names.push(0);
                    start
                }
                None => return false,
            };
            kinds.push(LocalTimeKind { name, ..*kind });
        }
        self.names = names;
        self.kinds.extend(kinds);
        true
    }
}

/// The correction for leap seconds at a moment.
fn leap(leaps: &[(i64, i32)], at: i64) -> i64 {
    leaps.iter().rev().find(|(from, _)| at >= *from).map_or(0, |(_, seconds)| (*seconds).into())
}

/// The name that begins here.
fn name_at(names: &[u8], start: usize) -> &[u8] {
    let rest = names.get(start..).unwrap_or_default();
    rest.split(|&byte| byte == 0).next().unwrap_or_default()
}

fn read_magic(reader: &mut Reader) -> Result<u8> {
    if reader.bytes(MAGIC.len())? != MAGIC {
        return Err(reader.corrupt("no time zone file"));
    }
    let [version, ..] = reader.bytes(16)? else { return Ok(0) };
    Ok(*version)
}

impl Counts {
    fn read(reader: &mut Reader) -> Result<Self> {
        let mut number = |most: usize| {
            let count = big_endian(reader, 4)?;
            match usize::try_from(count) {
                Ok(count) if count < most => Ok(count),
                _ => Err(reader.corrupt(format!("a count of {count}"))),
            }
        };
        let counts = Self {
            ut_flags: number(MOST_KINDS)?,
            standard_flags: number(MOST_KINDS)?,
            leaps: number(MOST_LEAPS)?,
            transitions: number(MOST_TRANSITIONS)?,
            kinds: number(MOST_KINDS)?,
            name_bytes: number(MOST_NAME_BYTES)?,
        };
        let flags = [counts.ut_flags, counts.standard_flags];
        if flags.iter().any(|&count| count != 0 && count != counts.kinds) {
            return Err(reader.corrupt("flags for another number of kinds"));
        }
        Ok(counts)
    }

    /// The length of the data in bytes.
    fn len(&self, time: usize) -> usize {
        let transitions = self.transitions * (time + 1);
        let names = self.kinds * 6 + self.name_bytes;
        transitions + names + self.leaps * (time + 4) + self.standard_flags + self.ut_flags
    }
}

/// The next number of 4 or 8 bytes.
fn big_endian(reader: &mut Reader, len: usize) -> Result<i64> {
    let bytes = reader.bytes(len)?;
    let first = bytes.first().map_or(0, |&byte| i64::from(byte as i8));
    Ok(bytes.iter().skip(1).fold(first, |number, &byte| number << 8 | i64::from(byte)))
}

fn read_data(reader: &mut Reader, counts: &Counts, time: usize) -> Result<(Zone, Vec<(i64, i32)>)> {
    let times = (0..counts.transitions).map(|_| big_endian(reader, time));
    let times = times.collect::<Result<Vec<_>>>()?;
    let numbers = reader.bytes(counts.transitions)?;
    let kinds = (0..counts.kinds).map(|_| read_kind(reader, counts.name_bytes));
    let kinds = kinds.collect::<Result<Vec<_>>>()?;
    let mut names = reader.bytes(counts.name_bytes)?.to_vec();
    if names.last() != Some(&0) {
        names.push(0);
    }
    let leaps = (0..counts.leaps)
        .map(|_| Ok((big_endian(reader, time)?, big_endian(reader, 4)? as i32)))
        .collect::<Result<Vec<_>>>()?;
    reader.bytes(counts.standard_flags + counts.ut_flags)?;
    let first = LocalTimeKind { east: 0, is_daylight: false, name: 0 };
    let mut zone = Zone::of_kinds(kinds, names, first);
    zone.leap_seconds = leap(&leaps, UNIX_SECONDS);
    for (at, &kind) in times.into_iter().zip(numbers) {
        zone.push_transition(at, kind).map_err(|what| reader.corrupt(what))?;
    }
    Ok((zone, leaps))
}

fn read_kind(reader: &mut Reader, name_bytes: usize) -> Result<LocalTimeKind> {
    let east = big_endian(reader, 4)? as i32;
    match *reader.bytes(2)? {
        [daylight @ 0..=1, name] if usize::from(name) < name_bytes => {
            Ok(LocalTimeKind { east, is_daylight: daylight == 1, name: name.into() })
        }
        _ => Err(reader.corrupt("no kind of local time")),
    }
}

impl Zone {
    /// Appends a transition; one at the same moment as the last replaces it.
    fn push_transition(&mut self, at: i64, kind: u8) -> std::result::Result<(), &'static str> {
        if usize::from(kind) >= self.kinds.len() {
            return Err("a transition to a kind that is not there");
        }
        match self.transitions.last_mut() {
            Some((last, _)) if *last > at => return Err("transitions do not ascend"),
            Some(last) if last.0 == at => *last = (at, kind),
            _ => self.transitions.push((at, kind)),
        }
        Ok(())
    }
}

/// Works out what holds before the first transition, and whether the list repeats.
fn finish(mut zone: Zone) -> Result<Zone> {
    if zone.kinds.is_empty() {
        return Err(Error::corrupt(STRUCTURE, 0, "no kind of local time"));
    }
    zone.first = kind_before_all(&zone);
    zone.note_repeats();
    Ok(zone)
}

/// Kind 0 where no transition leads to it; else, before daylight-saving time, the standard time
/// listed nearest before that; else the first standard time.
fn kind_before_all(zone: &Zone) -> LocalTimeKind {
    let kind = |number: usize| zone.kinds.get(number).copied();
    let default = || zone.first_kind();
    if zone.transitions.iter().all(|(_, number)| *number != 0) {
        return kind(0).unwrap_or_else(default);
    }
    let first = zone.transitions.first().map_or(0, |(_, number)| usize::from(*number));
    let listed = match kind(first) {
        Some(found) if found.is_daylight => {
            (0..first).rev().filter_map(kind).find(|kind| !kind.is_daylight)
        }
        _ => None,
    };
    listed.unwrap_or_else(default)
}
