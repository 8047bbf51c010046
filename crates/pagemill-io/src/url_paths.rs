//! Paths that are URLs: `s3://bucket/path` stays the path that was typed, and is told from one of this machine by its scheme.
//!
//! A path may lose one of its two slashes on its way (`s3:/bucket`), as paths that are taken apart and joined do.
//!
//! Invariant: what has no scheme of [`SCHEMES`] is a path of this machine; `./s3:` always is.

use std::path::{Component, Path, PathBuf};

/// The schemes of object stores and web servers.
pub const SCHEMES: [&str; 9] = ["s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "https", "http"];

/// The scheme of a path that is the URL of something on a store.
pub fn scheme_of(path: &Path) -> Option<&str> {
    let Some(Component::Normal(first)) = path.components().next() else { return None };
    let scheme = first.to_str()?.strip_suffix(':')?;
    SCHEMES.contains(&scheme).then_some(scheme)
}

/// True for a path that is the URL of something on a store.
pub fn is_url(path: &Path) -> bool {
    scheme_of(path).is_some()
}

/// The path that a `file:` URL names, which is one of this machine; any other path as it is. Nothing is percent-encoded.
pub fn local_path(path: PathBuf) -> PathBuf {
    match path.to_str().and_then(|text| text.strip_prefix("file://")) {
        Some(rest) => PathBuf::from(rest.strip_prefix("localhost").unwrap_or(rest)),
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_known_by_its_scheme_also_where_a_slash_was_lost() {
        for url in ["s3://bucket/x", "s3:/bucket/x", "gs://b", "https://example.org/x"] {
            assert!(is_url(Path::new(url)), "{url}");
        }
        for path in ["/data/s3:/x", "data", "./s3:/x", "ftp://x", "s3", "file:///x"] {
            assert!(!is_url(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn a_file_url_is_a_path_of_this_machine() {
        for (url, path) in
            [("file:///data/x", "/data/x"), ("file://localhost/d", "/d"), ("data", "data")]
        {
            assert_eq!(local_path(url.into()), Path::new(path));
        }
    }
}
