//! Cutting and reading together, held against the plain reader: batches of a few bytes put a cut in
//! every place, and the same text is read mapped and streamed. What the plain reader says is held
//! against servers elsewhere.

use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use pagemill_io::{HostFiles, InputStream, Storage};
use proptest::prelude::*;

use super::batch_cutter::BatchCutter;
use super::parallel_rows::run_cutter;
use super::reference_reader::{ReferenceError, ReferenceRow, read_all};
use super::*;
use crate::copy::Format;
use crate::error::{Error, Result};

const UTF8: i32 = 6;

fn rules(options: &CopyFromOptions, columns: &[&[u8]], server_major: u32) -> CopyRules {
    // COPY takes `*` from 17 on.
    let takes_star = [&options.force_null, &options.force_not_null].contains(&&ForcedColumns::All);
    let server_major = if takes_star { server_major.max(17) } else { server_major };
    CopyRules::new(options, CopyTarget { relation: "t", columns, encoding: UTF8, server_major })
        .unwrap()
}

fn owned(row: &Row<'_>, columns: usize) -> Result<ReferenceRow> {
    let value = |column| Ok(row.value(column)?.map(<[u8]>::to_vec));
    Ok((row.line(), (0..columns).map(value).collect::<Result<_>>()?))
}

fn collect(rows: &mut Rows<'_>, columns: usize) -> (Vec<ReferenceRow>, Result<()>) {
    let mut all = Vec::new();
    loop {
        match rows.next_row().map(|row| row.map(|row| owned(&row, columns))) {
            Ok(None) => return (all, Ok(())),
            Ok(Some(Ok(row))) => all.push(row),
            Ok(Some(Err(error))) => return (all, Err(error)),
            Err(error) => return (all, Err(error.into())),
        }
    }
}

/// All rows of the sources up to the first error, by some threads and batches of some size.
fn read_to_end(
    rules: &CopyRules,
    sources: Vec<InputSource>,
    batch_bytes: usize,
    jobs: usize,
) -> (Vec<ReferenceRow>, Result<()>) {
    let storage = Storage::real();
    let cutter = BatchCutter::new(&storage, rules, sources).with_batch_bytes(batch_bytes);
    let columns = rules.column_count();
    let mut all = Vec::new();
    let work = |_: &mut (), rows: &mut Rows<'_>| Ok(collect(rows, columns));
    let result = run_cutter(cutter, Workers::new(jobs, || (), work), |(rows, end)| {
        all.extend(rows);
        end
    });
    (all, result)
}

/// The same of a text that is not packed, whose rows are all that can be wrong.
fn read(
    rules: &CopyRules,
    sources: Vec<InputSource>,
    batch_bytes: usize,
    jobs: usize,
) -> (Vec<ReferenceRow>, Option<ReferenceError>) {
    let (all, result) = read_to_end(rules, sources, batch_bytes, jobs);
    let error = match result {
        Ok(()) => None,
        Err(Error::Copy(error)) => Some((error.line, error.message)),
        Err(other) => panic!("{other}"),
    };
    (all, error)
}

