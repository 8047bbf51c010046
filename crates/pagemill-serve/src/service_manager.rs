//! What a service manager is told: that clients are answered, that all is being opened anew, that the server is about to end.
//!
//! Invariant: the server does its work alike, whether anybody listens or not.
//!
//! Source: `sd_notify(3)` of systemd 257: datagrams of `NAME=value` lines to the socket in `NOTIFY_SOCKET`, a path or an abstract name
//! behind `@`. `MONOTONIC_USEC` says to which request a `RELOADING=1` is the answer.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::time::Duration;

use pagemill_cli::failure::complain;
use rustix::time::{ClockId, clock_gettime};

/// Where a service manager says that it listens.
const PLACE: &str = "NOTIFY_SOCKET";
/// How long it may take to read what it was told before.
const PATIENCE: Duration = Duration::from_secs(1);

/// A service manager, or nobody.
#[derive(Debug, Default)]
pub struct ServiceManager {
    socket: Option<UnixDatagram>,
}

impl ServiceManager {
    /// The one that the environment names. One that cannot be told anything is complained of.
    pub fn of_environment() -> Self {
        let Some(place) = std::env::var_os(PLACE).filter(|place| !place.is_empty()) else {
            return Self::default();
        };
        match connected(&place) {
            Ok(socket) => Self { socket: Some(socket) },
            Err(error) => {
                complain(format!("{PLACE} {}: {error}", Path::new(&place).display()));
                Self::default()
            }
        }
    }

    /// Clients are answered, as `status` says.
    pub fn ready(&self, status: &str) {
        // A line of its own for each value.
        let status: String = status.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.tell(&format!("READY=1\nSTATUS={status}\n"));
    }

    /// All is being opened anew.
    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let microseconds = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={microseconds}\n"));
    }

    /// The server is about to end.
    pub fn stopping(&self) {
        self.tell("STOPPING=1\n");
    }

    fn tell(&self, state: &str) {
        if let Some(socket) = &self.socket
            && let Err(error) = socket.send(state.as_bytes())
        {
            complain(format!("{PLACE}: the service manager was not told: {error}"));
        }
    }
}

fn connected(place: &OsStr) -> io::Result<UnixDatagram> {
    let address = match place.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(place)?,
        _ => return Err(io::Error::other("neither a path nor an abstract name")),
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(socket)
}
