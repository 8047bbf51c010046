//! WAL of any contents: records under a right length and CRC, and all that is read from them, for every
//! version.
//!
//! Counts are never believed beyond the bytes there are, and an image comes out as a page or not at all.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_format::control::Checkpoint;
use pagemill_format::wal::{Commit, PageHeader, Record};
use pagemill_format::{BLOCK_SIZE, PgVersion};
use pagemill_wal::record_description;

const LENGTH: std::ops::Range<usize> = 0..4;
const CRC: std::ops::Range<usize> = 20..24;

fuzz_target!(|data: &[u8]| {
    let _ = PageHeader::parse(data);
    let mut record = data.to_vec();
    record.resize(data.len().max(CRC.end), 0);
    let len = record.len() as u32;
    record[LENGTH].copy_from_slice(&len.to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&record[CRC.end..]), &record[..CRC.start]);
    record[CRC].copy_from_slice(&crc.to_le_bytes());
    for version in PgVersion::ALL {
        let mut visited = 0;
        let is_visited = Record::visit_blocks(&record, version, |_| visited += 1).is_ok();
        let Ok(record) = Record::parse(&record, version) else { continue };
        assert!(is_visited && visited == record.blocks.len(), "both ways see the same blocks");
        let _ = record_description(&record, version);
        let _ = Commit::parse(record.main_data, record.header.info, version);
        let _ = Checkpoint::parse(record.main_data, version);
        let (mut page, mut scratch) = ([7; BLOCK_SIZE], Vec::new());
        for image in record.blocks.iter().filter_map(|block| block.image) {
            let _ = image.restore(&mut page, &mut scratch);
            assert!(scratch.len() <= BLOCK_SIZE);
        }
    }
});
