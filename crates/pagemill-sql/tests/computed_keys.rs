//! Indexes over expressions and partial indexes, held against the server's answers: after updates in and out of place, deletes, a
//! rollback and vacuum, on a table and on a partitioned one.
//!
//! Invariants under test: whichever way a table is read, the answer is the server's; an index is searched where a statement says
//! what it is over, and a partial one only where the statement wants none of the rows that it leaves out.

use std::process::Command;

use anyhow::{Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, each_of};

const TABLES: &str = r#"
    create table people(id int primary key, email text, name varchar(40), status text, level varchar(10), gone_at timestamp,
        amount numeric(12,2), j jsonb, at timestamp, on_duty bool, a int, b int, "Odd Name" int) with (autovacuum_enabled = off);
    create function fill(first int, last int) returns void language sql as $$
        insert into people select g, case when g % 400 = 3 then null else 'User' || g || '@Example.com' end,
            'Name ' || lpad((h % 6000)::text, 5, '0'),
            case when h % 300 = 0 then 'failed' when h % 100 = 0 then 'pending' when h % 3 = 0 then 'active' else 'done' end,
            case when h % 970 = 0 then 'gold' when h % 890 = 0 then 'silver' else 'none' end,
            case when h % 150 = 0 then null else timestamp '2024-01-01' + g * interval '1 minute' end,
            case when h % 211 = 0 then null else (h % 100000) / 100.0 end,
            jsonb_build_object('k', h % 5000, 't', 'x' || h % 7000), timestamp '2024-01-01' + (h % 12000) * interval '1 hour',
            h % 120 = 0, h % 3000, h % 77, h % 2000
        from (select g, hashint4(g) & 2147483647 as h from generate_series(first, last) g) s $$;
    create function label(text, int) returns text immutable language sql as $$ select upper($1) || ':' || $2 $$;
    select fill(1, 12000);
    create unique index on people (lower(email));
    create index on people (lower(name) text_pattern_ops);
    create index on people ((j ->> 't'));
    create index on people (((j ->> 'k')::int) desc);
    create index on people ((at::date));
    create index on people (date_trunc('hour', at), id);
    create index on people ((a + b), "Odd Name");
    create index on people ((coalesce(amount, -1)) nulls first);
    create index on people ((-a));
    create index on people ((a % 2 = 0), a);
    create index on people (label(status, a));
    create index p_failed on people (id) where status = 'failed';
    create index p_waiting on people (at) where status in ('pending', 'failed');
    create index p_level on people (level) where level in ('gold', 'silver');
    create index p_here on people (a) where gone_at is null;
    create index p_large on people (amount) where amount > 990;
    create index p_duty on people (b) where on_duty;
    create index p_known on people (lower(email)) where email is not null and status <> 'done' and status <> 'active';
    create index p_late on people (at) where at > date '2025-05-01';
    create index p_rare on people (a) where level <> 'none';
    create index p_odd on people ("Odd Name") where "Odd Name" between 5 and 20 or a < 10;
    delete from people where id % 17 = 0;
    update people set status = 'failed' where id % 501 = 0;
    update people set b = b + 1, "Odd Name" = "Odd Name" + 1 where id % 13 = 0;
    -- In place, as no index has the column.
    update people set j = j || '{"more": 1}' where id % 7 = 0;

    create table parts(k int, email text, state text) partition by range (k);
    create table parts_1 (state text, extra int, email text, k int);
    alter table parts_1 drop column extra;
    alter table parts attach partition parts_1 for values from (0) to (5000);
    create table parts_2 partition of parts for values from (5000) to (9000);
    insert into parts select g, 'U' || g, case when g % 700 = 0 then 'bad' else 'good' end from generate_series(1, 8999) g;
    create index on parts (lower(email));
    create index parts_bad on parts (k) where state = 'bad';
"#;

