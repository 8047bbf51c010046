//! The file system over a store in memory: what lies there, what a queue brings, what is kept on disk, what changes meanwhile.
//!
//! Requests over HTTP, and what goes wrong with them, are tested by the command against a server, but for one that falls silent: the
//! command waits too long for a test.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::memory::InMemory;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt as _};
use pagemill_io::{
    Caching, Direction, File, FileSystem as _, MemoryFiles, Node, QueueKind, QueuedIo,
};
use pagemill_sys::AlignedBuffer;
use pagemill_testbucket::{BUCKET, Fault, KEY, Requests, TestBucket};
use proptest::prelude::*;

use crate::http_requests::Connector;
use crate::request_counts::RequestCounts;
use crate::{RemoteError, RemoteFiles, RemoteOptions, RetryPolicy, connect, runtime};

/// Longer than a request and than a piece of any kind, and no multiple of either.
const LONG: usize = (9 << 20) + 12_345;

fn contents(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at / 7 % 251) as u8 ^ seed).collect()
}

fn put(store: &Arc<InMemory>, key: &'static str, bytes: Vec<u8>) {
    let store = store.clone();
    runtime::wait(async move { store.put(&Key::from(key), bytes.into()).await }).unwrap().unwrap();
}

fn store() -> Arc<InMemory> {
    let store = Arc::new(InMemory::new());
    put(&store, "prod/PG_VERSION", b"15\n".to_vec());
    put(&store, "prod/base/5/1259", contents(40_000, 1));
    put(&store, "prod/base/5/16384", contents(LONG, 2));
    put(&store, "prod/empty", Vec::new());
    store
}

fn files(store: &Arc<InMemory>, options: &RemoteOptions) -> RemoteFiles {
    let below = Arc::new(MemoryFiles::new());
    let files = RemoteFiles::new(below, Path::new("s3://bucket/prod"), options);
    files.add_store("s3://bucket", store.clone() as Arc<dyn ObjectStore>);
    files
}

