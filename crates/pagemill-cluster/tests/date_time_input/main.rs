//! Texts of dates, times and intervals, read here and by real servers: the same value, bit for bit
//! and as printed, or the same message.
//!
//! Every text is given to every type it could belong to, under several settings. Some texts are
//! picked by hand, the others are put together at random from pieces, the same ones every time.

mod texts;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use pagemill_cluster::TimeZones;
use pagemill_cluster::time_zones::SYSTEM_ZONES;
use pagemill_format::PgVersion;
use pagemill_io::HostFiles;
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{PgInstall, TestCluster};
use pagemill_types::ScalarWriter;
use pagemill_types::datetime as dates;
use pagemill_types::input::datetime as input;
use pagemill_types::input::datetime::{DateOrder, DateTimeContext, DateTimeReader, IntervalStyle};
use pagemill_types::interval as intervals;

/// A type, as this crate and as the server read and write it.
struct Type {
    name: &'static str,
    /// The arguments of its input function after the text.
    arguments: &'static str,
    read: DateTimeReader,
    write: ScalarWriter,
    /// The lengths of the parts of its payload.
    parts: &'static [usize],
    texts: Texts,
}

#[derive(PartialEq)]
enum Texts {
    Moments,
    Intervals,
}

fn types(version: PgVersion) -> Vec<Type> {
    let write_interval = if version < PgVersion::V17 {
        intervals::write_interval_before_17
    } else {
        intervals::write_interval
    };
    let moment = |name, arguments, read, write, parts| Type {
        name,
        arguments,
        read,
        write,
        parts,
        texts: Texts::Moments,
    };
    let modified = ", 0, typmod";
    vec![
        moment("date", "", input::read_date as DateTimeReader, dates::write_date, &[4]),
        moment("time", modified, input::read_time, dates::write_time, &[8]),
        moment("timetz", modified, input::read_timetz, dates::write_timetz, &[8, 4]),
        moment("timestamp", modified, input::read_timestamp, dates::write_timestamp, &[8]),
        moment("timestamptz", modified, input::read_timestamptz, dates::write_timestamptz, &[8]),
        Type {
            name: "interval",
            arguments: modified,
            read: input::read_interval,
            write: write_interval,
            parts: &[8, 4, 4],
            texts: Texts::Intervals,
        },
    ]
}

/// One text for one type.
struct Case<'a> {
    kind: &'a Type,
    typmod: i32,
    text: &'a str,
}

/// What a session has set.
struct Session {
    time_zone: &'static str,
    order: DateOrder,
    interval_style: IntervalStyle,
}

const SESSIONS: [Session; 4] = [
    Session { time_zone: "UTC", order: DateOrder::Mdy, interval_style: IntervalStyle::Postgres },
    Session {
        time_zone: "America/New_York",
        order: DateOrder::Dmy,
        interval_style: IntervalStyle::SqlStandard,
    },
    Session {
        time_zone: "Europe/Moscow",
        order: DateOrder::Ymd,
        interval_style: IntervalStyle::Postgres,
    },
    Session {
        time_zone: "<-03:30>3:30<-02:30>,M3.2.0,M11.1.0",
        order: DateOrder::Mdy,
        interval_style: IntervalStyle::SqlStandard,
    },
];

/// Gives the payload of a value as its send function does and as its output function does, or the
/// message, in hexadecimal digits so that a line of output is a line.
const FUNCTIONS: &str = "
CREATE FUNCTION said(kind text, arguments text, typmod int, input bytea) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    said text;
BEGIN
    EXECUTE format('SELECT encode(%1$s_send(v), ''hex'') || '' '' || v::text FROM (SELECT %1$s_in(%2$L::cstring%3$s)) AS s(v)',
        kind, convert_from(input, 'UTF8'), replace(arguments, 'typmod', typmod::text)) INTO said;
    RETURN encode(convert_to(said, 'UTF8'), 'hex');
EXCEPTION WHEN OTHERS THEN
    RETURN encode(convert_to('error ' || SQLERRM, 'UTF8'), 'hex');
END $$;
";

