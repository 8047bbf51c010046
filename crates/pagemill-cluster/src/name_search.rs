//! Stand-in.
use std::sync::Arc;
use pagemill_format::Oid;
use pagemill_format::types::input::InputError;
use pagemill_format::types::input::tree::InputLookups;
use pagemill_format::types::output::NameKind;
use crate::name_rows::DatabaseRows;
use crate::names::NameSettings;

pub(crate) struct NameSearch {}

impl NameSearch {
    pub(crate) fn new(_rows: DatabaseRows, _settings: NameSettings) -> Self {
        Self {}
    }
}

/// The names of one thread.
pub struct InputNames {
    _search: Arc<NameSearch>,
}

impl InputNames {
    pub(crate) fn new(search: Arc<NameSearch>) -> Self {
        Self { _search: search }
    }
}

impl InputLookups for InputNames {
    fn find_name(&mut self, _kind: NameKind, _text: &[u8]) -> Result<Oid, InputError> {
        Err(InputError::new("not yet"))
    }

    fn find_role(&mut self, _name: &[u8]) -> Result<Option<Oid>, InputError> {
        Ok(None)
    }
}