fn file_of(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn mapped(file: &tempfile::NamedTempFile) -> Vec<InputSource> {
    vec![InputSource::File(file.path().to_owned())]
}

fn streamed(file: &tempfile::NamedTempFile) -> Vec<InputSource> {
    vec![InputSource::Stream(InputStream::open(&HostFiles::real(), file.path()).unwrap())]
}

/// Texts made of what means something in rows, so that every rule meets every other.
fn texts(csv: bool) -> impl Strategy<Value = Vec<u8>> {
    let common: Vec<&[u8]> =
        vec![b",", b",", b"a", b"bc", b"\n", b"\n", b"\r\n", b"\r", b"\\", b"NULL", b"\xc3\xa9"];
    let own: Vec<&[u8]> = if csv {
        vec![b"\"", b"\"\"", b"\"x\"", b"\n\\.\n", b"'", b"\\."]
    } else {
        vec![b"\\N", b"\\n", b"\\101", b"\\x4", b"\\\\", b"\n\\.\n", b"\\.", b"\\xff", b"\\,"]
    };
    let piece = prop::sample::select([common, own].concat());
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// Texts whose rows are mostly right, so that reading gets far.
fn tables(newline: &'static [u8]) -> impl Strategy<Value = Vec<u8>> {
    let fields: Vec<&[u8]> = vec![
        b"1",
        b"NULL",
        b"",
        b"\"\"",
        b"\"a,b\"",
        b"\"a\nb\"",
        b"\"\"\"\"",
        b"x\"y\"z",
        b"\"a\rb\"",
        b"\"NULL\"",
        b"\\",
        b"\xe2\x82\xac",
    ];
    let field = prop::sample::select(fields);
    let row = (field.clone(), field).prop_map(|(a, b)| [a, b",", b].concat());
    prop::collection::vec(row, 0..40).prop_map(move |rows| rows.join(newline))
}

/// Any bytes, some of them said by their first ones to be packed as they are not.
fn arbitrary_files() -> impl Strategy<Value = Vec<u8>> {
    let magics: Vec<&[u8]> =
        vec![b"", b"", b"", b"\x1f\x8b", b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd"];
    let bytes = prop::collection::vec(any::<u8>(), 0..300);
    (prop::sample::select(magics), bytes).prop_map(|(magic, bytes)| [magic, &bytes].concat())
}

fn options() -> impl Strategy<Value = CopyFromOptions> {
    let header =
        prop::sample::select(vec![Header::None, Header::None, Header::Skip, Header::Match]);
    let escapes = prop::sample::select(vec![None, None, Some(b'\\'), Some(b'\''), Some(b',')]);
    let quotes = prop::sample::select(vec![None, None, None, Some(b'\''), Some(b'\\')]);
    let nulls = prop::sample::select(vec![None, Some(b"NULL".to_vec()), Some(b"".to_vec())]);
    let columns = || {
        prop::sample::select(vec![
            ForcedColumns::None,
            ForcedColumns::None,
            ForcedColumns::All,
            ForcedColumns::Columns(vec![b"bc".to_vec()]),
        ])
    };
    (any::<bool>(), header, escapes, quotes, nulls, columns(), columns()).prop_map(
        |(csv, header, escape, quote, null, force_null, force_not_null)| {
            let text =
                CopyFromOptions { delimiter: Some(b','), header, null, ..Default::default() };
            if !csv {
                return text;
            }
            let format = Format::Csv;
            CopyFromOptions { format, escape, quote, force_null, force_not_null, ..text }
        },
    )
}

fn agrees(options: &CopyFromOptions, text: &[u8], batch: usize, major: u32, stream: bool) {
    let rules = rules(options, &[b"a", b"bc"], major);
    let expected = read_all(&rules, text);
    let file = file_of(text);
    let sources = if stream { streamed(&file) } else { mapped(&file) };
    let found = read(&rules, sources, batch, 2);
    assert_eq!(found, expected, "{options:?} {:?}", String::from_utf8_lossy(text));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_as_the_plain_reader_reads_it(
        (options, text) in options().prop_flat_map(|options| {
            let csv = options.format == Format::Csv;
            (Just(options), texts(csv))
        }),
        batch in 1usize..40,
        major in prop::sample::select(vec![15, 18]),
        stream in any::<bool>(),
    ) {
        agrees(&options, &text, batch, major, stream);
    }

    #[test]
    fn tables_are_read_as_the_plain_reader_reads_them(
        options in options(),
        text in prop::sample::select(vec![b"\n".as_slice(), b"\r", b"\r\n"]).prop_flat_map(tables),
        batch in 1usize..200,
        stream in any::<bool>(),
    ) {
        agrees(&options, &text, batch, 15, stream);
    }

    #[test]
    fn arbitrary_bytes_give_rows_or_an_error(
        options in options(),
        bytes in arbitrary_files(),
        batch in 1usize..100,
    ) {
        let rules = rules(&options, &[b"bc"], 15);
        let (_, end) = read_to_end(&rules, mapped(&file_of(&bytes)), batch, 2);
        let expected = matches!(end, Ok(()) | Err(Error::Copy(_) | Error::Decompression { .. }));
        prop_assert!(expected, "{end:?}");
    }
}

fn csv() -> CopyFromOptions {
    CopyFromOptions { format: Format::Csv, ..CopyFromOptions::default() }
}

fn values(rows: &[ReferenceRow]) -> Vec<String> {
    let text = |value: &Option<Vec<u8>>| match value {
        Some(value) => String::from_utf8_lossy(value).into_owned(),
        None => "-".to_owned(),
    };
    rows.iter().map(|(_, values)| values.iter().map(text).collect::<Vec<_>>().join("|")).collect()
}

#[test]
fn several_files_have_their_own_headers_markers_and_newlines() {
    let rules = rules(&CopyFromOptions { header: Header::Match, ..csv() }, &[b"a", b"b"], 15);
    let texts = ["a,b\n1,2\n\\.\n\"unread", "a,b\r\n3,4\r\n", "a,b", "a,b\n5,\n"];
    let files: Vec<_> = texts.iter().map(|text| file_of(text.as_bytes())).collect();
    for batch_bytes in [1, 8, 1000] {
        let sources = files.iter().flat_map(mapped).collect();
        let (rows, error) = read(&rules, sources, batch_bytes, 2);
        assert_eq!((values(&rows), error), (vec!["1|2".into(), "3|4".into(), "5|-".into()], None));
    }
}

#[test]
fn compressed_files_are_told_by_their_first_bytes() {
    let rules = rules(&csv(), &[b"a"], 15);
    let text: String = (0..100_000).map(|n| format!("{n}\n")).collect();
    let (head, tail) = text.as_bytes().split_at(300_000);
    let gzip = |bytes: &[u8]| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    };
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
    // Several members, one after the other, are one text.
    // As pzstd writes it: the length of each frame in a frame without data before it.
    let pzstd = |bytes: &[u8]| {
        let frame = zstd(bytes);
        let len = (frame.len() as u32).to_le_bytes();
        [&[0x50, 0x2A, 0x4D, 0x18, 4, 0, 0, 0][..], &len, &frame].concat()
    };
    for packed in [
        [gzip(head), gzip(tail)].concat(),
        [zstd(head), zstd(tail)].concat(),
        [pzstd(head), pzstd(tail)].concat(),
    ] {
        for sources in [mapped, streamed] {
            let (rows, error) = read(&rules, sources(&file_of(&packed)), 1 << 20, 2);
            assert_eq!((rows.len(), error), (100_000, None));
            assert_eq!(rows[99_999], (100_000, vec![Some(b"99999".to_vec())]));
        }
    }
}

fn failure(rules: &CopyRules, path: &std::path::Path) -> String {
    let storage = Storage::real();
    let sources = vec![InputSource::File(path.to_owned())];
    let input = Input { storage: &storage, rules, sources };
    let work = |_: &mut (), rows: &mut Rows<'_>| {
        while rows.next_row()?.is_some() {}
        Ok(())
    };
    run(input, Workers::new(2, || (), work), |()| Ok(())).unwrap_err().to_string()
}

#[test]
fn damaged_and_misnamed_compressed_files_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let rules = rules(&csv(), &[b"a"], 15);
    let packed = zstd::encode_all(b"1\n2\n3\n".repeat(1000).as_slice(), 1).unwrap();
    let path = dir.path().join("cut.csv.zst");
    std::fs::write(&path, &packed[..packed.len() - 3]).unwrap();
    let error = failure(&rules, &path);
    assert!(error.ends_with("cut.csv.zst: damaged zstd data: it ends in the middle"), "{error}");
    // With --truncate, an empty file took all rows away.
    for name in ["empty.csv.gz", "empty.csv.zst"] {
        let path = dir.path().join(name);
        std::fs::write(&path, b"").unwrap();
        let error = failure(&rules, &path);
        assert!(error.contains("unexpected end of file"), "{error}");
    }
    let path = dir.path().join("plain.csv.gz");
    std::fs::write(&path, "1\n2\n").unwrap();
    assert!(failure(&rules, &path).contains("damaged gzip data: it does not begin as"));
    let missing = failure(&rules, &dir.path().join("absent.csv"));
    assert!(missing.contains("absent.csv: No such file or directory"), "{missing}");
}

