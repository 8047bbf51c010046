//! Bytes of all kinds, in pieces of all sizes: a message or an error, the same however they arrive, and no more memory than they take.
//!
//! Messages that are right in most of their bytes come from `message`, which builds them as a client does, and breaks one byte.

use pagemill_protocol::scram::{ClientFinal, ClientFirst};
use pagemill_protocol::{Error, FrontendMessage, Incoming, SaslInitialResponse, StartupRequest};
use proptest::collection::vec;
use proptest::prelude::*;

/// Room that there is for what has not come yet, at most.
const ROOM: usize = 64 << 10;

/// What becomes of a stream: a first packet, the messages behind it, and what ended them.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    startup: Option<StartupRequest>,
    messages: Vec<FrontendMessage>,
    error: Option<Error>,
}

impl Heard {
    fn of(bytes: &[u8], sizes: &[usize], has_startup: bool) -> Self {
        let (mut heard, mut incoming, mut left) = (Self::default(), Incoming::default(), bytes);
        let mut sizes = sizes.iter().copied().cycle();
        while !left.is_empty() && heard.error.is_none() {
            let size = sizes.next().unwrap_or(left.len()).clamp(1, left.len());
            let piece = left.split_off(..size).unwrap_or_default();
            incoming.room().extend_from_slice(piece);
            heard.error = heard.take(&mut incoming, has_startup).err();
            assert!(incoming.memory() <= 4 * (bytes.len() + ROOM), "{}", incoming.memory());
        }
        heard
    }

    fn take(&mut self, incoming: &mut Incoming, has_startup: bool) -> Result<(), Error> {
        if has_startup && self.startup.is_none() {
            self.startup = incoming.startup()?;
            if self.startup.is_none() {
                return Ok(());
            }
        }
        while let Some(message) = incoming.message()? {
            self.messages.push(message);
        }
        Ok(())
    }
}

/// A message by its type and content.
fn framed(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], &(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
}

/// A field of a message: names, texts, counts, values with their lengths, and what has no form.
fn field() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[a-z$ \u{e4}]{0,9}".prop_map(|text| [text.as_bytes(), b"\0"].concat()),
        (0_i16..4).prop_map(|count| count.to_be_bytes().to_vec()),
        (-1_i32..5).prop_map(|number| number.to_be_bytes().to_vec()),
        vec(any::<u8>(), 0..9).prop_map(|value| framed(0, &value)[1..].to_vec()),
        prop_oneof![Just(b"S".to_vec()), Just(b"P".to_vec())],
        vec(any::<u8>(), 0..9),
    ]
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop::sample::select(b"QPBDECFSHXpdcf".to_vec());
    let broken = proptest::option::weighted(0.2, (any::<prop::sample::Index>(), any::<u8>()));
    (kind, vec(field(), 0..8), broken).prop_map(|(kind, fields, broken)| {
        let mut bytes = framed(kind, &fields.concat());
        if let Some((at, byte)) = broken {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes
    })
}

fn startup() -> impl Strategy<Value = Vec<u8>> {
    let version = prop_oneof![
        4 => (0_i32..4).prop_map(|minor| 3 << 16 | minor),
        1 => (5678_i32..5681).prop_map(|code| 1234 << 16 | code),
        1 => any::<i32>(),
    ];
    (version, vec(field(), 0..6)).prop_map(|(version, fields)| {
        let body = [&version.to_be_bytes()[..], &fields.concat(), b"\0"].concat();
        framed(0, &body)[1..].to_vec()
    })
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_heard_alike_in_all_pieces(
        bytes in vec(any::<u8>(), 0..400), sizes in vec(1_usize..40, 1..8), has_startup: bool,
    ) {
        prop_assert_eq!(Heard::of(&bytes, &sizes, has_startup), Heard::of(&bytes, &[], has_startup));
    }

    #[test]
    fn broken_messages_are_heard_alike_in_all_pieces(
        first in startup(), messages in vec(message(), 0..20), sizes in vec(1_usize..40, 1..8),
    ) {
        let bytes = [first, messages.concat()].concat();
        prop_assert_eq!(Heard::of(&bytes, &sizes, true), Heard::of(&bytes, &[], true));
    }

    #[test]
    fn a_message_of_a_known_type_is_cut_out_whole(bodies in vec(vec(any::<u8>(), 0..200), 1..9), size in 1_usize..99) {
        let bytes: Vec<u8> = bodies.iter().flat_map(|body| framed(b'p', body)).collect();
        let heard = Heard::of(&bytes, &[size], false);
        prop_assert_eq!(heard.messages, bodies.into_iter().map(FrontendMessage::Password).collect::<Vec<_>>());
    }

    #[test]
    fn what_proves_a_password_is_taken_apart_or_refused(
        mechanism in "[A-Z0-9-]{0,20}", data in vec(any::<u8>(), 0..99), text in "[nypcrmae=,+/ A-Za-z0-9]{0,80}",
    ) {
        let length = (data.len() as i32).to_be_bytes();
        let body = [mechanism.as_bytes(), b"\0", &length, &data].concat();
        let wanted = SaslInitialResponse { mechanism, data: &data };
        prop_assert_eq!(SaslInitialResponse::parse(&body), Ok(wanted));
        for bytes in [&data[..], text.as_bytes()] {
            let _ = (SaslInitialResponse::parse(bytes), ClientFirst::parse(bytes), ClientFinal::parse(bytes));
        }
    }
}
