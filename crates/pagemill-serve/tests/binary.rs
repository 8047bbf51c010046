//! Values of each type that has a binary form here go out in it as the server sends them, and are taken back in it.
//!
//! Invariant: what is sent to either is what the server itself sent.

#[path = "support/driver.rs"]
#[expect(dead_code, reason = "texts are asked for elsewhere")]
mod driver;
mod support;

use anyhow::{Context as _, Result, ensure};
use driver::{Bytes, connect, runtime, server_client, told, user};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster, is_before_15_20};
use support::Served;
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, NoTls};

/// A type each, with texts of values.
const VALUES: [(&str, &[&str]); 64] = [
    ("bool", &["t", "f"]),
    ("bytea", &["\\x00ff10", ""]),
    ("\"char\"", &["a"]),
    ("name", &["a name"]),
    ("int2", &["-7"]),
    ("int4", &["2147483647"]),
    ("int8", &["-9223372036854775808"]),
    ("float4", &["1.5", "NaN"]),
    ("float8", &["-0.1", "Infinity"]),
    ("numeric", &["123456.789", "-0.00012", "NaN"]),
    ("money", &["-12.34"]),
    ("text", &["ümlaut", ""]),
    ("varchar", &["x"]),
    ("bpchar", &["x  "]),
    ("uuid", &["c4ca4238-a0b9-2382-0dcc-509a6f75849b"]),
    ("date", &["2024-02-29", "-infinity"]),
    ("time", &["12:34:56.789"]),
    ("timetz", &["12:34:56.789+02"]),
    ("timestamp", &["1999-12-31 23:59:59.999999"]),
    ("timestamptz", &["2024-01-01 00:00:00+00"]),
    ("interval", &["1 mon -2 days 03:04:05"]),
    ("json", &["{\"a\": 1}"]),
    ("jsonb", &["{\"a\": [1, null]}"]),
    ("jsonpath", &["$.a[*]"]),
    ("xml", &["<a/>"]),
    ("inet", &["10.1.2.3/24", "::1"]),
    ("cidr", &["10.1.0.0/16", "2001:db8::/32"]),
    ("macaddr", &["08:00:2b:01:02:03"]),
    ("macaddr8", &["08:00:2b:01:02:03:04:05"]),
    ("varbit", &["1011001101", ""]),
    ("point", &["(1,-2.5)"]),
    ("box", &["(3,4),(1,2)"]),
    ("lseg", &["[(1,2),(3,4)]"]),
    ("line", &["{1,2,3}"]),
    ("circle", &["<(1,2),3>"]),
    ("pg_lsn", &["16/B374D848"]),
    ("xid8", &["4294967297"]),
    ("tid", &["(65537,3)"]),
    ("oid", &["4294967295"]),
    ("regtype", &["integer"]),
    ("regclass", &["pg_class"]),
    ("mood", &["ok"]),
    ("int4[]", &["{1,NULL,-3}", "{}", "[2:3][-1:0]={{1,2},{3,4}}"]),
    ("text[]", &["{a,\"b c\",NULL,\"\"}"]),
    ("numeric[]", &["{1.50,NaN,-1000000}"]),
    ("mood[]", &["{sad,ok}"]),
    ("jsonb[]", &["{\"{\\\"a\\\": 1}\"}"]),
    ("timestamptz[]", &["{2024-01-01 00:00:00+00,infinity}"]),
    ("path", &["((1,2),(3.5,-4))", "[(0,0)]"]),
    ("polygon", &["((1,2),(3,4),(5,Infinity))"]),
    ("tsvector", &["'a' 'cat':3A,5 'it''s':1B 'lon\\\\g':16383", ""]),
    ("tsquery", &["'a' & !('b':*AB | 'it''s') <2> 'c':D", "'x'", ""]),
    ("int4range", &["[1,5)", "(,7]", "empty", "(,)"]),
    ("int8range", &["[-9223372036854775808,0]"]),
    ("numrange", &["(1.50,2.5]", "[0,)"]),
    ("daterange", &["[2024-01-01,2024-02-29]"]),
    ("tsrange", &["[\"2024-01-01 00:00:00\",infinity)"]),
    ("tstzrange", &["(,\"2024-01-01 00:00:00+00\"]"]),
    ("texts", &["[a,\"b\"\"\\\\, c\")", "[\"\",)"]),
    ("int4multirange", &["{[1,3),[5,9)}", "{}"]),
    ("nummultirange", &["{(,1.5],[2,)}"]),
    ("int4range[]", &["{\"[1,5)\",NULL}"]),
    ("pair", &["(1,\"a \"\"b\"\", c\",2024-02-29,\"[1,5)\",ok)", "(,,,,)"]),
    ("pair[]", &["{\"(1,x,2024-01-01,empty,sad)\"}"]),
];

