//! Functions of the C library's `<math.h>` of which Rust has none, or has its own with other last digits.
//!
//! A server asks the same library, so that its results are these as long as both run with the same version of it. `cbrt` is looked up
//! in what the process has loaded, as the linker puts the compiler's own in its place.
//!
//! Invariant: what is called is a function of one double that gives a double, and neither keeps nor changes anything else.
//!
//! Source: `dcbrt`, `dasinh`, `derf`, `dgamma` and their kin in `src/backend/utils/adt/float.c`, PostgreSQL 18.

/// A function of the library.
#[derive(Debug, Clone, Copy)]
pub enum MathFunction {
    /// The cube root.
    CubeRoot,
    /// The inverse of the hyperbolic sine.
    InverseSinh,
    /// The inverse of the hyperbolic cosine.
    InverseCosh,
    /// The inverse of the hyperbolic tangent.
    InverseTanh,
    /// The error function.
    Error,
    /// One minus the error function.
    ErrorComplement,
    /// Gamma.
    Gamma,
    /// The natural logarithm of the absolute value of gamma.
    LogGamma,
}

type OfOne = extern "C" fn(f64) -> f64;

// SAFETY: the declarations are those of <math.h> in C11, glibc and musl; those that are safe may be called with any double.
unsafe extern "C" {
    safe fn asinh(x: f64) -> f64;
    safe fn acosh(x: f64) -> f64;
    safe fn atanh(x: f64) -> f64;
    safe fn erf(x: f64) -> f64;
    safe fn erfc(x: f64) -> f64;
    safe fn tgamma(x: f64) -> f64;
    /// `lgamma` keeps the sign where all threads see it.
    fn lgamma_r(x: f64, sign: *mut libc::c_int) -> f64;
}

impl MathFunction {
    /// The function; none where no library is loaded that has it, as in a program that musl is part of.
    pub fn find(self) -> Option<OfOne> {
        Some(match self {
            Self::CubeRoot => return cube_root(),
            Self::InverseSinh => asinh,
            Self::InverseCosh => acosh,
            Self::InverseTanh => atanh,
            Self::Error => erf,
            Self::ErrorComplement => erfc,
            Self::Gamma => tgamma,
            Self::LogGamma => log_gamma,
        })
    }
}

extern "C" fn log_gamma(x: f64) -> f64 {
    let mut sign = 0;
    // SAFETY: the sign is written to a place that is there as long as the call.
    unsafe { lgamma_r(x, &raw mut sign) }
}

fn cube_root() -> Option<OfOne> {
    // SAFETY: the name ends with a zero, and the handle is the one that stands for all that is loaded.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"cbrt".as_ptr()) };
    if found.is_null() {
        return None;
    }
    // SAFETY: C11 gives this name to a function of one double that returns a double, and no other library that is loaded here has
    // it. Libraries that are loaded at the start stay loaded, and the others above see to it that this one is.
    Some(unsafe { std::mem::transmute::<*mut libc::c_void, OfOne>(found) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_those_of_their_names() {
        let of = |function: MathFunction, x: f64| function.find().map(|found| found(x));
        for (function, x, expected) in [
            (MathFunction::CubeRoot, 27.0, 3.0),
            (MathFunction::InverseSinh, 0.0, 0.0),
            (MathFunction::InverseCosh, 1.0, 0.0),
            (MathFunction::InverseTanh, 0.0, 0.0),
            (MathFunction::Error, 0.0, 0.0),
            (MathFunction::ErrorComplement, 0.0, 1.0),
            (MathFunction::Gamma, 5.0, 24.0),
            (MathFunction::LogGamma, 1.0, 0.0),
        ] {
            match of(function, x) {
                Some(found) => assert!((found - expected).abs() < 1e-12, "{function:?}: {found}"),
                None if cfg!(target_env = "gnu") => panic!("{function:?} is not found"),
                None => {}
            }
        }
    }
}
