//! How large reads are, how far the kernel looks ahead, and what the planner believes a read costs.
//!
//! Invariant: sizes are sizes that were measured, within what the version takes.

use crate::advice::ladder::{Ladder, Step};
use crate::advice::run_figures::{GroupFigures, Pair, RunFigures};
use crate::advice::version::Version;
use crate::advice::{Evidence, Measure, Ruling};
use crate::results::Cell;

const KB: u64 = 1 << 10;
const BLOCK: u64 = 8 * KB;
/// The default of `io_combine_limit`, and the size that most cells have.
const USUAL: u64 = 128 * KB;
/// The most that readahead is advised to be, in kB.
const MOST_READ_AHEAD_KB: u64 = 4096;

/// Rule: the size up to which reads in order, one after the other and past the page cache, grow, beginning at the default;
/// only when faster than that by the threshold, and not where reads through the page cache, as servers read, have
/// both sizes and show no such gain, or were not measured and the kernel reads ahead as much. Smaller than the default is never advised: it was never seen to help.
pub(super) fn io_combine_limit(run_figures: &RunFigures<'_>, version: Version) -> Ruling {
    let place = match run_figures.group("device/sequential-read") {
        Ok(place) => place,
        Err(reason) => return Ruling::not_measured(reason),
    };
    // PG_IOV_MAX was 32 in 17, 128 from 18 on (src/include/port/pg_iovec.h).
    let limit = if version.major() >= 18 { 128 * BLOCK } else { 32 * BLOCK };
    let ladder = Ladder::by_size(place, limit);
    let usual = ladder.up_to(USUAL).filter(|step| step.value == USUAL);
    let Some((usual, stop)) = usual.and_then(|usual| Some((usual, ladder.climb(usual)?))) else {
        return Ruling::not_measured("too few block sizes or turns to choose from");
    };
    if ladder.is_last(USUAL) {
        return Ruling::not_measured(
            "no block size between 128 kB and the version's limit was measured",
        );
    }
    let pair = ladder.pair(&stop, &usual).filter(Pair::is_faster);
    let Some(pair) = pair.filter(|_| stop.value > USUAL) else {
        let largest = ladder.from(u64::MAX);
        let evidence = largest.and_then(|largest| ladder.evidence(&largest, &usual));
        return Ruling::keep("larger reads than 128 kB do not gain clearly").evidence(evidence);
    };
    larger(run_figures, stop.value, pair)
}

/// What follows from a gain past the page cache, by reads of that size.
fn larger(run_figures: &RunFigures<'_>, bytes: u64, gain: Pair) -> Ruling {
    let cached = through_the_cache(run_figures, bytes);
    let evidence: Vec<Evidence> =
        [Some(gain), cached.clone()].into_iter().flatten().map(|pair| pair.evidence).collect();
    let why = format!("reads in order grow up to {} kB", bytes / KB);
    let ahead = read_ahead_now(run_figures).unwrap_or_default();
    let ruling = match cached {
        Some(cached) if cached.is_faster() => Ruling::set(size(bytes), why),
        Some(_) => Ruling::keep(
            "larger reads gain past the page cache, but were not seen to gain through it, as servers read",
        ),
        None if ahead >= bytes / KB => Ruling::keep(format!(
            "larger reads gain past the page cache; through it, as servers read, the kernel reads {ahead} kB ahead anyway"
        )),
        None => Ruling::set(size(bytes), why)
            .caution("measured past the page cache; through it that size was not measured"),
    };
    ruling.evidence(evidence)
}

/// Reads of that size, or the next larger one that was measured, against those of 128 kB, with the kernel's readahead.
fn through_the_cache(run_figures: &RunFigures<'_>, bytes: u64) -> Option<Pair> {
    let place = run_figures.group("device/sequential-read-cold").ok()?;
    let ladder = Ladder::by_size(place, u64::MAX);
    let (large, usual) = (ladder.from(bytes)?, ladder.up_to(USUAL)?);
    let fit = large.value >= bytes && usual.value == USUAL;
    fit.then(|| ladder.pair(&large, &usual))?
}

/// Rule: as large as `io_combine_limit`, which it limits in silence.
pub(super) fn io_max_combine_limit(run_figures: &RunFigures<'_>, version: Version) -> Ruling {
    let ruling = io_combine_limit(run_figures, version);
    match ruling.value {
        Some(_) => Ruling { why: "it limits io_combine_limit in silence".into(), ..ruling },
        None => ruling,
    }
}

