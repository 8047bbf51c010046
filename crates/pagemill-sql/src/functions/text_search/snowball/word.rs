//! A word that a Snowball program works on: its bytes, the cursor, the limits and the slice.
//!
//! Invariant: the cursor is never behind the end; forwards the limit is `end`, backwards it is `start`. Places are counted in
//! bytes, as the server does, also where characters are moved over.
//!
//! Source: `src/backend/snowball/libstemmer/utilities.c`, PostgreSQL 14 to 18.

/// A slice that is none: the server gives up and takes the word as it is then.
#[derive(Debug)]
pub(super) struct GivesUp;

#[derive(Debug)]
pub(super) struct Word {
    pub(super) bytes: Vec<u8>,
    pub(super) cursor: usize,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) left: usize,
    pub(super) right: usize,
    pub(super) backward: bool,
}

impl Word {
    pub(super) fn new(word: &str) -> Self {
        let (bytes, end) = (word.as_bytes().to_vec(), word.len());
        Self { bytes, cursor: 0, start: 0, end, left: 0, right: end, backward: false }
    }

    /// Where the cursor is, told so that it holds when the word is changed behind it.
    pub(super) fn mark(&self) -> usize {
        match self.backward {
            true => self.end.saturating_sub(self.cursor),
            false => self.cursor,
        }
    }

    pub(super) fn back_to(&mut self, mark: usize) {
        self.cursor = match self.backward {
            true => self.end.saturating_sub(mark),
            false => mark.min(self.end),
        };
    }

    pub(super) fn limit(&self) -> usize {
        if self.backward { self.start } else { self.end }
    }

    pub(super) fn at_limit(&self) -> bool {
        match self.backward {
            true => self.cursor <= self.start,
            false => self.cursor >= self.end,
        }
    }

    /// What lies that many bytes ahead.
    pub(super) fn ahead(&self, length: usize) -> Option<&[u8]> {
        let (from, to) = match self.backward {
            true => (self.cursor.checked_sub(length)?, self.cursor),
            false => (self.cursor, self.cursor.checked_add(length)?),
        };
        match from >= self.start || !self.backward {
            true if to <= self.end => self.bytes.get(from..to),
            _ => None,
        }
    }

    pub(super) fn advance(&mut self, length: usize) {
        self.cursor = match self.backward {
            true => self.cursor.saturating_sub(length),
            false => (self.cursor + length).min(self.end),
        };
    }

    /// The length of the character ahead, 0 at the limit.
    pub(super) fn width(&self) -> usize {
        if self.at_limit() {
            return 0;
        }
        let is_first = |byte: &u8| *byte & 0xC0 != 0x80;
        match self.backward {
            true => {
                let before = self.bytes.get(self.start..self.cursor).unwrap_or_default();
                let first = before.iter().rposition(is_first);
                before.len() - first.unwrap_or(0)
            }
            false => {
                let behind = self.bytes.get(self.cursor + 1..self.end).unwrap_or_default();
                1 + behind.iter().position(is_first).unwrap_or(behind.len())
            }
        }
    }

    pub(super) fn character(&self) -> Option<char> {
        let bytes = self.ahead(self.width()).filter(|bytes| !bytes.is_empty())?;
        std::str::from_utf8(bytes).ok()?.chars().next()
    }

    pub(super) fn characters(&self) -> usize {
        let is_first = |byte: &&u8| **byte & 0xC0 != 0x80;
        self.bytes.iter().filter(is_first).count()
    }

    /// Moves over characters, if there are so many.
    pub(super) fn hop(&mut self, characters: i32) -> bool {
        let before = self.cursor;
        for _ in 0..characters {
            let width = self.width();
            if width == 0 {
                self.cursor = before;
                return false;
            }
            self.advance(width);
        }
        characters >= 0
    }

    pub(super) fn slice(&self) -> Result<&[u8], GivesUp> {
        let is_slice = self.left <= self.right && self.right <= self.end;
        let bytes = self.bytes.get(self.left..self.right).filter(|_| is_slice);
        bytes.ok_or(GivesUp)
    }

    pub(super) fn replace_slice(&mut self, by: &[u8]) -> Result<(), GivesUp> {
        self.slice()?;
        self.replace((self.left, self.right), by);
        Ok(())
    }

    fn replace(&mut self, (from, to): (usize, usize), by: &[u8]) {
        self.bytes.splice(from..to, by.iter().copied());
        let moved = |place: usize| (place + by.len()).saturating_sub(to - from);
        self.end = moved(self.end);
        if self.cursor >= to {
            self.cursor = moved(self.cursor);
        } else if self.cursor > from && by.len() != to - from {
            self.cursor = from;
        }
    }

    /// Puts bytes at the cursor, which stays before them backwards and is behind them forwards.
    pub(super) fn insert(&mut self, bytes: &[u8]) {
        let at = self.cursor;
        self.replace((at, at), bytes);
        for side in [&mut self.left, &mut self.right] {
            if at <= *side {
                *side += bytes.len();
            }
        }
        if self.backward {
            self.cursor = at;
        }
    }
}
