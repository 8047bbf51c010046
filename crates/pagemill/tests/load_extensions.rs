//! `pagemill load` into columns of contrib's extensions: tuples are those that the server's own COPY makes, byte for byte, and errors are in its
//! words.
//!
//! Must hold: pageinspect is the judge, so that what no text shows is compared too.

use std::fs;

use anyhow::{Result, ensure};
use pagemill_testkit::install::PgInstall;
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{Program, each_of};

const TABLES: &str = "
    CREATE EXTENSION pageinspect; CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE EXTENSION ltree; CREATE EXTENSION cube;
    CREATE EXTENSION seg; CREATE EXTENSION intarray;
    CREATE TABLE ours (id int, mail citext, pairs hstore, path ltree, wanted lquery, words ltxtquery, space cube, span seg, ask query_int,
        several hstore[]);
    CREATE TABLE theirs (LIKE ours);
    CREATE TABLE narrow (pairs hstore);";

const ROWS: &str = "1\tMe@Example.com\ta=>1, b=>NULL\tTop.Science\tTop.*{1,2}.!x|y@\ta* & !(b@ | c%)\t(1,2),(3,4)\t1.5 .. 2.50\t1&(2|!3)\t{\"a=>1\",NULL}
2\té\t\"long key\"=>\"va\\\\\"l\", ccc=>x, b=>y, b=>z\ta.b.c\t*\tx\t(0)\t<3\t7\t{}
3\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N
4\t\t\t\t*{,3}\ta|b|c\t(1e10,-0)\t.. 4\t!1\t{\"\"}
";

const TUPLES: &str =
    "SELECT string_agg(encode(t_data, 'hex'), ' ' ORDER BY lp) FROM heap_page_items(get_raw_page('";

fn check(install: &PgInstall) -> Result<()> {
    let mut cluster = empty_cluster(install)?;
    cluster.start()?;
    cluster.psql("postgres", TABLES)?;
    let dir = tempfile::tempdir()?;
    let (rows, wrong) = (dir.path().join("rows.txt"), dir.path().join("wrong.txt"));
    fs::write(&rows, ROWS)?;
    fs::write(&wrong, "a=>1\nno pair\n")?;
    cluster.psql("postgres", &format!("\\copy theirs from '{}'", rows.display()))?;
    let told = format!("{:#}", cluster.psql("postgres", "SELECT 'no pair'::hstore").unwrap_err());
    cluster.stop()?;
    let load = |table: &str, file: &std::path::Path| {
        let file = file.to_string_lossy();
        let args = ["load", "-d", "postgres", "-t", table, &*file];
        Program::new(env!("CARGO_BIN_EXE_pagemill")).run(&cluster.data_dir(), &args)
    };
    let output = load("ours", &rows)?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let refused = load("narrow", &wrong)?;
    let said = String::from_utf8_lossy(&refused.stderr);
    let words = match install.major {
        14 | 15 => "Syntax error near \"p\" at position 3",
        _ => "syntax error in hstore, near \"p\" at position 3",
    };
    ensure!(
        !refused.status.success() && said.contains(words) && told.contains(words),
        "{said} {told}"
    );
    cluster.start()?;
    let tuples = |table: &str| cluster.psql("postgres", &format!("{TUPLES}{table}', 0))"));
    let (ours, theirs) = (tuples("ours")?, tuples("theirs")?);
    ensure!(ours == theirs && ours.len() > 1000, "{ours}\n--- the server:\n{theirs}");
    ensure!(
        cluster.psql("postgres", "SELECT count(*) FROM narrow")?.trim() == "0",
        "nothing of it is there"
    );
    Ok(())
}

#[test]
fn values_of_extensions_are_written_as_the_server_writes_them() {
    each_of(&PgInstall::all(), check);
}
