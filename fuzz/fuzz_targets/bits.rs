//! `bit` and `varbit` of any bytes: a length in bits that the bytes may not have.
//!
//! As many digits are printed as there are bits, or none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_types::bits::write_varbit;

use pagemill_fuzz::print_with;

fuzz_target!(|payload: &[u8]| print_with(&[write_varbit], payload));
