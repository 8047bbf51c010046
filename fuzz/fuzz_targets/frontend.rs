//! What a client may send before anybody knows it, and after: a first packet, messages, and what proves a password.
//!
//! In pieces it is heard as at once, takes no memory beyond what came, and what is taken apart is made of what was there. A bit of the
//! first byte has bodies framed by right lengths, so that what lies behind them is reached.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_protocol::scram::{ClientFinal, ClientFirst};
use pagemill_protocol::{Error, FrontendMessage, Incoming, SaslInitialResponse, StartupRequest};

/// Room that there is for what has not come yet, at most.
const ROOM: usize = 64 << 10;

/// What becomes of a stream.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    session: Option<StartupRequest>,
    requests: usize,
    messages: Vec<FrontendMessage>,
}

impl Heard {
    fn of(mut left: &[u8], sizes: &[u8]) -> (Self, Option<Error>) {
        let (mut heard, mut incoming) = (Self::default(), Incoming::default());
        let mut sizes = sizes.iter().map(|size| usize::from(*size)).cycle();
        let most_memory = 4 * (left.len() + ROOM);
        while !left.is_empty() {
            let (piece, rest) =
                left.split_at(sizes.next().unwrap_or(left.len()).clamp(1, left.len()));
            left = rest;
            incoming.room().extend_from_slice(piece);
            assert!(incoming.memory() <= most_memory);
            if let Err(error) = heard.take(&mut incoming) {
                return (heard, Some(error));
            }
        }
        (heard, None)
    }

    fn take(&mut self, incoming: &mut Incoming) -> Result<(), Error> {
        while self.session.is_none() {
            match incoming.startup()? {
                None => return Ok(()),
                session @ Some(StartupRequest::Session(_)) => self.session = session,
                Some(_) => self.requests += 1,
            }
        }
        while let Some(message) = incoming.message()? {
            self.messages.push(message);
        }
        Ok(())
    }
}

/// The bytes as a first packet and messages, each of a type, so many bytes as the next one says, and its length.
fn framed(mut left: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    while let [kind, count, rest @ ..] = left {
        let (body, rest) = rest.split_at(rest.len().min(usize::from(*count)));
        if !stream.is_empty() {
            stream.push(*kind);
        }
        stream.extend((body.len() as u32 + 4).to_be_bytes());
        stream.extend(body);
        left = rest;
    }
    stream
}

/// What a password message may hold.
fn understand(body: &[u8]) {
    if let Ok(first) = ClientFirst::parse(body) {
        assert_eq!([first.header, first.bare].concat().as_bytes(), body);
    }
    if let Ok(last) = ClientFinal::parse(body) {
        assert!(body.starts_with(last.without_proof.as_bytes()));
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((sizes, bytes)) = data.split_at_checked(4) else { return };
    let stream = if sizes[0] & 1 == 1 { framed(bytes) } else { bytes.to_vec() };
    let (heard, error) = Heard::of(&stream, &[]);
    for message in &heard.messages {
        let FrontendMessage::Password(body) = message else { continue };
        understand(body);
        if let Ok(response) = SaslInitialResponse::parse(body) {
            assert!(body.ends_with(response.data));
            understand(response.data);
        }
    }
    assert_eq!(Heard::of(&stream, sizes), (heard, error));
    understand(bytes);
});
