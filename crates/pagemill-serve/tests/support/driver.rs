//! A driver that asks the server and the files the same, and tells all that it was told.
//!
//! Invariant: what is asked goes by text, and what comes is compared in binary form, byte for byte.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use pagemill_testkit::TestCluster;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres::{Client, NoTls, Statement};

/// A text for any parameter.
#[derive(Debug)]
struct AnyText<'t>(Option<&'t str>);

impl ToSql for AnyText<'_> {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut tokio_postgres::types::private::BytesMut,
    ) -> Result<tokio_postgres::types::IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self.0 {
            None => Ok(tokio_postgres::types::IsNull::Yes),
            Some(text) => {
                out.extend_from_slice(text.as_bytes());
                Ok(tokio_postgres::types::IsNull::No)
            }
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> tokio_postgres::types::Format {
        tokio_postgres::types::Format::Text
    }

    tokio_postgres::types::to_sql_checked!();
}

/// The bytes of any value.
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl<'b> FromSql<'b> for Bytes {
    fn from_sql(_: &Type, raw: &'b [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(raw.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

pub(crate) async fn connect(socket: &Path, port: u16, user: &str) -> Result<Client> {
    let mut config = tokio_postgres::Config::new();
    config.host_path(socket).port(port).user(user).dbname("postgres").options("-c timezone=UTC");
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Values for the parameters of a statement, as texts.
pub(crate) type Values<'v> = &'v [Option<&'v str>];

/// All that a driver is told of a statement that runs with each of these values, as a text.
pub(crate) async fn asked(client: &Client, statement: &str, runs: &[Values<'_>]) -> String {
    let prepared = match client.prepare(statement).await {
        Ok(prepared) => prepared,
        Err(error) => return told(&error),
    };
    let columns = prepared.columns().iter().map(|column| {
        let origin = (column.table_oid(), column.column_id());
        format!("{} {} of {origin:?}", column.name(), column.type_())
    });
    let columns: Vec<String> = columns.collect();
    let mut all = format!("{:?} {columns:?}\n", prepared.params());
    for values in runs {
        all += &format!("with {values:?}:\n");
        all += &answer(client, &prepared, values).await;
    }
    all
}

async fn answer(client: &Client, prepared: &Statement, values: Values<'_>) -> String {
    let values: Vec<AnyText<'_>> = values.iter().map(|value| AnyText(*value)).collect();
    let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
    let rows = match client.query(prepared, &values).await {
        Err(error) => return told(&error),
        Ok(rows) => rows,
    };
    let mut all = String::new();
    for row in rows {
        let value = |at| row.get::<_, Option<Bytes>>(at).map(|bytes| bytes.0);
        let values: Vec<Option<Vec<u8>>> = (0..row.len()).map(value).collect();
        all += &format!("{values:?}\n");
    }
    all
}

pub(crate) fn told(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(error) => format!("{} {}\n", error.code().code(), error.message()),
        None => format!("{error}\n"),
    }
}

/// A client of the cluster's own server.
#[allow(dead_code)] // Not all tests ask it by one client.
pub(crate) async fn server_client(cluster: &TestCluster) -> Result<Client> {
    let (host, port) = server_place(cluster)?;
    connect(&host, port, &user(cluster)?).await
}

/// Where the cluster's own server listens: what its psql is told.
pub(crate) fn server_place(cluster: &TestCluster) -> Result<(PathBuf, u16)> {
    let command = cluster.psql_command("postgres");
    let of = |wanted: &str| {
        let mut all = command.get_envs().filter(|(name, _)| *name == wanted);
        all.next().and_then(|(_, value)| value).map(Path::new).context("psql is told the place")
    };
    let port = of("PGPORT")?.to_string_lossy().parse()?;
    Ok((of("PGHOST")?.to_owned(), port))
}

pub(crate) fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

pub(crate) fn user(cluster: &TestCluster) -> Result<String> {
    let command = cluster.psql_command("postgres");
    let found = command.get_envs().find(|(name, _)| *name == "PGUSER").and_then(|(_, value)| value);
    Ok(found.context("psql is told the user")?.to_string_lossy().into_owned())
}
