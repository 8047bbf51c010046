//! A repository made by hand, in memory: files alone, in bundles and by blocks, of one backup and of the one before it; and what is
//! wrong with it once something is missing, cut or changed.

use pagemill_format::pgbackrest::ContentDigest;
use pagemill_io::MemoryFiles;

use super::super::Repository;
use super::*;

const FULL: &str = "20260101-000000F";
const INCR: &str = "20260101-000000F_20260102-000000I";
const BLOCK: usize = 8192;

/// A file of sections, its checksum made right.
fn sealed(sections: &[(&str, &[(String, String)])]) -> Vec<u8> {
    let (mut text, mut parts) = (String::new(), Vec::new());
    for (section, lines) in sections {
        text += &format!("[{section}]\n");
        lines.iter().for_each(|(key, value)| text += &format!("{key}={value}\n"));
        let lines: Vec<_> = lines.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        parts.push(format!("\"{section}\":{{{}}}", lines.join(",")));
    }
    let mut digest = ContentDigest::default();
    digest.update(format!("{{{}}}", parts.join(",")).as_bytes());
    (text + &format!("[backrest]\nbackrest-checksum=\"{}\"\n", digest.digits())).into_bytes()
}

fn line(key: &str, value: impl Into<String>) -> (String, String) {
    (key.to_owned(), value.into())
}

fn head() -> Vec<(String, String)> {
    vec![line("backrest-format", "5")]
}

fn info() -> Vec<u8> {
    let backup = |kind: &str| {
        format!(
            "{{\"backrest-version\":\"2.59\",\"backup-info-repo-size-delta\":1,\"backup-info-size\":1,\
             \"backup-timestamp-start\":1,\"backup-timestamp-stop\":2,\"backup-type\":\"{kind}\",\"db-id\":1}}"
        )
    };
    let history = [line("1", "{\"db-system-id\":7,\"db-version\":\"15\"}")];
    let current = [line(FULL, backup("full")), line(INCR, backup("incr"))];
    sealed(&[("backrest", &head()), ("backup:current", &current), ("db:history", &history)])
}

fn manifest(files: &[(String, String)]) -> Vec<u8> {
    let backup = [
        line("backup-label", format!("\"{INCR}\"")),
        line("backup-reference", format!("\"{FULL},{INCR}\"")),
        line("backup-type", "\"incr\""),
    ];
    let option = [line("option-compress-type", "\"none\"")];
    let paths = [line("pg_data", "{}"), line("pg_data/pg_wal", "{}")];
    let sections: [(&str, &[_]); 5] = [
        ("backrest", &head()),
        ("backup", &backup),
        ("backup:option", &option),
        ("target:file", files),
        ("target:path", &paths),
    ];
    sealed(&sections)
}

/// Three blocks: the first two of the full backup, as a super block of its bundle, the last of the newer one.
fn blocks() -> Vec<u8> {
    [[1; BLOCK], [2; BLOCK], [3; BLOCK]].concat()
}

