//! Of which statements a plan is kept, and that it is run.
//!
//! Invariant: a plan is there from the second run on, of a text or of one that is like it, and never for the first.

use pagemill_cluster::{Cluster, OpenOptions};
use pagemill_engine::{OnDamage, Progress, ScanOptions};
use pagemill_io::Storage;
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::Tokenizer;

use crate::parameters::ParameterValue;
use crate::session::{Session, SessionOptions, TextOrder};
use crate::statement_texts::{StatementText, StatementTexts};

const TABLES: &str = "create table t(id int primary key, name text, at timestamptz, n numeric);
    insert into t select i, 'name ' || i, now(), i from generate_series(1, 5000) i; checkpoint";

/// Statements, and whether any values are as good as others for their plan.
const STATEMENTS: [(&str, bool); 9] = [
    ("select name, $2::text from t where id = $1", true),
    ("select count(*) from t a join t b using (id) where a.id between $1 and $2::int", true),
    ("select name from t where id > $1 and $2 = name order by id limit 3", true),
    // An index may be searched by a pattern that begins with plain characters, if it is known.
    ("select id from t where id > $1 and name like $2", false),
    ("select now() from t where id = $1 or name = $2", false),
    ("select id from t where id = $1 and $2::text is not null limit $1", false),
    // It can fail on a row that the first condition leaves out, and so stays behind it.
    ("select id from t where id = $1 and 1 / (id - $2::int) > 0", false),
    ("select (select name from t u where u.id = t.id and u.id < $1) from t where name = $2", true),
    // It is run for each row.
    (
        "select (select u.id from t u where u.id > t.id + $1 order by u.n limit 1) from t where id = $2",
        false,
    ),
];

/// Two texts, and whether the second runs by the plan that is kept for the first.
const TEXTS: [(&str, &str, bool); 12] = [
    ("select name from t where id = -1", "select name from t where id = -2", true),
    ("select 5 from t where id = 1", "select 5 from t where id = 2", true),
    ("select 5 from t where id = 1", "select 6 from t where id = 2", false),
    (
        "select id from t where name = 'a' limit 3",
        "select id from t where name = 'b' limit 3",
        true,
    ),
    (
        "select id from t where n in (1.5, 2.5, 3.5, 4.5)",
        "select id from t where n in (1.6, 2.6, 3.6, 4.6)",
        true,
    ),
    ("select id from t where id + 1 > 5", "select id from t where id + 2 > 5", false),
    ("select id from t where at > '2024-01-01'", "select id from t where at > '2025-01-01'", true),
    ("select id from t where at > '2024-01-01'", "select id from t where at > 'no moment'", false),
    (
        "select u.id from t join t u using (id) where t.name = 'a'",
        "select u.id from t join t u using (id) where t.name = 'b'",
        true,
    ),
    ("select id from t order by 1 limit 2", "select id from t order by 1 limit 2", true),
    ("select version()", "select version()", true),
    ("select now(), id from t where id = 1", "select now(), id from t where id = 2", false),
];

/// A text of one line in ASCII.
fn read(texts: &StatementTexts, text: &str) -> StatementText {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location().unwrap();
    texts.read(text, &tokens, |place| usize::try_from(place.column).unwrap() - 1).unwrap()
}

fn value(type_oid: pagemill_format::Oid, text: &str) -> ParameterValue {
    ParameterValue { type_oid, is_binary: false, value: Some(text.as_bytes().to_vec()) }
}

#[test]
fn a_plan_is_kept_where_it_is_as_good_for_any_values() {
    let install = PgInstall::find(15).expect("PostgreSQL 15 is installed");
    let mut server = TestCluster::create(&install, &ClusterOptions::default()).unwrap();
    server.psql("postgres", TABLES).unwrap();
    server.stop().unwrap();
    let cluster =
        Cluster::open(Storage::real(), &server.data_dir(), OpenOptions::default()).unwrap();
    let scan = ScanOptions::default();
    let options = SessionOptions {
        jobs: 1,
        memory: None,
        scan,
        on_damage: OnDamage::Stop,
        text_order: TextOrder::default(),
    };
    let session = Session::open(&cluster.database("postgres").unwrap(), options).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    for (first, second, is_kept) in TEXTS {
        let texts = StatementTexts::default();
        let [_, again, third] = [first, first, second].map(|text| read(&texts, text));
        let progress = Progress::default();
        let started = runtime.block_on(session.start_text(&again, &progress));
        assert!(started.is_ok(), "{first}");
        assert_eq!(session.prepared_before(&third, &[]).is_some(), is_kept, "{second}");
    }
    for (text, is_kept) in STATEMENTS {
        let statement = StatementText::from(Session::parse(text).unwrap().remove(0));
        let prepared = session.prepare(&statement, &[]).unwrap();
        let values: Vec<ParameterValue> = prepared.types.iter().map(|ty| value(*ty, "7")).collect();
        for run in 0..3 {
            let progress = Progress::default();
            let executed = async {
                let mut rows = session.execute((&statement, &prepared), &values, &progress).await?;
                while rows.next().await?.is_some() {}
                Ok::<(), crate::Error>(())
            };
            // Errors on values are the statement's, and not the plan's.
            let _ = runtime.block_on(executed);
            assert_eq!(prepared.plan().kept().is_some(), is_kept && run > 0, "{text}, run {run}");
        }
    }
}
