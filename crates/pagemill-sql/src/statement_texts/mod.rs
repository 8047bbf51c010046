//! Texts of statements that came before, alike but for their constants: what is known of them.
//!
//! ```text
//! text ─► constants that might be others ─► which of them stand where any is as good as another ─► shape
//!                                           known from the first such text                        └► from the second on
//! ```
//!
//! A shape is a statement with parameters in the place of constants. Which plan it has is a matter of each session
//! ([`crate::session`]); here is what the text alone says. What a shape has no plan for is parsed as if it had come for the first
//! time.
//!
//! Invariants: two texts of one shape are cut into the same tokens but for the constants, and these are of the same types; so they
//! are parsed, and refused, alike. A text that was refused is not kept.

mod conditions;
mod constants;
mod recent;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sqlparser::ast::{Expr, Statement, Value, ValueWithSpan};
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan};

use crate::error::{Result, SqlState, StatementError};
use crate::session::Session;
use conditions::{Found, for_each_constant};
use constants::{Candidate, Skeleton, candidates};
pub(crate) use constants::{Constant, ConstantType};
pub(crate) use recent::{Limits, Recent};

/// A longer text is parsed each time.
const LONGEST: usize = 16 << 10;
/// How much is kept: texts, of which a parsed one takes some twenty times as much.
const LIMITS: Limits = Limits { entries: 1000, bytes: 512 << 10 };

/// A statement as it was sent, parsed once that is needed.
#[derive(Debug)]
pub struct StatementText {
    text: Box<str>,
    parsed: OnceLock<Arc<Statement>>,
    pub(crate) repeated: Option<Repeated>,
}

/// What a text that is like one before it is.
#[derive(Debug)]
pub(crate) struct Repeated {
    pub(crate) shape: Arc<Shape>,
    /// In the place of its last parameters.
    pub(crate) constants: Arc<[Constant]>,
}

/// What texts have in common.
#[derive(Debug)]
pub(crate) struct Shape {
    /// No other has it.
    pub(crate) number: u64,
    /// With parameters behind the client's own in the place of constants.
    pub(crate) statement: Arc<Statement>,
    /// How many parameters are the client's own.
    pub(crate) parameters: usize,
    /// As what the constants are read.
    pub(crate) types: Arc<[ConstantType]>,
    /// The text that it was made of: as it was parsed, and its constants.
    pub(crate) sample: (Arc<Statement>, Arc<[Constant]>),
}

impl StatementText {
    fn of_text(text: &str) -> Self {
        Self { text: text.into(), parsed: OnceLock::new(), repeated: None }
    }

    /// What was parsed.
    ///
    /// # Errors
    /// Where it is no SQL.
    pub fn statement(&self) -> Result<&Arc<Statement>> {
        if let Some(parsed) = self.parsed.get() {
            return Ok(parsed);
        }
        let parsed = Arc::new(parse_one(&self.text)?);
        Ok(self.parsed.get_or_init(|| parsed))
    }

    /// Whether it is EXPLAIN.
    pub fn is_explain(&self) -> bool {
        // One that is not parsed yet is a query.
        matches!(self.parsed.get().map(|parsed| &**parsed), Some(Statement::Explain { .. }))
    }
}

impl fmt::Display for StatementText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parsed.get() {
            Some(parsed) => parsed.fmt(f),
            None => f.write_str(&self.text),
        }
    }
}

impl From<Statement> for StatementText {
    fn from(parsed: Statement) -> Self {
        let parsed = OnceLock::from(Arc::new(parsed));
        Self { text: Box::default(), parsed, repeated: None }
    }
}

fn parse_one(text: &str) -> Result<Statement> {
    match <[Statement; 1]>::try_from(Session::parse(text)?) {
        Ok([statement]) => Ok(statement),
        Err(_) => {
            let message = "a syntax error: one statement was expected";
            Err(StatementError::new(SqlState::SYNTAX_ERROR, message).into())
        }
    }
}

/// Texts that came before.
#[derive(Debug)]
pub struct StatementTexts(Mutex<Known>);

#[derive(Debug)]
struct Known {
    /// By the text without any of its constants: the sign of those that might be others.
    places: Recent<Arc<Skeleton>, Signs>,
    /// By the text without these.
    shapes: Recent<Arc<Skeleton>, Sight>,
}

/// For each constant of a text whether it might be another, and then whether it has a minus sign.
type Signs = Arc<[Option<bool>]>;

/// How often texts were seen that are alike.
#[derive(Debug, Clone)]
enum Sight {
    Once,
    Again(Arc<Shape>),
}

impl Default for StatementTexts {
    fn default() -> Self {
        Self(Mutex::new(Known { places: Recent::new(LIMITS), shapes: Recent::new(LIMITS) }))
    }
}