/// The map of these: where the full backup's bundle has them, and that the newer one has the last at its file's beginning.
fn map() -> Vec<u8> {
    let sum = |block: usize| {
        let contents = &blocks()[block * BLOCK..(block + 1) * BLOCK];
        twox_hash::XxHash3_128::oneshot(contents).to_be_bytes()[..6].to_vec()
    };
    let number = |mut number: usize| {
        let mut bytes = Vec::new();
        while number >= 0x80 {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    };
    let first = [number(0), number(2 | 4), number(7), number(100)];
    let of_two = [number((2 * BLOCK) << 3 | 2 | 1), number(2 << 1), sum(0), sum(1)];
    // Shorter by a block: differences have their sign in the lowest bit.
    let last = [number(1 << 3 | 1), number((2 * BLOCK - 1) << 3 | 1), sum(2)];
    [first.concat(), of_two.concat(), last.concat()].concat()
}

fn files() -> MemoryFiles {
    let (map, root) = (map(), Path::new("/r"));
    let mut files = MemoryFiles::new();
    let mut put = |path: &str, bytes: Vec<u8>| files.insert(&root.join(path), bytes);
    let (full, incr) = (format!("backup/s/{FULL}"), format!("backup/s/{INCR}"));
    let stored = BLOCK + map.len();
    let of_full = |rest: &str| format!("{{{rest},\"reference\":\"{FULL}\"}}");
    let listed = [
        line("pg_data/PG_VERSION", of_full("\"bni\":7,\"bno\":10,\"size\":3")),
        line("pg_data/alone", "{\"size\":5}"),
        line(
            "pg_data/blocks",
            format!(
                "{{\"bi\":1,\"bim\":{},\"repo-size\":{stored},\"size\":{}}}",
                map.len(),
                3 * BLOCK
            ),
        ),
        line("pg_data/empty", "{\"size\":0}"),
        line("pg_tblspc/16400/PG_15/5/1", of_full("\"size\":4")),
    ];
    put("backup/s/backup.info", info());
    put(
        "archive/s/archive.info",
        sealed(&[
            ("backrest", &head()),
            ("db:history", &[line("1", "{\"db-id\":7,\"db-version\":\"15\"}")]),
        ]),
    );
    put(
        &format!("archive/s/15-1/0000000100000000/000000010000000000000003-{}", "0".repeat(40)),
        Vec::new(),
    );
    put("archive/s/15-1/0000000100000002/000000010000000200000001", Vec::new());
    put(&format!("{incr}/backup.manifest"), manifest(&listed));
    put(&format!("{incr}/pg_data/alone"), b"alone".to_vec());
    put(&format!("{incr}/pg_data/blocks.pgbi"), [&blocks()[2 * BLOCK..], &map].concat());
    put(&format!("{full}/pg_tblspc/16400/PG_15/5/1"), b"apart".to_vec());
    let mut bundle = vec![0; 100];
    bundle[10..13].copy_from_slice(b"15\n");
    bundle.extend_from_slice(&blocks()[..2 * BLOCK]);
    put(&format!("{full}/bundle/7"), bundle);
    files
}

fn opened(files: MemoryFiles) -> Result<OpenBackup> {
    let storage = Storage::new(Arc::new(files));
    let stanza = PgBackRest::new(&storage, Path::new("/r")).stanza(None)?;
    stanza.open(stanza.backup(&BackupName::Latest)?, &UnpackNotice::nobody())
}

fn read(backup: &OpenBackup, name: &str) -> Result<Vec<u8>, String> {
    let read = backup.storage.read_file(&backup.directory.join(name), 1 << 20);
    read.map_err(|error| error.to_string())
}

#[test]
fn each_file_comes_from_where_the_manifest_has_it() {
    let backup = opened(files()).unwrap();
    assert_eq!(backup.directory, Path::new(&format!("/r/backup/s/{INCR}/pg_data")));
    assert_eq!(backup.archives, [Path::new("/r/archive/s/15-1")]);
    for (name, contents) in [
        ("PG_VERSION", b"15\n".to_vec()),
        ("alone", b"alone".to_vec()),
        ("empty", Vec::new()),
        ("pg_tblspc/16400/PG_15/5/1", b"apar".to_vec()),
        ("blocks", blocks()),
    ] {
        assert_eq!(read(&backup, name).unwrap(), contents, "{name}");
    }
    assert!(backup.storage.read_dir(&backup.directory.join("pg_wal")).unwrap().is_empty());
    let file = backup.storage.open(&backup.directory.join("blocks")).unwrap();
    let mut buf = vec![0; BLOCK];
    assert_eq!(file.read_at(&mut buf, BLOCK as u64 / 2).unwrap(), BLOCK);
    assert_eq!(buf, [[1; BLOCK / 2], [2; BLOCK / 2]].concat());
    assert_eq!(file.read_at(&mut buf, 3 * BLOCK as u64 - 1).unwrap(), 1);
    assert_eq!(file.read_at(&mut buf, 3 * BLOCK as u64).unwrap(), 0);
}

#[test]
fn the_wal_of_a_stanza_is_told_by_names() {
    let storage = Storage::new(Arc::new(files()));
    let repository = PgBackRest::new(&storage, Path::new("/r"));
    let [stanza] = &repository.stanzas().unwrap()[..] else { panic!("one stanza") };
    let segments = ("000000010000000000000003".to_owned(), "000000010000000200000001".to_owned());
    let reach =
        ArchiveReach { directory: "15-1".to_owned(), segments: Some(segments), last_commit: None };
    assert_eq!(stanza.reach().unwrap(), [reach]);
    let find = |path: &str| Repository::find(&storage, Path::new(path)).unwrap();
    assert!(matches!(find("/r"), Some(Repository::PgBackRest(_))));
    assert!(find("/r/backup").is_none());
}

#[test]
fn what_is_missing_cut_or_changed_is_an_error_with_the_file_of_the_repository() {
    let bundle = format!("/r/backup/s/{FULL}/bundle/7");
    let own = format!("/r/backup/s/{INCR}/pg_data/blocks.pgbi");
    let damaged = |path: &str, bytes: &[u8]| {
        let mut files = files();
        files.insert(Path::new(path), bytes.to_vec());
        opened(files).unwrap()
    };
    let whole = [&vec![0; 100][..], &blocks()[..2 * BLOCK]].concat();
    let mut changed = whole.clone();
    changed[100 + BLOCK] ^= 1;
    for (backup, says) in [
        (damaged(&bundle, &whole[..whole.len() - 1]), "it was cut short"),
        (damaged(&bundle, &changed), "block 1 of this file"),
        (damaged(&own, &[0; 100]), "it was cut short"),
        (damaged(&own, &vec![0; BLOCK + map().len()]), "corrupt block map"),
    ] {
        let said = read(&backup, "blocks").unwrap_err();
        assert!(said.contains("/r/backup/s/") && said.contains(says), "{says}: {said}");
    }
    let moved =
        line("pg_data/x", format!("{{\"bni\":9,\"bno\":0,\"reference\":\"{FULL}\",\"size\":1}}"));
    let mut files = files();
    let path = format!("/r/backup/s/{INCR}/backup.manifest");
    files.insert(Path::new(&path), manifest(&[moved]));
    let said = read(&opened(files).unwrap(), "x").unwrap_err();
    assert!(said.contains(&format!("{FULL}/bundle/9: no such file")), "{said}");
}

#[test]
fn a_second_copy_counts_where_the_first_is_damaged_and_another_backups_manifest_never() {
    let path = |suffix: &str| format!("/r/backup/s/{INCR}/backup.manifest{suffix}");
    let good = manifest(&[line("pg_data/alone", "{\"size\":5}")]);
    let with = |first: &[u8], second: Option<&[u8]>| {
        let mut files = files();
        files.insert(Path::new(&path("")), first.to_vec());
        second
            .into_iter()
            .for_each(|bytes| files.insert(Path::new(&path(".copy")), bytes.to_vec()));
        opened(files).map(|backup| read(&backup, "alone").unwrap())
    };
    assert_eq!(with(b"x=1", Some(&good)).unwrap(), b"alone");
    let said = with(b"x=1", Some(b"y")).unwrap_err().to_string();
    assert!(said.contains("backup.manifest: corrupt"), "{said}");
    let text = String::from_utf8(good).unwrap();
    let said = with(text.replace("\"incr\"", "\"full\"").as_bytes(), None).unwrap_err().to_string();
    assert!(said.contains("its checksum is"), "{said}");
}
