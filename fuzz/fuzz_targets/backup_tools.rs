//! What Barman and WAL-G write down of backups, of any contents, the increments of delta backups, and extended headers of archives.
//!
//! What parses leads nowhere else: names stay within a data directory, blocks within an increment.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_format::backup::{PaxRecords, TarHeader, TarMember};
use pagemill_format::barman::BackupInfo;
use pagemill_format::walg::{FileList, Increment, Sentinel};

fuzz_target!(|data: &[u8]| {
    let _ = BackupInfo::parse(data);
    // So that a list of tablespaces is reached.
    let _ = BackupInfo::parse(&[b"status=DONE\ntablespaces=", data].concat());
    if let Ok(sentinel) = Sentinel::parse(data) {
        let _ = (sentinel.tablespaces(), sentinel.lsns());
    }
    if let Ok(list) = FileList::parse(data) {
        for (name, _) in list.iter() {
            assert!(
                name.is_empty() || name.split('/').all(|part| !matches!(part, "" | "." | ".."))
            );
        }
    }
    let whole = [b"wi1U", data].concat();
    if let Ok(found) = Increment::parse(&whole) {
        for block in (0..found.blocks()).step_by(97) {
            assert!(found.offset(block).is_none_or(|at| at >= Increment::FIXED_BYTES as u64));
        }
    }
    if let Ok(records) = PaxRecords::parse(data) {
        let header = TarHeader { name: Vec::new(), kind: TarMember::File, size: 0 };
        assert!(records.applied_to(header).name.iter().all(|part| part != b".."));
    }
});
