//! How a page came to be by redo, as `inspect --block` shows it: what redo begins from, and the records that it looks at.
//! A record that is passed over is shown too, since that it is there and was not needed is what one wants to know.

use pagemill_cluster::recovery::{BasePage, PageHistory, PageRecord};
use pagemill_wal::EntryKind;
use serde_json::{Value, json};

use crate::text_table::{Align, table};
use crate::tuple_changes::{changes_json, changes_text};

/// What the fields of the page tell of it.
pub(crate) fn fields(history: &PageHistory) -> [(&'static str, String); 2] {
    let base = match history.base {
        BasePage::InFile(lsn) => format!("in the file, LSN {lsn}"),
        BasePage::NotInFile => "not in the file: zeros".to_owned(),
        BasePage::NotNeeded => "not looked at: the first record brings the whole page".to_owned(),
    };
    let applied = history.records.iter().filter(|record| record.is_applied).count();
    let redone = format!("{applied} of {} records applied", history.records.len());
    [("Base page", base), ("Redo", redone)]
}

/// A line for each record; empty when there is none.
pub(crate) fn text(history: &PageHistory) -> String {
    if history.records.is_empty() {
        return String::new();
    }
    let header = [
        ("LSN", Align::Right),
        ("End", Align::Right),
        ("Record", Align::Left),
        ("Transaction", Align::Right),
        ("Page", Align::Left),
        ("Redo", Align::Left),
        ("Tuples", Align::Left),
    ];
    let rows: Vec<_> = history.records.iter().map(row).collect();
    table(&header, &rows) + "\n"
}

fn row(record: &PageRecord) -> Vec<String> {
    let redo = if record.is_applied { "applied" } else { "skipped: in the file" };
    vec![
        record.lsn.to_string(),
        record.end.to_string(),
        format!("{}/{}", record.manager.name(), record.operation),
        record.xid.to_string(),
        kind_name(record.kind).to_owned(),
        redo.to_owned(),
        changes_text(&record.tuples),
    ]
}

fn kind_name(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Image => "image",
        EntryKind::Init => "init",
        EntryKind::Delta | EntryKind::DeltaWithoutImage => "delta",
    }
}

/// All of it; null where nothing was redone.
pub(crate) fn json(history: Option<&PageHistory>) -> Value {
    let Some(history) = history else { return Value::Null };
    let (base, lsn) = match history.base {
        BasePage::InFile(lsn) => ("in file", Some(lsn.to_string())),
        BasePage::NotInFile => ("not in file", None),
        BasePage::NotNeeded => ("not looked at", None),
    };
    json!({
        "base": { "page": base, "lsn": lsn },
        "records": history.records.iter().map(record_json).collect::<Vec<_>>(),
    })
}

fn record_json(record: &PageRecord) -> Value {
    json!({
        "lsn": record.lsn.to_string(),
        "end": record.end.to_string(),
        "resource_manager": record.manager.name(),
        "record": record.operation,
        "xid": record.xid.0,
        "page": kind_name(record.kind),
        "applied": record.is_applied,
        "tuples": changes_json(&record.tuples),
    })
}
