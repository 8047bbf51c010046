//! Extended statistics of any bytes, also under the right magic number.
//!
//! The numbers of items and of attributes are never believed beyond the bytes there are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_types::statistics::*;

use pagemill_fuzz::print_with;

fuzz_target!(|payload: &[u8]| {
    print_with(&[write_pg_ndistinct, write_pg_dependencies, write_pg_mcv_list], payload);
    for magic in [0xA352_BFA4_u32, 0xB454_9A2C] {
        let header = [magic.to_le_bytes(), 1_u32.to_le_bytes()].concat();
        print_with(&[write_pg_ndistinct, write_pg_dependencies], &[&header, payload].concat());
    }
});
