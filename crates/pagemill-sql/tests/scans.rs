//! What scans read, by their own account, held against what the server knows of the same tables.
//!
//! So EXPLAIN ANALYZE tells what was done, and a condition in the scan leaves no row out and raises no other error.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};

/// Rows that live, were replaced or deleted; values in a TOAST table; more blocks than one read takes.
const TABLES: &str = "
    create extension pgstattuple;
    create table changed(id int, v text, n numeric(8,2), f float8) with (autovacuum_enabled = off);
    insert into changed select i, 'v' || i, i, i from generate_series(1, 20000) i;
    begin; delete from changed where id % 10 = 1; commit;
    begin; update changed set v = 'x' || id where id % 3 = 0; rollback;
    create table long(id int, doc text) with (autovacuum_enabled = off);
    alter table long alter doc set storage external;
    insert into long select i, repeat(md5(i::text), 100) from generate_series(1, 2000) i;
    create table tall as select i as id from generate_series(1, 300000) i;
    checkpoint;
";

struct Stopped {
    cluster: TestCluster,
}

/// What EXPLAIN ANALYZE tells of a scan.
#[derive(Debug, PartialEq, Eq)]
struct Account {
    blocks: u64,
    skipped: u64,
    alive: u64,
    dead: u64,
    removed: u64,
    toast: u64,
}

impl Stopped {
    fn answered(&self, statement: &str) -> Result<String> {
        let mut program = Command::new(env!("CARGO_BIN_EXE_pagemill-sql"));
        program.arg("sql").arg("-D").arg(self.cluster.data_dir());
        program.args(["-d", "postgres", "--format", "csv", statement]);
        let output = program.output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{statement}: {errors}");
        Ok(String::from_utf8(output.stdout)?)
    }

    fn account(&self, statement: &str) -> Result<Account> {
        self.account_of("", statement)
    }

    fn account_of(&self, table: &str, statement: &str) -> Result<Account> {
        let told = self.answered(&format!("explain analyze {statement}"))?;
        let scan = format!("Scan of public.{table}");
        let line = told.lines().find(|line| line.contains(&scan)).context(told.clone())?;
        let mut numbers = line.split([' ', ';']).filter_map(|word| word.parse::<u64>().ok());
        let mut next = || numbers.next().context(line.to_owned());
        let blocks = next()? + next()?;
        Ok(Account {
            blocks,
            skipped: next()?,
            alive: next()?,
            dead: next()?,
            removed: next()?,
            toast: next()?,
        })
    }
}

/// Numbers that the server answers with.
fn known(server: &TestCluster, statement: &str) -> Result<Vec<u64>> {
    let answer = server.psql("postgres", statement)?;
    Ok(answer.trim().split('|').map(str::parse).collect::<Result<_, _>>()?)
}

#[test]
fn a_scan_tells_what_it_read_and_reads_no_more_than_it_must() -> Result<()> {
    let install = PgInstall::find(15).context("no PostgreSQL 15")?;
    let mut cluster = TestCluster::create(&install, &ClusterOptions::default())?;
    cluster.psql("postgres", TABLES)?;
    let tuples = "select tuple_count, dead_tuple_count, table_len / 8192 from pgstattuple";
    let changed = known(&cluster, &format!("{tuples}('changed')"))?;
    let long = known(&cluster, &format!("{tuples}('long')"))?;
    cluster.stop()?;
    let stopped = Stopped { cluster };

    let (alive, dead, blocks) = (changed[0], changed[1], changed[2]);
    ensure!(alive == 18_000 && dead > 5_000, "{changed:?}");
    let all = Account { blocks, skipped: 0, alive, dead, removed: 0, toast: 0 };
    assert_eq!(stopped.account("select count(*) from changed")?, all);
    assert_eq!(stopped.account("select v from changed")?, all);
    let chosen = stopped.account("select v from changed where id between 100 and 109")?;
    assert_eq!(chosen, Account { removed: alive - 9, ..all });

    let few = stopped.account("select v from changed limit 5")?;
    assert!(few.blocks <= 16 && few.blocks + few.skipped == blocks, "{few:?}");
    let few = stopped.account("select v from changed where id > 50 limit 5")?;
    assert!(few.blocks <= 16 && few.blocks + few.skipped == blocks, "{few:?}");

    let (alive, blocks) = (long[0], long[2]);
    let all = Account { blocks, skipped: 0, alive, dead: 0, removed: 0, toast: 0 };
    assert_eq!(stopped.account("select id from long")?, all);
    let chosen = stopped.account("select doc, id from long where id in (17, 170, 1700)")?;
    assert_eq!(chosen, Account { removed: alive - 3, toast: 3, ..all });
    let chosen = stopped.account("select id from long where doc like '%0000%' and id < 10")?;
    assert_eq!(chosen.toast, 9);

    // The keys that a join was built on keep the other rows from it, unless one of them could fail before.
    let second = "l.doc like 'c81e728d9d4c2f636f067f89cc14862c%'";
    let joined = format!("select c.v from long l join changed c on c.id = l.id where {second}");
    assert_eq!(stopped.account_of("changed", &joined)?.removed, 17_999);
    let may_fail = format!("{joined} and 100 / c.id > 0");
    assert_eq!(stopped.account_of("changed", &may_fail)?.removed, 0);
    // One join that may not does not keep another from it.
    let beside = format!(
        "select a.v from ({joined}) a join (select 100 / id as n from long) f on a.v = f.n::text"
    );
    assert_eq!(stopped.account_of("changed", &beside)?.removed, 17_999);
    // Sums of exact numbers cannot fail, those of floating ones can.
    let summed = |of: &str| {
        format!(
            "select id from long l where {second} and 0 < (select {of} from changed c where c.id = l.id)"
        )
    };
    for of in ["sum(id)", "2.5 * sum(n)", "sum(n) - 1.25", "avg(n)"] {
        assert_eq!(stopped.account_of("changed", &summed(of))?.removed, 17_999, "{of}");
    }
    for of in ["sum(f)", "avg(f)", "sum(id + 1)", "1 / sum(n)"] {
        assert_eq!(stopped.account_of("changed", &summed(of))?.removed, 0, "{of}");
    }
    let failed = stopped.answered(&format!("{joined} and 100 / (c.id - 30) < 0"));
    let failed = failed.map_err(|error| error.to_string());
    assert!(failed.as_ref().is_err_and(|error| error.contains("division by zero")), "{failed:?}");
    // Of many batches: the first few are read before a row is known that is among the first.
    let first = "select id from tall order by id limit 3";
    assert!(stopped.account(first)?.removed > 0);
    Ok(())
}
