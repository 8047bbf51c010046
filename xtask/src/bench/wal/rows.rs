//! What is measured: the rows of the result, and what each is held to.
//!
//! Targets are set here, before a run, and never moved to fit one.

use anyhow::{Result, bail};

/// Bytes a second that one core shall index, of plain WAL in the page cache.
pub(super) const BYTES_PER_CORE: f64 = 1e9;
/// Peak memory of any row.
pub(super) const MEMORY_TARGET_MIB: f64 = 256.0;

/// The version of rows that are about no server.
const MAJOR: u32 = 15;

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// From the start of a server on the killed cluster to its answer, against a count of `accounts`.
    Start,
    /// Reading the WAL on so many cores, against [`BYTES_PER_CORE`].
    IndexRate {
        /// How many.
        cores: u32,
    },
    /// Reading the WAL out of the device, against the best that fio or dd does with the same files.
    IndexOfDevice,
    /// A count of a table that WAL says nothing of, against the same on a copy from before.
    UntouchedCount,
    /// An export of it, as CSV.
    UntouchedExport,
    /// A count of a table of which every tenth page has records, against a server that has recovered it.
    Tenth,
}

/// One row of the result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Row {
    pub(super) id: &'static str,
    pub(super) work: Work,
    pub(super) major: u32,
    /// All files are in the page cache, read back into it; otherwise none is.
    pub(super) is_cached: bool,
    /// The other side's time over pagemill's.
    pub(super) target: f64,
}

const fn start(id: &'static str, major: u32, is_cached: bool) -> Row {
    Row { id, work: Work::Start, major, is_cached, target: 10.0 }
}

const fn cached(id: &'static str, work: Work, target: f64) -> Row {
    Row { id, work, major: MAJOR, is_cached: true, target }
}

const ROWS: [Row; 10] = [
    start("start-15-cached", 15, true),
    start("start-15-cold", 15, false),
    cached("index-one-core", Work::IndexRate { cores: 1 }, 1.0),
    cached("index-two-cores", Work::IndexRate { cores: 2 }, 1.0),
    Row { is_cached: false, ..cached("index-cold", Work::IndexOfDevice, 0.9) },
    cached("untouched-count", Work::UntouchedCount, 0.95),
    cached("untouched-export", Work::UntouchedExport, 0.95),
    cached("tenth-count", Work::Tenth, 2.0),
    start("start-18-cached", 18, true),
    start("start-18-cold", 18, false),
];

/// The rows whose names begin with one of these words; all for none.
pub(super) fn selected(words: &[String]) -> Result<Vec<Row>> {
    let matches = |row: &Row, word: &String| row.id.starts_with(word.as_str());
    if let Some(word) = words.iter().find(|word| !ROWS.iter().any(|row| matches(row, word))) {
        let names: Vec<&str> = ROWS.iter().map(|row| row.id).collect();
        bail!("no row begins with {word}; there are: {}", names.join(" "));
    }
    let wanted = |row: &Row| words.is_empty() || words.iter().any(|word| matches(row, word));
    Ok(ROWS.into_iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_selects_the_rows_that_begin_with_it() {
        assert_eq!(selected(&["start-15".to_owned()]).unwrap().len(), 2);
        assert_eq!(selected(&[]).unwrap().len(), ROWS.len());
        assert!(selected(&["count".to_owned()]).is_err());
    }

    #[test]
    fn rows_of_one_version_stand_together() {
        // Their cluster is made once.
        assert!(ROWS.is_sorted_by_key(|row| row.major));
    }
}
