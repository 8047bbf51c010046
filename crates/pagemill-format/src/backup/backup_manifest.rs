//! `backup_manifest`: what `pg_basebackup` wrote down of a backup, and of it the WAL that the backup needs.
//!
//! It tells from where to where WAL is needed even where `backup_label` was removed. The list of files is passed
//! over, and so are the checksums, the manifest's own among them: they are the business of a check of the backup.
//! So little of JSON is needed that it is read here.
//!
//! Invariants: each byte is looked at once, and nesting costs no stack.
//!
//! Sources: `src/backend/backup/backup_manifest.c`, `src/common/parse_manifest.c`, PostgreSQL 14 to 18.

use crate::error::{Error, Result};
use crate::ids::Lsn;

const STRUCTURE: &str = "backup_manifest";

/// What is needed of `backup_manifest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupManifest {
    /// 1, or 2 from 17 on.
    pub version: u32,
    /// The cluster's system identifier; version 2.
    pub system_identifier: Option<u64>,
    /// The WAL without which the backup is not consistent, timelines descending as the server writes them.
    pub wal_ranges: Vec<WalRange>,
}

/// A stretch of WAL on one timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalRange {
    /// The timeline.
    pub timeline: u32,
    /// Its first byte; of the oldest range, where replay begins.
    pub start: Lsn,
    /// The byte behind it.
    pub end: Lsn,
}

impl BackupManifest {
    /// Reads the file's contents.
    ///
    /// # Errors
    /// Corrupt: no JSON, or not that of a manifest. Unsupported: a version above 2.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let (mut version, mut system_identifier, mut wal_ranges) = (None, None, Vec::new());
        let mut json = Json { bytes, pos: 0 };
        json.object(|json, key| {
            match key {
                b"PostgreSQL-Backup-Manifest-Version" => version = Some(json.number()?),
                b"System-Identifier" => system_identifier = Some(json.number()?),
                b"WAL-Ranges" => {
                    json.array(|json| {
                        wal_ranges.push(WalRange::read(json)?);
                        Ok(())
                    })?;
                }
                _ => json.skip_value()?,
            }
            Ok(())
        })?;
        json.end()?;
        let version = version.ok_or_else(|| json.wrong("no version"))?;
        match u32::try_from(version) {
            Ok(version @ 1..=2) => Ok(Self { version, system_identifier, wal_ranges }),
            _ => {
                let what = format!("version {version}; 1 and 2 are read");
                Err(Error::unsupported(STRUCTURE, what))
            }
        }
    }

    /// Where replay begins: the start of the oldest range, which is on the lowest timeline.
    pub fn start(&self) -> Option<WalRange> {
        self.wal_ranges.iter().copied().min_by_key(|range| range.timeline)
    }

    /// Up to where WAL is needed: the end of the newest range.
    pub fn end(&self) -> Option<WalRange> {
        self.wal_ranges.iter().copied().max_by_key(|range| range.timeline)
    }
}

impl WalRange {
    fn read(json: &mut Json<'_>) -> Result<Self> {
        let (mut timeline, mut start, mut end) = (None, None, None);
        json.object(|json, key| {
            match key {
                b"Timeline" => timeline = u32::try_from(json.number()?).ok(),
                b"Start-LSN" => start = Some(json.lsn()?),
                b"End-LSN" => end = Some(json.lsn()?),
                _ => json.skip_value()?,
            }
            Ok(())
        })?;
        match (timeline, start, end) {
            (Some(timeline), Some(start), Some(end)) if start <= end => {
                Ok(Self { timeline, start, end })
            }
            _ => Err(json.wrong("a range without a timeline, a start and an end behind it")),
        }
    }
}

/// A place in a JSON text.
struct Json<'a> {
    bytes: &'a [u8],
    pos: usize,
}

impl<'a> Json<'a> {
    #[cold]
    fn wrong(&self, what: impl Into<std::borrow::Cow<'static, str>>) -> Error {
        Error::corrupt(STRUCTURE, self.pos, what)
    }

    /// The next byte that is no white space; it is not taken.
    fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.pos) {
            if !byte.is_ascii_whitespace() {
                return Some(*byte);
            }
            self.pos += 1;
        }
        None
    }

    fn take(&mut self, wanted: u8) -> bool {
        let is_there = self.peek() == Some(wanted);
        self.pos += usize::from(is_there);
        is_there
    }

    fn require(&mut self, wanted: u8) -> Result<()> {
        match self.take(wanted) {
            true => Ok(()),
            false => Err(self.wrong(format!("{:?} is expected", char::from(wanted)))),
        }
    }

    fn end(&mut self) -> Result<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.wrong("text behind the end")),
        }
    }

    /// An object: `field` reads each value.
    fn object(&mut self, mut field: impl FnMut(&mut Self, &'a [u8]) -> Result<()>) -> Result<()> {
        self.require(b'{')?;
        self.list(b'}', |json| {
            let key = json.string()?;
            json.require(b':')?;
            field(json, key)
        })
    }

    fn array(&mut self, item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        self.require(b'[')?;
        self.list(b']', item)
    }

    fn list(&mut self, close: u8, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        if self.take(close) {
            return Ok(());
        }
        loop {
            item(self)?;
            if self.take(close) {
                return Ok(());
            }
            self.require(b',')?;
        }
    }

    /// What is between quotation marks, escapes as they are: what is looked for has none.
    fn string(&mut self) -> Result<&'a [u8]> {
        self.require(b'"')?;
        let rest = self.bytes.get(self.pos..).unwrap_or_default();
        let mut at = 0;
        loop {
            match rest.get(at) {
                Some(b'"') => break,
                Some(b'\\') => at += 2,
                Some(_) => at += 1,
                None => return Err(self.wrong("a text without its end")),
            }
        }
        self.pos += at + 1;
        Ok(rest.get(..at).unwrap_or_default())
    }

    fn lsn(&mut self) -> Result<Lsn> {
        let text = self.string()?;
        let lsn = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        lsn.ok_or_else(|| self.wrong("a text that is no LSN"))
    }

    fn number(&mut self) -> Result<u64> {
        self.peek();
        let rest = self.bytes.get(self.pos..).unwrap_or_default();
        let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let digits = rest.get(..len).and_then(|digits| std::str::from_utf8(digits).ok());
        let number = digits.and_then(|digits| digits.parse().ok());
        let number = number.ok_or_else(|| self.wrong("a number is expected"))?;
        self.pos += len;
        Ok(number)
    }

    /// Goes behind the value that begins here.
    fn skip_value(&mut self) -> Result<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                Some(b'"') => drop(self.string()?),
                Some(b'{' | b'[') => {
                    self.pos += 1;
                    depth += 1;
                    continue;
                }
                Some(b'}' | b']') if depth > 0 => {
                    self.pos += 1;
                    depth -= 1;
                }
                Some(b',' | b':') if depth > 0 => {
                    self.pos += 1;
                    continue;
                }
                Some(b'0'..=b'9' | b'-' | b'a'..=b'z') => {
                    let is_of_word = |byte: &&u8| {
                        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
                    };
                    let rest = self.bytes.get(self.pos..).unwrap_or_default();
                    self.pos += rest.iter().take_while(is_of_word).count();
                }
                _ => return Err(self.wrong("a value is expected")),
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }
}
