//! The functions of `cube` as SQL calls them.
//!
//! Invariant: each symbol is one that the extension's scripts declare, strict as there; input, output and what indexes call are not here.
//! Source: `contrib/cube/cube--1.2.sql` and its updates up to 1.5, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use pagemill_format::tuple::AttributeLayout;

use super::Cube;
use super::shapes::all_present;
use crate::array::element_payloads;
use crate::extension::arrays::integers;
use crate::extension::call::{Argument, CallError, ExtensionFunction, Letters, Value, strict};

const FLOAT8: AttributeLayout = AttributeLayout { len: 8, align: 8 };

type Arguments<'a> = [Argument<'a>];

fn bad<T>() -> Result<T, CallError> {
    Err(CallError::other_arguments())
}

fn one(arguments: &Arguments<'_>) -> Result<Cube, CallError> {
    match arguments {
        [Argument::Payload(payload)] => Ok(Cube::of_payload(payload)?),
        _ => bad(),
    }
}

fn two(arguments: &Arguments<'_>) -> Result<(Cube, Cube), CallError> {
    match arguments {
        [Argument::Payload(first), Argument::Payload(second)] => {
            Ok((Cube::of_payload(first)?, Cube::of_payload(second)?))
        }
        _ => bad(),
    }
}

fn with_number(arguments: &Arguments<'_>) -> Result<(Cube, i32), CallError> {
    match arguments {
        [Argument::Payload(payload), Argument::Int4(number)] => {
            Ok((Cube::of_payload(payload)?, *number))
        }
        _ => bad(),
    }
}

/// The elements of a `float8[]`.
fn floats(payload: &[u8]) -> Result<Vec<f64>, CallError> {
    let elements = all_present(element_payloads(payload, FLOAT8)?)?;
    let number = |bytes: Vec<u8>| bytes.try_into().map_or(f64::NAN, f64::from_le_bytes);
    Ok(elements.into_iter().map(number).collect())
}

fn made(cube: &Cube) -> Result<Value, CallError> {
    Ok(Value::Payload(cube.payload()))
}

fn ordered(arguments: &Arguments<'_>, holds: fn(Ordering) -> bool) -> Result<Value, CallError> {
    let (first, second) = two(arguments)?;
    Ok(Value::Bool(holds(first.order(&second))))
}

fn related(arguments: &Arguments<'_>, holds: fn(&Cube, &Cube) -> bool) -> Result<Value, CallError> {
    let (first, second) = two(arguments)?;
    Ok(Value::Bool(holds(&first, &second)))
}

fn measured(
    arguments: &Arguments<'_>,
    measure: fn(&Cube, &Cube) -> f64,
) -> Result<Value, CallError> {
    let (first, second) = two(arguments)?;
    Ok(Value::Float8(measure(&first, &second)))
}

fn of_arrays(_: &dyn Letters, arguments: &Arguments<'_>) -> Result<Value, CallError> {
    let [Argument::Payload(first), Argument::Payload(second)] = arguments else { return bad() };
    made(&Cube::of_arrays(floats(first)?, floats(second)?)?)
}

fn of_array(_: &dyn Letters, arguments: &Arguments<'_>) -> Result<Value, CallError> {
    let [Argument::Payload(payload)] = arguments else { return bad() };
    made(&Cube::of_array(floats(payload)?)?)
}

fn of_number(_: &dyn Letters, arguments: &Arguments<'_>) -> Result<Value, CallError> {
    let [Argument::Float8(number)] = arguments else { return bad() };
    made(&Cube::point([*number]))
}

fn of_numbers(_: &dyn Letters, arguments: &Arguments<'_>) -> Result<Value, CallError> {
    let [Argument::Float8(first), Argument::Float8(second)] = arguments else { return bad() };
    made(&Cube::of_numbers(*first, *second))
}

fn with_number_more(_: &dyn Letters, arguments: &Arguments<'_>) -> Result<Value, CallError> {
    let [Argument::Payload(payload), Argument::Float8(number)] = arguments else { return bad() };
    made(&Cube::of_payload(payload)?.with_dimension((*number, *number), true)?)
}

fn with_numbers_more(_: &dyn Letters, arguments: &Arguments<'_>) -> Result<Value, CallError> {
    let [Argument::Payload(payload), Argument::Float8(first), Argument::Float8(second)] = arguments
    else {
        return bad();
    };
    made(&Cube::of_payload(payload)?.with_dimension((*first, *second), first == second)?)
}

fn subset(_: &dyn Letters, arguments: &Arguments<'_>) -> Result<Value, CallError> {
    let [Argument::Payload(payload), Argument::Payload(dimensions)] = arguments else {
        return bad();
    };
    let dimensions = all_present(integers(dimensions)?.elements)?;
    made(&Cube::of_payload(payload)?.subset(&dimensions)?)
}

