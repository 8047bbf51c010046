//! Whole clusters in the result.
//!
//! A ratio is another's time over pagemill's, the median of the turns.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::held;
use crate::bench::clone::Bench;
use crate::bench::clone::rows::{MEMORY_TARGET_MIB, WHOLE_TARGET};
use crate::bench::clone::whole::MeasuredWhole;
use crate::bench::figures::{self, ratio, spread};

/// The table; nothing without rows.
pub(super) fn table(bench: &Bench) -> String {
    if bench.wholes.is_empty() {
        return String::new();
    }
    let mut table = format!(
        "| whole cluster | other, ms | pagemill clone --cluster, ms | ratio | target | verdict | peak memory, MiB (≤ {MEMORY_TARGET_MIB}) |\n\
         | --- | ---: | ---: | ---: | ---: | --- | ---: |\n"
    );
    for measured in &bench.wholes {
        for (name, times, ratios) in measured.others() {
            let _ = writeln!(
                table,
                "| {}, {name} | {} | {} | {} | ≥ {WHOLE_TARGET}× | {} | {} |",
                measured.row.id,
                spread(times),
                spread(&measured.pagemill_ms),
                ratio(&ratios),
                measured.verdict(&ratios),
                held(measured.peak_memory_mib, MEMORY_TARGET_MIB, 1),
            );
        }
    }
    table += "\nThe three in turns, from the same cluster, before databases were copied in it: `cp -a --reflink=never` and \
              `sync -f` of the copy, `pg_basebackup --checkpoint=fast` over a local socket with its own sync, and \
              `pagemill clone --cluster`. After each a server is started on the copy and compares.\n";
    table
}

/// The raw numbers.
pub(super) fn raw(measured: &MeasuredWhole) -> Value {
    let others = measured.others();
    let others: Vec<Value> = others
        .iter()
        .map(|(name, times, ratios)| {
            json!({
                "other": name,
                "ms": times,
                "ratios": ratios,
                "figure": figures::raw(ratios),
                "verdict": measured.verdict(ratios),
            })
        })
        .collect();
    json!({
        "row": measured.row.id,
        "pagemill_ms": measured.pagemill_ms,
        "others": others,
        "target": WHOLE_TARGET,
        "peak_memory_mib": measured.peak_memory_mib,
        "fault": measured.fault,
    })
}
