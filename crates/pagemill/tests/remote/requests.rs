//! How many requests are made, and how many of them one after the other, by the server's own log; and what the cache on disk
//! saves.
//!
//! A request comes after another one when it begins after that one's answer was sent: the longest such row is what a
//! far-away store makes its reader wait for.

use std::time::Duration;

use anyhow::{Result, ensure};
use pagemill_testbucket::{Logged, in_a_row};

use super::stored::{Stored, cluster, install, printed};

/// Far enough that what is asked at once begins before the first of it has an answer.
const FAR: Duration = Duration::from_millis(50);

fn shown(log: &[Logged]) -> String {
    let line = |request: &Logged| {
        format!("{:?} {} {:?} {}\n", request.begun, request.path, request.range, request.sent)
    };
    log.iter().map(line).collect()
}

#[test]
fn opening_listing_and_scanning_take_few_requests() -> Result<()> {
    let Some(install) = install() else { return Ok(()) };
    let mut cluster = cluster(&install)?;
    cluster.psql(
        "shop",
        "insert into wide select i, repeat(md5(i::text), 30) from generate_series(1, 60000) i",
    )?;
    cluster.stop()?;
    let stored = Stored::new(cluster.root())?;
    let url = stored.url(&cluster.data_dir())?;
    stored.bucket.set_latency(FAR);
    printed(&mut stored.command(&["ls", "-d", "shop"], &url))?;
    let log = stored.bucket.take_log();
    ensure!(log.len() <= 40 && in_a_row(&log) <= 12, "{}: {}", in_a_row(&log), shown(&log));
    println!("ls: {} requests, {} in a row", log.len(), in_a_row(&log));

    printed(&mut stored.command(&["count", "-d", "shop", "-t", "wide"], &url))?;
    let log = stored.bucket.take_log();
    let bytes: u64 = log.iter().map(|request| request.sent).sum();
    println!("count: {} requests for {bytes} bytes, {} in a row", log.len(), in_a_row(&log));
    ensure!(bytes > 64 << 20, "the table is too small to tell: {bytes}");
    ensure!(log.len() as u64 <= bytes / (8 << 20) + 40, "{}", shown(&log));
    Ok(())
}

#[test]
fn what_was_read_once_is_read_from_the_cache_on_disk_also_where_it_is_torn() -> Result<()> {
    let Some(install) = install() else { return Ok(()) };
    let mut cluster = cluster(&install)?;
    cluster.stop()?;
    let stored = Stored::new(cluster.root())?;
    let url = stored.url(&cluster.data_dir())?;
    let words = ["export", "-d", "shop", "-t", "wide"];
    let expected = printed(&mut stored.caching(&words, &url))?;
    let bytes = |log: &[Logged]| -> u64 {
        log.iter().filter(|request| !request.is_list).map(|request| request.sent).sum()
    };
    let cold = bytes(&stored.bucket.take_log());
    ensure!(printed(&mut stored.caching(&words, &url))? == expected);
    let warm = stored.bucket.take_log();
    ensure!(bytes(&warm) == 0 && cold > 30 << 20, "{cold}, then {}", shown(&warm));
    let torn = tear(stored.cache())?;
    ensure!(torn > 10, "{torn} pieces");
    ensure!(printed(&mut stored.caching(&words, &url))? == expected);
    ensure!(bytes(&stored.bucket.take_log()) > 0);
    // A cache that cannot be written to is none, and that is told on one line.
    let mut command = stored.caching(&words, &url);
    let output = command.args(["--remote-cache", "/dev/null/x"]).output()?;
    let said = super::stored::told(&output);
    ensure!(output.status.success() && output.stdout == expected, "{said}");
    ensure!(said.lines().count() == 1 && said.contains("--remote-cache: "), "{said}");
    Ok(())
}

/// Changes a byte of every second piece, and cuts the others short.
fn tear(directory: &std::path::Path) -> Result<usize> {
    let mut torn = 0;
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                waiting.push(path);
                continue;
            }
            let mut bytes = std::fs::read(&path)?;
            let middle = bytes.len() / 2;
            match torn % 2 {
                0 => bytes[middle] ^= 0x10,
                _ => bytes.truncate(middle),
            }
            std::fs::write(&path, bytes)?;
            torn += 1;
        }
    }
    Ok(torn)
}

#[test]
fn the_cache_on_disk_stays_within_its_limit() -> Result<()> {
    let Some(install) = install() else { return Ok(()) };
    let mut cluster = cluster(&install)?;
    cluster.stop()?;
    let stored = Stored::new(cluster.root())?;
    let url = stored.url(&cluster.data_dir())?;
    let limit = 20 << 20;
    for table in ["wide", "orders", "wide"] {
        let mut command = stored.caching(&["export", "-d", "shop", "-t", table], &url);
        printed(command.args(["--remote-cache-size", "20MB"]))?;
        let kept = size_of(stored.cache())?;
        ensure!(kept > 4 << 20 && kept <= limit, "{kept} bytes");
    }
    Ok(())
}

fn size_of(directory: &std::path::Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        bytes += if path.is_dir() { size_of(&path)? } else { path.metadata()?.len() };
    }
    Ok(bytes)
}
