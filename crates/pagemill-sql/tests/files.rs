//! CSV and Parquet files as tables: CSV as COPY reads it, and Parquet as `--format parquet` wrote it.
//!
//! What a statement gives of a table it has to give of the file that the table was written to.

use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};

const TABLES: &str = "create type mood as enum ('sad', 'ok');
create table all_types(id int, small int2, big int8, f4 real, f8 float8, n numeric, d2 numeric(9,2), t text, v varchar(9), c char(4),
  ok bool, day date, at timestamp, atz timestamptz, tm time, u uuid, b bytea, m mood, j jsonb, i interval);
insert into all_types select i, i, i * 10000000000, i / 3.0, sqrt(i), i / 7.0, i * 1.25, 'text ' || i, 'v' || i, 'c', i % 2 = 0,
  date '1999-12-25' + i, timestamp '1969-12-31 23:59:59.999999' + i * interval '1 year', timestamptz '2000-01-01' - i * interval '1 month',
  time '00:00:00.000001' + i * interval '1 second', md5(i::text)::uuid, decode('00ff', 'hex'), 'ok', '{\"a\": 1}', i * interval '1 day'
from generate_series(1, 100) i;
insert into all_types(id, f4, f8, n, t) values (101, 'NaN', '-Infinity', -5, ''), (102, '-0', 'Infinity', null, null);
insert into all_types(id, day, at) values (103, '4713-01-01 BC', '4713-01-01 BC'), (104, '9999-12-31', '290000-01-01');";

struct Files {
    server: TestCluster,
    scratch: tempfile::TempDir,
}

impl Files {
    fn new() -> Result<Self> {
        let install = PgInstall::find(15).context("no PostgreSQL 15")?;
        let options = ClusterOptions { locale: "C".to_owned(), ..ClusterOptions::default() };
        let mut server = TestCluster::create(&install, &options)?;
        server.psql("postgres", TABLES)?;
        server.stop()?;
        Ok(Self { server, scratch: tempfile::tempdir()? })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn asked(&self, file: &str, flags: &[&str], statement: &str) -> Result<Output> {
        let mut program = Command::new(env!("CARGO_BIN_EXE_pagemill-sql"));
        program.args(["sql", "-d", "postgres", "-D"]).arg(self.server.data_dir());
        let table = format!("x={}", self.at(file).display());
        Ok(program.args(["--table", &table]).args(flags).arg(statement).output()?)
    }

    fn rows(&self, file: &str, statement: &str) -> Result<String> {
        let output = self.asked(file, &["--format", "csv"], statement)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{statement}: {said}");
        Ok(String::from_utf8(output.stdout)?)
    }
}

#[test]
fn a_written_file_gives_the_rows_of_its_table() -> Result<()> {
    let files = Files::new()?;
    let path = files.at("all.parquet").display().to_string();
    let written = files.asked(
        "none.csv",
        &["--format", "parquet", "-o", &path],
        "select * from all_types",
    )?;
    ensure!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let columns = "id,small,big,f4,f8,d2,t,v,c,ok,day,at,atz,tm,u,b,m,j,i";
    let of = |table: &str| {
        files.rows("all.parquet", &format!("select {columns} from {table} order by id"))
    };
    let (table, file) = (of("all_types")?, of("x")?);
    ensure!(table == file && table.lines().count() == 105, "{table}\n{file}");
    let joined = "select count(*) from all_types t join x using (id, small, d2, u, b) where x.n = t.n and x.day = t.day";
    ensure!(files.rows("all.parquet", joined)? == "count\n100\n");
    let types = "select pg_typeof(u), pg_typeof(atz), pg_typeof(d2), pg_typeof(n), pg_typeof(b) from x limit 1";
    let types = files.rows("all.parquet", types)?;
    ensure!(types.ends_with("\nuuid,timestamp with time zone,numeric,numeric,bytea\n"), "{types}");
    Ok(())
}

#[test]
fn a_csv_file_is_read_as_copy_reads_it() -> Result<()> {
    let files = Files::new()?;
    std::fs::write(
        files.at("x.csv"),
        "id,name,\"Na\"\"me\"\n1,\"a, \"\"b\"\"\",\n2,,\"\"\n3,\"two\nlines\",x\n",
    )?;
    let nulls = "select id::int + 1 as next, name is null as n, \"Na\"\"me\" is null as m from x order by 1";
    ensure!(files.rows("x.csv", nulls)? == "next,n,m\n2,f,t\n3,t,f\n4,f,f\n");
    let joined = "select t.t, x.name from all_types t join x on x.id::int = t.id where x.id < '3' order by 1";
    ensure!(files.rows("x.csv", joined)? == "t,name\ntext 1,\"a, \"\"b\"\"\"\ntext 2,\n");
    Ok(())
}

#[test]
fn what_is_wrong_with_a_file_is_told() -> Result<()> {
    let files = Files::new()?;
    for (name, bytes, why) in [
        ("twice.csv", &b"id,id\n1,2\n"[..], "column name \"id\" is there twice"),
        ("short.csv", b"a,b\n1\n", "missing data for column \"b\""),
        ("long.csv", b"a\n1,2\n", "extra data after last expected column"),
        ("empty.csv", b"", "its first line does not name the columns"),
        ("bytes.csv", b"a\n\xff\n", "invalid byte sequence for encoding \"UTF8\": 0xff"),
        ("x.txt", b"a\n1\n", "neither in .csv nor in .parquet"),
        ("none.parquet", b"", "none.parquet"),
        ("x.parquet", b"PAR1 no Parquet PAR1", "x.parquet"),
    ] {
        std::fs::write(files.at(name), bytes)?;
        let output = files.asked(name, &[], "select * from x")?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(!output.status.success() && said.contains(why), "{name}: {said}");
        ensure!(output.stdout.is_empty() && !said.contains("panicked"), "{name}: {said}");
    }
    let table = format!("all_types={}", files.at("twice.csv").display());
    let hidden = files.asked("none.csv", &["--table", &table], "select * from all_types");
    let said = String::from_utf8_lossy(&hidden?.stderr).into_owned();
    ensure!(said.contains("twice"), "{said}");
    std::fs::write(files.at("twice.csv"), "a\n1\n")?;
    let hidden = files.asked("none.csv", &["--table", &table], "select * from all_types");
    let said = String::from_utf8_lossy(&hidden?.stderr).into_owned();
    ensure!(said.contains("is the name of a file and of a relation"), "{said}");
    Ok(())
}