/// Conditions, each with the beginning of the name of the index that rows are found by; empty where none is to be searched.
const CONDITIONS: [(&str, &str); 61] = [
    ("lower(email) = 'user77@example.com'", "people_lower_idx"),
    ("'user77@example.com' = lower(email)", "people_lower_idx"),
    ("lower(email) = lower('USER78@EXAMPLE.COM')", "people_lower_idx"),
    ("lower(email) in ('user77@example.com', 'user9@example.com', 'x')", "people_lower_idx"),
    ("lower(email) = any('{user77@example.com,user9@example.com}')", "people_lower_idx"),
    ("lower(email) is null", "people_lower_idx"),
    ("lower(email) = 'user77@example.com' and 10 / (id - 78) < 0", "people_lower_idx"),
    ("upper(email) = 'USER77@EXAMPLE.COM'", ""),
    ("email = 'User77@Example.com'", ""),
    ("lower(name) like 'name 0077%'", "people_lower_idx1"),
    ("lower(name) = 'name 00770'", "people_lower_idx1"),
    ("lower(name) ~~ 'name 0077_'", "people_lower_idx1"),
    ("j ->> 't' = 'x55'", "people_expr_idx"),
    ("j ->> 'k' = '55'", ""),
    ("(j ->> 'k')::int = 55", "people_int4_idx"),
    ("(j ->> 'k')::int between 50 and 52", "people_int4_idx"),
    ("(j ->> 'k')::int < 2 and b > 5", "people_int4_idx"),
    ("(j ->> 'k')::bigint = 55", ""),
    ("at::date = '2024-01-03' and at::time < '06:00'", "people_at_idx"),
    ("cast(at as date) > '2025-05-10'", "people_at_idx"),
    ("date_trunc('hour', at) = '2024-01-03 05:00'", "people_date_trunc_id_idx"),
    ("date_trunc('hour', at) = '2024-01-03 05:00' and id < 900", "people_date_trunc_id_idx"),
    ("date_trunc('day', at) = '2024-01-03'", ""),
    ("a + b = 100", "people_expr_Odd Name_idx"),
    ("a + b = 100 and \"Odd Name\" > 500", "people_expr_Odd Name_idx"),
    ("b + a = 100", ""),
    ("a - b = 100", ""),
    ("coalesce(amount, -1) = -1", "people_coalesce_idx"),
    ("coalesce(amount, -1) between 0 and 2", "people_coalesce_idx"),
    ("coalesce(amount, 0) = 0", ""),
    ("-a > -3", "people_expr_idx1"),
    ("a % 2 = 0 and a between 50 and 54", "people_expr_a_idx"),
    ("label(status, a) = 'FAILED:300'", "people_label_idx"),
    ("status = 'failed'", "p_failed"),
    ("status = 'failed' and id < 3000", "p_failed"),
    ("status = 'failed' or status = 'none'", ""),
    ("status = 'failed' and a > 5 and lower(name) <> 'x'", "p_failed"),
    ("status in ('failed', 'pending') and at < '2024-03-02'", "p_waiting"),
    ("status = 'pending' and at < '2024-03-02'", "p_waiting"),
    ("status = 'pending'", "p_waiting"),
    ("status in ('failed', 'pending', 'done') and at < '2024-01-01 00:30'", ""),
    ("level = 'gold'", "p_level"),
    ("level = any('{gold,silver}'::text[])", "p_level"),
    ("level = any(array['gold'::varchar, 'silver'::varchar]::text[]) and a < 500", "p_level"),
    ("level in ('gold', 'none')", ""),
    ("gone_at is null", "p_here"),
    ("gone_at is null and a < 900", "p_here"),
    ("gone_at is not null and a = 300", ""),
    ("amount > 995", "p_large"),
    ("amount >= 995.5 and amount < 996", "p_large"),
    ("amount > 980 and amount < 981", ""),
    ("at > date '2025-05-13' and id > 100", "p_late"),
    ("level <> 'none'", "p_rare"),
    ("level <> 'none' and upper(name) like '%7'", "p_rare"),
    ("on_duty and b = 5", "p_duty"),
    ("on_duty", "p_duty"),
    ("not on_duty and b = 5", ""),
    ("email > 'User5' and status = 'failed'", "p_"),
    ("email like 'User5%' and status = 'pending'", "p_"),
    ("\"Odd Name\" between 5 and 20", "p_odd"),
    ("(a < 10) and b < 50", "p_odd"),
];

