//! The library changing a cluster, with PostgreSQL as the judge: what is loaded and cloned is there for a server that
//! starts afterwards, and nothing of it where something was refused.

use std::fmt::Debug;
use std::io::{self, Read};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use anyhow::{Context, ensure};
use pagemill::{CopyFrom, CopyFromOptions, Format, LoadOptions, LockedCluster, ReadBack, Value};
use pagemill_testkit::each_of;
use pagemill_testkit::install::PgInstall;
use pagemill_testkit::prepared::empty_cluster;

const TABLE: &str = "CREATE TABLE goods (id int PRIMARY KEY, name text, price numeric(10, 2))";

fn rows(from: i32, count: i32) -> impl Iterator<Item = [Option<String>; 3]> + Send + 'static {
    (from..from + count).map(|id| {
        let name = (id % 3 != 0).then(|| format!("tab\tand \\ and größe {id}"));
        [Some(id.to_string()), name, Some(format!("{id}.5"))]
    })
}

#[test]
fn rows_of_an_iterator_are_there_for_a_server() {
    each_of(&PgInstall::all(), |install| {
        let mut cluster = empty_cluster(install)?;
        cluster.start()?;
        cluster.psql("postgres", TABLE)?;
        cluster.stop()?;
        let change = || {
            let locked = LockedCluster::open(cluster.data_dir())?;
            let options = || LoadOptions { read_back: ReadBack::on(), ..LoadOptions::default() };
            let loaded = locked.load_rows("postgres", "goods", rows(1, 3000), options())?;
            ensure!(loaded.rows == 3000 && loaded.verified_blocks > 20, "{loaded:?}");
            // Behind rows that are there, the pages come into the file out of the WAL.
            let loaded = locked.load_rows("postgres", "goods", rows(3001, 2000), options())?;
            ensure!(loaded.rows == 2000 && loaded.verified_blocks > 15, "{loaded:?}");
            let table = locked.cluster()?.database("postgres")?.table("goods")?;
            let mut pulled = table.rows_in_order("goods_pkey", true, &["id", "price"])?;
            let mut last = pulled.next_row()?.context("no row")?;
            ensure!(matches!(last.value(0)?, Some(Value::Int4(5000))));
            ensure!(last.text(1)?.as_deref() == Some("5000.50"));
            Ok::<_, anyhow::Error>(())
        };
        change()?;
        cluster.start()?;
        let query =
            "SELECT count(*), count(name), sum(price), max(name) FILTER (WHERE id = 4) FROM goods";
        let answer = cluster.psql("postgres", query)?;
        let expected = "5000|3334|12505000.00|tab\tand \\ and größe 4";
        ensure!(answer.trim_end() == expected, "{answer}");
        cluster.stop()
    });
}

/// The messages of all events, each with the thread that sent it.
///
/// It is every thread's subscriber: were it this one's alone, an event that a test beside this one sends first
/// would be taken for one that nobody wants to see.
#[derive(Clone, Default)]
struct Messages(Arc<Mutex<Vec<(ThreadId, String)>>>);

impl tracing::field::Visit for Messages {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn Debug) {
        if field.name() == "message" {
            let sent = (thread::current().id(), format!("{value:?}"));
            self.0.lock().expect("no test panics here").push(sent);
        }
    }
}

impl tracing::Subscriber for Messages {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("pagemill")
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn a_subscriber_sees_the_plan_the_lock_and_the_steps_of_the_commit_in_their_order() {
    each_of(&PgInstall::all()[..1], |install| {
        let mut cluster = empty_cluster(install)?;
        cluster.start()?;
        cluster.psql("postgres", TABLE)?;
        cluster.stop()?;
        let messages = Messages::default();
        tracing::subscriber::set_global_default(messages.clone())?;
        let locked = LockedCluster::open(cluster.data_dir())?;
        locked.load_rows("postgres", "goods", rows(1, 10), LoadOptions::default())?;
        drop(locked);
        let sent = messages.0.lock().expect("no test panics here").clone();
        let ours = sent.into_iter().filter(|(thread, _)| *thread == thread::current().id());
        let seen: Vec<_> = ours.map(|(_, message)| message).collect();
        let expected = [
            "lock file made",
            "load planned",
            "commit: WAL is durable",
            "commit: decided",
            "commit: shutdown checkpoint written",
            "loaded",
            "lock file removed",
        ];
        let places: Vec<_> =
            expected.iter().map(|one| seen.iter().position(|message| message == one)).collect();
        let in_order = places.is_sorted() && places.iter().all(Option::is_some);
        ensure!(in_order, "{places:?} of {seen:?}");
        Ok(())
    });
}

/// A reader that fails after some rows.
struct Failing<R>(R);

impl<R: Read> Read for Failing<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.0.read(out)? {
            0 => Err(io::Error::other("the network is gone")),
            count => Ok(count),
        }
    }
}

