//! Cursors that go back, and those that outlive their transaction: psql is told what the server told it.
//!
//! Each direction is asked from each kind of place, so that what a move leaves behind is seen by the next.

mod support;

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};

const MADE: &str =
    "create table rows as select i, repeat(chr(64 + i), 3) as t from generate_series(1, 7) i";

/// Directions, asked of a cursor with SCROLL in each of several places.
const DIRECTIONS: [&str; 19] = [
    "next",
    "prior",
    "first",
    "last",
    "absolute 3",
    "absolute -2",
    "absolute 0",
    "absolute 9",
    "absolute -9",
    "relative 2",
    "relative -2",
    "relative 0",
    "forward 3",
    "forward all",
    "backward 2",
    "backward all",
    "forward 0",
    "-3",
    "all",
];

const HELD: &str = "
    declare alone cursor with hold for select * from rows order by i;
    fetch 2 from alone;
    begin;
    declare kept scroll cursor with hold for select i from rows order by i desc;
    declare lost cursor for select i from rows order by i;
    fetch 2 from kept;
    commit;
    fetch next from kept;
    fetch prior from kept;
    fetch lost;
    fetch 1 from alone;
    begin;
    declare undone cursor with hold for select i from rows;
    rollback;
    fetch undone;
    fetch all from alone;
    begin;
    select 1 / 0;
    rollback;
    move backward all in kept;
    fetch 3 from kept;
    declare nowhere cursor for select 1;
    close kept;
    fetch kept;
    discard all;
    fetch alone;
    begin;
    declare forward no scroll cursor for select i from rows order by i;
    fetch 2 from forward;
    fetch relative 1 from forward;
    fetch prior from forward;
    rollback;
";

fn script() -> String {
    let mut script =
        "begin;\ndeclare c scroll cursor for select * from rows order by i;\n".to_owned();
    for before in ["absolute 0", "absolute 1", "absolute 4", "last", "forward all"] {
        for direction in DIRECTIONS {
            script +=
                &format!("move {before} from c;\nfetch {direction} from c;\nfetch 0 from c;\n");
            script += &format!("move {direction} from c;\nfetch next from c;\n");
        }
    }
    script + "commit;\n" + HELD
}

fn asked(mut psql: Command) -> Result<Vec<(String, String)>> {
    psql.env("PGUSER", "postgres").args(["-A", "-v", "ON_ERROR_STOP=0", "-f", "-"]);
    psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = psql.spawn()?;
    child.stdin.take().context("a pipe")?.write_all(script().as_bytes())?;
    let output = child.wait_with_output()?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (rows, errors) = (text(output.stdout), text(output.stderr));
    ensure!(rows.lines().count() > 500 && errors.lines().count() > 6, "{errors}");
    Ok(vec![("rows".to_owned(), rows), ("errors".to_owned(), errors)])
}

#[test]
fn cursors_move_and_stay_as_those_of_the_server() -> Result<()> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let cluster = TestCluster::create(&install, &ClusterOptions::default())?;
    cluster.psql("postgres", MADE)?;
    support::check_alike(cluster, &install, |client| asked(client()))
}