#[test]
fn directories_are_what_lies_below_them_and_everything_else_is_missing() {
    let (store, options) = (store(), RemoteOptions::default());
    let files = files(&store, &options);
    let path = |path: &str| Path::new("s3://bucket/prod").join(path);
    let mut names: Vec<_> =
        files.read_dir(&path("")).unwrap().into_iter().map(|entry| entry.name).collect();
    names.sort();
    assert_eq!(names, ["PG_VERSION", "base", "empty"]);
    assert_eq!(files.node(&path("base")).unwrap(), Node::Directory);
    assert_eq!(files.node(&path("base/5/1259")).unwrap(), Node::File { len: 40_000 });
    assert!(files.metadata(Path::new("s3://bucket/prod")).unwrap().is_dir);
    for missing in ["pg_tblspc", "base/5/1", "base/6/1259", "base/6", "PG_VERSION/x"] {
        let error = files.metadata(&path(missing)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{missing}");
    }
    let kind = files.read_dir(&path("PG_VERSION")).unwrap_err().kind();
    assert_eq!(kind, std::io::ErrorKind::NotADirectory);
    assert_eq!(files.read_whole(&path("empty"), 10).unwrap().unwrap(), b"");
    assert_eq!(files.read_whole(&path("PG_VERSION"), 10).unwrap().unwrap(), b"15\n");
    assert!(files.open(Path::new("s3://"), Caching::Buffered).is_err());
    assert!(files.open(Path::new("/PG_VERSION"), Caching::Buffered).is_err());
}

/// What a queue brings of a file for these places and lengths.
fn queued(files: &RemoteFiles, file: &Arc<dyn File>, reads: &[(u64, usize)]) -> Vec<Vec<u8>> {
    let mut queue = files.open_queue(QueueKind::Own, 8).unwrap();
    for (id, (offset, len)) in (0..).zip(reads) {
        queue.submit(read(id, file, *offset, *len));
        if id % 5 == 4 {
            queue.flush().unwrap();
        }
    }
    let mut found = vec![None; reads.len()];
    while let Some(came) = queue.wait().unwrap() {
        let len = came.outcome.unwrap();
        let before = found[came.id as usize].replace(came.buffer[..len].to_vec());
        assert!(before.is_none(), "a read came back twice");
    }
    found.into_iter().map(Option::unwrap).collect()
}

fn read(id: u64, file: &Arc<dyn File>, offset: u64, len: usize) -> QueuedIo {
    QueuedIo {
        id,
        file: file.clone(),
        direction: Direction::Read,
        buffer: AlignedBuffer::zeroed(len),
        range: 0..len,
        offset,
        force_async: false,
        lane: None,
    }
}

fn expected(bytes: &[u8], reads: &[(u64, usize)]) -> Vec<Vec<u8>> {
    let part = |(offset, len): &(u64, usize)| {
        let start = (*offset as usize).min(bytes.len());
        bytes[start..(start + len).min(bytes.len())].to_vec()
    };
    reads.iter().map(part).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_queue_brings_what_lies_there_with_a_cache_on_disk_and_without(
        reads in prop::collection::vec((0..LONG as u64 + 9000, 1..700_000_usize), 1..24),
        neighbors in 0..12_u64,
    ) {
        let (store, cache) = (store(), tempfile::tempdir().unwrap());
        let bytes = contents(LONG, 2);
        let mut reads = reads;
        reads.extend((0..neighbors).map(|n| (n << 20, 1 << 20)));
        let wanted = expected(&bytes, &reads);
        let kept = Some((cache.path().to_owned(), 1 << 30));
        for cache in [None, kept.clone(), kept] {
            let files = files(&store, &RemoteOptions { cache, ..RemoteOptions::default() });
            let file = files.open(Path::new("s3://bucket/prod/base/5/16384"), Caching::Buffered);
            let file: Arc<dyn File> = file.unwrap().into();
            prop_assert!(queued(&files, &file, &reads) == wanted);
            let mut one = vec![0; 300_000];
            let got = file.read_at(&mut one, reads[0].0).unwrap();
            prop_assert!(one[..got] == expected(&bytes, &[(reads[0].0, 300_000)])[0]);
            prop_assert_eq!(files.finish(), None);
        }
    }
}

/// What the session before read is listed before anybody asks; what no session reads is forgotten, and what is gone is no failure.
#[test]
fn directories_of_the_session_before_are_listed_at_once() {
    let (store, cache) = (store(), tempfile::tempdir().unwrap());
    let kept = Some((cache.path().to_owned(), 1 << 30));
    let options = RemoteOptions { cache: kept, ..RemoteOptions::default() };
    let read = |files: &RemoteFiles, name: &str| {
        let path = Path::new("s3://bucket/prod").join(name);
        assert!(files.read_whole(&path, 10).is_ok(), "{name}");
        assert_eq!(files.finish(), None);
    };
    let is_listed = |files: &RemoteFiles, directory: &str| {
        let directories = files.directories_of("s3://bucket");
        let listed = || directories.known(&Key::from(directory));
        let waits = (0..200).map(|_| std::thread::sleep(Duration::from_millis(5)));
        waits.map(|()| listed()).find(Option::is_some).flatten()
    };
    read(&files(&store, &options), "base/5/1259");
    let second = files(&store, &options);
    assert!(is_listed(&second, "prod/base/5").unwrap().is_some());
    read(&second, "PG_VERSION");
    let third = files(&store, &options);
    assert!(is_listed(&third, "prod").unwrap().is_some());
    assert!(third.directories_of("s3://bucket").known(&Key::from("prod/base/5")).is_none());
    read(&third, "base/5/1259");
    let objects = store.clone();
    let gone = async move { objects.delete(&Key::from("prod/base/5/1259")).await };
    runtime::wait(gone).unwrap().unwrap();
    read(&files(&store, &options), "PG_VERSION");
}

/// A piece that was changed on the disk is fetched again, wherever the change is.
#[test]
fn a_changed_piece_is_no_piece() {
    let (store, cache) = (store(), tempfile::tempdir().unwrap());
    let kept = Some((cache.path().to_owned(), 1 << 30));
    let options = RemoteOptions { cache: kept, ..RemoteOptions::default() };
    let reads: Vec<(u64, usize)> = (0..4).map(|n| (n << 20, 1 << 20)).collect();
    let wanted = expected(&contents(LONG, 2), &reads);
    let session = || {
        let files = files(&store, &options);
        let file = files.open(Path::new("s3://bucket/prod/base/5/16384"), Caching::Buffered);
        let file: Arc<dyn File> = file.unwrap().into();
        assert!(queued(&files, &file, &reads) == wanted);
        assert_eq!(files.finish(), None);
        files.requests().cache_bytes
    };
    session();
    let whole = session();
    assert!(whole >= 4 << 20, "{whole}");
    let folders = std::fs::read_dir(cache.path().join("pieces-1")).unwrap();
    let pieces = folders.flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap());
    let large = pieces.map(|piece| piece.unwrap().path());
    let large: Vec<_> =
        large.filter(|path| path.extension().is_some_and(|class| class == "large")).collect();
    for (path, at) in large.iter().zip([0, 1 << 19, (1 << 20) + 3, (1 << 20) + 60]) {
        let mut bytes = std::fs::read(path).unwrap();
        let at = at.min(bytes.len() - 1);
        bytes[at] ^= 1;
        std::fs::write(path, bytes).unwrap();
    }
    assert!(session() <= whole - (4 << 20));
    assert_eq!(session(), whole);
}

