//! Geometric values of any bytes; paths and polygons have a number of points to lie about.
//!
//! The number of points is never believed beyond the bytes there are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_types::geometry::*;

use pagemill_fuzz::print_with;

fuzz_target!(|payload: &[u8]| {
    print_with(&[write_point, write_line, write_lseg, write_box, write_circle], payload);
    print_with(&[write_path, write_polygon], payload);
});
