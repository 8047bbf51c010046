//! What tools ask and how, which others do not: foreign tables of a live server, COPY as drivers for columns read it, and statements of
//! tools that failed here once. Each is answered as by the server.
//!
//! Invariant: what goes over the wire is compared message by message where clients depend on it.

#[path = "support/asked.rs"]
mod asked;
mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use asked::{asked, compare};
use futures::TryStreamExt as _;
use pagemill_testkit::versions::each_of;
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, skipped};
use support::Served;
use tokio::runtime::Builder;
use tokio_postgres::NoTls;

const TABLES: &str = "
    create type state as enum ('paid', 'open');
    create table item (id int primary key, name text, document xml, kept int);
    insert into item select i, 'v' || i, ('<a>' || i || '</a>')::xml, i % 3 from generate_series(1, 500) i;
    create table orders (id int, state state);
    insert into orders select i, case when i % 2 = 0 then 'paid' else 'open' end::state from generate_series(1, 10) i;
    create function added(int, text) returns int language sql as 'select $1';
    analyze;
";

/// One statement a line.
const STATEMENTS: &str = "
set default_transaction_read_only = on;
select substr('abc', '1', '2'), substr('abc', '2'), substr('abcdef', 2, 3);
select count(*) from orders where state = 'paid' collate \"C\";
select count(*) from item where id = '5' collate \"C\";
select 'b' collate \"C\" < 'C', ('b' collate \"C\")::text, pg_typeof('a' collate \"C\"), null collate \"C\" is null;
select count(*) from item where name < 'v2' collate \"C\";
select '<a/>'::xml::text, '<?xml version=\"1.0\" encoding=\"latin1\"?><a/>'::xml::text, document::varchar from item where id = 3;
select 'nosuch'::regclass;
select 'nosuch'::regtype;
select 'nosuch'::regproc;
select 'nosuch'::regnamespace;
select 'nosuch'::regrole;
select 'nosuch'::regconfig;
select 'nosuch'::regcollation;
select 'a b'::regclass;
select (o.*)::text from orders o where id < 3 order by id;
select count((o.*)::text), count(o.*), count(*) filter (where (o.*) is not null) from orders o;
select o.id from orders o left join item i on i.id = o.id + 495 where (i.*)::text is not null order by 1;
select oidvectortypes(proargtypes) from pg_proc where proname in ('added', 'format_type', 'now') order by 1;
select pg_current_logfile(), pg_current_logfile('stderr');
select jsonb_build_object('a', 1) ?'a', jsonb_build_object('a', 1)?'b', '{}'::jsonb ?|array['a'], '?'||'?', $$?'$$ /* ?' */;
select 1 ?@> 2;
select id from item where id <=-1 or id<>-1 and id < 3 and -1>=-1 and '[1]'::jsonb->-1 = '1' order by id;
select 3-+2, 3*-2, 3=-3, 2^-1;
select 1 <=> 2;
select 1 ^~ 2;
select 1 ?~ 2;
select count(*) from pg_replication_slots;
select count(*) from pg_stat_replication_slots;
select count(*) from pg_stat_database where datname is not null;
select count(wal_records) + count(wal_bytes) from pg_stat_wal;
select archived_count, failed_count, last_archived_wal from pg_stat_archiver;
select version() ~ '64-bit';
select attname from pg_attribute where attrelid = 'item'::regclass and attnum > 0;
select array_agg(a.attname) from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey) where i.indrelid = 'item'::regclass;
select current_time is not null, localtime is not null, pg_typeof(current_time(2)), pg_typeof(localtime(0)), pg_typeof(current_timestamp(1)), pg_typeof(localtimestamp(2));
select length(localtime(0)::text), length(current_time(0)::text);
select \"system_user\" from (values (1)) v (\"system_user\");
select pg_typeof(null), pg_typeof('a'), pg_typeof('a'::text), pg_typeof(lower('A'));
select id from item order by id limit (select count(*) from orders where state = 'paid') offset (select 3);
select id from item order by id limit (select null::int) offset (select max(id) - 2 from item);
select id from item order by id limit (select -1);
select id from item order by id offset (select -1);
select id from item order by id limit (select id from orders);
select o.id, (select i.id from item i where i.id > o.id order by i.id offset (select 1) limit 1) from orders o order by 1;
select to_char(date '2024-05-03', 'TMDay, DD TMMonth YYYY|TMMON|tmdy|TMYYYY');
select to_char(interval '1 day', 'TMMonth');
select 7 union all select 8 union all (select 9 union all select 10) limit 3;
select id from orders where id < 3 union all select id from item where id > 498 union all select 100;
select a from (select 2 a union all select 1 union all select 3) x where a <> (select 3 union all select 4 limit 1);
explain (nonsense) select 1;
prepare between_any as select id from item where $1 between 1 and $2 and id < 3 order by id;
execute between_any (2, 4);
execute between_any (5, 4);
create table a (b int not null primary key);
create schema if not exists store;
create or replace function f() returns int language sql as 'select 1';
create unique index on item (id);
create temporary sequence s;
create user nobody;
create materialized view m as select 1;
refresh materialized view m;
alter default privileges grant select on tables to public;
create foreign data wrapper w;
create foreign table f (i int) server s;
create user mapping for public server s;
create text search configuration c (copy = simple);
create operator class c for type int using btree as storage int;
create event trigger t on ddl_command_start execute function f();
drop owned by public;
grant select on item to public;
comment on table item is 'x';
insert into item values (1);
update item set id = 2;
delete from item;
drop table item;
drop view if exists nosuch;
alter table item add x int;
truncate item;
";

