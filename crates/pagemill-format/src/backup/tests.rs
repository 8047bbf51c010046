//! Labels, maps, manifests and histories as servers write them, and as nobody does.
//!
//! Those that real servers write are read in the tests of the command `wal plan`.

use proptest::prelude::*;

use super::*;
use crate::ids::{Lsn, Oid};

const LABEL_15: &str = "START WAL LOCATION: 0/2000028 (file 000000010000000000000002)\n\
    CHECKPOINT LOCATION: 0/2000060\nBACKUP METHOD: streamed\nBACKUP FROM: primary\n\
    START TIME: 2026-03-01 10:00:00 UTC\nLABEL: pg_basebackup base backup\nSTART TIMELINE: 1\n";

fn label(text: &str) -> crate::Result<BackupLabel> {
    BackupLabel::parse(text.as_bytes())
}

#[test]
fn a_label_tells_where_replay_begins_and_who_made_the_copy() {
    let found = label(LABEL_15).unwrap();
    assert_eq!(
        (found.redo, found.checkpoint, found.timeline),
        (Lsn(0x200_0028), Lsn(0x200_0060), 1)
    );
    assert_eq!((found.method, found.from_standby), (BackupMethod::Streamed, false));
    assert_eq!(found.label.as_deref(), Some("pg_basebackup base backup"));
    assert_eq!((found.incremental_from, found.end), (None, None));
    let standby = label(&LABEL_15.replace("primary", "standby")).unwrap();
    assert!(standby.from_standby);
    let exclusive = label(&LABEL_15.replace("streamed", "pg_start_backup")).unwrap();
    assert_eq!(exclusive.method, BackupMethod::Exclusive);
}

#[test]
fn pg_rewind_writes_no_name_and_no_timeline() {
    let text = "START WAL LOCATION: 1F/2000028 (file 000000030000001F00000002)\n\
        CHECKPOINT LOCATION: 1F/2000060\nBACKUP METHOD: pg_rewind\nBACKUP FROM: standby\n\
        START TIME: 2026-03-01 10:00:00 UTC\n";
    let found = label(text).unwrap();
    assert_eq!(
        (found.method, found.from_standby, found.timeline),
        (BackupMethod::PgRewind, true, 3)
    );
    assert_eq!(found.redo, Lsn(0x1F_0200_0028));
}

#[test]
fn an_incremental_backup_says_since_when() {
    let text = format!("{LABEL_15}INCREMENTAL FROM LSN: 0/1000028\nINCREMENTAL FROM TLI: 1\n");
    assert_eq!(label(&text).unwrap().incremental_from, Some((Lsn(0x100_0028), Some(1))));
}

#[test]
fn a_backup_history_file_has_the_end_too() {
    let text = LABEL_15.replace(
        "CHECKPOINT",
        "STOP WAL LOCATION: 0/2000138 (file 000000010000000000000002)\nCHECKPOINT",
    ) + "STOP TIME: 2026-03-01 10:00:07 UTC\nSTOP TIMELINE: 1\n";
    let end = label(&text).unwrap().end.unwrap();
    assert_eq!((end.lsn, end.timeline), (Lsn(0x200_0138), 1));
    assert_eq!(end.time.as_deref(), Some("2026-03-01 10:00:07 UTC"));
}

#[test]
fn labels_without_a_place_or_with_two_timelines_are_refused() {
    let wrong = [
        String::new(),
        LABEL_15.replace("START WAL", "STOP WAL"),
        LABEL_15.replace("0/2000028 ", "0 "),
        LABEL_15.replace("(file 000000010000000000000002)", "(file 0000000100000000)"),
        LABEL_15.replace("CHECKPOINT LOCATION: 0/2000060", "CHECKPOINT LOCATION: "),
        LABEL_15.replace("CHECKPOINT LOCATION: 0/2000060", "CHECKPOINT LOCATION: 0/1000060"),
        LABEL_15.replace("START TIMELINE: 1", "START TIMELINE: 2"),
    ];
    for text in wrong {
        assert!(label(&text).is_err(), "{text}");
    }
}

#[test]
fn a_label_of_several_lines_hides_nothing_before_it() {
    let text = LABEL_15.replace("pg_basebackup base", "nightly\nBACKUP METHOD: pg_rewind\n");
    let found = label(&text).unwrap();
    assert_eq!((found.method, found.label.as_deref()), (BackupMethod::Streamed, Some("nightly")));
}

