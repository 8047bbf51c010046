//! A result as an artefact: a page to read and the raw numbers to check it by, under one stem.
//!
//! Kept as `<date>-<name>.md` and `.json`. Invariant: a result is never overwritten.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Map, Value, json};

/// Names with values, in the order they are printed.
pub(super) type Entries = [(&'static str, String)];

/// The entries as a JSON object.
pub(super) fn named(entries: &Entries) -> Value {
    let pairs = entries.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
    Value::Object(pairs.collect::<Map<String, Value>>())
}

/// Writes both files and gives their paths. The day is that of the environment.
pub(super) fn keep(
    directory: &Path,
    name: &str,
    environment: &Entries,
    page: &str,
    numbers: &Value,
) -> Result<[PathBuf; 2]> {
    std::fs::create_dir_all(directory)?;
    let date = environment.iter().find(|(name, _)| *name == "date");
    let day = date.and_then(|(_, date)| date.get(..10)).unwrap_or("undated");
    let stem = free_stem(directory, &format!("{day}-{name}"));
    let page_path = directory.join(format!("{stem}.md"));
    let numbers_path = directory.join(format!("{stem}.json"));
    std::fs::write(&page_path, page)?;
    std::fs::write(&numbers_path, serde_json::to_string_pretty(numbers)? + "\n")?;
    Ok([page_path, numbers_path])
}

/// The stem itself, or the first of `-2`, `-3` and so on that is not taken.
fn free_stem(directory: &Path, stem: &str) -> String {
    let taken = |stem: &str| directory.join(format!("{stem}.json")).exists();
    if !taken(stem) {
        return stem.to_owned();
    }
    let numbered = (2_u32..).map(|number| format!("{stem}-{number}"));
    numbered.into_iter().find(|stem| !taken(stem)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_never_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(free_stem(directory.path(), "2026-01-01-bench"), "2026-01-01-bench");
        std::fs::write(directory.path().join("2026-01-01-bench.json"), "{}").unwrap();
        assert_eq!(free_stem(directory.path(), "2026-01-01-bench"), "2026-01-01-bench-2");
    }
}
