//! A folder of WAL-G made by hand, in memory: a full backup, two delta backups on it, and what hinders one.
//!
//! Each hindrance is refused with the name of the backup or the file.

use pagemill_format::BLOCK_SIZE;

use super::super::tests::{opened, read, storage, tar};
use super::*;

const FULL: &str = "base_000000010000000000000003";
const FIRST: &str = "base_000000010000000000000005_D_000000010000000000000003";
const SECOND: &str = "base_000000010000000000000007_D_000000010000000000000005";

fn sentinel(lsn: u64, parent: Option<&str>) -> Vec<u8> {
    let parent = parent.map(|parent| format!(",\"DeltaFrom\":\"{parent}\"")).unwrap_or_default();
    format!(
        "{{\"LSN\":{lsn},\"PgVersion\":150004,\"FinishTime\":\"2026-01-01T00:00:00.5Z\"{parent}}}"
    )
    .into()
}

fn list(files: &[(&str, &str)]) -> Vec<u8> {
    let files: Vec<_> = files.iter().map(|(name, how)| format!("\"/{name}\":{{{how}}}")).collect();
    format!("{{\"Files\":{{{}}}}}", files.join(",")).into()
}

/// The blocks of a file, each filled with one byte.
fn blocks(marks: &[u8]) -> Vec<u8> {
    marks.iter().flat_map(|mark| [*mark; BLOCK_SIZE]).collect()
}

/// An increment of a file of so many blocks: those that are given.
fn increment(blocks: u64, changed: &[(u32, u8)]) -> Vec<u8> {
    let mut bytes = b"wi1U".to_vec();
    bytes.extend((blocks * BLOCK_SIZE as u64).to_le_bytes());
    bytes.extend((changed.len() as u32).to_le_bytes());
    bytes.extend(changed.iter().flat_map(|(number, _)| number.to_le_bytes()));
    bytes.extend(changed.iter().flat_map(|(_, mark)| [*mark; BLOCK_SIZE]));
    bytes
}

const UNCHANGED: &str = "\"IsSkipped\":true";
const INCREMENT: &str = "\"IsIncremented\":true";

/// A full backup, and two delta backups on it, with these files in place of their own or beside them.
fn folder(others: &[(String, Vec<u8>)]) -> Storage {
    let at = |name: &str, rest: &str| format!("basebackups_005/{name}{rest}");
    let part = "/tar_partitions/part_001.tar";
    let label = "/tar_partitions/backup_label.tar";
    let full = tar(&[
        ("/PG_VERSION", b"15\n"),
        ("/base/5/1", &blocks(&[1, 1, 1, 1])),
        ("/base/5/2", b"two"),
        ("/base/5/gone", b"gone"),
        ("/pg_tblspc/16400/PG_15/5/3", b"apart"),
    ]);
    let first = tar(&[("/base/5/1", &increment(3, &[(0, 2), (2, 2)]))]);
    let second = tar(&[("/base/5/1", &increment(5, &[(2, 3)])), ("/base/5/4", b"new")]);
    let same =
        ["PG_VERSION", "base/5/2", "pg_tblspc/16400/PG_15/5/3"].map(|name| (name, UNCHANGED));
    let mut files = vec![
        (at(FULL, SENTINEL_SUFFIX), sentinel(0x300_0028, None)),
        (at(FULL, part), full),
        (at(FULL, label), tar(&[("backup_label", b"of the full one")])),
        (at(FIRST, SENTINEL_SUFFIX), sentinel(0x500_0028, Some(FULL))),
        (
            at(FIRST, "/files_metadata.json"),
            list(&[&same[..], &[("base/5/1", INCREMENT)]].concat()),
        ),
        (at(FIRST, part), first),
        (at(SECOND, SENTINEL_SUFFIX), sentinel(0x700_0028, Some(FIRST))),
        (
            at(SECOND, "/files_metadata.json"),
            list(
                &[&same[..], &[("base/5/1", INCREMENT), ("base/5/4", ""), ("base/5/lost", "")]]
                    .concat(),
            ),
        ),
        (at(SECOND, part), second),
        (at(SECOND, label), tar(&[("backup_label", b"of the last one")])),
        ("wal_005/000000010000000000000003.lz4".to_owned(), Vec::new()),
        ("wal_005/000000010000000000000003_delta.lz4".to_owned(), Vec::new()),
        ("wal_005/000000010000000000000008.lz4".to_owned(), Vec::new()),
        ("wal_005/00000001.history.lz4".to_owned(), Vec::new()),
    ];
    files.extend_from_slice(others);
    let files: Vec<_> = files.iter().map(|(path, bytes)| (path.as_str(), bytes.clone())).collect();
    storage(&files)
}

