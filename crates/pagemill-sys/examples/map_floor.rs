//! What the kernel takes to hand out the pages of files: the program that `cargo xtask bench` holds counts against.
//!
//! ```text
//! map_floor FILE...
//! ```
//! Maps each file, touches one byte of every 8 kB page, and unmaps it: nothing is counted, copied or checked. Prints
//! milliseconds, its own start left out.
//!
//! Invariant: every page was read; a file that cannot be is an error and no figure.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::time::Instant;

use pagemill_sys::Mapping;

/// Bytes of PostgreSQL's page.
const PAGE_BYTES: usize = 8192;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    for path in std::env::args_os().skip(1) {
        let file = File::open(path)?;
        let bytes = usize::try_from(file.metadata()?.len())?;
        Mapping::new(file.as_fd(), bytes)?.touch(0..bytes, PAGE_BYTES)?;
    }
    println!("{:.3}", start.elapsed().as_secs_f64() * 1000.0);
    Ok(())
}
