//! Formats that are written row by row: CSV, JSON lines, Markdown.
//!
//! Invariant: each row is written when it comes, so an answer of any length takes no more memory than a row.

use std::io::Write;

use pagemill_types::builtin::oid;

use super::rows::Texts;
use super::{OutputFormat, OutputStyle};
use crate::error::Result;
use crate::session::AnswerColumn;

/// One of these formats.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Csv,
    Json,
    Markdown,
}

/// One of these formats in a style.
#[derive(Debug, Clone, Copy)]
pub(super) struct Separated<'s> {
    kind: Kind,
    style: &'s OutputStyle,
}

impl<'s> Separated<'s> {
    pub(super) fn of(style: &'s OutputStyle) -> Option<Self> {
        let kind = match style.format {
            OutputFormat::Csv => Kind::Csv,
            OutputFormat::Json => Kind::Json,
            OutputFormat::Markdown => Kind::Markdown,
            OutputFormat::Aligned | OutputFormat::Expanded | OutputFormat::Unaligned => {
                return None;
            }
        };
        Some(Self { kind, style })
    }

    pub(super) fn header(self, columns: &[AnswerColumn], out: &mut impl Write) -> Result<()> {
        if self.style.tuples_only {
            return Ok(());
        }
        match self.kind {
            Kind::Csv => {
                let names: Vec<String> =
                    columns.iter().map(|column| quoted(&column.name)).collect();
                writeln!(out, "{}", names.join(","))?;
            }
            Kind::Json => {}
            Kind::Markdown => {
                let names: Vec<String> = columns.iter().map(|column| cell(&column.name)).collect();
                writeln!(out, "| {} |", names.join(" | "))?;
                let rules: Vec<&str> =
                    columns.iter().map(|c| if is_number(c) { "---:" } else { "---" }).collect();
                writeln!(out, "| {} |", rules.join(" | "))?;
            }
        }
        Ok(())
    }

    pub(super) fn row(
        self,
        columns: &[AnswerColumn],
        texts: Texts<'_>,
        out: &mut impl Write,
    ) -> Result<()> {
        let null = || self.style.null.clone();
        match self.kind {
            Kind::Csv => {
                let value = |text: &Option<String>| match text {
                    None => null(),
                    // An empty text is told from NULL.
                    Some(text) if text.is_empty() => "\"\"".to_owned(),
                    Some(text) => quoted(text),
                };
                let values: Vec<String> = texts.iter().map(value).collect();
                writeln!(out, "{}", values.join(","))?;
            }
            Kind::Json => writeln!(out, "{{{}}}", members(columns, texts))?,
            Kind::Markdown => {
                let value = |text: &Option<String>| text.as_deref().map_or_else(null, cell);
                let values: Vec<String> = texts.iter().map(value).collect();
                writeln!(out, "| {} |", values.join(" | "))?;
            }
        }
        Ok(())
    }
}

/// True for types whose columns are aligned to the right.
pub(super) fn is_number(column: &AnswerColumn) -> bool {
    matches!(
        column.ty.oid,
        oid::INT2
            | oid::INT4
            | oid::INT8
            | oid::FLOAT4
            | oid::FLOAT8
            | oid::NUMERIC
            | oid::OID
            | oid::XID
            | oid::XID8
            | oid::CID
            | oid::MONEY
    )
}

fn quoted(text: &str) -> String {
    let needs = text.contains([',', '"', '\n', '\r']) || text == "\\.";
    if needs { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

fn cell(text: &str) -> String {
    text.replace('\\', "\\\\").replace('|', "\\|").replace('\n', "<br>")
}

fn members(columns: &[AnswerColumn], texts: Texts<'_>) -> String {
    let mut all = String::new();
    for (column, text) in columns.iter().zip(texts) {
        if !all.is_empty() {
            all.push(',');
        }
        all.push_str(&json_text(&column.name));
        all.push(':');
        match text {
            None => all.push_str("null"),
            Some(text) => all.push_str(&json_value(column, text)),
        }
    }
    all
}

/// Numbers and booleans as themselves, documents as they are, all else as texts.
fn json_value(column: &AnswerColumn, text: &str) -> String {
    match column.ty.oid {
        oid::BOOL => if text == "t" { "true" } else { "false" }.to_owned(),
        oid::INT2 | oid::INT4 | oid::INT8 | oid::FLOAT4 | oid::FLOAT8 | oid::NUMERIC => {
            let is_finite = text.bytes().any(|b| b.is_ascii_digit());
            if is_finite { text.to_owned() } else { json_text(text) }
        }
        oid::JSON | oid::JSONB => text.to_owned(),
        _ => json_text(text),
    }
}

fn json_text(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
