//! Sizes as people type them, and how many threads work where nobody says so.
//!
//! Whatever is typed is a value or an error that says what would be one.

use pagemill_format::BLOCK_SIZE;

/// Threads that read rows unless told otherwise, at most: more wait for the one that writes.
const MOST_DEFAULT_JOBS: usize = 8;

/// A size in blocks, rounded. Units as in `src/backend/utils/misc/guc.c`, PostgreSQL 15.
pub fn blocks(text: &str) -> Option<usize> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let bytes = match unit.trim_start() {
        "" => BLOCK_SIZE as f64,
        "B" => 1.0,
        "kB" => 1024.0,
        "MB" => 1024.0 * 1024.0,
        "GB" => 1024.0 * 1024.0 * 1024.0,
        "TB" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    // A number beyond all sizes becomes the largest there is.
    Some((number * bytes / BLOCK_SIZE as f64).round_ties_even() as usize)
}

/// Bytes of a size: a number of bytes, or of B, kB, MB, GB or TB, fractions and blanks allowed.
pub fn byte_size(text: &str) -> Result<u64, String> {
    let is_bare = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let bytes = match is_bare(text.trim()) {
        true => text.trim().parse().ok(),
        false => blocks(text).map(|blocks| (blocks as u64).saturating_mul(BLOCK_SIZE as u64)),
    };
    let reason =
        "a size is a number of bytes, or a number and a unit: B, kB, MB, GB, TB, as in 64MB";
    bytes.ok_or_else(|| reason.into())
}

/// The least size of the lab's main files, in bytes: as `pagemill_lab::experiments::LEAST_SIZE`.
pub const LEAST_LAB_SIZE: u64 = 1 << 20;

/// A size of the lab's files.
pub fn lab_size(text: &str) -> Result<u64, String> {
    match byte_size(text)? {
        size if size < LEAST_LAB_SIZE => Err("1MB is the least".into()),
        size => Ok(size),
    }
}

/// A thread for each processor, within reason.
pub fn default_jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MOST_DEFAULT_JOBS)
}
