//! Who watches a run: told what is about to happen and what came out, so that a terminal can show it.
//!
//! Invariant: nothing here is asked for anything; a run is the same with [`Nobody`] watching. Calls come between
//! turns, never within one.

use std::time::Duration;

use crate::results::{Experiment, Group};

/// What is known before a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// Names of the experiments that will run.
    pub experiments: Vec<&'static str>,
    /// Bytes of files that there will be at once, at most.
    pub bytes_needed: u64,
    /// Bytes that are free in the directory.
    pub bytes_free: u64,
    /// About how long it takes.
    pub time: Duration,
}

/// Somebody who watches.
pub trait Watch {
    /// Before anything is made.
    fn announced(&self, announcement: &Announcement) {
        let _ = announcement;
    }

    /// A pass of an experiment begins, counted from 1, of so many. Its groups are done in the last one.
    fn pass_begins(&self, experiment: &str, pass: u32, passes: u32) {
        let _ = (experiment, pass, passes);
    }

    /// The last pass of an experiment begins, with about so much time for it.
    fn experiment_begins(&self, name: &str, title: &str, time: Duration) {
        let _ = (name, title, time);
    }

    /// Something is made ready: the files of an experiment, say.
    fn preparing(&self, what: &str) {
        let _ = what;
    }

    /// A group begins; of rounds there may be fewer.
    fn group_begins(&self, group: &Group, rounds: u32) {
        let _ = (group, rounds);
    }

    /// A contestant is about to take its turn in a round, counted from 1; 0 is the warm-up.
    fn turn_begins(&self, cell: &str, round: u32) {
        let _ = (cell, round);
    }

    /// A group is done.
    fn group_done(&self, experiment: &str, group: &Group) {
        let _ = (experiment, group);
    }

    /// An experiment is done.
    fn experiment_done(&self, experiment: &Experiment) {
        let _ = experiment;
    }
}

/// Nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Watch for Nobody {}
