//! The forecast for 10 TB, as a table of Markdown: the one of the guide.
//!
//! Invariant: a line says the same whenever it is computed.

use std::fmt::Write as _;

use super::{Fleet, Forecast, StoreSheet, Work, WorkerSheet};

/// Bytes of the database.
pub const DATABASE: u64 = 10_000_000_000_000;
/// Fleets of so many workers.
pub const WORKERS: [u32; 4] = [4, 16, 64, 256];
/// A machine of 8 virtual processors, of which two are a core, with the 10 Gbit/s that clouds grant it for as long as it likes.
pub const WORKER: WorkerSheet =
    WorkerSheet { cores: 4, link: 1_250_000_000, receive_rate: RECEIVE_RATE };
/// What a core takes from the network beside what it does with it, by the benchmark of object stores, with TLS counted as much again.
const RECEIVE_RATE: u64 = 800_000_000;

/// What is forecast, each on these stores.
fn works() -> [(Work, Vec<StoreSheet>); 3] {
    let standard = StoreSheet::s3_standard();
    let all =
        [standard, StoreSheet::s3_express(), StoreSheet::gcs_standard(), StoreSheet::azure_hot()];
    [
        (Work::count(DATABASE), all.to_vec()),
        (Work::tpch_query(DATABASE), vec![standard]),
        (Work::lookup(), vec![standard, StoreSheet::s3_express()]),
    ]
}

/// What a fleet of so many workers of this kind takes.
pub fn forecast(work: &Work, store: StoreSheet, workers: u32) -> Forecast {
    Fleet { store, worker: WORKER, workers, seed: 1 }.forecast(work)
}

/// A line for each work, store and fleet. A lookup is one worker's.
pub fn table() -> String {
    let mut table = "| work | store | workers | time | rate | requests | price | held back by |\n\
        | --- | --- | ---: | ---: | ---: | ---: | ---: | --- |\n"
        .to_owned();
    for (work, stores) in works() {
        for store in stores {
            let fleets = if work.bytes == 0 { &[1][..] } else { &WORKERS };
            for workers in fleets {
                table += &line(&work, store, *workers);
            }
        }
    }
    table
}

/// One of them.
pub fn line(work: &Work, store: StoreSheet, workers: u32) -> String {
    let told = forecast(work, store, workers);
    let rate = work.bytes as f64 / told.time.as_secs_f64() / 1e9;
    let rate = if work.bytes == 0 { "—".to_owned() } else { format!("{rate:.1} GB/s") };
    let mut line = String::new();
    writeln!(
        line,
        "| {} | {} | {workers} | {} | {rate} | {} | {:.2} $ | {} |",
        work.name,
        store.name,
        time(&told),
        told.requests,
        told.dollars,
        told.held_back_by.words()
    )
    .expect("a text takes all"); // infallible: of a text
    line
}

fn time(told: &Forecast) -> String {
    match told.time.as_secs_f64() {
        seconds if seconds < 10.0 => format!("{:.0} ms", seconds * 1e3),
        seconds if seconds < 600.0 => format!("{seconds:.0} s"),
        seconds => format!("{:.0} min", seconds / 60.0),
    }
}
