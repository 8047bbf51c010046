//! The text files beside a backup and among WAL, of any contents: a label, a map, a manifest, a history.
//!
//! What parses keeps its order: a history's parts ascend, and a label's checkpoint is not before its start.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_format::Lsn;
use pagemill_format::backup::{BackupLabel, BackupManifest, TablespaceMap, TimelineHistory};

fuzz_target!(|data: &[u8]| {
    if let Ok(label) = BackupLabel::parse(data) {
        assert!(label.redo <= label.checkpoint);
    }
    let _ = TablespaceMap::parse(data);
    let _ = BackupManifest::parse(data);
    if let Ok(history) = TimelineHistory::parse(7, data) {
        assert!(history.parts().is_sorted_by(|a, b| a.timeline < b.timeline));
        assert!(history.part(history.timeline_at(Lsn(1 << 24))).is_some());
    }
});
