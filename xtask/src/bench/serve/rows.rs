//! What is measured: the rows of the result, and what each is held to.
//!
//! Targets are set here, before a run, and never moved to fit one.

use anyhow::{Result, bail};

/// What is done, and what the figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Accounts by their keys, by so many clients of pgbench in this mode: statements a second over the server's.
    Lookups { clients: usize, mode: &'static str },
    /// A table by COPY to a client: the server's time over ours.
    Copy,
    /// From the start of the program to the end of a client that asked one thing: milliseconds.
    FirstAnswer,
    /// What a session takes that asked something and waits: MiB.
    IdleSession,
    /// Memory at the end of a long mixed load over that near its beginning.
    Soak,
}

/// One row of the result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Row {
    pub(super) id: &'static str,
    pub(super) work: Work,
    /// At least, or at most, as the work has it; `None` where nothing is asked.
    pub(super) target: Option<f64>,
}

impl Work {
    /// True where the figure is a ratio to the server's.
    pub(super) fn is_compared(self) -> bool {
        matches!(self, Self::Lookups { .. } | Self::Copy)
    }

    /// True where more is better.
    pub(super) fn is_least(self) -> bool {
        self.is_compared()
    }

    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::Lookups { .. } => "statements/s",
            Self::Copy | Self::FirstAnswer => "ms",
            Self::IdleSession => "MiB a session",
            Self::Soak => "MiB at the end over MiB after two minutes",
        }
    }
}

const fn lookups(id: &'static str, clients: usize, mode: &'static str) -> Row {
    Row { id, work: Work::Lookups { clients, mode }, target: None }
}

const ROWS: [Row; 7] = [
    Row { target: Some(0.5), ..lookups("lookups-50", 50, "prepared") },
    lookups("lookups-1", 1, "prepared"),
    lookups("texts-50", 50, "simple"),
    Row { id: "copy", work: Work::Copy, target: Some(1.0) },
    Row { id: "first-answer", work: Work::FirstAnswer, target: Some(100.0) },
    Row { id: "idle-session", work: Work::IdleSession, target: Some(1.0) },
    Row { id: "soak", work: Work::Soak, target: Some(1.1) },
];

/// The rows whose names begin as one of these; all but the one that takes long without any.
pub(super) fn selected(beginnings: &[String]) -> Result<Vec<Row>> {
    if beginnings.is_empty() {
        return Ok(ROWS.into_iter().filter(|row| row.work != Work::Soak).collect());
    }
    for beginning in beginnings {
        if !ROWS.iter().any(|row| row.id.starts_with(&**beginning)) {
            bail!("no row begins with {beginning:?}; --list shows them");
        }
    }
    let is_wanted = |row: &Row| beginnings.iter().any(|beginning| row.id.starts_with(&**beginning));
    Ok(ROWS.into_iter().filter(is_wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_chosen_by_their_beginnings_and_the_long_one_by_name_alone() {
        let ids = |words: &[&str]| -> Vec<&str> {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            selected(&words).unwrap().iter().map(|row| row.id).collect()
        };
        assert_eq!(ids(&["lookups"]), ["lookups-50", "lookups-1"]);
        assert!(!ids(&[]).contains(&"soak") && ids(&["so"]) == ["soak"]);
        assert!(selected(&["nothing".to_owned()]).is_err());
    }
}
