//! Where clients connect: a Unix socket by the name that libpq looks for, and TCP.
//!
//! Invariant: the socket can be opened by this user only, and is gone when the server is.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};

use crate::error::{Error, Result};

/// Bytes to and from a client.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A client that connected.
pub struct Arrival {
    /// Its bytes.
    pub stream: Box<dyn Stream>,
    /// Where it is, for TCP.
    pub address: Option<SocketAddr>,
}

/// Where clients connect.
#[derive(Debug)]
pub struct Endpoints {
    socket: Option<Socket>,
    tcp: Vec<TcpListener>,
}

#[derive(Debug)]
struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

/// The socket's name in its directory, by which libpq finds it for a port.
pub fn socket_name(port: u16) -> String {
    format!(".s.PGSQL.{port}")
}

impl Endpoints {
    /// Opens the socket in a directory.
    ///
    /// # Errors
    /// When another server listens there, or it cannot be made.
    pub fn on_socket(directory: &Path, port: u16) -> Result<Self> {
        let path = directory.join(socket_name(port));
        let failed = |source| Error::Listen { place: path.display().to_string(), source };
        remove_abandoned(&path)?;
        let listener = UnixListener::bind(&path).map_err(failed)?;
        let socket = Socket { listener, path: path.clone() };
        // Connecting needs the permission to write.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).map_err(failed)?;
        Ok(Self { socket: Some(socket), tcp: Vec::new() })
    }

    /// Nothing yet.
    pub fn none() -> Self {
        Self { socket: None, tcp: Vec::new() }
    }

    /// Listens at all addresses of a host, too.
    ///
    /// # Errors
    /// When the name has no address, or one is taken.
    pub async fn listen(&mut self, host: &str, port: u16) -> Result<()> {
        let host = if host == "*" { "0.0.0.0" } else { host };
        let failed = |source| Error::Listen { place: format!("{host}:{port}"), source };
        let addresses = tokio::net::lookup_host((host, port)).await.map_err(failed)?;
        for address in addresses {
            self.tcp.push(TcpListener::bind(address).await.map_err(failed)?);
        }
        Ok(())
    }

    /// Where clients connect, in words.
    pub fn places(&self) -> Vec<String> {
        let socket = self.socket.iter().map(|socket| socket.path.display().to_string());
        let tcp = self.tcp.iter().filter_map(|listener| listener.local_addr().ok());
        socket.chain(tcp.map(|address| address.to_string())).collect()
    }

    /// The next client.
    ///
    /// # Errors
    /// When it left again, or the process has no descriptors left.
    pub async fn accept(&self) -> io::Result<Arrival> {
        let tcp = async {
            let accepts = self.tcp.iter().map(|listener| Box::pin(listener.accept()));
            let accepts: Vec<_> = accepts.collect();
            match accepts.is_empty() {
                true => std::future::pending().await,
                false => futures::future::select_all(accepts).await.0,
            }
        };
        let socket = async {
            match &self.socket {
                Some(socket) => socket.listener.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            accepted = socket => Ok(Arrival { stream: Box::new(accepted?.0), address: None }),
            accepted = tcp => {
                let (stream, address) = accepted?;
                // Answers are written in few, large pieces already.
                stream.set_nodelay(true)?;
                Ok(Arrival { stream: Box::new(stream), address: Some(address) })
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Should it not go, the next server removes it.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes the socket that a server left which was killed.
fn remove_abandoned(path: &Path) -> Result<()> {
    let failed = |source| Error::Listen { place: path.display().to_string(), source };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => {
            Err(failed(io::Error::other("something that is no socket is there")))
        }
        Ok(_) if BlockingStream::connect(path).is_ok() => Err(Error::SocketInUse(path.to_owned())),
        Ok(_) => std::fs::remove_file(path).map_err(failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_is_ours_alone_and_goes_with_the_server() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(socket_name(5432));
        let endpoints = Endpoints::on_socket(directory.path(), 5432).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(matches!(Endpoints::on_socket(directory.path(), 5432), Err(Error::SocketInUse(_))));
        drop(endpoints);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn what_a_killed_server_left_is_replaced_and_other_files_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(socket_name(5432));
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(Endpoints::on_socket(directory.path(), 5432).unwrap());
        std::fs::write(&path, "kept").unwrap();
        assert!(Endpoints::on_socket(directory.path(), 5432).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept");
    }
}
