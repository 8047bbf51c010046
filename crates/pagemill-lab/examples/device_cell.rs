//! One cell of the lab's `device`, for `cargo xtask bench device`, which holds it against other programs.
//!
//! `device_cell FILE make BYTES` writes the file in full; `device_cell FILE MILLISECONDS TURN WORD...` takes one turn of the
//! cell that the words name and prints what it came to, as `operations=… bytes=… seconds=…`.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use pagemill_lab::experiments::single_cell::{make_file, turn};

const USAGE: &str = "usage: device_cell FILE make BYTES | FILE MILLISECONDS TURN (sync METHOD | \
     read|write METHOD KB direct|buffered DEPTH around|once|random)";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [file, "make", bytes] => Ok(make_file(&PathBuf::from(file), bytes.parse()?)?),
        [file, milliseconds, number, cell @ ..] => {
            let time = Duration::from_millis(milliseconds.parse()?);
            let work = turn(&PathBuf::from(file), cell, time, number.parse()?).ok_or(USAGE)??;
            println!(
                "operations={} bytes={} seconds={}",
                work.operations,
                work.bytes.unwrap_or_default(),
                work.elapsed.unwrap_or_default().as_secs_f64()
            );
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}