#[test]
fn servers_of_every_version_read_every_text_alike() {
    let (moments, spans) = (texts::moments(), texts::intervals());
    every_server(|server| {
        let types = types(server.version);
        // Version 14 converts this to an integer, which C does not define.
        let is_defined = |text: &&String| server.version > PgVersion::V14 || *text != "P-nanD";
        let spans: Vec<String> = spans.iter().filter(is_defined).cloned().collect();
        let cases = cases(&types, &moments, &spans);
        SESSIONS.iter().try_for_each(|session| server.agrees(session, &cases))
    });
}

#[test]
fn every_zone_of_a_server_has_the_offsets_it_has_there() {
    every_server(|server| {
        let query = "SELECT name FROM pg_timezone_names WHERE name !~ '^(posix|right)/' ORDER BY 1";
        let names = server.cluster.psql("postgres", query)?;
        let names: Vec<&str> = names.lines().collect();
        ensure!(names.len() > 300, "{} zones", names.len());
        let texts = texts::moments_in(&names);
        let types = types(server.version);
        let zoned = types.iter().filter(|kind| kind.name == "timestamptz");
        let cases: Vec<Case> = zoned
            .flat_map(|kind| texts.iter().map(move |text| Case { kind, typmod: -1, text }))
            .collect();
        server.agrees(&SESSIONS[0], &cases)
    });
}

/// Runs a check against a server of each version that is installed, and fails with all that failed.
fn every_server(check: impl Fn(&Server) -> Result<()>) {
    assert!(PgInstall::find(15).is_some(), "PostgreSQL 15 is needed (ci/install-postgres.sh)");
    let mut failures = Vec::new();
    for install in PgInstall::all() {
        if let Err(error) = Server::start(&install).and_then(|server| check(&server)) {
            failures.push(format!("PostgreSQL {}: {error:#}", install.major));
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// A running server, and the zones it knows.
struct Server {
    version: PgVersion,
    cluster: TestCluster,
    zones: Arc<TimeZones>,
}

impl Server {
    fn start(install: &PgInstall) -> Result<Self> {
        let version = PgVersion::from_major(install.major).context("a version not read")?;
        let mut cluster = empty_cluster(install)?;
        cluster.start()?;
        cluster.psql("postgres", FUNCTIONS)?;
        let zones = Arc::new(TimeZones::new(HostFiles::real(), zone_directory(install)));
        Ok(Self { version, cluster, zones })
    }

    /// An error unless the server says what this project says.
    fn agrees(&self, session: &Session, cases: &[Case]) -> Result<()> {
        let (start, said) = ask(&self.cluster, session, cases)?;
        ensure!(said.len() == cases.len(), "{} answers to {} texts", said.len(), cases.len());
        let context = DateTimeContext {
            version: self.version,
            date_order: session.order,
            interval_style: session.interval_style,
            session_zone: self.zones.of_setting(session.time_zone).context("no session zone")?.zone,
            zones: self.zones.clone(),
            transaction_start: start,
        };
        let mut differences = Vec::new();
        for (case, said) in cases.iter().zip(said) {
            let with_text = prints_alike(case.kind, session);
            let own = answer(case, &context, with_text);
            let said = if with_text { said } else { without_text(&said) };
            if own != said {
                let Case { kind, typmod, text } = case;
                let what = format!("{}({typmod}) {text:?}", kind.name);
                differences.push(format!("{what}:\n  server {said}\n  here   {own}"));
            }
        }
        let count = differences.len();
        differences.truncate(20);
        let zone = session.time_zone;
        ensure!(count == 0, "{count} differences in {zone}\n{}", differences.join("\n"));
        Ok(())
    }
}

/// True when this project, whose settings are fixed, prints the type as the session does.
fn prints_alike(kind: &Type, session: &Session) -> bool {
    match kind.name {
        "timestamptz" => session.time_zone == "UTC",
        "interval" => session.interval_style == IntervalStyle::Postgres,
        _ => true,
    }
}

/// The directory of zones this server was built for.
fn zone_directory(install: &PgInstall) -> PathBuf {
    let own = install.bindir.join("../share/postgresql/timezone");
    if own.is_dir() { own } else { SYSTEM_ZONES.into() }
}

fn cases<'a>(types: &'a [Type], moments: &'a [String], spans: &'a [String]) -> Vec<Case<'a>> {
    let mut cases = Vec::new();
    for kind in types {
        let is_interval = kind.texts == Texts::Intervals;
        let texts = if is_interval { spans } else { moments };
        for (number, text) in texts.iter().enumerate() {
            let more = if is_interval {
                texts::INTERVAL_TYPMODS[number % texts::INTERVAL_TYPMODS.len()]
            } else {
                (number % 7) as i32
            };
            cases.push(Case { kind, typmod: -1, text });
            if kind.name != "date" {
                cases.push(Case { kind, typmod: more, text });
            }
        }
    }
    cases
}

/// When the session's transaction began, and what the server says to each text.
fn ask(cluster: &TestCluster, session: &Session, cases: &[Case]) -> Result<(i64, Vec<String>)> {
    let order = match session.order {
        DateOrder::Mdy => "MDY",
        DateOrder::Dmy => "DMY",
        DateOrder::Ymd => "YMD",
    };
    let style = session.interval_style.name();
    let mut script = format!(
        "BEGIN;\nSET LOCAL timezone = '{}';\nSET LOCAL datestyle = 'ISO, {order}';\n\
         SET LOCAL intervalstyle = '{style}';\nSELECT encode(timestamptz_send(now()), 'hex');\n\
         CREATE TEMPORARY TABLE cases (n int, kind text, arguments text, typmod int, input bytea);\n\
         INSERT INTO cases VALUES\n",
        session.time_zone
    );
    for (number, Case { kind, typmod, text }) in cases.iter().enumerate() {
        let comma = if number == 0 { "" } else { ",\n" };
        let (name, arguments, text) = (kind.name, kind.arguments, hex(text.as_bytes()));
        script += &format!("{comma}({number}, '{name}', '{arguments}', {typmod}, '\\x{text}')");
    }
    script += ";\nSELECT said(kind, arguments, typmod, input) FROM cases ORDER BY n;\nROLLBACK;\n";
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), script)?;
    let path = file.path().to_string_lossy().into_owned();
    let printed = cluster.psql_bytes("postgres", &["-A", "-t", "-f", &path])?;
    let printed = String::from_utf8(printed)?;
    let mut lines = printed.lines();
    let start = lines.next().context("nothing was printed")?;
    let start = i64::from_str_radix(start, 16)?;
    let said = lines.map(|line| Ok(String::from_utf8(unhex(line)?)?)).collect::<Result<_>>()?;
    Ok((start, said))
}

