//! Members against the contents they were made of; archives that are cut, damaged and hostile.
//!
//! The archives are built here, byte by byte, as servers build them.

use std::collections::BTreeMap;
use std::path::Path;

use pagemill_format::backup::TAR_BLOCK;
use proptest::prelude::*;

use super::*;
use crate::error::ErrorKind;
use crate::memory_files::MemoryFiles;

/// A header as servers write it; `kind` is `0` of a file, `5` of a directory, `2` of a link.
fn header(name: &str, kind: u8, size: usize, target: &str) -> Vec<u8> {
    let mut bytes = vec![0; TAR_BLOCK];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    bytes[124..136].copy_from_slice(format!("{size:011o} ").as_bytes());
    bytes[148..156].fill(b' ');
    bytes[156] = kind;
    bytes[157..157 + target.len()].copy_from_slice(target.as_bytes());
    bytes[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u64 = bytes.iter().map(|&byte| u64::from(byte)).sum();
    bytes[148..156].copy_from_slice(format!("{sum:07o} ").as_bytes());
    bytes
}

fn file(name: &str, contents: &[u8]) -> Vec<u8> {
    let mut bytes = header(name, b'0', contents.len(), "");
    bytes.extend_from_slice(contents);
    bytes.resize(bytes.len().next_multiple_of(TAR_BLOCK), 0);
    bytes
}

/// An extended header, with these lines, in front of a file.
fn extended(name: &str, lines: &[u8]) -> Vec<u8> {
    let mut bytes = file("./PaxHeaders/x", lines);
    let sum: u64 = bytes[..TAR_BLOCK].iter().map(|&byte| u64::from(byte)).sum();
    let own: u64 = bytes[148..156].iter().map(|&byte| u64::from(byte)).sum();
    bytes[156] = b'x';
    let sum = sum - own + 8 * u64::from(b' ') + u64::from(b'x' - b'0');
    bytes[148..156].copy_from_slice(format!("{sum:07o} ").as_bytes());
    [bytes, file(name, b"contents")].concat()
}

fn archive(members: &[Vec<u8>]) -> Vec<u8> {
    [&members.concat()[..], &[0; 2 * TAR_BLOCK]].concat()
}

fn numbered(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

const BASE: &str = "/backup/base.tar";

/// A file system with the archives, and files beside them.
fn storage(archives: &[(&str, Vec<u8>)]) -> Storage {
    let mut files = MemoryFiles::new();
    for (path, bytes) in archives {
        files.insert(Path::new(path), bytes.clone());
    }
    Storage::new(Arc::new(files))
}

/// What is wrong with an archive of these bytes: the message and the offset.
fn fault(bytes: Vec<u8>) -> (String, u64) {
    let storage = storage(&[(BASE, bytes)]);
    let mut files = TarFiles::new(&storage, Path::new("/backup")).unwrap();
    let error = files.add(&storage, Path::new(BASE), Path::new("")).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Tar(_)), "{error}");
    assert_eq!(error.path(), Path::new(BASE));
    (error.to_string(), error.offset().unwrap())
}

fn cluster() -> Storage {
    let base = archive(&[
        file("tablespace_map", b"16400 /space\n"),
        header("base", b'5', 0, ""),
        file("base/1259", &numbered(20_000)),
        header("pg_tblspc", b'5', 0, ""),
        header("pg_tblspc/16400", b'2', 0, "/elsewhere"),
        header("pg_tblspc/outside", b'2', 0, "/etc"),
    ]);
    let space = archive(&[header("PG_15", b'5', 0, ""), file("PG_15/16401", b"in the space")]);
    let below = storage(&[
        (BASE, base),
        ("/backup/16400.tar", space),
        ("/backup/backup_manifest", b"{}".to_vec()),
        ("/backup/base.txt", b"beside".to_vec()),
        ("/etc/passwd", b"secret".to_vec()),
    ]);
    let mut files = TarFiles::new(&below, Path::new("/backup")).unwrap();
    files.add(&below, Path::new(BASE), Path::new("")).unwrap();
    let at = Path::new("pg_tblspc/16400");
    files.add(&below, Path::new("/backup/16400.tar"), at).unwrap();
    assert!(files.has_file(Path::new("base/1259")) && !files.has_file(Path::new("base")));
    below.over(|_| Arc::new(files))
}

