//! Partitions that are left out by their bounds, held against a server: the same rows under many conditions, and fewer parts
//! looked at.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};

const TABLES: &str = r#"
create type mood as enum ('sad', 'ok', 'happy');
create table r1(id int, a int) partition by range(a);
create table r1_low partition of r1 for values from (minvalue) to (0);
create table r1_0 partition of r1 for values from (0) to (100);
create table r1_1 partition of r1 for values from (100) to (200);
create table r1_high partition of r1 for values from (500) to (maxvalue);
create table r1_rest partition of r1 default;
insert into r1 select i, i * 3 - 400 from generate_series(1, 400) i;
insert into r1 values (1001, null), (1002, 2147483647), (1003, -2147483648);

create table r2(id int, a int, b int) partition by range(a, b);
create table r2_0 partition of r2 for values from (minvalue, minvalue) to (10, 5);
create table r2_1 partition of r2 for values from (10, 5) to (10, 50);
create table r2_2 partition of r2 for values from (10, 50) to (20, minvalue);
create table r2_3 partition of r2 for values from (20, minvalue) to (20, maxvalue);
create table r2_4 partition of r2 for values from (30, 0) to (maxvalue, maxvalue);
create table r2_rest partition of r2 default;
insert into r2 select a * 100 + b, a, b from generate_series(0, 40) a, generate_series(0, 60, 5) b;
insert into r2 values (9001, 10, null), (9002, null, 10), (9003, null, null);

create table l1(id int, s text collate "C") partition by list(s);
create table l1_ab partition of l1 for values in ('a', 'b', 'Zebra');
create table l1_null partition of l1 for values in (null);
create table l1_c partition of l1 for values in ('c', 'cc');
create table l1_rest partition of l1 default;
insert into l1 select i, (array['a', 'b', 'Zebra', 'c', 'cc', 'd', '', null])[i % 8 + 1] from generate_series(1, 200) i;
create table l2(id int, a int) partition by list(a);
create table l2_n partition of l2 for values in (1, 3, null);
create table l2_m partition of l2 for values in (2, 7);
insert into l2 select i, (array[1, 3, null, 2, 7])[i % 5 + 1] from generate_series(1, 100) i;

create table d1(id int, d date, k text) partition by range(d);
create table d1_21 partition of d1 for values from ('2021-01-01') to ('2022-01-01') partition by list(k);
create table d1_21_x partition of d1_21 for values in ('x');
create table d1_21_rest partition of d1_21 default;
create table d1_22(k text, gone int, d date, id int);
alter table d1_22 drop column gone;
alter table d1 attach partition d1_22 for values from ('2022-01-01') to ('2023-01-01');
create table d1_end partition of d1 for values from ('2023-01-01') to ('infinity');
insert into d1 select i, date '2021-01-01' + i * 3, (array['x', 'y', null])[i % 3 + 1] from generate_series(1, 300) i;

create table h1(id int, a int, s text) partition by hash(a, s);
create table h1_0 partition of h1 for values with (modulus 3, remainder 0);
create table h1_1 partition of h1 for values with (modulus 3, remainder 1);
create table h1_2 partition of h1 for values with (modulus 3, remainder 2);
insert into h1 select i, nullif(i % 9, 8), (array['p', 'q', null, ''])[i % 4 + 1] from generate_series(1, 300) i;
create table h2(id int, a bigint) partition by hash(a);
create table h2_0 partition of h2 for values with (modulus 4, remainder 0);
create table h2_1 partition of h2 for values with (modulus 4, remainder 1);
create table h2_2 partition of h2 for values with (modulus 4, remainder 2);
create table h2_3 partition of h2 for values with (modulus 4, remainder 3);
insert into h2 select i, i * 1000003 - 90000000 from generate_series(1, 200) i;