/// What this project says to a text, in the form of the server's function.
fn answer(case: &Case, context: &DateTimeContext, with_text: bool) -> String {
    let Case { kind, typmod, text } = case;
    let mut payload = Vec::new();
    if let Err(error) = (kind.read)(text.as_bytes(), *typmod, context, &mut payload) {
        return format!("error {error}");
    }
    let mut sent = Vec::new();
    let mut rest = &payload[..];
    for len in kind.parts {
        let (part, after) = rest.split_at(*len);
        sent.extend(part.iter().rev());
        rest = after;
    }
    assert!(rest.is_empty(), "{} has {} bytes too many", kind.name, rest.len());
    let sent = hex(&sent);
    if !with_text {
        return sent;
    }
    let mut printed = Vec::new();
    match (kind.write)(&payload, &mut printed) {
        Ok(()) => format!("{sent} {}", String::from_utf8_lossy(&printed)),
        Err(error) => format!("{sent} {error}"),
    }
}

/// An answer without the value's text, which depends on the session.
fn without_text(said: &str) -> String {
    match said.split_once(' ') {
        Some((sent, _)) if sent != "error" => sent.to_owned(),
        _ => said.to_owned(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Result<Vec<u8>> {
    let pairs = (0..text.len()).step_by(2).map(|at| text.get(at..at + 2).context("half a byte"));
    pairs.map(|pair| Ok(u8::from_str_radix(pair?, 16)?)).collect()
}
