//! Statements that are sent as texts, alike but for their constants, give what the server gives, whatever came before them.
//!
//! Invariant: each shape comes more than twice, so that a plan that is kept, where there is one, runs with constants it was not made
//! for; and from both protocols, two roles, two search paths and with other settings, in turns that are the same each time the test runs.

#[path = "support/driver.rs"]
mod driver;
mod support;

use std::path::Path;

use anyhow::{Context as _, Result};
use driver::{asked, connect, runtime, server_place, told, user};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};
use support::Served;
use tokio_postgres::{Client, SimpleQueryMessage};

/// Tables with keys of all widths, under two schemas, and with a policy.
const TABLES: &str = "
    create type mood as enum ('sad', 'ok', 'fine');
    create domain small as int check (value < 1000);
    create table accounts(id int primary key, big bigint, tiny smallint, name text, code varchar(8), pad char(6), price numeric(9,2),
        wide numeric, ratio float8, at timestamptz, day date, m mood, is_open bool, branch small, doc jsonb);
    insert into accounts select i, i * 1000000000::bigint, i % 300, 'name ' || i % 50, 'c' || i % 7, 'p' || i % 11, i / 7.0, i * 1e15 / 7,
        i / 3.0, '2024-01-01 UTC'::timestamptz + i * interval '1 hour', '2024-01-01'::date + i % 100, (array['sad', 'ok', 'fine'])[1 + i % 3]::mood,
        i % 2 = 0, i % 10, jsonb_build_object('a', i) from generate_series(1, 3000) i;
    insert into accounts(id, name, price, wide) values (5001, 'it''s', 'NaN', 'NaN'), (5002, E'a\\\\b', null, null), (5003, '', 0, 0),
        (2147483647, 'largest', 1, 1), (-2147483648, 'least', -1, -1);
    update accounts set big = 9223372036854775807 where id = 2147483647;
    update accounts set big = -9223372036854775808 where id = -2147483648;
    create index on accounts(big);
    create index on accounts(name text_pattern_ops);
    create index on accounts(branch, day);
    create table branches(id int primary key, title varchar(30));
    insert into branches select i, 'branch ' || i from generate_series(0, 9) i;
    create schema other;
    create table other.branches(id bigint primary key, title text);
    insert into other.branches select i, 'other ' || i from generate_series(0, 5) i;
    create table days(day date not null, n int) partition by range (day);
    create table days_1 partition of days for values from ('2024-01-01') to ('2024-02-01');
    create table days_2 partition of days for values from ('2024-02-01') to ('2024-03-01');
    insert into days select '2024-01-01'::date + i % 60, i from generate_series(0, 2000) i;
    alter table accounts enable row level security;
    create policy few on accounts using (branch in (3, 7));
    create table notes(id int primary key, owner text, tenant int);
    insert into notes select i, (array['ann', 'bob', ''])[1 + i % 3], i % 4 from generate_series(1, 2000) i;
    alter table notes enable row level security;
    create policy own on notes using (owner = current_setting('app.who', true));
    create table bills(id int primary key, tenant int);
    insert into bills select i, i % 4 from generate_series(1, 2000) i;
    alter table bills enable row level security;
    create policy of_tenant on bills using (tenant = current_setting('App.tenant')::int);
    create role reader login;
    alter database postgres set app.color = 'red';
    alter role reader set app.color = 'blue';
    grant usage on schema other to reader;
    grant select on accounts, branches, other.branches, days, notes, bills to reader;
    analyze;
    checkpoint;
";

