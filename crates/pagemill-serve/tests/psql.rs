//! psql asks the files what it asked the server before, and prints the same.
//!
//! Both streams and the exit status are compared.

use std::process::{Command, Output};

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};

const TABLES: &str = "
    create domain code as varchar(5);
    create table kinds(id int primary key, name varchar(20), price numeric(8,2), at timestamptz, ok bool, doc jsonb,
        tags text[], c code, raw bytea, f float8, none int);
    insert into kinds select i, 'name '||i, i/3.0, '2024-01-01'::timestamptz + i * interval '1 hour', i % 2 = 0,
        jsonb_build_object('a', i), array['x', 'y '||i], 'c'||i%9, decode(md5(i::text), 'hex'), i/7.0, null
        from generate_series(1, 30000) i;
    create table heirs (more int) inherits (kinds);
    insert into heirs (id, more) values (-1, 1);
    create view seen as select id from kinds;
    create table bare ();
    insert into bare default values;
    create schema other;
    create table other.kinds as select 7 as only;
    checkpoint;
";

/// What both are asked, each in a session of its own.
const ASKED: [&str; 59] = [
    "select * from kinds order by id limit 20",
    "select count(*), sum(price), max(at) from kinds; select 1 as a, null as b, '' as c;; select 2",
    "select id, tags from kinds order by id",
    "select 1/0",
    "select unnest(tags) t, count(*) from kinds group by t order by t; select unnest(tags), ok, min(id) from kinds group by 1, 2 having count(*) > 1 order by 1, 2",
    "show lc_messages; show lc_monetary; show lc_numeric; show lc_time; show default_text_search_config; select current_setting('lc_time')",
    "select distinct on (ok, price) price, ok from kinds order by price desc nulls last limit 3; select distinct on (ok) ok, id from kinds order by ok, id",
    "select id / (id - 25000) from kinds order by 1 limit 2",
    "select 1; select nope; select 2",
    "begin; select 1; select 1/0; select 2; rollback; select 3",
    "begin; select 1; commit; start transaction; abort; commit",
    "set statement_timeout = '10s'; show statement_timeout; show timezone; reset statement_timeout; show DateStyle",
    "begin read only; insert into kinds(id) values (0)",
    " -- nothing",
    "select * from kinds where false",
    "copy kinds to stdout",
    "copy public.kinds (id, name, tags, doc, raw) to stdout with (format csv, header, delimiter ';')",
    "\\copy (select id, chr(9) || 'a\\b' || chr(10) || chr(11), null from kinds order by 1 limit 3) to stdout",
    "copy nope to stdout",
    "begin; declare c cursor for select id, tags from kinds order by id; fetch c; fetch 2 from c; move 1000 in c; fetch forward all from c; fetch c; close c",
    "begin; declare c cursor for select 1 as x; declare c cursor for select 2",
    "begin; declare c cursor for select 1; commit; begin; fetch c",
    "declare c cursor for select 1",
    "begin read only; copy kinds from stdin",
    "copy heirs (id, more) to stdout",
    "copy kinds (id) to stdout with (format csv)",
    "copy seen (id) to stdout",
    "copy bare to stdout; copy bare to stdout with (format csv)",
    "set time zone interval '1:30' hour to minute; select at from kinds where id = 1; show timezone; set time zone interval '-08:00' hour to minute; show timezone",
    "begin isolation level repeatable read; show transaction_isolation; commit and chain; show transaction_isolation; rollback; show transaction_isolation",
    "begin; set session characteristics as transaction isolation level serializable; commit; begin; show transaction_isolation; set transaction isolation level read uncommitted; show transaction_isolation; commit; show transaction_isolation; show default_transaction_isolation",
    "commit and chain",
    "set transaction isolation level serializable",
    "set default_transaction_isolation = 'bad'",
    "discard plans; discard sequences; discard temp; set plan_cache_mode = auto; set synchronous_commit = local; show synchronous_commit",
    "select current_setting('jit') as cur, set_config('jit', 'off', false) as new; show jit; select pg_advisory_unlock_all()",
    "select set_config(name, 'hex', false) from pg_show_all_settings() where name = 'bytea_output'; select set_config('work_mem', null, false)",
    "select set_config('search_path', 'other', true)",
    "begin; select set_config('search_path', 'other', true); select * from kinds; commit; show search_path",
    "set search_path to other, \"No Such\", '$user'; show search_path; select * from kinds; select 'kinds'::regclass, 'public.kinds'::regclass",
    "begin; set search_path = other; select count(*) from kinds; rollback; show search_path; select count(*) from kinds",
    "begin; set local search_path = other; select * from kinds; commit; show search_path; select current_schemas(true)",
    "begin; set search_path = other; commit; select * from kinds; select current_schema(), current_schemas(false)",
    "select set_config('search_path', 'other', false); select * from kinds; reset search_path; select count(*) from kinds",
    "set search_path = 'a b, c', D; show search_path",
    "set local search_path = other",
    "copy kinds to stdout with (format binary)",
    "copy (select id, null, name from kinds where id < 3 order by id) to stdout binary",
    "copy (select 1 where false) to stdout with (format 'binary', encoding 'utf8'); copy bare to stdout binary",
    "copy kinds to stdout (format binary, delimiter ';')",
    "copy (select id, name, null from kinds order by id limit 3) to stdout with (format csv, force_quote *, delimiter E'\\t')",
    "copy kinds (id, name, ok) to stdout with csv force quote id, ok header",
    "copy kinds (id, name) to stdout with (format csv, force_quote (\"Nope\"))",
    "copy kinds (id, name) to stdout with (format csv, force_quote (ok))",
    "copy kinds (id, name) to stdout with (force_quote (id))",
    "select pg_relation_filepath(o), pg_relation_filenode(o), pg_filenode_relation(0, pg_relation_filenode(o))
        from unnest(array['kinds', 'pg_class', 'pg_database', 'seen', 'kinds_pkey']::regclass[] || 1::regclass) o",
    "prepare p(int, text) as select id + $1, name || $2 from kinds where id = $1; execute p(3, '!'); execute p('4', null); deallocate p; execute p(1, 'x')",
    "prepare p as select 1; prepare p as select 2",
    "prepare p as select $1::int + 1; execute p(-1)",
];

