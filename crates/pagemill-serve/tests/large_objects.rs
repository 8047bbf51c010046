//! Large objects as libpq reads them, by calls of functions: the same messages get the same answers as from the server.
//!
//! Of errors the SQLSTATE and the words are compared, as the server adds places in its source.

mod support;

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};
use support::Served;

const OBJECT: u32 = 12347;

const OPEN: u32 = 952;
const CLOSE: u32 = 953;
const READ: u32 = 954;
const SEEK: u32 = 956;
const TELL: u32 = 958;
const CREATE: u32 = 715;
const SEEK_LONG: u32 = 3170;
const TELL_LONG: u32 = 3171;

const TO_READ: i32 = 0x40000;
const FROM_BEGINNING: i32 = 0;
const FROM_HERE: i32 = 1;
const FROM_END: i32 = 2;

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(body.len() as i32 + 4).to_be_bytes(), body].concat()
}

fn query(text: &str) -> Vec<u8> {
    message(b'Q', &[text.as_bytes(), b"\0"].concat())
}

/// A call with arguments in binary form, for a result in binary form.
fn call(function: u32, arguments: &[&[u8]]) -> Vec<u8> {
    let mut body = function.to_be_bytes().to_vec();
    body.extend([0, 1, 0, 1]);
    body.extend((arguments.len() as i16).to_be_bytes());
    for argument in arguments {
        body.extend((argument.len() as i32).to_be_bytes());
        body.extend(*argument);
    }
    body.extend([0, 1]);
    message(b'F', &body)
}

fn ints(function: u32, arguments: &[i32]) -> Vec<u8> {
    let arguments: Vec<[u8; 4]> = arguments.iter().map(|number| number.to_be_bytes()).collect();
    call(function, &arguments.iter().map(|bytes| &bytes[..]).collect::<Vec<_>>())
}

/// What is sent, each message after the answer to the one before it.
fn conversation() -> Vec<Vec<u8>> {
    let object = OBJECT as i32;
    vec![
        query("begin"),
        ints(OPEN, &[object, TO_READ]),
        ints(READ, &[0, 20]),
        ints(TELL, &[0]),
        ints(SEEK, &[0, -5, FROM_END]),
        ints(READ, &[0, 100]),
        ints(READ, &[0, 100]),
        ints(SEEK, &[0, -2050, FROM_HERE]),
        ints(READ, &[0, 2047]),
        call(SEEK_LONG, &[&[0; 4], &100_000_i64.to_be_bytes(), &FROM_BEGINNING.to_be_bytes()]),
        ints(READ, &[0, 20]),
        ints(TELL_LONG, &[0]),
        ints(SEEK, &[0, 10_000_000, FROM_BEGINNING]),
        ints(READ, &[0, 20]),
        // A hole, and the bytes behind it.
        ints(OPEN, &[12345, TO_READ]),
        ints(SEEK, &[1, 999_990, FROM_BEGINNING]),
        ints(READ, &[1, 30]),
        ints(CLOSE, &[0]),
        ints(OPEN, &[object, TO_READ]),
        ints(SEEK, &[0, -1, FROM_BEGINNING]),
        ints(READ, &[0, 20]),
        query("rollback"),
        ints(READ, &[0, 20]),
        query("begin"),
        ints(OPEN, &[999, TO_READ]),
        query("rollback"),
        query("begin"),
        ints(OPEN, &[object, TO_READ]),
        query("commit"),
        ints(CLOSE, &[0]),
        // Outside of a transaction it is closed at once.
        ints(OPEN, &[object, TO_READ]),
        ints(READ, &[0, 20]),
        // Arguments too short and too long.
        query("begin"),
        call(READ, &[&[0; 4], &[0; 2]]),
        query("rollback"),
        query("begin"),
        ints(OPEN, &[object, TO_READ]),
        call(READ, &[&[0; 4], &[0; 5]]),
        query("rollback"),
    ]
}

/// The messages up to the server's being ready; of errors SQLSTATE and words.
fn answer(stream: &mut UnixStream) -> Result<Vec<String>> {
    let mut answer = Vec::new();
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head).with_context(|| format!("{answer:?}"))?;
        let length = i32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut body = vec![0; usize::try_from(length)? - 4];
        stream.read_exact(&mut body)?;
        let shown = match head[0] {
            b'E' => {
                let fields = body.split(|byte| *byte == 0);
                let told = fields.filter(|field| matches!(field.first(), Some(b'C' | b'M')));
                told.map(|field| String::from_utf8_lossy(field).into_owned())
                    .collect::<Vec<_>>()
                    .join(" ")
            }
            // What is told as a client is let in differs.
            b'S' | b'K' | b'R' => continue,
            _ => body.escape_ascii().to_string(),
        };
        answer.push(format!("{} {shown}", char::from(head[0])));
        if head[0] == b'Z' {
            return Ok(answer);
        }
    }
}

/// A client that was let in.
fn enter(socket: &Path) -> Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let body = [&(3_i32 << 16).to_be_bytes()[..], b"user\0postgres\0database\0postgres\0\0"];
    let body = body.concat();
    stream.write_all(&(body.len() as i32 + 4).to_be_bytes())?;
    stream.write_all(&body)?;
    answer(&mut stream)?;
    Ok(stream)
}

fn answers(socket: &Path) -> Result<Vec<Vec<String>>> {
    let mut stream = enter(socket)?;
    let mut answers = Vec::new();
    for message in conversation() {
        stream.write_all(&message)?;
        answers.push(answer(&mut stream)?);
    }
    Ok(answers)
}

fn served(cluster: &TestCluster) -> Result<(Vec<Vec<String>>, Vec<String>)> {
    let served = Served::start(cluster, &[])?;
    Ok((answers(&served.socket())?, refused(&served.socket())?))
}

/// What the server would do, and nobody does here.
fn refused(socket: &Path) -> Result<Vec<String>> {
    let mut stream = enter(socket)?;
    stream.write_all(&ints(CREATE, &[77]))?;
    answer(&mut stream)
}

#[test]
fn large_objects_are_read_as_from_the_server() -> Result<()> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let mut cluster = TestCluster::create(&install, &ClusterOptions::default())?;
    cluster.psql(
        "postgres",
        "select lo_from_bytea(12347, convert_to(repeat('many pages of it ', 70000), 'UTF8')); \
         select lo_create(12345); select lo_put(12345, 1000000, 'far from its beginning')",
    )?;
    let psql = cluster.psql_command("postgres");
    let of = |wanted: &str| {
        let found = psql.get_envs().find(|(name, _)| *name == wanted).and_then(|(_, value)| value);
        found.map(|value| value.to_string_lossy().into_owned()).with_context(|| wanted.to_owned())
    };
    let socket = Path::new(&of("PGHOST")?).join(format!(".s.PGSQL.{}", of("PGPORT")?));
    let expected = answers(&socket)?;
    cluster.stop()?;
    let (found, refused) = served(&cluster)?;
    for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
        ensure!(found == expected, "message {number}\n{found:?}\n{expected:?}");
    }
    ensure!(expected[2][0].ends_with("many pages of it man"), "{:?}", expected[2]);
    ensure!(refused[0].starts_with("E C25006"), "{refused:?}");
    Ok(())
}