/// Shapes, with the kinds of their constants between braces.
const SHAPES: [&str; 50] = [
    "select id, name from accounts where id = {int}",
    "select id, name from accounts where id = {any}",
    "select id from accounts where {int} = id or id = {int} order by id",
    "select id from accounts where big = {int}",
    "select id from accounts where big > {int} order by id limit 2",
    "select id from accounts where tiny = {int} order by id limit 3",
    "select count(*) from accounts where tiny >= {int} and tiny < {int}",
    "select id from accounts where price = {number} order by id limit 3",
    "select id from accounts where wide < {number} order by id limit 3",
    "select id from accounts where ratio > {number} order by id limit 3",
    "select count(*), min(id) from accounts where name = {text}",
    "select id from accounts where name = {text} and branch = {int} order by id limit 5",
    "select id from accounts where code = {text} order by id limit 2",
    "select id from accounts where pad = {text} order by id limit 2",
    "select id from accounts where m = {text} order by id limit 2",
    "select count(*) from accounts where m > {any}",
    "select count(*) from accounts where is_open = {any}",
    "select id from accounts where day = {date} order by id limit 3",
    "select id from accounts where day between {date} and {date} order by id limit 3",
    "select count(*) from accounts where at >= {date} and at < {date}",
    "select count(*) from accounts where at >= {date}::timestamptz",
    "select count(*) from accounts where day + {int} > {date}",
    "select id from accounts where id in ({int}, {int}, {int}) order by id",
    "select id from accounts where id in ({int}) order by id",
    "select id from accounts where big in ({int}, {int}) order by id",
    "select id from accounts where id not in ({int}, {int}, 1, 2, 3) order by id limit 2",
    "select id from accounts where name in ({text}, {text}) order by id limit 4",
    "select id from accounts where id between {int} and {int} order by id limit 4",
    "select id from accounts where name like {text} order by id limit 3",
    "select id, {int}, {text} from accounts where id = {int}",
    "select id + {int} from accounts where id = {int}",
    "select id from accounts where id % {int} = {int} order by id limit 3",
    "select id from accounts where id / {int} = {int} order by id limit 3",
    "select id from accounts where price * {number} > {number} order by id limit 3",
    "select branch, count(*) from accounts where id > {int} group by branch having count(*) > {int} order by 1",
    "select branch % {int}, count(*) from accounts where id > {int} group by 1 order by 1",
    "select id from accounts where branch = {int} order by {int}, id limit {int}",
    "select a.id, b.title from accounts a join branches b on b.id = a.branch and b.id < {int} where a.id = {int}",
    "select b.title, count(*) from accounts a join branches b on b.id = a.branch where a.day > {date} group by b.title order by 1",
    "select title from branches where id = {int}",
    "select title from branches where id in (select branch from accounts where id = {int}) and title <> {text}",
    "select (select title from branches where id = {int}), exists (select 1 from accounts where id = {int})",
    "select n from days where day = {date} and n < {int} order by n limit 3",
    "select count(*) from days where day >= {date}",
    "select id from accounts where doc ->> 'a' = {text} order by id",
    "select id from branches where title = {text} union all select id from branches where id = {int} order by 1",
    "select id from notes where id > {int} order by id limit 2",
    "select id, owner from notes where owner = {text} or id = {int} order by id limit 2",
    "select id from bills where id > {int} order by id limit 2",
    "select current_setting('app.who', true), current_setting('app.color') from branches where id = {int}",
];

/// What changes the session in between.
const COMMANDS: [&str; 22] = [
    "set search_path = other, public",
    "reset search_path",
    "begin",
    "begin",
    "rollback",
    "rollback",
    "commit",
    "commit",
    "savepoint s",
    "savepoint t",
    "rollback to s",
    "rollback to savepoint t",
    "release s",
    "set app.who = 'ann'",
    "set App.Who to 'bob'",
    "set local app.who = 'ann'",
    "reset app.who",
    "select set_config('app.who', 'bob', true)",
    "set app.tenant = 3",
    "set local app.tenant = '1'",
    "set app.tenant = 'none'",
    "set app.color = 'green'",
];

const INTEGERS: [&str; 24] = [
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "+5",
    "42",
    "300",
    "-300",
    "1000",
    "5001",
    "5002",
    "2147483647",
    "-2147483647",
    "2147483648",
    "-2147483648",
    "2147483649",
    "-2147483649",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "100000000000000000000",
    "007",
];
const NUMBERS: [&str; 12] = [
    "0",
    "1.5",
    "-0.14",
    "0.14",
    "1.00",
    "428.57",
    "1e3",
    "'NaN'",
    "12345678901234567890.5",
    ".5",
    "5.",
    "-7",
];
const TEXTS: [&str; 16] = [
    "'name 5'",
    "'name 49'",
    "'it''s'",
    "''",
    "'c3'",
    "'p5'",
    "'p5   '",
    "'sad'",
    "'fine'",
    "'branch 4'",
    "e'a\\\\b'",
    "e'it\\'s'",
    "U&'\\0063\\0033'",
    "$$name 7$$",
    "$q$it's$q$",
    "'other 3'",
];
const DATES: [&str; 12] = [
    "'2024-01-05'",
    "'2024-02-01'",
    "'2024-02-29'",
    "'2024-02-30'",
    "'infinity'",
    "'-infinity'",
    "'epoch'",
    "'2024-13-01'",
    "date '2024-01-09'",
    "'no day'",
    "'2024-03-01 10:00'",
    "null",
];
const OTHERS: [&str; 8] = ["null", "true", "false", "'t'", "'abc'", "'12'", "1.0", "'ok'"];

