//! What is read along indexes, held against the server's answers: the first rows of an order, min and max, on random tables
//! with random indexes, after deletes that empty pages of them, updates, vacuum and a rollback; stopped and killed.
//!
//! Invariant under test: a table answers as the server does, and as one of the same rows that has no index.

use std::fmt::Write as _;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::versions::each_of;
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};

const TABLES: usize = 5;
const STATEMENTS: usize = 180;
/// Each with what makes a value of a number.
const COLUMNS: [(&str, &str, &str); 7] = [
    ("i", "int4", "(x % 60 - 30)::int4"),
    ("l", "int8", "x * 1000003 % 5000000000 - 2500000000"),
    ("t", "text collate \"C\"", "substr(md5((x % 300)::text), 1, 2 + (x % 3)::int)"),
    (
        "n",
        "numeric",
        "case x % 41 when 0 then 'NaN' else ((x % 900 - 450) / 16.0)::numeric(9, 4) end",
    ),
    (
        "ts",
        "timestamp",
        "case x % 67 when 0 then 'infinity' else timestamp '2020-01-01' + x % 500 * interval '1 h' end",
    ),
    ("u", "uuid", "md5((x % 400)::text)::uuid"),
    ("w", "int2", "(x % 5)::int2"),
];

/// Numbers that look random and are the same every time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound as u64) as usize
    }

    fn of<T: Copy>(&mut self, some: &[T]) -> T {
        some[self.below(some.len())]
    }

    /// Some columns, each once.
    fn columns(&mut self, most: usize) -> Vec<usize> {
        let mut chosen: Vec<usize> = Vec::new();
        for _ in 0..=self.below(most) {
            let column = self.below(COLUMNS.len());
            if !chosen.contains(&column) {
                chosen.push(column);
            }
        }
        chosen
    }

    fn direction(&mut self) -> &'static str {
        self.of(&["", " asc nulls first", " desc", " desc nulls last"])
    }

    fn by(&mut self, columns: &[usize]) -> String {
        let column = |at: &usize| format!("{}{}", COLUMNS[*at].0, self.direction());
        columns.iter().map(column).collect::<Vec<_>>().join(", ")
    }

    fn index(&mut self, table: usize) -> String {
        let columns = self.columns(3);
        let keys = self.by(&columns);
        let options = self.of(&["", "", "", " with (fillfactor = 60, deduplicate_items = off)"]);
        match self.below(12) {
            0 => format!("create index on r{table} ({keys}) where w > 1;\n"),
            1 => format!("create index on r{table} ((i + 1), {keys});\n"),
            2 => format!("create index on r{table} ({keys}, (w + 1));\n"),
            3 => format!("create index on r{table} ({keys}) include (id){options};\n"),
            _ => format!("create index on r{table} ({keys}){options};\n"),
        }
    }

    /// A condition on one column; values are constants, as the server computed them.
    fn condition(&mut self, column: usize, known: &[Vec<String>]) -> String {
        let (name, ty, _) = COLUMNS[column];
        let ty = ty.split(' ').next().unwrap_or_default();
        let mut value = || format!("'{}'::{ty}", known[column][self.below(known[column].len())]);
        let (a, b, c) = (value(), value(), value());
        match self.below(9) {
            0..=3 => format!("{name} = {a}"),
            4 => format!("{name} in ({a}, {b}, {c})"),
            5 => format!("{name} between {a} and {b}"),
            6 => format!("{name} > {a}"),
            7 => format!("{name} is null"),
            _ => format!("{name} is not null"),
        }
    }

    fn statement(&mut self, table: &str, known: &[Vec<String>]) -> String {
        let conditions: Vec<String> = match self.below(5) {
            0 | 1 => Vec::new(),
            2 | 3 => vec![self.below(COLUMNS.len())],
            _ => self.columns(2),
        }
        .into_iter()
        .map(|column| self.condition(column, known))
        .collect();
        let filter = match conditions.is_empty() {
            true => String::new(),
            false => format!(" where {}", conditions.join(" and ")),
        };
        let columns = self.columns(3);
        if self.below(4) == 0 {
            // uuid has no min before 18.
            let calls = columns.iter().filter(|at| COLUMNS[**at].0 != "u").map(|at| COLUMNS[*at].0);
            let calls: Vec<String> = calls
                .enumerate()
                .map(|(at, name)| format!("{}({name}) as c{at}", self.of(&["min", "max"])))
                .collect();
            let calls = if calls.is_empty() { "max(l)".to_owned() } else { calls.join(", ") };
            return format!("select s.*, 'row' from (select {calls} from {table}{filter}) s");
        }
        let names: Vec<&str> = columns.iter().map(|at| COLUMNS[*at].0).collect();
        let order = self.by(&columns);
        let (limit, offset) = (1 + self.below(12), self.of(&[0, 0, 2]));
        format!(
            "select {}, 'row' from {table}{filter} order by {order} limit {limit} offset {offset}",
            names.join(", ")
        )
    }
}

/// What fills a table, with rows of these numbers.
fn rows(table: usize, first: usize, last: usize) -> String {
    let column = |(at, (_, _, of)): (usize, &(&str, &str, &str))| {
        format!("case when x % {} = {at} then null else {of} end", 23 + at * 4)
    };
    let values: Vec<String> = COLUMNS.iter().enumerate().map(column).collect();
    format!(
        "insert into r{table} select g, {}, repeat('p', 60) from (select g, (hashint4(g + {table}) & 2147483647)::int8 as x
         from generate_series({first}, {last}) g) s;\n",
        values.join(", ")
    )
}

