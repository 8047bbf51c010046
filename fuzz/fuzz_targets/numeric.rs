//! Numerics of any bytes: short and long headers, special values, digits that are none.
//!
//! A few bytes can stand for 131072 digits before the point, but never for more than that.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_types::numeric::write_numeric;

use pagemill_fuzz::print_with;

fuzz_target!(|payload: &[u8]| print_with(&[write_numeric], payload));
