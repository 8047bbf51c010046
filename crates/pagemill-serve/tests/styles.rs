//! Sessions with other styles of values get what the server gives them.
//!
//! Each question is asked of psql with nine sets of settings, before the server stops and after; then what is set within a
//! session, by users with settings of their own and for other users.

mod support;

use std::process::Command;

use anyhow::{Context as _, Result};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, in_checkout};

const TABLES: &str = r"
    set timezone = 'UTC';
    create table moments(id int primary key, day date, local timestamp, at timestamptz);
    insert into moments values
        (1, '2024-03-02', '2024-03-02 04:05:06.7', '2024-03-02 04:05:06.7'),
        (2, '0044-03-15 BC', '0044-03-15 12:00 BC', '0044-03-15 12:00 BC'),
        (3, '12024-12-31', '12024-12-31 23:59:59.999999', '12024-12-31 23:59:59.999999'),
        (4, 'infinity', '-infinity', 'infinity'),
        (5, null, null, null),
        (6, '1883-05-05', '1883-05-05 05:05:05', '1883-05-05 05:05:05'),
        (7, '2024-10-27', '2024-10-27 00:30', '2024-10-27 00:30');
    create table spans(id int primary key, span interval);
    insert into spans values (1, '1 year 2 mons 3 days 04:05:06.7'), (2, '-1 year -2 mons +3 days -04:05:06.7'), (3, '0'),
        (4, '-1 mons'), (5, '3 days 04:05:06'), (6, '-00:00:01'), (7, '100:00:00'), (8, '1 day -1 sec'), (9, null),
        (10, '1 sec'), (11, '-1 day -00:00:00.5'), (12, '1 hour 1 min');
    create table bits(id int primary key, data bytea);
    insert into bits values (1, '\x00ff5c20417e7f0a'), (2, ''), (3, null), (4, 'plain');
    create table numbers(id int primary key, big float8, small float4);
    insert into numbers values (1, 1/3::float8, 1/3::float4), (2, 1e15, 1e6), (3, -123456789.123456789, 16777216),
        (4, 'NaN', '-Infinity'), (5, 0.1::float8 + 0.2::float8, 0.1), (6, '-0', 0.00001), (7, 2.5, 1e-37);
    create type whole as (day date, at timestamptz, span interval, data bytea, number float8);
    create domain hours as interval check (value > interval '-1 day');
    create table mixed(id int primary key, w whole, days date[], ats timestamptz[], spans interval[], datas bytea[], numbers float8[],
        r tsrange, d daterange, m tstzmultirange, h hours, p point, b box, g polygon, v circle);
    insert into mixed values (1, row('2024-03-02', '2024-03-02 04:05:06.7', '1 day 2 hours', '\x5c00', 1/3::float8), '{2024-03-02,NULL,infinity}',
        '{2024-03-02 04:05:06,-infinity}', '{1 year,-1 mons,0}', array['\x5c22'::bytea, 'a b', ''], array[1/3::float8, 1e20, 'NaN'],
        '[2024-03-02 04:05:06,2024-03-03)', '[2024-03-02,)', '{[2024-03-02 00:00,2024-03-03 00:00),[2024-04-01 00:00,)}', '2 hours',
        point(1/3::float8, 1e20), box(point(0.1,0.2), point(1/3::float8,0)), polygon '((0.1,0.2),(1e-7,3))', circle(point(0, 0.1), 1/3::float8)),
        (2, row(null, null, null, null, null), '{}', null, null, null, null, 'empty', null, '{}', null, null, null, null, null);
    create table kept(day date default '2024-03-02', span interval default '-1 day -2 hours', number float8 default 0.1::float8 + 0.2::float8,
        data bytea default '\x5c00', check (day > '2020-02-01'::date));
    create view seen as select id, day > '2024-02-01'::date as is_late, day - '2024-01-02'::date as days,
        at + '-1 day -2 hours'::interval as before, '0.30000000000000004'::float8 = 0.1::float8 + 0.2::float8 as is_exact,
        '2024-10-27 00:30+00'::timestamptz as autumn, '\x5c00'::bytea as data, date '2024-03-02' as day from moments;
    create function later(day date default '2024-03-02', by interval default '-1 day -2 hours') returns timestamp
        language sql stable as 'select day + by';
    create function fixed() returns date language sql stable return date '2024-03-02';
    create function ambiguous() returns date language sql stable as $$ select date '02/03/2024' $$;
    create table parts(day date) partition by range (day);
    create table parts_1 partition of parts for values from ('2024-01-02') to ('2024-02-03');
    create table parts_2 partition of parts for values from ('2024-02-03') to ('2024-03-04');
    insert into parts select date '2024-01-02' + i from generate_series(0, 60) i;
    create index on moments(day);
    analyze moments; analyze numbers;
    create role reader; create role ada login; grant reader to ada; grant select on moments, spans to reader, ada;
    create table secret(id int, day date); insert into secret values (1, '2024-03-02'), (2, '2024-02-03'); grant select on secret to ada;
    alter table secret enable row level security; create policy p on secret using (day = '2024-03-02'::date);
    create role far login; alter role far set datestyle = 'SQL'; alter role far set intervalstyle = 'iso_8601';
    alter role far set bytea_output = 'escape'; alter role far set extra_float_digits = 0;
    grant select on moments, spans, bits, numbers to far;
    alter database postgres set datestyle = 'DMY';
    checkpoint;
";

