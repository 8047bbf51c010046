//! Two-phase state files of any contents, under a right length and CRC, for every version.
//!
//! The counts of subtransactions and files are never believed beyond the bytes there are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_format::PgVersion;
use pagemill_format::twophase::PreparedTransaction;

fuzz_target!(|data: &[u8]| {
    let mut file = 0x57F9_4534_u32.to_le_bytes().to_vec();
    file.extend((data.len() as u32 + 12).to_le_bytes());
    file.extend(data);
    file.extend(crc32c::crc32c(&file).to_le_bytes());
    for version in PgVersion::ALL {
        let _ = PreparedTransaction::parse(data, version);
        if let Ok(prepared) = PreparedTransaction::parse(&file, version) {
            prepared.xids().for_each(drop);
        }
    }
});
