//! What `history` tells of rows where more happens than an update: savepoints rolled back, transactions that are prepared
//! and end later, several lockers at once, files that are replaced or cut, TOAST chunks that are gone. The server says who
//! wrote each version, and what it sees in the end.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use pagemill_testkit::{ClusterOptions, PgInstall, Program, Session, TestCluster, each_of};
use serde_json::Value;

fn on_two_versions(check: impl Fn(&PgInstall) -> Result<()> + Sync) {
    let wanted = PgInstall::all().into_iter().filter(|install| matches!(install.major, 15 | 18));
    each_of(&wanted.collect::<Vec<_>>(), check);
}

/// A server that runs, with a table.
fn cluster_with_table(install: &PgInstall) -> Result<TestCluster> {
    // Shared memory beside the data, where no kill leaves it to others.
    let shared = "dynamic_shared_memory_type = mmap";
    let settings = ["track_commit_timestamp = on", "wal_level = replica", shared];
    let settings = settings.map(str::to_owned).to_vec();
    let options = ClusterOptions { settings, ..ClusterOptions::default() };
    let cluster = TestCluster::create(install, &options)?;
    cluster.psql("postgres", "create table t (id int primary key, v text)")?;
    Ok(cluster)
}

/// A row version as the server saw it when it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    ctid: String,
    xmin: u64,
    value: String,
}

fn did(session: &mut Session, sql: &str) -> Result<String> {
    session.run(&format!("{sql};"))
}

/// What the server says of the version that a statement makes.
fn made(session: &mut Session, sql: &str) -> Result<Seen> {
    let told = did(session, &format!("{sql} returning ctid, xmin, v"))?;
    let last = told.lines().last().unwrap_or_default();
    let mut fields = last.split('|').map(str::to_owned);
    let mut field = || fields.next().with_context(|| told.clone());
    Ok(Seen { ctid: field()?, xmin: field()?.parse()?, value: field()? })
}

/// What became of the transaction of a version, and of the version.
type Ending = (&'static str, &'static str);

const SEEN: Ending = ("committed", "visible");
const REPLACED: Ending = ("committed", "invisible");
const TAKEN_BACK: Ending = ("rolled back", "invisible");
const UNFINISHED: Ending = ("unfinished", "invisible");

