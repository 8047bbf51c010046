//! `pagemill history`: the versions of a row, what was done to each, by whom, and when that committed.
//!
//! What became of the transactions is asked once for each, before anything is printed: text and JSON tell the same.

use std::collections::BTreeMap;

use anyhow::Result;
use pagemill_cluster::recovery::plan::Moment;
use pagemill_engine::row_history::{
    ColumnValue, RowHistories, RowHistory, RowVersion, TransactionFate, VersionAction,
    VersionEvent, VersionState,
};
use pagemill_engine::select::find_one;
use pagemill_format::{Tid, TransactionId};
use serde_json::{Value, json};

use crate::failure::{Completion, complain, say};
use crate::history_arguments::HistoryArguments;
use crate::session::Session;
use crate::session::stats::Work;
use crate::text_table::printable;
use crate::tuple_changes::action_json;

pub(crate) fn run(arguments: &HistoryArguments) -> Result<Completion> {
    let session = Session::new(&arguments.common)?.recovered(&arguments.recovery)?;
    let database = session.database(&arguments.database.dbname)?;
    let relation = database.relation(&find_one(&database, &arguments.table)?.class)?;
    let mut histories = RowHistories::of(&database, &relation)?;
    let history = histories.at(arguments.ctid)?;
    let report = HistoryReport {
        table: relation.display_name(),
        ctid: arguments.ctid,
        fates: fates(&mut histories, &history),
        history,
    };
    if let Err(reason) = &report.history.wal {
        say(format!("{}: only what its pages tell: {reason}", report.table));
    }
    let text = if arguments.json { format!("{:#}\n", report.json()) } else { report.text() };
    session.print(&text)?;
    session.finish(&Work::default());
    report.history.faults.iter().for_each(|fault| complain(format!("{}: {fault}", report.table)));
    Ok(match report.history.faults.is_empty() {
        true => Completion::Done,
        false => Completion::Incomplete,
    })
}

/// What became of each transaction that the report names.
fn fates(histories: &mut RowHistories<'_>, history: &RowHistory) -> BTreeMap<u32, TransactionFate> {
    let versions = history.rows.iter().flatten();
    let xids = versions.flat_map(|version| {
        let of_events = version.events.iter().map(|event| event.xid);
        version.inserted_by.into_iter().chain(of_events)
    });
    let xids = xids.filter(|xid| *xid != TransactionId::INVALID);
    xids.map(|xid| (xid.0, histories.fate(xid))).collect()
}

/// What is printed.
struct HistoryReport {
    table: String,
    ctid: Tid,
    history: RowHistory,
    fates: BTreeMap<u32, TransactionFate>,
}

impl HistoryReport {
    fn text(&self) -> String {
        let mut text = format!("{} {}", self.table, self.ctid);
        if let Ok((start, end)) = &self.history.wal {
            text += &format!(", WAL from {start} to {end}");
        }
        text.push('\n');
        for (number, row) in self.history.rows.iter().enumerate() {
            if number > 0 {
                text += "\nAn earlier row at the same place\n";
            }
            for (index, version) in (1..).zip(row) {
                text += &self.version_text(version, index, row.len());
            }
        }
        text
    }

    fn version_text(&self, version: &RowVersion, index: usize, count: usize) -> String {
        let state = match &version.state {
            VersionState::Visible => "visible",
            VersionState::Invisible => "still there, not visible",
            VersionState::Unknown(why) => &format!("still there, visibility cannot be told: {why}"),
            VersionState::Gone => "gone",
        };
        let mut text = format!("\nversion {index} of {count} at {}: {state}\n", version.tid);
        if version.was_there {
            let by = match version.inserted_by {
                Some(xid) => format!("by {}", self.transaction(xid)),
                None => "by an unknown transaction".to_owned(),
            };
            text += &format!("  older than the WAL that is there: inserted {by}\n");
        }
        version.events.iter().for_each(|event| text += &self.event_text(event));
        match &version.values {
            None => text += "  columns: not known: no page or image of it is there\n",
            Some(values) => text += &values_text(values),
        }
        text
    }

    fn event_text(&self, event: &VersionEvent) -> String {
        let what = match event.action {
            VersionAction::Tuple(action) => action.to_string(),
            VersionAction::CutOff => "cut off: the table was truncated before its block".into(),
        };
        if event.record.is_empty() {
            return format!("  {what}, in the page as it is in the end\n");
        }
        let by = match event.xid {
            TransactionId::INVALID => String::new(),
            xid => format!(" by {}", self.transaction(xid)),
        };
        format!("  {} {}: {what}{by}\n", event.lsn, event.record)
    }

