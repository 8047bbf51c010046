//! A limit of the device, recognized in the figures: ways that are apart elsewhere come out the same.
//!
//! A volume in the cloud, a control group or a hypervisor lets so many reads, or so many bytes, through in a second, whoever
//! asks. So where several ways with few and with many requests in flight, or with small and large blocks, agree within
//! [`AGREES`] on the most that was seen, that figure is told as a limit. A device that is busy to its own limit looks the same
//! and is told the same: more requests in flight gain nothing from either.
//!
//! Invariant: a limit is a median that was measured.

use crate::report::printable;
use crate::results::{Cell, Figure, Group, Results, Warning, WarningKind};

/// The groups in which limits are looked for, all of `device`, and what their operations are.
const GROUPS: [(&str, &str); 4] = [
    ("random-read", "reads"),
    ("sequential-read", "reads"),
    ("random-write", "writes"),
    ("sequential-write", "writes"),
];
/// How near to the most the others have to come, as a share of it.
const AGREES: f64 = 0.04;
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
        let (_, most) = group.leader()?;
        let agrees = |cell: &&Cell| {
            let found = group.summary(cell);
            found.is_some_and(|found| found.median >= most.median * (1.0 - AGREES))
        };
        let agreeing: Vec<&Cell> = group.cells.iter().filter(agrees).collect();
        let sizes = || agreeing.iter().filter_map(|cell| bytes_in_flight(group, cell));
        let (least, largest) = (sizes().min()?, sizes().max()?);
        let is_limit = agreeing.len() >= LEAST_WAYS
            && largest / least.max(1) >= LEAST_SPAN
            && most.median > 0.0;
        let figure = group.figure;
        is_limit.then_some(Self { per_second: most.median, figure, what })
    }
}

/// What a cell asks for at once, to tell few from many.
fn bytes_in_flight(group: &Group, cell: &Cell) -> Option<u64> {
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

/// Three digits that count, with commas: 2,000.
fn grouped(value: f64) -> String {
    let unit = 10_f64.powf(value.max(1.0).log10().floor() - 2.0).max(1.0);
    let digits = format!("{:.0}", (value / unit).round() * unit);
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
    fn figures_have_three_digits_and_commas() {
        let told = [1999.6, 60.4, 123_456.0, 3_000_000.0].map(grouped);
        assert_eq!(told, ["2,000", "60", "123,000", "3,000,000"]);
    }
}
