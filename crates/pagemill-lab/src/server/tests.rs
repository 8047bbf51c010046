//! A server made, asked, stopped and dropped, with whatever PostgreSQL is installed.
//!
//! Where there is none, the test of it says so. Nothing here looks at a time but for its lower bound.

use std::time::Duration;

use super::*;

fn installed() -> Option<Installation> {
    let found = look_for(None).unwrap();
    found.map_err(|why| eprintln!("SKIPPED: {why}")).ok()
}

#[test]
fn a_server_answers_survives_a_wrong_statement_and_is_gone_in_the_end() {
    let Some(installation) = installed() else { return };
    let above = tempfile::tempdir().unwrap();
    let directory = above.path().join("experiment");
    fs::create_dir(&directory).unwrap();
    let cancel = Cancel::default();
    let server = Server::make(&installation, &directory).unwrap();
    assert!(server.run("SELECT 1", &cancel).is_err(), "it is not running");
    let settings = ["shared_buffers=1MB".to_owned()];
    server.start(&settings, &cancel).unwrap();
    let pid = server.running.borrow().as_ref().unwrap().postmaster.id();
    server.start(&settings, &cancel).unwrap();
    assert_eq!(server.running.borrow().as_ref().unwrap().postmaster.id(), pid, "it ran already");
    assert_eq!(server.run("SHOW shared_buffers", &cancel).unwrap(), "1MB");
    let error = server.run("SELECT tea", &cancel).unwrap_err();
    assert!(error.to_string().contains("column \"tea\" does not exist"), "{error}");
    let (text, work) = server.timed("SELECT pg_sleep(0.05)", &cancel).unwrap();
    assert_eq!(text, "");
    assert!(work.elapsed.unwrap() >= Duration::from_millis(50));
    assert!(work.wait.is_none_or(|waited| waited >= Duration::from_millis(25)), "{work:?}");
    server.run("CREATE DATABASE other", &cancel).unwrap();
    server.run_in("other", &["CREATE TABLE t ()", "DROP TABLE t"], &cancel).unwrap();
    server.stop().unwrap();
    server.stop().unwrap();
    assert!(!server.data().join("postmaster.pid").exists());
    server.start(&[], &cancel).unwrap();
    let pid = server.running.borrow().as_ref().unwrap().postmaster.id();
    drop(server);
    assert!(!Path::new("/proc").join(pid.to_string()).exists());
}
