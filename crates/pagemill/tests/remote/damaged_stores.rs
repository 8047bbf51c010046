//! Stores that refuse, throttle, break off and change under the reader: the right answer after retries that are counted, or one
//! line that says what is wrong.
//!
//! Invariant: never a wrong answer.

use anyhow::{Result, ensure};
use pagemill_testbucket::{Fault, Requests};
use pagemill_testkit::TestCluster;

use super::stored::{Stored, cluster, install, printed, refused, told};

const COUNT: [&str; 5] = ["count", "-d", "shop", "-t", "wide"];

/// A cluster in a bucket.
struct Shop {
    stored: Stored,
    url: String,
    /// The file of the table that is counted.
    wide: String,
    /// Its files go with it.
    _cluster: TestCluster,
}

fn shop() -> Result<Option<Shop>> {
    let Some(install) = install() else { return Ok(None) };
    let mut cluster = cluster(&install)?;
    let wide = cluster.psql("shop", "select pg_relation_filepath('wide')")?.trim().to_owned();
    cluster.stop()?;
    let stored = Stored::new(cluster.root())?;
    let url = stored.url(&cluster.data_dir())?;
    Ok(Some(Shop { stored, url, wide, _cluster: cluster }))
}

#[test]
fn what_passes_is_tried_again_and_counted() -> Result<()> {
    let Some(Shop { stored, url, wide, _cluster }) = shop()? else { return Ok(()) };
    let expected = printed(&mut stored.command(&COUNT, &url))?;
    for (requests, suffix, fault, times) in [
        (Requests::All, "", Fault::Refusal(503, "SlowDown"), 3),
        (Requests::Gets, "", Fault::Refusal(500, "InternalError"), 2),
        (Requests::Lists, "", Fault::Refusal(429, "TooManyRequests"), 1),
        (Requests::Gets, "", Fault::Cut(0), 1),
        // What came before it broke off is not asked for again.
        (Requests::Gets, &*wide, Fault::Cut(300_000), 2),
        (Requests::Gets, "", Fault::Short, 2),
        (Requests::All, "", Fault::Dropped, 2),
    ] {
        stored.bucket.break_requests(requests, suffix, fault.clone(), Some(times));
        let output = stored.command(&COUNT, &url).arg("--stats").output()?;
        ensure!(output.status.success() && output.stdout == expected, "{}", told(&output));
        ensure!(stored.bucket.mend() == 0, "{fault:?} did not strike");
        let said = told(&output);
        let retries = said.lines().find_map(|line| line.strip_prefix("retries")).map(str::trim);
        ensure!(retries == Some(&*times.to_string()), "{fault:?}: {said}");
    }
    Ok(())
}

#[test]
fn what_does_not_pass_is_told_at_once() -> Result<()> {
    let Some(Shop { stored, url, _cluster, .. }) = shop()? else { return Ok(()) };
    for (requests, fault, words) in [
        (Requests::All, Fault::Refusal(403, "AccessDenied"), "does not allow listing"),
        (Requests::Gets, Fault::Refusal(403, "AccessDenied"), "does not allow reading"),
        (Requests::All, Fault::Refusal(400, "ExpiredToken"), "the credentials have expired"),
        (Requests::All, Fault::Refusal(301, "PermanentRedirect"), "in another region"),
        (Requests::All, Fault::Refusal(404, "NoSuchBucket"), "no such bucket"),
    ] {
        stored.bucket.take_log();
        stored.bucket.break_requests(requests, "", fault.clone(), None);
        let said = refused(&mut stored.command(&COUNT, &url))?;
        ensure!(said.contains(words) && said.contains("s3://"), "{fault:?}: {said}");
        stored.bucket.mend();
    }
    let said = refused(stored.command(&COUNT, &url).env("AWS_SECRET_ACCESS_KEY", "another"))?;
    ensure!(said.contains("the credentials were refused") && !said.contains("another"), "{said}");
    let said = refused(&mut stored.command(&COUNT, "s3://elsewhere/x"))?;
    ensure!(said.contains("no such bucket (s3://elsewhere)"), "{said}");
    let said = refused(&mut stored.command(&COUNT, &format!("{url}-absent")))?;
    ensure!(said.contains("not a PostgreSQL data directory"), "{said}");
    Ok(())
}

#[test]
fn an_object_that_is_replaced_while_it_is_read_is_an_error() -> Result<()> {
    let Some(Shop { stored, url, wide, _cluster }) = shop()? else { return Ok(()) };
    stored.bucket.break_requests(Requests::Gets, &wide, Fault::Replaced, Some(1));
    let said = refused(&mut stored.command(&COUNT, &url))?;
    ensure!(
        said.contains(&wide) && said.contains("replaced or removed while it was read"),
        "{said}"
    );
    Ok(())
}

#[test]
fn without_credentials_the_message_says_so() -> Result<()> {
    let Some(Shop { stored, url, _cluster, .. }) = shop()? else { return Ok(()) };
    let mut command = stored.command(&COUNT, &url);
    command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
    command.env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
    // Where a machine of the cloud would answer, nobody does.
    command
        .env("AWS_METADATA_ENDPOINT", "http://localhost:9")
        .env("NO_PROXY", "localhost,127.0.0.1");
    let said = refused(&mut command)?;
    ensure!(said.contains("no credentials for S3 were found"), "{said}");
    Ok(())
}