/// Options of a connection, and a time zone.
const STYLES: [(&str, &str); 9] = [
    ("-c datestyle=ISO,MDY", "UTC"),
    (
        "-c datestyle=SQL,MDY -c intervalstyle=sql_standard -c bytea_output=escape -c extra_float_digits=0",
        "UTC",
    ),
    (
        "-c datestyle=SQL,DMY -c intervalstyle=postgres_verbose -c extra_float_digits=-3",
        "Europe/Berlin",
    ),
    ("-c datestyle=German -c intervalstyle=iso_8601 -c extra_float_digits=3", "America/New_York"),
    ("-c datestyle=Postgres,MDY -c intervalstyle=postgres_verbose", "Asia/Kolkata"),
    ("-c datestyle=Postgres,DMY -c bytea_output=escape -c extra_float_digits=-14", "-3.5"),
    ("-c datestyle=YMD -c intervalstyle=sql_standard", "UTC"),
    ("-c datestyle=Postgres,YMD -c extra_float_digits=-15", "Australia/Lord_Howe"),
    ("", "UTC"),
];

/// What is set for a session, and shown of it.
const SET: [&str; 22] = [
    "show datestyle; show intervalstyle; show bytea_output; show extra_float_digits",
    "select * from moments where id < 3; select * from spans where id < 3",
    "set datestyle = German; show datestyle; select day, at from moments where id = 1; reset datestyle; show datestyle",
    "set datestyle to 'sql'; show datestyle; set datestyle to dmy; show datestyle; set datestyle = default; show datestyle",
    "set datestyle = iso, sql; set datestyle = 'x'; set datestyle = 'iso mdy'; set datestyle = ''; show datestyle",
    "set intervalstyle = iso; set bytea_output = base64; set extra_float_digits = 4; set extra_float_digits = -16; set extra_float_digits = a",
    "set extra_float_digits = '0x3'; show extra_float_digits; set extra_float_digits = '-1.5'; show extra_float_digits; select 0.1::float8 + 0.2::float8",
    "begin; set local datestyle = 'SQL, DMY'; select day from moments where id = 1; commit; show datestyle; select day from moments where id = 1",
    "begin; set intervalstyle = postgres_verbose; select span from spans where id = 2; rollback; select span from spans where id = 2",
    "select set_config('DateStyle', 'postgres', false); select at from moments where id = 1; show DateStyle",
    "select set_config('datestyle', 'german', true); select set_config('statement_timeout', '60000', true); set intervalstyle = postgres, iso",
    "set bytea_output = null; set statement_timeout = 1500; show statement_timeout; set enable_sort = 0; show enable_sort; set jit = maybe",
    "begin; savepoint s; set datestyle = german; rollback to s; show datestyle; commit",
    "select current_setting('datestyle'), current_setting('IntervalStyle'), current_setting('bytea_output'), current_setting('extra_float_digits')",
    "set datestyle = 'Postgres'; discard all; show datestyle; reset all; show datestyle",
    "prepare p as select day, $1::interval from moments where id = 1; execute p('1 day'); set datestyle = german; execute p('-1-2')",
    "set session authorization reader; select current_user, session_user; show session_authorization; show is_superuser; reset session authorization; select current_user",
    "set session authorization reader; select count(*) from bits; set session authorization default; select count(*) from bits",
    "set role reader; set session authorization ada; select current_user, session_user; show role; set role reader; select current_user, session_user; set role far",
    "set session authorization nobody; set session authorization 'ada'; select id from secret; set session authorization far; select session_user",
    "begin; set local session authorization ada; select session_user; commit; select session_user = current_user; show role",
    "set session authorization ada; reset all; select session_user; discard all; select session_user <> 'ada'; begin; set session authorization ada; rollback; show is_superuser",
];

fn asked(
    mut client: Command,
    (user, options, zone): (&str, &str, &str),
    words: &[&str],
) -> Result<String> {
    client.args(["-A", "-t", "-v", "VERBOSITY=terse", "-v", "ON_ERROR_STOP=0"]).args(words);
    client.args(["-U", user]).env_remove("PGDATESTYLE").env("PGTZ", zone);
    match options {
        "" => client.env_remove("PGOPTIONS"),
        options => client.env("PGOPTIONS", options),
    };
    let output = client.output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let errors = errors.lines().filter_map(|line| line.split_once("ERROR:").map(|(_, told)| told));
    // Where in a statement a wrong constant stands is not always said.
    let message = |told| str::split_once(told, " at character ").map_or(told, |(before, _)| before);
    let errors: Vec<_> = errors.map(message).collect();
    Ok(format!("{}\n{}", String::from_utf8_lossy(&output.stdout), errors.join("\n")))
}

fn all(client: impl Fn() -> Command, user: &str) -> Result<Vec<(String, String)>> {
    let questions = in_checkout("crates/pagemill-serve/tests/styles/questions.sql");
    let questions = questions.to_string_lossy();
    let mut found = Vec::new();
    for (options, zone) in STYLES {
        let told = asked(client(), (user, options, zone), &["-f", &questions])?;
        found.push((format!("{options} {zone}"), told));
    }
    for statements in SET {
        // What is said of styles hangs on the one that a session begins with, the rest on whose it is.
        let sessions: &[(&str, &str)] = match statements.contains("style") {
            true => &[(user, "-c datestyle=SQL"), ("ada", "")],
            false => &[(user, ""), ("ada", ""), ("far", "")],
        };
        for &(user, options) in sessions {
            let mut words = Vec::new();
            statements.split_inclusive(';').for_each(|one| words.extend(["-c", one]));
            let told = asked(client(), (user, options, "UTC"), &words)?;
            found.push((format!("{user} {options}: {statements}"), told));
        }
    }
    Ok(found)
}

#[test]
fn sessions_have_their_own_styles_and_users() -> Result<()> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let cluster = TestCluster::create(&install, &ClusterOptions::default())?;
    cluster.psql("postgres", TABLES)?;
    let user = cluster.psql("postgres", "select current_user")?.trim().to_owned();
    support::check_alike(cluster, &install, |client| all(client, &user))
}
