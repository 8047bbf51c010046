//! Sessions in other time zones and of other roles get what the server gives them.
//!
//! Each question is asked of psql in nine zones, by users with settings of their own, before the server stops and after.

mod support;

use std::process::Command;

use anyhow::{Context as _, Result};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, in_checkout};

const TABLES: &str = "
    set timezone = 'UTC';
    create table moments(id int primary key, at timestamptz, local timestamp, day date);
    insert into moments values
        (1, '2024-03-31 00:59:59', '2024-03-31 02:30', '2024-03-31'),
        (2, '2024-03-31 01:00', '2024-03-31 01:00', '2024-03-31'),
        (3, '2024-10-27 00:30', '2024-10-27 02:30', '2024-10-27'),
        (4, '2024-10-27 01:30:00.123456', '2024-10-27 02:30', '2024-10-28'),
        (5, '2024-01-01 00:00', '2024-01-01 00:00', '2024-01-01'),
        (6, '1883-05-05 05:05:05', '1883-05-05 05:05:05', '1883-05-05'),
        (7, '0044-03-15 12:00 BC', '0044-03-15 12:00 BC', '0044-03-15 BC'),
        (8, '2030-06-30 23:00', '2030-07-01', '2030-07-01'),
        (9, 'infinity', '-infinity', 'infinity');
    create table keyed(id int primary key, at timestamptz);
    insert into keyed select i, '2024-03-30'::timestamptz + i * interval '30 min' from generate_series(1, 200) i;
    create index on keyed(at);
    create table kept(at timestamptz default '2024-07-01 00:00', check (at > '2024-01-01 00:00'::timestamptz));
    create table parts(at timestamptz) partition by range (at);
    create table parts_1 partition of parts for values from ('2024-03-30 00:00') to ('2024-03-31 00:00');
    create table parts_2 partition of parts for values from ('2024-03-31 00:00') to ('2024-04-01 00:00');
    insert into parts select '2024-03-30'::timestamptz + i * interval '90 min' from generate_series(0, 31) i;
    create function stamped(int) returns timestamptz language sql stable as 'select at from moments where id = $1';
    create role reader; create role nobody; create role ada login; grant reader to ada;
    grant select on moments to reader;
    create role far login; alter role far set timezone = 'Asia/Tokyo'; alter role far set search_path = other, public;
    create schema other; create table other.keyed as select 1 as only; grant usage on schema other to far;
    grant select on other.keyed, moments to far;
    alter database postgres set timezone = 'America/Chicago';
    checkpoint;
";

/// A name in any case, hours, rules, an offset that changed by half an hour, and one with seconds.
const ZONES: [&str; 9] = [
    "Europe/Berlin",
    "america/new_york",
    "Asia/Kolkata",
    "-3.5",
    "EST5EDT",
    "Australia/Lord_Howe",
    "Africa/Monrovia",
    "<+12>-12",
    "UTC",
];

/// What is set for a session, and shown of it.
const SET: [&str; 13] = [
    "show timezone; select at from moments where id = 5",
    "set time zone 'Asia/Tokyo'; select at from moments where id = 5; reset timezone; show timezone",
    "set time zone 3; show time zone; set time zone local; show time zone; set time zone default; show time zone",
    "set timezone = 'No/Where'; show timezone",
    "begin; set local timezone = 'Asia/Tokyo'; select at from moments where id = 5; commit; show timezone",
    "begin; set timezone = 'Asia/Tokyo'; rollback; select at from moments where id = 5",
    "select set_config('TimeZone', 'europe/paris', false); select at from moments where id = 5; show timezone",
    "set role reader; select current_user, session_user; show role; select count(*) from keyed",
    "set role reader; select count(*) from moments; set role none; select current_user; select count(*) from keyed",
    "set role 'nope'; set role nobody; select current_user; reset role; select current_role",
    "begin; set local role reader; select current_user; commit; select current_user",
    "show is_superuser; set role reader; show is_superuser; reset all; select current_user; reset role; show is_superuser; show search_path",
    "set role reader; discard all; select current_user; begin; set role nobody; show is_superuser; rollback; show is_superuser",
];

fn asked(mut client: Command, (user, zone): (&str, &str), words: &[&str]) -> Result<String> {
    client.args(["-A", "-t", "-v", "VERBOSITY=terse", "-v", "ON_ERROR_STOP=0"]).args(words);
    client.args(["-U", user]);
    match zone {
        "" => client.env_remove("PGTZ"),
        zone => client.env("PGTZ", zone),
    };
    let output = client.output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let errors = errors.lines().filter_map(|line| line.split_once("ERROR:").map(|(_, told)| told));
    let errors: Vec<_> = errors.collect();
    Ok(format!("{}\n{}", String::from_utf8_lossy(&output.stdout), errors.join("\n")))
}

fn all(client: impl Fn() -> Command, user: &str) -> Result<Vec<(String, String)>> {
    let questions = in_checkout("crates/pagemill-serve/tests/zones/questions.sql");
    let questions = questions.to_string_lossy();
    let mut found = Vec::new();
    for zone in ZONES {
        found.push((zone.to_owned(), asked(client(), (user, zone), &["-f", &questions])?));
    }
    for statements in SET {
        for (user, zone) in [(user, ""), (user, "Europe/Berlin"), ("ada", ""), ("far", "")] {
            let mut words = Vec::new();
            statements.split_inclusive(';').for_each(|one| words.extend(["-c", one]));
            let told = asked(client(), (user, zone), &words)?;
            found.push((format!("{user} {zone}: {statements}"), told));
        }
    }
    let read = "select * from keyed order by 1 limit 2";
    found.push((read.to_owned(), asked(client(), ("far", ""), &["-c", read])?));
    Ok(found)
}

#[test]
fn sessions_have_their_own_zones_and_roles() -> Result<()> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let cluster = TestCluster::create(&install, &ClusterOptions::default())?;
    cluster.psql("postgres", TABLES)?;
    let user = cluster.psql("postgres", "select current_user")?.trim().to_owned();
    support::check_alike(cluster, &install, |client| all(client, &user))
}