create table e1(id int, m mood) partition by range(m);
create table e1_0 partition of e1 for values from ('sad') to ('happy');
create table e1_1 partition of e1 for values from ('happy') to (maxvalue);
insert into e1 select i, (array['sad', 'ok', 'happy'])[i % 3 + 1]::mood from generate_series(1, 60) i;
create table t1(id int, s text collate "C") partition by range(s);
create table t1_0 partition of t1 for values from (minvalue) to ('M');
create table t1_1 partition of t1 for values from ('M') to ('a');
create table t1_2 partition of t1 for values from ('a') to (maxvalue);
insert into t1 select i, chr(32 + i) || 'x' from generate_series(1, 90) i;
create table n1(id int, v numeric) partition by range(v);
create table n1_0 partition of n1 for values from (minvalue) to (1.50);
create table n1_1 partition of n1 for values from (1.50) to (maxvalue);
insert into n1 select i, i / 10.0 from generate_series(-50, 50) i;
create table x1(id int, a int) partition by range((a % 10));
create table x1_0 partition of x1 for values from (minvalue) to (5);
create table x1_1 partition of x1 for values from (5) to (maxvalue);
insert into x1 select i, i from generate_series(1, 100) i;
create table z1(id int, at timestamptz, ok bool) partition by range(at);
create table z1_0 partition of z1 for values from ('2020-01-01') to ('2021-01-01') partition by list(ok);
create table z1_0_t partition of z1_0 for values in (true);
create table z1_0_f partition of z1_0 for values in (false, null);
create table z1_1 partition of z1 for values from ('2021-01-01') to ('infinity');
insert into z1 select i, timestamptz '2020-01-01' + i * interval '1 day', (array[true, false, null])[i % 3 + 1] from generate_series(0, 700) i;
checkpoint;
"#;

/// A table, and conditions on it.
const CONDITIONS: [(&str, &str); 13] = [
    (
        "r1",
        "a = 50; a = 100; a = 99; a = 0; a = -1; a = 300; a = 2147483647; a in (5, 150, 300); a < 0; a <= 0; a > 199; a >= 200; \
         a between 100 and 199; a <> 50; a is null; a is not null; a = 50 or a is null; not (a < 100); a > 100 and a < 100; \
         a = 5 and id < 100; a = 5 or id = 1001; a < 100 and a > 90 or a = 620; a is distinct from 50; a = 7.0; a = 50::bigint; \
         (a = 50) is not true; (a < 0) is null; a not in (1, 2, 3); a = null; case when a < 0 then true else a > 600 end",
    ),
    (
        "r2",
        "a = 10; a = 10 and b = 5; a = 10 and b = 50; a = 10 and b < 5; a = 20; a = 20 and b = 0; a = 15 and b = 0; b = 30; a > 20; \
         a >= 30 and b > 10; a = 10 and b is null; a is null; a is null and b is null; a = 30 and b = 0; a < 10; a <= 10 and b > 45; \
         a between 9 and 11 and b in (0, 60)",
    ),
    (
        "l1",
        "s = 'a'; s = 'c'; s = 'zz'; s is null; s is not null; s < 'a'; s > 'b'; s in ('a', 'cc'); s like 'c%'; s <> 'a'; s = ''; \
         s = 'a' or s is null; s not in ('a', 'b', 'Zebra'); s >= 'Zebra' and s < 'b'",
    ),
    (
        "l2",
        "a = 1; a = 2; a is null; a is not null; a > 3; a <> 2; a not in (2, 7); a = 1 or a is null; a is distinct from 2; a < 1",
    ),
    (
        "d1",
        "d = '2021-06-01'; d < '2022-01-01'; d >= '2022-01-01' and d < '2022-02-01'; d = '2022-01-01'; d > '2023-05-05'; k = 'x'; \
         k = 'y'; k is null; k = 'x' and d < '2021-03-01'; d < '2021-12-31' and k <> 'x'; d = 'infinity'; d < '2020-01-01'",
    ),
    (
        "h1",
        "a = 1; a = 1 and s = 'p'; a = 1 and s = ''; a in (1, 2, 3) and s in ('p', 'q'); a is null and s = 'p'; s = 'q'; \
         a = 7 and s is null; a = 3 and s = 'q' and id < 50",
    ),
    (
        "h2",
        "a = -88999997; a = 0; a = 11000630; a in (11000630, -88999997); a = 11000630::int; a > 0; a is null",
    ),
    (
        "e1",
        "m = 'sad'; m = 'happy'; m > 'ok'; m < 'ok'; m >= 'happy'; m <> 'ok'; m in ('sad', 'happy'); m is null",
    ),
    (
        "t1",
        "s = 'Mx'; s < 'M'; s >= 'a'; s = 'ax'; s > 'Zx' and s < 'ax'; s like 'M%'; s like 'a%'; s in ('Ax', 'zx')",
    ),
    ("n1", "v = 1.5; v < 1.5; v >= 1.50; v = 3; v > 4 or v < -4"),
    ("x1", "a = 7; a = 12; a < 5; a > 95"),
    (
        "z1",
        "at = '2020-05-01'; at < '2020-02-01'; at >= '2021-01-01'; at = '2021-01-01'; ok; not ok; ok is null; ok is not true; \
         ok and at < '2020-03-01'; ok is false and at < '2020-03-01'; at between '2020-12-31' and '2021-01-01'",
    ),
    ("r1 natural join l2", "r1.a = 1; l2.a = 7; r1.a > 0 and l2.a is not null"),
];

