//! Loads made-up rows into a table of a stopped cluster, all of them or none:
//! `cargo run --example load -- DATADIR DATABASE TABLE COUNT`.
//!
//! The table is one like `CREATE TABLE readings (sensor int, taken timestamptz, degrees numeric)`.

use pagemill::{LoadOptions, LockedCluster};

/// A reading each minute of 2026's first days, from one sensor after the other.
fn reading(number: u32) -> [Option<String>; 3] {
    let (day, hour, minute) = (number / 1440 % 28 + 1, number / 60 % 24, number % 60);
    let taken = format!("2026-01-{day:02} {hour:02}:{minute:02}:00+00");
    // A sensor that could not be read has no value: NULL.
    let degrees = (!number.is_multiple_of(97)).then(|| format!("{}.{}", number % 35, number % 10));
    [Some((number % 16).to_string()), Some(taken), degrees]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, database, table, count] = &arguments[..] else {
        eprintln!("usage: load DATADIR DATABASE TABLE COUNT");
        std::process::exit(2);
    };
    let count: u32 = count.parse()?;
    let cluster = LockedCluster::open(directory)?;
    let rows = (0..count).map(reading);
    let loaded = cluster.load_rows(database, table, rows, LoadOptions::default())?;
    println!("{} rows in {} blocks", loaded.rows, loaded.blocks);
    let table = cluster.cluster()?.database(database)?.table(table)?;
    println!("{} has {} rows now", table.name(), table.count()?);
    Ok(())
}
