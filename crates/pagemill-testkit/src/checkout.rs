//! Where the sources lie that a test reads as it runs: scripts, fixtures, pages of the guide.
//!
//! Must hold: no path is built in. Checkouts may share a target directory, and where their sources are equal cargo takes what one of
//! them built for the other's; a path built in would be that of a checkout that may be gone.

use std::path::{Path, PathBuf};

/// A file or directory of the checkout whose tests run, by its path from the root of it.
///
/// # Panics
/// When neither cargo nor the working directory says which checkout it is.
pub fn in_checkout(path: &str) -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let start = package.or_else(|| std::env::current_dir().ok()).unwrap_or_default();
    let root = start.ancestors().find(|found| is_root(found));
    root.expect("the tested package lies in a checkout of Pagemill").join(path) // infallible: cargo runs it there
}

fn is_root(directory: &Path) -> bool {
    directory.join("crates/pagemill-testkit").is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_from_the_package_that_is_tested() {
        assert!(in_checkout("crates/pagemill-testkit/src/checkout.rs").is_file());
    }
}
