//! Values as their send functions give them, and as tuples have them.
//!
//! Invariant: what comes from a payload is what a server sends of it, but for the sign of NaN, which no text shows.

/// Bytes of a number of a shape.
const NUMBER: usize = 8;

/// Each number with its lowest byte first.
fn swapped(sent: &[u8]) -> Vec<u8> {
    sent.chunks(NUMBER).flat_map(|number| number.iter().rev().copied()).collect()
}

fn word(sent: &[u8]) -> [u8; 4] {
    let mut word: [u8; 4] = sent[..4].try_into().unwrap();
    word.reverse();
    word
}

/// The box around points: its upper right and its lower left corner.
fn bounds(points: &[u8]) -> Vec<u8> {
    let numbers: Vec<f64> =
        points.as_chunks::<NUMBER>().0.iter().map(|bytes| f64::from_be_bytes(*bytes)).collect();
    let is_below = |x: f64, y: f64| !x.is_nan() && (y.is_nan() || x < y);
    let along = |axis: usize, is_high: bool| {
        let numbers = numbers.iter().skip(axis).step_by(2).copied();
        let better = |best: f64, new: f64| {
            let is_better = if is_high { is_below(best, new) } else { is_below(new, best) };
            if is_better { new } else { best }
        };
        numbers.reduce(better).unwrap()
    };
    [along(0, true), along(1, true), along(0, false), along(1, false)]
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

/// The payload of a value that was sent.
pub(super) fn payload(type_name: &str, sent: &[u8]) -> Vec<u8> {
    match type_name {
        "point" | "lseg" | "box" | "circle" | "line" | "pg_lsn" => swapped(sent),
        "path" => {
            let closed = i32::from(sent[0]).to_le_bytes();
            [&word(&sent[1..])[..], &closed, &[0; 4], &swapped(&sent[5..])].concat()
        }
        "polygon" => [&word(sent)[..], &bounds(&sent[4..]), &swapped(&sent[4..])].concat(),
        "inet" | "cidr" => [&sent[..2], &sent[4..]].concat(),
        "bit" | "varbit" => [&word(sent)[..], &sent[4..]].concat(),
        "tid" => [1, 0, 3, 2, 5, 4].map(|at| sent[at]).to_vec(),
        _ => sent.to_vec(),
    }
}

/// A payload as it is sent; of networks what a payload does not have is told by the type.
pub(super) fn sent(type_name: &str, payload: &[u8]) -> Vec<u8> {
    match type_name {
        "point" | "lseg" | "box" | "circle" | "line" => plain_nan(&swapped(payload)),
        "pg_lsn" => swapped(payload),
        "path" => {
            let points = plain_nan(&swapped(&payload[12..]));
            [&payload[4..5], &word(payload), &points].concat()
        }
        "polygon" => [&word(payload)[..], &plain_nan(&swapped(&payload[36..]))].concat(),
        "inet" | "cidr" => {
            let length = payload.len() as u8 - 2;
            let middle = [u8::from(type_name == "cidr"), length];
            [&payload[..2], &middle, &payload[2..]].concat()
        }
        "bit" | "varbit" => [&word(payload)[..], &payload[4..]].concat(),
        "tid" => [1, 0, 3, 2, 5, 4].map(|at| payload[at]).to_vec(),
        _ => payload.to_vec(),
    }
}

/// Numbers with one NaN.
pub(super) fn plain_nan(sent: &[u8]) -> Vec<u8> {
    let numbers = sent.as_chunks::<NUMBER>().0.iter().map(|bytes| f64::from_be_bytes(*bytes));
    let one = |number: f64| if number.is_nan() { f64::NAN } else { number };
    numbers.flat_map(|number| one(number).to_be_bytes()).collect()
}
