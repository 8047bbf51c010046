//! The equation of the line through two points, with the server's notions of equality and overflow.
//!
//! Source: `line_construct`, `point_sl` and `point_eq_point` in `src/backend/utils/adt/geo_ops.c`,
//! `src/include/utils/geo_decls.h`, `float.h`, PostgreSQL 14 to 18.

use super::InputError;
use super::geometry::Point;

/// Two numbers closer than this count as equal.
pub(super) const EPSILON: f64 = 1e-6;

fn nearly_equal(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= EPSILON
}

/// A, B and C of the line through two points.
pub(super) fn line_through(first: Point, second: Point) -> Result<[f64; 3], InputError> {
    let points = [first.x, first.y, second.x, second.y];
    let same = if points.iter().any(|number| number.is_nan()) {
        let equal = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
        equal(first.x, second.x) && equal(first.y, second.y)
    } else {
        nearly_equal(first.x, second.x) && nearly_equal(first.y, second.y)
    };
    if same {
        let what = "invalid line specification: must be two distinct points";
        return Err(InputError::new(what));
    }
    if nearly_equal(first.x, second.x) {
        return Ok([-1.0, 0.0, first.x]);
    }
    if nearly_equal(first.y, second.y) {
        return Ok([0.0, -1.0, first.y]);
    }
    let rise = minus(first.y, second.y)?;
    let slope = over(rise, minus(first.x, second.x)?)?;
    if slope.is_infinite() {
        return Ok([-1.0, 0.0, first.x]);
    }
    if slope == 0.0 {
        return Ok([0.0, -1.0, first.y]);
    }
    // Adding zero makes a negative zero positive.
    Ok([slope, -1.0, minus(first.y, times(slope, first.x)?)? + 0.0])
}

fn overflow() -> InputError {
    InputError::new("value out of range: overflow")
}

fn underflow() -> InputError {
    InputError::new("value out of range: underflow")
}

/// `float8_mi`.
fn minus(a: f64, b: f64) -> Result<f64, InputError> {
    let result = a - b;
    if result.is_infinite() && !a.is_infinite() && !b.is_infinite() {
        return Err(overflow());
    }
    Ok(result)
}

/// `float8_mul`.
fn times(a: f64, b: f64) -> Result<f64, InputError> {
    let result = a * b;
    if result.is_infinite() && !a.is_infinite() && !b.is_infinite() {
        return Err(overflow());
    }
    if result == 0.0 && a != 0.0 && b != 0.0 {
        return Err(underflow());
    }
    Ok(result)
}

/// `float8_div`.
fn over(a: f64, b: f64) -> Result<f64, InputError> {
    if b == 0.0 && !a.is_nan() {
        return Err(InputError::new("division by zero"));
    }
    let result = a / b;
    if result.is_infinite() && !a.is_infinite() {
        return Err(overflow());
    }
    if result == 0.0 && a != 0.0 && !b.is_infinite() {
        return Err(underflow());
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(numbers: [f64; 4]) -> Result<[f64; 3], InputError> {
        let [x1, y1, x2, y2] = numbers;
        line_through(Point { x: x1, y: y1 }, Point { x: x2, y: y2 })
    }

    #[test]
    fn upright_and_level_lines_have_equations_of_their_own() {
        assert_eq!(line([1.0, 2.0, 1.0, 4.0]), Ok([-1.0, 0.0, 1.0]));
        assert_eq!(line([1.0, 2.0, 3.0, 2.0]), Ok([0.0, -1.0, 2.0]));
        assert_eq!(line([1.0, 2.0, 3.0, 4.0]), Ok([1.0, -1.0, 1.0]));
    }

    #[test]
    fn points_that_are_nearly_one_and_numbers_too_large_are_refused() {
        let message = |numbers| line(numbers).unwrap_err().message;
        assert!(message([1.0, 2.0, 1.000_000_5, 2.0]).contains("two distinct points"));
        assert_eq!(message([1e308, 1e308, -1e308, 0.0]), "value out of range: overflow");
    }
}
