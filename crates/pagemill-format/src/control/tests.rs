//! The control file of a running cluster of each version, against `pg_controldata`'s words; and
//! each way to refuse one.

use proptest::prelude::*;

use super::*;

const CLUSTERS: [(PgVersion, &[u8], &str); 5] = [
    (
        PgVersion::V14,
        include_bytes!("../../fixtures/pg_control/14.bin"),
        include_str!("../../fixtures/pg_control/14.txt"),
    ),
    (
        PgVersion::V15,
        include_bytes!("../../fixtures/pg_control/15.bin"),
        include_str!("../../fixtures/pg_control/15.txt"),
    ),
    (
        PgVersion::V16,
        include_bytes!("../../fixtures/pg_control/16.bin"),
        include_str!("../../fixtures/pg_control/16.txt"),
    ),
    (
        PgVersion::V17,
        include_bytes!("../../fixtures/pg_control/17.bin"),
        include_str!("../../fixtures/pg_control/17.txt"),
    ),
    (
        PgVersion::V18,
        include_bytes!("../../fixtures/pg_control/18.bin"),
        include_str!("../../fixtures/pg_control/18.txt"),
    ),
];

/// 15's control file with `bytes` put at `offset` and the CRC made right again.
fn altered(offset: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = CLUSTERS[1].1.to_vec();
    file[offset..offset + bytes.len()].copy_from_slice(bytes);
    let crc = crc32c::crc32c(&file[..288]);
    file[288..292].copy_from_slice(&crc.to_le_bytes());
    file
}

fn refusal(file: &[u8]) -> String {
    ControlFile::parse(file, None).unwrap_err().to_string()
}

#[test]
fn every_version_prints_what_pg_controldata_prints() {
    for (version, bytes, text) in CLUSTERS {
        let file = ControlFile::parse(bytes, Some(version)).unwrap();
        assert_eq!(file.version, version);
        assert_eq!(file.to_text(), text);
    }
}

#[test]
fn the_wal_level_of_the_checkpoint_is_there_from_17_on() {
    for (version, bytes, _) in CLUSTERS {
        let file = ControlFile::parse(bytes, None).unwrap();
        let expected = (version >= PgVersion::V17).then_some(1);
        assert_eq!(file.checkpoint.wal_level, expected);
    }
}

#[test]
fn a_servers_file_is_encoded_to_the_same_bytes() {
    for (version, bytes, _) in CLUSTERS {
        let mut file = ControlFile::parse(bytes, None).unwrap();
        let encoded = file.encode().unwrap();
        assert_eq!(encoded.len(), CONTROL_FILE_BYTES);
        assert!(encoded.starts_with(bytes) || bytes.starts_with(&encoded), "{version}");
        file.state = ClusterState::InProduction;
        file.time += 1;
        file.checkpoint.next_oid.0 += 8;
        let changed = ControlFile::parse(&file.encode().unwrap(), Some(version)).unwrap();
        file.crc = changed.crc;
        assert_eq!(changed, file);
        let body = file.checkpoint.encode(version);
        assert_eq!(Checkpoint::parse(&body, version).unwrap(), file.checkpoint);
    }
}

#[test]
fn a_running_cluster_is_not_clean() {
    let file = ControlFile::parse(CLUSTERS[4].1, None).unwrap();
    assert_eq!(file.state, ClusterState::InProduction);
    assert!(!file.state.is_clean() && file.has_data_checksums());
    let stopped = ControlFile::parse(&altered(16, &[1, 0, 0, 0]), None).unwrap();
    assert_eq!(stopped.state.to_string(), "shut down");
    assert!(stopped.state.is_clean());
}

#[test]
fn a_file_that_ends_early_is_corrupt() {
    assert_eq!(refusal(&[]), "corrupt pg_control: 8 bytes expected, 0 left (byte 0)");
    assert_eq!(
        refusal(&CLUSTERS[4].1[..290]),
        "corrupt pg_control: the file ends after 290 bytes, before its CRC (byte 290)"
    );
}

#[test]
fn a_changed_byte_shows_in_the_crc() {
    let mut file = CLUSTERS[1].1.to_vec();
    file[100] ^= 1;
    let message = refusal(&file);
    let stored = u32::from_le_bytes(file[288..292].try_into().unwrap());
    let computed = crc32c::crc32c(&file[..288]);
    let what = format!("CRC-32C is {computed:08X}, the file says {stored:08X} (byte 288)");
    assert_eq!(message, format!("corrupt pg_control: {what}"));
}

#[test]
fn a_big_endian_cluster_is_named_as_such() {
    let message = refusal(&altered(8, &1300_u32.to_be_bytes()));
    assert!(message.starts_with("unsupported pg_control: pg_control version 1300 in big-endian"));
}

#[test]
fn other_versions_are_refused_with_the_ones_that_are_read() {
    let older = refusal(&altered(8, &1201_u32.to_le_bytes()));
    let newer = refusal(&altered(8, &1900_u32.to_le_bytes()));
    let read = "PostgreSQL 14 to 18 (pg_control versions 1300, 1700 and 1800) are read";
    let prefix = "unsupported pg_control: pg_control version";
    assert_eq!(older, format!("{prefix} 1201 is older than any this build reads; {read}"));
    assert_eq!(newer, format!("{prefix} 1900 is newer than any this build reads; {read}"));
}

#[test]
fn postgresql_13_has_14s_control_version_and_is_told_by_its_catalogs() {
    let message = refusal(&altered(12, &202_007_201_u32.to_le_bytes()));
    assert!(message.contains("catalog version 202007201 (with pg_control version 1300) is not"));
}

#[test]
fn a_pg_version_file_of_another_cluster_is_noticed() {
    let error = ControlFile::parse(CLUSTERS[1].1, Some(PgVersion::V16)).unwrap_err();
    assert!(error.to_string().contains("is PostgreSQL 15's, but the file PG_VERSION says 16"));
}

#[test]
fn builds_with_other_sizes_are_refused_by_their_value() {
    let number = |offset, value: u32| refusal(&altered(offset, &value.to_le_bytes()));
    assert!(number(216, 16_384).contains("block size 16384: only 8192-byte (8 kB) blocks"));
    assert!(number(220, 65_536).contains("65536 blocks per segment: only segments of 131072"));
    assert!(number(204, 4).contains("maximum data alignment 4: only 8 is read"));
    assert!(refusal(&altered(208, &[1; 8])).contains("floating-point format"));
    assert!(refusal(&altered(248, &[0])).contains("passed by reference"));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = ControlFile::parse(&bytes, None);
    }

    #[test]
    fn arbitrary_fields_under_a_right_crc_never_panic(
        body in prop::collection::vec(any::<u8>(), 200),
        offset in 16_usize..88,
    ) {
        if let Ok(file) = ControlFile::parse(&altered(offset, &body[..(204 - offset).min(200)]), None) {
            let _ = file.to_text();
        }
    }
}
