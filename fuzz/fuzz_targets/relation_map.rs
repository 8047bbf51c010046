//! `pg_filenode.map` of any contents, of both sizes, under a right CRC.
//!
//! The number of mappings is never believed beyond the slots there are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_format::Oid;
use pagemill_format::relmap::RelationMap;

fuzz_target!(|data: &[u8]| {
    let _ = RelationMap::parse(data);
    for (crc_offset, size) in [(504, 512), (520, 524)] {
        let mut file = data.to_vec();
        file.resize(crc_offset, 0);
        file.extend(crc32c::crc32c(&file).to_le_bytes());
        file.resize(size, 0);
        if let Ok(map) = RelationMap::parse(&file) {
            let _ = map.filenode(Oid(1259));
        }
    }
});