#[test]
fn a_file_that_is_cut_while_it_is_read_is_an_error() {
    let rules = rules(&csv(), &[b"a"], 15);
    let file = file_of(&b"12345678\n".repeat(1 << 20));
    let storage = Storage::real();
    let input = Input { storage: &storage, rules: &rules, sources: mapped(&file) };
    let work = |_: &mut (), rows: &mut Rows<'_>| {
        file.as_file().set_len(5 << 20).unwrap();
        while rows.next_row()?.is_some() {}
        Ok(())
    };
    let error = run(input, Workers::new(2, || (), work), |()| Ok(())).unwrap_err().to_string();
    assert!(error.contains("short read, 5242880 of 9437184 bytes: the file was cut"), "{error}");
}

#[test]
fn the_earliest_error_is_told_whichever_thread_is_first() {
    let rules = rules(&csv(), &[b"a"], 15);
    let text: String = (1..=2000).map(|n| format!("{n}\n")).collect();
    let file = file_of(text.as_bytes());
    let storage = Storage::real();
    let cutter = BatchCutter::new(&storage, &rules, mapped(&file)).with_batch_bytes(64);
    let consumed = AtomicUsize::new(0);
    let work = |_: &mut (), rows: &mut Rows<'_>| {
        let mut count = 0;
        while let Some(row) = rows.next_row()? {
            if row.line() >= 300 {
                // The first one that fails takes its time.
                std::thread::sleep(std::time::Duration::from_millis(
                    (310 - row.line().min(310)) * 5,
                ));
                return Err(Error::Copy(Box::new(row.value_error(0, "no"))));
            }
            count += 1;
        }
        Ok(count)
    };
    let result = run_cutter(cutter, Workers::new(3, || (), work), |count: usize| {
        consumed.fetch_add(count, Ordering::Relaxed);
        Ok(())
    });
    let error = result.unwrap_err().to_string();
    assert!(error.ends_with(": no\nCONTEXT:  COPY t, line 300, column a: \"300\""), "{error}");
    assert!(consumed.into_inner() < 300);
}