/// Bytes in binary form, for a parameter of any type.
#[derive(Debug)]
struct Binary(Vec<u8>);

impl ToSql for Binary {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut tokio_postgres::types::private::BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Binary
    }

    to_sql_checked!();
}

/// A value in binary form as an expression gives it.
async fn sent(client: &Client, ty: &str, text: &str) -> Result<Vec<u8>> {
    let literal = text.replace('\'', "''");
    let row = client.query_one(&format!("select '{literal}'::{ty}"), &[]).await?;
    Ok(row.get::<_, Bytes>(0).0)
}

/// What comes back of these bytes for a parameter, in binary form and as a text.
async fn returned(client: &Client, ty: &str, bytes: &[u8]) -> Result<(Vec<u8>, String), String> {
    let all = [&Binary(bytes.to_vec()) as &(dyn ToSql + Sync)];
    let statement = format!("select $1::{ty}, concat($1::{ty})");
    let row = client.query_one(&statement, &all).await.map_err(|error| told(&error))?;
    Ok((row.get::<_, Bytes>(0).0, String::from_utf8_lossy(&row.get::<_, Bytes>(1).0).into_owned()))
}

/// The same with a byte fewer, one more, and none: refused, or taken, and in the same way.
async fn maltreated(client: &Client, ty: &str, bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
    let shorter = bytes.split_last().map_or(&[][..], |(_, rest)| rest).to_vec();
    let longer = [bytes, &[0]].concat();
    let mut all = Vec::new();
    for bytes in [shorter, longer] {
        let found = returned(client, ty, &bytes).await;
        // The words differ from type to type on the server.
        all.push(found.map(|(bytes, _)| bytes).ok());
    }
    all
}

async fn all(client: &Client) -> Result<Vec<String>> {
    let mut answers = Vec::new();
    for (ty, texts) in VALUES {
        for text in texts {
            let bytes = sent(client, ty, text).await.with_context(|| format!("{ty} {text}"))?;
            let back = returned(client, ty, &bytes).await;
            // Texts of another length are texts, numbers of another length are none.
            let is_text = matches!(
                ty,
                "text" | "varchar" | "bpchar" | "name" | "bytea" | "json" | "xml" | "mood"
            );
            let bad = if is_text { Vec::new() } else { maltreated(client, ty, &bytes).await };
            answers.push(format!("{ty} {text}: {bytes:?} {back:?} {bad:?}"));
        }
    }
    Ok(answers)
}

#[test]
fn what_the_server_sends_is_sent_and_taken() -> Result<()> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let mut cluster = TestCluster::create(&install, &ClusterOptions::default())?;
    let types = "create type mood as enum ('sad', 'ok'); create type texts as range (subtype = text, collation = \"C\");
        create type pair as (n int, t text, d date, r int4range, m mood)";
    cluster.psql("postgres", types)?;
    let is_old = is_before_15_20(&cluster)?;
    let expected = runtime()?.block_on(async { all(&server_client(&cluster).await?).await })?;
    cluster.stop()?;
    let served = Served::start(&cluster, &["-p", "5432"])?;
    runtime()?.block_on(async {
        let client = connect(served.directory.path(), 5432, &user(&cluster)?).await?;
        let found = all(&client).await?;
        // Minor versions before 15.20 sent a tsquery without words, and did not take it.
        let is_known = |answer: &str| is_old && answer.starts_with("tsquery : ");
        let differing = expected.iter().zip(&found).filter(|(a, b)| a != b && !is_known(a));
        let differing: Vec<_> = differing.collect();
        ensure!(differing.is_empty() && expected.len() == found.len(), "{differing:#?}");
        let client = connect(served.directory.path(), 5432, &user(&cluster)?).await?;
        let wrong = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 25, 0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 1];
        let refused = returned(&client, "text[]", &wrong).await.err().context("no such array")?;
        ensure!(refused.starts_with("22P03"), "{refused}");
        client.cancel_token().cancel_query(NoTls).await?;
        Ok(())
    })
}