fn cluster(install: &PgInstall) -> Result<TestCluster> {
    let options = ClusterOptions { locale: "C".to_owned(), ..ClusterOptions::default() };
    let cluster = TestCluster::create(install, &options)?;
    cluster.psql("postgres", TABLES)?;
    cluster.psql("postgres", "checkpoint")?;
    Ok(cluster)
}

fn client(served: &Served, install: &PgInstall) -> Command {
    let mut command = Command::new(install.psql());
    command.env("PGHOST", served.directory.path()).env("PGPORT", "5432");
    command.env("PGUSER", "postgres").env("PGDATABASE", "postgres");
    command
}

fn check_statements(install: &PgInstall) -> Result<()> {
    let mut cluster = cluster(install)?;
    let expected = asked(cluster.psql_command("postgres"), STATEMENTS)?;
    cluster.stop()?;
    let served = Served::start(&cluster, &[])?;
    let found = asked(client(&served, install), STATEMENTS)?;
    compare(&found, &expected)?;
    ensure!(found.lines().count() > 150, "much is compared");
    Ok(())
}

#[test]
fn statements_of_tools_are_answered_as_by_the_server() {
    each_of(&PgInstall::spread(), check_statements);
}

/// The server has other steps, and the same words for what is expected of each.
#[test]
fn a_plan_is_a_document_and_ends_its_first_line_in_a_cost() -> Result<()> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let mut cluster = cluster(&install)?;
    cluster.stop()?;
    let served = Served::start(&cluster, &[])?;
    let explained = |statement: &str| -> Result<String> {
        let output =
            client(&served, &install).args(["-X", "-A", "-t", "-c", statement]).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    };
    let document =
        explained("explain (format json) select kept, count(*) from item group by kept")?;
    let plan = &serde_json::from_str::<serde_json::Value>(&document)?[0]["Plan"];
    ensure!(plan["Total Cost"].as_f64().is_some_and(|cost| cost > 0.0), "{document}");
    ensure!(plan["Plan Rows"].is_u64() && plan["Plan Width"] == 12, "{document}");
    ensure!(plan["Plans"].as_array().is_some_and(|below| below.len() == 1), "{document}");
    let lines = explained("explain select id from item where id < 10")?;
    let first = lines.lines().next().context("a line")?;
    let (_, cost) = first.rsplit_once("  (cost=0.00..").context(lines.clone())?;
    ensure!(cost.ends_with(" width=4)"), "{lines}");
    let without = explained("explain (costs off, verbose) select id from item")?;
    ensure!(!without.contains("cost="), "{without}");
    let analyzed = explained("explain (analyze, format json, costs off) select id from item")?;
    let whole: serde_json::Value = serde_json::from_str(&analyzed)?;
    ensure!(whole[0]["Plan"].get("Plan Rows").is_none(), "{analyzed}");
    ensure!(whole[0]["Notes"].to_string().contains("500 tuples alive"), "{analyzed}");
    Ok(())
}