#[test]
fn tablespaces_have_escaped_paths() {
    let map = TablespaceMap::parse(b"16384 /space one\r\n16385  /a\\\nb\\\\c\n").unwrap();
    assert_eq!(map.path(Oid(16384)), Some(b"/space one".as_slice()));
    assert_eq!(map.path(Oid(16385)), Some(b" /a\nb\\c".as_slice()));
    assert_eq!(map.path(Oid(1)), None);
    for wrong in
        [&b"16384 /space"[..], b"16384\n", b"x /space\n", b" /space\n", b"16384 /a\\", b"5 \n"]
    {
        assert!(TablespaceMap::parse(wrong).is_err(), "{wrong:?}");
    }
    assert_eq!(TablespaceMap::parse(b"").unwrap(), TablespaceMap::default());
}

#[test]
fn a_manifest_tells_which_wal_is_needed() {
    let text = r#"{ "PostgreSQL-Backup-Manifest-Version": 2, "System-Identifier": 7345678901234567890,
        "Files": [ { "Path": "a", "Size": 1, "Last-Modified": "x", "Checksum": "00" } ],
        "WAL-Ranges": [ { "Timeline": 2, "Start-LSN": "0/3000000", "End-LSN": "0/4000100" },
                        { "Timeline": 1, "Start-LSN": "0/2000028", "End-LSN": "0/3000000" } ],
        "Manifest-Checksum": "00" }"#;
    let found = BackupManifest::parse(text.as_bytes()).unwrap();
    assert_eq!(found.system_identifier, Some(7_345_678_901_234_567_890));
    assert_eq!(found.start().unwrap().start, Lsn(0x200_0028));
    assert_eq!((found.end().unwrap().end, found.end().unwrap().timeline), (Lsn(0x400_0100), 2));
    let first = text.replace(r#"n": 2, "System-Identifier": 7345678901234567890"#, r#"n": 1"#);
    assert_eq!(BackupManifest::parse(first.as_bytes()).unwrap().system_identifier, None);
    for wrong in
        ["{}", "[]", &text.replace("n\": 2", "n\": 3"), &text.replace("0/2000028", "2000028"), ""]
    {
        assert!(BackupManifest::parse(wrong.as_bytes()).is_err(), "{wrong}");
    }
}

#[test]
fn a_history_tells_the_timeline_of_every_place() {
    let text =
        b"1\t0/3000000\tno recovery target specified\n\n# a comment\n2\t0/5000060\tbefore x\n";
    let history = TimelineHistory::parse(3, text).unwrap();
    assert_eq!(history.timeline(), 3);
    let at = |lsn: u64| history.timeline_at(Lsn(lsn));
    assert_eq!(
        [at(0), at(0x2FF_FFFF), at(0x300_0000), at(0x500_005F), at(0x500_0060)],
        [1, 1, 2, 2, 3]
    );
    assert_eq!(history.part(2).unwrap().begin, Lsn(0x300_0000));
    assert_eq!(history.part(4), None);
    assert_eq!(TimelineHistory::file_name(0x1A), "0000001A.history");
    assert_eq!(TimelineHistory::without_parents(7).timeline_at(Lsn(5)), 7);
    for wrong in
        [&b"x\t0/1\n"[..], b"1\n", b"1\t5\n", b"2\t0/1\n1\t0/2\n", b"3\t0/1\n", b"1\t0/1\n1\t0/2\n"]
    {
        assert!(TimelineHistory::parse(3, wrong).is_err(), "{wrong:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_value_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = BackupLabel::parse(&bytes);
        let _ = TablespaceMap::parse(&bytes);
        let _ = BackupManifest::parse(&bytes);
        let _ = TimelineHistory::parse(9, &bytes);
    }

    #[test]
    fn a_label_with_a_changed_byte_is_a_value_or_an_error(at in 0..LABEL_15.len(), byte in any::<u8>()) {
        let mut bytes = LABEL_15.as_bytes().to_vec();
        bytes[at] = byte;
        let _ = BackupLabel::parse(&bytes);
    }

    #[test]
    fn escaped_paths_come_back(path in proptest::collection::vec(any::<u8>(), 1..40)) {
        let mut line = b"16384 ".to_vec();
        for &byte in &path {
            if matches!(byte, b'\n' | b'\r' | b'\\') {
                line.push(b'\\');
            }
            line.push(byte);
        }
        line.push(b'\n');
        let map = TablespaceMap::parse(&line).unwrap();
        prop_assert_eq!(map.path(Oid(16384)), Some(path.as_slice()));
    }
}
