//! The record of `--stats`: what was read and written, in how many calls, and how long it took.
//!
//! The names are an interface: scripts read them. Calls are counted where they are made, so they
//! agree with `strace -c`.

use std::time::Duration;

use pagemill_io::{Storage, WriteMethod};
use pagemill_stream::MethodUse;
use serde_json::{Map, Value, json};

use crate::cluster_arguments::StatsForm;

/// What a command did, as far as the counters of calls do not tell.
#[derive(Debug, Clone, Copy, Default)]
pub struct Work {
    /// Rows counted or written.
    pub rows: u64,
    /// Pages of tables scanned, and of the index they were ordered by.
    pub pages: u64,
    /// Pages found in memory: of TOAST tables and indexes, and of a table in an index's order.
    pub buffer_hits: u64,
    /// Such pages that were read.
    pub buffer_misses: u64,
    /// How a new file was written, where there was one.
    pub write_method: Option<WriteMethod>,
    /// What a copy of files was, where there was one.
    pub copied: Option<CopyWork>,
    /// WAL that is redone in front of the files, where there is any.
    pub redone: Option<WalWork>,
}

/// WAL that was read, to be redone in front of the files.
#[derive(Debug, Clone, Copy)]
pub struct WalWork {
    /// Bytes of it.
    pub bytes: u64,
    /// Records in it.
    pub records: u64,
    /// How long it took to find out what it does.
    pub elapsed: Duration,
}

/// A copy of files.
#[derive(Debug, Clone, Copy)]
pub struct CopyWork {
    /// How many files.
    pub files: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Bytes of them in blocks that are shared, as the file system tells.
    pub shared_bytes: u64,
    /// How they were copied.
    pub method: &'static str,
}

/// What there is to tell, by name.
pub(super) type Record = Vec<(&'static str, Value)>;

/// Prints the record to standard error.
pub fn print(form: StatsForm, elapsed: Duration, storage: &Storage, work: &Work) {
    write(form, record(elapsed, storage, work));
}

/// The same with more lines at its end.
pub(super) fn print_with(form: StatsForm, mut record: Record, more: Record) {
    record.extend(more);
    write(form, record);
}

fn write(form: StatsForm, record: Record) {
    use std::io::Write as _;
    let text = match form {
        StatsForm::Table => table(&record),
        StatsForm::Json => {
            let object: Map<String, Value> =
                record.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            format!("{}\n", Value::Object(object))
        }
    };
    // A reader of standard error that went away cannot be told.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

pub(super) fn record(elapsed: Duration, storage: &Storage, work: &Work) -> Record {
    let calls = storage.counters().snapshot();
    let mut record = vec![
        ("elapsed_s", seconds(elapsed)),
        ("rows", json!(work.rows)),
        ("pages", json!(work.pages)),
        ("read_calls", json!(calls.read_calls)),
        ("bytes_read", json!(calls.bytes_read)),
        ("advice_calls", json!(calls.advice_calls)),
        ("write_calls", json!(calls.write_calls)),
        ("bytes_written", json!(calls.bytes_written)),
        ("extend_calls", json!(calls.extend_calls)),
        ("sync_calls", json!(calls.sync_calls)),
        ("buffer_hits", json!(work.buffer_hits)),
        ("buffer_misses", json!(work.buffer_misses)),
        ("io_wait_s", seconds(calls.io_wait())),
        ("seek_calls", json!(calls.seek_calls)),
        ("map_calls", json!(calls.map_calls)),
        ("ring_calls", json!(calls.ring_calls)),
        ("io_method", json!(io_method(storage))),
        ("io_method_reason", json!(io_method_reason(storage))),
        ("write_method", json!(work.write_method.map_or("none", WriteMethod::name))),
        ("copy_calls", json!(calls.copy_calls)),
        ("bytes_copied", json!(calls.bytes_copied)),
    ];
    if let Some(copied) = &work.copied {
        record.extend([
            ("files", json!(copied.files)),
            ("file_bytes", json!(copied.bytes)),
            ("shared_bytes", json!(copied.shared_bytes)),
            ("copy_method", json!(copied.method)),
        ]);
    }
    if let Some(redone) = &work.redone {
        record.extend([
            ("wal_bytes", json!(redone.bytes)),
            ("wal_records", json!(redone.records)),
            ("wal_s", seconds(redone.elapsed)),
        ]);
    }
    record
}

/// The method that fetched the most blocks.
fn io_method(storage: &Storage) -> &'static str {
    let asked = storage.settings().io_method;
    MethodUse::of(storage).most_used().or(asked).map_or("none", |method| method.name())
}

/// Why that method: because it was asked for, or what `auto` saw.
fn io_method_reason(storage: &Storage) -> String {
    match storage.settings().io_method {
        Some(_) => "asked for".into(),
        None => {
            let reasons = MethodUse::of(storage).reasons();
            if reasons.is_empty() {
                "auto: pread, as nothing was large enough to choose for".into()
            } else {
                format!("auto: {}", reasons.join("; "))
            }
        }
    }
}

/// Seconds, to the microsecond.
fn seconds(duration: Duration) -> Value {
    json!((duration.as_secs_f64() * 1e6).round() / 1e6)
}

fn table(record: &[(&'static str, Value)]) -> String {
    // Words stand at the left: the longest of them would push all numbers out of sight.
    let numbers = record.iter().filter(|(_, value)| value.is_number());
    let width = numbers.map(|(_, value)| value.to_string().len()).max().unwrap_or(0);
    let line = |(name, value): &(&'static str, Value)| match value {
        Value::String(text) => format!("{name:<16} {text}\n"),
        number => format!("{name:<16} {:>width$}\n", number.to_string()),
    };
    record.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_the_record_is_there_in_both_forms() {
        let work = Work { rows: 7, ..Work::default() };
        let record = record(Duration::from_millis(1500), &Storage::real(), &work);
        let table = table(&record);
        let names = "elapsed_s rows pages read_calls bytes_read advice_calls write_calls \
                     bytes_written extend_calls sync_calls buffer_hits buffer_misses io_wait_s \
                     seek_calls map_calls ring_calls io_method io_method_reason write_method \
                     copy_calls bytes_copied";
        let listed: Vec<&str> = table.lines().filter_map(|l| l.split(' ').next()).collect();
        assert_eq!(listed, names.split(' ').collect::<Vec<_>>());
        assert!(table.starts_with("elapsed_s        1.5\nrows               7\n"), "{table}");
    }
}
