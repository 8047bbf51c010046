//! One case, as the command line that repeats it.
//!
//! Invariant: what is printed reads back as the same case.

use std::fmt;

use anyhow::{Context, Result, bail};
use pagemill_sim::{Loss, WriteFault};

/// What happens at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The power is cut just before it.
    PowerCut(Loss),
    /// It fails.
    Fault(WriteFault),
}

/// One event in one change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// PostgreSQL's major version.
    pub major: u32,
    /// The kind of change.
    pub kind: &'static str,
    /// The call's number.
    pub call: usize,
    /// What happens.
    pub event: Event,
    /// A server judges, too.
    pub server: bool,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { major, kind, call, event, server } = self;
        let server = if *server { " --server" } else { "" };
        write!(f, "cargo xtask torture --major {major} --kind {kind} --call {call} {event}{server}")
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PowerCut(Loss::All) => f.write_str("--loss all"),
            Self::PowerCut(Loss::None) => f.write_str("--loss none"),
            Self::PowerCut(Loss::Torn(seed)) => write!(f, "--loss torn:{seed}"),
            Self::PowerCut(Loss::Ordered(seed)) => write!(f, "--loss ordered:{seed}"),
            Self::Fault(fault) => write!(f, "--fault {}", fault_name(*fault)),
        }
    }
}

/// All faults.
pub const FAULTS: [WriteFault; 4] = [
    WriteFault::NoSpace,
    WriteFault::NoSpaceFromHere,
    WriteFault::Failed,
    WriteFault::ReadOnlyFromHere,
];

fn fault_name(fault: WriteFault) -> &'static str {
    match fault {
        WriteFault::NoSpace => "no-space",
        WriteFault::NoSpaceFromHere => "no-space-from-here",
        WriteFault::Failed => "failed",
        WriteFault::ReadOnlyFromHere => "read-only-from-here",
    }
}

/// A loss by its name.
///
/// # Errors
/// When there is none of this name.
pub fn parse_loss(text: &str) -> Result<Loss> {
    Ok(match text.split_once(':') {
        None if text == "all" => Loss::All,
        None if text == "none" => Loss::None,
        Some(("torn", seed)) => Loss::Torn(seed.parse()?),
        Some(("ordered", seed)) => Loss::Ordered(seed.parse()?),
        _ => bail!("no loss {text}: all, none, torn:SEED or ordered:SEED"),
    })
}

/// A fault by its name.
///
/// # Errors
/// When there is none of this name.
pub fn parse_fault(text: &str) -> Result<WriteFault> {
    let found = FAULTS.into_iter().find(|fault| fault_name(*fault) == text);
    found.with_context(|| format!("no fault {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_reads_as_the_command_that_repeats_it() {
        let event = Event::PowerCut(Loss::Torn(7));
        let case = Case { major: 15, kind: "logged_empty", call: 12, event, server: true };
        assert_eq!(
            case.to_string(),
            "cargo xtask torture --major 15 --kind logged_empty --call 12 --loss torn:7 --server"
        );
        for loss in [Loss::All, Loss::None, Loss::Torn(3), Loss::Ordered(4)] {
            let text = Event::PowerCut(loss).to_string();
            assert_eq!(parse_loss(text.trim_start_matches("--loss ")).unwrap(), loss);
        }
        for fault in FAULTS {
            assert_eq!(parse_fault(fault_name(fault)).unwrap(), fault);
        }
    }
}