#[test]
fn a_reader_that_fails_leaves_the_table_as_it_was_and_names_itself() {
    each_of(&PgInstall::all()[..1], |install| {
        let mut cluster = empty_cluster(install)?;
        cluster.start()?;
        cluster.psql("postgres", TABLE)?;
        cluster.stop()?;
        let change = || {
            let locked = LockedCluster::open(cluster.data_dir())?;
            let options = CopyFromOptions { format: Format::Csv, ..CopyFromOptions::default() };
            let input = Failing(&b"1,one,1\n2,two,2\n"[..]);
            let failing = CopyFrom { input, options };
            let failed = locked.load("postgres", "goods", failing, LoadOptions::default());
            let message = failed.err().context("loaded")?.to_string();
            ensure!(message.contains("the network is gone"), "{message}");
            let twice = rows(1, 10).chain(rows(10, 1));
            let failed = locked.load_rows("postgres", "goods", twice, LoadOptions::default());
            let message = failed.err().context("loaded")?.to_string();
            ensure!(message.contains("goods_pkey"), "{message}");
            ensure!(locked.cluster()?.database("postgres")?.table("goods")?.count()? == 0);
            Ok::<_, anyhow::Error>(())
        };
        change()?;
        cluster.start()?;
        cluster.stop()
    });
}

#[test]
fn a_clone_has_the_rows_of_its_template_and_goes_when_it_is_dropped() {
    each_of(&PgInstall::all(), |install| {
        let mut cluster = empty_cluster(install)?;
        cluster.start()?;
        cluster.psql("postgres", TABLE)?;
        cluster.stop()?;
        let change = || {
            let locked = LockedCluster::open(cluster.data_dir())?;
            locked.load_rows("postgres", "goods", rows(1, 100), LoadOptions::default())?;
            locked.clone_database("postgres", "copied")?;
            locked.load_rows("postgres", "goods", rows(101, 1), LoadOptions::default())?;
            locked.clone_database("postgres", "gone")?;
            let again =
                locked.clone_database("postgres", "copied").err().context("cloned twice")?;
            ensure!(again.to_string().contains("exists already"), "{again}");
            locked.drop_database("gone")?;
            let names = locked.cluster()?.database_names()?;
            ensure!(names.contains(&"copied".to_owned()) && !names.contains(&"gone".to_owned()));
            Ok::<_, anyhow::Error>(())
        };
        change()?;
        cluster.start()?;
        let count = cluster.psql("copied", "SELECT count(*) FROM goods")?;
        ensure!(count.trim_end() == "100", "{count}");
        let running = LockedCluster::open(cluster.data_dir()).err().context("beside a server")?;
        ensure!(running.to_string().contains("a server is running here"), "{running}");
        cluster.stop()
    });
}

/// Taking the lock as root makes the owner of the directory the real user of the thread, so that a starting server sees it. It
/// stayed so afterwards, and servers that the same thread started later did not find their libraries: the dynamic loader
/// believes no `$ORIGIN` where real and effective user differ.
#[test]
fn a_lock_that_is_given_back_leaves_the_thread_with_the_users_it_had() {
    let users = || -> anyhow::Result<String> {
        let status = std::fs::read_to_string("/proc/thread-self/status")?;
        status.lines().find(|line| line.starts_with("Uid:")).map(str::to_owned).context("no users")
    };
    each_of(&PgInstall::all()[..1], |install| {
        let cluster = empty_cluster(install)?;
        let before = users()?;
        let locked = LockedCluster::open(cluster.data_dir())?;
        let is_root = before.split_whitespace().nth(2) == Some("0");
        ensure!(!is_root || users()? != before, "as root, the owner is the real user meanwhile");
        drop(locked);
        ensure!(users()? == before, "{before} before, {} afterwards", users()?);
        Ok(())
    });
}
