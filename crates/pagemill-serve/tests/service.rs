//! A service manager is told what becomes of the server: the test listens in its place.
//!
//! Both kinds of sockets are tried. That systemd takes these words is its manual's.

#[path = "several/client.rs"]
mod client;
mod support;

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use client::{asked, cluster};
use rustix::time::{ClockId, clock_gettime};
use support::Served;

fn next(manager: &UnixDatagram) -> Result<Vec<String>> {
    let mut datagram = [0; 4096];
    let length = manager.recv(&mut datagram).context("nothing was told")?;
    let text = String::from_utf8(datagram[..length].to_vec())?;
    Ok(text.lines().map(str::to_owned).collect())
}

fn signal(served: &Served, name: &str) -> Result<()> {
    let pid = served.child.id().to_string();
    ensure!(Command::new("kill").args([name, &pid]).status()?.success(), "kill");
    Ok(())
}

fn now() -> Result<u64> {
    let now = clock_gettime(ClockId::Monotonic);
    Ok(u64::try_from(now.tv_sec)? * 1_000_000 + u64::try_from(now.tv_nsec)? / 1000)
}

#[test]
fn a_service_manager_is_told() -> Result<()> {
    let mut cluster = cluster(&[("postgres", "create table t as select 1 i")])?;
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("notify");
    let name = format!("pagemill-test-{}", std::process::id());
    let sockets = [
        (SocketAddr::from_pathname(&path)?, path.display().to_string()),
        (SocketAddr::from_abstract_name(&name)?, format!("@{name}")),
    ];
    for (address, place) in sockets {
        let manager = UnixDatagram::bind_addr(&address)?;
        manager.set_read_timeout(Some(Duration::from_secs(60)))?;
        let mut served = Served::by(|command| {
            command.args(["serve", "-D"]).arg(cluster.data_dir()).env("NOTIFY_SOCKET", &place)
        })?;
        let ready = next(&manager)?;
        assert_eq!(ready[0], "READY=1");
        ensure!(ready[1].starts_with("STATUS=clients are answered at /"), "{ready:?}");
        // It is, by then.
        assert_eq!(asked(&served, "postgres", "select i from t"), Ok(vec!["1".to_owned()]));

        let before = now()?;
        signal(&served, "-HUP")?;
        let reloading = next(&manager)?;
        assert_eq!(reloading[0], "RELOADING=1");
        let moment: u64 = reloading[1].strip_prefix("MONOTONIC_USEC=").context("when")?.parse()?;
        ensure!((before..=now()?).contains(&moment), "{before} {moment}");
        let ready = next(&manager)?;
        assert_eq!(ready, ["READY=1", "STATUS=the data directories were opened anew"]);

        cluster.start()?;
        signal(&served, "-HUP")?;
        assert_eq!(next(&manager)?[0], "RELOADING=1");
        let ready = next(&manager)?;
        assert_eq!(ready[0], "READY=1");
        ensure!(ready[1].contains("what was opened before is served on"), "{ready:?}");
        cluster.stop()?;

        signal(&served, "-TERM")?;
        assert_eq!(next(&manager)?, ["STOPPING=1"]);
        ensure!(served.child.wait()?.success(), "{}", served.log()?);
    }
    Ok(())
}

#[test]
fn a_socket_that_is_none_stops_nobody() -> Result<()> {
    let cluster = cluster(&[("postgres", "create table t as select 1 i")])?;
    for place in ["/nowhere/notify", "notify", "@pagemill-test-nobody"] {
        let served = Served::by(|command| {
            command.args(["serve", "-D"]).arg(cluster.data_dir()).env("NOTIFY_SOCKET", place)
        })?;
        assert_eq!(asked(&served, "postgres", "select i from t"), Ok(vec!["1".to_owned()]));
        ensure!(served.log()?.contains("NOTIFY_SOCKET"), "{}", served.log()?);
    }
    Ok(())
}
