//! A request over HTTP, cut out of bytes of whoever connects.
//!
//! Invariant: no more than [`MOST_BYTES`] of them are looked at, and nothing of a body.
//!
//! Source: RFC 9112, sections 2 to 5; `httparse` takes the head apart.

use std::net::IpAddr;

/// Bytes of a request up to its empty line.
pub(crate) const MOST_BYTES: usize = 8 << 10;
const MOST_HEADERS: usize = 64;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Without what stands behind `?`.
    pub(crate) path: String,
    /// Whether only what stands before the body is wanted.
    pub(crate) is_head: bool,
    /// The name by which the server was found, without its port.
    pub(crate) host: Option<String>,
}

/// Why nothing is answered, as a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Malformed,
    TooLarge,
    OtherMethod,
    UnknownPath,
    /// It was found by a name that is not its own.
    OtherHost,
}

impl Refusal {
    pub(crate) fn status(self) -> &'static str {
        match self {
            Self::Malformed => "400 Bad Request",
            Self::UnknownPath => "404 Not Found",
            Self::OtherMethod => "405 Method Not Allowed",
            Self::OtherHost => "421 Misdirected Request",
            Self::TooLarge => "431 Request Header Fields Too Large",
        }
    }
}

impl Request {
    /// The request that bytes begin with; `None` where more have to come.
    ///
    /// # Errors
    /// When they begin with none that is answered.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Self>, Refusal> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(bytes) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) if bytes.len() < MOST_BYTES => return Ok(None),
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                return Err(Refusal::TooLarge);
            }
            Err(_) => return Err(Refusal::Malformed),
        }
        let is_head = match request.method {
            Some("GET") => false,
            Some("HEAD") => true,
            _ => return Err(Refusal::OtherMethod),
        };
        let target = request.path.unwrap_or_default();
        let path = target.split(['?', '#']).next().unwrap_or_default().to_owned();
        let mut hosts =
            request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
        let host = hosts.next().map(|header| String::from_utf8_lossy(header.value).into_owned());
        if hosts.next().is_some() {
            return Err(Refusal::Malformed);
        }
        Ok(Some(Self { path, is_head, host: host.map(|host| without_port(&host).to_owned()) }))
    }

    /// Whether the server was found by an address, as localhost, or by this name: a page of another site whose name leads here is not to
    /// read what is told.
    pub(crate) fn is_for(&self, name: &str) -> bool {
        let Some(host) = &self.host else { return true };
        host.eq_ignore_ascii_case("localhost")
            || host.eq_ignore_ascii_case(name)
            || host.parse::<IpAddr>().is_ok()
    }
}

/// `name`, `name:port`, `[address]`, `[address]:port`.
fn without_port(host: &str) -> &str {
    let host = host.trim();
    if let Some((address, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(head: &str) -> Result<Option<Request>, Refusal> {
        Request::parse(format!("{head}\r\n\r\n").as_bytes())
    }

    #[test]
    fn requests_have_a_path_and_a_host() {
        let request = |path: &str, is_head, host: Option<&str>| {
            Ok(Some(Request { path: path.into(), is_head, host: host.map(Into::into) }))
        };
        assert_eq!(parsed("GET / HTTP/1.0"), request("/", false, None));
        let found = parsed("HEAD /metrics?x=1 HTTP/1.1\r\nhOST: [::1]:9187");
        assert_eq!(found, request("/metrics", true, Some("::1")));
        assert_eq!(Request::parse(b"GET / HTTP/1.1\r\nHost: a"), Ok(None));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        assert_eq!(parsed("POST / HTTP/1.1"), Err(Refusal::OtherMethod));
        assert_eq!(parsed("\0\0\0\x08\x04\x16\x2f"), Err(Refusal::Malformed));
        assert_eq!(parsed("GET / HTTP/1.1\r\nHost: a\r\nHost: b"), Err(Refusal::Malformed));
        let long = format!("GET /{}", "a".repeat(MOST_BYTES));
        assert_eq!(Request::parse(&long.as_bytes()[..MOST_BYTES]), Err(Refusal::TooLarge));
        let many = format!("GET / HTTP/1.1{}", "\r\na: b".repeat(MOST_HEADERS + 1));
        assert_eq!(parsed(&many), Err(Refusal::TooLarge));
    }

    #[test]
    fn names_of_others_are_not_ours() {
        let of = |host: &str| parsed(&format!("GET / HTTP/1.1\r\nHost: {host}")).unwrap().unwrap();
        for own in
            ["127.0.0.1:9187", "[::1]:9187", "localhost", "LOCALHOST:80", "db.example.com:9187"]
        {
            assert!(of(own).is_for("db.example.com"), "{own}");
        }
        for other in ["evil.example.com", "127.0.0.1.evil.com:9187", "localhost.evil.com"] {
            assert!(!of(other).is_for("db.example.com"), "{other}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Request::parse(&bytes);
            let _ = Request::parse(&[b"GET / HTTP/1.1\r\nHost:", &bytes[..], b"\r\n\r\n"].concat());
        }
    }
}
