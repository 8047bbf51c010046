//! The document's machine as a model: two SATA disks of 2008, mirrored by Linux 2.6.30, in virtual time.
//!
//! For where no mirror can be had, and to hold the document's own figures against: what is told is the model's time, in which nothing of this
//! machine plays a part. A scan of the model takes the same virtual time however often it is run, so it is run once.

use std::cell::OnceCell;
use std::rc::Rc;
use std::time::Duration;

use pagemill_sim::KernelSettings;
use pagemill_sim::seq_scan_2009::{Outcome, Run, mirror, scan};

use crate::cancel::Cancel;
use crate::contestant::{Contestant, Work};
use crate::error::Result;
use crate::experiments::relation_scans::{STRATEGIES, Strategy};

/// What is told of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// Its virtual time.
    Time,
    /// For how much of it the disks rested, in percent of both disks' time.
    Rest,
}

/// The model's scans, each made when it is first asked for.
#[derive(Debug, Default)]
pub(crate) struct SimulatedMirror {
    /// Blocks of the table.
    blocks: u32,
    scans: Vec<(Strategy, Rc<OnceCell<Outcome>>)>,
}

impl SimulatedMirror {
    /// With a table of so many blocks.
    pub(crate) fn new(blocks: u32) -> Self {
        Self { blocks, scans: STRATEGIES.map(|strategy| (strategy, Rc::default())).into() }
    }

    /// Those who scan it.
    pub(crate) fn contestants(&self, told: Told) -> Vec<Contestant<'static>> {
        let contestant = |(strategy, outcome): &(Strategy, Rc<OnceCell<Outcome>>)| {
            let (strategy, outcome, blocks) = (*strategy, outcome.clone(), self.blocks);
            let work = move |_: &Cancel| {
                let outcome = match outcome.get() {
                    Some(outcome) => outcome,
                    None => {
                        let made = scanned(strategy, blocks)?;
                        outcome.get_or_init(|| made)
                    }
                };
                Ok(work(outcome, blocks, told))
            };
            Contestant::new(strategy.name, work)
                .note("virtual time of a model")
                .parameter("strategy", strategy.name)
                .parameter("simulated", "two SATA disks of 2008, md, Linux 2.6.30")
        };
        self.scans.iter().map(contestant).collect()
    }
}

fn scanned(strategy: Strategy, blocks: u32) -> Result<Outcome> {
    let Strategy { name, method, readahead, io_combine_limit } = strategy;
    let run = Run { name, method, readahead, io_combine_limit, measured: None };
    Ok(scan(mirror(), KernelSettings::linux_2_6_30(), blocks, &run)?)
}

fn work(outcome: &Outcome, blocks: u32, told: Told) -> Work {
    let elapsed = Some(Duration::from_secs_f64(outcome.seconds.max(0.0)));
    let busy = outcome.drives.iter().map(|drive| drive.busy as f64 / 1e9).sum::<f64>();
    let all = outcome.seconds * outcome.drives.len() as f64;
    let rest = if all > 0.0 { 100.0 * (1.0 - busy / all) } else { 0.0 };
    Work {
        elapsed,
        counted: (told == Told::Rest).then_some(rest),
        ..Work::operations(blocks.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategy_2_keeps_both_disks_at_work_as_the_document_says() {
        let mirror = SimulatedMirror::new(4 * 4096);
        let of = |told, number: usize| {
            let mut contestants = mirror.contestants(told);
            contestants[number].perform.as_mut().ok().unwrap()(&Cancel::default()).unwrap()
        };
        let time = |number| of(Told::Time, number).elapsed.unwrap();
        let rest = |number| of(Told::Rest, number).counted.unwrap();
        assert!(time(2) < time(0), "{:?} {:?}", time(2), time(0));
        assert_eq!(time(2), time(2));
        assert!(rest(2) < rest(0) && rest(0) < 100.0, "{} {}", rest(2), rest(0));
    }
}