    fn transaction(&self, xid: TransactionId) -> String {
        let at = |time: &Option<i64>| match time {
            Some(time) => format!(" {}", Moment(*time)),
            None => String::new(),
        };
        match self.fates.get(&xid.0) {
            Some(TransactionFate::Committed(time)) => {
                format!("transaction {xid}, committed{}", at(time))
            }
            Some(TransactionFate::RolledBack(time)) => {
                format!("transaction {xid}, rolled back{}", at(time))
            }
            Some(TransactionFate::Unfinished) => format!("transaction {xid}, which did not end"),
            Some(TransactionFate::Unknown(why)) => {
                format!("transaction {xid}, whose end is not known: {why}")
            }
            None => format!("transaction {xid}"),
        }
    }

    fn json(&self) -> Value {
        let rows = self.history.rows.iter();
        let rows = rows.map(|row| {
            Value::Array(row.iter().map(|version| self.version_json(version)).collect())
        });
        let wal = self.history.wal.as_ref();
        json!({
            "table": self.table,
            "ctid": self.ctid.to_string(),
            "wal": wal.ok().map(|(start, end)| json!({
                "start": start.to_string(),
                "end": end.to_string(),
            })),
            "rows": rows.collect::<Vec<_>>(),
        })
    }

    fn version_json(&self, version: &RowVersion) -> Value {
        let (state, why) = match &version.state {
            VersionState::Visible => ("visible", None),
            VersionState::Invisible => ("invisible", None),
            VersionState::Unknown(why) => ("unknown", Some(why)),
            VersionState::Gone => ("gone", None),
        };
        json!({
            "ctid": version.tid.to_string(),
            "state": state,
            "fault": why,
            "was_there": version.was_there,
            "inserted_by": version.inserted_by.map(|xid| self.transaction_json(xid)),
            "events": version.events.iter().map(|event| self.event_json(event)).collect::<Vec<_>>(),
            "columns": version.values.as_deref().map(values_json),
        })
    }

    fn event_json(&self, event: &VersionEvent) -> Value {
        let (action, tid) = match event.action {
            VersionAction::Tuple(action) => action_json(action),
            VersionAction::CutOff => ("cut off", None),
        };
        let is_recorded = !event.record.is_empty();
        let has_xid = event.xid != TransactionId::INVALID;
        json!({
            "lsn": is_recorded.then(|| event.lsn.to_string()),
            "record": is_recorded.then_some(&event.record),
            "action": action,
            "tid": tid,
            "transaction": has_xid.then(|| self.transaction_json(event.xid)),
        })
    }

    fn transaction_json(&self, xid: TransactionId) -> Value {
        let (status, time, why) = match self.fates.get(&xid.0) {
            Some(TransactionFate::Committed(time)) => ("committed", *time, None),
            Some(TransactionFate::RolledBack(time)) => ("rolled back", *time, None),
            Some(TransactionFate::Unfinished) => ("unfinished", None, None),
            Some(TransactionFate::Unknown(why)) => ("unknown", None, Some(why)),
            None => ("unknown", None, None),
        };
        let time = time.map(|time| Moment(time).to_string());
        json!({ "xid": xid.0, "status": status, "time": time, "fault": why })
    }
}

/// A line for each column.
fn values_text(values: &[ColumnValue]) -> String {
    let width = values.iter().map(|column| column.name.chars().count()).max().unwrap_or(0);
    let line = |column: &ColumnValue| {
        let value = match &column.value {
            Ok(None) => "\\N".to_owned(),
            Ok(Some(text)) => escaped(text),
            Err(why) => format!("(unreadable: {why})"),
        };
        format!("    {:<width$}  {value}\n", printable(column.name.as_bytes()))
    };
    values.iter().map(line).collect()
}

/// A value as a field of COPY.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => escaped.push_str("\\\\"),
            '\t' => escaped.push_str("\\t"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\u{8}' => escaped.push_str("\\b"),
            '\u{c}' => escaped.push_str("\\f"),
            '\u{b}' => escaped.push_str("\\v"),
            other => escaped.push(other),
        }
    }
    escaped
}

fn values_json(values: &[ColumnValue]) -> Value {
    let one = |column: &ColumnValue| {
        let (value, why) = match &column.value {
            Ok(value) => (value.as_deref(), None),
            Err(why) => (None, Some(why)),
        };
        json!({ "name": column.name, "value": value, "fault": why })
    };
    Value::Array(values.iter().map(one).collect())
}
