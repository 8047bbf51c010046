//! `pg_control` of any contents; its CRC is made right, or all would end there.
//!
//! What parses can also be printed: no field is believed to be one of its known values.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_format::control::ControlFile;

fuzz_target!(|data: &[u8]| {
    let _ = ControlFile::parse(data, None);
    for crc_offset in [288, 292] {
        let mut file = data.to_vec();
        file.resize(crc_offset, 0);
        file.extend(crc32c::crc32c(&file).to_le_bytes());
        if let Ok(control) = ControlFile::parse(&file, None) {
            let _ = control.to_text();
        }
    }
});
