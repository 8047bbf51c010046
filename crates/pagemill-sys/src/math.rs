//! Functions of the C library's `<math.h>` of which Rust has none, or has its own with other last digits.
//!
//! They are looked up in the library that the process has loaded: the linker may put another `cbrt` in its place, which is the
//! compiler's. A server asks the same library, so that its results are these as long as both run with the same version of it.
//!
//! Invariant: what is called is a function of one double that gives a double, and neither keeps nor changes anything else.
//!
//! Source: `dcbrt`, `dasinh`, `derf`, `dgamma` and their kin in `src/backend/utils/adt/float.c`, PostgreSQL 18.

use std::ffi::CStr;

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

// SAFETY: only what `find` looks up is of this type; it says there why that may be called.
type OfOne = unsafe extern "C" fn(f64) -> f64;

impl MathFunction {
    fn symbol(self) -> &'static CStr {
        match self {
            Self::CubeRoot => c"cbrt",
            Self::InverseSinh => c"asinh",
            Self::InverseCosh => c"acosh",
            Self::InverseTanh => c"atanh",
            Self::Error => c"erf",
            Self::ErrorComplement => c"erfc",
            Self::Gamma => c"tgamma",
            Self::LogGamma => c"lgamma",
        }
    }

    /// The function, where a library that has it is loaded; a program without any, of musl, has none.
    pub fn find(self) -> Option<impl Fn(f64) -> f64> {
        // SAFETY: the name ends with a zero, and the handle is the one that stands for all that is loaded.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, self.symbol().as_ptr()) };
        if found.is_null() {
            return None;
        }
        // SAFETY: C11 and POSIX give these names to functions of one double that return a double, and no other library
        // that is loaded here has them. Libraries that are loaded at the start stay loaded.
        let function = unsafe { std::mem::transmute::<*mut libc::c_void, OfOne>(found) };
        // SAFETY: as above; any double may be handed to it.
        Some(move |x| unsafe { function(x) })
    }
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
            // Where no library is loaded there is nothing to hold it against.
            let found = of(function, x).unwrap_or(expected);
            assert!((found - expected).abs() < 1e-12, "{function:?}: {found}");
        }
    }
}
