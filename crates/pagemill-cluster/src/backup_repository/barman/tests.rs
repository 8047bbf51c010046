//! A server of Barman made by hand, in memory: a backup of each form that there is, and what hinders one.
//!
//! Each hindrance is refused with the name of the backup or the file.

use super::super::tests::{opened, read, storage, tar};
use super::*;

fn info(more: &str) -> Vec<u8> {
    format!("status=DONE\nversion=150004\nsystemid=7\ntablespaces=[('ts', 16400, '/ts')]\n{more}\n")
        .into()
}

/// The files of a server, with these in place of its own or beside them.
fn server(others: &[(&str, Vec<u8>)]) -> Storage {
    let mut files = vec![
        ("wals/0000000100000000/000000010000000000000002", Vec::new()),
        ("wals/0000000100000000/000000010000000000000002.00000028.backup", Vec::new()),
        ("wals/0000000100000003/0000000100000003000000FF.gz", Vec::new()),
        ("base/20260101T000000/backup.info", info("backup_name=first")),
        ("base/20260101T000000/data/PG_VERSION", b"15\n".to_vec()),
        ("base/20260101T000000/16400/PG_15/5/1", b"apart".to_vec()),
        ("base/20260102T000000/backup.info", info("")),
        ("base/20260102T000000/data/base.tar", tar(&[("PG_VERSION", b"15\n")])),
        ("base/20260102T000000/data/16400.tar", tar(&[("PG_15/5/1", b"in a tar")])),
        ("base/20260103T000000/data.tar", tar(&[("./base/5/1", b"first part")])),
        ("base/20260103T000000/data_0001.tar", tar(&[("PG_VERSION", b"15\n")])),
        ("base/20260103T000000/16400.tar", tar(&[("./PG_15/5/1", b"of a cloud")])),
        ("base/20260103T000000/backup.info", info("end_time=2026-01-03 01:00:00+01:00")),
    ];
    files.extend_from_slice(others);
    storage(&files)
}

#[test]
fn a_backup_of_each_form_is_a_data_directory_with_its_tablespaces() {
    let storage = server(&[]);
    for (label, apart) in [
        ("20260101T000000", "apart"),
        ("first", "apart"),
        ("20260102T000000", "in a tar"),
        ("latest", "of a cloud"),
    ] {
        let backup = opened(&storage, label).unwrap();
        assert_eq!(read(&backup, "PG_VERSION").unwrap(), b"15\n", "{label}");
        assert_eq!(
            read(&backup, "pg_tblspc/16400/PG_15/5/1").unwrap(),
            apart.as_bytes(),
            "{label}"
        );
        assert_eq!(backup.archives, [Path::new("/r/wals")]);
    }
    assert_eq!(read(&opened(&storage, "latest").unwrap(), "base/5/1").unwrap(), b"first part");
}

#[test]
fn what_there_is_is_told_by_names_and_by_what_barman_wrote_down() {
    let storage = server(&[
        ("meta/20260101T000000-backup.info", info("backup_name=moved")),
        ("meta/20260104T000000-backup.info", b"status=FAILED\nerror=no space\n".to_vec()),
        ("base/stray", Vec::new()),
    ]);
    let listed = Barman::new(&storage, Path::new("/r")).listed().unwrap();
    assert_eq!(listed.owner, BackupOwner::Server("r".to_owned()));
    let labels: Vec<_> = listed.backups.iter().map(|backup| backup.label.as_str()).collect();
    assert_eq!(
        labels,
        ["20260101T000000", "20260102T000000", "20260103T000000", "20260104T000000"]
    );
    assert_eq!(listed.backups[0].name.as_deref(), Some("moved"));
    assert_eq!(listed.backups[2].times.1.unwrap().to_string(), "2026-01-03 00:00:00+00");
    assert_eq!(listed.backups[3].hindrance.as_deref(), Some("not whole: FAILED (no space)"));
    let segments = ("000000010000000000000002".to_owned(), "0000000100000003000000FF".to_owned());
    assert_eq!(listed.archives[0].segments, Some(segments));
}

#[test]
fn what_barman_would_not_restore_or_is_not_all_here_is_refused_by_name() {
    let of = |more: &str| ("base/20260103T000000/backup.info", info(more));
    let other = |text: &[u8]| ("base/20260104T000000/backup.info", text.to_vec());
    for (file, label, says) in [
        (of("encryption=gpg"), "latest", "20260103T000000 is encrypted by gpg"),
        (of("snapshots_info={'a': 1}"), "latest", "made of snapshots of volumes"),
        (of("tablespaces=[('ts', 16401, '/ts')]"), "latest", "lacks its tablespace 16401"),
        (
            of("parent_backup_id=20260109T000000"),
            "latest",
            "builds on 20260109T000000, which is not here",
        ),
        (
            of("parent_backup_id=20260103T000000"),
            "latest",
            "builds on 20260103T000000, which is not here",
        ),
        (other(b"status=STARTED"), "20260104T000000", "is not whole: its status is STARTED"),
        (other(b"status=FAILED\nerror=gone"), "20260104T000000", "its status is FAILED (gone)"),
        (other(b"status=DONE"), "latest", "20260104T000000 has no files here"),
        (of(""), "x", "server \"r\" has no backup \"x\": it has 20260101T000000, 20260102T000000"),
        (
            ("base/20260103T000000/data_0002.tar.snappy", Vec::new()),
            "latest",
            "data_0002.tar.snappy is compressed by snappy, which is not read",
        ),
        (of("size=x"), "latest", "backup.info: corrupt backup.info: size \"x\""),
    ] {
        let said = opened(&server(&[file]), label).unwrap_err();
        assert!(said.contains(says), "{says}: {said}");
    }
    // What failed is passed over by `latest`.
    assert!(opened(&server(&[other(b"status=FAILED")]), "latest").is_ok());
    let none = storage(&[("base/x/backup.info", b"status=EMPTY".to_vec()), ("wals/x", Vec::new())]);
    let said = opened(&none, "latest").unwrap_err();
    assert!(said.contains("server \"r\" has no backup that is whole"), "{said}");
    let repository =
        super::super::Repository::find(&server(&[]), Path::new("/r")).unwrap().unwrap();
    let named = repository.open(Some("r"), &BackupName::Latest, &UnpackNotice::nobody());
    assert!(named.unwrap_err().to_string().contains("only those have stanzas"));
}
