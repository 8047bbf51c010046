//! Azure and Google Cloud Storage: the servers that stand for them in tests, Azurite and fake-gcs-server, with a cluster in each.
//!
//! Both are fetched by npm and Go where these are there, once, into `~/.cache/pagemill-test`; a test prints that it was skipped
//! where one cannot be had.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};
use pagemill_testkit::skipped;

use super::stored::{cluster, install, printed};

const ASKED: [&[&str]; 3] = [
    &["ls", "-d", "shop"],
    &["count", "-d", "shop", "-t", "wide"],
    &["export", "-d", "postgres", "-t", "orders"],
];
/// Where they listen.
const HOST: &str = "127.0.0.1";
const AZURITE: &str = "azurite@3.37.0";
const FAKE_GCS_SERVER: &str = "github.com/fsouza/fake-gcs-server@v1.56.1";
/// The account that Azurite is made with, as its documentation has it.
const ACCOUNT: &str = "devstoreaccount1";
const ACCOUNT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A server that ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn kept(name: &str) -> Option<PathBuf> {
    Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/pagemill-test").join(name))
}

/// Runs what fetches a program, where it is not there yet; `None` where it cannot be had.
fn fetched(program: PathBuf, fetch: &mut Command) -> Option<PathBuf> {
    if !program.exists() {
        let output = fetch.stdin(Stdio::null()).output();
        if !output.is_ok_and(|output| output.status.success() && program.exists()) {
            skipped(format!("object stores: {} could not be fetched", program.display()));
            return None;
        }
    }
    Some(program)
}

/// A port of this machine that nobody listens on.
fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Waits until somebody listens.
fn until_answered(port: u16) -> Result<()> {
    for _ in 0..600 {
        if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    anyhow::bail!("nobody listens on port {port}")
}

/// Waits until a server prints that it is ready.
fn until_ready(running: &mut Running, words: &str) -> Result<()> {
    let output = running.0.stdout.take().context("no output")?;
    let mut lines = BufReader::new(output).lines();
    for line in lines.by_ref() {
        if line?.contains(words) {
            // Whoever prints must not wait for a reader.
            std::thread::spawn(move || lines.for_each(drop));
            return Ok(());
        }
    }
    anyhow::bail!("the server ended before it was ready")
}

/// Puts the files below a directory into a store.
fn upload(store: &Arc<dyn ObjectStore>, root: &Path) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                waiting.push(path);
                continue;
            }
            let name = path.strip_prefix(root)?.to_str().context("not a text")?;
            let bytes = std::fs::read(&path)?;
            let key = Key::from(format!("prod/{name}"));
            runtime.block_on(store.put(&key, PutPayload::from(bytes)))?;
        }
    }
    Ok(())
}

fn command(words: &[&str], directory: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagemill"));
    command.arg(words[0]).args(["-D", directory]).args(&words[1..]);
    command.env_remove("PGDATA").env("NO_PROXY", "127.0.0.1").args(["--remote-cache", "none"]);
    command
}

#[test]
fn a_cluster_in_azure_reads_the_same() -> Result<()> {
    let (Some(install), Some(kept)) = (install(), kept("azurite")) else { return Ok(()) };
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
        .arg(&kept)
        .arg(AZURITE);
    let Some(program) = fetched(kept.join("node_modules/.bin/azurite-blob"), &mut npm) else {
        return Ok(());
    };
    let (port, data) = (free_port()?, tempfile::tempdir()?);
    let mut azurite = Command::new(program);
    azurite.args(["--blobPort", &port.to_string(), "--skipApiVersionCheck", "--location"]);
    let azurite = azurite.arg(data.path()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut azurite = Running(azurite);
    until_ready(&mut azurite, "successfully listen")?;
    let endpoint = format!("http://{HOST}:{port}/{ACCOUNT}");
    make_container(&endpoint)?;
    let store = MicrosoftAzureBuilder::new()
        .with_account(ACCOUNT)
        .with_access_key(ACCOUNT_KEY)
        .with_container_name("snapshots")
        .with_endpoint(endpoint.clone())
        .with_allow_http(true)
        .build()?;
    let mut cluster = cluster(&install)?;
    cluster.stop()?;
    upload(&(Arc::new(store) as Arc<dyn ObjectStore>), &cluster.data_dir())?;
    for words in ASKED {
        let here = printed(&mut command(words, cluster.data_dir().to_str().context("no text")?))?;
        let mut there = command(words, "az://snapshots/prod");
        there.env("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT);
        there.env("AZURE_STORAGE_ACCOUNT_KEY", ACCOUNT_KEY);
        there.env("AZURE_STORAGE_ENDPOINT", &endpoint);
        ensure!(printed(&mut there)? == here, "{words:?}");
    }
    Ok(())
}

/// Azurite makes no container by itself, and the client none at all: one request of Azure's by curl, signed by an address that its
/// own program makes.
fn make_container(endpoint: &str) -> Result<()> {
    const SCRIPT: &str = "\
const crypto = require('crypto'), http = require('http');
const [account, key, endpoint] = process.argv.slice(1);
const url = new URL(endpoint + '/snapshots?restype=container');
const date = new Date().toUTCString(), version = '2021-08-06';
const words = ['PUT', '', '', '', '', '', '', '', '', '', '', '',
  `x-ms-date:${date}\\nx-ms-version:${version}`, `/${account}${url.pathname}\\nrestype:container`];
const sign = crypto.createHmac('sha256', Buffer.from(key, 'base64')).update(words.join('\\n'), 'utf8').digest('base64');
const headers = { 'x-ms-date': date, 'x-ms-version': version, 'content-length': 0, Authorization: `SharedKey ${account}:${sign}` };
http.request(url, { method: 'PUT', headers }, (answer) => {
  answer.pipe(process.stderr); process.exitCode = answer.statusCode === 201 ? 0 : 1;
}).end();";
    let mut node = Command::new("node");
    let output = node.args(["-e", SCRIPT, ACCOUNT, ACCOUNT_KEY, endpoint]).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

#[test]
fn a_cluster_in_google_cloud_storage_reads_the_same() -> Result<()> {
    let (Some(install), Some(kept)) = (install(), kept("go")) else { return Ok(()) };
    let mut go = Command::new("go");
    go.args(["install", FAKE_GCS_SERVER]).env("GOBIN", &kept);
    let Some(program) = fetched(kept.join("fake-gcs-server"), &mut go) else { return Ok(()) };
    let (port, data) = (free_port()?, tempfile::tempdir()?);
    let mut cluster = cluster(&install)?;
    cluster.stop()?;
    // A folder in its data is a bucket.
    let bucket = data.path().join("snapshots");
    std::fs::create_dir(&bucket)?;
    let mut copy = Command::new("cp");
    ensure!(copy.arg("-r").arg(cluster.data_dir()).arg(bucket.join("prod")).status()?.success());
    let mut server = Command::new(program);
    server.args(["-scheme", "http", "-host", "127.0.0.1", "-port", &port.to_string(), "-data"]);
    server.arg(data.path()).args(["-backend", "memory"]);
    let endpoint = format!("http://{HOST}:{port}");
    let server = server.args(["-public-host", &format!("127.0.0.1:{port}")]);
    let _server = Running(server.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
    until_answered(port)?;
    for words in ASKED {
        let here = printed(&mut command(words, cluster.data_dir().to_str().context("no text")?))?;
        let mut there = command(words, "gs://snapshots/prod");
        there.env("STORAGE_EMULATOR_HOST", &endpoint);
        ensure!(printed(&mut there)? == here, "{words:?}");
    }
    Ok(())
}