/// As PostgreSQL prints it.
pub(super) fn size(bytes: u64) -> String {
    let kilobytes = bytes / KB;
    if kilobytes == 0 {
        "0".into()
    } else if kilobytes.is_multiple_of(KB) {
        format!("{}MB", kilobytes / KB)
    } else {
        format!("{kilobytes}kB")
    }
}

/// The documentation of `random_page_cost` long explained the default of 4 by random reads that take 40 times as long as
/// sequential ones and are found cached in 90 of 100 cases; it says the same without figures today. This is the share that is read.
const READ_SHARE: f64 = 0.1;
/// The costs that are advised, each for medians up to that bound: plans do not depend on the digits between, and the same
/// storage shall be told the same on the next day. 1.1 is for what costs no more than that, as a random read is never as
/// cheap as the next one; 2 for what lies nearer to it than to the default, as a ratio.
const COSTS: [(f64, f64); 2] = [(1.1, 1.1), (2.0, 2.0 * std::f64::consts::SQRT_2)];
/// The default.
const DEFAULT_COST: f64 = 4.0;

/// Rule: how many times as long a random read of 8 kB takes, one at a time and past the page cache, as 8 kB of a scan with
/// the kernel's readahead; a tenth of that, as nine reads of ten are found cached; 1.1 or 2, by the median. The whole
/// interval has to lie below the next value, the default at last. A bound where disks are found told one disk something
/// else from day to day: its medians were 1.6 to 2.03, and the bound was 2. What is above is left at the default, and more
/// to those who know that little is cached.
pub(super) fn random_page_cost(run_figures: &RunFigures<'_>, _version: Version) -> Ruling {
    let random = run_figures
        .group("device/random-read")
        .map(|place| figure_of(&place, BLOCK, Measure::PerSecond));
    let sequential = run_figures
        .group("device/sequential-read-cold")
        .map(|place| figure_of(&place, USUAL, Measure::BytesPerSecond));
    let (random, sequential) = match (random, sequential) {
        (Ok(Some(random)), Ok(Some(sequential))) => (random, sequential),
        (Err(reason), _) | (_, Err(reason)) => return Ruling::not_measured(reason),
        _ => {
            return Ruling::not_measured(
                "random and sequential reads were not both measured often enough",
            );
        }
    };
    let block = BLOCK as f64;
    let ratio = sequential.figure.median / block / random.figure.median;
    let high = sequential.figure.high / block / random.figure.low;
    let advised = nearest_cost(ratio * READ_SHARE, high * READ_SHARE);
    let evidence = [random, sequential];
    let ratio = format!(
        "a random read takes {ratio:.1} times as long as 8 kB of a scan; the default is made for 40 times"
    );
    let Some(cost) = advised else {
        let why = format!("{ratio}, and this is nearer to that than to half of it");
        let ruling = Ruling::keep(why).evidence(evidence);
        return match high * READ_SHARE > 2.0 * DEFAULT_COST {
            true => ruling
                .caution("more than the default may be right where little of the data is cached"),
            false => ruling,
        };
    };
    Ruling::set(cost.to_string(), ratio)
        .evidence(evidence)
        .caution("it is what the planner believes, and no speed: compare plans before and after, with EXPLAIN")
}

/// The cost for random reads that cost this much, in the median and at the end of the interval.
fn nearest_cost(median: f64, high: f64) -> Option<f64> {
    let next = COSTS.into_iter().skip(1).map(|(cost, _)| cost).chain([DEFAULT_COST]);
    let mut costs = COSTS.into_iter().zip(next);
    let found = costs.find(|((_, bound), next)| median <= *bound && high < *next);
    found.map(|((cost, _), _)| cost)
}

fn figure_of(place: &GroupFigures<'_>, block: u64, measure: Measure) -> Option<Evidence> {
    let cell = place.cell("pread", block, 1)?;
    place.figure(cell).filter(|found| found.measure == measure)
}

/// Rule: the measure that all other costs are told in, so it stays.
pub(super) fn seq_page_cost(_: &RunFigures<'_>, _version: Version) -> Ruling {
    Ruling::keep("the unit of all other costs: random_page_cost is set against it")
}

