//! What this machine cannot test, said where it is seen.
//!
//! Invariant: what a test prints is kept back by its harness while it passes; a skip is not.

use std::fmt::Display;
use std::io::Write as _;

/// Says that a test, or part of one, is skipped, and why.
pub fn skipped(why: impl Display) {
    // Who has closed standard error does not want to know.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}
