//! The first step of a load: the rows and values of a text file found, as COPY FROM finds them, with the file mapped or read.
//!
//! The rows go through the project's own reader of COPY's text format, by one thread; what differs is only how the bytes get
//! to it. Invariant: a turn that finds another number of rows than were written has failed.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use pagemill_engine::copy::from::{
    CopyFromOptions, CopyRules, CopyTarget, Input, InputSource, Rows, Workers, run,
};
use pagemill_io::{InputStream, Storage};

use crate::cache::drop_file;
use crate::cancel::Cancel;
use crate::contestant::{Contestant, Work};
use crate::error::{Error, Result};
use crate::experiments::random::Random;

/// The number of UTF-8 (`PG_UTF8`, `src/include/mb/pg_wchar.h`, PostgreSQL 14 to 18).
const UTF8: i32 = 6;
/// Rows written at once.
const ROWS_AT_ONCE: u64 = 4096;

/// A text file in COPY's format.
#[derive(Debug, Clone)]
pub(crate) struct TextFile {
    pub(crate) path: PathBuf,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl TextFile {
    /// Makes one of about so many bytes: rows of three random integers, as the table `bigtable` has them.
    ///
    /// # Errors
    /// When it cannot be written, or somebody ends the run.
    pub(crate) fn make(path: &Path, bytes: u64, seed: u64, cancel: &Cancel) -> Result<Self> {
        let fault = || Error::file(path);
        let mut file = std::fs::File::create_new(path).map_err(fault())?;
        let (mut random, mut text) = (Random::new(seed), Vec::new());
        let (mut rows, mut done) = (0, 0);
        while done < bytes {
            cancel.check()?;
            text.clear();
            for _ in 0..ROWS_AT_ONCE {
                let [a, b, c] = [random.next(), random.next(), random.next()].map(|n| n >> 33);
                writeln!(text, "{a}\t{b}\t{c}").map_err(fault())?;
            }
            file.write_all(&text).map_err(fault())?;
            rows += ROWS_AT_ONCE;
            done += text.len() as u64;
        }
        file.sync_all().map_err(fault())?;
        drop_file(path).map_err(fault())?;
        Ok(Self { path: path.into(), rows, bytes: done })
    }

    /// Those who find its rows.
    pub(crate) fn contestants(&self) -> [Contestant<'_>; 2] {
        let mapped = |cancel: &Cancel| self.find_rows(cancel, |_| self.mapped());
        let streamed = |cancel: &Cancel| self.find_rows(cancel, |storage| self.streamed(storage));
        [
            Contestant::new("read", streamed).parameter("method", "read").by_threads(),
            Contestant::new("mmap", mapped).parameter("method", "mmap").by_threads(),
        ]
    }

    fn mapped(&self) -> Result<InputSource> {
        Ok(InputSource::File(self.path.clone()))
    }

    /// The same file as a stream, which nobody maps.
    fn streamed(&self, storage: &Storage) -> Result<InputSource> {
        let file = std::fs::File::open(&self.path).map_err(Error::file(&self.path))?;
        Ok(InputSource::Stream(InputStream::stream(storage, &file, "text")?))
    }

    fn find_rows(
        &self,
        cancel: &Cancel,
        source: impl Fn(&Storage) -> Result<InputSource>,
    ) -> Result<Work> {
        let storage = Storage::real().untimed();
        let columns: [&[u8]; 3] = [b"a", b"b", b"c"];
        let target =
            CopyTarget { relation: "t", columns: &columns, encoding: UTF8, server_major: 18 };
        let rules = CopyRules::new(&CopyFromOptions::default(), target)?;
        let input = Input { storage: &storage, rules: &rules, sources: vec![source(&storage)?] };
        let mut found = 0;
        let values = |_: &mut (), rows: &mut Rows<'_>| values(rows);
        let mut interrupted = Ok(());
        run(input, Workers::new(1, || (), values), |count| {
            found += count;
            interrupted = cancel.check();
            Ok(())
        })?;
        interrupted?;
        if found != 3 * self.rows {
            let what = format!("{found} values found, {} expected", 3 * self.rows);
            return Err(Error::file(&self.path)(std::io::Error::other(what)));
        }
        Ok(Work::operations(self.rows).with_counted("read", &storage.counters().snapshot()))
    }
}

/// How many values that are not null these rows have.
fn values(rows: &mut Rows<'_>) -> pagemill_engine::Result<u64> {
    let mut count = 0;
    while let Some(row) = rows.next_row()? {
        for column in 0..row.len() {
            count += u64::from(row.value(column)?.is_some());
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_find_every_row_and_only_one_maps() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("text");
        let text = TextFile::make(&path, 300_000, 5, &Cancel::default()).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), text.bytes);
        for mut contestant in text.contestants() {
            let name = contestant.name.clone();
            let work = contestant.perform.as_mut().ok().unwrap()(&Cancel::default()).unwrap();
            assert_eq!(work.operations, text.rows);
            assert_eq!(work.calls.contains_key("mmap"), name == "mmap", "{work:?}");
        }
    }

    #[test]
    fn a_file_with_other_rows_than_it_was_given_fails() {
        let dir = tempfile::tempdir().unwrap();
        let text = TextFile::make(&dir.path().join("text"), 1, 5, &Cancel::default()).unwrap();
        let other = TextFile { rows: text.rows + 1, ..text };
        for mut contestant in other.contestants() {
            let found = contestant.perform.as_mut().ok().unwrap()(&Cancel::default());
            assert!(found.unwrap_err().to_string().contains("expected"));
        }
    }
}
