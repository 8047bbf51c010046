//! A limit of the device, recognized in the figures: ways that are apart elsewhere come out the same.
//!
//! A volume in the cloud, a control group or a hypervisor lets so many reads, or so many bytes, through in a second, whoever
//! asks. So where several ways with few and with many requests in flight, or with small and large blocks, come out alike, and
//! none is far above them, that figure is told as a limit. A device that is busy to its own limit looks the same
//! and is told the same: more requests in flight gain nothing from either.
//!
//! Invariant: a limit is a median that was measured: the middle one of those that agree.

use crate::report::printable;
use crate::results::{Cell, Figure, Group, Results, Warning, WarningKind};

/// The groups in which limits are looked for, all of `device`, and what their operations are.
const GROUPS: [(&str, &str); 4] = [
    ("random-read", "reads"),
    ("sequential-read", "reads"),
    ("random-write", "writes"),
    ("sequential-write", "writes"),
];
/// By how much ways that are limited may differ from one of them, as a share of it.
const AGREES: f64 = 0.05;
/// By how much any way may be above that one, and ways may differ from it whose interval has it.
const ABOVE: f64 = 0.10;
/// Ways that have to agree.
const LEAST_WAYS: usize = 3;
/// How many times as many requests in flight, or bytes in one, the largest of them has to have than the smallest.
const LEAST_SPAN: u64 = 4;

/// What a device does at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Limit {
    /// Operations or bytes a second.
    per_second: f64,
    figure: Figure,
    /// "reads" or "writes".
    what: &'static str,
}

impl Limit {
    /// The limit that a group of `device` shows.
    pub(crate) fn of(results: &Results, name: &str) -> Option<Self> {
        let (_, what) = GROUPS.into_iter().find(|(known, _)| *known == name)?;
        let group = results.group("device", name)?;
        let median = |cell: &Cell| group.summary(cell).map(|found| found.median);
        let (_, most) = group.leader()?;
        let agreeing = |middle: f64| -> Vec<&Cell> {
            let agrees = |cell: &&Cell| {
                group.summary(cell).is_some_and(|found| {
                    let apart = (found.median / middle - 1.0).abs();
                    let has_it = found.low <= middle && middle <= found.high;
                    apart <= AGREES || has_it && apart <= ABOVE
                })
            };
            group.cells.iter().filter(agrees).collect()
        };
        let middles = group.cells.iter().filter_map(median);
        let near_the_top = middles.filter(|middle| most.median <= middle * (1.0 + ABOVE));
        let agreeing = agreeing(near_the_top.max_by_key(|middle| agreeing(*middle).len())?);
        let mut medians: Vec<f64> = agreeing.iter().copied().filter_map(median).collect();
        medians.sort_by(f64::total_cmp);
        let per_second = *medians.get(medians.len().saturating_sub(1) / 2)?;
        let sizes = || agreeing.iter().filter_map(|cell| in_flight(group, cell));
        let (least, largest) = (sizes().min()?, sizes().max()?);
        let is_limit = agreeing.len() >= LEAST_WAYS
            && largest / least.max(1) >= LEAST_SPAN
            && per_second > 0.0;
        is_limit.then_some(Self { per_second, figure: group.figure, what })
    }
}

/// What a cell asks for at once, to tell few from many.
fn in_flight(group: &Group, cell: &Cell) -> Option<u64> {
    let number = |name: &str| cell.parameters.get(name)?.parse::<u64>().ok();
    let is_rate = group.figure == Figure::Rate;
    number("depth")?.checked_mul(if is_rate { 1 } else { number("block_size")? })
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.figure {
            Figure::Rate => write!(f, "limited to {} {}/s", grouped(self.per_second), self.what),
            _ => {
                let mebibytes = self.per_second / f64::from(1 << 20);
                write!(f, "{} limited to {} MiB/s", self.what, grouped(mebibytes))
            }
        }
    }
}

/// How far a value of one digit, of two, and of three may be from what was measured, as a share of it: limits are round
/// numbers, and a median is not known better than this.
const ROUND: [f64; 3] = [0.025, 0.01, f64::INFINITY];