#[test]
fn a_delta_backup_has_what_its_list_names_from_the_backups_it_builds_on() {
    let storage = folder(&[]);
    let full = opened(&storage, FULL).unwrap();
    assert_eq!(read(&full, "base/5/1").unwrap(), blocks(&[1, 1, 1, 1]));
    assert_eq!(read(&full, "backup_label").unwrap(), b"of the full one");
    let first = opened(&storage, FIRST).unwrap();
    assert_eq!(read(&first, "base/5/1").unwrap(), blocks(&[2, 1, 2]));
    let last = opened(&storage, "latest").unwrap();
    // Block 3 was truncated away before it came back as zeros.
    assert_eq!(read(&last, "base/5/1").unwrap(), blocks(&[2, 1, 3, 0, 0]));
    for (name, contents) in [
        ("PG_VERSION", &b"15\n"[..]),
        ("base/5/2", b"two"),
        ("base/5/4", b"new"),
        ("pg_tblspc/16400/PG_15/5/3", b"apart"),
        ("backup_label", b"of the last one"),
    ] {
        assert_eq!(read(&last, name).unwrap(), contents, "{name}");
    }
    let mut names: Vec<_> = last
        .storage
        .read_dir(&last.directory.join("base/5"))
        .unwrap()
        .into_iter()
        .map(|entry| entry.name.into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["1", "2", "4"]);
    assert_eq!(last.archives, [Path::new("/r/wal_005")]);
}

#[test]
fn what_there_is_is_told_by_sentinels_and_names() {
    let listed = WalG::new(&folder(&[]), Path::new("/r")).listed().unwrap();
    let kinds: Vec<_> = listed.backups.iter().map(|backup| backup.kind.unwrap()).collect();
    assert_eq!(kinds, ["full", "delta", "delta"]);
    assert_eq!(listed.backups[1].prior.as_deref(), Some(FULL));
    assert_eq!(listed.backups[1].segments.0.as_deref(), Some("000000010000000000000005"));
    assert_eq!(listed.backups[0].times.1.unwrap().to_string(), "2026-01-01 00:00:00.5+00");
    let segments = ("000000010000000000000003".to_owned(), "000000010000000000000008".to_owned());
    assert_eq!(listed.archives[0].segments, Some(segments));
}

#[test]
fn what_is_not_read_or_not_all_here_is_refused_by_name() {
    let at = |name: &str, rest: &str| format!("basebackups_005/{name}{rest}");
    let files = "/files_metadata.json";
    for (path, bytes, label, says) in [
        (
            at(FULL, "/tar_partitions/x.tar.lz4"),
            b"noise!".to_vec(),
            FULL,
            "x.tar.lz4 is not what its name says",
        ),
        (
            at(FULL, "/tar_partitions/x.tar.br"),
            b"noise!".to_vec(),
            FULL,
            "x.tar.br is compressed by brotli",
        ),
        (
            at(FIRST, SENTINEL_SUFFIX),
            sentinel(1, Some("base_x")),
            FIRST,
            "builds on base_x, which is not here",
        ),
        (
            at(FIRST, SENTINEL_SUFFIX),
            sentinel(1, Some(FULL)),
            FIRST,
            "builds on base_000000010000000000000003, which",
        ),
        (
            at(FULL, "1_backup_stop_sentinel.json"),
            b"{".to_vec(),
            FULL,
            "1_backup_stop_sentinel.json: corrupt",
        ),
        (at(FIRST, files), b"[]".to_vec(), FIRST, "files_metadata.json: corrupt"),
        (
            at(FIRST, files),
            list(&[("base/5/8", UNCHANGED)]),
            FIRST,
            "base/5/8: the backup before has no such file",
        ),
        (
            at(FIRST, "/tar_partitions/x.tar"),
            tar(&[("/base/5/1", b"")]),
            FIRST,
            "base/5/1 comes a second time",
        ),
        (at(FULL, "x"), Vec::new(), "x", "this folder of WAL-G has no backup \"x\": it has base_"),
        (at("base_9", SENTINEL_SUFFIX), sentinel(9, None), "base_9", "base_9 has no files here"),
    ] {
        let said = opened(&folder(&[(path, bytes)]), label).unwrap_err();
        assert!(said.contains(says), "{says}: {said}");
    }
    let damaged = |bytes: &[u8]| {
        let part = tar(&[("/base/5/1", bytes)]);
        let storage = folder(&[(at(FIRST, "/tar_partitions/part_001.tar"), part)]);
        opened(&storage, FIRST).and_then(|backup| read(&backup, "base/5/1")).unwrap_err()
    };
    let whole = increment(3, &[(0, 2), (2, 2)]);
    assert!(damaged(b"wi2U").contains("increment of a delta backup"));
    assert!(damaged(&whole[..18]).contains("increment of a delta backup"));
    let cut = damaged(&whole[..whole.len() - BLOCK_SIZE]);
    assert!(cut.contains("ends in block 2"), "{cut}");
    let no_list = br#"{"LSN":5,"DeltaFrom":"x","FilesMetadataDisabled":true}"#;
    let storage = folder(&[
        (at("base_9", SENTINEL_SUFFIX), no_list.to_vec()),
        (at("base_9", "/tar_partitions/a.tar"), tar(&[])),
    ]);
    assert!(
        opened(&storage, "base_9")
            .unwrap_err()
            .contains("a delta backup without a list of its files")
    );
}
