//! The server as a program: `pagemill-testbucket DIR [MILLISECONDS [BYTES_PER_SECOND]]` prints its address and serves until
//! its standard input ends.
//!
//! For benchmarks, whose client must not share a process with the server.
#![forbid(unsafe_code)]

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use pagemill_testbucket::TestBucket;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).map_or(Ok(0), |text| text.parse());
    let root = arguments.first().context("name a directory")?;
    let bucket = TestBucket::start(Path::new(root))?;
    bucket.set_latency(Duration::from_millis(number(1)?));
    bucket.set_rate(number(2)?);
    println!("{}", bucket.endpoint());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
