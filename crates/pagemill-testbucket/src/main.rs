//! The server as a program: `pagemill-testbucket DIR [MILLISECONDS [BYTES_PER_SECOND]]` prints its address and serves until
//! its standard input ends. For each line of it, it prints how many of the requests since the last one came one after the other.
//!
//! For benchmarks, whose client must not share a process with the server.
#![forbid(unsafe_code)]

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use pagemill_testbucket::{S3_PAGE, TestBucket, in_a_row};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).map_or(Ok(0), |text| text.parse());
    let root = arguments.first().context("name a directory")?;
    let bucket = TestBucket::start_with_pages(Path::new(root), S3_PAGE)?;
    bucket.set_latency(Duration::from_millis(number(1)?));
    bucket.set_rate(number(2)?);
    println!("{}", bucket.endpoint());
    for line in std::io::stdin().lines() {
        line?;
        println!("{}", in_a_row(&bucket.take_log()));
    }
    Ok(())
}
