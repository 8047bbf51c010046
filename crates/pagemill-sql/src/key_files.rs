//! Files with certificates and private keys, for TLS with clients and among workers.
//!
//! Invariants: a key that others can read is refused, as PostgreSQL refuses it; what is given holds at least one item of its kind.
//!
//! Source: `check_ssl_key_file_permissions` in `src/backend/libpq/be-secure-common.c`, PostgreSQL 14 to 18.

use std::path::{Path, PathBuf};

use pagemill_io::HostFiles;
use rustls_pki_types::pem::{self, PemObject as _};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// Bytes of a file with certificates, or a key.
const MOST_BYTES: u64 = 1 << 20;

/// For all but the owner: any right; for a file of root's, any but its group's to read.
const OTHERS: u32 = 0o077;
const OTHERS_OF_ROOT: u32 = 0o037;

/// Why a file gives none.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It cannot be read.
    #[error(transparent)]
    File(#[from] pagemill_io::Error),
    /// A key that is not secret.
    #[error(
        "{}: others than its owner have access to this private key: it has to have mode 0600 or less, or 0640 or less if it is root's",
        .0.display()
    )]
    Exposed(PathBuf),
    /// It holds nothing of its kind.
    #[error("{}: no {what} in it that can be read: PEM is, without a passphrase", .path.display())]
    Nothing {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
    },
    /// It is no PEM.
    #[error("{}: {source}", .path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// Why.
        source: pem::Error,
    },
}

type Result<T> = std::result::Result<T, KeyFileError>;

/// The certificates of a file, in its order.
///
/// # Errors
/// When it cannot be read, or has none.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let bytes = HostFiles::real().read_file(path, MOST_BYTES)?;
    let failed = |source| KeyFileError::Pem { path: path.to_owned(), source };
    let found = CertificateDer::pem_slice_iter(&bytes).collect::<std::result::Result<Vec<_>, _>>();
    match found.map_err(failed)? {
        none if none.is_empty() => {
            Err(KeyFileError::Nothing { path: path.to_owned(), what: "certificate" })
        }
        found => Ok(found),
    }
}

/// The private key of a file.
///
/// # Errors
/// When it cannot be read, has none, or is not secret.
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    let files = HostFiles::real();
    let access = files.access(path)?;
    let mask = if access.owner == 0 { OTHERS_OF_ROOT } else { OTHERS };
    if access.mode & mask != 0 {
        return Err(KeyFileError::Exposed(path.to_owned()));
    }
    let bytes = files.read_file(path, MOST_BYTES)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| match error {
        pem::Error::NoItemsFound => {
            KeyFileError::Nothing { path: path.to_owned(), what: "private key" }
        }
        source => KeyFileError::Pem { path: path.to_owned(), source },
    })
}
