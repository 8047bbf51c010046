//! The order of cubes: by their lower coordinates, then by their upper ones.
//!
//! Dimensions that only one of two cubes has come last of all and are compared to zero; after them the one with more dimensions is the
//! greater. That is no order in the strict sense: `(0, 0),(2, 0)`, `(0),(3)` and `(0, -1),(4, 0)` are each less than the next and the last
//! is less than the first. Nor are cubes with not-a-number ordered: it is equal to every number.
//!
//! Invariant: [`compare`] is the server's comparison for every pair. [`order_key`] agrees with it on cubes of as many dimensions, on points
//! of any dimensions, and on what is equal; not-a-number comes last there.
//! Source: `cube_cmp_v0` in `contrib/cube/cube.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use pagemill_format::error::Result;

use super::Cube;

/// How the values of two payloads compare, as `cube_cmp` tells it.
///
/// # Errors
/// When a payload is cut off.
pub fn compare(first: &[u8], second: &[u8]) -> Result<Ordering> {
    Ok(Cube::of_payload(first)?.order(&Cube::of_payload(second)?))
}

impl Cube {
    pub(super) fn order(&self, other: &Self) -> Ordering {
        let side = |pair: (f64, f64)| pair.0.partial_cmp(&pair.1).unwrap_or(Ordering::Equal);
        let to_zero = |number| side((number, 0.0));
        let (mine, others) = (self.dimensions(), other.dimensions());
        let common = self.lows().zip(other.lows()).chain(self.highs().zip(other.highs())).map(side);
        let more = self.lows().skip(others).chain(self.highs().skip(others)).map(to_zero);
        let less = other.lows().skip(mine).chain(other.highs().skip(mine)).map(to_zero);
        let all = common.chain(more).chain(less.map(Ordering::reverse));
        all.chain([mine.cmp(&others)]).find(|one| one.is_ne()).unwrap_or(Ordering::Equal)
    }
}

/// Bytes that compare as the values do, as far as these have an order.
///
/// # Errors
/// When the payload is cut off.
pub fn order_key(payload: &[u8]) -> Result<Vec<u8>> {
    let cube = Cube::of_payload(payload)?;
    let mut key = Vec::new();
    push_padded(&cube.lows().collect::<Vec<_>>(), &mut key);
    push_padded(&cube.highs().collect::<Vec<_>>(), &mut key);
    key.extend_from_slice(&(cube.dimensions() as u32).to_be_bytes());
    Ok(key)
}

/// Appends numbers so that they compare as if zeros without end followed. Before each number stands how the rest of them compares to
/// zeros, and zeros at the end are left out.
fn push_padded(numbers: &[f64], key: &mut Vec<u8>) {
    const NEGATIVE: u8 = 1;
    const BEGINS_NEGATIVE: u8 = 2;
    const ZEROS: u8 = 3;
    const BEGINS_POSITIVE: u8 = 4;
    const POSITIVE: u8 = 5;
    let mut rest = numbers;
    while let [number, behind @ ..] = rest {
        let Some(decisive) = rest.iter().find(|number| **number != 0.0) else { break };
        match (*number == 0.0, *decisive < 0.0) {
            (true, true) => key.push(BEGINS_NEGATIVE),
            (true, false) => key.push(BEGINS_POSITIVE),
            (false, is_negative) => {
                key.push(if is_negative { NEGATIVE } else { POSITIVE });
                key.extend_from_slice(&float_key(*number));
            }
        }
        rest = behind;
    }
    key.push(ZEROS);
}

/// Bytes that compare as numbers do, not-a-number last.
fn float_key(number: f64) -> [u8; 8] {
    if number.is_nan() {
        return [0xFF; 8];
    }
    let bits = number.to_bits();
    let flipped = if number.is_sign_negative() { !bits } else { bits | 1 << 63 };
    flipped.to_be_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::parse;
    use super::*;

    fn payload(text: &str) -> Vec<u8> {
        parse(text.as_bytes()).unwrap().payload()
    }

    /// As a PostgreSQL 15 server compares them.
    #[test]
    fn cubes_go_round_in_circles() {
        let less =
            |first, second| compare(&payload(first), &payload(second)).unwrap() == Ordering::Less;
        assert!(less("(0, 0),(2, 0)", "(0),(3)"));
        assert!(less("(0),(3)", "(0, -1),(4, 0)"));
        assert!(less("(0, -1),(4, 0)", "(0, 0),(2, 0)"));
        assert!(less("(1)", "(1,0)"));
        assert!(less("(1,-1)", "(1)"));
        assert_eq!(compare(&payload("(2),(1)"), &payload("(1),(2)")).unwrap(), Ordering::Equal);
        assert_eq!(compare(&payload("nan"), &payload("1")).unwrap(), Ordering::Equal);
    }

    fn number() -> impl Strategy<Value = f64> {
        prop_oneof![
            Just(0.0),
            Just(-0.0),
            Just(1.0),
            Just(-1.0),
            Just(f64::INFINITY),
            Just(f64::NEG_INFINITY),
            any::<i8>().prop_map(f64::from),
        ]
    }

    proptest! {
        #[test]
        fn keys_of_as_many_dimensions_compare_as_the_values(
            sides in prop::collection::vec(((number(), number()), (number(), number())), 0..4),
        ) {
            let (first, second): (Vec<_>, Vec<_>) = sides.into_iter().unzip();
            let [first, second] = [first, second].map(|sides| Cube::between(sides).payload());
            let keys = order_key(&first).unwrap().cmp(&order_key(&second).unwrap());
            prop_assert_eq!(keys, compare(&first, &second).unwrap());
        }

        #[test]
        fn keys_of_points_compare_as_the_values(
            first in prop::collection::vec(number(), 0..4), second in prop::collection::vec(number(), 0..4),
        ) {
            let [first, second] = [first, second].map(|numbers| Cube::point(numbers).payload());
            let keys = order_key(&first).unwrap().cmp(&order_key(&second).unwrap());
            prop_assert_eq!(keys, compare(&first, &second).unwrap());
        }

        #[test]
        fn keys_are_equal_where_values_are(
            first in prop::collection::vec((number(), number()), 0..3), second in prop::collection::vec((number(), number()), 0..3),
        ) {
            let [first, second] = [first, second].map(|sides| Cube::between(sides).payload());
            let keys = order_key(&first).unwrap() == order_key(&second).unwrap();
            prop_assert_eq!(keys, compare(&first, &second).unwrap().is_eq());
        }
    }
}