/// The messages that a COPY in binary form comes in.
async fn copied(host: &std::path::Path, port: u16, statement: &str) -> Result<Vec<Vec<u8>>> {
    let mut config = tokio_postgres::Config::new();
    config.host_path(host).port(port).user("postgres").dbname("postgres");
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    let messages: Vec<_> = client.copy_out(statement).await?.try_collect().await?;
    Ok(messages.into_iter().map(|bytes| bytes.to_vec()).collect())
}

/// Clients for columns take the header and the first row for one message, as the server sends them.
#[test]
fn copy_in_binary_form_comes_in_the_messages_of_the_server() -> Result<()> {
    const COPIES: [&str; 5] = [
        "copy (select 7 union all select 8) to stdout (format binary)",
        "copy (select 7 where false) to stdout (format \"binary\")",
        "copy item (id, name) to stdout (format 'binary')",
        "copy orders to stdout with binary",
        "copy orders to stdout (format \"csv\", header)",
    ];
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let mut cluster = cluster(&install)?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let all = |host: &std::path::Path, port| {
        let each = COPIES.iter().map(|statement| runtime.block_on(copied(host, port, statement)));
        each.collect::<Result<Vec<_>>>()
    };
    let own = cluster.psql_command("postgres");
    let of = |wanted: &str| {
        let found = own.get_envs().find(|(name, _)| *name == wanted).and_then(|(_, value)| value);
        found.map(|value| value.to_string_lossy().into_owned()).with_context(|| wanted.to_owned())
    };
    let expected = all(std::path::Path::new(&of("PGHOST")?), of("PGPORT")?.parse()?)?;
    cluster.stop()?;
    let served = Served::start(&cluster, &[])?;
    let found = all(served.directory.path(), 5432)?;
    for ((found, expected), statement) in found.iter().zip(&expected).zip(COPIES) {
        ensure!(found == expected, "{statement}: {found:?}\n{expected:?}");
    }
    Ok(())
}

/// What a live server asks of the files by its foreign tables.
const FOREIGN: &str = "
select count(*) from far.item;
prepare by_key (int) as select id, name from far.item where id = $1;
execute by_key (7);
execute by_key (8);
select id from far.item where id = any (array(select 3 union all select 4)) order by 1;
select i.id, o.state from far.item i left join far.orders o on i.id = o.id where i.id between 9 and 12 order by 1;
select o, i from far.orders o left join far.item i on i.id = o.id + 495 order by o.id limit 7;
select kept, count(*), max(name) from far.item group by kept having count(*) > 1 order by kept;
begin; declare c scroll cursor for select id from far.item where id < 6 order by id; fetch last from c; fetch prior from c; commit;
";

#[test]
fn a_live_server_reads_the_files_by_foreign_tables() -> Result<()> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let mut cluster = cluster(&install)?;
    let local = FOREIGN.replace("far.", "");
    let settings = "set plan_cache_mode = force_generic_plan;\n";
    let expected = asked(cluster.psql_command("postgres"), &format!("{settings}{local}"))?;
    cluster.stop()?;
    let served = Served::start(&cluster, &[])?;
    // The live server is another user of this machine.
    for (path, mode) in [(served.directory.path().to_owned(), 0o755), (served.socket(), 0o777)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    }
    let live = TestCluster::create(&install, &ClusterOptions::default())?;
    if live.psql("postgres", "create extension postgres_fdw").is_err() {
        skipped("no postgres_fdw on this machine");
        return Ok(());
    }
    live.psql("postgres", "create type state as enum ('paid', 'open'); create schema far")?;
    let host = served.directory.path().display();
    for remote_estimate in ["false", "true"] {
        live.psql(
            "postgres",
            &format!(
                "drop server if exists files cascade;
                 create server files foreign data wrapper postgres_fdw options
                     (host '{host}', port '5432', dbname 'postgres', use_remote_estimate '{remote_estimate}');
                 create user mapping for current_user server files options (user 'postgres', password_required 'false');
                 import foreign schema public from server files into far"
            ),
        )?;
        let found = asked(live.psql_command("postgres"), &format!("{settings}{FOREIGN}"))?;
        ensure!(found.replace("far.", "") == expected, "{found}\n{expected}");
        live.psql("postgres", "analyze far.item")?;
        let rows = live
            .psql("postgres", "select reltuples from pg_class where oid = 'far.item'::regclass")?;
        ensure!(rows.trim() == "500", "the sizes of foreign tables are known: {rows}");
    }
    Ok(())
}
