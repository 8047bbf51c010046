//! Functions of double precision that the C library computes: cube roots, inverse hyperbolic functions, the error function, gamma.
//!
//! Invariant: the library that is loaded here computes them, as a server's does; where there is none they are refused.
//!
//! Source: `src/backend/utils/adt/float.c`, PostgreSQL 16 and 18.

use arrow::array::ArrayRef;
use pagemill_sys::MathFunction;

use super::Implementation;
use super::floats::{self, checked, input_out_of_range, overflow, underflow};
use super::rows::Outcome;
use crate::error::StatementError;

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        "dcbrt" => |_, a| computed(a, MathFunction::CubeRoot, |_| Ok(()), cube_root),
        "dasinh" => |_, a| computed(a, MathFunction::InverseSinh, |_| Ok(()), any),
        "dacosh" => |_, a| computed(a, MathFunction::InverseCosh, |x| within(x >= 1.0), any),
        "datanh" => |_, a| {
            computed(a, MathFunction::InverseTanh, |x| within((-1.0..=1.0).contains(&x)), any)
        },
        "derf" => |_, a| computed(a, MathFunction::Error, |_| Ok(()), any),
        "derfc" => |_, a| computed(a, MathFunction::ErrorComplement, |_| Ok(()), any),
        "dgamma" => |_, a| computed(a, MathFunction::Gamma, of_gamma, gamma),
        "dlgamma" => |_, a| computed(a, MathFunction::LogGamma, |_| Ok(()), logarithm_of_gamma),
        _ => return None,
    }))
}

/// A function of each number that is one, once `before` has let it pass; `behind` looks at argument and result.
fn computed(
    arguments: &[ArrayRef],
    function: MathFunction,
    before: fn(f64) -> floats::Outcome<()>,
    behind: fn(f64, f64) -> floats::Outcome<f64>,
) -> Outcome<ArrayRef> {
    let what = "a function of a C library that is not there";
    let of = function.find().ok_or_else(|| StatementError::unsupported(what))?;
    checked(arguments, |x| {
        if x.is_nan() {
            return Ok(x);
        }
        before(x)?;
        behind(x, of(x))
    })
}

fn within(is_inside: bool) -> floats::Outcome<()> {
    if is_inside { Ok(()) } else { Err(input_out_of_range()) }
}

fn any(_: f64, found: f64) -> floats::Outcome<f64> {
    Ok(found)
}

fn cube_root(x: f64, found: f64) -> floats::Outcome<f64> {
    match found {
        _ if found.is_infinite() && !x.is_infinite() => Err(overflow()),
        _ if found == 0.0 && x != 0.0 => Err(underflow()),
        _ => Ok(found),
    }
}

fn of_gamma(x: f64) -> floats::Outcome<()> {
    if x == f64::NEG_INFINITY { Err(overflow()) } else { Ok(()) }
}

/// Zero, whole numbers below it and all beyond 171 have none.
fn gamma(x: f64, found: f64) -> floats::Outcome<f64> {
    match found {
        _ if x.is_infinite() => Ok(x),
        _ if found.is_infinite() || found.is_nan() => Err(overflow()),
        0.0 => Err(underflow()),
        _ => Ok(found),
    }
}

fn logarithm_of_gamma(x: f64, found: f64) -> floats::Outcome<f64> {
    match found.is_infinite() && !x.is_infinite() {
        true => Err(overflow()),
        false => Ok(found),
    }
}