fn enlarge(_: &dyn Letters, arguments: &Arguments<'_>) -> Result<Value, CallError> {
    let [Argument::Payload(payload), Argument::Float8(radius), Argument::Int4(dimensions)] =
        arguments
    else {
        return bad();
    };
    made(&Cube::of_payload(payload)?.enlarged(*radius, *dimensions))
}

fn end(
    arguments: &Arguments<'_>,
    find: fn(&Cube, i32) -> Result<f64, CallError>,
) -> Result<Value, CallError> {
    let (cube, number) = with_number(arguments)?;
    Ok(Value::Float8(find(&cube, number)?))
}

/// The functions of the library.
pub const FUNCTIONS: &[ExtensionFunction] = &[
    strict("cube_a_f8_f8", of_arrays),
    strict("cube_a_f8", of_array),
    strict("cube_f8", of_number),
    strict("cube_f8_f8", of_numbers),
    strict("cube_c_f8", with_number_more),
    strict("cube_c_f8_f8", with_numbers_more),
    strict("cube_subset", subset),
    strict("cube_enlarge", enlarge),
    strict("cube_union", |_, arguments| {
        let (first, second) = two(arguments)?;
        made(&first.union(&second))
    }),
    strict("cube_inter", |_, arguments| {
        let (first, second) = two(arguments)?;
        made(&first.intersection(&second))
    }),
    strict("cube_eq", |_, arguments| ordered(arguments, Ordering::is_eq)),
    strict("cube_ne", |_, arguments| ordered(arguments, Ordering::is_ne)),
    strict("cube_lt", |_, arguments| ordered(arguments, Ordering::is_lt)),
    strict("cube_gt", |_, arguments| ordered(arguments, Ordering::is_gt)),
    strict("cube_le", |_, arguments| ordered(arguments, Ordering::is_le)),
    strict("cube_ge", |_, arguments| ordered(arguments, Ordering::is_ge)),
    strict("cube_cmp", |_, arguments| {
        let (first, second) = two(arguments)?;
        Ok(Value::Int4(first.order(&second) as i32))
    }),
    strict("cube_contains", |_, arguments| related(arguments, Cube::contains)),
    strict("cube_contained", |_, arguments| related(arguments, |one, other| other.contains(one))),
    strict("cube_overlap", |_, arguments| related(arguments, Cube::overlaps)),
    strict("cube_distance", |_, arguments| measured(arguments, Cube::euclidean)),
    strict("distance_taxicab", |_, arguments| measured(arguments, Cube::taxicab)),
    strict("distance_chebyshev", |_, arguments| measured(arguments, Cube::chebyshev)),
    strict("cube_size", |_, arguments| Ok(Value::Float8(one(arguments)?.size()))),
    strict("cube_dim", |_, arguments| Ok(Value::Int4(one(arguments)?.dimensions() as i32))),
    strict("cube_is_point", |_, arguments| Ok(Value::Bool(one(arguments)?.has_one_corner()))),
    strict("cube_ll_coord", |_, arguments| end(arguments, |cube, at| Ok(cube.low_end(at)))),
    strict("cube_ur_coord", |_, arguments| end(arguments, |cube, at| Ok(cube.high_end(at)))),
    strict("cube_coord", |_, arguments| end(arguments, Cube::coordinate)),
    strict("cube_coord_llur", |_, arguments| end(arguments, Cube::ordered_coordinate)),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{parse, write_cube};
    use super::*;
    use crate::extension::extension_tests::{UnicodeLetters, called};
    use crate::known_value_tests::payload as bytes;
    use crate::printed;

    fn cube(text: &str) -> Vec<u8> {
        parse(text.as_bytes()).unwrap().payload()
    }

    fn call(symbol: &str, cubes: &[&str], more: &[Argument<'_>]) -> Result<Value, CallError> {
        let cubes: Vec<_> = cubes.iter().map(|text| cube(text)).collect();
        let mut arguments: Vec<_> = cubes.iter().map(|one| Argument::Payload(one)).collect();
        arguments.extend_from_slice(more);
        called(FUNCTIONS, symbol, &arguments)
    }

    fn text(symbol: &str, cubes: &[&str], more: &[Argument<'_>]) -> String {
        match call(symbol, cubes, more).unwrap() {
            Value::Payload(payload) => printed(write_cube, &payload),
            other => format!("{other:?}"),
        }
    }

    /// What a PostgreSQL 15 server gives, here and below.
    #[test]
    fn cubes_are_made_of_others() {
        let (one, two) = (Argument::Float8(1.0), Argument::Float8(2.0));
        assert_eq!(text("cube_f8", &[], &[one]), "(1)");
        assert_eq!(text("cube_f8_f8", &[], &[one, two]), "(1),(2)");
        assert_eq!(text("cube_c_f8", &["(1),(2)"], &[two]), "(1, 2),(2, 2)");
        assert_eq!(text("cube_c_f8_f8", &["(1)"], &[one, two]), "(1, 1),(1, 2)");
        assert_eq!(text("cube_union", &["(1,2),(3,4)", "(0)"], &[]), "(0, 0),(3, 4)");
        assert_eq!(text("cube_inter", &["(1,2),(3,4)", "(2)"], &[]), "(2, 2),(2, 0)");
        let enlarge = |radius, dimensions| {
            let more = [Argument::Float8(radius), Argument::Int4(dimensions)];
            text("cube_enlarge", &["(1),(3)"], &more)
        };
        assert_eq!(enlarge(1.0, 2), "(0, -1),(4, 1)");
        assert_eq!(enlarge(-2.0, 2), "(2)");
        assert_eq!(enlarge(-0.5, 0), "(1.5),(2.5)");
    }

    #[test]
    fn arrays_are_corners() {
        let array =
            bytes("0100000000000000bd0200000200000001000000000000000000f03f0000000000000040");
        let array = Argument::Payload(&array);
        assert_eq!(text("cube_a_f8", &[], &[array]), "(1, 2)");
        assert_eq!(text("cube_a_f8_f8", &[], &[array, array]), "(1, 2)");
        let numbers = bytes("0100000000000000170000000300000001000000020000000100000001000000");
        let subset = text("cube_subset", &["(1,2),(3,4)"], &[Argument::Payload(&numbers)]);
        assert_eq!(subset, "(2, 1, 1),(4, 3, 3)");
        let error = call("cube_subset", &["(1)"], &[Argument::Payload(&numbers)]).unwrap_err();
        assert_eq!((error.state, error.message.as_str()), ("2202E", "Index out of bounds"));
    }

    #[test]
    fn cubes_are_measured() {
        let pair = ["(0,0)", "(3,4),(5,6)"];
        assert_eq!(call("cube_distance", &pair, &[]), Ok(Value::Float8(5.0)));
        assert_eq!(call("distance_taxicab", &pair, &[]), Ok(Value::Float8(7.0)));
        assert_eq!(call("distance_chebyshev", &pair, &[]), Ok(Value::Float8(4.0)));
        assert_eq!(call("cube_size", &["(4,8),(15,16)"], &[]), Ok(Value::Float8(88.0)));
        assert_eq!(call("cube_contains", &["(1),(3)", "(2,0)"], &[]), Ok(Value::Bool(true)));
        assert_eq!(call("cube_overlap", &["(1),(3)", "(2,1)"], &[]), Ok(Value::Bool(false)));
        let coordinate = |symbol, at| {
            call(symbol, &["(4,2),(1,3)"], &[Argument::Int4(at)]).map_err(|e| e.message)
        };
        assert_eq!(coordinate("cube_coord", 3), Ok(Value::Float8(1.0)));
        assert_eq!(coordinate("cube_coord_llur", 1), Ok(Value::Float8(1.0)));
        assert_eq!(coordinate("cube_coord_llur", -2), Ok(Value::Float8(-4.0)));
        assert_eq!(coordinate("cube_ur_coord", 1), Ok(Value::Float8(4.0)));
        assert_eq!(coordinate("cube_ll_coord", 3), Ok(Value::Float8(0.0)));
        assert_eq!(coordinate("cube_coord", 5), Err("cube index 5 is out of bounds".into()));
        assert_eq!(coordinate("cube_coord_llur", 0), Err("zero cube index is not defined".into()));
    }

    #[test]
    fn a_cube_has_a_hundred_dimensions_at_most() {
        let full = vec!["1"; 100].join(",");
        let error = call("cube_c_f8", &[&full], &[Argument::Float8(1.0)]).unwrap_err();
        assert_eq!((error.state, error.message.as_str()), ("54000", "can't extend cube"));
        let detail = "A cube cannot have more than 100 dimensions.";
        assert_eq!(error.detail.as_deref(), Some(detail));
    }

    proptest! {
        #[test]
        fn any_bytes_are_arguments(
            bytes in prop::collection::vec(any::<u8>(), 0..60), small in prop::collection::vec(0u32..4, 0..20),
            float in any::<f64>(), number in any::<i32>(),
        ) {
            let small: Vec<u8> = small.into_iter().flat_map(u32::to_le_bytes).collect();
            let payloads = [&bytes, &small].map(|one| Argument::Payload(one));
            let more = [Argument::Float8(float), Argument::Int4(number)];
            for function in FUNCTIONS {
                for first in payloads {
                    for second in payloads.into_iter().chain(more) {
                        let _ = (function.call)(&UnicodeLetters, &[first]);
                        let _ = (function.call)(&UnicodeLetters, &[first, second]);
                        let _ = (function.call)(&UnicodeLetters, &[first, second, more[1]]);
                    }
                }
            }
        }
    }
}
