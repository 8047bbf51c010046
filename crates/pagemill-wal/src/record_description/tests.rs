//! Records described in the words of `pg_waldump`; arbitrary bytes give a text or an error.
//! Whether the words are those of `pg_waldump` is asked of servers, in `tests/server_wal.rs`.

use pagemill_format::TransactionId;
use pagemill_format::wal::{CopiedDatabase, RECORD_HEADER_BYTES, RecordBuilder, RecordHeader};
use proptest::prelude::*;

use super::*;

const LOCATOR: RelFileLocator =
    RelFileLocator { tablespace: Oid(1663), database: Oid(5), number: Oid(16384) };

fn described(record: &RecordBuilder<'_>, version: PgVersion) -> Result<String> {
    let bytes = record.encode(Lsn(8), version)?.to_vec();
    record_description(&Record::parse(&bytes, version)?, version)
}

#[test]
fn records_are_described_in_words() {
    let version = PgVersion::V16;
    let text = |record: &RecordBuilder<'_>| described(record, version).unwrap();
    let commit = Commit { dropped_files: vec![LOCATOR], ..Commit::default() };
    let commit = commit.record(TransactionId(7), version);
    assert_eq!(text(&commit), "2000-01-01 00:00:00.000000 UTC; rels: base/5/16384");
    let elsewhere = RelFileLocator { tablespace: Oid(20000), ..LOCATOR };
    let file = StorageFile { locator: elsewhere, fork: Fork::Vm };
    let file = file.record(TransactionId(7));
    assert_eq!(text(&file), "pg_tblspc/20000/PG_16_202307071/5/16384_vm");
    let insert = RecordBuilder::new(ResourceManager::HEAP, 0x80, TransactionId(7));
    assert_eq!(text(&insert.main_data(vec![3, 0, 8])), "off: 3, flags: 0x08");
    let short =
        RecordBuilder::new(ResourceManager::HEAP, 0x10, TransactionId(7)).main_data(vec![3]);
    assert!(described(&short, version).is_err());
}

/// With the record's name.
fn named(record: &RecordBuilder<'_>, version: PgVersion) -> String {
    let bytes = record.encode(Lsn(0), version).unwrap().to_vec();
    let record = Record::parse(&bytes, version).unwrap();
    let kind = record.header.resource_manager.record_name(record.header.info, version);
    format!("{} {}", kind.unwrap_or_default(), record_description(&record, version).unwrap())
}

#[test]
fn each_version_has_its_numbers_for_what_becomes_of_a_database() {
    let xid = TransactionId(800);
    let copied = CopiedDatabase {
        database: Oid(16384),
        tablespace: Oid(1663),
        source_database: Oid(1),
        source_tablespace: Oid(1664),
    };
    let spaces = [Oid(1663), Oid(17000)];
    let dropped = |version| {
        named(&RecordBuilder::database_dropped(Oid(16384), &spaces, xid, version), version)
    };
    assert_eq!(named(&copied.record(xid), PgVersion::V14), "CREATE copy dir 1664/1 to 1663/16384");
    assert_eq!(
        named(&copied.record(xid), PgVersion::V18),
        "CREATE_FILE_COPY copy dir 1664/1 to 1663/16384"
    );
    let made = RecordBuilder::database_made(Oid(16384), Oid(1663), xid);
    assert_eq!(named(&made, PgVersion::V15), "CREATE_WAL_LOG create dir 1663/16384");
    assert_eq!(dropped(PgVersion::V14), "DROP dir 1663/16384 17000/16384");
    assert_eq!(dropped(PgVersion::V15), "DROP dir 1663/16384 17000/16384");
    let map = RecordBuilder::relation_map(Oid(16384), Oid(1663), &[7; 512], xid);
    assert_eq!(named(&map, PgVersion::V15), "UPDATE database 16384 tablespace 1663 size 512");
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(
        mut bytes in prop::collection::vec(any::<u8>(), RECORD_HEADER_BYTES..400), version in 0_usize..5,
    ) {
        let version = PgVersion::ALL[version];
        // With the length right, so that the header is one; the rest is the main data of any record.
        let length = bytes.len() as u32;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        let record = Record {
            header: RecordHeader::parse(&bytes).unwrap(),
            blocks: Vec::new(),
            main_data: &bytes[RECORD_HEADER_BYTES..],
            origin: None,
            toplevel_xid: None,
        };
        let _ = record_description(&record, version);
    }
}