/// The roundest number that is near, of three digits that count at most, with commas: 2,000.
fn grouped(value: f64) -> String {
    let of_digits = |(digits, tolerated): (i32, f64)| {
        let unit = 10_f64.powi(value.max(1.0).log10().floor() as i32 + 1 - digits).max(1.0);
        let rounded = (value / unit).round() * unit;
        ((rounded - value).abs() <= tolerated * value).then_some(rounded)
    };
    let digits = (1..).zip(ROUND).find_map(of_digits).unwrap_or(value);
    let digits = format!("{digits:.0}");
    let mut told = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            told.push(',');
        }
        told.push(digit);
    }
    told
}

/// A warning for each limit that was seen.
pub(crate) fn warnings(results: &Results) -> Vec<Warning> {
    let warning = |(name, _): (&str, &str)| {
        let limit = Limit::of(results, name)?;
        Some(Warning {
            kind: WarningKind::Limited,
            group: Some(format!("device/{name}")),
            message: printable(&format!("{limit}, with few requests in flight as with many")),
            remedy: "no method gains more: look for a limit of the volume, of the hypervisor, or of a control group \
                     (io.max, blkio.throttle)"
                .into(),
        })
    };
    GROUPS.into_iter().filter_map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Experiment, Sample};

    fn results(group: &str, figure: Figure, rates: &[(u64, u64, f64)]) -> Results {
        let cell = |(depth, block, rate): &(u64, u64, f64)| Cell {
            name: format!("depth {depth}"),
            parameters: [("depth", *depth), ("block_size", *block)]
                .map(|(name, value)| (name.to_owned(), value.to_string()))
                .into(),
            samples: (0..6)
                .map(|_| Sample {
                    elapsed_s: 1.0,
                    operations: *rate as u64,
                    bytes: Some(*rate as u64),
                    ..Sample::default()
                })
                .collect(),
            ..Cell::default()
        };
        let cells = rates.iter().map(cell).collect();
        let group = Group { name: group.into(), figure, cells, ..Group::default() };
        let device =
            Experiment { name: "device".into(), groups: vec![group], ..Experiment::default() };
        Results { experiments: vec![device], ..Results::default() }
    }

    fn told(results: &Results) -> Vec<String> {
        warnings(results).into_iter().map(|warning| warning.message).collect()
    }

    #[test]
    fn a_cap_on_reads_is_named_with_its_figure() {
        let capped = [(1, 8192, 1990.0), (4, 8192, 2000.0), (16, 8192, 2004.0), (64, 8192, 1999.0)];
        let found = results("random-read", Figure::Rate, &capped);
        // As measured on a loop device that blkio.throttle let do 2,000 reads a second, on a busy machine.
        let busy = [
            (1, 8192, 1710.0),
            (4, 8192, 1750.0),
            (16, 8192, 1670.0),
            (4, 8192, 1980.0),
            (16, 8192, 2020.0),
            (64, 8192, 2090.0),
        ];
        let busy = told(&results("random-read", Figure::Rate, &busy));
        assert!(busy[0].starts_with("limited to 2,000 reads/s"), "{busy:?}");
        assert_eq!(
            told(&found),
            ["limited to 2,000 reads/s, with few requests in flight as with many"]
        );
    }

    #[test]
    fn a_cap_on_bytes_is_named_with_its_figure() {
        let cap = f64::from(60 << 20);
        let capped = [(1, 128 << 10, cap), (1, 256 << 10, cap * 0.99), (4, 1 << 20, cap)];
        let found = results("sequential-read", Figure::Throughput, &capped);
        assert!(told(&found)[0].contains("reads limited to 60"), "{:?}", told(&found));
        assert!(told(&found)[0].contains("MiB/s"));
    }

    #[test]
    fn a_device_that_grows_with_the_depth_has_no_cap() {
        let growing = [(1, 8192, 12e3), (4, 8192, 45e3), (16, 8192, 150e3), (64, 8192, 290e3)];
        assert_eq!(told(&results("random-read", Figure::Rate, &growing)), [""; 0]);
        let two = [(1, 8192, 12e3), (32, 8192, 280e3), (64, 8192, 281e3)];
        assert_eq!(told(&results("random-read", Figure::Rate, &two)), [""; 0]);
    }

    #[test]
    fn figures_are_round_where_a_round_one_is_near() {
        let told = [1999.6, 1_957.0, 60.4, 62.0, 125.3, 123_456.0, 3_000_000.0].map(grouped);
        assert_eq!(told, ["2,000", "2,000", "60", "62", "125", "123,000", "3,000,000"]);
    }
}
