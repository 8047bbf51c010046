//! Clients that stay, and the clusters that they ask of.
//!
//! What is told in the place of an answer is compared as SQLSTATE, message and hint.

use std::path::Path;

use anyhow::{Context as _, Result};
use pagemill_testkit::{ClusterOptions, PgInstall, TestCluster};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Config, NoTls, SimpleQueryMessage};

use crate::support::Served;

/// A cluster with these databases, each made by statements, stopped.
pub(crate) fn cluster(databases: &[(&str, &str)]) -> Result<TestCluster> {
    let install = PgInstall::find(15).context("PostgreSQL 15 is installed")?;
    let mut cluster = TestCluster::create(&install, &ClusterOptions::default())?;
    for (name, statements) in databases {
        if *name != "postgres" {
            cluster.psql("postgres", &format!("create database {name}"))?;
        }
        cluster.psql(name, statements)?;
    }
    cluster.stop()?;
    Ok(cluster)
}

/// A connection, and what drives it.
pub(crate) struct Client {
    runtime: Runtime,
    client: tokio_postgres::Client,
}

/// What went wrong, as its SQLSTATE, its message, and its hint where there is one.
pub(crate) type Told = (String, String);

impl Client {
    /// Through the socket, as the superuser.
    pub(crate) fn connect(directory: &Path, database: &str) -> Result<Self, Told> {
        Self::by(Config::new().host_path(directory).user("postgres").dbname(database))
    }

    /// As it is configured.
    pub(crate) fn by(config: &Config) -> Result<Self, Told> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| (String::new(), error.to_string()))?;
        let (client, connection) = runtime.block_on(config.connect(NoTls)).map_err(told)?;
        runtime.spawn(connection);
        Ok(Self { runtime, client })
    }

    /// The first values of all rows.
    pub(crate) fn ask(&self, text: &str) -> Result<Vec<String>, Told> {
        let answer = self.runtime.block_on(self.client.simple_query(text)).map_err(told)?;
        let row = |message| match message {
            SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("NULL").to_owned()),
            _ => None,
        };
        Ok(answer.into_iter().filter_map(row).collect())
    }

    /// How many columns a statement has, which is not run.
    #[allow(dead_code)] // Not all tests prepare.
    pub(crate) fn prepare(&self, text: &str) -> Result<usize, Told> {
        let prepared = self.runtime.block_on(self.client.prepare(text)).map_err(told)?;
        Ok(prepared.columns().len())
    }
}

fn told(error: tokio_postgres::Error) -> Told {
    match error.as_db_error() {
        Some(found) => {
            let hint = found.hint().map(|hint| format!(" / {hint}")).unwrap_or_default();
            (found.code().code().to_owned(), format!("{}{hint}", found.message()))
        }
        None => (String::new(), error.to_string()),
    }
}

/// The answer of a session of its own.
pub(crate) fn asked(served: &Served, database: &str, text: &str) -> Result<Vec<String>, Told> {
    Client::connect(served.directory.path(), database)?.ask(text)
}
