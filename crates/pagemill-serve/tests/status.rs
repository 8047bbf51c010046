//! The server's state over HTTP: the numbers are those of what the test did, texts of clients are no markup, and whoever asks for what
//! else does no harm.
//!
//! Requests are bytes, as those that no library would send are among them.

#[path = "several/client.rs"]
mod client;
mod support;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use client::{Client, asked, cluster};
use pagemill_testkit::TestCluster;
use support::Served;

/// How long something may take, on a machine that does other things.
const PATIENCE: Duration = Duration::from_secs(60);
/// As many as the server gives a place.
const PLACES: usize = 16;

/// A server that tells its state, and where.
fn served(directories: &[&str], flags: &[&str]) -> Result<(Served, SocketAddr)> {
    let served = Served::by(|command| command.arg("serve").args(directories).args(flags))?;
    let start = Instant::now();
    loop {
        let log = served.log()?;
        let place = log.split_once("state is told at http://").map(|(_, rest)| rest);
        if let Some((place, _)) = place.and_then(|rest| rest.split_once('/')) {
            let place: SocketAddr = place.parse()?;
            return Ok((served, SocketAddr::from(([127, 0, 0, 1], place.port()))));
        }
        ensure!(start.elapsed() < PATIENCE, "{log}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// All that is answered to these bytes; nothing where nobody is there for them.
fn sent(place: SocketAddr, bytes: &[u8]) -> Result<String> {
    let mut stream = TcpStream::connect(place)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // Who is refused may be gone before all of it is sent.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// The status and the body.
fn got(place: SocketAddr, path: &str, host: &str) -> Result<(String, String)> {
    let answer = sent(place, format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())?;
    let (head, body) = answer.split_once("\r\n\r\n").with_context(|| answer.clone())?;
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    ensure!(length.and_then(|length| length.parse().ok()) == Some(body.len()), "{head}");
    Ok((head.get(9..12).unwrap_or_default().to_owned(), body.to_owned()))
}

/// All numbers by their names and labels; each name has a kind and a help.
fn metrics(place: SocketAddr) -> Result<HashMap<String, f64>> {
    let (status, text) = got(place, "/metrics", "localhost")?;
    assert_eq!(status, "200");
    let (comments, values): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.starts_with('#'));
    let numbers = values.iter().map(|line| {
        let (name, value) = line.rsplit_once(' ').context("a value")?;
        let family = name.split('{').next().unwrap_or_default();
        for word in ["HELP", "TYPE"] {
            let start = format!("# {word} {family} ");
            ensure!(
                comments.iter().filter(|line| line.starts_with(&start)).count() == 1,
                "{start}"
            );
        }
        Ok((name.to_owned(), value.parse()?))
    });
    numbers.collect()
}

/// A client that asks and does not read on: its statement runs.
fn stuck(served: &Served, cluster: &TestCluster, statement: &str) -> Result<Child> {
    let mut psql = Command::new(cluster.install().psql());
    psql.args(["-X", "-U", "postgres", "-d", "a<b\".shop", "-c", statement, "-h"]);
    let mut child = psql.arg(served.directory.path()).stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.as_mut().context("its output")?;
    ensure!(output.read(&mut [0; 1])? == 1, "rows");
    Ok(child)
}

#[test]
fn numbers_are_those_of_what_was_done() -> Result<()> {
    let a = cluster(&[(
        "shop",
        "create table t as select i, repeat('x', 200) v from generate_series(1, 50000) i",
    )])?;
    let b = cluster(&[("shop", "create table t as select 3 i")])?;
    let directories =
        [format!("-Da<b\"={}", a.data_dir().display()), format!("-Db={}", b.data_dir().display())];
    let directories = [directories[0].as_str(), &directories[1]];
    let (served, place) = served(&directories, &["--status", "127.0.0.1:0", "-N", "7"])?;
    assert_eq!(metrics(place)?["pagemill_statements_started_total"], 0.0);

    let connect =
        |database| Client::connect(served.directory.path(), database).expect("it connects");
    assert_eq!(asked(&served, "b.shop", "select i from t"), Ok(vec!["3".into()]));
    let idle = connect("a<b\".shop");
    assert_eq!(idle.ask("select i from t where i <= 10").map(|rows| rows.len()), Ok(10));
    for (wrong, state) in
        [("select * from nope", "42P01"), ("selec", "42601"), ("select 1/0", "22012")]
    {
        assert_eq!(idle.ask(wrong).unwrap_err().0, state, "{wrong}");
    }
    let failed = connect("b.shop");
    assert_eq!(failed.ask("begin; select nope").unwrap_err().0, "42703");
    let open = connect("a<b\".shop");
    open.ask("begin; declare c cursor for select i from t; fetch 5 from c; close c").expect("five");
    assert_eq!(Client::connect(served.directory.path(), "nope").err().expect("none").0, "3D000");
    let name = "<script>alert(1)</script>&\u{202e}";
    let mut running =
        stuck(&served, &a, &format!("copy (select v as \"{name}\" from t) to stdout"))?;

    let found = metrics(place)?;
    let number = |name: &str| found.get(&format!("pagemill_{name}")).copied();
    for (name, value) in [
        ("sessions{state=\"active\"}", 1.0),
        ("sessions{state=\"idle\"}", 1.0),
        ("sessions{state=\"idle in transaction\"}", 1.0),
        ("sessions{state=\"idle in transaction (aborted)\"}", 1.0),
        ("sessions_limit", 7.0),
        ("connections_total", 5.0),
        ("connections_refused_total", 1.0),
        ("statements_started_total", 7.0),
        ("statements_ended_total{outcome=\"done\"}", 2.0),
        ("statements_ended_total{outcome=\"left\"}", 1.0),
        ("statements_ended_total{outcome=\"failed\"}", 3.0),
        ("errors_total{class=\"42\"}", 3.0),
        ("errors_total{class=\"22\"}", 1.0),
        ("errors_total{class=\"3D\"}", 1.0),
        ("damage_total", 0.0),
        ("reloads_total{outcome=\"done\"}", 0.0),
        ("directory_unchanged{directory=\"a<b\\\"\"}", 1.0),
        ("directory_info{directory=\"b\",version=\"15\"}", 1.0),
    ] {
        assert_eq!(number(name), Some(value), "{name}: {found:#?}");
    }
    let rows = number("rows_total").context("rows")?;
    let sent = number("sent_bytes_total").context("bytes")?;
    // Of the one that runs some are on their way; a portal's come in larger parts than are fetched.
    ensure!((16.0..50_000.0 + 16.0).contains(&rows) && sent > 200.0 * 10.0, "{rows} {sent}");
    let read = number("read_bytes_total{directory=\"a<b\\\"\"}").context("read")?;
    ensure!(
        read > 0.0 && number("pages_scanned_total").is_some_and(|pages| pages >= 3.0),
        "{read}"
    );
    let start = number("start_time_seconds").context("start")?;
    ensure!(start > 1.7e9 && number("opened_time_seconds").is_some_and(|at| at <= start + 1.0));

    let (status, page) = got(place, "/", "127.0.0.1:1")?;
    assert_eq!(status, "200");
    let escaped = "&lt;script&gt;alert(1)&lt;/script&gt;&amp;";
    ensure!(page.contains(escaped) && !page.contains("<script"), "{page}");
    ensure!(page.contains("<bdi>a&lt;b&quot;.shop</bdi>") && page.contains("4 of 7"), "{page}");
    // By a name that leads here from elsewhere, nothing is told.
    let (status, page) = got(place, "/", "evil.example.com")?;
    ensure!(status == "421" && !page.contains("alert") && !page.contains("shop"), "{page}");
    running.kill()?;
    running.wait()?;
    Ok(())
}

#[test]
fn what_changes_underneath_and_who_is_not_of_this_machine_are_seen() -> Result<()> {
    let mut a = cluster(&[(
        "shop",
        "create table t as select i, repeat('x', 200) v from generate_series(1, 50000) i",
    )])?;
    let directory = format!("-Da<b\"={}", a.data_dir().display());
    let other = format!("-Db={}", a.data_dir().display());
    let flags = ["--status", "0.0.0.0:0", "--allow-remote-status"];
    let (served, place) = served(&[&directory, &other], &flags)?;
    let mut running = stuck(&served, &a, "copy (select v as secret from t) to stdout")?;
    let path = a.data_dir().display().to_string();
    let (_, own) = got(place, "/", "localhost")?;
    ensure!(
        own.contains("secret")
            && own.contains("<bdi>postgres</bdi></div></td><td data-of='From'><div>socket"),
        "{own}"
    );
    ensure!(own.contains(&path), "{own}");
    let (status, others) = got(place, "/", "db.example.com")?;
    ensure!(
        status == "200" && others.contains("1 active") && others.contains("b&quot;.shop"),
        "{others}"
    );
    ensure!(
        !others.contains("secret") && !others.contains("socket") && !others.contains(&path),
        "{others}"
    );
    running.kill()?;
    running.wait()?;

    assert_eq!(got(place, "/ready", "localhost")?, ("200".to_owned(), "ready\n".to_owned()));
    a.start()?;
    let (status, why) = got(place, "/ready", "localhost")?;
    ensure!(status == "503" && why.contains("a server was started on it"), "{why}");
    let (_, page) = got(place, "/", "localhost")?;
    ensure!(page.contains("changed: <bdi>a server was started on it"), "{page}");
    assert_eq!(metrics(place)?["pagemill_directory_unchanged{directory=\"b\"}"], 0.0);
    assert_eq!(got(place, "/healthz", "localhost")?.0, "200");
    let pid = served.child.id().to_string();
    ensure!(Command::new("kill").args(["-HUP", &pid]).status()?.success(), "kill");
    let start = Instant::now();
    while metrics(place)?["pagemill_reloads_total{outcome=\"failed\"}"] == 0.0 {
        ensure!(start.elapsed() < PATIENCE, "{}", served.log()?);
    }
    ensure!(got(place, "/", "localhost")?.1.contains("Not opened anew"), "why");
    a.stop()?;
    Ok(())
}

#[test]
fn whoever_asks_does_no_harm() -> Result<()> {
    let a = cluster(&[("shop", "create table t as select 1 i")])?;
    let directory = format!("-D{}", a.data_dir().display());
    let (served, place) = served(&[&directory], &["--status", "localhost:0"])?;
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(9000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(1000));
    let body = format!("POST / HTTP/1.1\r\nContent-Length: 90000\r\n\r\n{}", "x".repeat(90_000));
    let requests: [(&[u8], &str); 9] = [
        (b"HEAD / HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK"),
        (b"GET / HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK"),
        (b"GET /../../etc/passwd HTTP/1.1\r\n\r\n", "HTTP/1.1 404"),
        (body.as_bytes(), "HTTP/1.1 405"),
        (long.as_bytes(), "HTTP/1.1 431"),
        (many.as_bytes(), "HTTP/1.1 431"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "HTTP/1.1 400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "HTTP/1.1 400"),
        (b"GET / HTTP/1.1\r\n\0\xff: x\r\n\r\n", "HTTP/1.1 400"),
    ];
    for (request, status) in requests {
        let answer = sent(place, request)?;
        let shown = String::from_utf8_lossy(&request[..request.len().min(60)]).into_owned();
        ensure!(answer.starts_with(status), "{shown}: {answer}");
        ensure!(answer.contains("default-src 'none'") && answer.contains("nosniff"), "{answer}");
    }
    let head = sent(place, b"HEAD / HTTP/1.1\r\n\r\n")?;
    ensure!(head.ends_with("\r\n\r\n"), "no body: {head}");

    // All places are taken by who says nothing: clients are answered, and places come free again.
    let silent: Vec<TcpStream> =
        (0..PLACES).map(|_| TcpStream::connect(place)).collect::<std::io::Result<_>>()?;
    for mut stream in &silent {
        stream.write_all(b"GET / HT")?;
    }
    assert_eq!(asked(&served, "shop", "select i from t"), Ok(vec!["1".into()]));
    let start = Instant::now();
    while got(place, "/healthz", "localhost").is_err() {
        ensure!(start.elapsed() < PATIENCE, "no place came free");
        std::thread::sleep(Duration::from_millis(50));
    }
    for stream in silent {
        let mut rest = String::new();
        // One that came while another's place was not free yet is reset.
        let _ = BufReader::new(stream).read_line(&mut rest);
        assert_eq!(rest, "", "who said nothing whole is told nothing");
    }
    Ok(())
}

#[test]
fn other_machines_are_let_in_on_demand_only() -> Result<()> {
    let a = cluster(&[("shop", "create table t as select 1 i")])?;
    for place in ["0.0.0.0:0", "[::]:0"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill-serve"));
        command.args(["serve", "--status", place, "-D"]).arg(a.data_dir());
        let output = command.output()?;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(
            output.status.code() == Some(2) && told.contains("--allow-remote-status"),
            "{told}"
        );
    }
    Ok(())
}
