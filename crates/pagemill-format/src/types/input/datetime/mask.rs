//! Which parts of a date or time were seen: a set.
//!
//! No part may come twice, which is most of what tells a date from nonsense. Some words are parts
//! too, so that they cannot be repeated.
//! Source: `DTK_M` and the field types in `src/include/utils/datetime.h`, PostgreSQL 14 to 18.

use std::ops::{BitOr, BitOrAssign};

/// A set of parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Mask(u32);

impl Mask {
    pub(super) const NONE: Self = Self(0);
    pub(super) const RESERVED: Self = Self(1);
    pub(super) const MONTH: Self = Self(1 << 1);
    pub(super) const YEAR: Self = Self(1 << 2);
    pub(super) const DAY: Self = Self(1 << 3);
    pub(super) const ZONE: Self = Self(1 << 5);
    pub(super) const DAYLIGHT_ZONE: Self = Self(1 << 6);
    pub(super) const CHANGING_ZONE: Self = Self(1 << 7);
    pub(super) const MERIDIAN: Self = Self(1 << 9);
    pub(super) const HOUR: Self = Self(1 << 10);
    pub(super) const MINUTE: Self = Self(1 << 11);
    pub(super) const SECOND: Self = Self(1 << 12);
    pub(super) const MILLISECOND: Self = Self(1 << 13);
    pub(super) const MICROSECOND: Self = Self(1 << 14);
    pub(super) const DAY_OF_YEAR: Self = Self(1 << 15);
    pub(super) const WEEKDAY: Self = Self(1 << 16);
    pub(super) const ERA: Self = Self(1 << 18);
    pub(super) const WEEK: Self = Self(1 << 24);
    pub(super) const DECADE: Self = Self(1 << 25);
    pub(super) const CENTURY: Self = Self(1 << 26);
    pub(super) const MILLENNIUM: Self = Self(1 << 27);
    pub(super) const DAYLIGHT_MODIFIER: Self = Self(1 << 28);

    /// A second and its fractions.
    pub(super) const ALL_SECONDS: Self =
        Self(Self::SECOND.0 | Self::MILLISECOND.0 | Self::MICROSECOND.0);
    pub(super) const DATE: Self = Self(Self::YEAR.0 | Self::MONTH.0 | Self::DAY.0);
    pub(super) const TIME: Self = Self(Self::HOUR.0 | Self::MINUTE.0 | Self::ALL_SECONDS.0);

    /// True when all parts of `other` are in the set.
    pub(super) fn has_all(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// True when some part of `other` is in the set.
    pub(super) fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// What is in both.
    pub(super) fn within(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What is not in `other`.
    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Mask {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Mask {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}
