//! Clients that send garbage, half a message or nothing, vanish, or never read: the server goes on for others.
//!
//! Each is told what PostgreSQL tells it, or nothing; afterwards another client gets its answer, and the server has no more memory
//! than a few answers take.

mod support;

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};
use support::Served;

impl Served {
    fn connect(&self) -> Result<UnixStream> {
        let stream = UnixStream::connect(self.socket())?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok(stream)
    }

    /// A client that was let in.
    fn enter(&self) -> Result<UnixStream> {
        let mut stream = self.connect()?;
        let body = [&(3_i32 << 16).to_be_bytes()[..], b"user\0postgres\0database\0postgres\0\0"];
        let body = body.concat();
        stream.write_all(&(body.len() as i32 + 4).to_be_bytes())?;
        stream.write_all(&body)?;
        until(&mut stream, b'Z')?;
        Ok(stream)
    }

    /// What a text gives, up to the end of its answer.
    fn asks(&self, text: &str) -> Result<Vec<u8>> {
        let mut stream = self.enter()?;
        query(&mut stream, text)?;
        until(&mut stream, b'Z')
    }

    fn resident_bytes(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("VmRSS")?;
        let kilobytes = line.split_whitespace().nth(1).context("a number")?;
        Ok(kilobytes.parse::<u64>()? * 1024)
    }
}

fn query(stream: &mut UnixStream, text: &str) -> Result<()> {
    stream.write_all(b"Q")?;
    stream.write_all(&(text.len() as i32 + 5).to_be_bytes())?;
    stream.write_all(text.as_bytes())?;
    Ok(stream.write_all(b"\0")?)
}

/// All bytes up to a message of this type.
fn until(stream: &mut UnixStream, kind: u8) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head).with_context(|| String::from_utf8_lossy(&all).into_owned())?;
        let length = i32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut body = vec![0; usize::try_from(length)? - 4];
        stream.read_exact(&mut body)?;
        all.extend(head);
        all.extend(body);
        if head[0] == kind {
            return Ok(all);
        }
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// What is told to a client that sends these bytes after it was let in.
fn told_after(served: &Served, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut stream = served.enter()?;
    stream.write_all(bytes)?;
    let mut told = Vec::new();
    stream.read_to_end(&mut told)?;
    Ok(told)
}

#[test]
fn clients_do_no_harm_to_others() -> Result<()> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let mut cluster = TestCluster::create(&install, &ClusterOptions::default())?;
    cluster.psql(
        "postgres",
        "create table t as select i, repeat('x', 1000) v from generate_series(1, 100000) i",
    )?;
    cluster.stop()?;
    let served = Served::start(&cluster, &["-N", "5"])?;
    ensure!(contains(&served.asks("select count(*) from t")?, "100000"));

    // Before they are let in.
    for first in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"\0\0\0\x04",
        b"\xff\xff\xff\xff",
        b"\0\0\0\x08\0\x02\0\0",
        b"\0\0\0",
    ] {
        let mut stream = served.connect()?;
        stream.write_all(first)?;
        drop(stream);
    }
    // After: each is told that it does not keep to the protocol, and its connection ends.
    for wrong in [
        &b"?\0\0\0\x04"[..],
        b"Q\0\0\0\x03",
        b"Q\x7f\xff\xff\xff",
        b"Q\0\0\0\x05x",
        b"B\0\0\0\x04",
        b"p\0\0\0\x05\0",
    ] {
        ensure!(contains(&told_after(&served, wrong)?, "08P01"), "{wrong:?}");
    }
    // What is deep, but not too deep, is planned; the rest would be deeper than any stack.
    for (terms, told) in [(450, "100000"), (3000, "54001"), (200_000, "54001")] {
        let chain = vec!["(i = 1 or i > 0)"; terms].join(" and ");
        let answer = served.asks(&format!("select count(*) from t where {chain}"))?;
        ensure!(contains(&answer, told), "{terms}: {}", String::from_utf8_lossy(&answer));
    }
    let grouped = "select (i, 'T') < (v, 'A'), min(1), grouping((i, 'T') < (v, 'A')) from (select 1::int2 i, 1::int8 v, true b) t
        where greatest(i in (select 1 where false), 'e' not in ('ABC', 'T', '12'), b)
        group by grouping sets(((i, 'T') < (v, 'A'), b), ((i, 'T') < (v, 'A')), ()) having bool_or(starts_with('x,y,,z', 'abc'))";
    ensure!(!contains(&served.asks(grouped)?, "XX000"));
    // Who vanishes: with half a message, in the middle of an answer, and while a statement computes.
    served.enter()?.write_all(b"Q\0\0\0\x64select")?;
    for text in ["select * from t", "select count(*) from t a, t b where a.i * 1.5 < -b.i"] {
        let mut stream = served.enter()?;
        query(&mut stream, text)?;
        std::thread::sleep(Duration::from_millis(100));
        drop(stream);
    }
    // Who never reads holds up nobody, and its answer is not kept for it.
    let mut lazy = served.enter()?;
    query(&mut lazy, "select * from t")?;
    std::thread::sleep(Duration::from_millis(500));
    let before = served.resident_bytes()?;
    std::thread::sleep(Duration::from_millis(500));
    ensure!(served.resident_bytes()? < before + (16 << 20), "an answer of 100 MB gathers");
    ensure!(contains(&served.asks("select max(i) from t")?, "100000"));
    drop(lazy);
    // All places are free again.
    let start = Instant::now();
    loop {
        let clients: Result<Vec<UnixStream>> = (0..5).map(|_| served.enter()).collect();
        match clients {
            Ok(mut clients) => {
                query(&mut clients[4], "select 41 + 1")?;
                ensure!(contains(&until(&mut clients[4], b'Z')?, "42"));
                return Ok(());
            }
            Err(error) => ensure!(start.elapsed() < Duration::from_secs(20), "{error:#}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
