//! A row per cell for spreadsheets and scripts, in plain units: seconds, bytes, operations.
//!
//! Invariants: [`CSV_COLUMNS`] is the header and its documentation in one, so the two cannot part; cells that were not
//! measured have a row too; the figures of all turns stand in the last column, in the order of the turns.

use std::io::Write;

use crate::results::{Experiment, Figure, Group, Results};

use super::error::Result;
use super::rows::{Against, Row, rows};
use super::wording;

/// The columns, in order, with what they hold. Empty fields hold what was not measured.
pub const CSV_COLUMNS: &[(&str, &str)] = &[
    ("experiment", "name of the experiment"),
    ("group", "name of the group: contestants that did the same work in turns"),
    ("cell", "name of the contestant"),
    ("parameters", "what it is made of, as name=value separated by `;`"),
    ("cache", "state of the page cache before each turn: any, cached, cold, limited"),
    ("bytes", "bytes of the work, 0 where that means nothing"),
    ("figure", "what the figure is: elapsed, throughput, rate, latency, count"),
    ("unit", "unit of the figure: s, bytes/s, operations/s, s/operation, count"),
    ("turns", "how many times it was measured"),
    ("median", "median of the figure over the turns"),
    ("low", "lower end of the interval for the true median"),
    ("high", "upper end of it"),
    ("coverage", "probability that the interval encloses the true median, 0 to 1"),
    ("user_s", "median processor time in user mode, seconds"),
    ("system_s", "median processor time in the kernel, seconds"),
    ("wait_s", "median time of waiting for I/O, seconds, where it was counted"),
    ("device_bytes_per_s", "median throughput of the device, where it was seen"),
    ("baseline", "the cell that it is held against"),
    ("ratio", "how many times as good as the baseline, median over pairs of turns"),
    ("ratio_low", "lower end of the interval for the ratio"),
    ("ratio_high", "upper end of it"),
    ("difference", "faster, slower, no difference seen, too few turns; fewer and more for counts"),
    ("parts", "median times of the parts of a turn, as name=seconds separated by `;`"),
    ("calls", "median calls of a turn, as name=count separated by `;`"),
    ("absent", "refused, skipped or failed, for a cell without figures"),
    ("why", "why it has none"),
    ("note", "remarks"),
    ("figures", "the figure of every turn, in their order, separated by `;`"),
];

/// Writes the header and a row per cell. See [`CSV_COLUMNS`].
pub fn csv(results: &Results, out: &mut dyn Write) -> Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(CSV_COLUMNS.iter().map(|(name, _)| name)).map_err(std::io::Error::from)?;
    for experiment in &results.experiments {
        for group in &experiment.groups {
            for row in rows(group) {
                writer
                    .write_record(record(experiment, group, &row))
                    .map_err(std::io::Error::from)?;
            }
        }
    }
    writer.flush()?;
    Ok(())
}

fn record(experiment: &Experiment, group: &Group, row: &Row<'_>) -> Vec<String> {
    let parameters = row.cell.parameters.iter().map(|(name, value)| format!("{name}={value}"));
    let mut fields = vec![
        experiment.name.clone(),
        group.name.clone(),
        row.cell.name.clone(),
        joined(parameters),
        variant(group.cache),
        group.bytes.to_string(),
        variant(group.figure),
        unit(group.figure).to_owned(),
    ];
    fields.extend(measured(row));
    fields.extend(against(group, row));
    fields.extend(remarks(row));
    fields.push(joined(group.figures(row.cell).iter().map(f64::to_string)));
    fields
}

fn measured(row: &Row<'_>) -> [String; 9] {
    let summary =
        |value: fn(&crate::statistics::Summary) -> f64| number(row.summary.as_ref().map(value));
    [
        row.cell.samples.len().to_string(),
        summary(|found| found.median),
        summary(|found| found.low),
        summary(|found| found.high),
        summary(|found| found.coverage),
        number(row.user_s),
        number(row.system_s),
        number(row.wait_s),
        number(row.device_rate),
    ]
}

fn against(group: &Group, row: &Row<'_>) -> [String; 5] {
    let baseline = group.baseline.clone().unwrap_or_default();
    let Against::Compared(found) = row.against else {
        return [baseline, String::new(), String::new(), String::new(), String::new()];
    };
    let ratio = found.ratio;
    let word = wording::comparison(&found, group.figure).to_owned();
    [baseline, number(Some(ratio.median)), number(Some(ratio.low)), number(Some(ratio.high)), word]
}

fn remarks(row: &Row<'_>) -> [String; 5] {
    let parts = joined(row.parts.iter().map(|(name, time)| format!("{name}={time}")));
    let calls = joined(row.calls.iter().map(|(name, count)| format!("{name}={count}")));
    let (word, why) = row.cell.absent.as_ref().map_or(("", ""), wording::absence);
    [parts, calls, word.to_owned(), why.to_owned(), row.cell.note.clone().unwrap_or_default()]
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(";")
}

fn number(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// The name that the value has in the JSON.
fn variant(value: impl serde::Serialize) -> String {
    let name = serde_json::to_value(value).ok();
    name.as_ref().and_then(|name| name.as_str()).unwrap_or_default().to_owned()
}

fn unit(figure: Figure) -> &'static str {
    match figure {
        Figure::Elapsed => "s",
        Figure::Throughput => "bytes/s",
        Figure::Rate => "operations/s",
        Figure::Latency => "s/operation",
        Figure::Count => "count",
    }
}
