//! The machine of "Patch : seq scan readahead (WIP)" (2009) as a model: two SATA disks of 2008, mirrored by Linux 2.6.30, in virtual time.
//!
//! For where no mirror can be had, and to hold the message's own figures against: what is told is the model's time, in which nothing of this
//! machine plays a part. A scan of the model takes the same virtual time however often it is run, so it is run once.

use std::cell::OnceCell;
use std::rc::Rc;
use std::time::Duration;

use pagemill_sim::KernelSettings;
use pagemill_sim::seq_scan_2009::{Run, ScanTiming, mirror, scan};

use crate::cancel::Cancel;
use crate::contestant::{Contestant, Work};
use crate::error::Result;
use crate::experiments::relation_scans::{STRATEGIES, Strategy};

/// What is told of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanMeasure {
    /// Its virtual time.
    Time,
    /// How many percent of the bytes came from the disk that read more.
    Share,
}

/// The model's scans, each made when it is first asked for.
#[derive(Debug, Default)]
pub(crate) struct SimulatedMirror {
    /// Blocks of the table.
    blocks: u32,
    scans: Vec<(Strategy, Rc<OnceCell<ScanTiming>>)>,
}

impl SimulatedMirror {
    /// With a table of so many blocks.
    pub(crate) fn new(blocks: u32) -> Self {
        Self { blocks, scans: STRATEGIES.map(|strategy| (strategy, Rc::default())).into() }
    }

    /// Those who scan it.
    pub(crate) fn contestants(&self, told: ScanMeasure) -> Vec<Contestant<'static>> {
        let contestant = |(strategy, outcome): &(Strategy, Rc<OnceCell<ScanTiming>>)| {
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

fn scanned(strategy: Strategy, blocks: u32) -> Result<ScanTiming> {
    let Strategy { name, method, readahead, io_combine_limit } = strategy;
    let run = Run { name, method, readahead, io_combine_limit, measured: None };
    Ok(scan(mirror(), KernelSettings::linux_2_6_30(), blocks, &run)?)
}

fn work(outcome: &ScanTiming, blocks: u32, told: ScanMeasure) -> Work {
    let elapsed = Some(Duration::from_secs_f64(outcome.seconds.max(0.0)));
    let bytes = outcome.drives.iter().map(|drive| drive.bytes);
    let (most, all) = (bytes.clone().max().unwrap_or(0), bytes.sum::<u64>().max(1));
    let share = 100.0 * most as f64 / all as f64;
    Work {
        elapsed,
        counted: (told == ScanMeasure::Share).then_some(share),
        ..Work::operations(blocks.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_disk_sits_idle_until_strategy_2_comes() {
        let mirror = SimulatedMirror::new(4 * 4096);
        let of = |told, number: usize| {
            let mut contestants = mirror.contestants(told);
            contestants[number].perform.as_mut().ok().unwrap()(&Cancel::default()).unwrap()
        };
        let time = |number| of(ScanMeasure::Time, number).elapsed.unwrap();
        let share = |number| of(ScanMeasure::Share, number).counted.unwrap();
        assert!(time(2) < time(0), "{:?} {:?}", time(2), time(0));
        assert_eq!(time(2), time(2));
        assert!(share(2) < 75.0 && share(0) > 90.0, "{} {}", share(2), share(0));
    }
}