fn statements() -> Vec<String> {
    let of = |(table, conditions): &(&str, &'static str)| {
        let table = table.to_string();
        let id = if table.contains(' ') { "r1.id" } else { "id" }.to_owned();
        conditions.split(';').map(move |condition| {
            format!(
                "select count(*), min({id}), max({id}), sum({id}) from {table} where {condition}"
            )
        })
    };
    CONDITIONS.iter().flat_map(of).collect()
}

struct Program<'c>(&'c TestCluster);

impl Program<'_> {
    /// The last lines of the answers, one for each statement, but for headings.
    fn answers(&self, statements: &[String]) -> Result<Vec<String>> {
        let mut program = Command::new(env!("CARGO_BIN_EXE_pagemill-sql"));
        program.arg("sql").arg("-D").arg(self.0.data_dir());
        program.args(["-d", "postgres", "--format", "csv", "-c", &statements.join(";\n")]);
        let output = program.output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{errors}");
        let text = String::from_utf8(output.stdout)?;
        Ok(text.lines().skip(1).step_by(2).map(|line| line.replace(',', "|")).collect())
    }

    /// How many partitions a statement looks at, and how many it does not.
    fn partitions(&self, condition: &str) -> Result<(u32, u32)> {
        let mut program = Command::new(env!("CARGO_BIN_EXE_pagemill-sql"));
        program.arg("sql").arg("-D").arg(self.0.data_dir());
        let statement = format!("explain select id from {condition}");
        let output = program.args(["-d", "postgres", "--format", "csv", &statement]).output()?;
        let text = String::from_utf8(output.stdout)?;
        let (_, found) = text.split_once(", partitions=").context(text.clone())?;
        let mut words = found.split([' ', ',']).filter(|word| !word.is_empty());
        let mut number =
            |at: usize| words.nth(at).context(text.clone())?.parse().context("a number");
        Ok((number(0)?, number(2)?))
    }
}

#[test]
fn partitions_are_left_out_and_no_row_is() -> Result<()> {
    let install = PgInstall::find(15).context("no PostgreSQL 15")?;
    let options = ClusterOptions { locale: "C".to_owned(), ..ClusterOptions::default() };
    let mut cluster = TestCluster::create(&install, &options)?;
    cluster.psql("postgres", &format!("set timezone = 'UTC'; {TABLES}"))?;
    let statements = statements();
    let known = format!("set timezone = 'UTC'; {}", statements.join(";\n"));
    let known = cluster.psql("postgres", &known)?;
    cluster.stop()?;
    let program = Program(&cluster);
    let answers = program.answers(&statements)?;
    let known: Vec<&str> = known.lines().filter(|line| line.contains('|')).collect();
    assert_eq!((known.len(), answers.len()), (statements.len(), statements.len()));
    for ((statement, known), answer) in statements.iter().zip(known).zip(&answers) {
        assert_eq!(answer, known, "{statement}");
    }

    // The default partition is always looked at.
    for (condition, looked_at, pruned) in [
        ("r1", 5, 0),
        ("r1 where a = 50", 2, 3),
        ("r1 where a = 100", 2, 3),
        ("r1 where a < 0", 2, 3),
        ("r1 where a is null", 1, 4),
        ("r1 where a between 150 and 600", 3, 2),
        ("r1 where 100 / id > 3", 5, 0),
        ("r2 where a = 10 and b = 60", 3, 3),
        ("r2 where a = 20", 2, 4),
        ("l1 where s = 'c'", 2, 2),
        ("l1 where s is null", 2, 2),
        ("l2 where a = 2", 1, 1),
        ("d1 where d = '2022-05-05'", 1, 3),
        ("d1 where d = '2021-05-05' and k = 'x'", 2, 2),
        ("h1 where a = 1 and s = 'p'", 1, 2),
        ("h1 where a = 1", 3, 0),
        ("h2 where a = 11000630", 1, 3),
        ("e1 where m = 'sad'", 1, 1),
        ("t1 where s = 'bx'", 1, 2),
        ("x1 where a = 7", 2, 0),
        ("z1 where ok and at < '2020-03-01'", 1, 2),
    ] {
        assert_eq!(program.partitions(condition)?, (looked_at, pruned), "{condition}");
    }
    Ok(())
}