impl StatementTexts {
    /// A statement of these tokens; `at` tells the byte of a place.
    ///
    /// # Errors
    /// Where it is no SQL.
    pub fn read(
        &self,
        text: &str,
        tokens: &[TokenWithSpan],
        at: impl Fn(Location) -> usize,
    ) -> Result<StatementText> {
        let found = (text.len() <= LONGEST).then(|| candidates(tokens, at)).flatten();
        let Some(found) = found else { return Ok(parse_one(text)?.into()) };
        let all = Arc::new(Skeleton::new(text, found.iter()));
        let known = self.known(|known| known.places.get(&all).cloned());
        let Some(signs) = known else { return self.read_first(text, all, &found) };
        let (skeleton, constants) = cut(text, &found, &signs);
        let sight = self.known(|known| known.shapes.get(&skeleton).cloned());
        match sight {
            None => {
                let parsed = parse_one(text)?;
                self.keep(skeleton, Sight::Once);
                Ok(parsed.into())
            }
            Some(Sight::Again(shape)) => {
                let repeated = Some(Repeated { shape, constants });
                Ok(StatementText { repeated, ..StatementText::of_text(text) })
            }
            Some(Sight::Once) => {
                let parsed = Arc::new(parse_one(text)?);
                let shape = Arc::new(Shape::new(&parsed, tokens, (&found, &signs), &constants));
                self.keep(skeleton, Sight::Again(shape.clone()));
                let (parsed, repeated) = (parsed.into(), Some(Repeated { shape, constants }));
                Ok(StatementText { parsed, repeated, ..StatementText::of_text(text) })
            }
        }
    }

    /// One of which nothing is known.
    fn read_first(
        &self,
        text: &str,
        all: Arc<Skeleton>,
        found: &[Candidate],
    ) -> Result<StatementText> {
        let mut parsed = parse_one(text)?;
        if !matches!(parsed, Statement::Query(_)) {
            return Ok(parsed.into());
        }
        let mut places = HashMap::new();
        for_each_constant(&mut parsed, |Found { place, is_negative, .. }| {
            places.insert(place, is_negative);
        });
        let signs: Signs = found.iter().map(|one| places.get(&one.place).copied()).collect();
        let (skeleton, _) = cut(text, found, &signs);
        let bytes = all.text.len();
        self.known(|known| known.places.insert(all, signs, bytes));
        self.keep(skeleton, Sight::Once);
        Ok(parsed.into())
    }

    fn keep(&self, skeleton: Arc<Skeleton>, sight: Sight) {
        let bytes = skeleton.text.len();
        self.known(|known| known.shapes.insert(skeleton, sight, bytes));
    }

    fn known<T>(&self, ask: impl FnOnce(&mut Known) -> T) -> T {
        ask(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A text without the constants that might be others, and these with their signs.
fn cut(text: &str, found: &[Candidate], signs: &Signs) -> (Arc<Skeleton>, Arc<[Constant]>) {
    let cut = || found.iter().zip(&**signs).filter_map(|(one, sign)| Some((one, (*sign)?)));
    let signed = |(one, is_negative): (&Candidate, bool)| match is_negative {
        true => Constant { ty: one.constant.ty, text: format!("-{}", one.constant.text) },
        false => one.constant.clone(),
    };
    let skeleton = Skeleton::new(text, cut().map(|(one, _)| one));
    (Arc::new(skeleton), cut().map(signed).collect())
}

impl Shape {
    fn new(
        parsed: &Arc<Statement>,
        tokens: &[TokenWithSpan],
        (found, signs): (&[Candidate], &Signs),
        constants: &Arc<[Constant]>,
    ) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let parameters = tokens.iter().map(|token| parameter(&token.token)).max().unwrap_or(0);
        let cut = found.iter().zip(&**signs).filter(|(_, sign)| sign.is_some());
        let places: HashMap<Location, usize> =
            cut.enumerate().map(|(number, (one, _))| (one.place, number)).collect();
        let mut statement = Statement::clone(parsed);
        for_each_constant(&mut statement, |Found { expr, place, .. }| {
            if let Some(number) = places.get(&place) {
                let value = Value::Placeholder(format!("${}", parameters + number + 1));
                *expr = Expr::Value(ValueWithSpan { value, span: Span::empty() });
            }
        });
        Self {
            number: LAST.fetch_add(1, Ordering::Relaxed),
            statement: Arc::new(statement),
            parameters,
            types: constants.iter().map(|constant| constant.ty).collect(),
            sample: (parsed.clone(), constants.clone()),
        }
    }
}

/// The number of a parameter; 0 for any other token.
fn parameter(token: &Token) -> usize {
    match token {
        Token::Placeholder(name) => name.trim_start_matches('$').parse().unwrap_or(0), // default: it is refused later
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
