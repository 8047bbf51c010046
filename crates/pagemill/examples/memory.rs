//! Reads a table of a cluster that is held in memory, as one that came out of an archive or over a network:
//! `cargo run --example memory -- DATADIR DATABASE TABLE`.

use std::path::Path;
use std::sync::Arc;

use pagemill::{Cluster, HostFiles, MemoryFiles, OpenOptions, Storage};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, database, table] = &arguments[..] else {
        eprintln!("usage: memory DATADIR DATABASE TABLE");
        std::process::exit(2);
    };
    // Files can come from anywhere: MemoryFiles::insert puts one under its path.
    let directory = std::fs::canonicalize(Path::new(directory))?;
    let files = MemoryFiles::load(&HostFiles::real(), &directory)?;
    let storage = Storage::new(Arc::new(files));
    let cluster = Cluster::open_with(storage, &directory, OpenOptions::default())?;
    let table = cluster.database(database)?.table(table)?;
    let mut rows = table.rows(&[])?;
    while let Some(mut row) = rows.next_row()? {
        let texts: pagemill::Result<Vec<_>> =
            (0..table.columns().len()).map(|column| row.text(column)).collect();
        let texts: Vec<_> =
            texts?.into_iter().map(|text| text.unwrap_or_else(|| "NULL".into())).collect();
        println!("{}", texts.join(" | "));
    }
    Ok(())
}