/// Wrong statements, of which clients show where they are wrong.
const WRONG: [&str; 16] = [
    "select nope from kinds",
    "select id,\n  'ä', nope\nfrom kinds",
    "select 1;\n select k.nope from kinds k",
    "select id from kinds where name = 'x' and nope > 1",
    "select * from nowhere",
    "select * from kinds join other.nowhere n on true",
    "select id, 'x'::int from kinds",
    "select int 'x'",
    "select cast('2024-13-01' as date)",
    "select id, nofunction(id) from kinds",
    "select 'ä', pg_catalog.nofunction()",
    "select id from kinds group by nope",
    "select id from kinds order by nope",
    "select distinct on (id, name) id from kinds order by price, id",
    "select distinct on (id, name) id from kinds order by name, price",
    "select distinct on (id, name) id from kinds order by name, price, id",
];

fn client(mut command: Command, statement: &str) -> Result<Output> {
    // Tags are printed, too.
    command.args(["-A", "-v", "QUIET=off", "-c", statement]).env("PGTZ", "UTC");
    Ok(command.output()?)
}

fn served(cluster: &TestCluster, statement: &str) -> Result<Output> {
    served_with(cluster, &[], statement)
}

fn served_with(cluster: &TestCluster, flags: &[&str], statement: &str) -> Result<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill-serve"));
    command.args(["serve", "-D"]).arg(cluster.data_dir()).args(flags).arg("--exec");
    command.arg(cluster.install().psql()).args(["-X", "-v", "ON_ERROR_STOP=1"]);
    client(command, statement)
}

/// Places in the statement are the server's own.
fn without_places(errors: &[u8]) -> String {
    let errors = String::from_utf8_lossy(errors);
    let lines = errors.lines().filter(|line| !line.starts_with("LINE ") && line.trim() != "^");
    lines.map(|line| format!("{line}\n")).collect()
}

/// Which names come near is told in other words here.
fn without_hints(errors: &[u8]) -> String {
    let errors = String::from_utf8_lossy(errors);
    let lines = errors.lines().filter(|line| !line.starts_with("HINT: "));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn psql_prints_what_it_printed_of_the_server() -> Result<()> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let mut cluster = TestCluster::create(&install, &ClusterOptions::default())?;
    cluster.psql("postgres", TABLES)?;
    let ask = |statement| (statement, client(cluster.psql_command("postgres"), statement));
    let asked = ASKED.map(ask);
    let wrong = WRONG.map(ask);
    cluster.stop()?;
    for (statement, expected) in asked {
        let (expected, found) = (expected?, served(&cluster, statement)?);
        let text = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(text(&found), text(&expected), "{statement}");
        ensure!(found.stdout == expected.stdout, "{statement}: other bytes");
        let errors = without_places(&expected.stderr);
        assert_eq!(without_places(&found.stderr), errors, "{statement}");
        assert_eq!(found.status.code(), expected.status.code(), "{statement}");
    }
    for (statement, expected) in wrong {
        let (expected, found) = (expected?, served(&cluster, statement)?);
        assert_eq!(without_hints(&found.stderr), without_hints(&expected.stderr), "{statement}");
    }
    let failed = served(&cluster, "\\c nope")?;
    ensure!(without_places(&failed.stderr).contains("database \"nope\" does not exist"));
    Ok(())
}

/// A collation of which no version is recorded, as with a server on musl.
const OF_ANOTHER_LIBRARY: &str = "\
create collation strange (locale = 'C.UTF-8');
create table texts(t text collate strange);
insert into texts values ('b'), ('A'), ('a'), ('B');
update pg_collation set collcollate = 'en_US.utf8', collversion = null where collname = 'strange';
checkpoint";

#[test]
fn an_order_of_texts_that_is_taken_for_granted_is_told_once() -> Result<()> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let mut cluster = TestCluster::create(&install, &ClusterOptions::default())?;
    cluster.psql("postgres", OF_ANOTHER_LIBRARY)?;
    cluster.stop()?;
    let statement = "select t from texts order by t; select max(t) from texts";
    let refused = served(&cluster, statement)?;
    let said = String::from_utf8_lossy(&refused.stderr);
    ensure!(refused.stdout.is_empty() && said.contains("is not supported here"), "{said}");
    ensure!(said.contains("--text-order here"), "{said}");
    let answered = served_with(&cluster, &["--text-order", "bytes"], statement)?;
    let said = String::from_utf8_lossy(&answered.stderr);
    let rows = String::from_utf8_lossy(&answered.stdout);
    assert_eq!(rows, "t\nA\nB\na\nb\n(4 rows)\nmax\nb\n(1 row)\n", "{said}");
    let notice = "NOTICE:  texts in collation \"strange\" are ordered by their bytes";
    assert_eq!(said.matches(notice).count(), 1, "{said}");
    Ok(())
}
