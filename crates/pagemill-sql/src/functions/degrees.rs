//! Trigonometry in degrees, exact where people know the answer: `sind(30)` is 0.5.
//!
//! Angles are brought into the first quadrant, and results are divided by what the library gives for 30, 45 and 60 degrees.
//!
//! Source: `sind_q1`, `cosd_q1`, `asind_q1`, `acosd_q1` and what calls them in `src/backend/utils/adt/float.c`, PostgreSQL 14 to 18.

use std::sync::LazyLock;

use super::Implementation;
use super::floats::{RADIANS_PER_DEGREE, checked, checked_pair, of_ratio, periodic};

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        "dsind" => |_, a| checked(a, |x| periodic(x, sine)),
        "dcosd" => |_, a| checked(a, |x| periodic(x, cosine)),
        "dtand" => |_, a| checked(a, |x| periodic(x, tangent)),
        "dcotd" => |_, a| checked(a, |x| periodic(x, cotangent)),
        "dasind" => |_, a| checked(a, |x| of_ratio(x, arcsine)),
        "dacosd" => |_, a| checked(a, |x| of_ratio(x, arccosine)),
        "datand" => |_, a| checked(a, |x| Ok(arctangent(x.atan()))),
        "datan2d" => |_, a| checked_pair(a, |y, x| Ok(arctangent(y.atan2(x)))),
        _ => return None,
    }))
}

/// What the library gives for angles whose results are to be exact.
struct Known {
    sine_of_30: f64,
    one_minus_cosine_of_60: f64,
    arcsine_of_half: f64,
    arccosine_of_half: f64,
    arctangent_of_one: f64,
    tangent_of_45: f64,
    cotangent_of_45: f64,
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    // Not known ahead, or the compiler would compute them, with other last digits.
    let of = std::hint::black_box::<f64>;
    let mut known = Known {
        sine_of_30: (of(30.0) * RADIANS_PER_DEGREE).sin(),
        one_minus_cosine_of_60: 1.0 - (of(60.0) * RADIANS_PER_DEGREE).cos(),
        arcsine_of_half: of(0.5).asin(),
        arccosine_of_half: of(0.5).acos(),
        arctangent_of_one: of(1.0).atan(),
        tangent_of_45: 1.0,
        cotangent_of_45: 1.0,
    };
    let (sine, cosine) = (known.sine(45.0), known.cosine(45.0));
    (known.tangent_of_45, known.cotangent_of_45) = (sine / cosine, cosine / sine);
    known
});

impl Known {
    /// From 0 to 30 degrees.
    fn small_sine(&self, x: f64) -> f64 {
        (x * RADIANS_PER_DEGREE).sin() / self.sine_of_30 / 2.0
    }

    /// From 0 to 60 degrees.
    fn large_cosine(&self, x: f64) -> f64 {
        let less = 1.0 - (x * RADIANS_PER_DEGREE).cos();
        1.0 - less / self.one_minus_cosine_of_60 / 2.0
    }

    /// From 0 to 90 degrees.
    fn sine(&self, x: f64) -> f64 {
        if x <= 30.0 { self.small_sine(x) } else { self.large_cosine(90.0 - x) }
    }

    /// From 0 to 90 degrees.
    fn cosine(&self, x: f64) -> f64 {
        if x <= 60.0 { self.large_cosine(x) } else { self.small_sine(90.0 - x) }
    }

    /// From 0 to 1.
    fn arcsine(&self, x: f64) -> f64 {
        match x <= 0.5 {
            true => x.asin() / self.arcsine_of_half * 30.0,
            false => 90.0 - x.acos() / self.arccosine_of_half * 60.0,
        }
    }

    /// From 0 to 1.
    fn arccosine(&self, x: f64) -> f64 {
        match x <= 0.5 {
            true => 90.0 - x.asin() / self.arcsine_of_half * 30.0,
            false => x.acos() / self.arccosine_of_half * 60.0,
        }
    }
}

/// An angle in the first quadrant, and whether it was below zero, beyond 180, and beyond 90 then.
fn first_quadrant(x: f64) -> (f64, [bool; 3]) {
    let mut x = x % 360.0;
    let is_below = x < 0.0;
    if is_below {
        x = -x;
    }
    let is_beyond = x > 180.0;
    if is_beyond {
        x = 360.0 - x;
    }
    let is_obtuse = x > 90.0;
    if is_obtuse {
        x = 180.0 - x;
    }
    (x, [is_below, is_beyond, is_obtuse])
}

fn signed(size: f64, changes: &[bool]) -> f64 {
    let is_odd = changes.iter().filter(|changes| **changes).count() % 2 == 1;
    if is_odd { -size } else { size }
}

fn sine(x: f64) -> f64 {
    let (x, [is_below, is_beyond, _]) = first_quadrant(x);
    signed(KNOWN.sine(x), &[is_below, is_beyond])
}

fn cosine(x: f64) -> f64 {
    let (x, [.., is_obtuse]) = first_quadrant(x);
    signed(KNOWN.cosine(x), &[is_obtuse])
}

fn tangent(x: f64) -> f64 {
    let (x, changes) = first_quadrant(x);
    without_sign_of_zero(signed(KNOWN.sine(x) / KNOWN.cosine(x) / KNOWN.tangent_of_45, &changes))
}

fn cotangent(x: f64) -> f64 {
    let (x, changes) = first_quadrant(x);
    let size = KNOWN.cosine(x) / KNOWN.sine(x) / KNOWN.cotangent_of_45;
    without_sign_of_zero(signed(size, &changes))
}

fn without_sign_of_zero(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x }
}

fn arcsine(x: f64) -> f64 {
    if x >= 0.0 { KNOWN.arcsine(x) } else { -KNOWN.arcsine(-x) }
}

fn arccosine(x: f64) -> f64 {
    if x >= 0.0 { KNOWN.arccosine(x) } else { 90.0 + KNOWN.arcsine(-x) }
}

/// In degrees.
fn arctangent(radians: f64) -> f64 {
    radians / KNOWN.arctangent_of_one * 45.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_know_is_exact() {
        let sines = [-90.0, -30.0, 0.0, 30.0, 90.0, 150.0, 180.0, 210.0, 270.0, 390.0].map(sine);
        assert_eq!(sines, [-1.0, -0.5, 0.0, 0.5, 1.0, 0.5, 0.0, -0.5, -1.0, 0.5]);
        assert_eq!([0.0, 60.0, 90.0, 120.0, 180.0].map(cosine), [1.0, 0.5, 0.0, -0.5, -1.0]);
        let tangents = [0.0, 45.0, 135.0, 180.0, 225.0].map(tangent);
        assert_eq!(tangents, [0.0, 1.0, -1.0, 0.0, 1.0]);
        assert!(tangent(180.0).is_sign_positive());
        assert_eq!([45.0, 90.0, 315.0].map(cotangent), [1.0, 0.0, -1.0]);
        assert_eq!([-1.0, -0.5, 0.0, 0.5, 1.0].map(arcsine), [-90.0, -30.0, 0.0, 30.0, 90.0]);
        assert_eq!([-1.0, -0.5, 0.0, 0.5, 1.0].map(arccosine), [180.0, 120.0, 90.0, 60.0, 0.0]);
        assert_eq!([1.0_f64, -1.0, 0.0].map(|x| arctangent(x.atan())), [45.0, -45.0, 0.0]);
    }
}