/// Numbers that are the same each time, and in no order.
struct Draws(u64);

impl Draws {
    fn below(&mut self, count: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % count
    }

    fn one<'w>(&mut self, of: &[&'w str]) -> &'w str {
        of[self.below(of.len())]
    }

    fn constant(&mut self, kind: &str) -> &'static str {
        match kind {
            "int" => self.one(&INTEGERS),
            "number" => self.one(&NUMBERS),
            "text" => self.one(&TEXTS),
            "date" => self.one(&DATES),
            _ => match self.below(4) {
                0 => self.one(&INTEGERS),
                1 => self.one(&TEXTS),
                _ => self.one(&OTHERS),
            },
        }
    }

    fn statement(&mut self) -> String {
        let mut rest = self.one(&SHAPES);
        let mut text = String::new();
        while let Some((before, (kind, behind))) =
            rest.split_once('{').and_then(|(a, b)| Some((a, b.split_once('}')?)))
        {
            text += before;
            text += self.constant(kind);
            rest = behind;
        }
        text + rest
    }
}

/// What one of the clients asks next, and how.
struct Turn {
    client: usize,
    is_extended: bool,
    text: String,
}

fn turns() -> Vec<Turn> {
    let mut draws = Draws(15);
    let mut turns = Vec::new();
    while turns.len() < 400 {
        let client = draws.below(3);
        let mut push = |is_extended, text: String| turns.push(Turn { client, is_extended, text });
        match draws.below(20) {
            0 | 1 => push(false, draws.one(&COMMANDS).to_owned()),
            2 => push(false, format!("{}; {}", draws.statement(), draws.statement())),
            3..7 => push(true, draws.statement()),
            _ => push(false, draws.statement()),
        }
    }
    turns
}

async fn simple(client: &Client, text: &str) -> String {
    let messages = match client.simple_query(text).await {
        Ok(messages) => messages,
        Err(error) => return told(&error),
    };
    let mut all = String::new();
    for message in messages {
        match message {
            SimpleQueryMessage::Row(row) => {
                let values: Vec<Option<&str>> = (0..row.len()).map(|at| row.get(at)).collect();
                all += &format!("{values:?}\n");
            }
            SimpleQueryMessage::RowDescription(columns) => {
                let names: Vec<&str> = columns.iter().map(|column| column.name()).collect();
                all += &format!("{names:?}\n");
            }
            SimpleQueryMessage::CommandComplete(rows) => all += &format!("{rows} rows\n"),
            _ => all += "?\n",
        }
    }
    all
}

async fn answers(socket: &Path, port: u16, user: &str, turns: &[Turn]) -> Result<Vec<String>> {
    let mut clients = Vec::new();
    for user in [user, user, "reader"] {
        clients.push(connect(socket, port, user).await?);
    }
    let mut answers = Vec::new();
    for turn in turns {
        let client = &clients[turn.client];
        answers.push(match turn.is_extended {
            true => asked(client, &turn.text, &[&[]]).await,
            false => simple(client, &turn.text).await,
        });
    }
    Ok(answers)
}

#[test]
fn texts_with_other_constants_give_what_the_server_gives() -> Result<()> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let mut cluster = TestCluster::create(&install, &ClusterOptions::default())?;
    cluster.psql("postgres", TABLES)?;
    let (turns, user) = (turns(), user(&cluster)?);
    let (socket, port) = server_place(&cluster)?;
    let wanted = runtime()?.block_on(answers(&socket, port, &user, &turns))?;
    cluster.stop()?;
    let served = Served::start(&cluster, &["-p", "5432"])?;
    let found = runtime()?.block_on(answers(served.directory.path(), 5432, &user, &turns))?;
    let mut wrong = String::new();
    for ((turn, found), wanted) in turns.iter().zip(&found).zip(&wanted) {
        if found != wanted {
            let Turn { client, is_extended, text } = turn;
            wrong += &format!("{client} {is_extended} {text}\n  found {found}  wanted {wanted}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    Ok(())
}
