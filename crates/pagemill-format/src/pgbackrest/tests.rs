//! Files of repositories, whole, damaged, and of any contents: what parses is what pgBackRest wrote, and anything else is an error that
//! says what is wrong.

use proptest::prelude::*;
use sha1::{Digest as _, Sha1};

use super::*;
use crate::ids::Lsn;

/// A file of sections, its checksum made right.
fn sealed(sections: &[(&str, &[(&str, &str)])]) -> Vec<u8> {
    let mut text = String::new();
    let mut parts = Vec::new();
    for (section, lines) in sections {
        text += &format!("[{section}]\n");
        let line = |(key, value): &(&str, &str)| format!("\"{key}\":{value}");
        let lines_in_json: Vec<String> = lines.iter().map(line).collect();
        parts.push(format!("\"{section}\":{{{}}}", lines_in_json.join(",")));
        lines.iter().for_each(|(key, value)| text += &format!("{key}={value}\n"));
        text += "\n";
    }
    let mut sum = Sha1::new();
    sum.update(format!("{{{}}}", parts.join(",")));
    text += &format!("[backrest]\nbackrest-checksum=\"{}\"\n", digits(sum));
    text.into_bytes()
}

const HEAD: (&str, &[(&str, &str)]) =
    ("backrest", &[("backrest-format", "5"), ("backrest-version", "\"2.59\"")]);
const SYSTEM: &str = "7570000000000000001";

fn manifest(files: &[(&str, &str)]) -> Vec<u8> {
    sealed(&[
        HEAD,
        (
            "backup",
            &[
                ("backup-label", "\"20260101-000000F_20260102-000000I\""),
                ("backup-reference", "\"20260101-000000F,20260101-000000F_20260102-000000I\""),
                ("backup-type", "\"incr\""),
            ],
        ),
        ("backup:option", &[("option-compress-type", "\"zst\"")]),
        ("target:file", files),
        ("target:path", &[("pg_data", "{}"), ("pg_data/base", "{}")]),
    ])
}

#[test]
fn a_manifest_tells_where_each_file_lies() {
    let sum = "da39a3ee5e6b4b0d3255bfef95601890afd80709";
    let bytes = manifest(&[
        (
            "pg_data/base/1/1259",
            &format!(
                "{{\"bi\":1,\"bim\":30,\"bni\":3,\"bno\":77,\"checksum\":\"{sum}\",\"reference\":\"20260101-000000F\",\"repo-size\":900,\"size\":8192,\"timestamp\":1}}"
            ),
        ),
        ("pg_data/a=b", "{\"size\":0,\"timestamp\":1}"),
    ]);
    let manifest = Manifest::parse(&bytes).unwrap();
    assert_eq!((manifest.stored_by, manifest.kind), (StoredBy::Zst, BackupKind::Incr));
    assert_eq!(manifest.directories, ["pg_data", "pg_data/base"]);
    let [table, odd] = &manifest.files[..] else { panic!("{manifest:?}") };
    assert_eq!(manifest.references[table.reference], "20260101-000000F");
    assert_eq!((table.len, table.stored_len, table.bundle), (8192, 900, Some((3, 77))));
    let blocks = BlockIncrement { block_size: 8192, checksum_size: 6, map_len: 30 };
    assert_eq!((table.blocks, table.checksum.as_deref()), (Some(blocks), Some(sum)));
    assert_eq!((odd.name.as_str(), odd.reference, odd.bundle), ("pg_data/a=b", 1, None));
}

#[test]
fn a_changed_byte_another_format_and_an_encrypted_file_are_told_apart() {
    let good = manifest(&[("pg_data/a", "{\"size\":1}")]);
    let said = |bytes: &[u8]| Manifest::parse(bytes).unwrap_err().to_string();
    let text = String::from_utf8(good.clone()).unwrap();
    assert!(said(text.replace("\"size\":1", "\"size\":2").as_bytes()).contains("its checksum is"));
    let (cut, _) = text.rsplit_once("[backrest]").unwrap();
    assert!(said(cut.as_bytes()).contains("no backrest-checksum"));
    assert!(said(&good[..good.len() / 2]).contains("neither a section"));
    let newer = said(text.replace("format=5", "format=6").as_bytes());
    assert!(newer.contains("repository format 6; format 5 is read"), "{newer}");
    assert!(said(b"Salted__12345678").contains("encrypted"));
    assert!(said(b"\xFF").contains("not UTF-8") && said(b"text").contains("neither a section"));
    assert!(said(b"").contains("no backrest-format"));
}

#[test]
fn names_and_labels_that_lead_elsewhere_are_refused() {
    for name in ["pg_data/../x", "/pg_data/x", "pg_data//x", "etc/passwd", "pg_data/./x"] {
        let error = Manifest::parse(&manifest(&[(name, "{\"size\":1}")])).unwrap_err().to_string();
        assert!(error.contains("no name within a backup"), "{error}");
    }
    let file = "{\"reference\":\"../../x\",\"size\":1}";
    let error = Manifest::parse(&manifest(&[("pg_data/x", file)])).unwrap_err().to_string();
    assert!(error.contains("no label of a backup"), "{error}");
}

