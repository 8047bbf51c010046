//! One block as `inspect` shows it: header, checksum, line pointers, tuples, each with what is
//! wrong with it.

use anyhow::Result;
use pagemill_cluster::{Database, Relation};
use pagemill_engine::inspect::{
    BlockReport, ChecksumVerdict, LinePointerReport, TupleFate, TupleReport, block, page_flags,
};
use pagemill_format::page::LinePointerState;
use pagemill_format::{BlockNumber, Fork};
use serde_json::{Value, json};

use crate::inspect::View;
use crate::page_history;
use crate::text_table::fields;

/// A block as JSON.
pub(crate) fn json_view(
    database: &Database,
    relation: &Relation,
    fork: Fork,
    number: BlockNumber,
) -> Result<View> {
    let report = block(database, relation, fork, number)?;
    Ok(View::json(&block_json(relation, fork, number, &report), report.is_damaged()))
}

/// A block as text.
pub(crate) fn text_view(
    database: &Database,
    relation: &Relation,
    fork: Fork,
    number: BlockNumber,
) -> Result<View> {
    let report = block(database, relation, fork, number)?;
    let title = ("Block", format!("{number} of fork {fork} of {}", relation.display_name()));
    let mut text = fields(&[vec![title], header_fields(&report)].concat());
    if !report.line_pointers.is_empty() || report.history.is_some() {
        text += "\n";
    }
    text += &report.history.as_ref().map_or_else(String::new, page_history::text);
    report.line_pointers.iter().for_each(|lp| text += &line_pointer_text(lp));
    Ok(View { text, is_damaged: report.is_damaged() })
}

fn header_fields(report: &BlockReport) -> Vec<(&'static str, String)> {
    let h = &report.header;
    let fault = report.header_fault.as_ref();
    let verdict = match fault {
        Some(fault) => format!("DAMAGED: {fault}"),
        None if report.is_new => "sound, never initialised (all zeros)".to_owned(),
        None => "sound".to_owned(),
    };
    let mut fields = vec![
        ("File", format!("{}, offset {}", report.path.display(), report.offset)),
        ("LSN", h.lsn.to_string()),
        ("Checksum", checksum_text(report)),
        ("Flags", flags_text(h.flags, &page_flags(h))),
        ("Lower, upper, special", format!("{}, {}, {}", h.lower, h.upper, h.special)),
        ("Page size, version", format!("{}, {}", h.size, h.version)),
        ("Prune XID", h.prune_xid.to_string()),
        ("Header", verdict),
    ];
    fields.extend(report.history.iter().flat_map(page_history::fields));
    fields
}

fn flags_text(bits: u16, names: &[&str]) -> String {
    format!("{bits:#06x} {}", names.join(" ")).trim_end().to_owned()
}

fn checksum_text(report: &BlockReport) -> String {
    let sum = &report.checksum;
    format!("{:#06x} on the page, {:#06x} computed: {}", sum.stored, sum.computed, verdict(report))
}

fn verdict(report: &BlockReport) -> &'static str {
    match report.checksum.verdict {
        ChecksumVerdict::Right => "right",
        ChecksumVerdict::Wrong => "WRONG",
        ChecksumVerdict::NotVerified => "not verified",
        ChecksumVerdict::NewPage => "a new page carries none",
    }
}

fn state_name(state: LinePointerState) -> &'static str {
    match state {
        LinePointerState::Unused => "unused",
        LinePointerState::Normal => "normal",
        LinePointerState::Redirect => "redirect",
        LinePointerState::Dead => "dead",
    }
}

fn line_pointer_text(report: &LinePointerReport) -> String {
    let (number, lp) = (report.number, report.pointer);
    let state = state_name(lp.state());
    let place = match lp.state() {
        LinePointerState::Unused => String::new(),
        LinePointerState::Redirect => format!(" to {}", lp.offset()),
        _ => format!(", offset {}, length {}", lp.offset(), lp.len()),
    };
    let mut text = format!("line pointer {number}: {state}{place}\n");
    if let Some(fault) = &report.fault {
        text += &format!("    DAMAGED: {fault}\n");
    }
    if let Some(tuple) = &report.tuple {
        text += &tuple_text(tuple);
    }
    text
}

fn tuple_text(tuple: &TupleReport) -> String {
    let TupleReport { xmin, xmax, cid, ctid, hoff, attributes, infomask, infomask2, .. } = tuple;
    let nulls = tuple.null_bitmap.as_ref().map_or(String::new(), |bits| format!(" nulls {bits}"));
    format!(
        "    xmin {xmin} xmax {xmax} cid {cid} ctid {ctid} hoff {hoff} natts {attributes}{nulls}\n    \
         infomask {infomask:#06x} infomask2 {infomask2:#06x} {flags}\n    {fate}\n",
        flags = tuple.flags().join(" "),
        fate = fate_text(&tuple.fate),
    )
}

fn fate_text(fate: &TupleFate) -> String {
    match fate {
        TupleFate::Visible => "visible".to_owned(),
        TupleFate::NeverInserted => "not visible: its inserter did not commit".to_owned(),
        TupleFate::Deleted => "not visible: deleted or updated".to_owned(),
        TupleFate::Unknown(why) => format!("DAMAGED: visibility cannot be told: {why}"),
    }
}

fn block_json(relation: &Relation, fork: Fork, number: BlockNumber, report: &BlockReport) -> Value {
    let h = &report.header;
    let sum = &report.checksum;
    json!({
        "relation": relation.display_name(),
        "fork": fork.name(),
        "block": number.0,
        "file": report.path.display().to_string(),
        "offset": report.offset,
        "is_new": report.is_new,
        "is_damaged": report.is_damaged(),
        "header": {
            "lsn": h.lsn.to_string(),
            "flags": h.flags,
            "flag_names": page_flags(h),
            "lower": h.lower,
            "upper": h.upper,
            "special": h.special,
            "page_size": h.size,
            "version": h.version,
            "prune_xid": h.prune_xid,
            "fault": report.header_fault,
        },
        "checksum": {
            "stored": sum.stored,
            "computed": sum.computed,
            "verdict": verdict(report).to_lowercase(),
        },
        "wal": page_history::json(report.history.as_ref()),
        "line_pointers": report.line_pointers.iter().map(line_pointer_json).collect::<Vec<_>>(),
    })
}

fn line_pointer_json(report: &LinePointerReport) -> Value {
    json!({
        "number": report.number,
        "state": state_name(report.pointer.state()),
        "offset": report.pointer.offset(),
        "length": report.pointer.len(),
        "fault": report.fault,
        "tuple": report.tuple.as_ref().map(tuple_json),
    })
}

fn tuple_json(tuple: &TupleReport) -> Value {
    let (fate, why) = match &tuple.fate {
        TupleFate::Visible => ("visible", None),
        TupleFate::NeverInserted => ("inserter did not commit", None),
        TupleFate::Deleted => ("deleted", None),
        TupleFate::Unknown(why) => ("unknown", Some(why)),
    };
    json!({
        "xmin": tuple.xmin,
        "xmax": tuple.xmax,
        "cid": tuple.cid,
        "ctid": tuple.ctid,
        "infomask": tuple.infomask,
        "infomask2": tuple.infomask2,
        "flags": tuple.flags(),
        "hoff": tuple.hoff,
        "natts": tuple.attributes,
        "null_bitmap": tuple.null_bitmap,
        "visibility": fate,
        "fault": why,
    })
}