#[test]
fn an_object_that_was_replaced_since_it_was_listed_is_an_error_in_every_way_to_read_it() {
    let (store, options) = (store(), RemoteOptions::default());
    let files = files(&store, &options);
    let path = Path::new("s3://bucket/prod/base/5/16384");
    let file: Arc<dyn File> = files.open(path, Caching::Buffered).unwrap().into();
    put(&store, "prod/base/5/16384", contents(LONG, 3));
    let error = file.read_at(&mut [0; 8192], 0).unwrap_err();
    assert_eq!(RemoteError::of(&error), Some(&RemoteError::Replaced));
    let mut queue = files.open_queue(QueueKind::Own, 8).unwrap();
    queue.submit(read(0, &file, 0, 2 << 20));
    let came = queue.wait().unwrap().unwrap();
    let error = came.outcome.unwrap_err();
    assert_eq!(RemoteError::of(&error), Some(&RemoteError::Replaced));
    assert!(queue.wait().unwrap().is_none());
}

#[test]
fn a_read_of_a_file_of_this_machine_goes_through_the_same_queue() {
    let mut here = MemoryFiles::new();
    here.insert(Path::new("/a"), *b"0123456789");
    let options = RemoteOptions::default();
    let files = RemoteFiles::new(Arc::new(here), Path::new("s3://bucket/prod"), &options);
    let file: Arc<dyn File> = files.open(Path::new("/a"), Caching::Buffered).unwrap().into();
    assert_eq!(queued(&files, &file, &[(2, 4), (8, 9)]), [b"2345".to_vec(), b"89".to_vec()]);
}

/// Files of a bucket whose root is `directory`, and how its requests are counted.
fn over(bucket: &TestBucket, policy: RetryPolicy) -> (RemoteFiles, Arc<RequestCounts>) {
    let counts = Arc::<RequestCounts>::default();
    let client = AmazonS3Builder::new()
        .with_bucket_name(BUCKET)
        .with_endpoint(bucket.endpoint())
        .with_access_key_id(KEY.0)
        .with_secret_access_key(KEY.1)
        .with_allow_http(true)
        .with_retry(connect::never())
        .with_http_connector(Connector { counts: counts.clone(), policy })
        .build()
        .unwrap();
    let options = RemoteOptions { retry: policy, ..RemoteOptions::default() };
    let root = Path::new("s3://snapshots/prod");
    let files = RemoteFiles::new(Arc::new(MemoryFiles::new()), root, &options);
    files.add_store("s3://snapshots", Arc::new(client));
    (files, counts)
}

fn directory_with(name: &str, bytes: &[u8]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("prod")).unwrap();
    std::fs::write(directory.path().join("prod").join(name), bytes).unwrap();
    directory
}

/// A server that says nothing for longer than anybody waits is asked again, and the request counted.
#[test]
fn a_server_that_falls_silent_is_asked_again() {
    let directory = directory_with("PG_VERSION", b"15\n");
    let bucket = TestBucket::start(directory.path()).unwrap();
    let (first_wait, silence) = (Duration::from_millis(10), Duration::from_millis(300));
    let policy = RetryPolicy { first_wait, silence, ..RetryPolicy::default() };
    let (files, counts) = over(&bucket, policy);
    bucket.break_requests(Requests::All, "", Fault::Silence(2_000), Some(1));
    let found = files.read_whole(Path::new("s3://snapshots/prod/PG_VERSION"), 100).unwrap();
    assert_eq!(found.as_deref(), Some(&b"15\n"[..]));
    assert_eq!(bucket.mend(), 0);
    assert_eq!(counts.snapshot().retries, 1);
}

/// Several who read the same pieces at the same time wait for one request, and ask only for what it does not bring; one that
/// fails is asked for again by who still wants it.
#[test]
fn what_is_on_its_way_is_not_asked_for_again() {
    let bytes = contents(700_000, 3);
    let directory = directory_with("1249", &bytes);
    let bucket = TestBucket::start(directory.path()).unwrap();
    let (files, _) = over(&bucket, RetryPolicy::default());
    let open = || files.open(Path::new("s3://snapshots/prod/1249"), Caching::Buffered).unwrap();
    drop(open());
    bucket.set_latency(Duration::from_millis(100));
    let read = &|at: usize| {
        let mut buffer = vec![0; 500_000];
        open().read_at(&mut buffer, at as u64).unwrap();
        assert!(buffer == bytes[at..at + 500_000]);
    };
    let read_all = || {
        std::thread::scope(|scope| {
            [0, 0, 200_000, 100].map(|at| scope.spawn(move || read(at))).map(|reader| reader.join())
        })
    };
    bucket.take_log();
    assert!(read_all().iter().all(Result::is_ok));
    let sent: u64 = bucket.take_log().iter().map(|logged| logged.sent).sum();
    assert_eq!(sent, 700_000);

    let (files, _) = over(&bucket, RetryPolicy::default());
    let open = || files.open(Path::new("s3://snapshots/prod/1249"), Caching::Buffered).unwrap();
    drop(open());
    bucket.break_requests(Requests::All, "1249", Fault::Refusal(403, "AccessDenied"), Some(1));
    let outcomes = std::thread::scope(|scope| {
        let read = || open().read_at(&mut vec![0; 500_000], 0).is_ok();
        [(); 3].map(|()| scope.spawn(read)).map(|reader| reader.join().unwrap())
    });
    assert_eq!(outcomes.iter().filter(|came| !**came).count(), 1);
}
