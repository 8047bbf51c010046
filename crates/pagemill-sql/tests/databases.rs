//! Statements over several databases and clusters: what is the same everywhere is used, all else stays where it is.
//!
//! No server answers such a statement, so the rows are few, and what has to come out is written beside it.

use std::process::{Command, Output};

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};

const OWN: &str =
    "create table orders(id int, amount numeric(8,2), tags text[], m text collate \"C\");
insert into orders values (1, 1.50, '{a}', 'x'), (2, 2.25, '{b}', 'y'), (3, null, null, null);
create type color as enum ('red','blue');
create table places(id int, c color); insert into places values (1, 'red');";

const SHOP: &str = "create schema s; create type color as enum ('blue','red'); create domain positive as int;
create table orders(id int primary key, amount numeric(8,2), c color, d positive, r regclass, tags text[], acl aclitem[]);
insert into orders values (1, 1.50, 'red', 1, 'pg_class', '{a}', null), (4, 9, 'blue', 2, null, null, null);
create table s.orders(id int, v text); insert into s.orders values (1, 'one'), (4, 'four');
create table base(a int); create table below() inherits (base);
insert into base values (1); insert into below values (2);";

const OTHER: &str = "create table orders(id int, who text, u text collate \"C\");
insert into orders values (2, 'Bob', 'b'), (1, 'Ann', 'a');";

struct Clusters {
    own: TestCluster,
    other: TestCluster,
}

impl Clusters {
    fn new() -> Result<Self> {
        let installs = PgInstall::two();
        let (first, last) = (PgInstall::find(15).context("no PostgreSQL 15")?, installs.last());
        let locale = |name: &str| ClusterOptions { locale: name.to_owned(), ..Default::default() };
        let mut own = TestCluster::create(&first, &locale("C"))?;
        own.psql("postgres", OWN)?;
        own.psql("postgres", "create database shop")?;
        own.psql("shop", SHOP)?;
        own.psql(
            "postgres",
            "create database ascii template template0 encoding 'SQL_ASCII' locale 'C'",
        )?;
        own.stop()?;
        let mut other = TestCluster::create(last.unwrap_or(&first), &locale("C.UTF-8"))?;
        other.psql("postgres", OTHER)?;
        other.stop()?;
        Ok(Self { own, other })
    }

    fn asked(&self, statement: &str) -> Result<Output> {
        let mut program = Command::new(env!("CARGO_BIN_EXE_pagemill-sql"));
        program.args(["sql", "-d", "postgres", "--format", "csv", "-D"]).arg(self.own.data_dir());
        let named = format!("other={}", self.other.data_dir().display());
        Ok(program.args(["--cluster", &named, statement]).output()?)
    }
}

#[test]
fn a_statement_asks_several_databases() -> Result<()> {
    let clusters = Clusters::new()?;
    for (statement, rows) in [
        ("select o.id, s.v from orders o join shop.s.orders s using (id)", "1,one\n"),
        (
            "select id, amount from orders except select id, amount from shop.public.orders order by id",
            "2,2.25\n3,\n",
        ),
        ("select * from shop.public.base order by a", "1\n2\n"),
        ("select * from only shop.public.base", "1\n"),
        (
            "select postgres.public.orders.id from postgres.public.orders where public.orders.id = 2",
            "2\n",
        ),
        (
            "select postgres.public.orders.amount, other.postgres.public.orders.who
             from orders, other.postgres.public.orders
             where postgres.public.orders.id = other.postgres.public.orders.id and
             other.postgres.public.orders.u < 'b'",
            "1.50,Ann\n",
        ),
        ("select who from other.postgres.public.orders where who = 'Bob'", "Bob\n"),
        ("select count(*) from shop.public.orders where id = 4", "1\n"),
        ("select o.tags from shop.public.orders o join orders p on p.tags = o.tags", "{a}\n"),
    ] {
        let output = clusters.asked(statement)?;
        let shown = String::from_utf8(output.stdout)?;
        let (_, shown) = shown.split_once('\n').unwrap_or_default();
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(shown == rows, "{statement}:\n{shown}{said}");
    }
    Ok(())
}

#[test]
fn what_stays_in_its_database_is_refused() -> Result<()> {
    let clusters = Clusters::new()?;
    for (statement, why) in [
        ("select c from shop.public.orders", "the column \"c\", of a type"),
        ("select d from shop.public.orders", "the column \"d\", of a type"),
        ("select r from shop.public.orders", "the column \"r\", of a type"),
        ("select acl from shop.public.orders", "the column \"acl\", of a type"),
        ("select * from shop.public.orders", "of a type that is not there in this database"),
        ("select 1 from places join shop.public.orders using (c)", "the column \"c\", of a type"),
        ("select 1 from places natural join shop.public.orders", "the column \"c\", of a type"),
        (
            "select who from other.postgres.public.orders order by 1",
            "collation of another database",
        ),
        ("select max(who) from other.postgres.public.orders", "collation of another database"),
        ("select upper(who) from other.postgres.public.orders", "collation of another database"),
        ("select 1 from ascii.public.t", "a database in SQL_ASCII beside one in UTF8"),
        ("select 1 from nowhere.public.t", "database \"nowhere\" does not exist"),
        ("select 1 from old.shop.public.t", "no cluster is named \"old\""),
        ("select 1 from other.postgres.nix.t", "schema \"nix\" does not exist"),
        ("select 1 from a.b.c.d.e", "too many dotted names"),
        ("select wrong.orders.id from orders", "missing FROM-clause entry for table \"orders\""),
        (
            "select orders.id from orders, shop.public.orders",
            "table reference \"orders\" is ambiguous",
        ),
    ] {
        let output = clusters.asked(statement)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(!output.status.success() && said.contains(why), "{statement}: {said}");
        ensure!(output.stdout.is_empty(), "{statement}: answered");
    }
    Ok(())
}
