//! How large the automaton of a pattern becomes, estimated.
//!
//! The server refuses patterns whose automaton outgrows its memory for it while it is built. What is counted here are the
//! arcs between positions that follow each other, as in Glushkov's automaton, which is what is left when empty arcs are
//! gone; brackets count once for each kind of character. The limits lie far below the server's.
//!
//! Source: `REG_MAX_COMPILE_SPACE` in `src/include/regex/regguts.h`, `repeat` and `fixempties` in `src/backend/regex`,
//! PostgreSQL 14 to 18.

/// Most arcs of a pattern without constraints.
const MOST_ARCS: f64 = 300_000.0;
/// Most arcs, times those of constraints, as each of these may be pushed past all others.
const MOST_PUSHED: f64 = 100_000.0;

/// A part of a pattern.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Size {
    pub(super) arcs: f64,
    /// Arcs that begin it.
    first: f64,
    /// Positions that end it.
    last: f64,
    is_optional: bool,
}

impl Size {
    /// Nothing.
    pub(super) const EMPTY: Self = Self { arcs: 0.0, first: 0.0, last: 0.0, is_optional: true };

    /// A character, or a set of them.
    pub(super) fn atom(kinds: f64) -> Self {
        Self { arcs: kinds, first: kinds, last: 1.0, is_optional: false }
    }

    /// This, then the other.
    pub(super) fn then(self, next: Self) -> Self {
        Self {
            arcs: self.arcs + next.arcs + self.last * next.first,
            first: self.first + if self.is_optional { next.first } else { 0.0 },
            last: next.last + if next.is_optional { self.last } else { 0.0 },
            is_optional: self.is_optional && next.is_optional,
        }
    }

    /// This or the other.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            arcs: self.arcs + other.arcs,
            first: self.first + other.first,
            last: self.last + other.last,
            is_optional: self.is_optional || other.is_optional,
        }
    }

    /// This so many times; no upper number means no end.
    pub(super) fn repeated(self, least: u32, most: Option<u32>) -> Self {
        if most == Some(0) {
            return Self::EMPTY;
        }
        let copies = f64::from(most.unwrap_or(least.max(1)));
        let optional = most.map_or(1.0, |most| f64::from(most - least + 1));
        let pairs = if self.is_optional { copies * copies / 2.0 } else { copies - 1.0 };
        let loops = if most.is_none() { 1.0 } else { 0.0 };
        let reached = if self.is_optional { copies } else { optional };
        Self {
            arcs: copies * self.arcs + (pairs + loops) * self.last * self.first,
            first: self.first * reached,
            last: self.last * if self.is_optional { copies } else { 1.0 },
            is_optional: self.is_optional || least == 0,
        }
    }

    /// True where no server could find it too complex, given the arcs of all constraints.
    pub(super) fn is_simple(self, constraints: f64) -> bool {
        self.arcs <= MOST_ARCS
            && self.arcs * constraints <= MOST_PUSHED
            && constraints <= MOST_PUSHED
    }
}