/// The statements that make the tables, each sent by itself.
fn tables(draw: &mut Draw) -> Vec<String> {
    let mut made = Vec::new();
    for table in 0..TABLES {
        let columns: Vec<String> =
            COLUMNS.iter().map(|(name, ty, _)| format!("{name} {ty}")).collect();
        let mut text = format!(
            "create table r{table}(id int, {}, pad text) with (autovacuum_enabled = off);\n",
            columns.join(", ")
        );
        text += &rows(table, 1, 3500);
        (0..5).for_each(|_| text += &draw.index(table));
        text += &format!("create index on r{table} (l desc nulls last);\n");
        text += &format!("create unique index on r{table} (id);\n");
        // Whole ranges go, from either end and within, so that pages of the indexes are deleted.
        text += &format!(
            "delete from r{table} where l > {}; delete from r{table} where i < -22;
             delete from r{table} where id between 900 and 1700;
             update r{table} set w = w + 1 where id % 9 = 1; update r{table} set pad = 'q' where id % 5 = 1;\n",
            2_000_000_000_i64 - 700_000_000 * table as i64
        );
        made.push(text);
        made.push(format!("vacuum r{table}"));
        made.push(format!(
            "{}begin; {} rollback; delete from r{table} where id % 10 = 3; update r{table} set i = i + 1 where id % 31 = 2;",
            rows(table, 3501, 4200),
            rows(table, 4201, 4600)
        ));
        if table % 2 == 0 {
            made.push(format!("vacuum r{table}"));
            made.push(format!("delete from r{table} where l < -2000000000"));
        }
        made.push(format!("create table plain{table} as select * from r{table}"));
    }
    made
}

/// Some values of each column.
fn known_values(cluster: &TestCluster) -> Result<Vec<Vec<String>>> {
    let of = |(name, _, _): &(&str, &str, &str)| {
        let query = format!(
            "select {name} from (select {name}, row_number() over (order by id) as at from r0
             where {name} is not null) s where at % 60 = 0"
        );
        Ok(cluster.psql("postgres", &query)?.lines().map(str::to_owned).collect())
    };
    COLUMNS.iter().map(of).collect()
}

/// Statements, each behind a line with its number, and the same explained.
fn numbered(statements: &[String], explained: bool) -> String {
    let mut text = String::new();
    for (number, statement) in statements.iter().enumerate() {
        let _ = writeln!(text, "select 'statement', {number};");
        let explain = if explained { "explain analyze " } else { "" };
        let _ = writeln!(text, "{explain}{statement};");
    }
    text
}

/// The rows of each statement, without headings.
fn cut(told: &str, has_headings: bool) -> Vec<String> {
    let told = told.replace('|', ",");
    let rows = |part: &str| {
        let mut lines: Vec<&str> = part.lines().skip(1).collect();
        if has_headings {
            lines.retain(|line| !line.starts_with("?column?,"));
            lines.drain(..lines.len().min(1));
        }
        lines.join("\n")
    };
    told.split("statement,").skip(1).map(rows).collect()
}

fn answered(cluster: &TestCluster, statements: &str) -> Result<String> {
    let file = cluster.root().join("statements.sql");
    std::fs::write(&file, statements)?;
    let mut program = Command::new(env!("CARGO_BIN_EXE_pagemill-sql"));
    program.arg("sql").arg("-D").arg(cluster.data_dir());
    program.args(["-d", "postgres", "--format", "csv"]).arg("-f").arg(file);
    let output = program.output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{errors}");
    Ok(String::from_utf8(output.stdout)?)
}

fn compare(cluster: &TestCluster, statements: &[String], known: &[String]) -> Result<()> {
    let found = cut(&answered(cluster, &numbered(statements, false))?, true);
    ensure!(known.len() == statements.len(), "{} answers of the server", known.len());
    ensure!(found.len() == statements.len(), "{} answers", found.len());
    for ((known, found), statement) in known.iter().zip(&found).zip(statements) {
        ensure!(known == found, "{statement}\nthe server:\n{known}\nhere:\n{found}");
    }
    Ok(())
}

fn check(install: &PgInstall) -> Result<()> {
    let mut draw = Draw(u64::from(install.major));
    let mut cluster = TestCluster::create(install, &ClusterOptions::default())?;
    for text in tables(&mut draw) {
        cluster.psql("postgres", &text).with_context(|| text.clone())?;
    }
    let known = known_values(&cluster)?;
    let mut statements = Vec::new();
    for number in 0..STATEMENTS {
        let table = format!("r{}", number % TABLES);
        let statement = draw.statement(&table, &known);
        if number % 4 == 0 {
            let plain = format!("from plain{}", number % TABLES);
            statements.push(statement.replace(&format!("from {table}"), &plain));
        }
        statements.push(statement);
    }
    let known = cut(&cluster.psql("postgres", &numbered(&statements, false))?, false);
    cluster.kill()?;
    compare(&cluster, &statements, &known).context("killed")?;
    cluster.start()?;
    cluster.stop()?;
    compare(&cluster, &statements, &known).context("stopped")?;

    let explained = cut(&answered(&cluster, &numbered(&statements, true))?, true);
    let in_order = explained.iter().filter(|plan| plan.contains(" in its order")).count();
    ensure!(in_order > STATEMENTS / 8, "{in_order} of {STATEMENTS} along an index");
    Ok(())
}

#[test]
fn random_tables_answer_as_the_server_does() {
    each_of(&PgInstall::spread(), check);
}
