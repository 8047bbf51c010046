//! Writes every table of a database as CSV into a directory, several at a time:
//! `cargo run --example dump -- DATADIR DATABASE DIRECTORY`.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Mutex;

use pagemill::{Cluster, CopyOptions, ExportOptions, Format, Table};

fn dump(table: &Table, directory: &Path) -> Result<u64, Box<dyn std::error::Error>> {
    let file = File::create(directory.join(format!("{}.csv", table.name())))?;
    let copy = CopyOptions { format: Format::Csv, header: true, ..CopyOptions::default() };
    let options = ExportOptions { copy, ..ExportOptions::default() };
    Ok(table.copy_to(BufWriter::new(file), &options)?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [data_directory, database, directory] = &arguments[..] else {
        eprintln!("usage: dump DATADIR DATABASE DIRECTORY");
        std::process::exit(2);
    };
    let tables = Mutex::new(Cluster::open(data_directory)?.database(database)?.tables()?);
    let threads = std::thread::available_parallelism()?.get();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some(table) = tables.lock().expect("no thread panics").pop() else {
                        return;
                    };
                    match dump(&table, Path::new(directory)) {
                        Ok(rows) => println!("{}: {rows} rows", table.name()),
                        Err(error) => eprintln!("{}: {error}", table.name()),
                    }
                }
            });
        }
    });
    Ok(())
}
