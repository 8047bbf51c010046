//! Reads a table of a killed server's directory, or of a base backup and its archive up to a moment, with no restore:
//! `cargo run --example recover -- DATADIR DATABASE TABLE [ARCHIVE [TARGET]]`, where TARGET is `lsn:…`, `xid:…`, `time:…`,
//! `name:…` or `consistent`.

use std::io::{BufWriter, stdout};

use pagemill::{Cluster, ExportOptions, OpenOptions, RecoveryOptions, Storage};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, database, table, rest @ ..] = &arguments[..] else {
        eprintln!("usage: recover DATADIR DATABASE TABLE [ARCHIVE [TARGET]]");
        std::process::exit(2);
    };
    let mut recovery = RecoveryOptions::new();
    if let Some(archive) = rest.first() {
        recovery = recovery.wal_directory(archive);
    }
    if let Some(target) = rest.get(1) {
        recovery = recovery.until(target.parse()?);
    }
    let options = OpenOptions::default();
    let cluster = Cluster::recover(Storage::real(), directory, options, &recovery)?;
    if let Some(redone) = cluster.redone() {
        eprintln!("{redone}");
    }
    let table = cluster.database(database)?.table(table)?;
    table.copy_to(BufWriter::new(stdout().lock()), &ExportOptions::default())?;
    Ok(())
}