fn history(data: &Path, table: &str, ctid: &str) -> Result<(Value, String)> {
    let words = ["history", "-t", table, "--ctid", ctid, "--json"];
    let output = Program::new(env!("CARGO_BIN_EXE_pagemill")).run(data, &words)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let told = serde_json::from_slice(&output.stdout).with_context(|| said.clone())?;
    Ok((told, said))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The version as it is told: the last column is the one that is compared.
fn told(version: &Value) -> Seen {
    let value = list(&version["columns"]).last().map_or(&Value::Null, |column| &column["value"]);
    Seen {
        ctid: version["ctid"].as_str().unwrap_or_default().to_owned(),
        xmin: version["inserted_by"]["xid"].as_u64().unwrap_or(0),
        value: value.as_str().unwrap_or_default().to_owned(),
    }
}

/// The last row at the places of its versions is as the server saw it.
fn is_as_seen(data: &Path, table: &str, versions: &[(Seen, Ending)]) -> Result<()> {
    for (seen, _) in versions {
        let (found, said) = history(data, table, &seen.ctid)?;
        let row = list(&found["rows"][0]);
        ensure!(row.len() == versions.len(), "{table} {}: {said}{found:#}", seen.ctid);
        for (version, (seen, (status, state))) in row.iter().zip(versions) {
            ensure!(told(version) == *seen, "{table}: {seen:?}, {said}{version:#}");
            let by = &version["inserted_by"]["status"];
            ensure!(by == status && version["state"] == *state, "{table}: {seen:?}, {version:#}");
        }
    }
    Ok(())
}

/// What was done to a version: the action and the transaction of each event.
fn events(version: &Value) -> Vec<(String, u64)> {
    let event = |event: &Value| {
        let action = event["action"].as_str().unwrap_or_default().to_owned();
        (action, event["transaction"]["xid"].as_u64().unwrap_or(0))
    };
    list(&version["events"]).iter().map(event).collect()
}

/// When a transaction committed, by the server.
fn commit_time(cluster: &TestCluster, xid: u64) -> Result<String> {
    let sql = format!("select pg_xact_commit_timestamp('{xid}'::xid)");
    Ok(cluster.psql("postgres", &sql)?.trim().to_owned())
}

fn tells_subtransactions(install: &PgInstall) -> Result<()> {
    let mut cluster = cluster_with_table(install)?;
    let mut session = Session::open(&cluster, "postgres")?;
    let change = |value: &str| format!("update t set v = '{value}' where id = 1");
    did(&mut session, "begin")?;
    let first = made(&mut session, "insert into t values (1, 'first')")?;
    did(&mut session, "savepoint a")?;
    let back = made(&mut session, &change("rolled back"))?;
    did(&mut session, "savepoint b")?;
    let deeper = made(&mut session, &change("deeper"))?;
    did(&mut session, "release savepoint b; rollback to savepoint a; savepoint c")?;
    let kept = made(&mut session, &change("kept"))?;
    did(&mut session, "release savepoint c; commit; begin; savepoint d")?;
    let unfinished = made(&mut session, &change("unfinished"))?;
    let of_subtransaction = kept.xmin;
    ensure!(kept.xmin != first.xmin && back.xmin != deeper.xmin, "{first:?}, {kept:?}");
    let time = commit_time(&cluster, of_subtransaction)?;
    // Only what another transaction flushes of it is in the WAL.
    cluster.psql("postgres", "insert into t values (2, 'another')")?;
    cluster.kill_all()?;
    drop(session);
    let versions = [
        (first, REPLACED),
        (back, TAKEN_BACK),
        (deeper, TAKEN_BACK),
        (kept, SEEN),
        (unfinished, UNFINISHED),
    ];
    let data = cluster.data_dir();
    is_as_seen(&data, "t", &versions)?;
    let (found, _) = history(&data, "t", &versions[0].0.ctid)?;
    ensure!(found["rows"][0][3]["inserted_by"]["time"] == time.as_str(), "{time}: {found:#}");
    let truth = server_says(&mut cluster)?;
    ensure!(truth == "(2,another)|(1,kept)" || truth == "(1,kept)|(2,another)", "{truth}");
    // The server writes nothing about what did not end.
    is_as_seen(&data, "t", &versions)?;
    Ok(())
}

/// The rows that a server sees once it has recovered; it is stopped again.
fn server_says(cluster: &mut TestCluster) -> Result<String> {
    cluster.start()?;
    let rows = cluster.psql("postgres", "select string_agg(t::text, '|' order by ctid) from t")?;
    cluster.stop()?;
    Ok(rows.trim().to_owned())
}

#[test]
fn versions_of_savepoints_have_the_fate_of_their_savepoint() {
    on_two_versions(tells_subtransactions);
}

fn tells_prepared_transactions(install: &PgInstall) -> Result<()> {
    let mut cluster = cluster_with_table(install)?;
    let mut session = Session::open(&cluster, "postgres")?;
    let change = |value: &str| format!("update t set v = '{value}' where id = 1");
    did(&mut session, "begin")?;
    let first = made(&mut session, "insert into t values (1, 'first')")?;
    did(&mut session, "prepare transaction 'one'")?;
    did(&mut session, "commit prepared 'one'; begin")?;
    let back = made(&mut session, &change("rolled back"))?;
    did(&mut session, "prepare transaction 'two'")?;
    did(&mut session, "rollback prepared 'two'; begin; savepoint a")?;
    let kept = made(&mut session, &change("kept"))?;
    did(&mut session, "release savepoint a")?;
    let last = made(&mut session, &change("last"))?;
    did(&mut session, "prepare transaction 'three'")?;
    drop(session);
    let time = commit_time(&cluster, first.xmin)?;
    cluster.kill_all()?;
    let data = cluster.data_dir();
    let mut versions = [(first, SEEN), (back, TAKEN_BACK), (kept, UNFINISHED), (last, UNFINISHED)];
    is_as_seen(&data, "t", &versions)?;
    let (found, _) = history(&data, "t", &versions[0].0.ctid)?;
    ensure!(found["rows"][0][0]["inserted_by"]["time"] == time.as_str(), "{time}: {found:#}");
    ensure!(server_says(&mut cluster)? == "(1,first)");
    is_as_seen(&data, "t", &versions)?;
    cluster.start()?;
    cluster.psql("postgres", "commit prepared 'three'")?;
    cluster.kill_all()?;
    versions[0].1 = REPLACED;
    versions[2].1 = REPLACED;
    versions[3].1 = SEEN;
    is_as_seen(&data, "t", &versions)?;
    ensure!(server_says(&mut cluster)? == "(1,last)");
    Ok(())
}

#[test]
fn versions_of_prepared_transactions_have_the_fate_these_got_later() {
    on_two_versions(tells_prepared_transactions);
}

fn tells_several_lockers(install: &PgInstall) -> Result<()> {
    let mut cluster = cluster_with_table(install)?;
    let mut sessions = [0; 3].map(|_| Session::open(&cluster, "postgres"));
    let [Ok(one), Ok(two), Ok(three)] = &mut sessions else { anyhow::bail!("no session") };
    did(one, "begin")?;
    let first = made(one, "insert into t values (1, 'first')")?;
    did(one, "commit; begin")?;
    let lock = |strength: &str| {
        format!(
            "select txid_current() % 4294967296 from (select from t where id = 1 for {strength}) as l"
        )
    };
    let sharer: u64 = did(one, &lock("share"))?.trim().parse()?;
    did(two, "begin")?;
    let other: u64 = did(two, &lock("key share"))?.trim().parse()?;
    did(one, "commit; begin")?;
    did(three, "begin")?;
    let last = made(three, "update t set v = 'last' where id = 1")?;
    // The new version carries the lock that is still held on the old one.
    did(three, "commit")?;
    did(two, "commit")?;
    sessions.into_iter().for_each(drop);
    cluster.stop()?;
    let data = cluster.data_dir();
    let versions = [(first, REPLACED), (last, SEEN)];
    is_as_seen(&data, "t", &versions)?;
    let (found, _) = history(&data, "t", &versions[0].0.ctid)?;
    let of_first = events(&found["rows"][0][0]);
    for (action, xid) in [("lock", sharer), ("lock", other), ("update", versions[1].0.xmin)] {
        ensure!(of_first.contains(&(action.to_owned(), xid)), "{action} by {xid}: {of_first:?}");
    }
    // By the pages alone: the multixact on the old version has an updater among its members.
    for file in fs::read_dir(data.join("pg_wal"))?.filter_map(Result::ok) {
        if file.path().is_file() {
            fs::remove_file(file.path())?;
        }
    }
    is_as_seen(&data, "t", &versions)?;
    // Its members are gone: the versions are told apart from each other, and what is missing is named.
    fs::remove_file(data.join("pg_multixact/members/0000"))?;
    for (seen, _) in &versions {
        let (found, said) = history(&data, "t", &seen.ctid)?;
        let row = list(&found["rows"][0]);
        ensure!(row.len() == 1 && told(&row[0]) == *seen, "{said}{found:#}");
        ensure!(said.contains("multixact") || said.contains("pg_multixact"), "{said}");
    }
    Ok(())
}

#[test]
fn several_lockers_are_told_and_an_updater_among_them_leads_on() {
    on_two_versions(tells_several_lockers);
}

fn tells_replaced_files(install: &PgInstall) -> Result<()> {
    let mut cluster = cluster_with_table(install)?;
    let mut session = Session::open(&cluster, "postgres")?;
    let first = made(&mut session, "insert into t values (1, 'first')")?;
    // A rewrite that was rolled back is none.
    did(&mut session, "begin; truncate t; insert into t values (7, 'nothing'); rollback")?;
    did(&mut session, "begin; alter table t alter id type bigint; rollback")?;
    let data = cluster.data_dir();
    let mut killed = |session: Session, table: &str, versions: &[(Seen, Ending)]| {
        drop(session);
        cluster.kill_all()?;
        is_as_seen(&data, table, versions)?;
        let (found, _) = history(&data, table, &versions[0].0.ctid)?;
        cluster.start()?;
        Ok::<_, anyhow::Error>((found, Session::open(&cluster, "postgres")?))
    };
    did(&mut session, "select txid_current()")?;
    let (found, mut session) = killed(session, "t", &[(first.clone(), SEEN)])?;
    ensure!(list(&found["rows"]).len() == 1, "{found:#}");

    // Another file: what lay at the place in the old one is of another row, and not told.
    did(&mut session, "truncate t")?;
    let second = made(&mut session, "insert into t values (2, 'second')")?;
    ensure!(first.ctid == second.ctid, "{first:?}, {second:?}");
    let (found, mut session) = killed(session, "t", &[(second.clone(), SEEN)])?;
    ensure!(list(&found["rows"]).len() == 1, "{found:#}");

    // The rows keep their transactions when the table is written anew, and get new places.
    let third = made(&mut session, "update t set v = 'third' where id = 2")?;
    did(&mut session, "vacuum full t")?;
    let now = did(&mut session, "select ctid, xmin, v from t")?;
    ensure!(now == format!("{}|{}|third", second.ctid, third.xmin), "{now}");
    let moved = Seen { ctid: second.ctid.clone(), ..third };
    let (_, mut session) = killed(session, "t", &[(moved, SEEN)])?;

    // They get another transaction when a type changes.
    did(&mut session, "alter table t alter id type bigint")?;
    let now = did(&mut session, "select ctid, xmin, v from t")?;
    let fields: Vec<_> = now.split('|').collect();
    let [ctid, xmin, value] = fields[..] else { anyhow::bail!("{now}") };
    let changed = Seen { ctid: ctid.into(), xmin: xmin.parse()?, value: value.into() };
    let after = made(&mut session, "update t set v = 'after' where id = 2")?;
    let (_, mut session) = killed(session, "t", &[(changed, REPLACED), (after, SEEN)])?;

    // In the transaction that made the table, TRUNCATE cuts the file that there is.
    did(&mut session, "begin; create table made_here (v text)")?;
    let cut = made(&mut session, "insert into made_here values ('cut off')")?;
    did(&mut session, "truncate made_here")?;
    let there = made(&mut session, "insert into made_here values ('there')")?;
    ensure!(cut.ctid == there.ctid, "{cut:?}, {there:?}");
    did(&mut session, "commit")?;
    let (found, session) = killed(session, "made_here", &[(there, SEEN)])?;
    let rows = list(&found["rows"]);
    ensure!(rows.len() == 2 && told(&rows[1][0]) == cut, "{found:#}");
    let of_cut = events(&rows[1][0]);
    ensure!(of_cut.last().is_some_and(|(action, _)| action == "cut off"), "{of_cut:?}");
    drop(session);
    cluster.stop()
}

#[test]
fn rows_of_replaced_files_are_told_from_there_on_and_cut_ones_to_the_cut() {
    on_two_versions(tells_replaced_files);
}

fn tells_lost_chunks(install: &PgInstall) -> Result<()> {
    let mut cluster = cluster_with_table(install)?;
    cluster.psql("postgres", "alter table t alter v set storage external")?;
    let mut session = Session::open(&cluster, "postgres")?;
    let first = made(&mut session, "insert into t values (1, repeat('long', 1000))")?;
    let last = made(&mut session, "update t set v = repeat('other', 1000) where id = 1")?;
    did(&mut session, "checkpoint")?;
    drop(session);
    cluster.stop()?;
    let data = cluster.data_dir();
    is_as_seen(&data, "t", &[(first.clone(), REPLACED), (last.clone(), SEEN)])?;
    cluster.start()?;
    cluster.psql("postgres", "vacuum t")?;
    // Its chunks may have taken the places of the old ones.
    cluster.psql("postgres", "insert into t values (2, repeat('third', 1000))")?;
    cluster.kill_all()?;
    let (found, said) = history(&data, "t", &last.ctid)?;
    let row = list(&found["rows"][0]);
    ensure!(row.len() == 2 && told(&row[1]) == last, "{said}{found:#}");
    let column = list(&row[0]["columns"]).last().context("a column")?;
    ensure!(told(&row[0]).xmin == first.xmin && row[0]["state"] == "gone", "{found:#}");
    ensure!(column["value"].is_null() && column["fault"].is_string(), "{column:#}");
    Ok(())
}

#[test]
fn a_value_whose_chunks_are_gone_is_told_as_lost_and_the_rest_of_the_row_stays() {
    on_two_versions(tells_lost_chunks);
}
