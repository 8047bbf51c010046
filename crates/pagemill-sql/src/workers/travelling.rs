//! A statement on its way to a worker: all that its plan follows from.
//!
//! Invariant: no credentials; no more bytes than a header may have.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use http::HeaderValue;
use serde::{Deserialize, Serialize};

use super::{PROTOCOL, Snapshot};
use crate::parameters::ParameterValue;
use crate::session::{Client, SettingValues};

/// The header that has it.
pub(super) const HEADER: &str = "x-pagemill-statement";
/// What it may take there.
pub(super) const MOST_BYTES: usize = 256 << 10;

/// A statement and what it is asked of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Travelling {
    /// Which program sent it.
    protocol: String,
    /// The data directory, as [`directory_name`](super::directory_name) calls it.
    pub(super) directory: String,
    /// The cluster in it.
    pub(super) snapshot: Snapshot,
    /// The database.
    pub(crate) database: String,
    /// The statement.
    pub(crate) text: String,
    /// When it began, in microseconds since 2000-01-01.
    pub(crate) start: i64,
    /// True where numerics of a declared size are carried so that NaN has room.
    pub(crate) has_wide_numerics: bool,
    /// What it is planned for.
    pub(crate) planning: Planning,
    /// Who asked it.
    pub(crate) asker: Asker,
    /// The values of its parameters.
    pub(crate) values: Vec<ParameterValue>,
    /// A fingerprint of its plan.
    plan: u64,
}

/// What a statement is bound by beside the catalogs. A worker takes it as it is told: who has the secret may read everything.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Asker {
    /// Nobody where the session was made for none.
    pub(crate) client: Option<Client>,
    /// False where policies that would leave out rows are errors.
    pub(crate) row_security: bool,
    /// What a client set, where there is one.
    pub(crate) settings: Option<SettingValues>,
}

/// What a plan depends on beside the statement and the catalogs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Planning {
    /// Partitions of each step, in each task.
    pub(crate) jobs: usize,
    /// Bytes that sorts, joins and aggregates may take.
    pub(crate) memory: Option<usize>,
    /// Bytes of tables for which one more task is worth it.
    pub(crate) share_bytes: usize,
}

/// What a statement says of itself.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) database: String,
    pub(crate) text: String,
    pub(crate) start: i64,
    pub(crate) has_wide_numerics: bool,
    pub(crate) planning: Planning,
    pub(crate) asker: Asker,
    pub(crate) values: Vec<ParameterValue>,
}

impl Travelling {
    pub(super) fn new(
        (directory, snapshot): (&str, Snapshot),
        asked: Asked,
        plan: &dyn ExecutionPlan,
    ) -> Self {
        let Asked { database, text, start, has_wide_numerics, planning, asker, values } = asked;
        Self {
            protocol: PROTOCOL.to_owned(),
            directory: directory.to_owned(),
            snapshot,
            database,
            text,
            start,
            has_wide_numerics,
            planning,
            asker,
            values,
            plan: fingerprint(plan),
        }
    }

    /// As a header; `None` where it is too long for one.
    pub(super) fn header(&self) -> Option<HeaderValue> {
        let json = serde_json::to_vec(self).ok()?;
        let text = STANDARD.encode(json);
        (text.len() <= MOST_BYTES).then(|| HeaderValue::from_str(&text).ok()).flatten()
    }

    /// # Errors
    /// Where a header is none of this program's.
    pub(super) fn of_header(header: Option<&HeaderValue>) -> Result<Self, String> {
        let header = header.ok_or("a request without a statement")?;
        let json = STANDARD.decode(header.as_bytes()).map_err(|error| error.to_string())?;
        let protocol =
            |value: &serde_json::Value| value.get("protocol")?.as_str().map(str::to_owned);
        let value: serde_json::Value =
            serde_json::from_slice(&json).map_err(|error| error.to_string())?;
        match protocol(&value) {
            Some(theirs) if theirs == PROTOCOL => {}
            Some(theirs) => return Err(format!("it is asked by {theirs:?}, and is {PROTOCOL}")),
            None => return Err("a statement of another program".to_owned()),
        }
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    /// Whether a plan is the one that was made where the statement comes from.
    pub(super) fn is_planned_as(&self, plan: &dyn ExecutionPlan) -> bool {
        self.plan == fingerprint(plan)
    }
}

/// Of all that a plan shows of itself.
fn fingerprint(plan: &dyn ExecutionPlan) -> u64 {
    let mut hasher = DefaultHasher::new();
    displayable(plan).indent(true).to_string().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_is_no_statement() {
        for garbage in ["", "!", "e30=", "bnVsbA==", "eyJwcm90b2NvbCI6ICJvdGhlciJ9"] {
            let header = HeaderValue::from_str(garbage).unwrap();
            assert!(Travelling::of_header(Some(&header)).is_err(), "{garbage}");
        }
        assert!(Travelling::of_header(None).is_err());
    }
}
