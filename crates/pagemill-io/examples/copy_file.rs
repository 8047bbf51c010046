//! Copies a file by a method, durable at the end, and prints how long it took: what the choice in `file_copy.rs`
//! was measured by.

use std::path::Path;
use std::time::Instant;

use pagemill_io::{CopyMethod, Error, Storage};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().collect();
    let [_, from, to, method] = words.as_slice() else {
        return Err("usage: copy_file FROM TO auto|reflink|copy_file_range|read_write".into());
    };
    let method: Option<CopyMethod> = method.parse().ok();
    let storage = Storage::real();
    let start = Instant::now();
    let copied =
        storage.copy_file(Path::new(from), Path::new(to), method, &mut |_| Ok::<_, Error>(()))?;
    copied.sync()?;
    storage.sync_dir_of(Path::new(to))?;
    let seconds = start.elapsed().as_secs_f64();
    println!("{:.3} s {} bytes by {}", seconds, copied.bytes, copied.method);
    Ok(())
}
