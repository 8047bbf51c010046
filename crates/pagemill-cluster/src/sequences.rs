//! Sequences: what `nextval` would say, and the page that says so afterwards.
//!
//! A session takes as many values at once as the sequence's `CACHE` says, and what it does not use is lost with it. A
//! load is one session.
//!
//! Invariant: the page that comes out differs from the one that was read in the three fields of its row alone, and asks the
//! next `nextval` to log again (`log_cnt` is 0), so that its image in the WAL is what is in the file.
//!
//! Source: `nextval_internal` in `src/backend/commands/sequence.c`, `src/include/commands/sequence.h`,
//! `src/include/catalog/pg_sequence.h`, PostgreSQL 14 to 18.

use pagemill_format::page::Page;
use pagemill_format::tuple::HeapTuple;
use pagemill_format::{BLOCK_SIZE, BlockBytes, BlockNumber, Error as FormatError, Oid};

use crate::database::{Database, catalog};
use crate::error::{Damage, Error, Result};
use crate::page_check::check_page;
use crate::refusal::Refusal;
use crate::relation::{ClassRow, RelationKind};

/// Bytes of the row: `last_value`, `log_cnt`, `is_called`.
const ROW_BYTES: usize = 17;

/// A sequence in a session that takes values from it.
#[derive(Debug, Clone)]
pub struct Sequence {
    /// Its row of `pg_class`.
    pub class: ClassRow,
    increment: i64,
    bounds: (i64, i64),
    cache: i64,
    cycles: bool,
    last_value: i64,
    is_called: bool,
    /// The value that was given out last, and the last one that was taken.
    taken: Option<(i64, i64)>,
    page: Box<BlockBytes>,
    /// Where the row lies on the page.
    row_at: usize,
}

impl Database {
    /// A sequence as it is.
    ///
    /// # Errors
    /// When there is none with this OID, or its page is damaged.
    pub fn sequence(&self, oid: Oid) -> Result<Sequence> {
        let missing = || Error::refused(Refusal::missing_row("pg_class", "the sequence", oid));
        let class = self.class(oid).filter(|class| class.kind == RelationKind::Sequence);
        let class = class.ok_or_else(missing)?.clone();
        let files = self.cluster().main_fork(&self.base_path(&class)?)?;
        let mut page = Box::new([0; BLOCK_SIZE]);
        files.read_block(BlockNumber(0), &mut page)?;
        check_page(self.cluster(), &files, BlockNumber(0), &page)?;
        let damaged = || Damage::in_file(files.path(), "a sequence without its row");
        let row_at = place_of_row(&page).ok_or_else(damaged)?;
        let number = |at: usize| page.get(row_at + at..)?.first_chunk().copied();
        let last_value = i64::from_le_bytes(number(0).ok_or_else(damaged)?);
        let is_called = page.get(row_at + 16).is_some_and(|&byte| byte != 0);
        let mut found = None;
        let wanted = ["seqrelid", "seqincrement", "seqmin", "seqmax", "seqcache", "seqcycle"];
        self.scan_any(catalog::PG_SEQUENCE, &wanted, |row| {
            if row.oid(0)? == oid {
                let bounds = (row.i64(2)?, row.i64(3)?);
                found = Some((row.i64(1)?, bounds, row.i64(4)?, row.byte(5)? != 0));
            }
            Ok::<_, FormatError>(())
        })?;
        let (increment, bounds, cache, cycles) = found.ok_or_else(missing)?;
        Ok(Sequence {
            class,
            increment,
            bounds,
            cache: cache.max(1),
            cycles,
            last_value,
            is_called,
            taken: None,
            page,
            row_at,
        })
    }
}

fn place_of_row(page: &BlockBytes) -> Option<usize> {
    let pointer = Page::new(page).line_pointer(1)?;
    let tuple = page.get(pointer.offset()..)?.get(..pointer.len())?;
    let tuple = HeapTuple::parse(tuple).ok()?;
    (tuple.data().data.len() >= ROW_BYTES).then(|| pointer.offset() + tuple.hoff())
}

impl Sequence {
    /// `last_value` and `is_called`, as they are stored.
    pub fn stored(&self) -> (i64, bool) {
        (self.last_value, self.is_called)
    }

    /// The next value.
    ///
    /// # Errors
    /// In the server's words, when there is none.
    pub fn next_value(&mut self) -> Result<i64, String> {
        if let Some((given, last)) = &mut self.taken
            && given != last
        {
            // Infallible: it was taken within the bounds.
            *given = given.wrapping_add(self.increment);
            return Ok(*given);
        }
        let (mut first, mut last, mut count) = (self.last_value, self.last_value, 0);
        if !self.is_called {
            count = 1;
        }
        while count < self.cache {
            match self.behind(last) {
                Some(next) => last = next,
                None if count > 0 => break,
                None => last = self.start_again()?,
            }
            count += 1;
            if count == 1 {
                first = last;
            }
        }
        (self.last_value, self.is_called, self.taken) = (last, true, Some((first, last)));
        Ok(first)
    }

    /// The value behind another, within the bounds.
    fn behind(&self, value: i64) -> Option<i64> {
        let next = value.checked_add(self.increment)?;
        (self.bounds.0..=self.bounds.1).contains(&next).then_some(next)
    }

    fn start_again(&self) -> Result<i64, String> {
        let (end, bound, start) = match self.increment > 0 {
            true => ("maximum", self.bounds.1, self.bounds.0),
            false => ("minimum", self.bounds.0, self.bounds.1),
        };
        if self.cycles {
            return Ok(start);
        }
        let name = String::from_utf8_lossy(&self.class.name);
        Err(format!("nextval: reached {end} value of sequence \"{name}\" ({bound})"))
    }

    /// Its page after the values that were taken; `None` when there were none.
    pub fn changed_page(&self) -> Option<Box<BlockBytes>> {
        self.taken?;
        let mut page = self.page.clone();
        let row = page.get_mut(self.row_at..self.row_at + ROW_BYTES)?;
        row[..8].copy_from_slice(&self.last_value.to_le_bytes());
        row[8..16].copy_from_slice(&0_i64.to_le_bytes());
        row[16] = u8::from(self.is_called);
        Some(page)
    }
}
