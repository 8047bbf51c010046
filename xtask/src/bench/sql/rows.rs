//! What is measured: the rows of the result, and what each is held to.
//!
//! Targets are set here, before a run, and never moved to fit one.

use anyhow::{Result, bail};

/// The geometric mean of the server's time over pagemill's, over TPC-H's queries.
pub(super) const MEAN_TARGET: f64 = 4.0;
/// The same of DuckDB's time over pagemill's: not more than three times as slow.
pub(super) const DUCKDB_TARGET: f64 = 1.0 / 3.0;
/// What sorts and aggregates may take in rows about memory, MiB.
pub(super) const MEMORY_MIB: u64 = 256;

/// What is timed, and what the figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// A query of TPC-H by its number.
    Tpch(usize),
    /// Another statement, against the server.
    Statement,
    /// A statement whose whole process has to end within a time.
    Time,
    /// A statement under `--memory`: the peak of the resident set over that.
    Memory,
    /// A table as Parquet, against `COPY` into DuckDB.
    Parquet,
}

/// One row of the result.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) work: Work,
    /// The statement; for [`Work::Parquet`], the table.
    pub(super) statement: String,
    /// The server's time over pagemill's at least; of [`Work::Time`], milliseconds at most; of [`Work::Memory`], times the
    /// memory at most.
    pub(super) target: f64,
}

const QUERIES: [&str; 22] = [
    include_str!("queries/q01.sql"),
    include_str!("queries/q02.sql"),
    include_str!("queries/q03.sql"),
    include_str!("queries/q04.sql"),
    include_str!("queries/q05.sql"),
    include_str!("queries/q06.sql"),
    include_str!("queries/q07.sql"),
    include_str!("queries/q08.sql"),
    include_str!("queries/q09.sql"),
    include_str!("queries/q10.sql"),
    include_str!("queries/q11.sql"),
    include_str!("queries/q12.sql"),
    include_str!("queries/q13.sql"),
    include_str!("queries/q14.sql"),
    include_str!("queries/q15.sql"),
    include_str!("queries/q16.sql"),
    include_str!("queries/q17.sql"),
    include_str!("queries/q18.sql"),
    include_str!("queries/q19.sql"),
    include_str!("queries/q20.sql"),
    include_str!("queries/q21.sql"),
    include_str!("queries/q22.sql"),
];

const OTHERS: [(&str, Work, &str, f64); 13] = [
    ("count", Work::Statement, "select count(*) from lineitem", 1.0),
    ("filtered", Work::Statement, "select * from lineitem where l_partkey = 155190", 1.0),
    ("start", Work::Time, "select 1 as one", 60.0),
    ("lookup", Work::Time, "select * from orders where o_orderkey = 23456", 75.0),
    ("first-ten", Work::Time, "select * from orders order by o_orderkey limit 10", 75.0),
    ("last", Work::Time, "select max(o_orderkey) from orders", 75.0),
    (
        "expression",
        Work::Time,
        "select * from customer where lower(c_name) = 'customer#000023456'",
        75.0,
    ),
    (
        "exists-counts",
        Work::Statement,
        "select o_orderpriority, count(*) filter (where exists (select 1 from lineitem where l_orderkey = o_orderkey and l_returnflag = 'R')), count(*) \
         from orders group by 1 order by 1",
        1.0,
    ),
    (
        "latest-of-each",
        Work::Statement,
        "select c_custkey, (select o_orderkey from orders where o_custkey = c_custkey order by o_orderdate desc, o_orderkey desc limit 1) \
         from customer",
        1.0,
    ),
    (
        "earlier-of-each",
        Work::Statement,
        "select count(*), sum(earlier) from (select (select count(*) from orders b where b.o_custkey = a.o_custkey and b.o_orderdate < a.o_orderdate) \
         as earlier from orders a) s",
        1.0,
    ),
    ("sort", Work::Memory, "select * from lineitem order by l_comment, l_orderkey", 1.3),
    (
        "aggregate",
        Work::Memory,
        "select l_orderkey, l_linenumber, l_comment, count(*), sum(l_quantity) from lineitem group by 1, 2, 3",
        1.3,
    ),
    ("parquet", Work::Parquet, "lineitem", 5.0),
];

/// All rows, for a scale.
fn rows(scale: f64) -> Vec<Row> {
    // Clause 2.4.11.3: the fraction goes down with the scale.
    let fraction = format!("{:.10}", 0.0001 / scale);
    let query = |(at, text): (usize, &&str)| Row {
        id: format!("q{:02}", at + 1),
        work: Work::Tpch(at + 1),
        statement: text.trim().replace("{fraction}", &fraction),
        target: 1.0,
    };
    let other = |&(id, work, statement, target): &(&str, Work, &str, f64)| Row {
        id: id.to_owned(),
        work,
        statement: statement.to_owned(),
        target,
    };
    QUERIES.iter().enumerate().map(query).chain(OTHERS.iter().map(other)).collect()
}

/// The rows whose names begin with one of these words; all for none.
pub(super) fn selected(words: &[String], scale: f64) -> Result<Vec<Row>> {
    let rows = rows(scale);
    let matches = |row: &Row, word: &String| row.id.starts_with(word.as_str());
    if let Some(word) = words.iter().find(|word| !rows.iter().any(|row| matches(row, word))) {
        let names: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        bail!("no row begins with {word}; there are: {}", names.join(" "));
    }
    let wanted = |row: &Row| words.is_empty() || words.iter().any(|word| matches(row, word));
    Ok(rows.into_iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fraction_of_query_11_goes_with_the_scale() {
        let row = &selected(&["q11".to_owned()], 2.0).unwrap()[0];
        assert!(row.statement.contains("* 0.0000500000"), "{}", row.statement);
        assert_eq!(row.work, Work::Tpch(11));
    }

    #[test]
    fn a_word_selects_the_rows_that_begin_with_it() {
        assert_eq!(selected(&["q".to_owned()], 1.0).unwrap().len(), 22);
        assert!(selected(&["nothing".to_owned()], 1.0).is_err());
    }
}