fn names(storage: &Storage, path: &str) -> Vec<String> {
    let entries = storage.read_dir(Path::new(path)).unwrap();
    let mut names: Vec<_> =
        entries.into_iter().map(|entry| entry.name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn members_stand_where_a_restore_would_lay_them_and_what_lies_beside_is_seen() {
    let storage = cluster();
    let top = ["backup_manifest", "base", "base.txt", "pg_tblspc", "tablespace_map"];
    assert_eq!(names(&storage, "/backup"), top);
    assert_eq!(names(&storage, "/backup/pg_tblspc/16400/PG_15"), ["16401"]);
    let read = |path: &str| storage.read_file(Path::new(path), 100_000).unwrap();
    assert_eq!(read("/backup/base/1259"), numbered(20_000));
    assert_eq!(read("/backup/pg_tblspc/16400/PG_15/16401"), b"in the space");
    assert_eq!(read("/backup/backup_manifest"), b"{}");
    assert_eq!(read("/etc/passwd"), b"secret");
    let found = storage.metadata(Path::new("/backup/base/1259")).unwrap();
    assert_eq!((found.len, found.is_dir), (20_000, false));
    let resolved = storage.resolve(Path::new("/backup/base/../base/1259")).unwrap();
    assert_eq!(resolved, Path::new("/backup/base/1259"));
}

#[test]
fn no_link_in_an_archive_leads_out_of_it() {
    let storage = cluster();
    let secret = storage.read_file(Path::new("/backup/pg_tblspc/outside/passwd"), 100);
    assert!(secret.unwrap_err().is_not_found());
    assert!(storage.open(Path::new("/backup/base/../../etc/passwd")).is_err());
}

#[test]
fn a_read_stays_within_its_member_however_it_is_made() {
    let storage = cluster();
    let member = storage.open(Path::new("/backup/base/1259")).unwrap();
    let mut long = vec![0xEE; 8192];
    assert_eq!(member.read_at(&mut long, 19_000).unwrap(), 1000);
    assert_eq!(&long[..1000], &numbered(20_000)[19_000..]);
    assert!(long[1000..].iter().all(|&byte| byte == 0xEE));
    assert_eq!(member.read_at(&mut long, 20_000).unwrap(), 0);
    assert_eq!(member.read_at(&mut long, u64::MAX).unwrap(), 0);
    assert_eq!(member.seek_and_read(&mut long, 19_999).unwrap(), 1);
    let (mut first, mut second) = ([0; 600], [0; 600]);
    let mut both = [io::IoSliceMut::new(&mut first), io::IoSliceMut::new(&mut second)];
    assert!(member.read_vectored_at(&mut both, 19_000).unwrap() <= 1000);
    let direct = storage.file_system().open(Path::new("/backup/base/1259"), Caching::Direct);
    assert!(Refusal::of(&direct.unwrap_err()).is_some());
}

#[test]
fn an_archive_cut_anywhere_is_damage_with_the_member_and_the_offset() {
    let whole = archive(&[file("PG_VERSION", b"15\n"), file("base", &numbered(3000))]);
    // The last block of zeros may be missing: one marks the end.
    for len in 0..whole.len() - 2 * TAR_BLOCK + 1 {
        let (message, offset) = fault(whole[..len].to_vec());
        assert!(message.contains("it was cut short"), "{len}: {message}");
        assert!(offset.is_multiple_of(TAR_BLOCK as u64) && offset <= len as u64, "{message}");
    }
    let (message, _) = fault(whole[..3 * TAR_BLOCK].to_vec());
    assert!(
        message.starts_with(
            "/backup/base.tar: offset 1024: member base has 3000 bytes, of which the archive has 0"
        ),
        "{message}"
    );
}

#[test]
fn an_extended_header_names_the_member_behind_it_and_a_slash_in_front_says_nothing() {
    let name = format!("{}/last", ["long"; 40].join("/"));
    let record = format!(" path={name}\n");
    let line = format!("{}{record}", record.len() + 3);
    let members = [extended("cut", line.as_bytes()), file("/base/5/1", b"rooted")];
    let below = storage(&[(BASE, archive(&members))]);
    let mut files = TarFiles::new(&below, Path::new("/backup")).unwrap();
    files.add(&below, Path::new(BASE), Path::new("")).unwrap();
    let storage = below.over(|_| Arc::new(files));
    let read = |name: &str| storage.read_file(&Path::new("/backup").join(name), 100).unwrap();
    assert_eq!((read(&name), read("base/5/1")), (b"contents".to_vec(), b"rooted".to_vec()));
    let alone = extended("x", b"")[..TAR_BLOCK].to_vec();
    assert!(fault(archive(&[alone])).0.contains("without the member that it is of"));
}

#[test]
fn damage_and_hostile_members_are_told_with_their_place() {
    let members = || [file("PG_VERSION", b"15\n"), file("base", b"x"), file("global", b"y")];
    let mut flipped = archive(&members());
    flipped[1024 + 3] ^= 0x40;
    let (message, offset) = fault(flipped);
    assert!(
        message.contains("the header behind member PG_VERSION: corrupt tar header: its checksum"),
        "{message}"
    );
    assert_eq!(offset, 1024);
    let mut zeroed = archive(&members());
    zeroed[1024..1536].fill(0);
    assert!(fault(zeroed).0.contains("but 2560 bytes follow: a header was zeroed"));
    for (member, says) in [
        (file("../escaped", b"x"), "leads out of the archive"),
        (file("/../passwd", b"x"), "leads out of the archive"),
        (extended("x", b"5 a="), "no line of its length"),
        (
            [header("x", b'x', 0o10000000, ""), vec![0; 0o10000000]].concat(),
            "an extended header of 2097152 bytes",
        ),
        (header("x", b'x', 0o10000000, ""), "member x has 2097152 bytes"),
        (file("PG_VERSION", b"14\n"), "member PG_VERSION comes a second time"),
        (header("PG_VERSION", b'5', 0, ""), "member PG_VERSION comes a second time"),
        (file("PG_VERSION/below", b"x"), "member PG_VERSION/below lies below another"),
        (header("huge", b'0', 0o77777777777, ""), "member huge has 8589934591 bytes"),
        (header("fifo", b'6', 0, ""), "a member of type '6'"),
    ] {
        let (message, offset) = fault(archive(&[file("PG_VERSION", b"15\n"), member]));
        assert!(message.contains(says) && offset == 1024, "{message}");
    }
}

proptest! {
    #[test]
    fn every_member_comes_back_byte_for_byte(
        contents in proptest::collection::btree_map("[a-z]{1,8}", proptest::collection::vec(any::<u8>(), 0..2000), 0..8),
        (offset, len) in (0_u64..2500, 0_usize..2500),
    ) {
        let members: Vec<_> = contents.iter().map(|(name, bytes)| file(name, bytes)).collect();
        let below = storage(&[(BASE, archive(&members))]);
        let mut files = TarFiles::new(&below, Path::new("/backup")).unwrap();
        files.add(&below, Path::new(BASE), Path::new("")).unwrap();
        let storage = below.over(|_| Arc::new(files));
        let mut found = BTreeMap::new();
        for name in names(&storage, "/backup") {
            let path = Path::new("/backup").join(&name);
            let whole = storage.read_file(&path, 10_000).unwrap();
            let (mut part, start) = (vec![0; len], (offset as usize).min(whole.len()));
            let got = storage.open(&path).unwrap().read_at(&mut part, offset).unwrap();
            prop_assert_eq!(&part[..got], &whole[start..(start + len).min(whole.len())]);
            found.insert(name, whole);
        }
        prop_assert_eq!(found, contents);
    }

    #[test]
    fn any_damage_is_an_error_or_members_within_the_archive(
        damage in proptest::collection::vec((0..6000_usize, any::<u8>()), 1..20),
        cut in 0..8000_usize,
    ) {
        let mut bytes = archive(&[
            file("PG_VERSION", b"15\n"),
            header("base", b'5', 0, ""),
            file("base/1259", &numbered(3000)),
            header("pg_tblspc", b'2', 0, "/space"),
        ]);
        for (at, byte) in damage {
            if let Some(to) = bytes.get_mut(at) {
                *to = byte;
            }
        }
        bytes.truncate(cut);
        let below = storage(&[(BASE, bytes)]);
        let mut files = TarFiles::new(&below, Path::new("/backup")).unwrap();
        if files.add(&below, Path::new(BASE), Path::new("")).is_ok() {
            let storage = below.over(|_| Arc::new(files));
            for name in names(&storage, "/backup") {
                let path = Path::new("/backup").join(name);
                if storage.metadata(&path).is_ok_and(|found| !found.is_dir) {
                    storage.read_file(&path, 10_000).unwrap();
                }
            }
        }
    }
}