#[test]
fn backups_are_found_with_their_cluster_and_its_archive() {
    let history = format!("{{\"db-system-id\":{SYSTEM},\"db-version\":\"15\"}}");
    let backup = "{\"backrest-format\":5,\"backrest-version\":\"2.59\",\"backup-archive-start\":\"000000010000000000000003\",\
                  \"backup-error\":false,\"backup-info-repo-size-delta\":10,\"backup-info-size\":100,\"backup-lsn-start\":\"0/3000028\",\
                  \"backup-timestamp-start\":5,\"backup-timestamp-stop\":6,\"backup-type\":\"full\",\"db-id\":2}";
    let info = sealed(&[
        HEAD,
        ("backup:current", &[("20260101-000000F", backup)]),
        ("db:history", &[("2", &history), ("1", "{\"db-system-id\":5,\"db-version\":\"14\"}")]),
    ]);
    let info = BackupInfo::parse(&info).unwrap();
    let backup = &info.backups[0];
    assert_eq!((backup.seconds, backup.bytes, backup.stored_bytes), ((5, 6), 100, 10));
    assert_eq!((backup.lsns, backup.has_errors), ((Some(Lsn(0x300_0028)), None), Some(false)));
    let cluster = info.cluster_of(backup).unwrap();
    assert_eq!((cluster.number, cluster.version.as_str()), (2, "15"));
    let of = format!("{{\"db-id\":{SYSTEM},\"db-version\":\"15\"}}");
    let archive = sealed(&[HEAD, ("db:history", &[("1", &of), ("3", &of)])]);
    assert_eq!(ArchiveInfo::parse(&archive).unwrap().directories(cluster), ["15-3", "15-1"]);
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn shape(blocks: u64) -> BlockMapShape {
    BlockMapShape { len: blocks * 8192 - 100, block_size: 8192, checksum_size: 6, references: 3 }
}

fn map_of(numbers: &[Result<u64, u8>]) -> Vec<u8> {
    // A number as it is, or a block with a checksum of one byte six times.
    numbers.iter().flat_map(|one| one.map_or_else(|mark| vec![mark; 6], varint)).collect()
}

#[test]
fn a_map_goes_on_where_a_reference_was_left() {
    // Two blocks of reference 0 in a super block of three, one of reference 1 in a bundle, the third of the first again.
    let bytes = map_of(&[
        Ok(0),
        Ok(4), // reference 0, with an offset
        Ok(50),
        Ok(200 << 3 | 4 | 2 | 1), // 200 bytes, of another length, some blocks, the last for now
        Ok(3 << 1),
        Ok(1 << 1),
        Err(1),
        Err(2),
        Ok(1 << 3 | 2), // reference 1, with a bundle
        Ok(9),
        Ok((2 * 40 - 1) << 3 | 1), // 40 less: 160
        Err(3),
        Ok(2 | 4 | 1), // reference 0 goes on, and ends
        Ok(0),
        Err(4),
    ]);
    let map = BlockMap::parse(shape(4), &bytes).unwrap();
    let place = |block| map.place(block).map(|(place, of)| (place.start, *of)).unwrap();
    let first = SuperBlock { reference: 0, bundle: 0, offset: 50, stored_len: 200, len: 3 * 8192 };
    let other = SuperBlock { reference: 1, bundle: 9, offset: 0, stored_len: 160, len: 8192 };
    assert_eq!([place(0), place(1)], [(0, first), (8192, first)]);
    assert_eq!([place(2), place(3)], [(0, other), (2 * 8192, first)]);
    assert_eq!((map.place(4), map.block_len(3), map.block_len(0)), (None, 8092, 8192));
    for (cut, _) in bytes.iter().enumerate() {
        assert!(BlockMap::parse(shape(4), &bytes[..cut]).is_err(), "cut at {cut}");
    }
    assert!(
        BlockMap::parse(shape(5), &bytes).is_err() && BlockMap::parse(shape(3), &bytes).is_err()
    );
}

#[test]
fn a_block_is_held_against_its_checksum() {
    let contents = vec![7; 8092];
    let sum = twox_hash::XxHash3_128::oneshot(&contents).to_be_bytes();
    let mut bytes = map_of(&[Ok(0), Ok(1), Ok(9 << 3 | 1)]);
    bytes.extend_from_slice(&sum[..6]);
    let map = BlockMap::parse(shape(1), &bytes).unwrap();
    assert!(map.is_sound(0, &contents) && !map.is_sound(0, &contents[1..]));
    assert!(!map.is_sound(1, &contents));
}

proptest! {
    #[test]
    fn a_map_of_any_contents_is_an_error_or_whole(
        bytes in proptest::collection::vec(prop_oneof![0_u8..16, any::<u8>()], 0..120),
        blocks in 1_u64..9,
    ) {
        if let Ok(map) = BlockMap::parse(shape(blocks), &bytes) {
            for block in 0..blocks {
                let (place, of) = map.place(block).unwrap();
                prop_assert!(place.start < of.len && of.reference < 3);
            }
        }
    }

    #[test]
    fn a_file_of_any_contents_is_an_error_or_read(
        text in "(\\[(backup|target:file|backup:current|db:history|backup:option)\\]\n|[a-z:=/_-]{0,12}=[\\[{\"a-z0-9:,}\\]]{0,12}\n|\\PC{0,9}){0,12}",
    ) {
        let _ = (Manifest::parse(text.as_bytes()), BackupInfo::parse(text.as_bytes()));
        let _ = ArchiveInfo::parse(text.as_bytes());
    }

    /// Lines with a right checksum, so that what lies behind it is reached.
    #[test]
    fn lines_of_any_contents_under_a_right_checksum_are_an_error_or_read(
        key in "(pg_data/)?[a-z./=-]{1,9}",
        value in "\\{(\"(size|bi|bim|bno|bni|repo-size|reference|checksum)\":(\"[a-z0-9./]{0,4}\"|[0-9]{1,20}|null),?){0,4}\\}",
    ) {
        // What is no JSON is no line that pgBackRest writes, and has no such checksum.
        if serde_json::from_str::<serde::de::IgnoredAny>(&value).is_ok() {
            let lines = [(key.as_str(), value.as_str())];
            let _ = Manifest::parse(&manifest(&lines));
            let _ = BackupInfo::parse(&sealed(&[HEAD, ("backup:current", &lines)]));
        }
    }
}
