//! Aggregates of rows that are held against the row around by equality and by more than that: they are joins, and answer as the
//! server answers, NULLs on either side, groups without rows and joins within the query included.
//!
//! Invariant under test: the answer is the server's, and no query runs for each row.

use std::process::Command;

use anyhow::{Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, each_of};

const TABLES: &str = "
    create table w (id int primary key, k int, s text, n numeric, d date, ts timestamptz, b bool, j jsonb);
    insert into w select i, nullif(i % 37, 5), (array['a', 'b', 'cc', 'dd', null])[1 + i % 5],
        case when i % 11 = 0 then null when i % 3 = 0 then (i % 50)::numeric(10,2) else (i % 50)::numeric end,
        case when i % 13 = 0 then null else date '2024-01-01' + i % 60 end,
        timestamptz '2024-01-01 00:00+00' + (i % 300) * interval '1 hour', nullif(i % 3, 2) = 1,
        jsonb_build_object('k', i % 9) from generate_series(1, 1200) i;
    create index on w (k, id);
    create table x as select id as xid, k as xk from w where id % 3 = 0;
    analyze w; analyze x;
";

/// What is held against the row around, beside a key.
const CONDITIONS: [&str; 12] = [
    "i.k = o.k and i.id < o.id",
    "i.k = o.k and i.id <> o.id and i.s <> o.s",
    "i.s = o.s and i.n between o.n - 3 and o.n",
    "i.d = o.d and (i.id < o.id or o.s is null)",
    "i.n = o.n and i.ts < o.ts",
    "i.b = o.b and i.k = o.k and i.b is distinct from o.b",
    "i.k is not distinct from o.k and i.s = o.s and i.id > o.id",
    "i.k = (o.j ->> 'k')::int and i.d >= o.d - 7 and i.d < o.d and i.b",
    "lower(i.s) = lower(o.s) and case when o.b then i.id > o.id else i.id < o.id end",
    "i.k + 1 = o.k and coalesce(i.id, 0) >= coalesce(o.id, 0) and o.k > 3",
    "i.ts = o.ts and not (i.id > o.id)",
    "i.k = o.k and i.k in (o.k, o.k + 1) and i.s like o.s || '%'",
];

const AGGREGATES: [&str; 12] = [
    "count(*)",
    "sum(i.n)",
    "max(i.ts)",
    "coalesce(sum(i.k), -1)",
    "count(distinct i.s)",
    "string_agg(i.s, ',' order by i.id)",
    "count(*) + 1",
    "case when count(*) > 3 then max(i.id) end",
    "count(*) filter (where i.k > 10)",
    "bool_or(i.b)",
    "min(i.n + 0.5)",
    "count(*)::text || 'x'",
];

/// Where the aggregated rows are of, and those around.
const SOURCES: [(&str, &str); 4] = [
    ("w i", "w o"),
    ("x i0 join w i on i.id = i0.xid", "(select * from w where k <> 3) o"),
    ("w i left join x on x.xid = i.id", "w o left join x on x.xid = o.id + 1"),
    (
        "(select * from w where id % 2 = 0) i",
        "(select * from w union all select * from w where id < 20) o",
    ),
];

fn statements() -> Vec<String> {
    let mut all = Vec::new();
    for (number, condition) in CONDITIONS.iter().enumerate() {
        for (place, aggregate) in
            [0, 5, 7].map(|step| AGGREGATES[(number + step) % 12]).iter().enumerate()
        {
            let (from, around) = SOURCES[(number + place) % SOURCES.len()];
            let query = format!("(select {aggregate} from {from} where {condition})");
            all.push(match (number + place) % 6 {
                0 => format!("select o.id, {query} from {around} where o.id < 300 order by 1, 2"),
                1 => format!("select count(*), sum(o.id) from {around} where o.id > 200 and {query} is null"),
                2 => format!("select o.s, count({query}) from {around} group by o.s order by o.s"),
                3 => format!("select o.id, case when o.b then {query} end from {around} where o.id > 900 order by 1, 2"),
                4 => format!("select o.id, row_number() over (order by {query} nulls last, o.id) from {around} where o.id < 99 order by 1, 2"),
                _ => format!("select o.id from {around} where o.id < 500 order by {query} desc nulls last, o.id limit 20"),
            });
        }
        let exists = format!("exists (select 1 from w i where {condition})");
        all.push(format!(
            "select x, count(*) from (select {exists} x from w o) q group by x order by x"
        ));
    }
    all.push("select distinct on ((select count(*) from w i where i.k = o.k and i.id < o.id)) o.k from w o where o.k = 3".to_owned());
    all.push("select count(*) from w o where (select count(*) from w i where i.k = o.k and i.id < o.id) < 3 and (select sum(i.n) from w i where i.s = o.s and i.id > o.id) > 5".to_owned());
    all
}

#[test]
fn what_is_held_against_the_row_around_is_joined() {
    each_of(&PgInstall::spread(), |install| {
        let mut cluster = TestCluster::create(install, &ClusterOptions::default())?;
        cluster.psql("postgres", TABLES)?;
        let statements = statements();
        let ask = |statement: &String| {
            cluster.psql("postgres", &format!("copy ({statement}) to stdout (format csv, header)"))
        };
        let known = statements.iter().map(ask).collect::<Result<Vec<String>>>()?;
        cluster.stop()?;
        let answered = |statements: &[String]| -> Result<String> {
            let mut program = Command::new(env!("CARGO_BIN_EXE_pagemill-sql"));
            program
                .args(["sql", "-d", "postgres", "--format", "csv", "-D"])
                .arg(cluster.data_dir());
            let output = program.arg(statements.join(";")).output()?;
            let errors = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "{errors}");
            Ok(String::from_utf8(output.stdout)?)
        };
        let found = answered(&statements)?;
        let mut found = found.lines();
        for (statement, known) in statements.iter().zip(&known) {
            let known: Vec<&str> = known.lines().collect();
            let found: Vec<&str> = found.by_ref().take(known.len()).collect();
            ensure!(known == found, "{statement}: {found:?} in place of {known:?}");
        }
        ensure!(found.next().is_none(), "more rows than the server's");
        let explained: Vec<String> = statements.iter().map(|s| format!("explain {s}")).collect();
        let plans = answered(&explained)?;
        let nested: Vec<&str> = plans.lines().filter(|line| line.contains("query#")).collect();
        ensure!(nested.is_empty(), "queries run for each row:\n{}", nested.join("\n"));
        let joins = plans.matches("HashJoinExec").count();
        ensure!(joins > statements.len(), "only {joins} joins");
        Ok(())
    });
}
