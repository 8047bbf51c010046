//! Network addresses of any bytes, of both families and of none.
//!
//! The number of bits is never believed beyond what the family has.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_types::bytea::{write_macaddr, write_macaddr8};
use pagemill_types::network::{write_cidr, write_inet};

use pagemill_fuzz::print_with;

fuzz_target!(|payload: &[u8]| print_with(
    &[write_inet, write_cidr, write_macaddr, write_macaddr8],
    payload
));
