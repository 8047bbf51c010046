//! URLs as paths: `s3://bucket/path` stays the path that was typed, and its components say which store is meant and which key.
//!
//! Keys are the names as they are, with nothing percent-encoded.
//!
//! Invariant: what has no known scheme is a path of this machine.

use std::path::{Component, Path};

use object_store::path::Path as Key;
use pagemill_io::url_paths::scheme_of;

use crate::error::{RemoteError, Result};

/// The kinds of stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    S3,
    Google,
    Azure,
    /// A web server that lists its directories (WebDAV).
    Web,
}

/// A path on a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) kind: Kind,
    /// The store, as a URL: `s3://bucket`.
    pub(crate) store: String,
    /// Where on it, without a slash in front.
    pub(crate) key: Key,
}

impl Url {
    /// The URL that a path is; `None` for a path of this machine.
    ///
    /// # Errors
    /// When it names no bucket, or has names that stores do not have.
    pub(crate) fn of(path: &Path) -> Result<Option<Self>> {
        let Some(scheme) = scheme_of(path) else { return Ok(None) };
        let wrong = || RemoteError::Url(path.display().to_string());
        let mut names = Vec::new();
        for component in path.components().skip(1) {
            match component {
                Component::Normal(name) => names.push(name.to_str().ok_or_else(wrong)?),
                Component::CurDir => {}
                Component::ParentDir if names.len() > 1 => drop(names.pop()),
                _ => return Err(wrong()),
            }
        }
        let host = *names.first().ok_or_else(wrong)?;
        let kind = kind_of(scheme, host);
        // Hosts of clouds have the bucket in front of the key.
        let buckets = usize::from(scheme == "https" && kind != Kind::Web && !is_bucket_host(host));
        let bucket = names.get(1..=buckets).ok_or_else(wrong)?;
        let store = [&[&*format!("{scheme}://{host}")], bucket].concat().join("/");
        let key = Key::parse(names[1 + buckets..].join("/")).map_err(|_| wrong())?;
        Ok(Some(Self { kind, store, key }))
    }
}

fn kind_of(scheme: &str, host: &str) -> Kind {
    match scheme {
        "s3" | "s3a" => Kind::S3,
        "gs" => Kind::Google,
        "az" | "azure" | "abfs" | "abfss" => Kind::Azure,
        _ if host.ends_with(".amazonaws.com") || host.ends_with(".r2.cloudflarestorage.com") => {
            Kind::S3
        }
        _ if host.ends_with(".core.windows.net") || host.ends_with(".fabric.microsoft.com") => {
            Kind::Azure
        }
        _ => Kind::Web,
    }
}

/// True for `bucket.s3.region.amazonaws.com`.
fn is_bucket_host(host: &str) -> bool {
    host.ends_with(".amazonaws.com") && !host.starts_with("s3.") && !host.starts_with("s3-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> (Kind, String, String) {
        let url = Url::of(Path::new(path)).unwrap().unwrap();
        (url.kind, url.store, url.key.to_string())
    }

    #[test]
    fn a_url_is_a_store_and_a_key_also_where_a_slash_was_lost() {
        let expected = (Kind::S3, "s3://bucket".to_owned(), "a/base/5/1259".to_owned());
        assert_eq!(of("s3://bucket/a/base/5/1259"), expected);
        assert_eq!(of("s3:/bucket/a/./base/4/../5/1259"), expected);
        assert_eq!(Path::new("s3://bucket/a").join("base/5/1259").to_str().map(of), Some(expected));
        assert_eq!(of("gs://bucket/"), (Kind::Google, "gs://bucket".into(), String::new()));
        assert_eq!(
            of("abfss://box@account.dfs.core.windows.net/x"),
            (Kind::Azure, "abfss://box@account.dfs.core.windows.net".into(), "x".into())
        );
    }

    #[test]
    fn a_web_address_is_that_of_a_cloud_or_of_a_web_server() {
        let found = of("https://account.blob.core.windows.net/box/x");
        assert_eq!(
            found,
            (Kind::Azure, "https://account.blob.core.windows.net/box".into(), "x".into())
        );
        let found = of("https://s3.eu-west-1.amazonaws.com/bucket/x");
        assert_eq!(found.1, "https://s3.eu-west-1.amazonaws.com/bucket");
        let found = of("https://bucket.s3.eu-west-1.amazonaws.com/x");
        assert_eq!((found.0, &*found.2), (Kind::S3, "x"));
        let found = of("https://example.org/x/y");
        assert_eq!(found, (Kind::Web, "https://example.org".into(), "x/y".into()));
    }

    #[test]
    fn a_path_is_none_and_a_url_names_a_bucket() {
        assert_eq!(Url::of(Path::new("/data/s3:/x")), Ok(None));
        for wrong in ["s3://", "s3://../x", "s3:", "https://account.blob.core.windows.net"] {
            assert!(matches!(Url::of(Path::new(wrong)), Err(RemoteError::Url(_))), "{wrong}");
        }
    }
}
