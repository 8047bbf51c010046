//! `ts_rank_cd`: how short the parts of a text are that meet a query (its covers), and how many.
//!
//! Source: `calc_rank_cd`, `get_docrep`, `Cover` and `fillQueryRepresentationData` in `src/backend/utils/adt/tsrank.c`,
//! PostgreSQL 14 to 18.

use super::super::rows::Outcome;
use super::matching::{Answer, Found, Words, is_met};
use super::query::{Operand, Query};
use super::rank::{
    BY_DISTANCE, BY_ITSELF, BY_LENGTH, BY_LOGARITHM_OF_LENGTH, BY_LOGARITHM_OF_WORDS, BY_WORDS,
    Weights, entries_of, length,
};
use super::vector::{Vector, place, weight};

/// A lexeme at one of its positions, and the nodes of the query that look for it.
struct Spot {
    position: u16,
    nodes: Vec<usize>,
}

/// All that the query looks for, in the order of the text.
fn spots(vector: Vector<'_>, query: &Query<'_>) -> Outcome<Vec<Spot>> {
    let mut found: Vec<((u16, u8, usize), usize)> = Vec::new();
    for (node, operand) in query.operands() {
        for (number, entry) in entries_of(vector, &operand)? {
            let counts = |at: &u16| operand.weights == 0 || operand.weights & 1 << weight(*at) != 0;
            let positions = entry.positions().filter(counts);
            found.extend(positions.map(|at| ((place(at), weight(at), number), node)));
        }
    }
    found.sort_unstable();
    let mut spots: Vec<Spot> = Vec::new();
    let mut last = None;
    for (key, node) in found {
        let (place, weight, _) = key;
        match spots.last_mut().filter(|_| last == Some(key)) {
            Some(spot) => spot.nodes.push(node),
            None => {
                spots.push(Spot { position: place | u16::from(weight) << 14, nodes: vec![node] })
            }
        }
        last = Some(key);
    }
    Ok(spots)
}

/// The words of the spots that were passed so far, by the nodes that look for them.
struct Passed {
    places: Vec<Vec<u16>>,
    is_backwards: bool,
}

impl Passed {
    fn new(query: &Query<'_>, is_backwards: bool) -> Self {
        Self { places: vec![Vec::new(); query.nodes.len()], is_backwards }
    }

    fn pass(&mut self, spot: &Spot) {
        for node in &spot.nodes {
            let places = &mut self.places[*node];
            if places.last() != Some(&place(spot.position)) {
                places.push(place(spot.position));
            }
        }
    }
}

impl Words for Passed {
    fn find(&self, number: usize, _: &Operand<'_>, wants_places: bool) -> Outcome<Found> {
        let places = &self.places[number];
        if places.is_empty() || !wants_places {
            let answer = if places.is_empty() { Answer::No } else { Answer::Yes };
            return Ok(Found::new(answer));
        }
        let mut places = places.clone();
        if self.is_backwards {
            places.reverse();
        }
        Ok(Found::at(places))
    }
}

/// The spots of a cover, both ends included, and their places.
struct Cover {
    first: usize,
    last: usize,
    from: i32,
    to: i32,
}

/// The next cover from a spot on, and where to look for the one behind it.
fn next_cover(
    spots: &[Spot],
    query: &Query<'_>,
    mut start: usize,
) -> Outcome<Option<(Cover, usize)>> {
    let place_of = |at: usize| i32::from(place(spots[at].position));
    loop {
        let mut passed = Passed::new(query, false);
        let mut last = None;
        for (at, spot) in spots.iter().enumerate().skip(start) {
            passed.pass(spot);
            if is_met(query, &passed)? {
                last = Some(at).filter(|at| place_of(*at) > 0);
                break;
            }
        }
        let Some(last) = last else { return Ok(None) };
        let mut passed = Passed::new(query, true);
        for at in (start..=last).rev() {
            passed.pass(&spots[at]);
            if is_met(query, &passed)? {
                let (from, to) = (place_of(at), place_of(last));
                return Ok(Some((Cover { first: at, last, from, to }, at + 1)));
            }
        }
        start += 1;
    }
}

/// What the covers of a text make together.
#[derive(Default)]
struct Covers {
    rank: f64,
    count: u32,
    distances: f64,
    middle: f64,
}

impl Covers {
    fn add(&mut self, cover: &Cover, spots: &[Spot], inverse: &[f64; 4]) {
        let within = &spots[cover.first..=cover.last];
        let weights = within.iter().map(|spot| inverse[usize::from(weight(spot.position))]);
        let sum = weights.fold(0.0, |sum: f64, weight| sum + weight);
        let steps = (cover.last - cover.first) as i32;
        // Where positions end, many words have the last one.
        let noise = match cover.to - cover.from - steps {
            noise if noise < 0 => steps / 2,
            noise => noise,
        };
        self.rank += f64::from(steps + 1) / sum / f64::from(1 + noise);
        let middle = f64::from(cover.to + cover.from) / 2.0;
        if self.count > 0 && middle > self.middle {
            self.distances += 1.0 / (middle - self.middle);
        }
        self.middle = middle;
        self.count += 1;
    }
}

/// `ts_rank_cd`.
pub(super) fn cover_rank(
    weights: &Weights,
    vector: Vector<'_>,
    query: &Query<'_>,
    divided: i32,
) -> Outcome<f32> {
    let spots = spots(vector, query)?;
    if spots.is_empty() {
        return Ok(0.0);
    }
    let inverse = weights.map(|weight| 1.0 / f64::from(weight));
    let (mut covers, mut start) = (Covers::default(), 0);
    while let Some((cover, next)) = next_cover(&spots, query, start)? {
        covers.add(&cover, &spots, &inverse);
        start = next;
    }
    let mut rank = covers.rank;
    let logarithm = |count: usize| (count as f64 + 1.0).ln();
    if divided & BY_LOGARITHM_OF_LENGTH != 0 {
        rank /= logarithm(length(vector)?);
    }
    if divided & BY_LENGTH != 0 {
        rank /= length(vector)? as f64;
    }
    if divided & BY_DISTANCE != 0 && covers.count > 0 && covers.distances > 0.0 {
        rank /= f64::from(covers.count) / covers.distances;
    }
    if divided & BY_WORDS != 0 {
        rank /= vector.len() as f64;
    }
    if divided & BY_LOGARITHM_OF_WORDS != 0 {
        rank /= logarithm(vector.len()) / 2.0_f64.ln();
    }
    if divided & BY_ITSELF != 0 {
        rank /= rank + 1.0;
    }
    Ok(rank as f32)
}
