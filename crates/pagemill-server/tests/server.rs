//! A server made, asked, stopped, killed and found, with whatever PostgreSQL is installed.
//!
//! Where there is none, the tests say so.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pagemill_server::{
    Account, Error, InitdbOptions, Installation, Postmaster, Server, Shutdown, never,
};

fn installed() -> Option<Installation> {
    let found = Installation::newest(14..=18);
    found.map_err(|why| eprintln!("SKIPPED: {why}")).ok()
}

/// A cluster in a directory that every account may enter.
fn made(installation: Installation, directory: &Path) -> Server {
    let account = Account::for_server(&["postgres", "nobody"]).unwrap();
    let directory = directory.join("cluster");
    account.create_dir(&directory).unwrap();
    let server = Server::new(installation, account, &directory).unwrap();
    let options =
        InitdbOptions { settings: "max_connections = 7\nfsync = off", ..Default::default() };
    match server.initdb(&options) {
        Err(Error::OutOfReach { .. }) => {
            let above = directory.parent().unwrap();
            let open = std::os::unix::fs::PermissionsExt::from_mode(0o711);
            fs::set_permissions(above, open).unwrap();
            server.initdb(&options).unwrap();
        }
        made => made.unwrap(),
    }
    server
}

fn is_alive(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

#[test]
fn a_server_answers_with_its_settings_and_is_gone_when_its_value_is() {
    let Some(installation) = installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let server = made(installation, dir.path()).ending_with_parent();
    let postmaster = server.start(&["work_mem=123kB".to_owned()], &never).unwrap();
    let shown = server.psql("postgres", &["SHOW work_mem", "SHOW max_connections"]).unwrap();
    assert_eq!(shown, "123kB\n7");
    let error = server.psql("postgres", &["SELECT tea"]).unwrap_err().to_string();
    assert!(error.starts_with("psql failed: ERROR:  column \"tea\" does not exist"), "{error}");
    let mut session = server.session("postgres").unwrap();
    let answer = session.ask("SELECT 1; SELECT pg_sleep(0.05), 2;", &never).unwrap();
    assert_eq!(answer.text, "1\n|2");
    assert!(answer.time.unwrap() >= Duration::from_millis(50));
    let error = session.ask("SELECT tea;", &never).unwrap_err().to_string();
    assert!(error.contains("column \"tea\" does not exist"), "{error}");
    let pid = postmaster.id();
    assert!(is_alive(pid));
    drop(postmaster);
    assert!(!is_alive(pid));
    assert!(matches!(server.running(), Err(Error::NotRunning { .. })));
}

#[test]
fn a_clean_stop_that_was_none_is_an_error_and_who_finds_a_server_can_stop_it() {
    let Some(installation) = installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let server = made(installation, dir.path());
    // The wrapper becomes the server, so it is the process that is watched.
    let postmaster = server.start_through(Command::new("env"), &[]).unwrap();
    let found = server.running().unwrap();
    assert_eq!(found.id(), postmaster.id());
    found.stop(Shutdown::Fast).unwrap();
    postmaster.stop(Shutdown::Fast).unwrap();
    let start = || server.start(&[], &never).unwrap();
    start().stop(Shutdown::Immediate).unwrap();
    let postmaster = start();
    server.running().unwrap().stop(Shutdown::Kill).unwrap();
    let outcome = postmaster.stop(Shutdown::Fast);
    assert!(matches!(outcome, Err(Error::Ended { .. })), "{outcome:?}");
    start().stop(Shutdown::Fast).unwrap();
}

#[test]
fn a_server_that_does_not_start_tells_why_and_a_wait_can_be_ended() {
    let Some(installation) = installed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let server = made(installation, dir.path());
    let said = |outcome: Result<Postmaster, Error>| outcome.unwrap_err().to_string();
    let error = said(server.start(&["no_such_setting=1".to_owned()], &never));
    assert!(error.contains("did not start") && error.contains("no_such_setting"), "{error}");
    assert_eq!(said(server.start(&[], &|| true)), "canceled");
    assert!(!server.data().join("postmaster.pid").exists());
    server.start(&[], &never).unwrap().stop(Shutdown::Fast).unwrap();
}
