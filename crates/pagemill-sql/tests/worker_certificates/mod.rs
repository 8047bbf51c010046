//! Authorities of tests, and what they sign for workers and those who ask them.
//!
//! Invariant: all files go with their authority.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};

/// What workers are reached by in tests.
pub(crate) const HERE: &str = "127.0.0.1";

/// Who signs certificates.
pub(crate) struct Authority {
    directory: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
    own: String,
}

/// The files of one side.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) authority: PathBuf,
}

impl Authority {
    pub(crate) fn new() -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let directory = tempfile::tempdir()?;
        let name = format!("The authority of {}", directory.path().display());
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate()?;
        let own = params.self_signed(&key)?.pem();
        std::fs::write(directory.path().join("authority.crt"), &own)?;
        Ok(Self { directory, issuer: Issuer::new(params, key), own })
    }

    /// Its own certificate, as PEM.
    pub(crate) fn pem(&self) -> &str {
        &self.own
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A side whose certificate is for a name or address, and that takes those of this authority.
    pub(crate) fn side(&self, file: &str, host: &str) -> Result<Side> {
        let mut params = CertificateParams::new(vec![host.to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, file);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let side = Side {
            certificate: self.path(&format!("{file}.crt")),
            key: self.path(&format!("{file}.key")),
            authority: self.path("authority.crt"),
        };
        std::fs::write(&side.certificate, certificate.pem())?;
        std::fs::write(&side.key, key.serialize_pem())?;
        set_mode(&side.key, 0o600)?;
        Ok(side)
    }
}

impl Side {
    /// The same, with certificates of these authorities taken.
    pub(crate) fn taking(self, file: &str, authorities: &[&Authority]) -> Result<Self> {
        let authority = self.certificate.with_file_name(file);
        let all: String = authorities.iter().map(|authority| authority.pem()).collect();
        std::fs::write(&authority, all)?;
        Ok(Self { authority, ..self })
    }

    /// The flags of a worker.
    pub(crate) fn flags(&self) -> [&Path; 6] {
        let Self { certificate, key, authority } = self;
        let words = ["--tls-cert", "--tls-key", "--tls-ca"].map(Path::new);
        [words[0], certificate, words[1], key, words[2], authority]
    }

    /// Those of who asks workers.
    pub(crate) fn asking(&self) -> Vec<String> {
        let words = ["--worker-tls-cert", "--worker-tls-key", "--worker-tls-ca"];
        let files = [&self.certificate, &self.key, &self.authority];
        let files = files.map(|file| file.display().to_string());
        words.into_iter().zip(files).flat_map(|(word, file)| [word.to_owned(), file]).collect()
    }
}

pub(crate) fn set_mode(file: &Path, mode: u32) -> Result<()> {
    Ok(std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode))?)
}