#[test]
fn a_consumer_that_fails_and_a_worker_that_panics_end_the_work() {
    let rules = rules(&csv(), &[b"a"], 15);
    let file = file_of(&b"1\n".repeat(10_000));
    let storage = Storage::real();
    let cutter = || BatchCutter::new(&storage, &rules, mapped(&file)).with_batch_bytes(64);
    let work = |_: &mut (), rows: &mut Rows<'_>| {
        while rows.next_row()?.is_some() {}
        Ok(())
    };
    let failed = run_cutter(cutter(), Workers::new(2, || (), work), |()| Err(Error::Cancelled));
    assert_eq!(failed.unwrap_err().to_string(), "cancelled");
    let panics = |_: &mut (), _: &mut Rows<'_>| -> Result<()> { panic!("on purpose") };
    let failed = run_cutter(cutter(), Workers::new(2, || (), panics), |()| Ok(()));
    assert!(matches!(failed, Err(Error::Worker)));
}

#[test]
fn rows_longer_than_a_batch_are_read() {
    let rules = rules(&csv(), &[b"a", b"b"], 15);
    let long = "\"x\ny\"\"".repeat(1000).replace("\"x", "x");
    let text = format!("1,\"{long}\"\n2,z\n");
    let text = text.replace("y\"\"x", "yx");
    let file = file_of(text.as_bytes());
    for sources in [mapped, streamed] {
        let (rows, error) = read(&rules, sources(&file), 16, 2);
        assert_eq!((&rows, &error), (&read_all(&rules, text.as_bytes()).0, &None));
        assert_eq!(rows.len(), 2);
    }
}

#[test]
fn an_error_shows_the_row_or_the_value_cut_after_a_hundred_bytes() {
    let rules = rules(&csv(), &[b"a", b"gr\xc3\xb6\xc3\x9fe"], 15);
    let file = file_of(format!("1,{}\n", "é".repeat(60)).as_bytes());
    let storage = Storage::real();
    let message = |is_value: bool| {
        let input = Input { storage: &storage, rules: &rules, sources: mapped(&file) };
        let work = |_: &mut (), rows: &mut Rows<'_>| {
            let row = rows.next_row()?.unwrap();
            let value = || Error::Copy(Box::new(row.value_error(1, "bad")));
            Err(if is_value { value() } else { row.error("bad").into() })
        };
        match run(input, Workers::new(1, || (), work), |()| Ok(())) {
            Err(Error::Copy(error)) => error.context(),
            other => panic!("{other:?}"),
        }
    };
    let shown = "é".repeat(50);
    assert_eq!(message(true), format!("COPY t, line 1, column größe: \"{shown}...\""));
    assert_eq!(message(false), format!("COPY t, line 1: \"1,{}...\"", "é".repeat(49)));
}