const WHOLE: [&str; 12] = [
    "select min(id), max(id), count(*) from people where lower(email) >= 'user9'",
    "select email from people order by lower(email) limit 5",
    "select email from people order by lower(email) desc nulls last, id limit 5",
    "select max(lower(email)), min(lower(email)) from people",
    "select id, at from people where status = 'pending' order by at desc, id limit 3",
    "select id from people where gone_at is null and a > 100 order by a, id limit 4",
    "select (j ->> 'k')::int as k, id from people order by (j ->> 'k')::int desc, id limit 3",
    "select min(coalesce(amount, -1)) from people where a > 5",
    "select k from parts where lower(email) in ('u77', 'u7007') order by 1",
    "select k, state from parts where state = 'bad' order by k",
    "select k from parts where state = 'bad' and k > 8000 order by k",
    "select email from parts order by lower(email) desc limit 3",
];

struct Indexed {
    cluster: TestCluster,
    statements: Vec<String>,
    known: Vec<String>,
}

impl Indexed {
    fn new(install: &PgInstall) -> Result<Self> {
        let mut cluster = TestCluster::create(install, &ClusterOptions::default())?;
        cluster.psql("postgres", TABLES)?;
        cluster.psql("postgres", "begin; select fill(20001, 21000); rollback")?;
        cluster.psql("postgres", "vacuum analyze people")?;
        // Behind what vacuum has seen.
        cluster.psql("postgres", "delete from people where id % 23 = 0; analyze parts")?;
        let of = |(condition, _): &(&str, &str)| {
            format!("select count(*), sum(id), min(email) from people where {condition}")
        };
        let whole = WHOLE.iter().map(|statement| (*statement).to_owned());
        let statements: Vec<String> = CONDITIONS.iter().map(of).chain(whole).collect();
        let ask = |statement: &String| {
            cluster.psql("postgres", &format!("copy ({statement}) to stdout (format csv, header)"))
        };
        let known = statements.iter().map(ask).collect::<Result<_>>()?;
        cluster.stop()?;
        Ok(Self { cluster, statements, known })
    }

    fn answered(&self, statement: &str) -> Result<String> {
        let mut program = Command::new(env!("CARGO_BIN_EXE_pagemill-sql"));
        program.args(["sql", "-d", "postgres", "--format", "csv", "-D"]);
        let output = program.arg(self.cluster.data_dir()).arg(statement).output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{statement}: {errors}");
        Ok(String::from_utf8(output.stdout)?)
    }

    /// How the rows of a statement are found.
    fn path(&self, statement: &str) -> Result<String> {
        let told = self.answered(&format!("explain analyze {statement}"))?;
        let path = told.split("access=").nth(1).unwrap_or_default();
        Ok(path.split(", metrics").next().unwrap_or_default().to_owned())
    }
}

#[test]
fn what_an_index_computes_is_looked_up_in_it() {
    each_of(&PgInstall::spread(), |install| {
        let indexed = Indexed::new(install)?;
        let found = indexed.answered(&indexed.statements.join(";"))?;
        let mut found = found.lines();
        for (statement, known) in indexed.statements.iter().zip(&indexed.known) {
            let known: Vec<&str> = known.lines().collect();
            let found: Vec<&str> = found.by_ref().take(known.len()).collect();
            ensure!(known == found, "{statement}: {found:?} in place of {known:?}");
        }
        ensure!(found.next().is_none(), "more rows than the server's");
        let mut others = Vec::new();
        for ((condition, index), statement) in CONDITIONS.iter().zip(&indexed.statements) {
            let path = indexed.path(statement)?;
            let found = path.strip_prefix("index ").and_then(|found| found.split(", ").next());
            let is_it = match *index {
                "" => found.is_none(),
                prefix => found.is_some_and(|found| found.starts_with(prefix)),
            };
            if !is_it {
                others.push(format!("{condition}: {path} in place of {index}"));
            }
        }
        for statement in &WHOLE[1..] {
            let path = indexed.path(statement)?;
            if !path.starts_with("index ") {
                others.push(format!("{statement}: {path}"));
            }
        }
        ensure!(others.is_empty(), "{}", others.join("\n"));
        Ok(())
    });
}
