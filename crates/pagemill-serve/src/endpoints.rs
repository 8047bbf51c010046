//! Where clients connect: a Unix socket by the name that libpq looks for, and TCP.
//!
//! Invariant: the socket can be opened by this user only, and is gone when the server is.
//!
//! Source: `ListenServerPort` in `src/backend/libpq/pqcomm.c`, PostgreSQL 18, for what `*` means and which addresses may be missing.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};

use crate::error::{Error, Result};

/// Clients that wait to be accepted.
const BACKLOG: u32 = 1024;

/// Bytes to and from a client.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A client that connected.
#[derive(Debug)]
pub enum Arrival {
    /// By the socket.
    Socket(UnixStream),
    /// Over TCP, and where it is.
    Tcp(TcpStream, SocketAddr),
}

/// Where to listen on TCP: a name, and what it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    name: String,
    addresses: Vec<SocketAddr>,
}

impl Host {
    /// What a name or an address stands for; `*` is all that this machine has.
    ///
    /// # Errors
    /// When the name stands for nothing.
    pub fn resolve(name: &str, port: u16) -> Result<Self> {
        let failed = |source| Error::Listen { place: format!("{name}:{port}"), source };
        let addresses: Vec<SocketAddr> = match name {
            "*" => vec![(Ipv6Addr::UNSPECIFIED, port).into(), (Ipv4Addr::UNSPECIFIED, port).into()],
            _ => (name, port).to_socket_addrs().map_err(failed)?.collect(),
        };
        let mut seen = Vec::new();
        for address in addresses {
            if !seen.contains(&address) {
                seen.push(address);
            }
        }
        Ok(Self { name: name.to_owned(), addresses: seen })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True where only this machine can connect.
    pub fn is_loopback(&self) -> bool {
        self.addresses.iter().all(|address| address.ip().to_canonical().is_loopback())
    }
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

    /// Listens at all addresses of a host, too: at least at one, where the machine has not all of them.
    ///
    /// # Errors
    /// When one is taken, or none is there.
    pub fn listen(&mut self, host: &Host) -> Result<()> {
        let before = self.tcp.len();
        let mut missing = None;
        for address in &host.addresses {
            match listener(*address) {
                Ok(listener) => self.tcp.push(listener),
                // One of version 6 has taken those of version 4, too.
                Err(error)
                    if host.name == "*"
                        && self.tcp.len() > before
                        && error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                    missing = Some(error);
                }
                Err(source) => return Err(Error::Listen { place: address.to_string(), source }),
            }
        }
        if self.tcp.len() == before {
            let source = missing.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into());
            return Err(Error::Listen { place: host.name.clone(), source });
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
            accepted = socket => Ok(Arrival::Socket(accepted?.0)),
            accepted = tcp => {
                let (stream, address) = accepted?;
                // Answers are written in few, large pieces already.
                stream.set_nodelay(true)?;
                Ok(Arrival::Tcp(stream, address))
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

fn listener(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    };
    // A machine without this version of IP has none of its addresses.
    let socket = socket.map_err(|_| io::Error::from(io::ErrorKind::AddrNotAvailable))?;
    socket.set_reuseaddr(true)?;
    // Connections have it from here: that of a client whose machine is gone ends.
    socket.set_keepalive(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
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
    async fn hosts_are_told_from_this_machine_alone() {
        let host = |name| Host::resolve(name, 5432).unwrap();
        for own in ["127.0.0.1", "127.8.8.8", "::1", "localhost", "::ffff:127.0.0.1"] {
            assert!(host(own).is_loopback(), "{own}");
        }
        for other in ["*", "0.0.0.0", "::", "192.0.2.1", "2001:db8::1"] {
            assert!(!host(other).is_loopback(), "{other}");
        }
        assert!(Host::resolve("no such host.invalid", 5432).is_err());
    }

    #[tokio::test]
    async fn an_address_is_listened_at_once() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let host = Host::resolve("127.0.0.1", port).unwrap();
        let mut endpoints = Endpoints::none();
        endpoints.listen(&host).unwrap();
        assert_eq!(endpoints.places(), [format!("127.0.0.1:{port}")]);
        assert!(endpoints.listen(&host).is_err());
        let missing = Host::resolve("192.0.2.1", port).unwrap();
        assert!(endpoints.listen(&missing).is_err());
        let client = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let Arrival::Tcp(_, address) = endpoints.accept().await.unwrap() else { panic!("no TCP") };
        assert_eq!(address, client.local_addr().unwrap());
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
