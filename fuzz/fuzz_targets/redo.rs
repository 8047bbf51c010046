//! Any record on any page: which manager's record it is, of which version, and how many of the bytes are the
//! page's, say the first four; the rest is the record behind its header, and its CRC is not looked at.
//!
//! What comes out is a page whose header is sound, if that of the page before was, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_format::page::Page;
use pagemill_format::wal::{RECORD_HEADER_BYTES, Record, RecordHeader, ResourceManager};
use pagemill_format::{BLOCK_SIZE, Lsn, PgVersion, TransactionId};
use pagemill_fuzz::heap_page_of;
use pagemill_redo::{Effect, RedoSite, effect, is_redone, redo};

fuzz_target!(|data: &[u8]| {
    let Some((&[version, manager, info, share], rest)) = data.split_first_chunk::<4>() else {
        return;
    };
    let managers: Vec<_> = ResourceManager::all().filter(|manager| is_redone(*manager)).collect();
    let resource_manager = managers[usize::from(manager) % managers.len()];
    let version = PgVersion::ALL[usize::from(version) % PgVersion::ALL.len()];
    let (page_bytes, body) = rest.split_at(rest.len() * usize::from(share) / 256);
    let mut bytes = vec![0; RECORD_HEADER_BYTES];
    bytes.extend_from_slice(body);
    let (total_len, xid, prev) = (bytes.len() as u32, TransactionId(700), Lsn(0));
    let header = RecordHeader { total_len, xid, prev, info, resource_manager, crc: 0 };
    let Ok(record) = Record::parse_unchecked(&bytes, header, version) else { return };
    for block in &record.blocks {
        let mut page = heap_page_of(page_bytes);
        let special = (BLOCK_SIZE as u16) - u16::from(share % 4) * 8;
        if Page::new(&page).header().upper <= special {
            page[16..18].copy_from_slice(&special.to_le_bytes());
        }
        let (start, end, reference) = (Lsn(0x100), Lsn(0x200), block.id);
        let site = RedoSite { record: &record, start, end, reference, version, hints_logged: true };
        // These write any byte of a page that they are told to.
        let is_any = effect(&record.header, &block.touch()) == Effect::Image
            || resource_manager == ResourceManager::GENERIC;
        if redo(&mut page, &site).is_ok() && !is_any {
            assert!(Page::new(&page).check_header().is_ok(), "{resource_manager:?} {info:02X}");
        }
    }
});
