//! What the device allows: fio writing, in the same turns, as many bytes as pagemill wrote.
//!
//! Why: a ratio to the server says nothing of what could be reached. Invariant: rows without such turns are left out.

use std::fmt::Write as _;

use super::mib;
use crate::bench::clone::Bench;
use crate::bench::clone::turns::{Measured, over};
use crate::bench::figures::spread;
use crate::bench::statistics::median;

/// The table; nothing where there is no fio.
pub(super) fn table(bench: &Bench) -> String {
    let measured: Vec<&Measured> = bench.measured.iter().filter(|m| !m.fio_ms.is_empty()).collect();
    if measured.is_empty() {
        return String::new();
    }
    let mut table = String::from(
        "| against the device | written, MiB | fio, ms | pagemill, ms | pagemill of fio's rate | PostgreSQL over fio |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for measured in measured {
        let _ = writeln!(
            table,
            "| {} | {:.1} | {} | {} | {} | {} |",
            measured.row.id,
            mib(measured.stats.bytes_written),
            spread(&measured.fio_ms),
            spread(&measured.pagemill_ms),
            middle(&over(&measured.fio_ms, &measured.pagemill_ms)),
            middle(&over(&measured.server_ms(), &measured.fio_ms)),
        );
    }
    table += "\nfio writes as many bytes as pagemill's last run, data, WAL and all, into one new file that has its blocks \
              already: 1 MiB at a time, eight in flight, past the page cache, with a sync at the end and without its own \
              start. The last column is the ratio that a copy of the same bytes would reach on this device at best.\n";
    table
}

fn middle(ratios: &[f64]) -> String {
    median(ratios).map_or("—".to_owned(), |ratio| format!("{ratio:.2}"))
}
