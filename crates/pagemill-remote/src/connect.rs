//! A client for a store, with what the environment says as the clouds' own tools take it.
//!
//! | store | settings |
//! | --- | --- |
//! | S3 | `AWS_ACCESS_KEY_ID` and its kin, `AWS_ENDPOINT_URL`, `AWS_REGION`; the files of `aws` with `AWS_PROFILE`; roles of the machine |
//! | Google | `GOOGLE_APPLICATION_CREDENTIALS`, the files of `gcloud`, the machine's account; `STORAGE_EMULATOR_HOST` |
//! | Azure | `AZURE_STORAGE_ACCOUNT_NAME`, `AZURE_STORAGE_ACCOUNT_KEY` and their kin, the machine's identity |
//!
//! Not supported: profiles of `aws` that name a role or single sign-on.
//!
//! Invariants: nothing of it is printed; the client itself tries nothing again, as `http_requests` does.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as S3Key};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};

use crate::aws_profile::AwsProfile;
use crate::error::{RemoteError, Result};
use crate::http_requests::Connector;
use crate::object::innermost;
use crate::url::{Kind, Url};

/// A name is looked up and a connection made within this time, or it is tried again.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The client of a store.
///
/// # Errors
/// When the settings in the environment do not make one.
pub(crate) fn client(url: &Url, connector: &Connector) -> Result<Arc<dyn ObjectStore>> {
    let client = match url.kind {
        Kind::S3 => s3(url, connector),
        Kind::Google => google(url, connector),
        Kind::Azure => azure(url, connector),
        Kind::Web => web(url, connector),
    };
    client.map_err(|error| RemoteError::Settings(innermost(&error)))
}

type Made = object_store::Result<Arc<dyn ObjectStore>>;

fn options(allow_http: bool) -> ClientOptions {
    // The time for a range is given by http_requests and object, byte by byte: a slow link is no failure.
    ClientOptions::new()
        .with_timeout_disabled()
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_allow_http(allow_http)
        .with_http1_only()
}

pub(crate) fn never() -> RetryConfig {
    RetryConfig { backoff: BackoffConfig::default(), max_retries: 0, ..RetryConfig::default() }
}

fn s3(url: &Url, connector: &Connector) -> Made {
    let mut builder = AmazonS3Builder::from_env();
    let is_set = |builder: &AmazonS3Builder, key| builder.get_config_value(&key).is_some();
    let profile = AwsProfile::read();
    if !is_set(&builder, S3Key::AccessKeyId) && !uses_a_role(&builder) {
        for (key, value) in profile.credentials() {
            builder = builder.with_config(key, value);
        }
    }
    for (key, value) in profile.settings() {
        if !is_set(&builder, key) {
            builder = builder.with_config(key, value);
        }
    }
    let endpoint = [S3Key::S3Endpoint, S3Key::Endpoint];
    let endpoint = endpoint.iter().find_map(|key| builder.get_config_value(key));
    let allow_http = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"));
    let builder = builder
        .with_url(&url.store)
        .with_client_options(options(allow_http))
        .with_retry(never())
        .with_http_connector(connector.clone());
    Ok(Arc::new(builder.build()?))
}

/// Credentials that are asked for in another way than by a key.
fn uses_a_role(builder: &AmazonS3Builder) -> bool {
    let keys = [
        S3Key::WebIdentityTokenFile,
        S3Key::ContainerCredentialsRelativeUri,
        S3Key::ContainerCredentialsFullUri,
        S3Key::SkipSignature,
    ];
    keys.iter().any(|key| builder.get_config_value(key).is_some_and(|value| value != "false"))
}

fn google(url: &Url, connector: &Connector) -> Made {
    let mut builder = GoogleCloudStorageBuilder::from_env();
    // As Google's own libraries take it: a server that asks for no credentials.
    let emulator = std::env::var("STORAGE_EMULATOR_HOST").ok().filter(|host| !host.is_empty());
    if let Some(host) = &emulator {
        let address = if host.contains("://") { host.clone() } else { format!("http://{host}") };
        builder = builder.with_base_url(&address).with_skip_signature(true);
    }
    let base = builder.get_config_value(&GoogleConfigKey::BaseUrl);
    let allow_http = base.is_some_and(|base| base.starts_with("http://"));
    let builder = builder
        .with_url(&url.store)
        .with_client_options(options(allow_http))
        .with_retry(never())
        .with_http_connector(connector.clone());
    Ok(Arc::new(builder.build()?))
}

fn azure(url: &Url, connector: &Connector) -> Made {
    let builder = MicrosoftAzureBuilder::from_env();
    let endpoint = builder.get_config_value(&AzureConfigKey::Endpoint);
    let emulator = builder.get_config_value(&AzureConfigKey::UseEmulator);
    let allow_http = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"))
        || emulator.is_some_and(|value| value == "true");
    let builder = builder
        .with_url(&url.store)
        .with_client_options(options(allow_http))
        .with_retry(never())
        .with_http_connector(connector.clone());
    Ok(Arc::new(builder.build()?))
}

fn web(url: &Url, connector: &Connector) -> Made {
    let builder = HttpBuilder::new()
        .with_url(&url.store)
        .with_client_options(options(url.store.starts_with("http://")))
        .with_retry(never())
        .with_http_connector(connector.clone());
    Ok(Arc::new(builder.build()?))
}
