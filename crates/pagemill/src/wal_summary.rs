//! The sums of `pagemill wal show --summary`: how many records, and how many bytes of records and of images.
//!
//! As in `pg_waldump --stats`, images are not counted among the bytes of their records.

use std::collections::BTreeMap;

use pagemill_format::PgVersion;
use pagemill_format::wal::{Record, ResourceManager};

use crate::text_table::{self, Align};
use crate::wal_arguments::SummaryBy;

/// Sums, by what they are of.
pub(crate) struct Summary {
    by: SummaryBy,
    sums: BTreeMap<(ResourceManager, String), Sums>,
}

#[derive(Clone, Copy, Default)]
struct Sums {
    records: u64,
    record_bytes: u64,
    image_bytes: u64,
}

impl Summary {
    pub(crate) fn new(by: SummaryBy) -> Self {
        Self { by, sums: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, record: &Record<'_>, version: PgVersion) {
        let name = match self.by {
            SummaryBy::Rmgr => String::new(),
            SummaryBy::Record => format!("/{}", record.header.record_name(version)),
        };
        let sums = self.sums.entry((record.header.resource_manager, name)).or_default();
        let images = record.image_bytes() as u64;
        sums.records += 1;
        sums.record_bytes += u64::from(record.header.total_len) - images;
        sums.image_bytes += images;
    }

    pub(crate) fn text(&self) -> String {
        let total = self.sums.values().fold(Sums::default(), |total, sums| Sums {
            records: total.records + sums.records,
            record_bytes: total.record_bytes + sums.record_bytes,
            image_bytes: total.image_bytes + sums.image_bytes,
        });
        let mut header = vec![("Type", Align::Left)];
        for title in ["N", "Record size", "FPI size", "Combined size"] {
            header.extend([(title, Align::Right), ("(%)", Align::Right)]);
        }
        let mut rows: Vec<Vec<String>> = self
            .sums
            .iter()
            .map(|((manager, name), sums)| row(format!("{}{name}", manager.name()), *sums, total))
            .collect();
        rows.push(row("Total".into(), total, total));
        text_table::table(&header, &rows)
    }
}

fn row(name: String, sums: Sums, total: Sums) -> Vec<String> {
    let figures = [
        (sums.records, total.records),
        (sums.record_bytes, total.record_bytes),
        (sums.image_bytes, total.image_bytes),
        (sums.record_bytes + sums.image_bytes, total.record_bytes + total.image_bytes),
    ];
    let cells = figures.iter().flat_map(|(part, whole)| {
        let percent = if *whole == 0 { 0.0 } else { 100.0 * *part as f64 / *whole as f64 };
        [part.to_string(), format!("{percent:.2}")]
    });
    std::iter::once(name).chain(cells).collect()
}