/// The device's readahead in kB, as the run found it.
pub(super) fn read_ahead_now(run_figures: &RunFigures<'_>) -> Option<u64> {
    run_figures.fact("read_ahead_kb")?.parse().ok()
}

/// Rule: where reads in order by `pread`, for which the kernel looks ahead, are slower by the threshold than those of a
/// queue that keeps several in flight: as many kB as that queue has in flight, if that is more than now. Of several queues it
/// is the one with the fewest in flight, also where only the median of that one is beyond the threshold, as noise would else
/// choose between them; and one with more only where that is faster by the threshold again.
pub(super) fn read_ahead_kb(run_figures: &RunFigures<'_>, _version: Version) -> Ruling {
    let place = match run_figures.group("device/sequential-read-cold") {
        Ok(place) => place,
        Err(reason) => return Ruling::not_measured(reason),
    };
    let Some(now) = read_ahead_now(run_figures) else {
        return Ruling::not_measured("the device does not tell its readahead");
    };
    let plain = place.cell("pread", USUAL, 1);
    let queues = Ladder::by_bytes_in_flight(place.clone(), USUAL);
    let gains = || queues.above(0).filter_map(|step| gain(&place, *step, plain));
    let clear = gains().find(|(_, pair)| pair.is_faster()).map(|(step, _)| step);
    let as_good = |clear: Step<'_>, step: &Step<'_>, pair: &Pair| {
        let is_worse = queues.pair(&clear, step).is_some_and(|pair| pair.is_faster());
        pair.is_likely_faster() && !is_worse
    };
    let best = match clear {
        Some(clear) => {
            let fewest = gains().find(|(step, pair)| as_good(clear, step, pair));
            let first = fewest.map_or(clear, |(step, _)| step);
            queues.climb(first).or(Some(first))
        }
        None => queues.from(u64::MAX),
    };
    let Some((best, pair)) = best.and_then(|best| gain(&place, best, plain)) else {
        return Ruling::not_measured(
            "reads in order by pread and by a queue were not both measured",
        );
    };
    let value = best.value.min(MOST_READ_AHEAD_KB);
    if clear.is_none() {
        let why = "the kernel's readahead was not seen to hold back reads in order";
        return Ruling::keep(why).evidence([pair.evidence]);
    }
    if value <= now {
        let why = "a queue reads faster in order, but with no more in flight than the readahead allows already";
        return Ruling::keep(why).evidence([pair.evidence]);
    }
    let why = format!(
        "reads in order are faster with {value} kB in flight than with the kernel's readahead of {now} kB"
    );
    Ruling::set(value.to_string(), why).evidence([pair.evidence]).caution(
        "for scans by plain reads: PostgreSQL 14 to 17, and 18 with io_method = sync; it is the device's, not one \
         partition's; measure again with it set",
    )
}

/// What a step is worth against reads by plain calls.
fn gain<'r>(
    place: &GroupFigures<'r>,
    step: Step<'r>,
    plain: Option<&Cell>,
) -> Option<(Step<'r>, Pair)> {
    place.pair(step.cell, plain?).map(|pair| (step, pair))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five runs on one disk measured 1.1 to 1.9 with an end of the interval around 2, and one of them kept the default.
    /// Five on another measured 1.58 to 2.03 with an end at 2.2 to 2.9, and two of them kept it.
    #[test]
    fn a_disk_is_told_one_cost_however_its_median_moves_by_a_third() {
        for (median, high) in [(1.2, 1.6), (1.63, 1.99), (1.7, 2.4), (1.9, 2.8)] {
            assert_eq!(nearest_cost(median, high), Some(2.0), "{median} {high}");
        }
        for (median, high) in [(2.03, 2.4), (1.84, 2.88), (1.75, 2.58), (1.71, 2.2), (1.58, 2.16)] {
            assert_eq!(nearest_cost(median, high), Some(2.0), "{median} {high}");
        }
    }

    #[test]
    fn what_is_near_the_default_or_may_be_keeps_it() {
        assert_eq!(nearest_cost(1.0, 1.4), Some(1.1));
        assert_eq!(nearest_cost(1.0, 2.1), Some(2.0));
        for (median, high) in [(2.9, 3.0), (2.1, 4.1), (1.0, 4.0), (20.0, 21.0)] {
            assert_eq!(nearest_cost(median, high), None, "{median} {high}");
        }
    }
}
