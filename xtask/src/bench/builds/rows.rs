//! What both builds do: a command line a row, and what is done after it, which is not timed.
//!
//! Invariant: after a turn the cluster holds what it held before it, so that both builds meet the same.

use anyhow::{Result, bail};

/// What of a command line stands for a path of the machine.
pub(super) const DATA: &str = "DATA";
/// The file that is exported into.
pub(super) const FILE: &str = "FILE";
/// The files that are loaded.
pub(super) const INPUTS: [(&str, &str); 2] = [("INPUT_T", "t"), ("INPUT_BIGTABLE", "bigtable")];

/// One row of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: &'static str,
    /// The command, its words apart by spaces.
    pub(super) command: &'static str,
    /// The command after it.
    pub(super) undo: Option<&'static str>,
    /// True where the standard output goes through a pipe to a program that throws it away.
    pub(super) into_pipe: bool,
    /// True where it writes into the cluster, or as much as it reads.
    pub(super) writes: bool,
}

const fn reads(id: &'static str, command: &'static str) -> Row {
    Row { id, command, undo: None, into_pipe: false, writes: false }
}

const fn writes(id: &'static str, command: &'static str) -> Row {
    Row { id, command, undo: None, into_pipe: false, writes: true }
}

/// All rows.
pub(super) const ROWS: [Row; 15] = [
    reads("startup", "ls -D DATA"),
    reads("count-t", "count -D DATA -d postgres -t t"),
    reads("count-t-jobs", "count -D DATA -d postgres -t t -j 2"),
    reads("count-bigtable", "count -D DATA -d postgres -t bigtable"),
    reads("count-order", "count -D DATA -d postgres -t bigtable --order-by bigtable_a"),
    reads("export-t-null", "export -D DATA -d postgres -t t --format csv -o /dev/null"),
    Row {
        into_pipe: true,
        ..reads("export-t-pipe", "export -D DATA -d postgres -t t --format csv")
    },
    writes("export-t-text", "export -D DATA -d postgres -t t --format text -o FILE"),
    writes("export-t-csv", "export -D DATA -d postgres -t t --format csv -o FILE"),
    writes("export-bigtable-csv", "export -D DATA -d postgres -t bigtable --format csv -o FILE"),
    writes(
        "export-bigtable-jobs",
        "export -D DATA -d postgres -t bigtable --format csv -j 2 -o FILE",
    ),
    writes("load-t", "load -D DATA -d postgres -t loaded_t --format csv --truncate INPUT_T"),
    writes(
        "load-bigtable",
        "load -D DATA -d postgres -t loaded_bigtable --format csv --truncate INPUT_BIGTABLE",
    ),
    writes(
        "load-key",
        "load -D DATA -d postgres -t loaded_key --format csv --truncate INPUT_BIGTABLE",
    ),
    Row { undo: Some("drop -D DATA copy"), ..writes("clone", "clone -D DATA postgres copy") },
];

/// The rows whose names begin with one of these; all of them without any.
pub(super) fn selected(names: &[String]) -> Result<Vec<Row>> {
    let is_named =
        |row: &Row| names.is_empty() || names.iter().any(|name| row.id.starts_with(name));
    let rows: Vec<Row> = ROWS.into_iter().filter(is_named).collect();
    if rows.is_empty() {
        let ids: Vec<&str> = ROWS.iter().map(|row| row.id).collect();
        bail!("no such row; there are {}", ids.join(", "));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_the_beginnings_of_their_names() {
        let ids = |names: &[&str]| -> Vec<&str> {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            selected(&names).unwrap().iter().map(|row| row.id).collect()
        };
        assert_eq!(ids(&[]).len(), ROWS.len());
        assert_eq!(ids(&["count-b", "clone"]), ["count-bigtable", "clone"]);
        assert!(selected(&["nothing".to_owned()]).is_err());
    }

    #[test]
    fn what_is_done_with_a_copy_is_undone() {
        for row in ROWS.iter().filter(|row| row.command.starts_with("clone")) {
            assert!(row.undo.is_some(), "{}", row.id);
        }
    }
}
