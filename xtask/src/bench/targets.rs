//! What a figure is held to; one target for one quantity, in whichever benchmark it is measured.
//!
//! Targets are set here and in the tables of rows, before a run, and never moved to fit one.

use std::fmt;

/// A bound, and what it bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Target {
    /// So many times as fast as the other side.
    AtLeast(f64),
    /// At most so many times the floor: what the kernel takes to hand out the same pages.
    OfFloor(f64),
    /// So many milliseconds at most.
    Milliseconds(f64),
}

impl Target {
    pub(super) fn is_of_floor(self) -> bool {
        matches!(self, Self::OfFloor(_))
    }

    /// The bare number.
    pub(super) fn bound(self) -> f64 {
        let (Self::AtLeast(bound) | Self::OfFloor(bound) | Self::Milliseconds(bound)) = self;
        bound
    }

    /// Whether a figure is as good as was wanted.
    pub(super) fn reaches(self, figure: f64) -> bool {
        match self {
            Self::AtLeast(least) => figure >= least,
            Self::OfFloor(most) | Self::Milliseconds(most) => figure <= most,
        }
    }

    /// The ratios it bounds, turn by turn: the other's times over ours; over the floor, ours.
    pub(super) fn ratios(self, others: &[f64], own: &[f64]) -> Vec<f64> {
        let of_floor = self.is_of_floor();
        let ratio = |(other, own): (&f64, &f64)| if of_floor { own / other } else { other / own };
        others.iter().zip(own).map(ratio).collect()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, "≥ {least:.2}×"),
            Self::OfFloor(most) => write!(f, "≤ {most:.2}× of the floor"),
            Self::Milliseconds(most) => write!(f, "≤ {most} ms"),
        }
    }
}

/// The files whose rows are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted {
    /// The large table, of which start and catalogs are next to nothing.
    pub(super) is_large: bool,
    pub(super) checksums: bool,
    /// In the page cache as the server wrote them, and not as they were read again.
    pub(super) as_written: bool,
}

/// What `count` is held to.
///
/// 15 times PostgreSQL cannot be reached for a large table as the server wrote it: the kernel hands out its small
/// folios no faster (`runs/2026-11-22-floor.md`), so there the kernel is the measure.
pub(super) const fn of_count(counted: Counted) -> Target {
    match counted {
        Counted { checksums: true, .. } => Target::AtLeast(3.0),
        Counted { is_large: true, as_written: true, .. } => Target::OfFloor(1.3),
        _ => Target::AtLeast(15.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_to_the_floor_is_how_much_slower_we_are() {
        let (floor, times) = (Target::OfFloor(1.3), Target::AtLeast(3.0));
        assert_eq!(floor.ratios(&[100.0, 80.0], &[125.0, 80.0]), [1.25, 1.0]);
        assert_eq!(times.ratios(&[100.0], &[25.0]), [4.0]);
        assert!(floor.reaches(1.25) && !floor.reaches(1.4) && times.reaches(4.0));
        assert_eq!(floor.to_string(), "≤ 1.30× of the floor");
    }

    #[test]
    fn only_the_large_table_as_it_was_written_is_held_to_the_floor() {
        let of =
            |is_large, checksums, as_written| of_count(Counted { is_large, checksums, as_written });
        assert_eq!(of(true, false, true), Target::OfFloor(1.3));
        assert_eq!(of(true, false, false), Target::AtLeast(15.0));
        assert_eq!(of(false, false, true), Target::AtLeast(15.0));
        assert_eq!(of(true, true, true), Target::AtLeast(3.0));
    }
}
